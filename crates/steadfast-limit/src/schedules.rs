//! Runs the hand-off under every order of threads that a model checker generates.
//!
//! In each schedule a few threads ask for slots, wait, give up, send and settle. The clock moves only when a timer
//! fires. A waiter that is never woken blocks its thread for good, which the checker reports as a deadlock; so do
//! two waiters that wait for each other.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};

use shuttle::{
    future::block_on,
    rand::{Rng, thread_rng},
    sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst},
    thread,
};

use steadfast_call::Lane;
use steadfast_spec::{Scope, Zone};

use crate::{
    core::{
        decision::{Answer, Ask, Decision, Grant, Loss, WaiterId, ZoneId},
        rules::{
            profile::Profile,
            quota::{Quota, SECOND},
        },
        time::Nanos,
    },
    shell::{hand_off::HandOff, zone_limiter::ZoneLimiter},
};

/// How many schedules each test runs; ten times as many with `STEADFAST_DEEP=1`.
const SCHEDULES: usize = 100_000;
const ZONES: [Zone; 2] = [Zone::new("first"), Zone::new("second")];
const PER_SECOND: u32 = 2;

type Keys = &'static [(ZoneId, u64)];

/// The state shared by the threads of one schedule.
struct World {
    hand_off: HandOff,
    clock: AtomicU64,
    /// How many threads hold a slot, per zone.
    holding: [AtomicU32; ZONES.len()],
    /// True if requests on their way hold back every lane until they are answered.
    strict: bool,
}

impl World {
    fn new() -> Arc<Self> {
        let quota =
            |zone| Quota::new(zone, Scope::AuthToken).limit(PER_SECOND, SECOND).profile(Profile::WindowLog);
        let mut builder =
            ZONES.into_iter().fold(ZoneLimiter::builder(), |builder, zone| builder.zone(quota(zone)));
        let strict = thread_rng().gen_bool(0.5);
        if strict {
            builder = builder.strict_critical();
        }
        let hand_off = HandOff::new(builder.build_core().unwrap());
        let holding = [AtomicU32::new(0), AtomicU32::new(0)];
        Arc::new(Self { hand_off, clock: AtomicU64::new(1_000_000_000_000), holding, strict })
    }

    fn now(&self) -> Nanos {
        self.clock.load(SeqCst)
    }

    /// Asks for a slot until it is granted, or gives up after `patience` polls.
    fn acquire(&self, zones: Keys, patience: u32) -> Option<Grant> {
        let lane = Lane::ALL[thread_rng().gen_range(0..Lane::ALL.len())];
        let ask = Ask { zones, lane, send_by: None, head_of_lane: thread_rng().gen_bool(0.2) };
        let (mut place, mut looks) = (None, 0);
        let grant = block_on(poll_fn(|cx| {
            looks += 1;
            if looks > patience {
                return Poll::Ready(None);
            }
            self.look(&mut place, &ask, cx).map(Some)
        }));
        if let Some(waiter) = place {
            self.hand_off.leave(waiter, self.now());
        }
        grant
    }

    fn look(&self, place: &mut Option<WaiterId>, ask: &Ask<'_>, cx: &mut Context<'_>) -> Poll<Grant> {
        match self.hand_off.poll(place, ask, cx.waker(), self.now()).0 {
            Decision::Granted(grant) => Poll::Ready(grant),
            Decision::Refused(refusal) => panic!("{refusal}"),
            Decision::Queued { alarm, .. } => {
                if let Some(alarm) = alarm {
                    // The timer fires, at the earliest instant allowed.
                    self.clock.fetch_max(alarm, SeqCst);
                    cx.waker().wake_by_ref();
                }
                Poll::Pending
            }
        }
    }

