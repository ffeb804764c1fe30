//! How many times does a permit allocate, and how many times a call, layer by layer and through all of them?
//!
//! A separate bench, because counting costs time. The request is made before and does not count; the answer does.

mod asked;
mod layers;
mod loopback;
mod permits;
mod upstream;
mod windows;

use std::{alloc::System, future::poll_fn, hint::black_box};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, Stats, StatsAlloc};
use steadfast::BoxError;
use tokio::runtime::{Builder, Runtime};
use tower::Service;

use crate::{asked::Asked, layers::Call};

#[global_allocator]
static COUNTED: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Enough rounds for occasional growth of tables to show as a fraction.
const TIMES: u64 = 1_000;

fn main() -> Result<(), BoxError> {
    let asked = Asked::of_us();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    // Some layers create a timer when they are made.
    let _entered = runtime.enter();
    let mut counter = Counter { asked: &asked, runtime: &runtime };
    if asked.is_about("limiter") {
        permits::each(&mut counter)?;
    }
    if asked.is_about("overhead") {
        layers::each(&mut counter)?;
    }
    if asked.is_about("loopback") {
        loopback::each(&mut counter)?;
    }
    Ok(())
}

struct Counter<'a> {
    asked: &'a Asked,
    runtime: &'a Runtime,
}

impl Counter<'_> {
    fn tell(&self, case: &str, who: &str, change: Stats) {
        let each = |total: usize| total as f64 / TIMES as f64;
        self.asked.tell(case, who, each(change.allocations + change.reallocations), "allocations");
        self.asked.tell(case, who, each(change.bytes_allocated), "bytes allocated");
    }
}

impl permits::Meter for Counter<'_> {
    fn measure<F: FnMut()>(
        &mut self,
        case: &'static str,
        who: &'static str,
        make: impl Fn() -> Result<F, BoxError>,
    ) -> Result<(), BoxError> {
        let mut take = make()?;
        // The first rounds fill whatever is filled only once.
        (0..TIMES).for_each(|_| take());
        let region = Region::new(COUNTED);
        (0..TIMES).for_each(|_| take());
        self.tell(case, who, region.change());
        Ok(())
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
        // The first calls fill whatever is filled only once: routes, caches, tables.
        self.runtime.block_on(count(&mut service, call, 0))?;
        let change = self.runtime.block_on(count(&mut service, call, TIMES))?;
        self.tell(case, who, change);
        Ok(())
    }
}

/// Returns how often, and how much, a thousand calls allocate. They are numbered from `first` on.
async fn count<S>(service: &mut S, call: Call<'_>, first: u64) -> Result<Stats, BoxError>
where
    S: Service<Request<Full<Bytes>>, Error: Into<BoxError>>,
{
    let requests = (first..first + TIMES).map(|number| call(number + 1)).collect::<Result<Vec<_>, _>>()?;
    let region = Region::new(COUNTED);
    for request in requests {
        poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
        drop(black_box(service.call(request).await.map_err(Into::into)?));
    }
    Ok(region.change())
}
