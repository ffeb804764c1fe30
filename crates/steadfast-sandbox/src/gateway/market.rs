use http::StatusCode;
use serde_json::{Value, json};
use steadfast_spec::{Decimal, Endpoint, Form, OrderRequest, SymId};

use crate::{
    gateway::{
        draw::Draw,
        engine::Engine,
        passage::{Caller, Passage},
        symbol_store::symbols,
    },
    wire::{
        page::{Content, Page, refusal},
        scrips::SCRIPS,
    },
};

/// Returns an instrument's price, a function of the seed and the name.
pub(crate) fn price(draw: Draw, sym_id: &str) -> Decimal {
    Decimal::new(10_000 + 5 * i64::try_from(draw.below("price", sym_id, 80_000)).unwrap_or_default(), 2)
}

impl Engine {
    /// Answers reads of market and account data (§4.1, §4.5); forms that are not shown are the sandbox's own.
    pub(crate) fn read_data(&self, endpoint: Endpoint, passage: &Passage<'_>, caller: Caller) -> Page {
        match endpoint {
            Endpoint::SymbolStore => symbols(&passage.incoming.path),
            Endpoint::ScripMaster => self.scrip_master(),
            Endpoint::Quotes => self.quote(&passage.query),
            Endpoint::Positions => self.positions(caller, passage.now),
            Endpoint::Funds => self.funds(caller, passage.now),
            Endpoint::Holdings => self.holdings(caller, passage.now),
            _ => refusal::not_found(),
        }
    }

    fn scrip_master(&self) -> Page {
        let count = self.settings.large_scrip_master.unwrap_or(SCRIPS);
        Page {
            content: Content::Scrips { count, broken_after: None },
            ..Page::json(StatusCode::OK, &Value::Null)
        }
    }

    fn quote(&self, query: &Form) -> Page {
        let Some(sym_id) = query.get("symId").and_then(|text| text.parse::<SymId>().ok()) else {
            return refusal::input_validation();
        };
        if sym_id.shape().is_none() {
            return Page::no_data();
        }
        Page::ok(json!({"symId": sym_id.as_str(), "ltp": price(self.draw, sym_id.as_str()).to_string()}))
    }

    /// Path, payload and response are not shown; here the order's own fields, and a fifth of its value. It does not depend
    /// on the order's validity.
    pub(crate) fn order_margin(&self, form: &Form) -> Page {
        let validity = (!form.contains("validity")).then_some(("validity", "day"));
        match OrderRequest::from_fields(form.iter().chain(validity)) {
            Ok(order) => Page::ok(json!({"margin": self.margin(&order).to_string()})),
            Err(_) => refusal::input_validation(),
        }
    }

    /// Payload and response are not shown; here `orders` holds a JSON array of objects with the fields of §4.4.
    pub(crate) fn basket_margin(&self, form: &Form) -> Page {
        type Fields = std::collections::BTreeMap<String, String>;
        let Ok(mut basket) = serde_json::from_str::<Vec<Fields>>(form.get("orders").unwrap_or("[]")) else {
            return refusal::input_validation();
        };
        let mut total = Decimal::ZERO;
        for fields in &mut basket {
            fields.entry("validity".to_owned()).or_insert_with(|| "day".to_owned());
            let Ok(order) = OrderRequest::from_fields(fields.iter().map(|(k, v)| (k.as_str(), v.as_str())))
            else {
                return refusal::input_validation();
            };
            total = total.saturating_add(self.margin(&order));
        }
        Page::ok(json!({"margin": total.to_string(), "orders": basket.len()}))
    }

    pub(crate) fn margin(&self, order: &OrderRequest) -> Decimal {
        let price = order.limit_price().or(order.trig_price());
        let price = price.unwrap_or_else(|| price_of(self.draw, order));
        order.qty().saturating_mul(price).saturating_mul(Decimal::new(2, 1)).round_dp(2)
    }
}

fn price_of(draw: Draw, order: &OrderRequest) -> Decimal {
    price(draw, order.sym_id().as_str())
}
