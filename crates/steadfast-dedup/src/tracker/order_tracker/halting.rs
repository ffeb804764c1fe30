//! The kill switch.

use std::sync::Arc;

use super::OrderTracker;
use crate::{
    error::OrderWithheld,
    journal::NotOwner,
    tracker::halt::{Halt, HaltEpoch},
};

impl OrderTracker {
    /// Stops all new orders and changes of orders, in every account, until [`resume`](Self::resume).
    ///
    /// 1. When this returns, every order that left before is on record as sent. From then on none leaves, not even
    ///    one that waits in a queue, or a resend. This is decided where the transport polls the body, and costs
    ///    nothing.
    /// 2. They are refused with [`OrderWithheld::Halted`](crate::OrderWithheld::Halted), and nothing of them is sent.
    ///    An order that was asked for before the halt and has not left does not leave later either, even after a
    ///    resume.
    /// 3. Everything else goes on: cancels, reads, logins, and the search for orders in doubt. One that is found
    ///    absent is not sent again; it ends as [`Reason::NotObserved`](crate::Reason::NotObserved).
    /// 4. A call with the [name](steadfast_call::ext::IntentId) of an order that may have left joins it, and is told
    ///    what became of it.
    ///
    /// A change (`Endpoint::ModifyOrder`) is withheld like an order: it can make an order larger, or marketable. To
    /// get out of a position, cancel the open orders, or resume.
    ///
    /// # Example
    ///
    /// ```
    /// use steadfast_dedup::OrderTracker;
    ///
    /// let tracker = OrderTracker::default();
    /// tracker.halt();
    /// assert!(tracker.is_halted());
    /// tracker.resume();
    /// assert!(!tracker.is_halted());
    /// ```
    pub fn halt(&self) {
        self.shared.halt.halt();
        // A send that was let go before the switch is recorded once its account's lock is free again.
        self.accounts().iter().for_each(|account| account.pass_lock());
        tracing::warn!("orders halted");
    }

    /// Lets orders leave again that are asked for from now on. A halt of all processes that share the orders stands.
    pub fn resume(&self) {
        self.shared.halt.resume();
        tracing::warn!("orders resumed");
    }

    /// True between [`halt`](Self::halt) and [`resume`](Self::resume), and while a
    /// [journal](crate::journal::Journal::halt_turns) that processes share says so.
    #[must_use]
    pub fn is_halted(&self) -> bool {
        self.shared.halt.epoch().is_none()
    }

    /// True between [`halt`](Self::halt) and [`resume`](Self::resume) of this tracker, whatever other processes do.
    #[must_use]
    pub fn halts_itself(&self) -> bool {
        self.shared.halt.halts_itself()
    }

    /// Returns why every order is withheld now, whatever it is; `None` as long as nothing is known to withhold all of them.
    ///
    /// It is [`JournalFailed`](OrderWithheld::JournalFailed), [`JournalAhead`](OrderWithheld::JournalAhead) or
    /// [`DayDisputed`](OrderWithheld::DayDisputed): what somebody has to mend. A halt is not told, nor that another process
    /// owns the orders. A journal is found to have failed by what is written to it.
    ///
    /// # Example
    ///
    /// ```
    /// use steadfast_dedup::OrderTracker;
    ///
    /// assert!(OrderTracker::default().withholds_all().is_none());
    /// ```
    #[must_use]
    pub fn withholds_all(&self) -> Option<OrderWithheld> {
        let failed = self.shared.journaled.as_ref().and_then(|written| written.failure());
        let of_day = || self.accounts().iter().find_map(|account| account.check_day_now().err());
        failed.map(OrderWithheld::JournalFailed).or_else(of_day)
    }

    /// Returns the epoch that a call made now belongs to; `None` while everything is halted.
    pub(crate) fn epoch(&self) -> Option<HaltEpoch> {
        self.shared.halt.epoch()
    }

    /// Fails while another process may own the orders.
    pub(crate) fn owned(&self) -> Result<(), NotOwner> {
        self.shared.halt.owned()
    }

    pub(crate) fn halt_switch(&self) -> Arc<Halt> {
        self.shared.halt.clone()
    }
}
