//! Retry reads what `ClassifyLayer` says of an answer, which must stand between it and the client.

use http::{Request, Response};
use steadfast_retry::RetryPolicy;
use tower::{Layer, Service, service_fn};

fn serve(_: impl Service<Request<String>>) {}

fn main() {
    let client =
        service_fn(async |_: Request<String>| Ok::<_, std::io::Error>(Response::new(String::new())));
    serve(RetryPolicy::default().layer().layer(client));
}
