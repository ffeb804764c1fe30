//! The ways to a permit for `limiter` and `allocations`, beside those of other crates for the same two windows.

use std::{hint::black_box, num::NonZeroU32};

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use steadfast::{
    BoxError,
    limit::{Account, Answer, Ask, Decision, Lane, Limiter, Nanos, SECOND, Zone},
};
use steadfast_verify::peers::{Given, Governor, LeakyBucket, TowerResilience, rate_limits};
use tower::{Layer, Service, service_fn};

use crate::windows::{FOUR_HUNDRED, TEN, ask, general, zones};

/// This crate's name in every table.
pub(crate) const STEADFAST: &str = "steadfast";

/// Measures one way to a permit.
pub(crate) trait Meter {
    /// `make` makes an unused limiter, and a closure that takes one permit from it.
    fn measure<F: FnMut()>(
        &mut self,
        case: &'static str,
        who: &'static str,
        make: impl Fn() -> Result<F, BoxError>,
    ) -> Result<(), BoxError>;
}

/// Passes every way to `meter`.
pub(crate) fn each(meter: &mut impl Meter) -> Result<(), BoxError> {
    const ACQUIRE: &str = "acquire, two windows at once";
    meter.measure(ACQUIRE, STEADFAST, || acquire(Lane::Critical))?;
    meter.measure(ACQUIRE, "governor ×2", || governor(MANY, MANY, MOMENT))?;
    meter.measure(ACQUIRE, "leaky-bucket ×2, its clock", leaky_bucket)?;
    meter.measure(ACQUIRE, "tower-resilience ×2, its clock", tower_resilience)?;

    const PACED: &str = "acquire, a lane that is paced";
    meter.measure(PACED, STEADFAST, || acquire(Lane::Normal))?;
    meter.measure(PACED, "governor ×2", || governor(MANY, MANY, MOMENT))?;

    const SETTLE: &str = "acquire and settle, 150 a minute";
    meter.measure(SETTLE, STEADFAST, || acquire_and_settle(400 * MILLISECOND))?;
    meter.measure(SETTLE, "governor ×2", || governor(TEN, FOUR_HUNDRED, 400 * MILLISECOND))?;

    const SATURATED: &str = "wait, poll and settle, 400 a minute";
    meter.measure(SATURATED, STEADFAST, saturated)?;

    const OWN_CLOCK: &str = "acquire, clock included";
    meter.measure(OWN_CLOCK, STEADFAST, zone_limiter)?;
    meter.measure(OWN_CLOCK, "governor ×2", governor_with_its_clock)?;
    meter.measure(OWN_CLOCK, "leaky-bucket ×2", leaky_bucket)?;
    meter.measure(OWN_CLOCK, "tower ×2", tower)?;
    meter.measure(OWN_CLOCK, "tower-resilience ×2", tower_resilience)
}

const MILLISECOND: Nanos = 1_000_000;
/// The time between two calls in quick succession.
const MOMENT: Nanos = 100;

/// A limit that no bench reaches: the way to a permit is measured, not the wait for it.
pub(crate) const MANY: NonZeroU32 = NonZeroU32::MIN.saturating_add(15_000_000 - 1);

/// The core behind a lock, with the stamps of a busy minute in its log.
fn acquire(lane: Lane) -> Result<impl FnMut(), BoxError> {
    let mut core = zones(MANY, MANY).build_core()?;
    let zones = [(general(&core)?, 7)];
    let mut now = SECOND.as_nanos() as Nanos;
    for _ in 0..400 {
        now += 150 * MILLISECOND;
        request(&mut core, &ask(&zones, Lane::Critical), &mut now);
    }
    let core = Mutex::new(core);
    Ok(move || {
        now += MOMENT;
        let granted = core.lock().acquire(&ask(black_box(&zones), lane), now);
        debug_assert!(matches!(granted, Decision::Granted(_)));
        // It stays spent; another row measures giving it back.
        let _ = black_box(granted);
    })
}

