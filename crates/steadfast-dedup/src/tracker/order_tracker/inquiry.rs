//! Answers questions about a tracker besides the orders themselves.

use std::sync::Arc;

use steadfast_call::ext;

use super::{OrderTracker, WeakOrderTracker};
use crate::{
    numbers::IntentNo,
    protocol::{
        resolution::Verdict,
        ruling::{InvalidRuling, Ruling},
        tally::Tally,
        trace::Step,
    },
    tracker::{account::Account, recovery::RecoveredOrder},
};

impl OrderTracker {
    /// Returns the event counts of all accounts since the process began.
    #[must_use]
    pub fn tally(&self) -> Tally {
        let mut sum = Tally::default();
        for account in self.accounts() {
            sum.add(&account.tally());
        }
        sum
    }

    /// Returns what is known of the order that a caller gave this name, in the first account that has one.
    ///
    /// `None` if there is none: it was not asked for today, or was rejected, so that its name is free.
    ///
    /// # Example
    ///
    /// ```
    /// use steadfast_call::ext::IntentId;
    /// use steadfast_dedup::OrderTracker;
    ///
    /// assert_eq!(OrderTracker::default().verdict_of(&IntentId::new("k7")), None);
    /// ```
    #[must_use]
    pub fn verdict_of(&self, name: &ext::IntentId) -> Option<Verdict> {
        self.accounts().iter().find_map(|account| account.verdict_of(name))
    }

    /// Returns the orders that ended as [`Unresolved`](crate::Unresolved), of this process and of earlier ones, while
    /// nothing has resolved them since. They are not looked for any more: a person has to, and to [rule](Self::resolve).
    ///
    /// # Example
    ///
    /// ```
    /// use steadfast_dedup::OrderTracker;
    ///
    /// assert_eq!(OrderTracker::default().unresolved(), []);
    /// ```
    #[must_use]
    pub fn unresolved(&self) -> Vec<RecoveredOrder> {
        let left = self.left_over().into_iter().filter(|(known, _)| known.is_none()).map(|(_, order)| order);
        left.chain(self.accounts().iter().flat_map(|account| account.unresolved())).collect()
    }

    /// Rules on an order that ended as [`Unresolved`](crate::Unresolved).
    ///
    /// After such an end nothing is concluded about later orders of the same instrument and side: they are placed,
    /// and one whose outcome is lost ends as unresolved too. That lasts until this call or the list resolves every
    /// such end, or until the trading day ends. The order's number is in the [`OrderEvent`](crate::OrderEvent) that
    /// reported it; the unnamed account is `None`.
    ///
    /// # Errors
    ///
    /// [`InvalidRuling`] if no such order is known, if it did not end as unresolved, or if the identifier is another
    /// order's.
    ///
    /// # Example
    ///
    /// ```
    /// use steadfast_dedup::{IntentNo, InvalidRuling, OrderTracker, Ruling};
    ///
    /// let tracker = OrderTracker::default();
    /// let ruled = tracker.resolve(None, IntentNo(7), Ruling::NotPlaced);
    /// assert_eq!(ruled, Err(InvalidRuling::UnknownIntent));
    /// ```
    pub fn resolve(
        &self,
        account: Option<&ext::Account>,
        intent: IntentNo,
        ruling: Ruling,
    ) -> Result<(), InvalidRuling> {
        self.known_account(account).ok_or(InvalidRuling::UnknownIntent)?.rule(intent, ruling)
    }

    /// Returns every step of an account's protocol so far, if the settings say [`traced`](crate::Settings::traced).
    #[must_use]
    pub fn trace(&self, account: Option<&ext::Account>) -> Vec<Step> {
        self.known_account(account).map_or_else(Vec::new, |account| account.trace())
    }

    /// Returns the account, if a request has used it yet.
    pub(crate) fn known_account(&self, name: Option<&ext::Account>) -> Option<Arc<Account>> {
        let unnamed = ext::Account::default();
        self.shared.accounts.lock().get(name.unwrap_or(&unnamed)).cloned()
    }
}

impl WeakOrderTracker {
    /// Returns the event counts of all accounts; zeros if the tracker is gone.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.shared.upgrade().map_or_else(Tally::default, |shared| OrderTracker { shared }.tally())
    }
}
