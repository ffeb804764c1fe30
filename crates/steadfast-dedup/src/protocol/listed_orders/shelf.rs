//! The listed orders of a key that no intent owns, and which quantities they have.

use std::collections::BTreeMap;

use steadfast_spec::{Decimal, OrderRequest};

use crate::protocol::{listed_orders::fresh::Fresh, matcher};

/// Listed orders in the sequence in which they were first listed, and how many have each quantity.
///
/// Most orders of ours equal none of a crowd: their quantity says so without a look at each.
#[derive(Clone, Debug, Default)]
pub(super) struct Shelf {
    orders: Vec<Fresh>,
    quantities: BTreeMap<Decimal, usize>,
}

impl Shelf {
    pub(super) fn push(&mut self, fresh: Fresh) {
        if let Some(qty) = fresh.record.qty {
            *self.quantities.entry(qty).or_default() += 1;
        }
        self.orders.push(fresh);
    }

    /// Drops those that are not needed.
    pub(super) fn retain(&mut self, mut needed: impl FnMut(&Fresh) -> bool) {
        let quantities = &mut self.quantities;
        self.orders.retain(|fresh| {
            let stays = needed(fresh);
            if let Some(qty) = fresh.record.qty.filter(|_| !stays)
                && let Some(count) = quantities.get_mut(&qty)
            {
                *count -= 1;
            }
            stays
        });
        self.quantities.retain(|_, count| *count > 0);
    }

    /// Returns those that match this order in all fields they show.
    pub(super) fn strict<'a>(&'a self, order: &'a OrderRequest) -> impl Iterator<Item = &'a Fresh> + 'a {
        let orders = if self.has_qty(order.qty()) { &self.orders[..] } else { &[] };
        orders.iter().filter(|fresh| matcher::strict(&fresh.record, order))
    }

    /// True if one of them has this quantity.
    pub(super) fn has_qty(&self, qty: Decimal) -> bool {
        self.quantities.contains_key(&qty)
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Fresh> {
        self.orders.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Fresh> {
        self.orders.iter_mut()
    }

    pub(super) fn len(&self) -> usize {
        self.orders.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.orders.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use steadfast_spec::{FieldNames, parse_order_list};

    use super::*;
    use crate::numbers::{LogicalTime, Session};

    /// Returns an order with this identifier that shows this quantity, or none.
    fn fresh(id: u64, qty: &str) -> Fresh {
        let qty = if qty.is_empty() { String::new() } else { format!(r#","qty":{qty}"#) };
        let body = format!(r#"{{"s":"ok","d":[{{"orderId":"x{id}","symId":"S","side":"buy"{qty}}}]}}"#);
        let record = parse_order_list(body.as_bytes(), &FieldNames::default()).unwrap().remove(0);
        Fresh {
            order_id: record.order_id.as_str().into(),
            first_seen: LogicalTime(id),
            record: Arc::new(record),
            session: Session::default(),
            flagged: false,
            late: false,
        }
    }

    fn order(qty: u64) -> OrderRequest {
        let qty = qty.to_string();
        let fields = [
            ("symId", "S"),
            ("qty", &*qty),
            ("side", "buy"),
            ("type", "market"),
            ("product", "delivery"),
            ("validity", "day"),
        ];
        OrderRequest::from_fields(fields).unwrap()
    }

    proptest! {
        /// The matches of an order are what a look at all listed orders finds.
        #[test]
        fn the_matches_of_an_order_are_those_of_a_look_at_all(
            steps in prop::collection::vec(
                prop_oneof![
                    (1_u64..4, prop_oneof![Just(""), Just(".0"), Just(".50")]).prop_map(|(qty, end)| Ok(format!("{qty}{end}"))),
                    Just(Ok(String::new())),
                    (1_u64..4).prop_map(Err),
                ],
                1..60,
            ),
        ) {
            let (mut shelf, mut plain) = (Shelf::default(), Vec::new());
            for (id, step) in (0..).zip(steps) {
                match step {
                    Ok(qty) => {
                        shelf.push(fresh(id, &qty));
                        plain.push(fresh(id, &qty));
                    }
                    Err(part) => {
                        shelf.retain(|fresh| fresh.first_seen.0 % 4 != part);
                        plain.retain(|fresh| fresh.first_seen.0 % 4 != part);
                    }
                }
                let ids = |found: Vec<&Fresh>| found.iter().map(|it| it.order_id.clone()).collect::<Vec<_>>();
                prop_assert_eq!(ids(shelf.iter().collect()), ids(plain.iter().collect()));
                prop_assert_eq!((shelf.len(), shelf.is_empty()), (plain.len(), plain.is_empty()));
                for order in (1..4).map(order) {
                    let found = plain.iter().filter(|it| matcher::strict(&it.record, &order));
                    prop_assert_eq!(ids(shelf.strict(&order).collect()), ids(found.collect()));
                }
            }
        }
    }
}
