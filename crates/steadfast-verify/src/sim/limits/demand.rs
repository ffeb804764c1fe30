use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use steadfast::limit::Lane;
use steadfast_spec::Zone;

use super::load::{BETWEEN_CANCELS, LOWERED_AT, Load, Memory, Storm};
use crate::sim::network::{MS, Nanos, S, law::below};

/// An event that is neither an answer nor an alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happening {
    /// This many requests are asked for at once.
    Asked { lane: Lane, count: u32 },
    /// The process ends.
    Died,
    /// A process starts.
    Started { remembers: bool },
    /// Another program with the same token sends this many requests.
    Foreign { count: u32 },
    /// The gateway becomes stricter.
    Lowered,
}

/// The requests of a session over time, drawn from its seed.
#[derive(Debug)]
pub(super) struct Demand {
    load: Load,
    /// The lane of requests that are neither cancels nor polls.
    lane: Lane,
    rng: ChaCha8Rng,
    next: Option<(Nanos, Happening)>,
    /// When another program sends next, beside the other events.
    foreign: Option<Nanos>,
}

impl Demand {
    /// How long a process is down, and how long it lives, in milliseconds.
    const DOWN: (u64, u64) = (200, 3_000);
    const ALIVE: (u64, u64) = (5_000, 90_000);

    pub(super) fn new(zone: Zone, load: Load, seed: u64) -> Self {
        let lane = if zone == Zone::PLACE_ORDER { Lane::Trading } else { Lane::Normal };
        let rng = ChaCha8Rng::seed_from_u64(seed);
        let foreign =
            matches!(load, Load::Cancels(Storm::Freeze | Storm::Told) | Load::Spread(_)).then_some(20 * S);
        let mut demand = Self { load, lane, rng, next: None, foreign };
        demand.next = match load {
            Load::Thirty => Some((0, Happening::Asked { lane, count: 30 })),
            Load::Lowered => Some((LOWERED_AT, Happening::Lowered)),
            _ => demand.after(0),
        };
        demand
    }

    /// Returns how many requests of each lane wait all the time.
    pub(super) fn endless(&self) -> Vec<(Lane, u32)> {
        match self.load {
            Load::Bursty | Load::IdleBurst | Load::Thirty => Vec::new(),
            Load::Saturated
            | Load::Restart(_)
            | Load::Late(_)
            | Load::AfterAnswer
            | Load::Lowered
            | Load::Spread(_) => vec![(self.lane, 1)],
            Load::Cancels(Storm::None) => vec![(Lane::Bulk, 16)],
            Load::Cancels(_) | Load::CancelBursts => vec![(Lane::Bulk, 16), (Lane::Verification, 4)],
        }
    }

    /// Returns when the next event happens.
    pub(super) fn at(&self) -> Nanos {
        let next = self.next.map_or(Nanos::MAX, |(at, _)| at);
        next.min(self.foreign.unwrap_or(Nanos::MAX))
    }

    /// Removes and returns the next event.
    pub(super) fn take(&mut self) -> Option<Happening> {
        if let Some(at) = self.foreign.filter(|at| self.next.is_none_or(|(next, _)| *at < next)) {
            // A second 429 within a minute would halve the limit, which leaves more room than a promise needs.
            let pause =
                if matches!(self.load, Load::Spread(_)) { (62_000, 80_000) } else { (40_000, 80_000) };
            self.foreign = Some(at + self.between(pause));
            return Some(Happening::Foreign { count: 12 });
        }
        let (at, happening) = self.next.take()?;
        self.next = match happening {
            Happening::Died => {
                let remembers = self.load == Load::Restart(Memory::Kept);
                Some((at + self.between(Self::DOWN), Happening::Started { remembers }))
            }
            _ => self.after(at),
        };
        Some(happening)
    }

    fn after(&mut self, at: Nanos) -> Option<(Nanos, Happening)> {
        let asked = |lane, count| Happening::Asked { lane, count };
        match self.load {
            Load::Saturated
            | Load::Late(_)
            | Load::AfterAnswer
            | Load::Lowered
            | Load::Spread(_)
            | Load::Thirty => None,
            Load::Bursty => {
                let gap = self.between((50, 2_000));
                Some((at + gap, asked(self.lane, 1 + self.below(16))))
            }
            Load::IdleBurst => {
                let idle = [1_200, 2_500, 7_000, 31_000, 61_000, 125_000];
                let about = idle[self.below(6) as usize];
                let gap = self.between((about * 9 / 10, about * 11 / 10));
                let count = if self.below(4) == 0 { 450 } else { 1 + self.below(30) };
                Some((at + gap, asked(self.lane, count)))
            }
            Load::Restart(_) => Some((at + self.between(Self::ALIVE), Happening::Died)),
            Load::Cancels(_) => Some((at + self.exponential(BETWEEN_CANCELS), asked(Lane::Critical, 1))),
            Load::CancelBursts => {
                Some((at + self.between((62_000, 97_000)), asked(Lane::Critical, 1 + self.below(20))))
            }
        }
    }

    /// Draws a time between these, in milliseconds.
    fn between(&mut self, (least, most): (u64, u64)) -> Nanos {
        least * MS + below(&mut self.rng, (most - least) * MS + 1)
    }

    fn below(&mut self, n: u64) -> u32 {
        below(&mut self.rng, n) as u32
    }

    /// Draws the wait for the next event of a Poisson process, to a thousandth of its mean, by throwing a die with
    /// 1,000 faces until it shows a one. Logarithms would differ in their last bits between machines.
    fn exponential(&mut self, mean: Nanos) -> Nanos {
        let mut throws = 1;
        while below(&mut self.rng, 1_000) > 0 {
            throws += 1;
        }
        let within = below(&mut self.rng, mean / 1_000);
        (throws - 1) * (mean / 1_000) + within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn happenings(load: Load, until: Nanos) -> Vec<(Nanos, Happening)> {
        let mut demand = Demand::new(Zone::GENERAL, load, 3);
        std::iter::from_fn(|| {
            let at = demand.at();
            (at < until).then(|| demand.take().map(|happening| (at, happening))).flatten()
        })
        .collect()
    }

    #[test]
    fn twelve_cancels_come_in_a_minute_on_average() {
        let hours = 2;
        let cancels = happenings(Load::Cancels(Storm::None), hours * 3_600 * S).len() as u64;
        assert!((1_300..1_580).contains(&cancels), "{cancels}");
    }

    #[test]
    fn a_process_that_dies_is_started_again() {
        let all = happenings(Load::Restart(Memory::Kept), 3_600 * S);
        assert!(all.len() > 100);
        for pair in all.chunks_exact(2) {
            assert_eq!(pair[0].1, Happening::Died);
            assert_eq!(pair[1].1, Happening::Started { remembers: true });
        }
    }

    #[test]
    fn another_program_comes_beside_the_cancels() {
        let all = happenings(Load::Cancels(Storm::Freeze), 3_600 * S);
        let foreign =
            all.iter().filter(|(_, happening)| matches!(happening, Happening::Foreign { .. })).count();
        assert!((50..70).contains(&foreign), "{foreign}");
        assert!(all.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    }
}
