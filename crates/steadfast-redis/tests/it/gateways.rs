//! Several processes on one store, and gateways with any way of counting: none refuses a request.

use std::{cmp::Reverse, collections::BinaryHeap, num::NonZeroU32, time::Duration};

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};
use steadfast_limit::{Lane, Profile, Quota, Scope, Zone, ZoneLimiter};
use steadfast_redis::{Ask, Decision, Micros, Reading, Rule, SharedWindows, StoreClock};
use steadfast_sandbox::enforce::{Enforcer, Kind, Window, decide};

const S: Micros = 1_000_000;
const START: Micros = 1_764_000_000 * S;
const PROCESSES: u64 = 4;

/// How long a call to the store takes, and its reply, at most.
const LAG: Micros = 1_000;

/// The fate of a request, by its number.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// The store decides about it.
    Asked,
    /// The gateway counts it.
    Counted,
    /// The store hears of the answer.
    Settled,
    /// The store is another one from here on, or empty.
    Lost,
    /// A process tries to use the slot that is lent to it.
    Shared,
    /// It has the answer.
    ShareSettled,
    /// The store's clock is set.
    Set,
    /// A process starts in the place of another one.
    Started,
    /// It reads the key's clock, and asks for nothing.
    Followed,
}

struct World {
    windows: SharedWindows,
    share_rule: Rule,
    gateway: Vec<Enforcer>,
    happenings: BinaryHeap<Reverse<(Micros, u64, Happening)>>,
    clocks: [StoreClock; PROCESSES as usize],
    /// By how much the store's clock is wrong.
    wrong: Micros,
    dice: ChaCha8Rng,
    run: u64,
    next: u64,
    lane: Lane,
    hold: u64,
    granted: usize,
    refused: usize,
    /// The windows of a slot that is lent to a process.
    share: Option<SharedWindows>,
    by_share: usize,
}

impl World {
    fn new(profile: Profile, kind: Kind, limits: &[(u32, u64)], seed: u64) -> Self {
        let quota = Quota::new(Zone::GENERAL, Scope::AuthToken).profile(profile);
        let quota =
            limits.iter().fold(quota, |quota, (limit, s)| quota.limit(*limit, Duration::from_secs(*s)));
        let limiter = ZoneLimiter::builder().zone(quota).build().unwrap();
        let rule = Rule::new(&limiter.settings()[0]).emergency_share();
        let window = |(limit, s): &(u32, u64)| Window::new(*limit, Duration::from_secs(*s)).unwrap();
        Self {
            hold: rule.hold().as_micros() as u64,
            share_rule: rule.of_share(),
            windows: SharedWindows::new(rule),
            gateway: limits.iter().map(|limit| Enforcer::new(kind, window(limit))).collect(),
            happenings: BinaryHeap::new(),
            clocks: Default::default(),
            wrong: 0,
            dice: ChaCha8Rng::seed_from_u64(seed),
            lane: Lane::Trading,
            run: 0,
            next: 0,
            granted: 0,
            refused: 0,
            share: None,
            by_share: 0,
        }
    }

    /// Lends a slot to a process, which uses it for ever.
    fn lends_one(&mut self) {
        let ask = Ask::new("lent", Lane::Normal).first_use();
        assert_eq!(self.windows.acquire("run0", &ask, START), Decision::Granted);
        assert!(self.windows.lend("lent", 3_600 * S, START));
        self.share = Some(SharedWindows::new(self.share_rule.clone()));
        self.happen(START, 0, Happening::Shared);
    }

    /// Uses the lent slot, if its windows have room, and asks again soon.
    fn use_share(&mut self, now: Micros) {
        self.happen(now + 50_000, 0, Happening::Shared);
        let Some(share) = &mut self.share else { return };
        self.next += 1;
        let (id, name) = (self.next, self.next.to_string());
        if share.acquire("share", &Ask::new(&name, Lane::Trading).first_use(), now) == Decision::Granted {
            self.by_share += 1;
            let counted = now + self.takes();
            self.happen(counted, id, Happening::Counted);
            let settled = counted + self.takes();
            self.happen(settled, id, Happening::ShareSettled);
        } else {
            share.refund(&name);
        }
    }

    fn below(&mut self, n: u64) -> Micros {
        (self.dice.next_u64() % n) as Micros
    }

    /// Most ways take little, and some very long. Cancels do not wait longer than 3 s for any request.
    fn takes(&mut self) -> Micros {
        match self.below(50) {
            0 => LAG + self.below(if self.lane == Lane::Critical { 500_000 } else { 2_000_000 }),
            _ => LAG + self.below(40_000),
        }
    }

    fn happen(&mut self, at: Micros, id: u64, happening: Happening) {
        self.happenings.push(Reverse((at, id, happening)));
    }

