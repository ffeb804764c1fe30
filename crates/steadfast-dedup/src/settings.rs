mod clocks;
mod described;
pub(crate) mod order_tag;
pub(crate) mod policy;
mod values;

use std::time::Duration;

use steadfast_call::Clocks;
use steadfast_spec::FieldNames;

use crate::settings::{
    order_tag::OrderTag,
    policy::{AccountMode, Baseline, KeyPolicy, ListShows, OrdersScope, ResendPolicy, VerifyOn},
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
}
