use std::time::Duration;

use steadfast_spec::Lane;

use crate::{Nanos, Refusal};

/// The most zones that one request may fall under.
pub(crate) const MOST_ZONES: usize = 4;

/// A zone of one [`Limiter`](crate::Limiter), by its place in the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ZoneId(pub(crate) u8);

/// What a request asks of the core.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The zones that it falls under, each with the key that it counts the request under: a hash that spreads
    /// well, such as those of [`ScopeKeys`](crate::ScopeKeys).
    pub zones: &'a [(ZoneId, u64)],
    /// The lane that it waits in.
    pub lane: Lane,
    /// The instant by which it must be granted.
    pub deadline: Option<Nanos>,
    /// True if it waits at the head of its lane, not at the tail.
    pub head_of_lane: bool,
}

/// What the core says to a request.
#[derive(Debug)]
#[must_use]
pub enum Decision {
    /// It may be sent now.
    Granted(Grant),
    /// It waits.
    Queued {
        /// Its name until it is granted, refused or cancelled.
        waiter: WaiterId,
        /// When to poll it without being woken, if ever.
        alarm: Option<Nanos>,
    },
    /// It may not be sent, and nothing was spent.
    Refused(Refusal),
}

/// A waiting request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaiterId {
    pub(crate) slot: u32,
    /// Tells the waiters of one slot apart.
    pub(crate) turn: i64,
}

impl WaiterId {
    /// A small number, unique among those that wait at the same time.
    #[must_use]
    pub fn slot(self) -> usize {
        self.slot as usize
    }
}

/// The right to send one request, spent in every zone that it falls under.
///
/// It must go back to the limiter that gave it, by exactly one of `settle`, `lose` and `refund`; one that is
/// dropped stays spent for good. It therefore cannot be copied.
#[derive(Debug)]
#[must_use = "a grant that is dropped stays spent for good"]
pub struct Grant {
    pub(crate) ledgers: LedgerSet,
    pub(crate) at: Nanos,
    /// In which of its zones the request is the try after a pause, one bit each.
    pub(crate) probes: u8,
    /// In which of its zones only the log admitted it, one bit each.
    pub(crate) tries: u8,
    pub(crate) lane: Lane,
    /// True if requests without an answer would have held back a lower lane: a 429 is then no surprise.
    pub(crate) lenient: bool,
}

impl Grant {
    /// The instant at which it was granted.
    #[must_use]
    pub fn at(&self) -> Nanos {
        self.at
    }

    /// 1 if only the log admitted it in the zone of `bit`.
    pub(crate) fn tried(&self, bit: usize) -> u16 {
        u16::from(self.tries >> bit & 1)
    }
}

/// The answer to a request, as far as its zones are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// Anything but a 429.
    Accepted,
    /// A 429: the zones stop, for as long as `Retry-After` says, if it says anything.
    TooManyRequests {
        /// The pause asked for.
        retry_after: Option<Duration>,
    },
}

/// How the answer to a request that left came to be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// The connection has just ended so that nothing more of the request can reach the service: its descriptor is closed
    /// abortively. What the gateway had not counted by then, it counts within a second or never. If it ended earlier:
    /// [`Permit::lose_ended`](crate::Permit::lose_ended).
    Reset,
    /// Nobody waits any longer, and nobody promises that the connection has ended: the operating system may go on
    /// sending what it was given, and the gateway may count it for
    /// [as long as that takes](crate::Builder::arrives_within).
    GivenUp,
}

/// The ledgers of one request, in place.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LedgerSet {
    ids: [u32; MOST_ZONES],
    len: u8,
}

impl LedgerSet {
    /// Adds `id` unless it is there; false if there is no room.
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
