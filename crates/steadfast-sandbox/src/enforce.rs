//! Counts requests as a gateway does, by any of eight rules.
//!
//! The spec gives limits and zones but no algorithm (§8): it does not say where a window begins, whether it
//! slides, or whether a rejected request counts. Here each reading is a state machine of its own. An
//! [`Enforcer`] is one [`Window`] counted by one [`Kind`] for one scope (a token, a key, an address); a request
//! that falls under several is put to all of them at once by [`decide`].
//!
//! The machines are pure: they take the time and answer, and hold no clock, lock or randomness. All arithmetic
//! is in integers, nothing is rounded but what the modelled gateway rounds, and no time or limit makes them
//! panic. They share nothing with the client's limiter, which is tested against them.
//!
//! # What each kind admits
//!
//! `N` requests in `T`. The last column is the most that any half-open interval of length `T` can hold; the
//! tests reach each of them.
//!
//! | name | counts | in any `T` |
//! |---|---|---|
//! | `fixed` | `[phase + k·T, phase + (k + 1)·T)` | 2N |
//! | `first-hit` | `[t, t + T)` from the first request after the former such window | 2N − 1 |
//! | `sliding-log` | `(now − T, now]` | N |
//! | `sliding-counter` | the fixed window, and the part of the former one that the last `T` cover | 2N − 1 |
//! | `counting-rejects` | the same, rejected requests included | 2N − 1 |
//! | `token-bucket` | a bucket of N, refilled at N/T | 2N − 1 |
//! | `whole-second` | the whole second, minute, … of the wall clock | 2N |
//! | `leaky-bucket` | nginx's `limit_req` with burst b and `nodelay`, on a millisecond grid | N + b + 1 |
//!
//! # Example
//!
//! The general zone of §8 has two windows, and a request needs room in both.
//!
//! ```
//! use std::{num::NonZeroU32, time::Duration};
//! use steadfast_sandbox::enforce::{Enforcer, Kind, Window, decide};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let kind: Kind = "fixed:250ms".parse()?;
//! let mut second = Enforcer::new(kind, Window::new(10, Duration::from_secs(1))?);
//! let mut minute = Enforcer::new(Kind::SlidingLog, Window::new(400, Duration::from_secs(60))?);
//!
//! let now = Duration::from_millis(100);
//! for _ in 0..10 {
//!     assert!(decide(&mut [&mut second, &mut minute], now).is_ok());
//! }
//! let refusal = decide(&mut [&mut second, &mut minute], now).unwrap_err();
//! assert_eq!(refusal.window, 0);
//! assert_eq!(refusal.retry_after, Duration::from_millis(150));
//! # Ok(())
//! # }
//! ```
//!
//! # What is not here
//!
//! Jitter and late accounting are the caller's: it decides at which instant a request is accounted. So is the
//! choice of the enforcers that a request falls under.

mod algorithm;
mod clock;
mod decision;
mod first_hit;
mod fixed_window;
mod kind;
mod leaky_bucket;
mod sliding_counter;
mod sliding_log;
mod token_bucket;
mod whole_second;
mod window;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod recount;
#[cfg(test)]
mod scenario;
#[cfg(test)]
mod trace;

use std::time::Duration;

use self::algorithm::{Algorithm, State};

pub use self::{
    clock::GatewayClock,
    decision::{Refusal, decide},
    kind::{InvalidKind, Kind},
    window::{InvalidWindow, Window},
};

/// Counts the requests of one scope in one window, by one rule.
///
/// Times are durations since an instant that the caller chooses once. Time never goes back: an arrival before
/// the latest counted one is taken to come at that one's instant.
///
/// Asking and counting are apart, so that several enforcers can decide as one: ask all with [`admits`], then
/// tell all either [`commit`] or [`reject`]. [`decide`] does just that.
///
/// # Clone
///
/// A clone counts on its own from the state it was made in.
///
/// [`admits`]: Enforcer::admits
/// [`commit`]: Enforcer::commit
/// [`reject`]: Enforcer::reject
#[derive(Clone, Debug)]
pub struct Enforcer {
    kind: Kind,
    window: Window,
    clock: GatewayClock,
    rejects: Rejects,
    /// The gateway's clock at the latest counted request.
    latest: u64,
    state: State,
}

impl Enforcer {
    /// An enforcer that has seen no request.
    #[must_use]
    pub fn new(kind: Kind, window: Window) -> Self {
        let rejects = match kind {
            Kind::CountingRejects { .. } => Rejects::Counted,
            _ => Rejects::Free,
        };
        Self { kind, window, clock: GatewayClock::new(), rejects, latest: 0, state: State::new(kind, window) }
    }

    /// Makes rejected requests use up quota as admitted ones do.
    ///
    /// A window then counts past its limit, and a bucket goes into debt.
    #[must_use]
    pub const fn counting_rejects(mut self) -> Self {
        self.rejects = Rejects::Counted;
        self
    }

    /// Sets the clock that the gateway counts by. By default it is the caller's own time.
    #[must_use]
    pub const fn clock(mut self, clock: GatewayClock) -> Self {
        self.clock = clock;
        self
    }

    /// The rule that is counted by.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The limit and the period that are enforced.
    #[must_use]
    pub const fn window(&self) -> Window {
        self.window
    }

    /// Whether one more request at `now` would be within the limit. Changes nothing.
    #[must_use]
    pub fn admits(&self, now: Duration) -> bool {
        self.state.algorithm().admits(self.reading(now))
    }

    /// Counts a request that the gateway admitted at `now`.
    ///
    /// It is counted even if it does not fit, as by a gateway that accounts late.
    pub fn commit(&mut self, now: Duration) {
        self.latest = self.reading(now);
        self.state.algorithm_mut().charge(self.latest);
    }

    /// Takes note of a request that the gateway rejected at `now`, on account of this window or another.
    ///
    /// It is counted by [`Kind::CountingRejects`] and after [`counting_rejects`](Self::counting_rejects), else
    /// nothing changes.
    pub fn reject(&mut self, now: Duration) {
        match self.rejects {
            Rejects::Free => {}
            Rejects::Counted => self.commit(now),
        }
    }

    /// How long after `now` a request would first be admitted, if no other arrives until then.
    ///
    /// From then on it stays admitted, so several enforcers all admit after the longest of their answers.
    /// [`Duration::MAX`] stands for never, which is what a bucket that does not leak and the end of the clock
    /// (584 years) come to.
    #[must_use]
    pub fn retry_after(&self, now: Duration) -> Duration {
        if self.admits(now) {
            return Duration::ZERO;
        }
        self.state
            .algorithm()
            .opens(self.reading(now))
            .and_then(|reading| self.clock.when(reading))
            .map_or(Duration::MAX, |then| then.saturating_sub(now))
    }

    /// What the gateway's clock reads when a request arrives at `now`.
    fn reading(&self, now: Duration) -> u64 {
        self.clock.read(now).max(self.latest)
    }
}

/// Whether rejected requests use up quota, which the spec leaves open.
#[derive(Clone, Copy, Debug)]
enum Rejects {
    Free,
    Counted,
}