    fn ask(&mut self, at: Micros) {
        self.next += 1;
        let at = at + self.takes();
        self.happen(at, self.next, Happening::Asked);
    }

    /// Keeps `callers` of each process asking until `end`.
    fn run(&mut self, callers: u64, losses: u64, end: Micros) {
        (0..callers * PROCESSES).for_each(|_| self.ask(START));
        for _ in 0..losses {
            let at = START + self.below((end - START) as u64);
            self.happen(at, 0, Happening::Lost);
        }
        while let Some(Reverse((now, id, happening))) = self.happenings.pop()
            && now < end
        {
            match happening {
                Happening::Asked => self.decide(id, now),
                Happening::Counted => {
                    let mut windows: Vec<_> = self.gateway.iter_mut().collect();
                    let at = Duration::from_micros((now - START) as u64);
                    self.refused += usize::from(decide(&mut windows, at).is_err());
                }
                Happening::Settled => {
                    let at = self.read(id, now);
                    self.windows.settle(&id.to_string(), at);
                }
                Happening::Shared => self.use_share(now),
                Happening::ShareSettled => {
                    if let Some(share) = &mut self.share {
                        share.settle(&id.to_string(), now);
                    }
                }
                Happening::Set => self.wrong = self.below(7_200_000_000) - 3_600 * S,
                Happening::Started => self.clocks[(id % PROCESSES) as usize] = StoreClock::default(),
                Happening::Followed => {
                    self.read(id, now);
                    self.happen(now + 2 * S, id, Happening::Followed);
                }
                Happening::Lost if self.below(2) == 0 => self.windows.flush(),
                Happening::Lost => {
                    self.windows.flush();
                    self.run += 1;
                }
            }
        }
    }

    /// Sets the store's clock so often until `end`, and lets as many processes start.
    fn sets_clock(&mut self, times: u64, end: Micros) {
        for _ in 0..times {
            for happening in [Happening::Set, Happening::Started] {
                let (at, id) = (START + self.below((end - START) as u64), self.dice.next_u64());
                self.happen(at, id, happening);
            }
        }
    }

    /// Lets every process read the key's clock, whether it asks for something or not.
    fn follows(&mut self) {
        (0..PROCESSES).for_each(|process| self.happen(START, process, Happening::Followed));
    }

    /// Returns the instant that counts for a call of the process that has made the request.
    fn read(&mut self, id: u64, now: Micros) -> Micros {
        let (sent, received) = (now - self.below(LAG as u64), now + self.below(LAG as u64));
        let clock = &mut self.clocks[(id % PROCESSES) as usize];
        let latest = clock.latest(sent);
        let Reading { shown, now } = self.windows.read(now + self.wrong, latest);
        clock.observe(shown, latest, sent, received);
        now
    }

    fn decide(&mut self, id: u64, now: Micros) {
        let at = self.read(id, now);
        let name = id.to_string();
        // Only the very first requests come to an account that nothing was counted of.
        let ask = Ask::new(&name, self.lane);
        let ask = if self.granted == 0 { ask.first_use() } else { ask };
        match self.windows.acquire(&format!("run{}", self.run), &ask, at) {
            Decision::Refused { earliest } => {
                let at = now + (earliest - at).max(0) + self.takes();
                self.happen(at, id, Happening::Asked);
            }
            Decision::Granted => {
                self.granted += 1;
                let is_cancel = self.lane == Lane::Critical;
                let is_held = !is_cancel && self.below(20) == 0;
                let left = now + if is_held { self.below(self.hold) } else { self.takes() };
                if !is_cancel && self.below(40) == 0 {
                    // The process died with it.
                    let counted = left + self.below(30_000_000);
                    self.happen(counted, id, Happening::Counted);
                } else {
                    let counted = left + self.takes();
                    self.happen(counted, id, Happening::Counted);
                    let settled = counted + self.takes();
                    self.happen(settled, id, Happening::Settled);
                    // A reply that is lost is asked for again.
                    if self.below(30) == 0 {
                        let again = settled + self.below(3_000_000);
                        self.happen(again, id, Happening::Settled);
                    }
                }
                self.ask(now);
            }
        }
    }
}

/// Returns the kinds of gateway at which a zone of that profile promises to be safe.
fn kinds(profile: Profile, phase: Duration) -> impl Iterator<Item = Kind> {
    let all = Kind::of_whole_limits(phase).into_iter();
    all.filter(move |kind| profile == Profile::Universal || !kind.interpolates())
}

