//! Tests a timeout that finds the body unpolled a moment before another thread polls it.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use http::{Request, Response};
use http_body::Body as _;
use steadfast_call::{BoxError, Failure, Fate, Outcome};
use steadfast_dedup::{DedupLayer, GuardedBody, OrderTracker, SendGuardLayer, Unresolved};
use tower::{Layer, Service, ServiceExt};

use crate::{gateway::Body, rig::ORDER};

/// Lets the body go, and then reports that nothing was sent.
#[derive(Clone)]
struct Mistaken;

impl Service<Request<GuardedBody<Body>>> for Mistaken {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<GuardedBody<Body>>) -> Self::Future {
        Box::pin(async move {
            let mut body = Box::pin(request.into_body());
            poll_fn(|cx| body.as_mut().poll_frame(cx)).await;
            Err(Failure::timed_out(Fate::NeverLeft, "looked too early").into())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_let_go_is_in_doubt_whoever_says_that_it_was_not_sent() {
    let tracker = OrderTracker::default();
    let service = DedupLayer::new(&tracker).layer(SendGuardLayer::new(&tracker).layer(Mistaken));
    let request =
        Request::post("https://gateway.example/v2/api/oms/place-order").body(Body::from(ORDER)).unwrap();
    let error = service.oneshot(request).await.unwrap_err();
    assert!(Failure::outcome_of(&*error).is_unknown(), "{error:?} would be sent again");
    assert_ne!(Failure::outcome_of(&*error), Outcome::NotSent);
    assert!(Unresolved::find(&*error).is_some(), "{error:?}");
}
