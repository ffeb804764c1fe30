use std::time::Duration;

use steadfast_spec::Lane;

use crate::{core::time::Nanos, error::Refusal};

/// The most zones that one request may fall under.
pub(crate) const MOST_ZONES: usize = 4;

/// A zone of one [`Limiter`](crate::Limiter), by its place in the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    pub deadline: Option<Nanos>,
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
    pub(crate) ledgers: LedgerSet,
    pub(crate) at: Nanos,
    /// The zones in which the request is the try after a pause, one bit each.
    pub(crate) probes: u8,
    /// The zones in which only the log admitted the request, one bit each.
    pub(crate) tries: u8,
    pub(crate) lane: Lane,
    /// True if requests without an answer would have held back a lower lane: a 429 is then expected.
    pub(crate) lenient: bool,
}

impl Grant {
    /// Returns the instant of the grant.
    #[must_use]
    pub fn at(&self) -> Nanos {
        self.at
    }

    /// Returns 1 if only the log admitted the request in the zone of `bit`, else 0.
    pub(crate) fn tried(&self, bit: usize) -> u16 {
        u16::from(self.tries >> bit & 1)
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

/// The ledgers of one request, stored inline.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LedgerSet {
    ids: [u32; MOST_ZONES],
    len: u8,
}

impl LedgerSet {
    /// Adds `id` unless it is present. False if there is no room.
    pub(crate) fn insert(&mut self, id: u32) -> bool {
        if self.iter().any(|known| known == id as usize) {
            return true;
        }
        match self.ids.get_mut(usize::from(self.len)) {
            Some(place) => *place = id,
            None => return false,
        }
        self.len += 1;
        true
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = usize> + use<> {
        let ids = self.ids;
        (0..usize::from(self.len)).map(move |place| ids[place % MOST_ZONES] as usize)
    }
}
