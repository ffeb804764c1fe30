pub(crate) mod order_tag;
pub(crate) mod policy;

mod described;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use steadfast_call::{BootClock, Clocks, WallClock};
use steadfast_spec::{FieldNames, OrderType};

use crate::{
    numbers::TradingDay,
    settings::{
        order_tag::OrderTag,
        policy::{AccountMode, Baseline, KeyPolicy, ListShows, OrdersScope, ResendPolicy, VerifyOn},
    },
};

/// One lost answer must not block an order all day.
const LONGEST_TWIN_HOLD: Duration = Duration::from_secs(5);

/// Lists lag by up to a second even where all is well.
const SHORTEST_REFUSAL_LAG: Duration = Duration::from_secs(1);

/// The assumptions behind the resolution of orders in doubt, and how long it tries.
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use steadfast_dedup::{ResendPolicy, Settings};
///
/// let careful = Settings::conservative().resend(ResendPolicy::Never);
/// assert_eq!(careful.lateness_bound(), Duration::from_secs(90));
/// ```
#[derive(Clone, Debug)]
pub struct Settings {
    pub(crate) lateness: Duration,
    pub(crate) gateway_timeout: Duration,
    pub(crate) resend: ResendPolicy,
    pub(crate) resend_undocumented: bool,
    pub(crate) max_resend_age: Duration,
    pub(crate) max_resend_age_market: Duration,
    pub(crate) duplicate_hold: Duration,
    pub(crate) refusal_lag: Duration,
    pub(crate) account_mode: AccountMode,
    pub(crate) orders_scope: OrdersScope,
    pub(crate) list_shows: ListShows,
    pub(crate) key_policy: KeyPolicy,
    pub(crate) verify_on: VerifyOn,
    pub(crate) baseline: Baseline,
    pub(crate) read_spacing: Duration,
    pub(crate) tag: Option<OrderTag>,
    pub(crate) traced: bool,
    pub(crate) budget: Option<Duration>,
    pub(crate) positive_control: bool,
    pub(crate) list_body_cap: usize,
    pub(crate) field_names: FieldNames,
    pub(crate) clocks: Clocks,
    pub(crate) utc_offset: i32,
    pub(crate) refuse_disputed_day: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lateness: Duration::from_secs(15),
            gateway_timeout: Duration::from_secs(30),
            resend: ResendPolicy::AtMost(1),
            resend_undocumented: false,
            max_resend_age: Duration::from_secs(60),
            max_resend_age_market: Duration::from_secs(20),
            duplicate_hold: LONGEST_TWIN_HOLD,
            refusal_lag: SHORTEST_REFUSAL_LAG,
            account_mode: AccountMode::Exclusive,
            orders_scope: OrdersScope::Session,
            list_shows: ListShows::Everything,
            key_policy: KeyPolicy::Concurrent,
            verify_on: VerifyOn::Default,
            baseline: Baseline::Cold,
            read_spacing: Duration::from_secs(1),
            tag: None,
            traced: false,
            budget: None,
            positive_control: false,
            list_body_cap: 64 * 1024 * 1024,
            field_names: FieldNames::default(),
            clocks: Clocks::default(),
            utc_offset: 5 * 3600 + 1800,
            refuse_disputed_day: false,
        }
    }
}

impl Settings {
    /// Returns the defaults: a lateness bound of 15 s and one resend.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns settings with a lateness bound of 90 s that resend only where orders are recognised in lists.
    ///
    /// No resend happens before an acknowledged order has been recognised in a list, nor ever after one was not.
    /// (After one was listed under another instrument, nothing is sent again with any settings.) The greatest age for
    /// a resend stays at 60 s, so nothing is sent again unless [`max_resend_age`](Self::max_resend_age) is raised as
    /// well.
    #[must_use]
    pub fn conservative() -> Self {
        Self { lateness: Duration::from_secs(90), positive_control: true, ..Self::default() }
    }

    /// Returns the lateness bound, W.
    ///
    /// An order that was applied is listed at most this long after the last instant at which the gateway may have
    /// passed it on.
    #[must_use]
    pub fn lateness_bound(&self) -> Duration {
        self.lateness
    }

    /// Sets the lateness bound; 15 s by default.
    #[must_use]
    pub fn lateness(mut self, bound: Duration) -> Self {
        self.lateness = bound;
        self
    }

    /// Sets how long the gateway may work on a request after the client lost it; 30 s by default.
    #[must_use]
    pub fn gateway_timeout(mut self, timeout: Duration) -> Self {
        self.gateway_timeout = timeout;
        self
    }

    /// Sets whether absent orders are sent again; at most once by default.
    #[must_use]
    pub fn resend(mut self, policy: ResendPolicy) -> Self {
        self.resend = policy;
        self
    }

