//! How much time does a call cost, layer by layer and through all of them, when nothing waits and nothing fails?
//!
//! Every row is a whole call over a service that answers at once. A layer's cost is its row less the row `nothing`.
//! `instructions` and `allocations` answer the same question for their units.

mod layers;

use std::{future::poll_fn, hint::black_box, time::Duration};

use bytes::Bytes;
use criterion::Criterion;
use http::Request;
use http_body_util::Full;
use steadfast::BoxError;
use tokio::{
    runtime::{Builder, Runtime},
    time::Instant,
};
use tower::Service;

use crate::layers::{Call, Meter};

/// Requests are made in batches of this size, outside the measured time.
const BATCH: u64 = 64;

fn main() -> Result<(), BoxError> {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800))
        .sample_size(40)
        .configure_from_args();
    let runtime = Builder::new_current_thread().enable_time().build()?;
    // Some layers create a timer when they are made.
    let _entered = runtime.enter();
    layers::each(&mut Stopwatch { criterion: &mut criterion, runtime: &runtime })?;
    criterion.final_summary();
    Ok(())
}

struct Stopwatch<'a> {
    criterion: &'a mut Criterion,
    runtime: &'a Runtime,
}

impl Meter for Stopwatch<'_> {
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
        let mut failed = None;
        self.criterion.benchmark_group(case).bench_function(who, |bencher| {
            bencher.iter_custom(|calls| {
                let took = self.runtime.block_on(time(&mut service, call, calls));
                took.unwrap_or_else(|error| {
                    failed = Some(error);
                    Duration::MAX
                })
            });
        });
        failed.map_or(Ok(()), Err)
    }
}

/// Returns how long this many calls take, one after the other.
async fn time<S>(service: &mut S, call: Call<'_>, calls: u64) -> Result<Duration, BoxError>
where
    S: Service<Request<Full<Bytes>>, Error: Into<BoxError>>,
{
    let mut took = Duration::ZERO;
    let mut number = 0;
    while number < calls {
        let batch = number..calls.min(number + BATCH);
        number = batch.end;
        let requests = batch.map(|number| call(number + 1)).collect::<Result<Vec<_>, _>>()?;
        let start = Instant::now();
        for request in requests {
            poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
            drop(black_box(service.call(request).await.map_err(Into::into)?));
        }
        took += start.elapsed();
    }
    Ok(took)
}
