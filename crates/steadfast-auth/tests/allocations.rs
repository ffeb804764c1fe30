//! The cost of a request's token, counted by this binary's own allocator.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    alloc::System,
    convert::Infallible,
    future::{Ready, ready},
    hint::black_box,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header::ACCEPT};
use http_body_util::Full;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use steadfast_auth::{ApiKey, AuthHeaderLayer, RefreshLayer, TokenSource};
use steadfast_call::{Call, Outcome, Route, ext::Sent};
use steadfast_spec::Endpoint;
use tokio_test::task;
use tower::{Layer, Service, ServiceExt};

#[global_allocator]
static COUNTING: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// A leaf that answers at once, with a stamp as every answer of a stack has.
#[derive(Clone, Copy, Debug)]
struct Leaf;

impl<B> Service<Request<B>> for Leaf {
    type Response = Response<()>;
    type Error = Infallible;
    type Future = Ready<Result<Response<()>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        black_box(&request);
        let mut response = Response::new(());
        // As in a stack, where Classify has stamped its outcome. This allocation is the leaf's own.
        Sent::of_mut(response.extensions_mut()).set_outcome(Outcome::Accepted { order_id: None });
        ready(Ok(response))
    }
}

fn request() -> Request<Full<Bytes>> {
    let mut request = Request::get("https://api.example/v2/api/oms/orders").body(Full::default()).unwrap();
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static("*/*"));
    // As in a stack, where Route is further out.
    Call::of_mut(request.extensions_mut()).set_route(Arc::new(Route::new(Endpoint::Orders)));
    request
}

/// Returns allocations and bytes of one call, after a first one that warms up.
fn cost<S>(service: S) -> (usize, usize)
where
    S: Service<Request<Full<Bytes>>> + Clone,
    S::Error: std::fmt::Debug,
{
    let mut last = (0, 0);
    for _ in 0..3 {
        let (request, service) = (request(), service.clone());
        let mut call = task::spawn(service.oneshot(request));
        let region = Region::new(COUNTING);
        let Poll::Ready(response) = call.poll() else { panic!("the leaf answers at once") };
        let counted = region.change();
        drop(response.ok());
        last = (counted.allocations + counted.reallocations, counted.bytes_allocated);
    }
    last
}

// A single test, because the allocator counts all threads.
#[tokio::test]
async fn reading_a_token_allocates_nothing_and_a_given_one_is_attached_without_a_copy_of_the_request() {
    let source = TokenSource::fixed(ApiKey::new("key").unwrap(), "token").unwrap();
    black_box(source.token());
    let region = Region::new(COUNTING);
    for _ in 0..1_000 {
        let token = black_box(source.token()).unwrap();
        black_box((token.generation(), token.is_withdrawn(), token.has_worked()));
    }
    let read = region.change();
    assert_eq!((read.allocations, read.reallocations), (0, 0), "1,000 reads");

    let start = tokio::time::Instant::now();
    for _ in 0..1_000_000 {
        black_box(source.token());
    }
    println!("a read of the token: {:?}", start.elapsed() / 1_000_000);

    let bare = cost(Leaf);
    let header = cost(AuthHeaderLayer::new(source.clone()).layer(Leaf));
    let refresh = RefreshLayer::new(source.clone());
    let both = cost(refresh.layer(AuthHeaderLayer::new(source).layer(Leaf)));
    println!("allocations, bytes: bare {bare:?}, with header {header:?}, with header and refresh {both:?}");
    // The header is formatted once for each token, and a clone only counts references. The generation joins the other
    // stamps of the request and of its answer.
    assert_eq!(header.0, bare.0, "{header:?}");
    assert_eq!(both.0, header.0, "refresh copies nothing of a request with a given token");
}
