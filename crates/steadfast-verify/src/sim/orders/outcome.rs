use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::sim::orders::{counts::Counts, oracle::Judgement};

/// The result of a campaign.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Outcome {
    pub(crate) seeds: u64,
    pub(crate) ours: Judgement,
    pub(crate) naive: Judgement,
    pub(crate) checks_once: Judgement,
    pub(crate) attempts: u64,
    pub(crate) attempts_in_doubt: u64,
    pub(crate) requests: u64,
    /// Cancels that reached the gateway.
    pub(crate) cancels: u64,
    pub(crate) simulated: Duration,
    pub(crate) elapsed: Duration,
    pub(crate) run_twice: u64,
    /// Seeds in whose histories the invariants were checked.
    pub(crate) traced: u64,
    /// How often each fault struck our client.
    pub(crate) faults: Counts,
    /// How many records of each kind the journals held.
    pub(crate) written: Counts,
    /// Why orders of our client stayed unresolved.
    pub(crate) reasons: Counts,
    /// The seeds that broke a promise; at least the first of them is kept.
    pub(crate) failures: Vec<Failure>,
}

/// A seed that broke a promise.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) seed: u64,
    pub(crate) broken: Vec<(String, u64)>,
}

impl Failure {
    pub(crate) fn of(seed: u64, broken: Vec<(&'static str, u64)>) -> Option<Self> {
        let broken: Vec<_> = broken.into_iter().map(|(promise, count)| (promise.to_owned(), count)).collect();
        (!broken.is_empty()).then_some(Self { seed, broken })
    }
}

impl Outcome {
    pub(crate) fn add(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.ours.add(&other.ours);
        self.naive.add(&other.naive);
        self.checks_once.add(&other.checks_once);
        self.attempts += other.attempts;
        self.attempts_in_doubt += other.attempts_in_doubt;
        self.requests += other.requests;
        self.cancels += other.cancels;
        self.simulated += other.simulated;
        self.run_twice += other.run_twice;
        self.traced += other.traced;
        self.faults.merge(other.faults);
        self.reasons.merge(other.reasons);
        self.written.merge(other.written);
        self.failures.extend(other.failures);
    }
}
