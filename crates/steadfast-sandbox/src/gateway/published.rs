//! Requests that a published client writes in another way than the specification says: what it means by them.

use serde_json::{Map, Value, json};
use steadfast_spec::{Endpoint, Form};

use crate::gateway::{engine::Engine, passage::Passage, request::IncomingRequest};

impl Engine {
    /// True for a read of symbols without credentials: that client sends none.
    pub(crate) fn is_open(&self, endpoint: Endpoint, incoming: &IncomingRequest) -> bool {
        let reads_symbols = matches!(endpoint, Endpoint::SymbolStore | Endpoint::SymbolGroups);
        self.settings.published && reads_symbols && incoming.authorization.is_none()
    }

    /// Returns the form for a body that is none: that client ends a session without a body, and writes a basket as JSON.
    pub(crate) fn form_of_another_body(&self, passage: &Passage<'_>, kind: &str) -> Option<Form> {
        let body = passage.incoming.body.as_ref().ok().filter(|_| self.settings.published)?;
        match passage.endpoint? {
            Endpoint::Logout if kind.is_empty() && body.is_empty() => Some(Form::new()),
            Endpoint::BasketMargin if kind.eq_ignore_ascii_case("application/json") => {
                let basket: Value = serde_json::from_slice(body).ok()?;
                let orders = basket["basketOrders"].as_array()?.iter().map(as_texts);
                Some(Form::new().with("orders", json!(orders.collect::<Option<Vec<_>>>()?).to_string()))
            }
            _ => None,
        }
    }
}

/// Returns an order of a basket with its numbers as texts, as a form has them.
fn as_texts(order: &Value) -> Option<Map<String, Value>> {
    let given = order.as_object()?.iter().filter(|(_, value)| !value.is_null());
    let text = |value: &Value| value.as_str().map_or_else(|| json!(value.to_string()), Value::from);
    Some(given.map(|(name, value)| (name.clone(), text(value))).collect())
}
