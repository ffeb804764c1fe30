use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, UNIX_EPOCH},
};

use steadfast::call::{BootClock, WallClock};
use steadfast_sandbox::Sandbox;
use tokio::time::{Instant, sleep_until};

use crate::sim::{
    axes::{Axes, Axis},
    chooser::{Chooser, Site},
};

/// The clocks of one session. The gateway's is right; the client's wall clock may be wrong, and its machine suspended, or
/// stopped like a virtual machine, which no clock of its own shows.
#[derive(Clone, Debug)]
pub(crate) struct Clocks {
    /// The gateway's wall clock.
    pub(crate) gateway: WallClock,
    /// The client's wall clock.
    pub(crate) wall: WallClock,
    /// The client's boot clock, which runs on during suspension.
    pub(crate) boot: BootClock,
    start: Instant,
    /// The time until the end of the gateway's day when the session begins.
    day_left: Duration,
    /// The total suspension so far, in milliseconds.
    suspended: Arc<AtomicU64>,
    naps: Vec<Nap>,
    is_wrong: bool,
}

/// A suspension of the machine, at an instant of its monotonic clock, which then stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Nap {
    after: Duration,
    lasts: Duration,
    /// Its wall clock and its boot clock stand still, too.
    unseen: bool,
}

/// A change of a wall clock, at a time after the start.
type Change = (Duration, What);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// It is set by this many milliseconds.
    Steps(i64),
    /// It runs faster by this many thousandths; at -1,000 it stands still.
    Drifts(i64),
}

/// Every simulation begins at half past eleven in the zone of the trading day; since the Unix epoch.
const BEGIN: Duration = Duration::from_secs(1_795_240_800);
/// The rest of the trading day from then on.
const DAY_LEFT: Duration = Duration::from_secs(45_000);
const A_DAY: i64 = 86_400_000;
const DAY: Duration = Duration::from_secs(86_400);
/// Midnight or a wrong clock comes within this many milliseconds of the start.
const WITHIN: u32 = 40_000;
/// The kind of wrong clock whose machine stops.
const STOPS: u32 = 8;
/// The size of a small step, no more than the error of a clock that was never set.
const STEP: i64 = 4_000;

impl Clocks {
    /// Returns the clocks of a seed.
    pub(crate) fn of(chooser: &Chooser, axes: Axes) -> Self {
        let (day_left, changes, stop) =
            if axes.has(Axis::WallClock) { wrong(chooser) } else { (DAY_LEFT, Vec::new(), None) };
        let mut naps = if axes.has(Axis::Suspend) { naps(chooser) } else { Vec::new() };
        naps.extend(stop.map(|after| Nap { after, lasts: DAY, unseen: true }));
        naps.sort_by_key(|nap| nap.after);
        let (start, is_wrong) = (Instant::now(), !changes.is_empty());
        let suspended = Arc::new(AtomicU64::new(0));
        let epoch = UNIX_EPOCH + BEGIN + DAY_LEFT - day_left;
        let (slept, passed) = (suspended.clone(), move || start.elapsed());
        let boot = move || passed() + Duration::from_millis(slept.load(Ordering::Relaxed));
        let (slept, awake) = (boot.clone(), passed);
        Self {
            gateway: WallClock::new(move || epoch + start.elapsed()),
            wall: WallClock::new(move || {
                let off = offset(&changes, awake());
                let ahead = Duration::from_millis(u64::try_from(off).unwrap_or_default());
                epoch + slept() + ahead - Duration::from_millis(u64::try_from(-off).unwrap_or_default())
            }),
            boot: BootClock::new(move || Some(boot())),
            start,
            day_left,
            suspended,
            naps,
            is_wrong,
        }
    }

    /// True if the client's wall clock is changed, at midnight or otherwise.
    pub(crate) fn is_wrong(&self) -> bool {
        self.is_wrong
    }

    /// Returns how much time has passed for the gateway since the start.
    fn passed(&self, at: Instant) -> Duration {
        let passed = at - self.start;
        let slept = self.naps.iter().filter(|nap| nap.after <= passed).map(|nap| nap.lasts);
        passed + slept.sum::<Duration>()
    }

    /// Returns the number of the gateway's day at an instant; that of the session's start is 0.
    fn day(&self, at: Instant) -> u64 {
        (self.passed(at) + DAY - self.day_left).as_secs() / DAY.as_secs()
    }

