use steadfast_call::ext;

/// A position in the sequence in which a protocol learnt things.
///
/// Safety rests on positions alone: a wall clock may jump and two instants may be equal, but positions are unique.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogicalTime(pub(crate) u64);

/// Names one order that a caller wants, within one protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IntentNo(pub u64);

/// Names one physical send of an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptNo {
    /// The order that it tries to place.
    pub intent: IntentNo,
    /// Its place among the attempts of that order, from zero.
    pub index: usize,
}

/// Names one read of the order list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadNo(pub u64);

/// The login session that a request was sent in, as far as it is known.
///
/// The specification says that the list holds *the session's* orders, so what one session does not list proves
/// nothing about another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Session(Option<u64>);

impl Session {
    /// Returns the session of a token of this generation; `None` if the generation is unknown.
    #[must_use]
    pub fn new(generation: Option<ext::TokenGeneration>) -> Self {
        Self(generation.map(|generation| generation.0))
    }

    /// Returns the session with this hash of its token, which is the same in every run of the process.
    ///
    /// The generation of a token counts within one run only; a journal needs a name that outlives it.
    #[must_use]
    pub fn hashed(hash: u64) -> Self {
        Self(Some(hash))
    }

    /// Returns the hash or generation that identifies it.
    #[must_use]
    pub fn get(self) -> Option<u64> {
        self.0
    }
}

/// A trading day, as a count of days since the first of January 1970, in the time zone of
/// [`Settings::trading_day`](crate::Settings::trading_day).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TradingDay(pub i64);