    /// Holds the slots for a moment and ends them in a random way.
    fn spend(&self, grant: Grant, zones: Keys) {
        for (zone, _) in zones {
            let before = self.holding[usize::from(zone.0)].fetch_add(1, SeqCst);
            assert!(before < PER_SECOND || !self.strict, "more slots than there are");
        }
        thread::yield_now();
        for (zone, _) in zones {
            self.holding[usize::from(zone.0)].fetch_sub(1, SeqCst);
        }
        let (now, end) = (self.now(), thread_rng().gen_range(0..5_u8));
        self.hand_off.with(|core| match end {
            0 | 1 => core.refund(grant, now),
            2 => core.lose(grant, now, Loss::Reset, now),
            3 => core.settle(grant, Answer::TooManyRequests { retry_after: None }, now),
            _ => core.settle(grant, Answer::Accepted, now),
        });
    }

    /// Checks that nothing is left behind.
    fn check(&self) {
        let late = self.now() + 24 * 3_600 * 1_000_000_000;
        let ((busy, waiting, keys), _) = self.hand_off.with(|core| {
            let now = core.snapshot(0);
            let busy: u32 = now.zones.iter().map(|zone| zone.in_flight).sum();
            let waiting: u32 = now.zones.iter().flat_map(|zone| &zone.lanes).map(|lane| lane.waiting).sum();
            (busy, waiting, core.snapshot(late).zones.len())
        });
        let left = (busy, waiting, self.hand_off.kept_wakers(), keys);
        assert_eq!(left, (0, 0, 0, 0), "on their way, waiting, to be woken, and a day later");
    }
}

/// Runs `threads` threads of `rounds` requests each.
fn storm(threads: usize, rounds: usize, zones: fn() -> Keys, patience: fn() -> u32) {
    let world = World::new();
    let run = |world: Arc<World>| {
        move || {
            for _ in 0..rounds {
                let zones = zones();
                if let Some(grant) = world.acquire(zones, patience()) {
                    world.spend(grant, zones);
                }
            }
        }
    };
    let running: Vec<_> = (0..threads).map(|_| thread::spawn(run(Arc::clone(&world)))).collect();
    running.into_iter().for_each(|thread| thread.join().unwrap());
    world.check();
}

/// Runs half of the schedules at random, and half with a few well-placed thread switches.
fn explore(schedule: impl Fn() + Send + Sync + Clone + 'static) {
    let times = if std::env::var_os("STEADFAST_DEEP").is_some() { 10 * SCHEDULES } else { SCHEDULES };
    shuttle::check_random(schedule.clone(), times / 2);
    shuttle::check_pct(schedule, times / 2, 3);
    println!("figures: schedules={times} models=1");
}

fn one_zone() -> Keys {
    &[(ZoneId(0), 7)]
}

fn some_zones() -> Keys {
    let all: [Keys; 4] = [
        &[(ZoneId(0), 7)],
        &[(ZoneId(1), 8)],
        &[(ZoneId(0), 7), (ZoneId(1), 8)],
        &[(ZoneId(1), 8), (ZoneId(0), 7)],
    ];
    all[thread_rng().gen_range(0..all.len())]
}

fn patient() -> u32 {
    u32::MAX
}

fn impatient() -> u32 {
    if thread_rng().gen_bool(0.5) { thread_rng().gen_range(1..4) } else { u32::MAX }
}

#[test]
fn each_waiter_is_served() {
    explore(|| storm(4, 3, one_zone, patient));
}

#[test]
fn one_that_gives_up_leaves_nothing_and_hands_on_its_slot() {
    explore(|| storm(5, 2, one_zone, impatient));
}

#[test]
fn requests_of_several_zones_never_wait_for_each_other_for_good() {
    explore(|| storm(5, 2, some_zones, impatient));
}

/// The checker finds a slot that is handed on without waking its waiter, in the same schedules each time.
#[test]
#[should_panic(expected = "deadlock")]
fn a_waker_that_is_not_called_is_found() {
    let schedule = || {
        let world = World::new();
        let held: Vec<_> = (0..PER_SECOND).filter_map(|_| world.acquire(one_zone(), 1)).collect();
        let waiting = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.acquire(one_zone(), patient()).is_some())
        };
        let now = world.now();
        for grant in held {
            world.hand_off.without_waking(|core| core.refund(grant, now));
        }
        assert!(waiting.join().unwrap());
    };
    shuttle::check_random_with_seed(schedule, 1, 1_000);
}
