use super::{
    Kind, Window, first_hit::FirstHit, fixed_window::FixedWindow, leaky_bucket::LeakyBucket,
    sliding_counter::SlidingCounter, sliding_log::SlidingLog, token_bucket::TokenBucket,
    whole_second::WholeSecond,
};

/// One way to count, on the gateway's own clock in nanoseconds. From call to call `now` never decreases.
pub(super) trait Algorithm {
    /// Returns whether one more request at `now` is within the limit.
    fn admits(&self, now: u64) -> bool;

    /// Returns when one more request is first within the limit if none is counted until then; `None` if the
    /// clock ends before. Called only at a `now` at which a request is not within the limit.
    fn opens(&self, now: u64) -> Option<u64>;

    /// Counts one request at `now`, whether it is within the limit or not.
    fn charge(&mut self, now: u64);
}

/// The state of any of the algorithms.
#[derive(Clone, Debug)]
pub(super) enum State {
    FixedWindow(FixedWindow),
    FirstHit(FirstHit),
    SlidingLog(SlidingLog),
    SlidingCounter(SlidingCounter),
    TokenBucket(TokenBucket),
    WholeSecond(WholeSecond),
    LeakyBucket(LeakyBucket),
}

impl State {
    pub(super) fn new(kind: Kind, window: Window) -> Self {
        match kind {
            Kind::FixedWindow { phase } => Self::FixedWindow(FixedWindow::new(window, phase)),
            Kind::FirstHit => Self::FirstHit(FirstHit::new(window)),
            Kind::SlidingLog => Self::SlidingLog(SlidingLog::new(window)),
            Kind::SlidingCounter { phase } | Kind::CountingRejects { phase } => {
                Self::SlidingCounter(SlidingCounter::new(window, phase))
            }
            Kind::TokenBucket => Self::TokenBucket(TokenBucket::new(window)),
            Kind::WholeSecond => Self::WholeSecond(WholeSecond::new(window)),
            Kind::LeakyBucket { burst } => Self::LeakyBucket(LeakyBucket::new(window, burst)),
        }
    }

    pub(super) fn algorithm(&self) -> &dyn Algorithm {
        match self {
            Self::FixedWindow(state) => state,
            Self::FirstHit(state) => state,
            Self::SlidingLog(state) => state,
            Self::SlidingCounter(state) => state,
            Self::TokenBucket(state) => state,
            Self::WholeSecond(state) => state,
            Self::LeakyBucket(state) => state,
        }
    }

    pub(super) fn algorithm_mut(&mut self) -> &mut dyn Algorithm {
        match self {
            Self::FixedWindow(state) => state,
            Self::FirstHit(state) => state,
            Self::SlidingLog(state) => state,
            Self::SlidingCounter(state) => state,
            Self::TokenBucket(state) => state,
            Self::WholeSecond(state) => state,
            Self::LeakyBucket(state) => state,
        }
    }
}
