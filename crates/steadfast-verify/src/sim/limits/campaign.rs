use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use tokio::time::Instant;
use tower::BoxError;

use super::{play::play, row::Row, seeds, tally::Tally};
use crate::sim::network::{Nanos, S};

/// The rows to play, how long, and from which seed.
#[derive(Clone, Debug)]
pub(super) struct Campaign {
    pub(super) rows: Vec<Row>,
    pub(super) seed: u64,
    /// How long each session takes in virtual time.
    pub(super) session: Nanos,
    pub(super) until: Until,
    pub(super) threads: usize,
}

/// When a campaign ends. Rounds are played whole, so the same number of rounds gives the same figures everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    Rounds(u64),
    /// After this many sends by clients that promise something, or this much time.
    Sends(u64, Duration),
    Time(Duration),
}

/// The result of a campaign.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) rows: Vec<(Row, Tally)>,
    pub(super) rounds: u64,
    pub(super) took: Duration,
}

impl Outcome {
    /// Returns the sum over all chosen rows.
    pub(super) fn sum(&self, chosen: impl Fn(&Row) -> bool) -> Tally {
        let mut sum = Tally::default();
        let tallies = self.rows.iter().filter(|(row, _)| chosen(row)).map(|(_, tally)| tally.clone());
        tallies.for_each(|tally| sum.add(tally));
        sum
    }

    /// Returns the sends in the rows that promise no 429.
    pub(super) fn promised_sends(&self) -> u64 {
        self.rows.iter().filter(|(row, _)| row.promises_zero()).map(|(_, tally)| tally.sends).sum()
    }

    /// Returns the rows that promise no 429 but have one, or an overfull stretch.
    pub(super) fn broken(&self) -> impl Iterator<Item = &(Row, Tally)> {
        self.rows
            .iter()
            .filter(|(row, tally)| row.promises_zero() && tally.avoidable_429() + tally.overfull > 0)
    }
}

impl Campaign {
    /// How often a session is recounted independently: one in this many.
    const RECOUNTED: u64 = 32;

    /// Sessions up to this length are all recounted; the effort grows with the square of the length.
    const SHORT: Nanos = 180 * S;

    /// The peers' figures hardly change after the first sessions, so they play one round in this many.
    const PEERS: u64 = 4;

    /// Plays rounds; `progress` is called after each.
    ///
    /// # Errors
    ///
    /// The first failure of a session.
    pub(super) fn run(&self, mut progress: impl FnMut(&Outcome)) -> Result<Outcome, BoxError> {
        let start = Instant::now();
        let rows = self.rows.iter().map(|row| (*row, Tally::default())).collect();
        let mut outcome = Outcome { rows, rounds: 0, took: Duration::ZERO };
        while !self.is_over(&outcome) {
            self.round(&mut outcome)?;
            outcome.rounds += 1;
            outcome.took = start.elapsed();
            progress(&outcome);
        }
        Ok(outcome)
    }

    fn is_over(&self, outcome: &Outcome) -> bool {
        // A round that would not end in time is not begun.
        let next_ends = outcome.took + outcome.took / outcome.rounds.max(1) as u32;
        match self.until {
            Until::Rounds(rounds) => outcome.rounds >= rounds,
            Until::Sends(sends, limit) => {
                outcome.rounds > 0 && (outcome.promised_sends() >= sends || next_ends > limit)
            }
            Until::Time(limit) => outcome.rounds > 0 && next_ends > limit,
        }
    }

    fn round(&self, outcome: &mut Outcome) -> Result<(), BoxError> {
        let round = outcome.rounds;
        let due: Vec<usize> = (0..self.rows.len())
            .filter(|index| self.rows[*index].contender.is_ours() || round.is_multiple_of(Self::PEERS))
            .collect();
        let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = || {
            let mut done = Vec::new();
            while !failed.load(Ordering::Relaxed)
                && let Some(index) = due.get(next.fetch_add(1, Ordering::Relaxed))
            {
                match self.session(self.rows[*index], round) {
                    Ok(tally) => done.push((*index, tally)),
                    Err(error) => {
                        failed.store(true, Ordering::Relaxed);
                        return Err(error);
                    }
                }
            }
            Ok(done)
        };
        let mut done = Vec::new();
        thread::scope(|scope| {
            let workers: Vec<_> = (0..self.threads).map(|_| scope.spawn(work)).collect();
            for worker in workers {
                done.extend(worker.join().map_err(|_| "a session panicked")??);
            }
            Ok::<_, BoxError>(())
        })?;
        // Sums are taken in the order of the rows, whichever thread was faster.
        done.sort_by_key(|(index, _)| *index);
        for (index, tally) in done {
            outcome.rows[index].1.add(tally);
        }
        Ok(())
    }

    fn session(&self, row: Row, number: u64) -> Result<Tally, BoxError> {
        let (mut tally, gateway) = play(row, self.seed, number, self.session)?;
        let drawn = seeds::derive(self.seed, number, &row.to_string()).is_multiple_of(Self::RECOUNTED);
        if drawn || self.session <= Self::SHORT {
            tally.recounted = 1;
            tally.overfull = u64::from(gateway.overfull().is_some());
        }
        Ok(tally)
    }
}
