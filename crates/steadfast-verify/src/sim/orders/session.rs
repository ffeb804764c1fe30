use std::collections::{BTreeMap, BTreeSet};

use steadfast::dedup::OrderEvent;
use steadfast_sandbox::State;
use tokio::time::Instant;

use crate::sim::{
    orders::{counts::Counts, crash::Crash, trader::Told, workload::Shape},
    wire::{Ending, Seen},
};

/// A broken invariant, with the reason.
pub(crate) type Violation = (&'static str, String);

/// The course of one client in one seed, with its gateway's ground truth.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// The results of the calls, order by order; `None` for a call that did not end.
    pub(crate) told: Vec<Option<Told>>,
    /// When the last call for each order began.
    pub(crate) begun: Vec<Option<Instant>>,
    pub(crate) truth: State,
    pub(crate) seen: Seen,
    /// The orders that the client itself has reported as excess or late.
    pub(crate) flagged: BTreeSet<String>,
    /// All other reports.
    pub(crate) events: Vec<OrderEvent>,
    /// Orders that are still in doubt after the faults ended.
    pub(crate) left_in_doubt: usize,
    /// The state of a process that died, and its successor's handling of it.
    pub(crate) crash: Option<Crash>,
    /// The records in a journal, if there was one.
    pub(crate) written: Counts,
    /// Foreign orders on the same account, with their terms.
    pub(crate) foreign: BTreeMap<String, Shape>,
    /// How the client's connections ended.
    pub(crate) ending: Ending,
    /// True if the gateway counts as documented in the table of zones.
    pub(crate) counts_as_documented: bool,
    /// True if some list hid the prices of orders.
    pub(crate) hides_prices: bool,
    /// Orders that arrived later than any bound and that no list showed to a client before their session was over.
    pub(crate) hidden: BTreeSet<String>,
    /// The violations in the histories of the trackers, if they were kept.
    pub(crate) violations: Vec<Violation>,
    /// Tasks that still ran when the trading day was over and everything had been dropped.
    pub(crate) tasks: usize,
}

/// Returns the orders that an event reports as late or excess. An unresolved order is reported with all its candidates,
/// of which at most one is its own.
pub(crate) fn flagged(event: &OrderEvent) -> Vec<String> {
    match event {
        OrderEvent::LateDuplicate { order_id, .. }
        | OrderEvent::RefusedButPlaced { order_id, .. }
        | OrderEvent::Excess { order_id, .. } => vec![order_id.clone()],
        OrderEvent::Unresolved { unresolved, .. } => unresolved.candidates.iter().skip(1).cloned().collect(),
        // The order is reported under its own identifier, next to these.
        OrderEvent::AckUnconfirmed { candidates, .. } => candidates.clone(),
        _ => Vec::new(),
    }
}
