//! The names under which the rows' orders are placed.

use std::collections::BTreeSet;

use steadfast::dedup::Ruling;

use super::Replay;
use crate::{
    replay::{known, row::Row},
    row_name,
};

/// Which rows are placed again if their order was looked for and not found.
pub(in crate::replay) struct Again {
    /// All of them.
    pub(in crate::replay) all: bool,
    /// Rows whose second order was sent by an earlier run. Placing it again joins that order and sends nothing.
    pub(in crate::replay) sent: BTreeSet<u64>,
}

impl Again {
    pub(super) fn concerns(&self, row: &Row) -> bool {
        self.all || self.sent.contains(&row.line)
    }
}

impl Replay {
    /// Returns the name under which a row is placed first.
    ///
    /// If an earlier run has settled the first order and sent a second one, the second name is used: under the first
    /// the order would be sent again.
    pub(super) fn name_of_first(&self, line: u64, again: &Again) -> String {
        let first = row_name::of_first(line);
        let is_settled = again.sent.contains(&line) && !self.before.contains(&first);
        if is_settled { row_name::of_second(line) } else { first }
    }

    /// Returns the name under which a row is placed again after its order was not found.
    ///
    /// The first order is settled before, so that no run looks for it once the second one has replaced it. A run that
    /// dies in between has sent nothing for the row; the next run does.
    pub(super) fn name_after_absence(&self, line: u64, again: &Again) -> String {
        let (first, second) = (row_name::of_first(line), row_name::of_second(line));
        let Some(journal) = &self.journal else { return second };
        if self.name_of_first(line, again) == second {
            return second;
        }
        let settled = known::in_doubt(journal, &first).is_some_and(|order| {
            let ruled = self.client.tracker().resolve(Some(&order.account), order.intent, Ruling::NotPlaced);
            ruled.is_ok()
        });
        // It was found meanwhile: placing it again sends nothing and returns its id.
        if settled { second } else { first }
    }
}
