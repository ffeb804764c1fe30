//! The limiters of the comparison.

use std::{collections::VecDeque, num::NonZeroU32};

use governor::{
    Quota, RateLimiter,
    middleware::NoOpMiddleware,
    nanos,
    state::{InMemoryState, NotKeyed},
};
use steadfast_spec::Zone;

use super::{client::Gate, gateway::windows_of};
use crate::{peers::Given, sim::network::Nanos};

type Limiter = RateLimiter<NotKeyed, InMemoryState, Given, NoOpMiddleware<nanos::Nanos>>;

/// governor, one limiter for each window, asked one after the other as in typical use.
pub(super) struct Governor {
    limits: Vec<Limiter>,
    clock: Given,
    /// How many of them the first request has passed.
    passed: usize,
}

/// How many requests governor admits back to back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Burst {
    /// As many as a window allows.
    Whole,
    /// One.
    One,
}

impl Governor {
    pub(super) fn new(zone: Zone, burst: Burst) -> Self {
        let clock = Given::default();
        let limits = windows_of(zone).into_iter().filter_map(|(limit, period)| {
            let quota = Quota::with_period(period / limit.get())?.allow_burst(match burst {
                Burst::Whole => limit,
                Burst::One => NonZeroU32::MIN,
            });
            Some(Limiter::direct_with_clock(quota, clock.clone()))
        });
        let limits = limits.collect();
        Self { limits, clock, passed: 0 }
    }
}

impl Gate for Governor {
    fn pass(&mut self, now: Nanos) -> Result<(), Nanos> {
        self.clock.set(now);
        while let Some(limit) = self.limits.get(self.passed) {
            if let Err(not_until) = limit.check() {
                return Err(not_until.earliest_possible().as_u64());
            }
            self.passed += 1;
        }
        self.passed = 0;
        Ok(())
    }
}

/// An exact log that stamps a request when it is sent, over all windows at once.
///
/// It is the usual first attempt at a limiter, and the property tests must be able to catch its errors.
#[derive(Debug)]
pub(super) struct LogAtSend {
    windows: Vec<(usize, Nanos)>,
    sent: VecDeque<Nanos>,
}

impl LogAtSend {
    pub(super) fn new(zone: Zone) -> Self {
        let windows = windows_of(zone);
        let windows =
            windows.iter().map(|(limit, period)| (limit.get() as usize, period.as_nanos() as Nanos));
        Self { windows: windows.collect(), sent: VecDeque::new() }
    }
}

impl Gate for LogAtSend {
    fn pass(&mut self, now: Nanos) -> Result<(), Nanos> {
        let frees = |(limit, period): &(usize, Nanos)| {
            self.sent.len().checked_sub(*limit).and_then(|index| self.sent.get(index)).map(|at| at + period)
        };
        if let Some(again) = self.windows.iter().filter_map(frees).max().filter(|again| *again > now) {
            return Err(again);
        }
        let most = self.windows.iter().map(|(limit, _)| *limit).max().unwrap_or_default();
        if self.sent.len() >= most {
            self.sent.pop_front();
        }
        self.sent.push_back(now);
        Ok(())
    }
}