    /// Sets whether orders are withheld while the machine's clock and the service's `Date` disagree about the trading
    /// day.
    ///
    /// The error is [`OrderWithheld::DayDisputed`](crate::OrderWithheld::DayDisputed); not set by default. A process
    /// that goes on follows the service's day, and its orders are safe. But its journal then belongs to another day
    /// for every program that goes by the machine's clock. Set it for short runs that are repeated. Within ten
    /// minutes of midnight two days are no dispute.
    #[must_use]
    pub fn refuse_disputed_day(mut self, refuse: bool) -> Self {
        self.refuse_disputed_day = refuse;
        self
    }

    /// Sets whether an absent order is sent again after a 5xx that the service does not document; not by default.
    ///
    /// A documented error matches exactly one row of §7 in status and `msg`. Any other, such as a balancer's page,
    /// may come from a hop that has given up while the gateway still works on the order, for an unknown time. With
    /// this set, the gateway is assumed to work for the [gateway timeout](Self::gateway_timeout): an absence then
    /// needs a list read later than that and the lateness bound after the answer.
    #[must_use]
    pub fn resend_after_undocumented_error(mut self, allowed: bool) -> Self {
        self.resend_undocumented = allowed;
        self
    }

    /// Sets how old an order may be when it is sent again; 60 s by default.
    #[must_use]
    pub fn max_resend_age(mut self, age: Duration) -> Self {
        self.max_resend_age = age;
        self
    }

    /// Sets how old a `market` or `stopmarket` order may be when it is sent again, also after a 401 or 429; 20 s by
    /// default.
    ///
    /// An older one is withheld ([`OrderWithheld::TooOld`](crate::OrderWithheld::TooOld)).
    #[must_use]
    pub fn max_resend_age_market(mut self, age: Duration) -> Self {
        self.max_resend_age_market = age;
        self
    }

    /// Sets how long an order waits while an equal order of a dropped call is in doubt; 5 s by default and at most.
    ///
    /// It most likely repeats that one. After the wait it is [withheld](crate::OrderWithheld::TwinInDoubt).
    #[must_use]
    pub fn duplicate_hold(mut self, hold: Duration) -> Self {
        self.duplicate_hold = hold.min(LONGEST_TWIN_HOLD);
        self
    }

    /// Sets how long after a 401 or 429 the list must be read that confirms it; 1 s by default and at least, and at most
    /// the [lateness bound](Self::lateness).
    ///
    /// An order that the service refused, placed all the same and lists later than that is sent again and exists twice
    /// ([`OrderEvent::RefusedButPlaced`](crate::OrderEvent::RefusedButPlaced)). At the lateness bound, only an order that
    /// breaks that bound does.
    ///
    /// Each repeat after a 401 or 429 waits for as long, also of orders that were not placed, and so does a call that
    /// ends with a 401. By then a market order may be [too old](Self::max_resend_age_market), and the repeats may be
    /// spent: the call then ends with the refusal.
    #[must_use]
    pub fn refusal_lag(mut self, lag: Duration) -> Self {
        self.refusal_lag = lag.max(SHORTEST_REFUSAL_LAG);
        self
    }

    /// Sets whether others place orders in the account; no others by default.
    #[must_use]
    pub fn account_mode(mut self, mode: AccountMode) -> Self {
        self.account_mode = mode;
        self
    }

    /// Sets which orders belong to the order list; the session's orders by default.
    #[must_use]
    pub fn orders_scope(mut self, scope: OrdersScope) -> Self {
        self.orders_scope = scope;
        self
    }

    /// Sets which of those orders the list shows; all by default.
    #[must_use]
    pub fn list_shows(mut self, shows: ListShows) -> Self {
        self.list_shows = shows;
        self
    }

    /// Sets how orders of one instrument and side are sent; at once by default.
    #[must_use]
    pub fn key_policy(mut self, policy: KeyPolicy) -> Self {
        self.key_policy = policy;
        self
    }

    /// Sets after which lost outcomes the order list is read; after all of them by default.
    #[must_use]
    pub fn verify_on(mut self, outcomes: VerifyOn) -> Self {
        self.verify_on = outcomes;
        self
    }

    /// Sets how fresh the baseline of an order must be; one read for each day and session by default.
    #[must_use]
    pub fn baseline(mut self, freshness: Baseline) -> Self {
        self.baseline = freshness;
        self
    }

    /// Sets the shortest time between two reads that search for one account's orders; 1 s by default.
    #[must_use]
    pub fn read_spacing(mut self, spacing: Duration) -> Self {
        self.read_spacing = spacing;
        self
    }

