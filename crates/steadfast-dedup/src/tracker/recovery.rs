//! Reports what earlier processes left in doubt, and how it ended.

use std::{collections::BTreeMap, sync::Arc};

use steadfast_call::ext;
use steadfast_spec::OrderRequest;

use crate::{
    journal::{Entry, Record},
    numbers::IntentNo,
    protocol::resolution::{Reason, Unresolved, Verdict},
    tracker::undecided::Undecided,
};

/// An order that an earlier process left in doubt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveredOrder {
    /// The account.
    pub account: ext::Account,
    /// The order's number.
    pub intent: IntentNo,
    /// The caller's own name for it.
    pub name: Option<ext::IntentId>,
    /// The order.
    pub order: Arc<OrderRequest>,
    /// How it stands now. It is never sent again.
    pub verdict: Verdict,
}

/// Marks a request as a search for the orders that earlier processes left in doubt.
///
/// The request is one of the order list. The [`Dedup`](crate::Dedup) service does not send it. It reads the list
/// itself until every such order is decided, and then answers with an empty 204. Orders in doubt are also searched
/// for without it, once the account's first order shows the path to its list.
///
/// # Cancellation
///
/// Dropping its future does not stop the reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recover;

/// Returns the orders without an end in a journal: in doubt, or unresolved for the last written reason.
///
/// Asks no service. For programs that [read](crate::journal::FileJournal::read) a journal without opening it.
#[must_use]
pub fn unresolved(entries: &[Entry]) -> Vec<RecoveredOrder> {
    let mut open: BTreeMap<(ext::Account, IntentNo), Undecided> = BTreeMap::new();
    // Ended by an answer or a list that may be contradicted later.
    let mut ended: BTreeMap<(ext::Account, IntentNo), Undecided> = BTreeMap::new();
    for Entry { account, record } in entries {
        let of = |intent: IntentNo| (account.clone(), intent);
        match record {
            Record::Begun { attempt, name, order, .. } => {
                let (account, intent, verdict) = (account.clone(), attempt.intent, Verdict::Pending);
                let (name, order) = (name.clone(), order.clone());
                let order = RecoveredOrder { account, intent, name, order, verdict };
                open.extend(ended.remove_entry(&of(intent)));
                let undecided = open.entry(of(intent)).or_insert_with(|| Undecided::new(order.clone()));
                undecided.order = order;
                undecided.begin(attempt.index);
            }
            Record::Closed { attempt, outcome, .. } => {
                let key = of(attempt.intent);
                if open.get_mut(&key).is_some_and(|undecided| undecided.is_over(*attempt, outcome)) {
                    ended.extend(open.remove_entry(&key));
                }
            }
            Record::Found { intent, .. } => ended.extend(open.remove_entry(&of(*intent))),
            Record::Confirmed { intent } => {
                let key = of(*intent);
                if open.get_mut(&key).is_some_and(Undecided::is_confirmed) {
                    ended.extend(open.remove_entry(&key));
                }
            }
            Record::Ruled { intent, .. } => {
                open.remove(&of(*intent));
            }
            Record::Unresolved { intent, reason, candidates } => {
                open.extend(ended.remove_entry(&of(*intent)));
                let reason = Reason::ALL.into_iter().find(|known| known.as_str() == reason);
                if let (Some(undecided), Some(reason)) = (open.get_mut(&of(*intent)), reason) {
                    undecided.order.verdict =
                        Verdict::Unresolved(Unresolved::new(reason, candidates.clone()));
                }
            }
            Record::Seen { .. } | Record::Renamed { .. } | Record::Heard { .. } | Record::Changed => {}
        }
    }
    open.into_values().map(|undecided| undecided.order).collect()
}
