use std::time::Duration;

use steadfast_call::Lane;

use crate::{
    core::{key_set::KeySet, time::Nanos},
    error::Refusal,
};

/// A zone of one [`Limiter`](crate::Limiter), by its place in the configuration. To another limiter it means another
/// zone or none, and calls with it may panic there, as calls with another's [`Grant`] may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZoneId(pub(crate) u8);

/// A request's question to the core.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The request's zones, each with the key under which it counts the request: a well-spread hash, such as one of
    /// [`ScopeKeys`](crate::ScopeKeys).
    pub zones: &'a [(ZoneId, u64)],
    /// The lane in which it waits.
    pub lane: Lane,
    /// The instant by which it must be granted.
    pub send_by: Option<Nanos>,
    /// True if it waits at the head of its lane instead of the tail.
    pub head_of_lane: bool,
}

/// The core's decision about a request.
#[derive(Debug)]
#[must_use]
pub enum Decision {
    /// It may be sent now.
    Granted(Grant),
    /// It waits.
    Queued {
        /// Identifies the request until it is granted, refused or cancelled.
        waiter: WaiterId,
        /// When to poll it even without being woken, if ever.
        alarm: Option<Nanos>,
    },
    /// It may not be sent, and nothing was spent.
    Refused(Refusal),
}

/// A waiting request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaiterId {
    pub(crate) slot: u32,
    /// Distinguishes successive waiters of one slot.
    pub(crate) turn: i64,
}

impl WaiterId {
    /// Returns a small number, unique among concurrent waiters.
    #[must_use]
    pub fn slot(self) -> usize {
        self.slot as usize
    }
}

/// The right to send one request, spent in every zone that it falls under.
///
/// Return it to the limiter that gave it, by exactly one of `settle`, `lose` and `refund`. A dropped grant stays
/// spent for good; therefore it cannot be copied.
#[derive(Debug)]
#[must_use = "a grant that is dropped stays spent for good"]
pub struct Grant {
    keys: KeySet,
    at: Nanos,
    /// The zones that await the answer, one bit each.
    awaited: u8,
    /// The zones in which only the log admitted the request, one bit each.
    optimistic: u8,
    lane: Lane,
    proves_nothing: bool,
}

/// The part that one key has in a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) at: Nanos,
    pub(crate) lane: Lane,
    /// True if the zone awaits the answer before it lets the next request go: the request is the probe after a pause,
    /// or a critical one soon after it.
    pub(crate) awaited: bool,
    /// True if only the log admitted the request.
    pub(crate) optimistic: bool,
}

impl Grant {
    /// Makes a grant in which no key has a part but its slot.
    pub(crate) fn new(keys: KeySet, lane: Lane, at: Nanos) -> Self {
        Self { keys, at, awaited: 0, optimistic: 0, lane, proves_nothing: false }
    }

    /// Sets the part of the key at `place` in the set.
    pub(crate) fn share_in(&mut self, place: usize, share: Share) {
        self.awaited |= u8::from(share.awaited) << place;
        self.optimistic |= u8::from(share.optimistic) << place;
    }

    /// Marks the grant as one whose refusal says nothing of other requests.
    pub(crate) fn make_unproving(&mut self) {
        self.proves_nothing = true;
    }

    /// Returns the instant of the grant.
    #[must_use]
    pub fn at(&self) -> Nanos {
        self.at
    }

    pub(crate) fn keys(&self) -> KeySet {
        self.keys
    }

    pub(crate) fn lane(&self) -> Lane {
        self.lane
    }

    /// True if a 429 to it says nothing of the limit: it passed requests without an answer, which would have held it
    /// back in a lower lane.
    pub(crate) fn proves_nothing(&self) -> bool {
        self.proves_nothing
    }

    /// Returns every key with its part.
    pub(crate) fn shares(&self) -> impl Iterator<Item = (usize, Share)> + use<> {
        let Self { keys, at, awaited, optimistic, lane, .. } = *self;
        keys.iter().enumerate().map(move |(place, id)| {
            let is_in = |bits: u8| bits >> place & 1 == 1;
            (id, Share { at, lane, awaited: is_in(awaited), optimistic: is_in(optimistic) })
        })
    }
}

/// An answer, as far as the zones are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// Anything but a 429.
    Accepted,
    /// A 429: the zones stop, for the time in `Retry-After` if it gives one.
    TooManyRequests {
        /// The pause requested by the gateway.
        retry_after: Option<Duration>,
    },
}

/// How the answer to a request that left was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// The connection has just been closed abortively, so nothing more of the request can reach the service. The
    /// gateway counts it within a second, or never. For an end in the past use
    /// [`Permit::lose_ended`](crate::Permit::lose_ended).
    Reset,
    /// The caller has stopped waiting, and the end of the connection is unknown. The operating system may go on
    /// sending what it was given, so the gateway may count the request for [as long as that
    /// takes](crate::Builder::arrives_within).
    GivenUp,
}
