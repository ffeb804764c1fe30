//! The limiter adds errors of its own, so that what the inner service fails with has to be one.

use http::{Request, Response};
use steadfast_limit::ZoneLimiter;
use tower::{Layer, Service, service_fn};

#[derive(Debug)]
struct Offline;

fn serve(_: impl Service<Request<String>>) {}

fn main() {
    let client = service_fn(async |_: Request<String>| Err::<Response<String>, _>(Offline));
    serve(ZoneLimiter::preset().layer().layer(client));
}