    /// True if a name that was first used at this instant still means the same order: on the gateway's day. In the first
    /// ten minutes of a day the client may have taken it for the one before.
    pub(crate) fn is_day_of(&self, at: Instant) -> bool {
        let since_midnight = (self.passed(at) + DAY - self.day_left).as_secs() % DAY.as_secs();
        let is_certain = self.day(at) == 0 || since_midnight >= 10 * 60;
        is_certain && self.day(at) == self.day(Instant::now())
    }

    /// True while the gateway is still on the day of the session's start.
    pub(crate) fn is_first_day(&self) -> bool {
        self.day(Instant::now()) == 0
    }

    /// True while names of the first day still mean the same orders: until ten minutes after it, less one minute for
    /// asking.
    pub(crate) fn do_names_hold(&self) -> bool {
        self.passed(Instant::now()) < self.day_left + Duration::from_secs(9 * 60)
    }

    /// Suspends the machine at its times, while the gateway and the others go on.
    pub(crate) async fn suspend(self, sandbox: Sandbox) {
        for Nap { after, lasts, unseen } in self.naps {
            sleep_until(self.start + after).await;
            if !unseen {
                let millis = u64::try_from(lasts.as_millis()).unwrap_or_default();
                self.suspended.fetch_add(millis, Ordering::Relaxed);
            }
            sandbox.advance(lasts);
        }
    }
}

/// Returns the wall clock of a simulation with right clocks.
pub(crate) fn wall_clock() -> WallClock {
    let (begin, start) = (UNIX_EPOCH + BEGIN, Instant::now());
    WallClock::new(move || begin + start.elapsed())
}

/// Returns the rest of the day, the changes of the client's clock, and when its machine stops for a day, if it does.
fn wrong(chooser: &Chooser) -> (Duration, Vec<Change>, Option<Duration>) {
    let millis = |what, n| u64::from(chooser.choose(Site::new(what), n));
    let (at, more) = (Duration::from_millis(millis("clock.at", WITHIN)), millis("clock.more", WITHIN));
    let little = Duration::from_millis(more % STEP.unsigned_abs());
    let later = at + Duration::from_millis(1 + more);
    let steps = |at, by| (at, What::Steps(by));
    let kind = chooser.weigh(Site::new("clock.kind"), &[10, 16, 12, 18, 18, 10, 8, 8, 12]);
    let (day_left, changes) = match kind {
        // Set back over midnight, which then comes a second time.
        1 => (at, vec![steps(at + little, -STEP)]),
        // Set forward over midnight, and back.
        2 => (at + little, vec![steps(at, STEP), steps(later, -STEP)]),
        // A day ahead, or behind, for some time.
        3 => (DAY_LEFT, vec![steps(at, A_DAY), steps(later, -A_DAY)]),
        4 => (DAY_LEFT, vec![steps(at, -A_DAY), steps(later, A_DAY)]),
        // Too fast or too slow, by up to a fifth.
        5 => {
            let drift = i64::from(chooser.choose(Site::new("clock.drift"), 401)) - 200;
            (at, vec![(Duration::ZERO, What::Drifts(drift))])
        }
        // Stands still over midnight, and then jumps to the right time.
        6 => {
            let lost = i64::try_from((later - at).as_millis()).unwrap_or_default();
            let goes_on = [(later, What::Drifts(1_000)), steps(later, lost)];
            (at + little, [(at, What::Drifts(-1_000))].into_iter().chain(goes_on).collect())
        }
        // Midnight with a right clock: a step of zero.
        7 => (at, vec![steps(at, 0)]),
        // Stands still with its machine, and is set right some time after that.
        STOPS => (DAY_LEFT, vec![steps(later, A_DAY)]),
        _ => (DAY_LEFT, Vec::new()),
    };
    (day_left, changes, (kind == STOPS).then_some(at))
}

fn naps(chooser: &Chooser) -> Vec<Nap> {
    let nap = |number| {
        let site = |what| Site::new(what).of(number);
        let longest = [60_000, 900_000, 3 * 3_600_000][chooser.choose(site("nap.longest"), 3) as usize];
        Nap {
            after: Duration::from_millis(u64::from(chooser.choose(site("nap.after"), 60_000))),
            lasts: Duration::from_millis(u64::from(10_000 + chooser.choose(site("nap.lasts"), longest))),
            unseen: false,
        }
    };
    let many = [0, 1, 2][chooser.weigh(Site::new("naps"), &[10, 60, 30]) as usize];
    (1..=many).map(nap).collect()
}

