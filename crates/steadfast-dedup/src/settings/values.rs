//! The values of settings, and what follows from them.

use std::time::Duration;

use steadfast_spec::{FieldNames, OrderType};

use crate::settings::{
    SHORTEST_REFUSAL_LAG, Settings,
    policy::{AccountMode, Baseline, ListShows, OrdersScope, ResendPolicy},
};

impl Settings {
    /// Returns the lateness bound, W.
    ///
    /// An order that was applied is listed at most this long after the last instant at which the gateway may have
    /// passed it on.
    #[must_use]
    pub fn lateness_bound(&self) -> Duration {
        self.lateness
    }

    /// Returns how long the gateway may work on a request after the client lost it.
    #[must_use]
    pub fn gateway_bound(&self) -> Duration {
        self.gateway_timeout
    }

    /// Returns how long an order is searched for after its outcome was lost.
    #[must_use]
    pub fn verification_bound(&self) -> Duration {
        self.budget()
    }

    /// Returns the shortest time between two reads that search for one account's orders.
    #[must_use]
    pub fn spacing(&self) -> Duration {
        self.read_spacing
    }

    /// Returns whether others place orders in the account.
    #[must_use]
    pub fn mode(&self) -> AccountMode {
        self.account_mode
    }

    /// Returns which orders belong to the order list.
    #[must_use]
    pub fn scope(&self) -> OrdersScope {
        self.orders_scope
    }

    /// Returns which of those orders the list shows.
    #[must_use]
    pub fn shows(&self) -> ListShows {
        self.list_shows
    }

    /// Returns the field names of a record of the order list, for other readers of the same list.
    #[must_use]
    pub fn record_names(&self) -> &FieldNames {
        &self.field_names
    }

    pub(crate) fn budget(&self) -> Duration {
        self.budget.unwrap_or_else(|| {
            self.gateway_timeout.saturating_add(self.lateness).saturating_add(Duration::from_secs(60))
        })
    }

    /// Returns how long after a 401 or 429 the list is read that confirms it.
    pub(crate) fn refusal_lag_used(&self) -> Duration {
        self.refusal_lag.min(self.lateness.max(SHORTEST_REFUSAL_LAG))
    }

    pub(crate) fn max_age(&self, order_type: OrderType) -> Duration {
        match order_type {
            OrderType::Market | OrderType::StopMarket => self.max_resend_age_market,
            OrderType::Limit | OrderType::StopLimit => self.max_resend_age,
        }
    }

    /// True if a list asked for at `asked` is a fresh enough baseline for an order opened at `opened`.
    pub(crate) fn is_fresh(&self, asked: Duration, opened: Duration) -> bool {
        match self.baseline {
            Baseline::Cold => true,
            Baseline::MaxAge(age) => asked.saturating_add(age) >= opened,
            Baseline::Always => asked >= opened,
        }
    }

    pub(crate) fn max_resends(&self) -> u32 {
        match self.resend {
            ResendPolicy::Never => 0,
            ResendPolicy::AtMost(count) => count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_without_end_makes_a_budget_without_end() {
        for settings in [
            Settings::new().lateness(Duration::MAX),
            Settings::new().gateway_timeout(Duration::MAX),
            Settings::new().verification_budget(Duration::MAX),
        ] {
            assert_eq!(settings.budget(), Duration::MAX);
        }
    }

    #[test]
    fn the_lists_names_are_those_that_were_set() {
        let mut names = FieldNames::default();
        names.order_id = "nOrdNo".into();
        let settings = Settings::new().field_names(names.clone());
        assert_eq!(settings.record_names(), &names);
    }

    #[test]
    fn market_orders_age_sooner() {
        let settings = Settings::new();
        assert!(settings.max_age(OrderType::StopMarket) < settings.max_age(OrderType::StopLimit));
    }
}
