//! Counts requests as a gateway does, by any of eight rules.
//!
//! The specification gives limits and zones but no algorithm (§8): it does not say where a window begins,
//! whether it slides, or whether a rejected request counts. Here each reading is a state machine of its own. An
//! [`Enforcer`] is one [`Window`] counted by one [`Kind`] for one scope (a token, a key, an address).
//! [`decide`] puts a request that falls under several to all of them at once.
//!
//! The machines are pure: they take the time and return a decision, and hold no clock, lock or randomness. All
//! arithmetic is in integers, rounding happens only where the modelled gateway rounds, and no time or limit
//! makes them panic. They share no code with the client's limiter, which is tested against them.
//!
//! # What each kind admits
//!
//! `N` requests in `T`. The last column is the most that any half-open interval of length `T` can hold; the
//! tests reach each of them.
//!
//! | name | counts | in any `T` |
//! |---|---|---|
//! | `fixed` | `[phase + k·T, phase + (k + 1)·T)` | 2N |
//! | `first-hit` | `[t, t + T)` from the first request after the previous such window | 2N − 1 |
//! | `sliding-log` | `(now − T, now]` | N |
//! | `sliding-counter` | the fixed window, and the part of the previous one that the last `T` cover | 2N − 1 |
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
//! Jitter and late accounting: the caller decides at which instant a request is accounted, and under which
//! enforcers it falls.

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
/// the latest counted one is treated as arriving at that instant.
///
/// Checking and counting are separate, so that several enforcers can decide as one: ask all with [`admits`],
/// then call either [`commit`] or [`reject`] on all of them. [`decide`] does that.
///
/// # Clone
///
/// A clone starts from the current state and counts on its own.
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
    /// Creates an enforcer that has seen no request.
    #[must_use]
    pub fn new(kind: Kind, window: Window) -> Self {
        let rejects = match kind {
            Kind::CountingRejects { .. } => Rejects::Counted,
            _ => Rejects::Free,
        };
        Self { kind, window, clock: GatewayClock::new(), rejects, latest: 0, state: State::new(kind, window) }
    }

    /// Makes rejected requests use quota like admitted ones.
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

    /// Returns the rule by which it counts.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the limit and the period.
    #[must_use]
    pub const fn window(&self) -> Window {
        self.window
    }

    /// Returns whether one more request at `now` would be within the limit. Changes nothing.
    #[must_use]
    pub fn admits(&self, now: Duration) -> bool {
        self.state.algorithm().admits(self.reading(now))
    }

    /// Counts a request that the gateway admitted at `now`.
    ///
    /// It is counted even if it exceeds the limit, as by a gateway that accounts late.
    pub fn commit(&mut self, now: Duration) {
        self.latest = self.reading(now);
        self.state.algorithm_mut().charge(self.latest);
    }

    /// Notes a request that the gateway rejected at `now`, because of this window or another.
    ///
    /// It is counted by [`Kind::CountingRejects`] and after [`counting_rejects`](Self::counting_rejects);
    /// otherwise nothing changes.
    pub fn reject(&mut self, now: Duration) {
        match self.rejects {
            Rejects::Free => {}
            Rejects::Counted => self.commit(now),
        }
    }

    /// Returns how long after `now` a request would first be admitted, if no other arrives until then.
    ///
    /// It would be admitted at any later time too, so several enforcers all admit after the longest of their
    /// answers. [`Duration::MAX`] means never: a bucket that does not leak, or the end of the clock (584
    /// years).
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

    /// Returns the gateway's clock when a request arrives at `now`.
    fn reading(&self, now: Duration) -> u64 {
        self.clock.read(now).max(self.latest)
    }
}

/// Whether rejected requests use quota, which the specification leaves open.
#[derive(Clone, Copy, Debug)]
enum Rejects {
    Free,
    Counted,
}
