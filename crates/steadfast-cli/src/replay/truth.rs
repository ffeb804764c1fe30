use std::collections::BTreeMap;

use serde::Serialize;
use steadfast_sandbox::State;

use crate::row_name;

/// The embedded sandbox's orders for the rows of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Truth {
    /// Orders that belong to rows; exit legs of bracket and cover orders do not count.
    pub(crate) orders: usize,
    /// Rows with one order.
    pub(crate) exactly_once: usize,
    /// Orders beyond the first of their row.
    pub(crate) duplicated: usize,
    /// Rows that were placed and have no order.
    pub(crate) absent: usize,
    pub(crate) http_429: u64,
}

impl Truth {
    pub(crate) fn of(state: &State, sent: &[String]) -> Self {
        let mut orders: BTreeMap<&str, usize> =
            sent.iter().map(|name| (row_name::first_of(name), 0)).collect();
        for intent in state.orders.iter().filter_map(|order| order.intent.as_deref()) {
            // An order that is placed again after it was not observed belongs to the same row.
            let row = row_name::first_of(intent);
            *orders.entry(row).or_default() += 1;
        }
        Self {
            orders: orders.values().sum(),
            exactly_once: orders.values().filter(|&&count| count == 1).count(),
            duplicated: orders.values().map(|count| count.saturating_sub(1)).sum(),
            absent: orders.values().filter(|&&count| count == 0).count(),
            http_429: state.refusals.values().sum::<u64>() + state.injected_429s,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The second name of a row counted as a row of its own, which never had an order.
    #[test]
    fn c01_a_row_that_was_placed_again_is_one_row() {
        let sent = ["line-2", "line-3", "line-3-again"].map(str::to_owned);
        assert_eq!(Truth::of(&State::default(), &sent).absent, 2);
    }
}
