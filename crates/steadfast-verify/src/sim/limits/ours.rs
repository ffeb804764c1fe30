use std::{collections::VecDeque, mem, num::NonZeroU32, time::Duration};

use steadfast::limit::{
    Answer, Ask, Ceilings, Decision, Grant, InvalidLimiter, Lane, Limiter, Loss, Quota, WaiterId, ZoneId,
    ZoneLimiter,
};
use steadfast_spec::{Zone, zones};

use super::{
    client::{Client, Ending, RequestId},
    contender::{Contender, Profile},
};
use crate::sim::network::{End, Nanos};

/// The only key of a session.
const KEY: u64 = 0x9E37_79B9_7F4A_7C15;

/// steadfast's core in a session.
#[derive(Debug)]
pub(super) struct Steadfast {
    setup: Setup,
    core: Limiter,
    zone: ZoneId,
    /// Indexed by request.
    grants: Vec<Option<Grant>>,
    /// Indexed by waiter.
    waiting: Vec<Option<Waiting>>,
    ready: VecDeque<RequestId>,
    /// The stamps of the former process, and when it ended.
    left: Option<(Vec<i64>, Nanos)>,
}

#[derive(Debug)]
struct Waiting {
    waiter: WaiterId,
    request: RequestId,
    alarm: Option<Nanos>,
}

/// How the limiter is created, also after a restart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    pub(super) zone: Zone,
    pub(super) contender: Contender,
    pub(super) settle: Nanos,
}

impl Setup {
    fn core(self) -> Result<Limiter, InvalidLimiter> {
        let settle = Duration::from_nanos(self.settle);
        let adjusted = |quota: Quota| match self.contender {
            Contender::PriorityOnly | Contender::OneQueue => quota.ceilings(Ceilings::none()),
            _ => quota,
        };
        match self.contender {
            Contender::Steadfast(profile) => {
                let row = zones().into_iter().find(|row| row.zone == self.zone);
                let quota = row.map(|row| Quota::from(row).profile(profile.into()).settle(settle));
                quota.into_iter().fold(ZoneLimiter::builder(), |builder, quota| builder.zone(quota))
            }
            _ => ZoneLimiter::builder()
                .preset()
                .adjust(self.zone, adjusted)
                .adjust(self.zone, |quota| quota.settle(settle)),
        }
        .build_core()
    }
}

impl From<Profile> for steadfast::limit::Profile {
    fn from(profile: Profile) -> Self {
        match profile {
            Profile::Universal => Self::Universal,
            Profile::WindowLog => Self::WindowLog,
            Profile::Adaptive => Self::Adaptive { burst: NonZeroU32::MIN },
            Profile::Paced(burst) => Self::Paced { burst: NonZeroU32::new(burst).unwrap_or(NonZeroU32::MIN) },
        }
    }
}

impl Steadfast {
    /// Creates a limiter that has sent nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidLimiter`] if there is no such zone.
    pub(super) fn new(setup: Setup) -> Result<Self, InvalidLimiter> {
        let core = setup.core()?;
        let zone = core.zone_id(setup.zone).ok_or(InvalidLimiter::UnknownZone(setup.zone))?;
        Ok(Self {
            setup,
            core,
            zone,
            grants: Vec::new(),
            waiting: Vec::new(),
            ready: VecDeque::new(),
            left: None,
        })
    }

    /// Records the core's decision on a request.
    fn decided(&mut self, request: RequestId, decision: Decision) {
        match decision {
            Decision::Granted(grant) => {
                if self.grants.len() <= request {
                    self.grants.resize_with(request + 1, || None);
                }
                self.grants[request] = Some(grant);
                self.ready.push_back(request);
            }
            Decision::Queued { waiter, alarm } => {
                if self.waiting.len() <= waiter.slot() {
                    self.waiting.resize_with(waiter.slot() + 1, || None);
                }
                self.waiting[waiter.slot()] = Some(Waiting { waiter, request, alarm });
            }
            // There are no deadlines here; a full queue turns a request away.
            Decision::Refused(_) => {}
        }
    }

    fn look_again(&mut self, slot: usize, now: Nanos) {
        let Some(known) = self.waiting.get_mut(slot).and_then(Option::take) else { return };
        if let Some(decision) = self.core.poll(known.waiter, now) {
            self.decided(known.request, decision);
        }
    }

    fn follow_up(&mut self, now: Nanos) {
        loop {
            let woken = self.core.take_woken();
            if woken.is_empty() {
                return;
            }
            for waiter in woken {
                self.look_again(waiter.slot(), now);
            }
        }
    }
}

impl Client for Steadfast {
    fn ask(&mut self, id: RequestId, lane: Lane, now: Nanos) {
        let lane = if self.setup.contender == Contender::OneQueue { Lane::Normal } else { lane };
        let ask = Ask { zones: &[(self.zone, KEY)], lane, send_by: None, head_of_lane: false };
        let decision = self.core.acquire(&ask, now);
        self.decided(id, decision);
        self.follow_up(now);
    }

    fn leave(&mut self, _now: Nanos) -> Option<RequestId> {
        self.ready.pop_front()
    }

    fn alarm(&self) -> Option<Nanos> {
        self.waiting.iter().flatten().filter_map(|waiting| waiting.alarm).min()
    }

    fn wake(&mut self, now: Nanos) {
        for slot in 0..self.waiting.len() {
            let due = self.waiting[slot].as_ref().and_then(|waiting| waiting.alarm);
            if due.is_some_and(|due| due <= now) {
                self.look_again(slot, now);
            }
        }
        self.follow_up(now);
    }

    fn ended(&mut self, id: RequestId, ending: Ending, now: Nanos) {
        let Some(grant) = self.grants.get_mut(id).and_then(Option::take) else { return };
        match ending.end {
            End::Answered if ending.refused => {
                self.core.settle(grant, Answer::TooManyRequests { retry_after: ending.retry_after }, now);
            }
            End::Answered => self.core.settle(grant, Answer::Accepted, now),
            End::Reset => self.core.lose(grant, ending.sent, Loss::Reset, now),
            End::GivenUp => self.core.lose(grant, ending.sent, Loss::GivenUp, now),
        }
        self.core.take_events();
        self.follow_up(now);
    }

    fn die(&mut self, now: Nanos) {
        self.left = Some((self.core.export(self.zone, KEY, now), now));
        self.waiting.clear();
        self.ready.clear();
        // Grants of a limiter that no longer exists cannot be given back.
        mem::take(&mut self.grants);
    }

    fn start(&mut self, remembers: bool, now: Nanos) {
        let left = self.left.take().filter(|_| remembers);
        if let Ok(core) = self.setup.core() {
            self.core = core;
        }
        if let Some((stamps, at)) = left {
            // An empty limiter has room for one key.
            let imported = self.core.import(self.zone, KEY, &stamps, at, now);
            debug_assert!(imported.is_ok());
        }
    }
}
