use std::num::NonZeroU32;

/// Which ways of counting at the gateway a zone is kept safe against.
///
/// The safer the profile, the less of the quota it can use, because it assumes less about a gateway that cannot be
/// seen. With every profile a request counts as spent from the grant of its permit, and ages from the arrival of its
/// answer.
///
/// # What it costs
///
/// A window is used again once its answers are a period old, so a round trip makes each window longer. The safer
/// profiles lose one request of each window besides:
///
/// | sustained, with answers after 0, 50 and 200 ms | [`WindowLog`](Self::WindowLog) | [`Universal`](Self::Universal) |
/// |---|---|---|
/// | 10 in a second | 10, 9.5, 8.3 | 9, 8.6, 7.5 |
/// | 400 in a minute | 400, 400, 399 | 399, 399, 398 |
///
/// [`WindowSettings::sustained`](crate::WindowSettings::sustained) says it for each zone, and
/// [`explained`](crate::explained) shows why.
///
/// # After a 429 that the limiter's own log does not explain
///
/// Every profile reacts in the same way, whatever the cause: another way of counting, a lowered limit, or another
/// user of the same token.
///
/// 1. The first such 429 spreads requests over the shortest window at once, as [`Paced`](Self::Paced) does, at the
///    same limit. That is safe against every way of counting, so a further 429 means that the limit is lower than
///    documented. A request without an answer costs one of that limit. It holds up all others only where the limit is
///    one.
/// 2. Each further one within a minute halves the limit of the shortest window, down to one. Cancels are not spread
///    and keep the documented limit until their own 429s lower it: getting out comes before a 429. If fewer than
///    four slots are left in a zone that several lanes share, the highest lane goes first, and polls take every second
///    slot at most.
/// 3. Every 15 seconds without one raise the limit by one. Then every minute without one takes the zone one step
///    back towards its own profile.
///
/// [`Event::Stepped`](crate::Event::Stepped) and [`Event::Learned`](crate::Event::Learned) report it. If a limit of
/// ten a second is lowered to one, 100 waiting orders are all placed within 110 seconds; after the first ten seconds
/// at most two requests a minute are refused.
///
/// | a gateway that | refuses, with [`Adaptive`](Self::Adaptive) | with [`Universal`](Self::Universal) |
/// |---|---|---|
/// | interpolates between windows | 3 at first, 4 in ten minutes | none |
/// | counts up to 100 ms after its answer ([`Quota::settle`](crate::Quota::settle) is zero) | 3 in a minute | none |
/// | is a leaky bucket without a burst | all but the first of those that left together; later one for each request that it counts more than a window after the send | the same |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Profile {
    /// Safe against every known counter: fixed windows of any phase, sliding logs, token buckets, and sliding
    /// counters that interpolate between two windows, also those that count rejected requests.
    ///
    /// Sends exactly when the interpolated count of *every* phase leaves room, so no less strict rule is safe.
    #[default]
    Universal,
    /// Safe against fixed windows of any phase, sliding logs and token buckets, but not against counters that
    /// interpolate.
    WindowLog,
    /// Safe against leaky gateways with a small burst, also coarse ones such as nginx's `limit_req`. At most `burst`
    /// requests go back to back; the rest of the quota is spread evenly. In such a gateway's own configuration the
    /// `burst` is one less, because it does not count the first request. A request without an answer holds up all others
    /// for as long as it may be counted.
    Paced {
        /// How many requests may go out back to back; at most half of each window.
        burst: NonZeroU32,
    },
    /// Starts as [`WindowLog`](Self::WindowLog) and tests with few requests whether that holds.
    ///
    /// The cost of a wrong guess is bounded: a request that only the log admits leaves while fewer than three are
    /// unanswered. So an interpolating gateway refuses three at most before the zone knows. The log is then tested
    /// again with one request, 2 clean minutes after the first failure, 11 after the second, 61 after each further one.
    Adaptive {
        /// The burst while requests are spread.
        burst: NonZeroU32,
    },
}
