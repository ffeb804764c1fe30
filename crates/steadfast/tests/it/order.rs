//! Layers put together by hand: a debug build panics at the first request of a stack in the wrong order.

use std::panic::AssertUnwindSafe;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use steadfast::{
    BaseUrl, BoxError, Stack,
    auth::{ApiKey, AuthHeaderLayer, RefreshLayer, TokenSource},
    call::Routes,
    deadline::DeadlineLayer,
    dedup::{DedupLayer, OrderTracker, SendGuardLayer, Settings},
    ext::Place,
    limit::ZoneLimiter,
    retry::{AttemptTimeoutLayer, ClassifyLayer, RetryPolicy},
    route::RouteLayer,
    span::call_spans,
};
use tower::{Layer, Service, ServiceExt, service_fn, util::BoxCloneSyncService};

use crate::world::SECOND;

pub(crate) type Boxed = BoxCloneSyncService<Request<Full<Bytes>>, Response<Full<Bytes>>, BoxError>;

const LIST: &str = "http://localhost/v2/api/oms/orders";

fn request() -> Request<Full<Bytes>> {
    Request::get(LIST).body(Full::default()).unwrap()
}

fn tokens() -> TokenSource {
    TokenSource::fixed(ApiKey::new("key").unwrap(), "token").unwrap()
}

fn base() -> BaseUrl {
    "http://localhost/v2".parse().unwrap()
}

/// Returns a service whose bodies are whole, whatever body type its layers produce.
pub(crate) fn whole<S, A, B>(service: S) -> BoxCloneSyncService<Request<A>, Response<Full<Bytes>>, BoxError>
where
    S: Service<Request<A>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    A: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let service = service.map_err(Into::into);
    BoxCloneSyncService::new(service.and_then(|response: Response<B>| async move {
        let (parts, body) = response.into_parts();
        Ok(Response::from_parts(parts, Full::from(body.collect().await.map_err(Into::into)?.to_bytes())))
    }))
}

/// Returns the same service, for requests with another body.
pub(crate) fn of_any_body<A>(
    service: Boxed,
) -> BoxCloneSyncService<Request<A>, Response<Full<Bytes>>, BoxError>
where
    A: http_body::Body<Data = Bytes> + Send + 'static,
    A::Error: Into<BoxError>,
{
    BoxCloneSyncService::new(service_fn(move |request: Request<A>| {
        let service = service.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map_err(Into::into)?.to_bytes();
            service.oneshot(Request::from_parts(parts, Full::from(body))).await
        }
        .boxed()
    }))
}

/// Puts one layer around a service.
fn around(place: Place, inner: Boxed) -> Boxed {
    let tracker = || OrderTracker::new(Settings::default());
    match place {
        Place::CallSpan => whole(call_spans(base(), Routes::default()).layer(inner)),
        Place::Deadline => whole(DeadlineLayer::new(60 * SECOND).layer(inner)),
        Place::Route => whole(RouteLayer::new(base(), Routes::default()).layer(inner)),
        Place::Dedup => whole(DedupLayer::new(&tracker()).layer(inner)),
        Place::Retry => whole(RetryPolicy::default().layer().layer(inner)),
        Place::Refresh => whole(RefreshLayer::new(tokens()).layer(inner)),
        Place::RateLimit => whole(ZoneLimiter::preset().layer().layer(inner)),
        Place::AuthHeader => whole(AuthHeaderLayer::new(tokens()).layer(inner)),
        Place::SendGuard => whole(SendGuardLayer::new(&tracker()).layer(of_any_body(inner))),
        Place::Classify => whole(ClassifyLayer::new().layer(inner)),
        Place::AttemptTimeout => whole(AttemptTimeoutLayer::default().layer(inner)),
        _ => unreachable!("a place without a layer"),
    }
}

fn answering() -> Boxed {
    let list = r#"{"s":"no-data","msg":"no-data"}"#;
    BoxCloneSyncService::new(service_fn(move |_| async move { Ok(Response::new(Full::from(list))) }))
}

#[tokio::test(start_paused = true)]
async fn every_pair_of_layers_in_the_wrong_order_panics_and_names_both() {
    for outer in Place::ALL {
        for inner in Place::ALL {
            let stack = around(outer, around(inner, answering()));
            let call = AssertUnwindSafe(stack.oneshot(request())).catch_unwind().await;
            if outer <= inner || !cfg!(debug_assertions) {
                assert_eq!(call.expect("the order is right").unwrap().status(), 200, "{outer} {inner}");
                continue;
            }
            let panic = call.expect_err(&format!("{inner} inside of {outer} must panic"));
            let message = panic.downcast_ref::<String>().unwrap();
            let says = format!("{inner} must stand outside of {outer}");
            assert!(message.contains(&says), "{message}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn all_layers_by_hand_in_their_order_send() {
    let stack = Place::ALL.into_iter().rev().fold(answering(), |inner, place| around(place, inner));
    assert_eq!(stack.oneshot(request()).await.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_repeat_is_checked_like_a_first_send() {
    let busy =
        service_fn(|_| async { Ok::<_, BoxError>(Response::builder().status(503).body(Full::default())?) });
    let inner = [Place::AttemptTimeout, Place::Classify, Place::AuthHeader, Place::RateLimit, Place::Refresh];
    let stack = inner.into_iter().fold(BoxCloneSyncService::new(busy), |stack, place| around(place, stack));
    let stack = around(Place::Route, around(Place::Retry, stack));
    assert_eq!(stack.oneshot(request()).await.unwrap().status(), 503, "five sends, and no panic");
}

#[tokio::test(start_paused = true)]
async fn a_transport_may_be_a_stack_of_its_own() {
    let inner = whole(Stack::new(base(), tokens()).service(answering_any()));
    let outer = Stack::new(base(), tokens()).service(of_any_body(inner));
    assert_eq!(outer.oneshot(request()).await.unwrap().status(), 200);
}

fn answering_any<A>() -> BoxCloneSyncService<Request<A>, Response<Full<Bytes>>, BoxError>
where
    A: http_body::Body<Data = Bytes> + Send + 'static,
    A::Error: Into<BoxError>,
{
    of_any_body(answering())
}
