use http::StatusCode;
use serde_json::{Value, json};

use super::{ErrorText, ExpiresIn, ExtraFields, NoDataStatus, Quantity, SpecReading};
use crate::{
    gateway::session::TOKEN_LIFE,
    wire::page::{Content, Page},
};

impl SpecReading {
    /// Rewrites an answer to this reading of the specification: axes 7, 16 and 17.
    pub(crate) fn dress(&self, page: Page) -> Page {
        let plain = (NoDataStatus::Ok, ErrorText::AsShown, ExtraFields::None);
        if (self.no_data, self.error_text, self.extra_fields) == plain {
            return page;
        }
        let Content::Whole(body) = &page.content else { return page };
        let Ok(Value::Object(mut fields)) = serde_json::from_slice::<Value>(body) else { return page };
        let mut status = page.status;
        let s = fields.get("s").and_then(Value::as_str).map(str::to_owned);
        if s.as_deref() == Some("no-data") && self.no_data == NoDataStatus::NotFound {
            status = StatusCode::NOT_FOUND;
        }
        if s.as_deref() == Some("error") {
            if let Some(Value::String(text)) = fields.get_mut("msg") {
                match self.error_text {
                    ErrorText::AsShown => {}
                    ErrorText::TrailingSpace => text.push(' '),
                    ErrorText::Capitals => *text = text.to_uppercase(),
                }
            }
            if self.extra_fields == ExtraFields::Present {
                fields.insert("d".into(), json!({}));
            }
        }
        if self.extra_fields == ExtraFields::Present {
            fields.insert("traceId".into(), "0f3a".into());
            match fields.get_mut("d") {
                Some(Value::Array(records)) => records.iter_mut().for_each(add_field),
                Some(record) => add_field(record),
                None => {}
            }
        }
        let body = Value::Object(fields).to_string();
        Page { status, content: Content::Whole(body.into()), ..page }
    }

    /// Rewrites a quantity, given as a JSON number or text, as the list writes it: axis 11.
    pub(crate) fn quantity(&self, plain: Value) -> Value {
        let text = plain.as_str().map_or_else(|| plain.to_string(), str::to_owned);
        match self.quantity {
            Quantity::Number => plain,
            Quantity::Text => text.into(),
            Quantity::Decimal if text.contains('.') => text.into(),
            Quantity::Decimal => format!("{text}.0").into(),
        }
    }

    /// Returns a login's `expires_in`: axis 20.
    pub(crate) fn expires_in(&self) -> Value {
        match self.expires_in {
            ExpiresIn::Number => TOKEN_LIFE.as_secs().into(),
            ExpiresIn::Text => TOKEN_LIFE.as_secs().to_string().into(),
            ExpiresIn::Short => 300.into(),
        }
    }
}

fn add_field(record: &mut Value) {
    if let Value::Object(fields) = record {
        fields.insert("exchTime".into(), Value::Null);
    }
}