/// Returns how far a clock is ahead after `passed`, in milliseconds.
fn offset(changes: &[Change], passed: Duration) -> i64 {
    let so_far = changes.iter().filter(|(at, _)| *at <= passed);
    so_far.fold(0, |ahead, &(at, what)| match what {
        What::Steps(by) => ahead + by,
        What::Drifts(by) => ahead + i64::try_from((passed - at).as_millis()).unwrap_or_default() * by / 1_000,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::chooser::Tape;

    const S: Duration = Duration::from_secs(1);

    /// Returns the clocks of a tape with this kind of wrong clock; midnight or the first step is `at` ahead.
    fn clocks(kind: u32, at: u32, more: u32) -> Clocks {
        let sites = [("clock.kind", kind), ("clock.at", at), ("clock.more", more)];
        let tape: Tape = sites.into_iter().map(|(what, choice)| (Site::new(what), choice)).collect();
        Clocks::of(&Chooser::tape(tape), Axes::ALL)
    }

    fn ahead(clocks: &Clocks) -> i64 {
        let (wall, right) = (clocks.wall.now(), clocks.gateway.now());
        match wall.duration_since(right) {
            Ok(ahead) => ahead.as_millis() as i64,
            Err(behind) => -(behind.duration().as_millis() as i64),
        }
    }

    /// Returns the number of the day on a wall clock.
    fn day(clock: &WallClock) -> u64 {
        (clock.now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 19_800) / 86_400
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_set_back_meets_midnight_twice() {
        let clocks = clocks(1, 5_000, 1_000);
        let first = day(&clocks.wall);
        let mut days = Vec::new();
        for _ in 0..12 {
            days.push(day(&clocks.wall) - first);
            tokio::time::advance(S).await;
        }
        assert_eq!(days, [0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1]);
        assert!(!clocks.is_first_day());
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_is_a_day_wrong_and_right_again() {
        for (kind, wrong) in [(3, A_DAY), (4, -A_DAY)] {
            let clocks = clocks(kind, 5_000, 9_000);
            let mut seen = Vec::new();
            for _ in 0..3 {
                seen.push(ahead(&clocks));
                tokio::time::advance(8 * S).await;
            }
            assert_eq!(seen, [0, wrong, 0]);
            assert!(clocks.is_first_day());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_stands_jumps_to_where_it_should_be() {
        let clocks = clocks(6, 5_000, 7_999);
        tokio::time::advance(8 * S).await;
        assert_eq!(ahead(&clocks), -3_000);
        tokio::time::advance(5 * S).await;
        assert_eq!(ahead(&clocks), 0);
        tokio::time::advance(60 * S).await;
        assert_eq!(ahead(&clocks), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_suspended_machine_finds_that_all_others_went_on() {
        let sites = [("nap.after", 4_000), ("nap.lasts", 20_000)];
        let tape: Tape = sites.into_iter().map(|(what, choice)| (Site::new(what).of(1), choice)).collect();
        let tape: Tape = tape.iter().chain([(Site::new("naps"), 1)]).collect();
        let clocks = Clocks::of(&Chooser::tape(tape), "suspend".parse().unwrap());
        let sandbox = Sandbox::builder().wall_clock(clocks.gateway.now()).build().unwrap();
        clocks.clone().suspend(sandbox.clone()).await;
        assert_eq!(clocks.start.elapsed(), 4 * S);
        assert_eq!((clocks.boot.now(), sandbox.now()), (Some(34 * S), 34 * S));
        assert_eq!(clocks.wall.now().duration_since(clocks.gateway.now()).unwrap(), 30 * S);
    }

    #[tokio::test(start_paused = true)]
    async fn a_machine_that_stops_has_yesterdays_clocks_until_they_are_set() {
        let clocks = clocks(STOPS, 5_000, 7_999);
        let sandbox = Sandbox::builder().wall_clock(clocks.gateway.now()).build().unwrap();
        clocks.clone().suspend(sandbox.clone()).await;
        assert_eq!((clocks.boot.now(), sandbox.now()), (Some(5 * S), 5 * S + DAY));
        assert_eq!(ahead(&clocks), 0);
        assert_eq!((clocks.day(clocks.start), clocks.day(Instant::now())), (0, 1));
        assert!(!clocks.is_first_day() && !clocks.do_names_hold());
        tokio::time::advance(8 * S).await;
        assert_eq!(ahead(&clocks), A_DAY);
    }

    #[tokio::test(start_paused = true)]
    async fn without_axes_clocks_are_right() {
        for seed in 0..50 {
            let clocks = Clocks::of(&Chooser::rng(seed), Axes::NONE);
            assert_eq!(clocks.wall.now(), wall_clock().now());
            tokio::time::advance(S).await;
            assert_eq!(clocks.wall.now(), clocks.gateway.now());
            assert!(clocks.naps.is_empty() && clocks.is_first_day());
        }
    }
}
