use std::{collections::BTreeMap, sync::Arc, time::Duration};

use crate::numbers::IntentNo;

/// How often open calls are checked.
const CHECK_EVERY: Duration = Duration::from_secs(10);

/// How long after it was woken a call that is not polled counts as kept.
pub(crate) const POLLED_WITHIN: Duration = Duration::from_secs(5);

/// A call with an order, which runs only while its caller polls it.
pub(crate) trait PolledCall: Send + Sync {
    /// Returns the intent of the call, once it has one.
    fn intent(&self) -> Option<IntentNo>;

    /// Wakes the call's task at `now`. False if that was done [before](POLLED_WITHIN) and no poll followed.
    fn wake(&self, now: Duration) -> bool;

    /// Goes on without the caller, unless it has polled since it was woken: in a task, if an order may have left.
    ///
    /// A later poll of the caller is given the result.
    fn leave_unpolled(self: Arc<Self>);

    /// Goes on without the caller, which has dropped the call.
    fn leave_dropped(self: Arc<Self>);
}

/// A call that has opened an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opener(u64);

/// The calls of an account that have opened an order and not returned.
///
/// A caller may keep a call and stop polling it: then nothing reads the answer to its order, and nothing notices the
/// end of its send. So open calls are woken now and then, and one that its caller does not poll then goes on in a task,
/// as if it had been dropped.
#[derive(Default)]
pub(crate) struct PolledCalls {
    /// How many have opened an order; not all of them have waited for anything yet.
    open: usize,
    opened: u64,
    /// Which of them opened an order last: by its name a second one can, before the first has returned.
    openers: BTreeMap<IntentNo, Opener>,
    /// Those that wait for something.
    waiting: BTreeMap<u64, Arc<dyn PolledCall>>,
    next: u64,
    check_due: Option<Duration>,
}

impl PolledCalls {
    /// Notes that a call has opened an order.
    pub(crate) fn open(&mut self, intent: IntentNo, now: Duration) -> Opener {
        self.open += 1;
        self.opened += 1;
        let opener = Opener(self.opened);
        self.openers.insert(intent, opener);
        // Not put off by each call: that would wake the poller for each order.
        self.check_due.get_or_insert(now.saturating_add(CHECK_EVERY));
        opener
    }

    /// Notes that such a call has ended; true if no other one has opened its order since.
    pub(crate) fn end(&mut self, intent: IntentNo, opener: Opener) -> bool {
        self.open = self.open.saturating_sub(1);
        let is_last = self.openers.get(&intent) == Some(&opener);
        if is_last {
            self.openers.remove(&intent);
        }
        is_last
    }

    pub(crate) fn are_open(&self) -> bool {
        self.open > 0
    }

    /// Adds a call that waits for something; it is [removed](Self::remove) by the number that this returns.
    pub(crate) fn add(&mut self, call: Arc<dyn PolledCall>) -> u64 {
        self.next += 1;
        self.waiting.insert(self.next, call);
        self.next
    }

    /// Removes a call. To be dropped without the lock, because the call may use it.
    #[must_use]
    pub(crate) fn remove(&mut self, number: u64) -> Option<Arc<dyn PolledCall>> {
        self.waiting.remove(&number)
    }

    /// Returns the calls that wait, the oldest first.
    pub(crate) fn waiting(&self) -> Vec<Arc<dyn PolledCall>> {
        self.waiting.values().cloned().collect()
    }

    /// Returns when the next check is due.
    pub(crate) fn check_due(&self) -> Option<Duration> {
        self.check_due
    }

    /// True if a check is due at `now`; then the next one is planned.
    pub(crate) fn begin_check(&mut self, now: Duration) -> bool {
        let is_due = self.check_due.is_some_and(|due| due <= now);
        if is_due {
            self.check_due = self.are_open().then(|| now.saturating_add(CHECK_EVERY));
        }
        is_due
    }
}
