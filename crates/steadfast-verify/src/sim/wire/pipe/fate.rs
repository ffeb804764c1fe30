use std::{io, time::Duration};

use crate::sim::{
    axes::{Axes, Axis},
    chooser::{Chooser, Site},
    wire::{
        pipe::sim_io::{Budget, Edit, Outage, Pace, SimIo},
        weather::{RATES, mixture},
    },
};

/// The fate of one connection, as seen by its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Whole,
    /// No connection is made.
    Refused,
    /// It is reset after this many bytes of requests.
    RequestCut(usize),
    /// It is reset before this byte of the answers.
    AnswerCut(usize),
    /// The answers end at this byte as if complete; bytes sent afterwards still arrive.
    AnswerEnds(usize),
    /// The server sends nothing more after this time, even in the middle of an exchange.
    HalfClosed(Duration),
    /// A byte of the answers is replaced by one that no answer contains. An undetectable change would be another
    /// order's number, and checksums prevent such changes.
    Corrupted(usize),
    /// The answers come in pieces of this many bytes, with a pause before each.
    Slow(usize),
    /// Nothing comes through for some time, starting with the bytes written beyond this number.
    Outage(usize, Duration),
}

/// The weight of each fate in one seed, in the order of [`Fate`].
#[derive(Debug)]
pub(super) struct Fates(Vec<u32>);

/// All fates of a connection; 0 is none.
pub(crate) const NAMES: [&str; 9] = [
    "",
    "pipe.refused",
    "pipe.request-cut",
    "pipe.answer-cut",
    "pipe.answer-ends",
    "pipe.half-closed",
    "pipe.corrupted",
    "pipe.slow",
    OUTAGE,
];
/// Bytes that a kernel holds back in an outage outlive the connection.
pub(crate) const OUTAGE: &str = "pipe.outage";
/// The shares of connections with a fate, in thousandths, and the weights of seeds with each share.
const SHARES: [u32; 5] = [0, 50, 300, 800, 1_000];
const SHARE_WEIGHTS: [u32; 5] = [10, 25, 40, 20, 5];
/// The fate strikes within this many bytes: inside the first exchange, after a few of them, or in a long list.
const WITHIN: [u32; 3] = [300, 1_200, 8_000];
/// The longest time before a server says no more, in milliseconds.
const HALF_CLOSED_WITHIN: u32 = 5_000;
const PAUSE: Duration = Duration::from_millis(20);
/// The shortest outage, and how much longer it may be, in milliseconds: a kernel tries for about two minutes.
const SHORTEST_OUTAGE: u32 = 20_000;
const LONGER_OUTAGE: u32 = 100_000;

impl Fates {
    /// Returns the fates of a seed: its own subset, each at its own rate.
    pub(super) fn of(chooser: &Chooser, axes: Axes) -> Self {
        let is_drawn = |name: &str| !name.is_empty() && (name != OUTAGE || axes.has(Axis::Orphans));
        let rate = |index| RATES[chooser.choose(Site::new("swarm.pipe").of(index), 8) as usize];
        let mut rates: Vec<u32> =
            (0..).zip(NAMES).map(|(index, name)| if is_drawn(name) { rate(index) } else { 0 }).collect();
        if axes.has(Axis::Orphans) {
            // It needs an order, a long outage and a client that waits. So where it is possible it is made frequent.
            rates[8] = rates[8].max(80);
        }
        let share = SHARES[chooser.weigh(Site::new("swarm.pipe-share"), &SHARE_WEIGHTS) as usize];
        Self(mixture(&[(&rates, share)]))
    }

    pub(super) fn of_connection(&self, chooser: &Chooser, number: u64) -> Fate {
        let site = |what| Site::new(what).of(number);
        let bytes = || {
            let within = WITHIN[chooser.choose(site("pipe.within"), 3) as usize];
            chooser.choose(site("pipe.bytes"), within) as usize
        };
        match chooser.weigh(site("pipe.fault"), &self.0) {
            1 => Fate::Refused,
            2 => Fate::RequestCut(bytes()),
            3 => Fate::AnswerCut(bytes()),
            4 => Fate::AnswerEnds(bytes()),
            5 => {
                let after = chooser.choose(site("pipe.half-closed"), HALF_CLOSED_WITHIN);
                Fate::HalfClosed(Duration::from_millis(u64::from(after)))
            }
            6 => Fate::Corrupted(bytes()),
            7 => Fate::Slow(1 + bytes()),
            8 => {
                let longer = chooser.choose(site("pipe.outage"), LONGER_OUTAGE);
                Fate::Outage(bytes(), Duration::from_millis(u64::from(SHORTEST_OUTAGE + longer)))
            }
            _ => Fate::Whole,
        }
    }
}

impl Fate {
    pub(super) fn name(self) -> &'static str {
        let index = match self {
            Self::Whole => 0,
            Self::Refused => 1,
            Self::RequestCut(_) => 2,
            Self::AnswerCut(_) => 3,
            Self::AnswerEnds(_) => 4,
            Self::HalfClosed(_) => 5,
            Self::Corrupted(_) => 6,
            Self::Slow(_) => 7,
            Self::Outage(..) => 8,
        };
        NAMES[index]
    }

    pub(super) fn befall(self, client: &mut SimIo) -> io::Result<()> {
        match self {
            Self::Whole => {}
            Self::Refused => return Err(io::ErrorKind::ConnectionRefused.into()),
            Self::RequestCut(at) => client.writes(Budget::reset_after(at)),
            Self::AnswerCut(at) => client.reads(Budget::reset_after(at)),
            Self::AnswerEnds(at) => client.reads(Budget::end_after(at)),
            Self::HalfClosed(after) => client.ends_after(after),
            Self::Corrupted(at) => client.edits(Edit { at, to: 0 }),
            Self::Slow(bytes) => client.paces(Pace { bytes, pause: PAUSE }),
            Self::Outage(from, lasts) => client.meets(Outage::from(from, lasts)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_fate_is_met_and_none_on_an_empty_tape() {
        let mut met = BTreeSet::new();
        for seed in 0..40 {
            let chooser = Chooser::rng(seed);
            let fates = Fates::of(&chooser, Axes::ALL);
            met.extend((1..20).map(|number| fates.of_connection(&chooser, number).name()));
        }
        assert_eq!(met, NAMES.into_iter().collect());
        let chooser = Chooser::tape(crate::sim::chooser::Tape::default());
        assert_eq!(Fates::of(&chooser, Axes::ALL).of_connection(&chooser, 1), Fate::Whole);
    }

    #[test]
    fn an_axis_that_is_off_removes_only_its_outage() {
        for seed in 0..200 {
            let chooser = Chooser::rng(seed);
            let (fates, all) = (Fates::of(&chooser, Axes::NONE), Fates::of(&chooser, Axes::ALL));
            assert_eq!(fates.0[8], 0);
            assert!(all.0[8] > 0 || all.0 == fates.0);
        }
    }
}
