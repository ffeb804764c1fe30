//! Calls of a published client of a service with the same paths, beside the specification: special kinds of orders,
//! exits, conversions, and some reads. Answers that are not known are the sandbox's own.

use serde_json::{Map, Value, json};
use steadfast_spec::{Decimal, Endpoint, Form, OrderStatus, parse_decimal};

use crate::{
    gateway::{
        engine::Engine,
        market::price,
        passage::{Caller, Passage},
        special_orders::SpecialOrder,
        symbol_store::symbol_groups,
    },
    wire::page::{Page, refusal},
};

/// The kinds: trigger, one cancels the other, bracket, cover.
const KINDS: [&str; 4] = ["gtt", "oco", "bo", "co"];

impl Engine {
    /// Answers an endpoint that is not in the specification; `None` for those that are.
    pub(crate) fn special(&mut self, passage: &Passage<'_>, caller: Caller, form: &Form) -> Option<Page> {
        let kind = || KINDS.into_iter().find(|kind| passage.incoming.path.ends_with(&format!("/{kind}")));
        Some(match passage.endpoint? {
            Endpoint::PlaceSpecial => match kind() {
                Some(kind) => self.place_special(caller, kind, form),
                None => refusal::not_found(),
            },
            Endpoint::ModifySpecial => match kind() {
                Some(kind) => self.modify_special(caller, kind, form),
                None => refusal::not_found(),
            },
            Endpoint::CancelSpecial => {
                let id = passage.query.get("orderNo").unwrap_or_default();
                kind().map_or_else(refusal::not_found, |kind| self.end_special(caller, &[kind], id))
            }
            Endpoint::SpecialOrders => {
                kind().map_or_else(refusal::not_found, |kind| self.specials(caller, kind))
            }
            Endpoint::ExitOrder => {
                self.end_special(caller, &["bo", "co"], form.get("orderId").unwrap_or_default())
            }
            Endpoint::ConvertPosition => self.convert(caller, passage.now, form),
            Endpoint::Trades => self.trades(caller, passage.now),
            Endpoint::AccountDetails => Page::ok(
                json!({"clientId": self.directory.user(caller.user).client_id, "exchanges": ["NSE", "BSE"]}),
            ),
            Endpoint::Logout => {
                self.sessions.revoke_user(caller.user);
                Page::ok(json!({"msg": "logged out"}))
            }
            Endpoint::SymbolGroups => symbol_groups(),
            Endpoint::IntervalData => self.interval_data(passage),
            _ => return None,
        })
    }

    fn place_special(&mut self, caller: Caller, kind: &'static str, form: &Form) -> Page {
        let needed: &[&str] = match kind {
            "gtt" => &["symId", "side", "type", "product", "trigPrice", "qty"],
            "oco" => &["symId", "side"],
            _ => &["symId", "qty", "side", "type", "stopTrigPrice"],
        };
        if !needed.iter().all(|field| is_given(form, field)) || !numbers_hold(form) {
            return refusal::input_validation();
        }
        Page::ok(json!({"orderId": self.specials.place(caller.user, kind, form.clone())}))
    }

    fn modify_special(&mut self, caller: Caller, kind: &'static str, form: &Form) -> Page {
        let id = form.get("orderId").unwrap_or_default();
        let Some(order) = self.specials.open(caller.user, &[kind], id).filter(|_| numbers_hold(form)) else {
            return refusal::input_validation();
        };
        let kept = order.fields.iter().filter(|(name, _)| !form.contains(name));
        let changed = form.iter().filter(|(name, _)| *name != "orderId");
        let fields = kept.chain(changed).map(|(name, value)| (name.to_owned(), value.to_owned()));
        order.fields = fields.fold(Form::new(), |form, (name, value)| form.with(name, value));
        Page::ok(json!({"orderId": id, "msg": "Order modified"}))
    }

    fn end_special(&mut self, caller: Caller, kinds: &[&str], id: &str) -> Page {
        match self.specials.open(caller.user, kinds, id) {
            Some(order) => {
                order.status = OrderStatus::Cancelled;
                Page::ok(json!({"orderId": id, "msg": "Order cancelled"}))
            }
            None => refusal::input_validation(),
        }
    }

    fn specials(&self, caller: Caller, kind: &str) -> Page {
        let row = |order: &SpecialOrder| {
            let mut row: Map<String, Value> =
                order.fields.iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
            row.insert("orderId".to_owned(), json!(order.id));
            row.insert("status".to_owned(), json!(order.status.as_str()));
            Value::Object(row)
        };
        let rows: Vec<Value> = self.specials.of_kind(caller.user, kind).map(row).collect();
        if rows.is_empty() { Page::no_data() } else { Page::ok(Value::Array(rows)) }
    }

    /// One bar a minute, all at the instrument's price.
    fn interval_data(&self, passage: &Passage<'_>) -> Page {
        let query = &passage.query;
        if !["from", "to", "interval", "id"].iter().all(|field| is_given(query, field)) {
            return refusal::input_validation();
        }
        let price = price(self.draw, query.get("id").unwrap_or_default()).to_string();
        Page::ok(json!({"bars": [[query.get("from"), price, price, price, price, "0"]]}))
    }
}

fn is_given(form: &Form, field: &str) -> bool {
    form.get(field).is_some_and(|value| !value.is_empty())
}

fn numbers_hold(form: &Form) -> bool {
    let is_number = |name: &str| name == "qty" || name.ends_with("Qty") || name.ends_with("Price");
    form.iter().all(|(name, value)| {
        !is_number(name) || parse_decimal(value).is_ok_and(|number| number >= Decimal::ZERO)
    })
}
