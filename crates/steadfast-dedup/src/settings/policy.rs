use std::time::Duration;

/// Whether an order that was found absent is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResendPolicy {
    /// Never, so that no assumption about lateness is needed. A repeat after a documented 401 or 429 is no resend.
    Never,
    /// At most this many times: at most one order per intent as long as no order appears later than the lateness
    /// bound.
    AtMost(u32),
}

/// Whether others place orders in the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountMode {
    /// No others: an order that looks like ours is ours.
    ///
    /// If that is false, a stranger's twin may be taken for ours, and ours is then missing. A duplicate cannot
    /// follow.
    Exclusive,
    /// Others too: an order that looks like ours is reported as a candidate and never claimed.
    Shared,
}

/// Which orders belong to the order list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrdersScope {
    /// The orders of one login session, as the specification words it (§4.5).
    Session,
    /// All orders of the account's day, whichever session placed them.
    Account,
}

/// Which of the orders that belong to the list it shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListShows {
    /// All of them, in any status, as the specification words it (§4.5).
    #[default]
    Everything,
    /// Not those of some statuses, such as rejected ones. Then an acknowledged order that is not listed contradicts
    /// nothing ([`OrderEvent::AckNotListed`](crate::OrderEvent::AckNotListed)).
    SomeStatuses,
}

/// How orders that share account, instrument and side are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyPolicy {
    /// At once. The bookkeeping is exact with any number of orders in doubt together.
    #[default]
    Concurrent,
    /// One after the other: the next leaves when the one before is answered or its doubt is decided.
    ///
    /// This is the simplest to understand. Throughput of one instrument and side falls to one order per round trip,
    /// and a lost answer delays the others, including exits, for up to the gateway timeout and the lateness bound.
    Serialize,
}

/// After which lost outcomes the order list is read.
///
/// | outcome | `Default` | `SpecMinimal` |
/// |---|---|---|
/// | 504 with the `msg` of §7 | verified, resent if absent | the same |
/// | 500, 502, 503 with the `msg` of §7 | verified, resent if absent | in doubt |
/// | reset, timeout, end of stream, over a connection that is known to have ended | verified, resent if absent | in doubt |
/// | the same, where the transport cannot promise that nothing more of the request arrives | verified, never resent | in doubt |
/// | any other 5xx (a 504, too) | verified, never resent [unless allowed](crate::Settings::resend_after_undocumented_error) | in doubt (504: as `Default`) |
/// | 400 `Internal Error occurred. Kindly try again.` | verified, resent if absent | in doubt |
/// | 200 without a readable order id; other 400s and 4xx | verified, never resent | in doubt |
///
/// *In doubt* is reported at once as [`Reason::NotVerified`](crate::Reason::NotVerified): no read is made for the
/// order, it is never sent again, and it is watched for like every order that ended without certainty. As after every
/// such end, nothing is concluded about later orders of the same instrument and side until it is found, ruled on
/// ([`OrderTracker::resolve`](crate::OrderTracker::resolve)) or the day ends. Neither choice ever takes an outcome that proves
/// nothing for one that proves something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerifyOn {
    /// After every outcome that proves nothing.
    #[default]
    Default,
    /// After a 504 alone, the one answer whose check the specification describes (§4.4).
    SpecMinimal,
}

/// How fresh the baseline of an order must be, the list that it is compared with.
///
/// A stranger's order that appeared after the last list and before the send looks new afterwards. A fresher list
/// makes that window smaller and costs reads, each of the General zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Baseline {
    /// Read once before the first order of a day or session.
    #[default]
    Cold,
    /// Read again before an order if the last complete list is older than this.
    MaxAge(Duration),
    /// Read before every order; orders that start together share one read.
    Always,
}
