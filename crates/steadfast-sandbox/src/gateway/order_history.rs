use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};
use steadfast_spec::{Decimal, Form, OrderStatus};

use crate::{
    gateway::{
        account::{Fill, list},
        book::BookedOrder,
        engine::Engine,
        order_row::number,
        passage::Caller,
    },
    wire::page::Page,
};

impl Engine {
    /// §4.5: request and response are not shown; here all orders of the user, of any session, or the one of `orderId`.
    pub(crate) fn history(&self, caller: Caller, now: Duration, query: &Form) -> Page {
        let asked = query.get("orderId").filter(|id| !id.is_empty());
        let fills: BTreeMap<&str, Fill<'_>> =
            self.fills(caller.user, now).map(|fill| (fill.order.order_id.as_str(), fill)).collect();
        let mine = self.book.iter().filter(|order| order.user == caller.user);
        let mut rows: Vec<Value> = mine
            .filter(|order| asked.is_none_or(|id| id == order.order_id))
            .map(|order| self.history_of(order, fills.get(&*order.order_id), now))
            .collect();
        match rows.pop() {
            Some(one) if self.settings.published && asked.is_some() => Page::ok(one),
            last => {
                rows.extend(last);
                list(rows)
            }
        }
    }

    fn history_of(&self, order: &BookedOrder, fill: Option<&Fill<'_>>, now: Duration) -> Value {
        let reading = &self.settings.interpretation;
        let mut steps = vec![json!({"msg": "order placed", "time": self.local_time(order.applied)})];
        if let Some((at, status)) = order.ended(now) {
            let mut step = json!({"msg": format!("order {status}"), "time": self.local_time(at)});
            if let Some(fill) = fill {
                self.describe(fill, &mut step);
            }
            steps.push(step);
        }
        let filled = fill.map_or(Decimal::ZERO, |_| order.request.qty());
        let mut row = json!(order.record(now, reading));
        row["totalFillQty"] = reading.quantity(number(filled));
        if let Some(fill) = fill {
            row["avgPrice"] = number(fill.price);
        }
        if order.status(now) == OrderStatus::Rejected {
            row["reason"] = "rejected by the exchange".into();
        }
        row["history"] = steps.into();
        row
    }
}
