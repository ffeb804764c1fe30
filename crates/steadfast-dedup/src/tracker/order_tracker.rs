use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, LazyLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use steadfast_call::ext;
use tokio::sync::broadcast;

use self::recording::Journaled;
use crate::{
    protocol::order_event::OrderEvent,
    settings::Settings,
    tracker::{account::Account, halt::Halt, sync::Mutex},
};

mod halting;
mod inquiry;
mod recording;

/// Events that wait for a slow listener; the oldest are dropped first.
const EVENTS: usize = 1_024;

/// Holds all that is known of orders, account by account.
///
/// The two layers of one stack are made from one tracker: [`DedupLayer`](crate::DedupLayer) asks it,
/// [`SendGuardLayer`](crate::SendGuardLayer) writes to it.
///
/// # Clone
///
/// Clones are the same tracker.
#[derive(Clone)]
pub struct OrderTracker {
    shared: Arc<Shared>,
}

/// A reference to a [`OrderTracker`] that does not keep it alive.
///
/// A tracker reads the order list and so holds the stack that contains its layers. A part of that stack that needs to
/// know whether orders are in doubt, such as a token source, keeps this instead.
///
/// # Clone
///
/// Clones refer to the same tracker.
///
/// # Example
///
/// ```
/// use steadfast_dedup::OrderTracker;
///
/// let tracker = OrderTracker::default();
/// let seen_from_within = tracker.downgrade();
/// assert_eq!(seen_from_within.in_doubt(), tracker.in_doubt());
/// ```
#[derive(Clone)]
pub struct WeakOrderTracker {
    shared: Weak<Shared>,
}

struct Shared {
    settings: Arc<Settings>,
    accounts: Mutex<HashMap<ext::Account, Arc<Account>>>,
    guarded: AtomicBool,
    halt: Arc<Halt>,
    events: broadcast::Sender<OrderEvent>,
    journaled: Option<Journaled>,
}

// No handle is left to ask or to be told.
impl Drop for Shared {
    fn drop(&mut self) {
        for account in self.accounts.get_mut().values() {
            account.lose_handles();
        }
    }
}

impl OrderTracker {
    /// Returns an empty tracker.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self::with(settings, HashMap::new(), None, broadcast::channel(EVENTS).0, Arc::default())
    }

    /// Returns its settings, the same for all accounts.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// Returns a reference to the tracker that does not keep it alive.
    #[must_use]
    pub fn downgrade(&self) -> WeakOrderTracker {
        WeakOrderTracker { shared: Arc::downgrade(&self.shared) }
    }

    /// True if the tracker writes a journal.
    #[must_use]
    pub fn is_journaled(&self) -> bool {
        self.shared.journaled.is_some()
    }

    /// Returns how many orders are on the wire now, in all accounts: sent, and not answered yet.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.accounts().iter().map(|account| account.in_flight()).sum()
    }

    /// Returns how many orders are looked for now, in all accounts, without those on the wire and unresolved ones.
    #[must_use]
    pub fn in_doubt(&self) -> usize {
        self.accounts().iter().map(|account| account.in_doubt()).sum()
    }

    /// Returns a receiver of order events from now on, beyond what callers are told.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<OrderEvent> {
        self.shared.events.subscribe()
    }

    /// Waits until no order is in flight or in doubt and no call with an order is open, then reads once more for orders
    /// that appeared late.
    ///
    /// A call that was polled once is open until it returns or is dropped: its order may still leave, or leave again.
    /// [Halt](Self::halt) first to end those that wait. A call that is kept, and not polled for 10 s of the wait, ends if
    /// its order has not left, and otherwise goes on without its caller. Every order in doubt is decided within the
    /// verification budget; new orders are still accepted. After a refusal (401, 429) the last read waits until its order
    /// cannot be late any more: two seconds after the lateness bound.
    /// If that read brings no list, [`RefusalUnconfirmed`](crate::OrderEvent::RefusalUnconfirmed) names the refusals
    /// without confirmation. After a rejection it waits until the lateness bound has passed, and is repeated for
    /// 5 s if it brings no list. For an order that was found beside equal ones it waits until its own could not be late any
    /// more, too: at most 47 s after the order was lost. Orders of an earlier process stay in doubt if no request has shown
    /// the path to the list since.
    ///
    /// While an acknowledged order is not listed, the list is read again, every 5 s or more often, until it shows or
    /// [contradicts](crate::OrderEvent::AckNotListed) the order: within the lateness bound plus 3 s. Reads that fail
    /// are repeated, and none begins later than the lateness bound plus 5 s, except a second one after a list that
    /// lacks the order. An order that is contradicted is searched for before this returns. If no list has shown or
    /// contradicted it by then, [`AckUnconfirmed`](crate::OrderEvent::AckUnconfirmed) names it.
    ///
    /// With a journal, this returns once the journal has written everything; a disk that hangs holds it up.
    ///
    /// After that, late orders are still watched for, as long as a clone of the tracker or a service made of it
    /// exists. When the last of them is dropped, doubts are still decided; then no task is left, and
    /// [`events`](Self::events) ends.
    pub async fn shutdown(&self) {
        let accounts = self.accounts();
        for account in &accounts {
            account.begin_last_look().await;
        }
        for account in &accounts {
            account.end_last_look().await;
        }
        self.flush().await;
    }

    pub(crate) fn account(&self, name: Option<&ext::Account>) -> Arc<Account> {
        // A request without an account belongs to the unnamed one.
        static UNNAMED: LazyLock<ext::Account> = LazyLock::new(ext::Account::default);
        let name = name.unwrap_or(&UNNAMED);
        let mut accounts = self.shared.accounts.lock();
        if let Some(account) = accounts.get(name) {
            return account.clone();
        }
        let Shared { settings, halt, events, .. } = &*self.shared;
        let mut account = Account::new(name.clone(), settings.clone(), halt.clone(), events.clone());
        if let Some(written) = &self.shared.journaled {
            account.replay(written.recorder(name), []);
        }
        let account = Arc::new(account);
        accounts.insert(name.clone(), account.clone());
        account
    }

    pub(crate) fn set_guarded(&self) {
        self.shared.guarded.store(true, Ordering::Release);
    }

    pub(crate) fn is_guarded(&self) -> bool {
        self.shared.guarded.load(Ordering::Acquire)
    }

    fn accounts(&self) -> Vec<Arc<Account>> {
        self.shared.accounts.lock().values().cloned().collect()
    }
}

