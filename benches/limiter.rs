//! What does a permit cost?
//!
//! In time: `instructions`, `allocations` and `memory` answer for the rest. Where a row does not say whose clock is
//! read, the instant is given; what we cost includes the lock. What a whole layer costs is a row of `overhead`.

mod permits;

use std::{
    hint::black_box,
    sync::{Arc, Barrier},
    thread,
    time::Duration,
};

use criterion::Criterion;
use futures_util::FutureExt as _;
use parking_lot::Mutex;
use steadfast::{
    BoxError,
    limit::{Account, Lane, Zone},
};
use tokio::{runtime::Builder, time::Instant};

use crate::permits::{MANY, Meter, STEADFAST};

fn main() -> Result<(), BoxError> {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800))
        .sample_size(40)
        .configure_from_args();
    let runtime = Builder::new_current_thread().enable_time().build()?;
    // Some peers make a timer when they are made.
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

/// Two threads that ask for nothing but permits of one key: the worst that can happen to a lock.
fn contention(criterion: &mut Criterion) -> Result<(), BoxError> {
    let mut group = criterion.benchmark_group("acquire, two threads on one key");
    let core = || permits::core(MANY, MANY);
    let zones = [(permits::general(&core()?)?, 7)];
    group.bench_function(STEADFAST, |bencher| {
        bencher.iter_custom(|times| {
            let Ok(core) = core() else { return Duration::MAX };
            let core = Mutex::new(core);
            both(times, || drop(black_box(core.lock().acquire(&permits::ask(&zones, Lane::Critical), 1))))
        });
    });
    group.bench_function("governor ×2", |bencher| {
        bencher.iter_custom(|times| {
            let limits = peers::Governor::with_clock(MANY, MANY, &peers::Given::default());
            both(times, || drop(black_box(limits.take())))
        });
    });
    group.finish();

    let mut group = criterion.benchmark_group("acquire, two threads, clock included");
    group.bench_function(STEADFAST, |bencher| {
        bencher.iter_custom(|times| {
            let Ok(limiter) = permits::shared() else { return Duration::MAX };
            let keys = limiter.keys("api.example", &Account::default());
            both(times, || {
                let permit = limiter.acquire(&[Zone::GENERAL], keys, Lane::Critical).now_or_never();
                std::mem::forget(black_box(permit));
            })
        });
    });
    group.bench_function("governor ×2", |bencher| {
        bencher.iter_custom(|times| {
            let limits = permits::governor_shared();
            both(times, || drop(black_box(limits.take())))
        });
    });
    group.finish();
    Ok(())
}

/// How long two threads take that both do it so many times.
fn both(times: u64, take: impl Fn() + Sync) -> Duration {
    let start = Barrier::new(2);
    let run = || {
        start.wait();
        let begun = Instant::now();
        for _ in 0..times {
            take();
        }
        begun.elapsed()
    };
    thread::scope(|scope| {
        let other = scope.spawn(run);
        let ours = run();
        other.join().map_or(Duration::MAX, |theirs| theirs.max(ours))
    })
}
