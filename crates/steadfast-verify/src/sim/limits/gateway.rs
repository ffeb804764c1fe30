use std::{num::NonZeroU32, time::Duration};

use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use steadfast_sandbox::enforce::{Enforcer, GatewayClock, Kind, Window};
use steadfast_spec::{Zone, zones};

use crate::{
    probes::densest_window,
    sim::network::{Nanos, S, law::below},
};

/// The gateway's counters for one zone: the sandbox's own, with a phase and a clock of their own.
#[derive(Debug)]
pub(super) struct Gateway {
    windows: Vec<Enforcer>,
    /// The windows that it enforces after its limits were lowered.
    lowered: Option<Vec<Enforcer>>,
    kind: Kind,
    clock: GatewayClock,
    clock_ppm: i16,
    /// When the client's admitted requests were counted.
    admitted: Vec<Nanos>,
}

/// Returns the windows of one zone, from the service's own table.
pub(super) fn windows_of(zone: Zone) -> Vec<(NonZeroU32, Duration)> {
    let row = zones().into_iter().find(|row| row.zone == zone);
    let windows = row.map(|row| row.windows).unwrap_or_default();
    windows.iter().map(|window| (window.limit(), window.period())).collect()
}

impl Gateway {
    /// How much faster or slower than true time its clock may run, in parts per million.
    const DRIFT: u64 = 500;

    /// Creates a gateway that counts by `kind`; the seed decides the start of its windows and its clock's speed.
    pub(super) fn new(zone: Zone, kind: Kind, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        // Both ends of the range and its middle matter more than the rest.
        let clock_ppm = match below(&mut rng, 4) {
            0 => -(Self::DRIFT as i16),
            1 => Self::DRIFT as i16,
            2 => 0,
            _ => below(&mut rng, 2 * Self::DRIFT + 1) as i16 - Self::DRIFT as i16,
        };
        // The epoch shifts every window, so phases of the minute and the second are evenly distributed.
        let epoch = Duration::from_nanos(below(&mut rng, 3_600 * S));
        let clock = GatewayClock::new().epoch(epoch).drift_ppm(clock_ppm);
        let windows = windows_of(zone)
            .into_iter()
            .filter_map(|(limit, period)| Window::new(limit.get(), period).ok())
            .map(|window| Enforcer::new(kind, window).clock(clock))
            .collect();
        Self { windows, lowered: None, kind, clock, clock_ppm, admitted: Vec::new() }
    }

    /// Returns whether a request that arrives at `now` is admitted. A refused one is counted if the kind of counter
    /// does so.
    pub(super) fn admits(&mut self, now: Nanos) -> bool {
        let at = Duration::from_nanos(now);
        let windows = self.lowered.as_mut().unwrap_or(&mut self.windows);
        let admitted = windows.iter().all(|window| window.admits(at));
        if !admitted {
            windows.iter_mut().for_each(|window| window.reject(at));
        }
        admitted
    }

    /// Lowers the limit of every window of seconds to one request a second.
    pub(super) fn lower(&mut self) {
        let lowered = self.windows.iter().map(Enforcer::window).filter_map(|window| {
            let is_second = window.period() <= Duration::from_secs(1);
            Window::new(if is_second { 1 } else { window.limit() }, window.period()).ok()
        });
        self.lowered =
            Some(lowered.map(|window| Enforcer::new(self.kind, window).clock(self.clock)).collect());
    }

    /// Counts an admitted request of the client.
    pub(super) fn count(&mut self, now: Nanos) {
        self.count_foreign(now);
        self.admitted.push(now);
    }

    /// Counts an admitted request of another program.
    pub(super) fn count_foreign(&mut self, now: Nanos) {
        let at = Duration::from_nanos(now);
        self.lowered.as_mut().unwrap_or(&mut self.windows).iter_mut().for_each(|window| window.commit(at));
    }

    /// Returns the used share of the longest window's rate, over whole rounds of its limit after the first, or over all
    /// the time `ran` if there was no second round.
    pub(super) fn used(&self, ran: Nanos) -> f64 {
        let Some((limit, period)) =
            self.windows.last().map(|window| (window.window().limit(), window.window().period()))
        else {
            return 0.0;
        };
        let (limit, rounds) = (limit as usize, self.admitted.len() / limit as usize);
        let due = limit as f64 / period.as_secs_f64();
        let (sent, took) = match rounds {
            0 | 1 => (self.admitted.len(), ran),
            _ => ((rounds - 1) * limit, self.admitted[rounds * limit - 1] - self.admitted[limit - 1]),
        };
        sent as f64 / (took as f64 / S as f64) / due
    }

    /// Returns the first window of which some stretch, on the gateway's clock, holds more than its limit, by an
    /// independent count of every stretch.
    pub(super) fn overfull(&self) -> Option<(u32, usize)> {
        let mut instants = self.admitted.clone();
        instants.sort_unstable();
        self.windows.iter().find_map(|window| {
            let (limit, period) = (window.window().limit(), window.window().period());
            let rate = (1_000_000 + i128::from(self.clock_ppm)).unsigned_abs();
            let truth = period.as_nanos() * 1_000_000 / rate;
            let densest = densest_window(&instants, Duration::from_nanos(truth as u64));
            (densest > limit as usize).then_some((limit, densest))
        })
    }
}
