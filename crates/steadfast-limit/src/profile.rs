use std::num::NonZeroU32;

/// What kind of counting at the gateway a zone is kept safe against.
///
/// The safer the profile, the less of the quota it can use, because every one assumes less about a gateway that
/// cannot be seen. All count a request as spent from the moment its permit is granted and age it from the moment
/// its answer is back.
///
/// # After a 429 that the limiter's own log does not explain
///
/// Whatever the profile, and whatever the cause (another way of counting, a limit that was lowered, somebody else on the
/// same token), a zone has one reaction:
///
/// 1. The first spreads the requests over the shortest window as [`Paced`](Self::Paced) does, at the same limit, from the
///    moment it is known. That is safe against every way of counting, so whatever is refused then, is refused because
///    the limit is lower than documented.
/// 2. Each further one within a minute halves the limit of the shortest window, down to one. Cancels are not spread and keep the
///    documented limit: getting out comes before a 429. Where fewer than four are left in a zone that several lanes share, the highest lane goes first, and polls take
///    every second slot at most.
/// 3. For every 15 seconds without one the limit is raised by one; then, for every minute, the zone goes one step back
///    towards its own profile.
///
/// [`Event::Stepped`](crate::Event::Stepped) and [`Event::Learned`](crate::Event::Learned) report it. 100 orders that wait while
/// a limit of ten a second is lowered to one are all placed within 110 seconds; after the first ten seconds two are refused
/// in a minute at most.
///
/// | a gateway that | refuses, with [`Adaptive`](Self::Adaptive) | with [`Universal`](Self::Universal) |
/// |---|---|---|
/// | interpolates between windows | 3 at first, 4 in ten minutes | none |
/// | counts up to 100 ms after its answer ([`Quota::settle`](crate::Quota::settle) is zero) | 3 in a minute | none |
/// | is a leaky bucket without a burst | what left at once but for the first, then none | the same |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Profile {
    /// Safe against every counter known: fixed windows of any phase, sliding logs, token buckets, and sliding
    /// counters that interpolate between two windows, also those that count what they reject.
    ///
    /// Sends exactly when the interpolated count of *every* phase leaves room, so nothing less strict is safe.
    #[default]
    Universal,
    /// Safe against fixed windows of any phase, sliding logs and token buckets, but not against counters that
    /// interpolate.
    WindowLog,
    /// Safe against leaky gateways that allow only a small burst, also ones as coarse as nginx's `limit_req`: at
    /// most `burst` requests back to back, the rest of the quota evenly spread. The `burst` of such a gateway's own
    /// configuration is one less: it does not count the first.
    Paced {
        /// How many requests may go out back to back; at most half of each window.
        burst: NonZeroU32,
    },
    /// Starts as [`WindowLog`](Self::WindowLog) and tries with care whether that holds.
    ///
    /// What a wrong guess can cost is bounded: a request that only the log admits leaves while fewer than three are
    /// unanswered, so that a gateway which interpolates refuses three at most before the zone knows. The log is then
    /// tried again with one request, after two minutes, then after eleven, then once an hour.
    Adaptive {
        /// The burst while requests are spread.
        burst: NonZeroU32,
    },
}
