//! How many instructions does a permit take, and how many a call?
//!
//! Unlike time, the answer is the same on a busy machine. Every case runs under callgrind twice, once so many times and
//! once twice as often, in processes of their own; the difference is the case's alone.

#![expect(clippy::print_stderr, reason = "a bench that cannot answer says why")]

mod asked;
mod layers;
mod permits;

use std::{future::poll_fn, hint::black_box, process::Command};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use steadfast::BoxError;
use tokio::runtime::{Builder, Runtime};
use tower::Service;

use crate::{asked::Asked, layers::Call};

/// Often enough for what happens now and then, such as a sweep, to show as the fraction that it is.
const TIMES: u64 = 4_000;

fn main() -> Result<(), BoxError> {
    let asked = Asked::of_us()?;
    let runtime = Builder::new_current_thread().enable_time().build()?;
    // Some services make a timer when they are made.
    let _entered = runtime.enter();
    let counts = asked != Asked::Table { whole: false } && !matches!(asked, Asked::Once { .. });
    if counts && Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("valgrind is not installed: instructions are not counted");
        return Ok(());
    }
    let mut counter = Counter { asked: &asked, runtime: &runtime };
    if asked.is_about("limiter") {
        permits::each(&mut counter)?;
    }
    if asked.is_about("overhead") {
        layers::each(&mut counter)?;
    }
    Ok(())
}

struct Counter<'a> {
    asked: &'a Asked,
    runtime: &'a Runtime,
}

impl Counter<'_> {
    /// Does it as often as asked, or has it counted; `run` does it so many times.
    fn measure(
        &self,
        subject: &str,
        case: &str,
        who: &str,
        run: impl FnOnce(u64) -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        match self.asked {
            Asked::Once { case: wanted, who: whose, times, .. } if wanted == case && whose == who => {
                run(*times)
            }
            Asked::Once { .. } => Ok(()),
            Asked::Table { whole: false } => run(1),
            asked => {
                let (less, more) =
                    (collect(subject, case, who, TIMES)?, collect(subject, case, who, 2 * TIMES)?);
                asked.tell(case, who, more.saturating_sub(less) as f64 / TIMES as f64, "instructions");
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
            Ok(())
        })
    }
}

impl layers::Meter for Counter<'_> {
    fn measure<S>(
        &mut self,
        case: &'static str,
        who: &'static str,
        call: Call,
        mut service: S,
    ) -> Result<(), BoxError>
    where
        S: Service<Request<Full<Bytes>>, Error: Into<BoxError>>,
    {
        Counter::measure(self, "overhead", case, who, |times| {
            self.runtime.block_on(calls(&mut service, call, times))
        })
    }
}

/// Calls so many times, and makes as many requests however many that is, so that making them is in no difference.
async fn calls<S>(service: &mut S, call: Call, times: u64) -> Result<(), BoxError>
where
    S: Service<Request<Full<Bytes>>, Error: Into<BoxError>>,
{
    let requests = (0..2 * TIMES).map(|number| call.request(number + 1)).collect::<Result<Vec<_>, _>>()?;
    let mut requests = requests.into_iter();
    for request in requests.by_ref().take(times as usize) {
        poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
        drop(black_box(service.call(request).await.map_err(Into::into)?));
    }
    // Dropping a request is part of a call.
    std::mem::forget(requests);
    Ok(())
}

/// All instructions of a process that runs a case so many times.
fn collect(subject: &str, case: &str, who: &str, times: u64) -> Result<u64, BoxError> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(std::env::current_exe()?);
    let output = valgrind.args(["--once", subject, case, who, &times.to_string()]).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("callgrind failed on `{case}` of {who}: {said}").into());
    }
    let collected = said.lines().find_map(|line| line.split_once("Collected :"));
    let (_, number) = collected.ok_or_else(|| format!("callgrind counted nothing: {said}"))?;
    Ok(number.trim().parse()?)
}
