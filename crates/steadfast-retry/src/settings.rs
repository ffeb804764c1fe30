use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    sync::{Arc, Mutex, PoisonError},
};

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};
use steadfast_call::Call;
use tokio::time::Instant;
use tower::retry::budget::Budget;

use crate::rules::{Remaining, Rules};

/// Predicts when the limiter admits a request of this call.
type PredictPermit = dyn Fn(&Call) -> Option<Instant> + Send + Sync;

/// The rules of a policy, and the sources of all that the rules are told: chance, time and a budget.
#[derive(Clone)]
pub(crate) struct Settings {
    rules: Rules,
    rng: Arc<Mutex<ChaCha8Rng>>,
    predict: Option<Arc<PredictPermit>>,
    budget: Option<Arc<dyn Budget + Send + Sync>>,
}

impl Settings {
    pub(crate) fn new(rules: Rules) -> Self {
        // The standard library seeds its hashers from the system's randomness; jitter needs no better source.
        let seed = RandomState::new().hash_one(0);
        Self { rules, rng: seeded(seed), predict: None, budget: None }
    }

    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    pub(crate) fn rules_mut(&mut self) -> &mut Rules {
        &mut self.rules
    }

    pub(crate) fn seed(&mut self, seed: u64) {
        self.rng = seeded(seed);
    }

    pub(crate) fn predict_permit<F>(&mut self, predict: F)
    where
        F: Fn(&Call) -> Option<Instant> + Send + Sync + 'static,
    {
        self.predict = Some(Arc::new(predict));
    }

    pub(crate) fn has_prediction(&self) -> bool {
        self.predict.is_some()
    }

    pub(crate) fn budget<B: Budget + Send + Sync + 'static>(&mut self, budget: B) {
        self.budget = Some(Arc::new(budget));
    }

    pub(crate) fn has_budget(&self) -> bool {
        self.budget.is_some()
    }

    /// Returns a random number.
    pub(crate) fn draw(&self) -> u64 {
        // A draw cannot panic half-way, so a poisoned generator is still usable.
        self.rng.lock().unwrap_or_else(PoisonError::into_inner).next_u64()
    }

    /// Returns the time left to a call.
    pub(crate) fn remaining(&self, call: &Call) -> Remaining {
        let now = Instant::now();
        let until = |instant: Instant| instant.saturating_duration_since(now);
        Remaining {
            deadline: call.deadline().map(|at| until(Instant::from_std(at))),
            send_by: call.send_by().map(|at| until(Instant::from_std(at))),
            permit: self.predict.as_ref().and_then(|predict| predict(call)).map(until),
        }
    }

    /// Takes a repeat out of the budget. False if the budget is spent.
    pub(crate) fn withdraw(&self) -> bool {
        self.budget.as_ref().is_none_or(|budget| budget.withdraw())
    }

    /// Adds to the budget for a call whose last result is not repeated.
    pub(crate) fn deposit(&self) {
        if let Some(budget) = &self.budget {
            budget.deposit();
        }
    }
}

fn seeded(seed: u64) -> Arc<Mutex<ChaCha8Rng>> {
    Arc::new(Mutex::new(ChaCha8Rng::seed_from_u64(seed)))
}
