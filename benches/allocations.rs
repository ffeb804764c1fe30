//! How many times does a call allocate, layer by layer and through all of them?
//!
//! A bench of its own, because counting costs time. The request is made beforehand and does not count; the answer does.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

mod layers;

use std::{alloc::System, future::poll_fn, hint::black_box};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use steadfast::BoxError;
use tokio::runtime::{Builder, Runtime};
use tower::Service;

use crate::layers::{Call, Meter};

#[global_allocator]
static COUNTED: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Long enough for tables that grow now and then to show as the fraction that they are.
const CALLS: u64 = 1_000;

fn main() -> Result<(), BoxError> {
    println!("{:22} {:>12} {:>12}", "allocations", "per call", "bytes");
    let runtime = Builder::new_current_thread().enable_time().build()?;
    // Some layers make a timer when they are made.
    let _entered = runtime.enter();
    layers::each(&mut Counter(&runtime))
}

struct Counter<'a>(&'a Runtime);

impl Meter for Counter<'_> {
    fn measure<S>(&mut self, name: &str, call: Call, mut service: S) -> Result<(), BoxError>
    where
        S: Service<Request<Full<Bytes>>, Error: Into<BoxError>>,
    {
        // The first calls fill what is filled once: routes, caches, tables.
        self.0.block_on(count(&mut service, call, 0))?;
        let (times, bytes) = self.0.block_on(count(&mut service, call, CALLS))?;
        let per_call = |total: usize| total as f64 / CALLS as f64;
        println!("{name:22} {:12.2} {:12.0}", per_call(times), per_call(bytes));
        Ok(())
    }
}

/// How often, and how much, a thousand calls allocate; they are numbered from `first` on.
async fn count<S>(service: &mut S, call: Call, first: u64) -> Result<(usize, usize), BoxError>
where
    S: Service<Request<Full<Bytes>>, Error: Into<BoxError>>,
{
    let requests =
        (first..first + CALLS).map(|number| call.request(number + 1)).collect::<Result<Vec<_>, _>>()?;
    let region = Region::new(COUNTED);
    for request in requests {
        poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
        drop(black_box(service.call(request).await.map_err(Into::into)?));
    }
    let change = region.change();
    Ok((change.allocations + change.reallocations, change.bytes_allocated))
}
