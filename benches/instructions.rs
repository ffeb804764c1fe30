//! How many instructions does a permit take, and how many a call?
//!
//! Unlike time, the answer is the same on a busy machine. Every case runs under callgrind in a process of its own:
//! first a number of times to fill caches, then again while callgrind counts.

#![expect(clippy::print_stderr, reason = "a bench that cannot answer says why")]

mod asked;
mod layers;
mod loopback;
mod permits;
mod upstream;
mod windows;

use std::{future::poll_fn, hint::black_box, process::Command};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use steadfast::BoxError;
use tokio::runtime::{Builder, Runtime};
use tower::Service;

use crate::{
    asked::Asked,
    layers::{Call, STEADFAST},
};

/// Enough rounds for occasional work, such as a sweep, to show as a fraction.
const TIMES: u64 = 64 * BATCH;
/// Requests are made in batches while callgrind does not count: their place in memory matters.
const BATCH: u64 = 64;

fn main() -> Result<(), BoxError> {
    let asked = Asked::of_us();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    // Some services create a timer when they are made.
    let _entered = runtime.enter();
    let counts = asked != Asked::Table { whole: false } && !matches!(asked, Asked::Once { .. });
    if counts && Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("valgrind is not installed: instructions are not counted");
        return Ok(());
    }
    let mut counter = Counter { asked: &asked, runtime: &runtime, subject: "overhead" };
    if asked.is_about("limiter") {
        permits::each(&mut counter)?;
    }
    if asked.is_about("overhead") {
        layers::each(&mut counter)?;
    }
    if asked.is_about("loopback") {
        counter.subject = "loopback";
        loopback::each(&mut counter)?;
    }
    Ok(())
}

struct Counter<'a> {
    asked: &'a Asked,
    runtime: &'a Runtime,
    // The subject of the calls.
    subject: &'static str,
}

impl Counter<'_> {
    /// Runs the case, or has it counted.
    fn measure(
        &self,
        subject: &str,
        case: &str,
        who: &str,
        run: impl FnOnce(u64) -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        match self.asked {
            Asked::Once { case: wanted, who: whose, .. } if wanted == case && whose == who => run(TIMES),
            Asked::Once { .. } => Ok(()),
            Asked::Table { whole: false } => run(1),
            Asked::Lines { ours: true, .. } if who != STEADFAST => Ok(()),
            asked => {
                let each = collect(subject, case, who)? as f64 / TIMES as f64;
                asked.tell(case, who, each, "instructions");
                Ok(())
            }
        }
    }
}

impl permits::Meter for Counter<'_> {
    fn measure<F: FnMut()>(
        &mut self,
        case: &'static str,
        who: &'static str,
        make: impl Fn() -> Result<F, BoxError>,
    ) -> Result<(), BoxError> {
        Counter::measure(self, "limiter", case, who, |times| {
            let mut take = make()?;
            (0..times).for_each(|_| take());
            under_the_eyes_of_callgrind(|| (0..times).for_each(|_| take()));
            Ok(())
        })
    }
}

impl layers::Meter for Counter<'_> {
    fn measure<S>(
        &mut self,
        case: &'static str,
        who: &'static str,
        call: Call<'_>,
        mut service: S,
    ) -> Result<(), BoxError>
    where
        S: Service<Request<Full<Bytes>>, Error: Into<BoxError>>,
    {
        Counter::measure(self, self.subject, case, who, |times| {
            for first in (0..2 * times).step_by(BATCH as usize) {
                let batch = first..first + BATCH.min(times);
                let requests = batch.map(|number| call(number + 1)).collect::<Result<Vec<_>, _>>()?;
                if first < times {
                    self.runtime.block_on(calls(&mut service, requests))?;
                } else {
                    under_the_eyes_of_callgrind(|| self.runtime.block_on(calls(&mut service, requests)))?;
                }
            }
            Ok(())
        })
    }
}

async fn calls<S>(service: &mut S, requests: Vec<Request<Full<Bytes>>>) -> Result<(), BoxError>
where
    S: Service<Request<Full<Bytes>>, Error: Into<BoxError>>,
{
    for request in requests {
        poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
        drop(black_box(service.call(request).await.map_err(Into::into)?));
    }
    Ok(())
}

/// Callgrind identifies it by its name, and counts while it runs.
#[inline(never)]
fn under_the_eyes_of_callgrind<T>(run: impl FnOnce() -> T) -> T {
    black_box(run())
}

/// Returns the instructions that callgrind counts in a process that runs one case.
fn collect(subject: &str, case: &str, who: &str) -> Result<u64, BoxError> {
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no"])
        .arg("--toggle-collect=*under_the_eyes_of_callgrind*")
        .arg(std::env::current_exe()?)
        .args(["--once", subject, case, who]);
    let output = valgrind.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("callgrind failed on `{case}` of {who}: {said}").into());
    }
    let collected = said.lines().find_map(|line| line.split_once("Collected :"));
    let number: u64 = collected.map_or(Ok(0), |(_, number)| number.trim().parse())?;
    if number == 0 {
        return Err(format!("callgrind counted nothing for `{case}` of {who}: {said}").into());
    }
    Ok(number)
}
