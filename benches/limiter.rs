//! Question: what does a permit cost?
//!
//! Measured in time; `instructions`, `allocations` and `memory` cover the rest. A row that names no clock is given
//! the instant. Our cost includes the lock. The cost of a whole layer is a row of `overhead`.

mod permits;
mod windows;

use std::{hint::black_box, sync::Barrier, thread, time::Duration};

use criterion::{BenchmarkGroup, Criterion, measurement::WallTime};
use futures_util::FutureExt as _;
use parking_lot::Mutex;
use steadfast::{
    BoxError,
    limit::{Account, Lane, Zone},
};
use steadfast_verify::peers::{Given, Governor};
use tokio::{runtime::Builder, time::Instant};

use crate::{
    permits::{MANY, Meter, STEADFAST},
    windows::{ask, general},
};

fn main() -> Result<(), BoxError> {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800))
        .sample_size(40)
        .configure_from_args();
    let runtime = Builder::new_current_thread().enable_time().build()?;
    // Some peers create a timer when they are made.
    let _entered = runtime.enter();
    permits::each(&mut Stopwatch(&mut criterion))?;
    contention(&mut criterion)?;
    criterion.final_summary();
    Ok(())
}

struct Stopwatch<'a>(&'a mut Criterion);

impl Meter for Stopwatch<'_> {
    fn measure<F: FnMut()>(
        &mut self,
        case: &'static str,
        who: &'static str,
        make: impl Fn() -> Result<F, BoxError>,
    ) -> Result<(), BoxError> {
        let mut failed = None;
        self.0.benchmark_group(case).bench_function(who, |bencher| {
            bencher.iter_custom(|times| match make() {
                Ok(mut take) => {
                    let start = Instant::now();
                    for _ in 0..times {
                        take();
                    }
                    start.elapsed()
                }
                Err(error) => {
                    failed = Some(error);
                    Duration::MAX
                }
            });
        });
        failed.map_or(Ok(()), Err)
    }
}

/// Two threads that only ask for permits of one key: the worst case for a lock.
fn contention(criterion: &mut Criterion) -> Result<(), BoxError> {
    let mut group = criterion.benchmark_group("acquire, two threads on one key");
    race(&mut group, STEADFAST, || {
        let core = windows::zones(MANY, MANY).build_core()?;
        let zones = [(general(&core)?, 7)];
        let core = Mutex::new(core);
        Ok(move || drop(black_box(core.lock().acquire(&ask(&zones, Lane::Critical), 1))))
    })?;
    race(&mut group, "governor ×2", || {
        let limits = Governor::with_clock(MANY, MANY, &Given::default());
        Ok(move || _ = black_box(limits.take()))
    })?;
    drop(group);

    let mut group = criterion.benchmark_group("acquire, two threads, clock included");
    race(&mut group, STEADFAST, || {
        let limiter = windows::zones(MANY, MANY).build()?;
        let keys = limiter.keys("api.example", &Account::default());
        Ok(move || {
            let permit = limiter.acquire(&[Zone::GENERAL], keys, Lane::Critical).now_or_never();
            std::mem::forget(black_box(permit));
        })
    })?;
    race(&mut group, "governor ×2", || {
        let limits = Governor::new(MANY, MANY);
        Ok(move || _ = black_box(limits.take()))
    })
}

/// Measures one permit while another thread takes as many, from a limiter made by `make`.
fn race<F: Fn() + Sync>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    who: &str,
    make: impl Fn() -> Result<F, BoxError>,
) -> Result<(), BoxError> {
    let mut failed = None;
    group.bench_function(who, |bencher| {
        bencher.iter_custom(|times| match make() {
            Ok(take) => both(times, &take),
            Err(error) => {
                failed = Some(error);
                Duration::MAX
            }
        });
    });
    failed.map_or(Ok(()), Err)
}

/// Returns how long two threads take until both have called `take` so many times.
fn both(times: u64, take: &(impl Fn() + Sync)) -> Duration {
    let start = Barrier::new(2);
    let run = || {
        start.wait();
        let begun = Instant::now();
        (0..times).for_each(|_| take());
        begun.elapsed()
    };
    thread::scope(|scope| {
        let other = scope.spawn(run);
        let one = run();
        other.join().map_or(Duration::MAX, |other| other.max(one))
    })
}
