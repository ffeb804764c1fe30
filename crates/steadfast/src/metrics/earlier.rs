use std::sync::{
    Arc, LazyLock,
    atomic::{AtomicU8, Ordering},
};

use metrics::Key;

use super::{
    catalog,
    keys::{count, key},
    reason::Reason,
};

/// How the last send of a call ended (zero before the first end), and whether the next one waits for its permits.
///
/// It travels in the extensions of the call's request, so that repeats are counted whichever layer makes them.
#[derive(Clone, Debug, Default)]
pub(super) struct Earlier(Arc<AtomicU8>);

impl Earlier {
    const WAITS: u8 = 1 << 7;

    /// Notes that a send begins to wait for its permits.
    pub(super) fn wait(&self) {
        self.0.fetch_or(Self::WAITS, Ordering::Relaxed);
    }

    /// Notes that a send has its permits. Returns true if it was known to wait.
    pub(super) fn admit(&self) -> bool {
        self.0.fetch_and(!Self::WAITS, Ordering::Relaxed) & Self::WAITS != 0
    }

    /// Counts a send that follows another one.
    pub(super) fn begin(&self) {
        static KEYS: LazyLock<[Key; Reason::ALL.len()]> =
            LazyLock::new(|| Reason::ALL.map(|reason| key(catalog::RETRIES, [("reason", reason.as_str())])));
        let earlier = usize::from(self.0.load(Ordering::Relaxed) & !Self::WAITS);
        if let Some(key) = earlier.checked_sub(1).and_then(|at| KEYS.get(at)) {
            count(key);
        }
    }

    pub(super) fn end(&self, reason: Reason) {
        self.0.store(reason as u8, Ordering::Relaxed);
    }
}
