use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use steadfast_call::{Failure, Fate};
use steadfast_dedup::Settings;
use steadfast_spec::{ERRORS, OrderChange};
use tokio::time::Instant;

use crate::error::Error;

/// How long a kernel may go on sending the data of a connection that was closed in an orderly way.
const ORPHAN: Duration = Duration::from_secs(120);

/// Longer than any order lives.
const FOR_EVER: Duration = Duration::from_secs(365 * 86_400);

/// Changes of orders that may still be made although their answer was lost.
///
/// Meanwhile another change could be made first and then be undone by the older one. Kept in memory only: the next
/// process does not know them.
#[derive(Debug, Default)]
pub(super) struct LateChanges(Mutex<HashMap<String, Late>>);

#[derive(Debug)]
struct Late {
    change: OrderChange,
    until: Instant,
}

impl LateChanges {
    /// Returns until when this change of the order is barred. The same change may be made again.
    pub(super) fn bar(&self, order_id: &str, change: &OrderChange) -> Option<Instant> {
        let mut late = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        late.retain(|_, late| late.until > now);
        late.get(order_id).filter(|late| late.change != *change).map(|late| late.until)
    }

    /// Notes that a change that ended with `error` may still be made. Returns true if no other change of the order may.
    pub(super) fn note(
        &self,
        order_id: &str,
        change: &OrderChange,
        error: &Error,
        settings: &Settings,
    ) -> bool {
        let now = Instant::now();
        let until = now.checked_add(settles_in(error, settings)).unwrap_or(now + FOR_EVER);
        let late = Late { change: change.clone(), until };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(order_id.to_owned(), late).is_none()
    }

    /// Forgets the one late change of an order, because it has been made.
    pub(super) fn made(&self, order_id: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(order_id);
    }
}

/// Returns how long a change whose answer was lost may still be made, by the rule for orders.
fn settles_in(error: &Error, settings: &Settings) -> Duration {
    let documented =
        ERRORS.iter().any(|row| Some(row.status) == error.status() && row.msg == error.message());
    let rest = match Failure::find(error).map(Failure::fate) {
        _ if documented => Duration::ZERO,
        // The connection has ended by now.
        Some(Fate::Lost { ended: Some(_) }) => settings.gateway_bound(),
        _ if error.status().is_some() => settings.gateway_bound(),
        _ => settings.gateway_bound().saturating_add(ORPHAN),
    };
    rest.saturating_add(settings.lateness_bound())
}

/// An earlier, different change of the same order may still be made.
#[derive(Debug)]
pub(super) struct EarlierChange;

impl fmt::Display for EarlierChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an earlier change of the order is in doubt, and may still be made")
    }
}

impl std::error::Error for EarlierChange {}