impl WeakOrderTracker {
    /// Returns how many orders are in doubt now, in all accounts; 0 if the tracker is gone.
    #[must_use]
    pub fn in_doubt(&self) -> usize {
        self.shared.upgrade().map_or(0, |shared| OrderTracker { shared }.in_doubt())
    }
}

impl Default for OrderTracker {
    fn default() -> Self {
        Self::new(Settings::default())
    }
}

impl fmt::Debug for OrderTracker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrderTracker").field("in_doubt", &self.in_doubt()).finish_non_exhaustive()
    }
}

impl fmt::Debug for WeakOrderTracker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakOrderTracker").field("in_doubt", &self.in_doubt()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use steadfast_call::{Outcome, Resend};
    use steadfast_spec::{Form, OrderRequest};

    use super::*;
    use crate::{numbers::Session, protocol::event::Answer, tracker::account::calls::Opening};

    const FORM: &[u8] = b"symId=S&qty=1&side=buy&type=limit&limitPrice=5&product=delivery&validity=day";

    #[tokio::test(start_paused = true)]
    async fn a_weak_tracker_sees_doubt_and_keeps_nothing_alive() {
        let tracker = OrderTracker::default();
        let weak = tracker.downgrade();
        assert_eq!(weak.in_doubt(), 0);
        let account = tracker.account(None);
        let order = OrderRequest::from_fields(Form::parse(FORM).unwrap().iter()).unwrap();
        let Ok(Opening::New(intent, _)) = account.open(&Arc::new(order), None) else { panic!("opened anew") };
        let attempt = account.begin(intent, Session::default()).unwrap().attempt;
        account.send(attempt, true, account.halt.epoch().unwrap(), None).unwrap();
        account.close(attempt, Outcome::Unknown { resend: Resend::Never }, Answer::Status(504));
        assert_eq!((weak.in_doubt(), tracker.in_doubt()), (1, 1));
        // No request has shown the path to the list, so there is nothing to wait for.
        let ended = tokio::time::timeout(std::time::Duration::from_secs(3_600), tracker.shutdown()).await;
        assert_eq!((ended, tracker.in_doubt()), (Ok(()), 1));
        // The account outlives the tracker here, and still does not count.
        drop(tracker);
        assert_eq!((weak.in_doubt(), account.in_doubt()), (0, 1));
    }
}
