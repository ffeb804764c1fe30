use proptest::prelude::*;
use steadfast_call::Lane;
use steadfast_spec::{Scope, Zone};

use crate::{Answer, Ask, Decision, Grant, Limiter, Loss, Nanos, Quota, SECOND, WaiterId, ZoneLimiter};

/// A limiter and its requests, each with its place among all that were made.
struct World {
    limiter: Limiter,
    waiting: Vec<WaiterId>,
    granted: Vec<Grant>,
}

impl World {
    fn new(scans_plainly: bool) -> Self {
        let small = Quota::new(Zone::new("small"), Scope::Shared).limit(2, SECOND);
        let large = Quota::new(Zone::new("large"), Scope::Shared).limit(12, SECOND);
        let mut limiter = ZoneLimiter::builder().zone(small).zone(large).build_core().unwrap();
        limiter.scans_plainly = scans_plainly;
        Self { limiter, waiting: Vec::new(), granted: Vec::new() }
    }

    /// Does something and returns all that can be seen of it.
    fn does(&mut self, what: u8, which: usize, lane: Lane, now: Nanos) -> String {
        let zone = |name| (self.limiter.zone_id(Zone::new(name)).unwrap(), 7);
        let (small, large) = (zone("small"), zone("large"));
        let mut seen = Vec::new();
        match what {
            0..=4 => {
                let both = [small, large];
                let zones = [&both[..1], &both[1..], &both[..]][which % 3];
                let send_by = which.is_multiple_of(5).then_some(now + 3_000_000_000);
                let ask = Ask { zones, lane, send_by, head_of_lane: which.is_multiple_of(7) };
                seen.push(self.limiter.acquire(&ask, now));
            }
            5 if !self.granted.is_empty() => {
                let grant = self.granted.swap_remove(which % self.granted.len());
                self.limiter.settle(grant, Answer::Accepted, now);
            }
            6 if !self.granted.is_empty() => {
                let grant = self.granted.swap_remove(which % self.granted.len());
                self.limiter.lose(grant, now, Loss::Reset, now);
            }
            7 if !self.granted.is_empty() => {
                let grant = self.granted.swap_remove(which % self.granted.len());
                let answer = Answer::TooManyRequests { retry_after: None };
                self.limiter.settle(grant, answer, now);
            }
            8 if !self.waiting.is_empty() => {
                let waiter = self.waiting.swap_remove(which % self.waiting.len());
                self.limiter.cancel(waiter, now);
            }
            _ => seen.extend(self.waiting.iter().filter_map(|waiter| self.limiter.poll(*waiter, now))),
        }
        loop {
            let woken = self.limiter.take_woken();
            if woken.is_empty() {
                break;
            }
            seen.extend(woken.iter().filter_map(|waiter| self.limiter.poll(*waiter, now)));
        }
        let text = format!("{seen:?} {:?}", self.limiter.snapshot(now).zones);
        for decision in seen {
            match decision {
                Decision::Granted(grant) => self.granted.push(grant),
                Decision::Queued { waiter, .. } if !self.waiting.contains(&waiter) => {
                    self.waiting.push(waiter)
                }
                _ => {}
            }
        }
        text
    }
}

proptest! {
    /// Nothing that is remembered of a queue, or while it is examined, changes a decision.
    #[test]
    fn remembered_answers_decide_as_a_plain_scan_does(
        steps in prop::collection::vec((0_u8..11, 0..1_000_usize, 0..Lane::ALL.len(), 0..400_u64), 1..120),
    ) {
        let (mut one, mut other) = (World::new(false), World::new(true));
        let mut now = 1_000_000_000_000;
        for (what, which, lane, ms) in steps {
            now += ms * 1_000_000;
            let lane = Lane::ALL[lane];
            prop_assert_eq!(one.does(what, which, lane, now), other.does(what, which, lane, now));
        }
    }
}
