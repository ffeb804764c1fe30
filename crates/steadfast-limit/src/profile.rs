use std::num::NonZeroU32;

/// What kind of counting at the gateway a zone is kept safe against.
///
/// The safer the profile, the less of the quota it can use, because every one assumes less about a gateway that
/// cannot be seen. All count a request as spent from the moment its permit is granted and age it from the moment
/// its answer is back.
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
    /// Starts as [`WindowLog`](Self::WindowLog) and learns: a 429 that the limiter's own log does not explain
    /// moves the zone one step down, to [`Universal`](Self::Universal), then [`Paced`](Self::Paced), then to
    /// tenths less of the quota down to half of it. Every minute without one moves it one step up again.
    ///
    /// What a wrong guess can cost is bounded: a request that only the log admits leaves while fewer than five are
    /// unanswered, so that a gateway which interpolates refuses five at most before the zone knows. The log is then
    /// tried again with one request, after a minute, then after ten, then once an hour.
    Adaptive {
        /// The burst of the paced steps.
        burst: NonZeroU32,
    },
}