/// A whole request within the service's own limits, far from both.
fn acquire_and_settle(every: Nanos) -> Result<impl FnMut(), BoxError> {
    let mut core = zones(TEN, FOUR_HUNDRED).build_core()?;
    let zones = [(general(&core)?, 7)];
    let mut now = SECOND.as_nanos() as Nanos;
    for _ in 0..400 {
        now += every;
        request(&mut core, &ask(&zones, Lane::Critical), &mut now);
    }
    let core = Mutex::new(core);
    Ok(move || {
        now += every;
        let granted = core.lock().acquire(&ask(black_box(&zones), Lane::Critical), now);
        if let Decision::Granted(grant) = granted {
            now += 20 * MILLISECOND;
            core.lock().settle(grant, Answer::Accepted, now);
        }
    })
}

/// A whole request of a saturated client: it is queued, polled at its alarm, and settled.
fn saturated() -> Result<impl FnMut(), BoxError> {
    let mut core = zones(TEN, FOUR_HUNDRED).build_core()?;
    let zones = [(general(&core)?, 7)];
    let mut now = SECOND.as_nanos() as Nanos;
    // After two minutes every stamp of the last two windows matters.
    for _ in 0..1_200 {
        request(&mut core, &ask(&zones, Lane::Critical), &mut now);
    }
    let core = Mutex::new(core);
    Ok(move || request(&mut core.lock(), &ask(black_box(&zones), Lane::Critical), &mut now))
}

/// Makes one request, from the question to the answer, at once or when the zone has room. Moves `now` along.
fn request(core: &mut Limiter, ask: &Ask<'_>, now: &mut Nanos) {
    let mut decision = core.acquire(ask, *now);
    while let Decision::Queued { waiter, alarm: Some(alarm) } = decision {
        *now = alarm;
        let Some(polled) = core.poll(waiter, *now) else { return };
        decision = polled;
    }
    if let Decision::Granted(grant) = decision {
        *now += 20 * MILLISECOND;
        core.settle(grant, Answer::Accepted, *now);
    }
}

/// The limiter as its users have it: its own lock, tokio's clock, and a future.
fn zone_limiter() -> Result<impl FnMut(), BoxError> {
    let limiter = zones(MANY, MANY).build()?;
    let keys = limiter.keys("api.example", &Account::default());
    Ok(move || {
        let permit = limiter.acquire(black_box(&[Zone::GENERAL]), keys, Lane::Critical).now_or_never();
        debug_assert!(matches!(permit, Some(Ok(_))));
        // Another row measures giving it back.
        std::mem::forget(black_box(permit));
    })
}

fn governor(second: NonZeroU32, minute: NonZeroU32, every: Nanos) -> Result<impl FnMut(), BoxError> {
    let clock = Given::default();
    let limits = Governor::with_clock(second, minute, &clock);
    let mut now = 0;
    Ok(move || {
        now += every;
        clock.set(now);
        let taken = black_box(&limits).take();
        debug_assert!(taken);
        black_box(taken);
    })
}

fn governor_with_its_clock() -> Result<impl FnMut(), BoxError> {
    let limits = Governor::new(MANY, MANY);
    Ok(move || {
        black_box(black_box(&limits).take());
    })
}

fn leaky_bucket() -> Result<impl FnMut(), BoxError> {
    let limits = LeakyBucket::new(MANY, MANY);
    Ok(move || {
        black_box(black_box(&limits).take());
    })
}

fn tower() -> Result<impl FnMut(), BoxError> {
    Ok(calls(rate_limits(MANY, MANY).service(service_fn(|()| std::future::ready(Ok::<_, BoxError>(()))))))
}

fn tower_resilience() -> Result<impl FnMut(), BoxError> {
    let limits = TowerResilience::fixed_window().rate_limits(MANY, MANY)?;
    Ok(calls(limits.layer(service_fn(|()| std::future::ready(Ok::<_, BoxError>(()))))))
}

/// Calls a service that is always ready and answers at once.
fn calls(mut service: impl Service<(), Response = ()>) -> impl FnMut() {
    move || {
        let ready = std::future::poll_fn(|cx| service.poll_ready(cx)).now_or_never();
        debug_assert!(ready.is_some_and(|ready| ready.is_ok()));
        black_box(service.call(()).now_or_never());
    }
}
