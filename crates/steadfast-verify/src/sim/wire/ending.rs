use std::sync::OnceLock;

use steadfast::{
    BoxError,
    call::{Failure, Fate, ext},
};
use tokio::time::Instant;

use crate::sim::{
    axes::{Axes, Axis},
    chooser::{Chooser, Site},
    wire::Broken,
};

/// How a client's connections end when it gives up on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Abortively, as with the product's own transport: bytes that were written but not sent never arrive.
    #[default]
    Abortive,
    /// Gracefully, or elsewhere: written bytes may arrive for two more minutes, and the transport does not claim
    /// otherwise.
    Unknown,
    /// Gracefully, but the transport claims that nothing arrives afterwards.
    Claimed,
}

impl Ending {
    /// Returns the ending of a seed.
    pub(super) fn of(chooser: &Chooser, axes: Axes) -> Self {
        match chooser.weigh(Site::new("transport.ending"), &[70, 30]) {
            1 if axes.has(Axis::Orphans) => Self::Unknown,
            _ => Self::Abortive,
        }
    }

    /// Makes it wrong: if the transport claims that nothing arrives afterwards, it does.
    pub(crate) fn orderly(self) -> Self {
        if self == Self::Abortive { Self::Claimed } else { self }
    }

    /// True if nothing arrives after the end.
    pub(crate) fn is_abortive(self) -> bool {
        self == Self::Abortive
    }

    /// True if the transport claims that.
    pub(crate) fn is_promised(self) -> bool {
        self != Self::Unknown
    }
}

/// The connection of one send over a wire without bytes.
#[derive(Debug, Default)]
pub(super) struct Line {
    ending: Ending,
    ended: OnceLock<Instant>,
}

impl Line {
    pub(super) fn new(ending: Ending) -> Self {
        Self { ending, ended: OnceLock::new() }
    }

    /// True if a request that has not arrived yet never will.
    pub(super) fn is_cut(&self) -> bool {
        self.ending.is_abortive() && self.ended.get().is_some()
    }

    /// Returns the error that the product's own transport makes of it.
    pub(super) fn failed(&self, broken: Broken) -> BoxError {
        let fate = match broken {
            Broken::Refused => Fate::NeverLeft,
            Broken::Withheld | Broken::Reset | Broken::MidBody => {
                Fate::Lost { ended: ext::Connection::abort(self) }
            }
        };
        Failure::new(fate, broken).into()
    }
}

#[expect(
    clippy::disallowed_types,
    reason = "the trait has the standard library's; this reads no clock but tokio's"
)]
impl ext::Connection for Line {
    fn abort(&self) -> Option<std::time::Instant> {
        let ended = *self.ended.get_or_init(Instant::now);
        self.ending.is_promised().then(|| ended.into_std())
    }
}
