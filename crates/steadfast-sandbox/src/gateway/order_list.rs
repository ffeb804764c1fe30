//! The order list, as it is and under the faults that strike it.

use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};
use steadfast_spec::{OrderStatus, OrderType};

use crate::{
    faults::{Fault, Stage},
    gateway::{
        book::BookedOrder,
        engine::{Engine, fault_page},
        passage::{Caller, Passage},
        spec_reading::{ListOrder, ListScope, ListShows, RejectedOrders, SpecReading},
    },
    wire::page::{Hint, Page},
};

impl Engine {
    /// §4.5: the session's orders as an array, or `no-data`.
    pub(crate) fn list_orders(&mut self, passage: &mut Passage<'_>, caller: Caller) -> Page {
        let fault = self.strike(Stage::List, passage).map(|strike| strike.fault);
        if let Some(page) = fault.and_then(fault_page) {
            return page;
        }
        let fault = fault.filter(|&it| it != Fault::ListCachedUnlessAsked || !passage.incoming.no_cache);
        // A stale list is the whole list of that time, with its orders and their statuses.
        let (age, hint) = match fault {
            Some(Fault::ListStale) => (self.settings.stale_by, None),
            Some(Fault::ListCachedAge | Fault::ListCachedUnlessAsked) => {
                let age = self.settings.cached_for;
                (age, Some(Hint::Age(age.as_secs().max(1))))
            }
            Some(Fault::ListCachedHit) => (self.settings.cached_for, Some(Hint::CacheHit)),
            _ => (Duration::ZERO, None),
        };
        let Some(now) = passage.now.checked_sub(age) else { return Page { hint, ..Page::no_data() } };
        let session = caller.session.map(|session| session.number);
        let reading = self.settings.interpretation;
        let open_only = fault == Some(Fault::ListOpenOnly) || reading.list_shows == ListShows::OpenOnly;
        let mut orders: Vec<&BookedOrder> = self
            .book
            .iter()
            .filter(|order| order.user == caller.user && order.applied <= now)
            .filter(|order| reading.list_scope == ListScope::User || Some(order.session) == session)
            .filter(|order| !open_only || order.status(now) == OrderStatus::Open)
            .filter(|order| {
                reading.rejected == RejectedOrders::Kept || order.status(now) != OrderStatus::Rejected
            })
            .filter(|order| order.applied.saturating_add(self.unseen_for(order)) <= now)
            .collect();
        match fault {
            Some(Fault::ListEmpty) => orders.clear(),
            Some(Fault::ListPartial) => orders = orders.into_iter().skip(1).step_by(2).collect(),
            Some(Fault::ListDuplicatedIds) => {
                orders = orders.into_iter().flat_map(|order| [order, order]).collect();
            }
            _ => {}
        }
        match reading.list_order {
            ListOrder::OldestFirst => {}
            ListOrder::NewestFirst => orders.reverse(),
            ListOrder::Shuffled => {
                let read = self.record.requests.to_string();
                orders.sort_by_cached_key(|order| self.draw.text(&read, &order.order_id));
            }
        }
        let page = match fault {
            Some(Fault::ListHuge) => huge(&orders, now, &reading),
            Some(Fault::ListHugeBare) => huge_bare(&orders, now, &reading, self.record.requests),
            _ if orders.is_empty() => Page::no_data(),
            None => rows(orders, now, &reading),
            Some(fault) => Page::ok(
                orders.into_iter().map(|order| listed(order, fault, now, &reading)).collect::<Vec<Value>>(),
            ),
        };
        let page = Page { hint, ..page };
        if fault == Some(Fault::ListTruncated) { page.cut_in_half() } else { page }
    }

    /// Returns for how long after it was applied an order is not listed.
    fn unseen_for(&self, order: &BookedOrder) -> Duration {
        let most = self.settings.interpretation.visibility_lag.most();
        if most.is_zero() {
            return most;
        }
        most.mul_f64(self.draw.fraction("visibility-lag", &order.order_id))
    }
}

fn rows(orders: Vec<&BookedOrder>, now: Duration, reading: &SpecReading) -> Page {
    Page::ok(orders.into_iter().map(|order| order.record(now, reading)).collect::<Vec<_>>())
}

/// Returns the real orders and fifty thousand fictitious ones: some 10 MB.
fn huge(orders: &[&BookedOrder], now: Duration, reading: &SpecReading) -> Page {
    let real = orders.iter().map(|order| json!(order.record(now, reading)).to_string());
    let nobodys = (0..50_000).map(|number| {
        format!(
            r#"{{"orderId":"99{number:010}","symId":"EQT_NOBODY_EQ_NSE","side":"sell","qty":1,"type":"market","product":"intraday","validity":"day","status":"completed","legType":"main"}}"#
        )
    });
    let records: Vec<String> = real.chain(nobodys).collect();
    Page::json(StatusCode::OK, &Value::Null).with_body(format!(r#"{{"s":"ok","d":[{}]}}"#, records.join(",")))
}

/// Returns the real orders and a hundred thousand ids that no other list has: some 3 MB.
fn huge_bare(orders: &[&BookedOrder], now: Duration, reading: &SpecReading, read: u64) -> Page {
    let real = orders.iter().map(|order| json!(order.record(now, reading)).to_string());
    let bare = (0..100_000).map(|number| format!(r#"{{"orderId":"98{read:06}{number:06}"}}"#));
    let records: Vec<String> = real.chain(bare).collect();
    Page::json(StatusCode::OK, &Value::Null).with_body(format!(r#"{{"s":"ok","d":[{}]}}"#, records.join(",")))
}

/// Returns an order as the list shows it under a fault.
fn listed(order: &BookedOrder, fault: Fault, now: Duration, reading: &SpecReading) -> Value {
    let mut record = json!(order.record(now, reading));
    let Some(fields) = record.as_object_mut() else { return record };
    match fault {
        Fault::ListNumericIds => {
            if let Ok(id) = order.order_id.parse::<u64>() {
                fields.insert("orderId".into(), id.into());
            }
        }
        Fault::ListUnknownEnums => {
            fields.insert("status".into(), "trigger pending".into());
        }
        Fault::ListMissingLegType => {
            fields.remove("legType");
        }
        Fault::ListMissingPrice => {
            fields.remove("limitPrice");
            fields.remove("trigPrice");
        }
        Fault::ListPricesReformatted => {
            for name in ["qty", "limitPrice", "trigPrice"] {
                if let Some(value) = fields.get_mut(name) {
                    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    *value = with_four_decimals(&text).into();
                }
            }
        }
        Fault::ListMarketAsLimit if order.request.order_type() == OrderType::Market => {
            fields.insert("type".into(), "limit".into());
            fields.insert("limitPrice".into(), "100.00".into());
        }
        _ => {}
    }
    record
}

fn with_four_decimals(text: &str) -> String {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}.{fraction:0<4}")
}