    /// Lets every order carry a tag of its own in this field; none by default.
    ///
    /// For services that show the field in the order list, under the name that
    /// [`field_names`](Self::field_names) gives to `remarks`. A list decides nothing by tags until lists of its login
    /// session have shown the tag of an acknowledged order; from then on, an order with a tag of ours is ours in
    /// whatever form and [account](AccountMode) it is listed, and one with a stranger's tag is no reason to doubt that
    /// ours is absent. Where a list shows another text in place of a tag, orders of that session are recognised by their
    /// terms, as without a tag. [`OrderEvent::TagEcho`](crate::OrderEvent::TagEcho) reports what lists show.
    #[must_use]
    pub fn tag(mut self, tag: OrderTag) -> Self {
        self.tag = Some(tag);
        self
    }

    /// Keeps every step of every protocol, for [`OrderTracker::trace`](crate::OrderTracker::trace).
    ///
    /// For tests and post-mortems: steps are never dropped and grow with every order.
    #[must_use]
    pub fn traced(mut self) -> Self {
        self.traced = true;
        self
    }

    /// Sets how long an order is searched for; by default the gateway timeout, the lateness bound and 60 s.
    #[must_use]
    pub fn verification_budget(mut self, budget: Duration) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Sets how many bytes of an order list are held in memory; 64 MiB by default. A longer list is no evidence.
    #[must_use]
    pub fn list_body_cap(mut self, bytes: usize) -> Self {
        self.list_body_cap = bytes;
        self
    }

    /// Sets the field names of a record of the order list.
    #[must_use]
    pub fn field_names(mut self, names: FieldNames) -> Self {
        self.field_names = names;
        self
    }

    /// Returns the field names of a record of the order list, for other readers of the same list.
    #[must_use]
    pub fn record_names(&self) -> &FieldNames {
        &self.field_names
    }

    /// Sets the clock and the UTC offset in seconds for the trading day; the machine's clock at +05:30 by default.
    ///
    /// Days never go back. One ends only when the wall clock has moved as the boot clock has, or when the `Date` of
    /// an answer to an order or to a read of the order list confirms it. A clock that is set by more than ten minutes
    /// is reported ([`OrderEvent::ClockStepped`](crate::OrderEvent::ClockStepped)) and otherwise ignored until then.
    /// Within ten minutes of midnight a lost order is not sent again; for ten minutes after midnight the names of the
    /// day before still stand for the orders of that day.
    ///
    /// A new process has only the wall clock. If by that clock alone a name stands for an order of another day, its
    /// call waits until an answer's `Date` says the day, or a list has come without one. At the call's deadline, or
    /// after 30 s if it has none, the call returns as in doubt
    /// ([`Reason::EpochChanged`](crate::Reason::EpochChanged)) with nothing sent. Calling again is safe.
    #[must_use]
    pub fn trading_day(mut self, clock: WallClock, utc_offset: i32) -> Self {
        self.clocks = self.clocks.with_wall(clock);
        self.utc_offset = utc_offset;
        self
    }

    /// Sets the clock that runs on while the machine is suspended; the machine's by default.
    ///
    /// It bounds the age of an order that is sent again and the time until which an order may leave, and it carries
    /// the trading day on when the wall clock is set. Linux and Android have one. Elsewhere those two bounds go by
    /// the wall clock as well, so a clock set forward ages orders; and after a suspension of more than ten minutes
    /// the trading day does not change until an answer's `Date` confirms the wall clock.
    #[must_use]
    pub fn boot_clock(mut self, clock: BootClock) -> Self {
        self.clocks = self.clocks.with_boot(clock);
        self
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

    /// Returns the trading day that it is now by the wall clock alone.
    ///
    /// A tracker's own day follows more clocks: see [`trading_day`](Self::trading_day).
    #[must_use]
    pub fn today(&self) -> TradingDay {
        self.day_of(self.clocks.wall().now())
    }

    /// Returns the trading day at `time`.
    #[must_use]
    pub fn day_of(&self, time: SystemTime) -> TradingDay {
        TradingDay(self.local_millis(time).div_euclid(86_400_000))
    }

    /// Returns local time since 1970, in milliseconds.
    pub(crate) fn local_millis(&self, time: SystemTime) -> i64 {
        let millis = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX / 4);
        let unix = match time.duration_since(UNIX_EPOCH) {
            Ok(after) => millis(after),
            Err(before) => -millis(before.duration()),
        };
        unix.clamp(-i64::MAX / 4, i64::MAX / 4) + i64::from(self.utc_offset) * 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trading_day_turns_at_local_midnight() {
        let at = |secs: u64| {
            let clock = WallClock::new(move || UNIX_EPOCH + Duration::from_secs(secs));
            Settings::new().trading_day(clock, 19_800).today()
        };
        assert_eq!(at(0), TradingDay(0));
        assert_eq!(at(86_400 - 19_800 - 1), TradingDay(0));
        assert_eq!(at(86_400 - 19_800), TradingDay(1));
    }

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
