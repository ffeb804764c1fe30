use std::{fmt, time::Duration};

use crate::sim::network::{MS, Nanos, Network, S};

/// The requests of a client, and other events during a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Load {
    /// Requests are always waiting.
    Saturated,
    /// Up to 16 at once, every second on average.
    Bursty,
    /// Nothing for 1 to 125 s, then up to three windows at once.
    IdleBurst,
    /// 30 at once, and nothing more.
    Thirty,
    /// Saturated, and the process restarts about every minute.
    Restart(Memory),
    /// Saturated, and the gateway counts requests up to [`LAG`] after they came.
    Late(Settle),
    /// Saturated, and the gateway counts requests up to [`AFTER_ANSWER`] after they were answered.
    AfterAnswer,
    /// Saturated, and after a minute the gateway admits one request a second.
    Lowered,
    /// Saturated and spread: another program spends the quota of a second about once a minute, and answers
    /// are lost. 429s are [excused](EXCUSED) for a while after the other program's requests.
    Spread(Counted),
    /// Polls that never pause and a cancel every five seconds on average.
    Cancels(Storm),
    /// Polls and verifications that never pause, and up to 20 cancels at once every minute or so.
    CancelBursts,
}

/// A new process's knowledge of its predecessor's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Memory {
    /// The stamps.
    Kept,
    /// Nothing.
    Lost,
}

/// Whether the limiter was told that the gateway counts late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Settle {
    /// Yes, with the maximum.
    Set,
    /// No.
    Unset,
}

/// When the gateway counts a request whose answer is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Counted {
    /// When it arrives.
    AtOnce,
    /// At the last possible instant.
    Late,
}

/// Events beside polls and cancels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Storm {
    /// Nothing.
    None,
    /// Verifications never pause either.
    Verification,
    /// And another program spends the quota of a second once a minute, which causes unavoidable 429s.
    Freeze,
    /// The same, and those 429s ask everyone but cancels to wait for a [minute](TOLD).
    Told,
    /// And one answer in 30 is lost to a reset.
    Resets,
}

/// How late a gateway counts at most in [`Load::Late`].
pub(super) const LAG: Nanos = 250 * MS;

/// How long after its answer a gateway counts a request at most in [`Load::AfterAnswer`].
pub(super) const AFTER_ANSWER: Nanos = 100 * MS;

/// How long requests other than cancels are asked to wait in [`Storm::Told`].
pub(super) const TOLD: Duration = Duration::from_secs(60);

/// For how long another program's requests excuse 429s in [`Load::Spread`]: two windows, and a second for those that
/// were on their way.
pub(super) const EXCUSED: Nanos = 3 * S;

/// When limits are lowered in [`Load::Lowered`].
pub(super) const LOWERED_AT: Nanos = 60 * S;

/// The average time between two cancels: 12 a minute.
pub(super) const BETWEEN_CANCELS: Nanos = 5 * S;

impl Load {
    /// The loads that every client meets at every gateway.
    pub(super) const PLAIN: [Self; 3] = [Self::Saturated, Self::Bursty, Self::IdleBurst];

    /// True if a limiter that keeps the gateway's limits can avoid every 429.
    pub(super) fn can_be_kept(self, network: Network) -> bool {
        match self {
            Self::Saturated | Self::Bursty | Self::IdleBurst | Self::Thirty => true,
            Self::Restart(Memory::Kept) | Self::Late(Settle::Set) | Self::Spread(_) => true,
            // Lost answers hold cancels back for a window only, but late ones for three more seconds, and the gateway
            // may still count the request.
            Self::Cancels(Storm::None | Storm::Verification) | Self::CancelBursts => network != Network::Bad,
            Self::Restart(Memory::Lost)
            | Self::Late(Settle::Unset)
            | Self::AfterAnswer
            | Self::Lowered
            | Self::Cancels(Storm::Freeze | Storm::Told | Storm::Resets) => false,
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Saturated => "saturated",
            Self::Bursty => "bursty",
            Self::IdleBurst => "idle+burst",
            Self::Thirty => "30 at once",
            Self::Restart(Memory::Kept) => "restart, stamps kept",
            Self::Restart(Memory::Lost) => "restart, stamps lost",
            Self::Late(Settle::Set) => "counted late, settle set",
            Self::Late(Settle::Unset) => "counted late",
            Self::AfterAnswer => "counted after the answer",
            Self::Lowered => "limits lowered",
            Self::Spread(Counted::AtOnce) => "spread, losses counted at once",
            Self::Spread(Counted::Late) => "spread, losses counted late",
            Self::Cancels(Storm::None) => "polls, cancels",
            Self::Cancels(Storm::Verification) => "polls, storm, cancels",
            Self::Cancels(Storm::Freeze) => "polls, storm, 429s, cancels",
            Self::Cancels(Storm::Told) => "polls, storm, 429s that ask to wait, cancels",
            Self::Cancels(Storm::Resets) => "polls, storm, resets, cancels",
            Self::CancelBursts => "polls, storm, cancel bursts",
        })
    }
}
