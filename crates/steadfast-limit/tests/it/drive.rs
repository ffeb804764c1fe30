//! Drives the pure core by hand.

use steadfast_limit::{
    Answer, Ask, Builder, Ceilings, Decision, Grant, Lane, Limiter, Loss, MINUTE, Nanos, Profile, Quota,
    Refusal, SECOND, Scope, WaiterId, Zone, ZoneId, ZoneLimiter,
};

pub(crate) const MS: Nanos = 1_000_000;
pub(crate) const S: Nanos = 1_000 * MS;

/// The periods of a second and a minute as the limiter holds them.
pub(crate) const HELD_SECOND: Nanos = S + S / 2_000 + MS;
pub(crate) const HELD_MINUTE: Nanos = 60 * S + 60 * S / 2_000 + MS;

/// Returns `general` with the service's limits and the plain log.
pub(crate) fn general() -> Quota {
    Quota::new(Zone::GENERAL, Scope::AuthToken)
        .limit(10, SECOND)
        .limit(400, MINUTE)
        .ceilings(Ceilings::standard())
        .profile(Profile::WindowLog)
}

/// Returns a zone of `n` per second for one lane, with the plain log.
pub(crate) fn per_second(zone: Zone, n: u32) -> Quota {
    Quota::new(zone, Scope::AuthToken).limit(n, SECOND).profile(Profile::WindowLog)
}

/// A core with its current instant.
pub(crate) struct Core {
    pub(crate) limiter: Limiter,
    pub(crate) now: Nanos,
}

impl Core {
    pub(crate) fn new(builder: Builder) -> Self {
        Self { limiter: builder.build_core().unwrap(), now: 1_000 * S }
    }

    pub(crate) fn of(quota: Quota) -> Self {
        Self::new(ZoneLimiter::builder().zone(quota))
    }

    pub(crate) fn zone(&self, zone: Zone) -> (ZoneId, u64) {
        (self.limiter.zone_id(zone).unwrap(), 7)
    }

    pub(crate) fn ask(&mut self, zones: &[Zone], lane: Lane) -> Decision {
        self.ask_by(zones, lane, None, false)
    }

    pub(crate) fn ask_by(&mut self, zones: &[Zone], lane: Lane, by: Option<Nanos>, head: bool) -> Decision {
        let zones: Vec<_> = zones.iter().map(|zone| self.zone(*zone)).collect();
        let ask = Ask { zones: &zones, lane, send_by: by, head_of_lane: head };
        self.limiter.acquire(&ask, self.now)
    }

    pub(crate) fn granted(&mut self, zone: Zone, lane: Lane) -> Grant {
        granted(self.ask(&[zone], lane))
    }

    /// Returns the grant of the next request, and moves the clock to its instant.
    pub(crate) fn next(&mut self, zone: Zone, lane: Lane) -> Grant {
        let mut decision = self.ask(&[zone], lane);
        loop {
            match decision {
                Decision::Granted(grant) => return grant,
                Decision::Queued { waiter, alarm } => {
                    self.now = alarm.expect("only an answer makes room");
                    decision = self.poll(waiter);
                }
                Decision::Refused(refusal) => panic!("{refusal}"),
            }
        }
    }

    pub(crate) fn queued(&mut self, zone: Zone, lane: Lane) -> WaiterId {
        queued(self.ask(&[zone], lane))
    }

    pub(crate) fn refused(&mut self, zone: Zone, lane: Lane, by: Nanos) -> Refusal {
        refused(self.ask_by(&[zone], lane, Some(by), false))
    }

    /// Sends `n` requests, granted and answered at once.
    pub(crate) fn spend(&mut self, zone: Zone, lane: Lane, n: usize) {
        let grants: Vec<_> = (0..n).map(|_| self.granted(zone, lane)).collect();
        for grant in grants {
            self.answer(grant);
        }
    }

    pub(crate) fn answer(&mut self, grant: Grant) {
        self.limiter.settle(grant, Answer::Accepted, self.now);
    }

    pub(crate) fn answer_429(&mut self, grant: Grant) {
        self.limiter.settle(grant, Answer::TooManyRequests { retry_after: None }, self.now);
    }

    pub(crate) fn lose(&mut self, grant: Grant, sent: Nanos, loss: Loss) {
        self.limiter.lose(grant, sent, loss, self.now);
    }

    pub(crate) fn poll(&mut self, waiter: WaiterId) -> Decision {
        self.limiter.poll(waiter, self.now).unwrap()
    }

    pub(crate) fn cancel(&mut self, waiter: WaiterId) {
        self.limiter.cancel(waiter, self.now);
    }

    /// Returns when `waiter` must be polled, if it still waits.
    pub(crate) fn alarm(&mut self, waiter: WaiterId) -> Option<Nanos> {
        match self.poll(waiter) {
            Decision::Queued { alarm, .. } => alarm,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn woken(&mut self) -> Vec<WaiterId> {
        self.limiter.take_woken()
    }
}

pub(crate) fn granted(decision: Decision) -> Grant {
    match decision {
        Decision::Granted(grant) => grant,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn queued(decision: Decision) -> WaiterId {
    match decision {
        Decision::Queued { waiter, .. } => waiter,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn refused(decision: Decision) -> Refusal {
    match decision {
        Decision::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}