/// Returns how many were sent in all, and how many refused.
fn play(profile: Profile, limits: &[(u32, u64)], lane: Lane, losses: u64, seconds: Micros) -> (usize, usize) {
    let (mut sent, mut refused) = (0, 0);
    for seed in 0..if is_deep() { 4 } else { 1 } {
        let phase = Duration::from_millis(137 * seed);
        for kind in kinds(profile, phase) {
            let mut world = World::new(profile, kind, limits, seed);
            world.lane = lane;
            world.run(3, losses, START + seconds * S);
            sent += world.granted;
            refused += world.refused;
        }
    }
    println!("{profile:?} {limits:?}: {sent} sent, {refused} refused");
    (sent, refused)
}

fn is_deep() -> bool {
    std::env::var_os("STEADFAST_DEEP").is_some()
}

#[test]
fn processes_with_one_store_are_never_refused() {
    let all =
        [(&[(10, 1)][..], 60), (&[(3, 1)], 60), (&[(10, 1), (40, 6)], 60), (&[(10, 1), (400, 60)], 150)];
    for profile in [Profile::Universal, Profile::WindowLog] {
        // The last takes as long as all others together.
        for (limits, seconds) in all.into_iter().take(if is_deep() { 4 } else { 3 }) {
            let (sent, refused) = play(profile, limits, Lane::Trading, 0, seconds);
            assert!(sent > 200, "{sent}");
            assert_eq!(refused, 0, "{profile:?}, {limits:?}");
        }
    }
}

/// A slot that is lent to a process is used without the store, as often as its own windows allow.
#[test]
fn processes_and_a_lent_slot_stay_within_the_limit_together() {
    for profile in [Profile::Universal, Profile::WindowLog] {
        let phase = Duration::from_millis(370);
        for kind in kinds(profile, phase) {
            let mut world = World::new(profile, kind, &[(10, 1)], 7);
            // Nothing but answered requests, so that the windows are full.
            world.lane = Lane::Critical;
            world.lends_one();
            world.run(3, 0, START + 60 * S);
            let (with, by_share) = (world.refused, world.by_share);
            assert!(by_share > 15, "{by_share}");
            assert_eq!(with, 0, "{profile:?}, {kind:?}");
        }
    }
}

/// Each process used to pace itself alone, and two of them overflowed the gateway's bucket.
#[test]
fn processes_with_one_store_overflow_no_bucket_of_a_small_burst() {
    for burst in [1, 3] {
        let profile = Profile::Paced { burst: NonZeroU32::new(burst).unwrap() };
        let mut world = World::new(profile, Kind::LeakyBucket { burst: burst - 1 }, &[(10, 1)], 1);
        world.run(3, 0, START + 300 * S);
        println!("burst {burst}: {} sent, {} refused", world.granted, world.refused);
        assert!(world.granted > 100, "{}", world.granted);
        assert_eq!(world.refused, 0, "burst {burst}");
    }
}

#[test]
fn a_store_that_loses_its_memory_lets_nothing_through_that_is_refused() {
    for profile in [Profile::Universal, Profile::WindowLog] {
        let (sent, refused) = play(profile, &[(10, 1)], Lane::Trading, 3, 240);
        assert!(sent > 200, "{sent}");
        assert_eq!(refused, 0, "{profile:?}");
    }
}

/// A process that started after a step used to believe the store, and those that were there before it to go on by themselves.
#[test]
fn a_store_whose_clock_is_set_lets_nothing_through_that_is_refused_and_goes_on() {
    let end = START + 240 * S;
    for (profile, kind) in [
        (Profile::WindowLog, Kind::SlidingLog),
        (Profile::WindowLog, Kind::FixedWindow { phase: Duration::from_millis(370) }),
        (Profile::Universal, Kind::SlidingCounter { phase: Duration::ZERO }),
    ] {
        let play = |sets, seed| {
            let mut world = World::new(profile, kind, &[(10, 1)], seed);
            world.sets_clock(sets, end);
            if seed % 2 == 1 {
                world.follows();
            }
            world.run(3, 0, end);
            assert_eq!(world.refused, 0, "{profile:?}, {kind:?}, {sets} steps, seed {seed}");
            world.granted
        };
        let seeds = 0..if is_deep() { 200 } else { 3 };
        let (set, unset) =
            seeds.fold((0, 0), |(set, unset), seed| (set + play(8, seed), unset + play(0, seed)));
        println!("{profile:?}, {kind:?}: {set} with steps of the clock, {unset} without");
        // A step costs a second or two.
        assert!(10 * set > 9 * unset, "{set} with steps of the clock, {unset} without");
    }
}

#[test]
fn cancels_that_all_are_answered_are_never_refused() {
    for profile in [Profile::Universal, Profile::WindowLog] {
        let (sent, refused) = play(profile, &[(10, 1)], Lane::Critical, 0, 60);
        assert!(sent > 500, "{sent}");
        assert_eq!(refused, 0, "{profile:?}");
    }
}
