//! How much memory does a key of the limiter hold, when it is new, when its windows are full, and when it is idle?
//!
//! Each figure is the live heap that a thousand keys add, divided by a thousand.

mod asked;
mod windows;

use std::{alloc::System, future::poll_fn, time::Duration};

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use steadfast::{
    BoxError,
    limit::{Answer, Decision, Lane, Limiter, Nanos, ZoneId},
};
use steadfast_verify::peers::{Given, Governor, TowerResilience};
use tokio::{runtime::Builder, time::advance};
use tower::{Layer, Service, service_fn};

use crate::{
    asked::Asked,
    windows::{FOUR_HUNDRED, TEN, ask},
};

#[global_allocator]
static COUNTED: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// This crate's name in every table.
const STEADFAST: &str = "steadfast";
const KEYS: u64 = 1_000;
const FRESH: &str = "memory of a new key";
const FULL: &str = "memory of a key with full windows";
const IDLE: &str = "memory of a key that is idle";
const TEN_MINUTES: Duration = Duration::from_secs(600);

fn main() -> Result<(), BoxError> {
    let asked = Asked::of_us();
    if !asked.is_about("limiter") {
        return Ok(());
    }
    ours(&asked)?;
    governors(&asked);
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build()?;
    runtime.block_on(tower_resiliences(&asked))
}

fn tell(asked: &Asked, case: &str, who: &str, region: &Region<'_, System>) {
    let change = region.change();
    let live = change.bytes_allocated.saturating_sub(change.bytes_deallocated);
    asked.tell(case, who, live as f64 / KEYS as f64, "bytes");
}

fn ours(asked: &Asked) -> Result<(), BoxError> {
    const TICK: Nanos = 75_000_000;
    let region = Region::new(COUNTED);
    let mut core = windows::zones(TEN, FOUR_HUNDRED).build_core()?;
    let general = windows::general(&core)?;
    let mut now = TICK;
    every_key(&mut core, general, now);
    tell(asked, FRESH, STEADFAST, &region);

    // Both windows that the universal profile considers, and one more.
    while now < 180_000_000_000 {
        now += TICK;
        every_key(&mut core, general, now);
    }
    tell(asked, FULL, STEADFAST, &region);

    core.snapshot(now + TEN_MINUTES.as_nanos() as Nanos);
    tell(asked, IDLE, STEADFAST, &region);
    Ok(())
}

/// Sends one request of each key that has room, and answers it at once.
fn every_key(core: &mut Limiter, general: ZoneId, now: Nanos) {
    for key in 0..KEYS {
        // Keys are well-spread hashes.
        let zones = [(general, key.wrapping_mul(0x9E37_79B9_7F4A_7C15))];
        match core.acquire(&ask(&zones, Lane::Critical), now) {
            Decision::Granted(grant) => core.settle(grant, Answer::Accepted, now),
            Decision::Queued { waiter, .. } => core.cancel(waiter, now),
            Decision::Refused(_) => {}
        }
    }
}

fn governors(asked: &Asked) {
    const WHO: &str = "governor ×2";
    let clock = Given::default();
    let region = Region::new(COUNTED);
    let limits: Vec<_> = (0..KEYS).map(|_| Governor::with_clock(TEN, FOUR_HUNDRED, &clock)).collect();
    tell(asked, FRESH, WHO, &region);
    for _ in 0..400 {
        limits.iter().for_each(|limits| _ = limits.take());
    }
    tell(asked, FULL, WHO, &region);
    clock.set(TEN_MINUTES.as_nanos() as u64);
    tell(asked, IDLE, WHO, &region);
}

async fn tower_resiliences(asked: &Asked) -> Result<(), BoxError> {
    const WHO: &str = "tower-resilience ×2, sliding log";
    let region = Region::new(COUNTED);
    let layers = TowerResilience::sliding_log().rate_limits(TEN, FOUR_HUNDRED)?;
    let noop = || service_fn(|()| std::future::ready(Ok::<_, BoxError>(())));
    let mut services: Vec<_> = (0..KEYS).map(|_| layers.layer(noop())).collect();
    tell(asked, FRESH, WHO, &region);
    for _ in 0..40 {
        for service in &mut services {
            for _ in 0..10 {
                poll_fn(|cx| service.poll_ready(cx)).await?;
                service.call(()).await?;
            }
        }
        advance(Duration::from_secs(1)).await;
    }
    tell(asked, FULL, WHO, &region);
    advance(TEN_MINUTES).await;
    tell(asked, IDLE, WHO, &region);
    Ok(())
}
