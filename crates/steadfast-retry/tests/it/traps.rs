//! Mistakes of other stacks, one test each. `cargo xtask planted` makes each mistake and sees its test fail.

use std::{
    convert::Infallible,
    future::{Ready, pending, ready},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, header::AUTHORIZATION};
use http_body_util::{BodyExt, combinators::BoxBody};
use steadfast_call::{BoxError, Failure, Fate};
use steadfast_retry::{AttemptTimeoutLayer, BufferBodyLayer, ClassifyLayer, Jitter, RetryPolicy};
use steadfast_spec::Endpoint;
use steadfast_verify::probes::{Strict, drop_at_every_poll};
use tokio::time::{Instant, sleep};
use tower::{
    Layer, Service, ServiceBuilder, ServiceExt, layer::layer_fn, limit::ConcurrencyLimitLayer, service_fn,
};

use crate::support::{Reply, Script, Sent, Step, Steps, data, request, secs};

fn policy() -> RetryPolicy {
    RetryPolicy::default().jitter(Jitter::NONE)
}

fn boxed(endpoint: Endpoint) -> Request<BoxBody<Bytes, Infallible>> {
    request(endpoint).map(BodyExt::boxed)
}

/// Polls a service ready, as a caller must, and calls it.
fn ready_for<S, B>(service: &mut S, request: Request<B>) -> S::Future
where
    S: Service<Request<B>>,
{
    let mut cx = Context::from_waker(std::task::Waker::noop());
    assert!(service.poll_ready(&mut cx).is_ready());
    service.call(request)
}

#[tokio::test(start_paused = true)]
async fn the_service_that_was_polled_ready_is_the_one_that_is_called() {
    let strict = Strict::new(Script::new([Reply::Status(500)]));
    let uses = strict.uses();
    let mut stack = ServiceBuilder::new()
        .layer(BufferBodyLayer::new())
        .layer(policy().layer())
        .layer(ClassifyLayer::new())
        .layer(AttemptTimeoutLayer::default())
        .service(strict);
    for _ in 0..2 {
        ready_for(&mut stack, boxed(Endpoint::Orders)).await.unwrap();
    }
    assert_eq!((uses.calls(), uses.running()), (10, 0));
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_at_any_poll_leaves_nothing_behind() {
    let wire = Script::new([Reply::Status(500), Reply::Status(429), Reply::NeverLeft, Reply::Status(200)]);
    let strict = Strict::new(wire);
    let uses = strict.uses();
    let stack = ServiceBuilder::new()
        .layer(BufferBodyLayer::new())
        .layer(policy().layer())
        .layer(ConcurrencyLimitLayer::new(1))
        .layer(ClassifyLayer::new())
        .layer(AttemptTimeoutLayer::default())
        .service(strict);
    let start = || {
        let slow = [Step::Pause(Duration::from_secs(1)), data("a=1")];
        let request = Request::get("https://host/v2/api/oms/orders").body(Steps::new(slow)).unwrap();
        stack.clone().oneshot(request)
    };
    let check = |polls| {
        let calls = uses.calls();
        let uses = &uses;
        async move {
            assert_eq!(uses.running(), 0, "after {polls} polls");
            sleep(Duration::from_secs(60)).await;
            assert_eq!(uses.calls(), calls, "nothing is sent after {polls} polls");
        }
    };
    // If any of them had kept the one permit, this would not end.
    let (result, polls) = drop_at_every_poll(start, check).await;
    assert_eq!(result.unwrap().status(), 200);
    assert!(polls > 4, "{polls}");
}

#[tokio::test(start_paused = true)]
async fn a_readied_service_that_is_never_called_holds_nothing_while_a_repeat_waits() {
    // tower's limit grants its one permit in `poll_ready`: a readied clone that is kept starves all others.
    let script = Script::new([Reply::Status(500)]);
    let stack = ServiceBuilder::new()
        .layer(BufferBodyLayer::new())
        .layer(policy().layer())
        .layer(ConcurrencyLimitLayer::new(1))
        .layer(ClassifyLayer::new())
        .layer(AttemptTimeoutLayer::default())
        .service(script.clone());
    let mut polled_and_dropped = stack.clone();
    ServiceExt::<Request<BoxBody<Bytes, Infallible>>>::ready(&mut polled_and_dropped).await.unwrap();
    let calls: Vec<_> =
        (0..10).map(|_| tokio::spawn(stack.clone().oneshot(boxed(Endpoint::Orders)))).collect();
    let all = async {
        for call in calls {
            call.await.unwrap().unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(60), all).await.expect("a deadlock");
    assert_eq!(script.sends(), 50);
}

#[tokio::test(start_paused = true)]
async fn a_permit_taken_in_poll_ready_comes_back_when_the_call_is_dropped() {
    let limit = tower::limit::GlobalConcurrencyLimitLayer::new(1);
    let silent = service_fn(|_: Request<Sent>| pending::<Result<Response<Sent>, BoxError>>());
    let stack = ServiceBuilder::new()
        .layer(policy().layer())
        .layer(ClassifyLayer::new())
        .layer(AttemptTimeoutLayer::default())
        .layer(limit)
        .service(silent);
    for _ in 0..3 {
        let call = stack.clone().oneshot(request(Endpoint::Orders));
        assert!(tokio::time::timeout(Duration::from_secs(1), call).await.is_err());
    }
    let mut free = stack.clone();
    tokio::time::timeout(Duration::from_secs(1), free.ready()).await.expect("the permit is free").unwrap();
}

#[tokio::test(start_paused = true)]
async fn every_repeat_takes_a_permit_of_its_own() {
    let permits = Arc::new(AtomicUsize::new(0));
    let taken = permits.clone();
    let count = layer_fn(move |inner: Script| {
        let taken = taken.clone();
        service_fn(move |request: Request<Sent>| {
            taken.fetch_add(1, Ordering::Relaxed);
            inner.clone().oneshot(request)
        })
    });
    let script = Script::new([Reply::Status(429)]);
    let stack = ServiceBuilder::new().layer(policy().layer()).layer(count).service(script.clone());
    stack.oneshot(request(Endpoint::PlaceOrder)).await.unwrap();
    assert_eq!((permits.load(Ordering::Relaxed), script.sends()), (5, 5));
}

#[tokio::test(start_paused = true)]
async fn a_repeat_is_sent_with_a_header_of_its_own() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (log, number) = (seen.clone(), Arc::new(AtomicU64::new(0)));
    let stack = ServiceBuilder::new()
        .layer(policy().layer())
        .map_request(move |mut request: Request<Sent>| {
            assert!(request.headers().get(AUTHORIZATION).is_none(), "a header of an earlier send");
            let token = format!("token-{}", number.fetch_add(1, Ordering::Relaxed));
            request.headers_mut().insert(AUTHORIZATION, token.parse().unwrap());
            request
        })
        .service(service_fn(move |request: Request<Sent>| {
            log.lock().unwrap().push(request.headers()[AUTHORIZATION].to_str().unwrap().to_owned());
            ready(Reply::Status(500).give())
        }));
    stack.oneshot(request(Endpoint::Orders)).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["token-0", "token-1", "token-2", "token-3", "token-4"]);
}

#[tokio::test(start_paused = true)]
async fn time_in_a_queue_is_not_counted_as_slowness_of_the_server() {
    let start = Instant::now();
    let answer = service_fn(|_: Request<Sent>| async {
        sleep(Duration::from_secs(29)).await;
        Reply::Status(200).give()
    });
    let timed = AttemptTimeoutLayer::default().layer(answer);
    let queue = service_fn(move |request: Request<Sent>| {
        let mut timed = timed;
        async move {
            // Ready long before it is called, as behind a buffer.
            timed.ready().await?;
            sleep(Duration::from_secs(60)).await;
            timed.call(request).await
        }
    });
    let response = queue.oneshot(request(Endpoint::Orders)).await.unwrap();
    assert_eq!((response.status().as_u16(), start.elapsed().as_secs()), (200, 89));
}

#[tokio::test(start_paused = true)]
async fn time_until_the_transport_is_ready_is_not_counted_either() {
    // A pool with one connection, taken for a minute.
    let limit = tower::limit::GlobalConcurrencyLimitLayer::new(1);
    let answer = service_fn(|_: Request<Sent>| async {
        sleep(Duration::from_secs(25)).await;
        Reply::Status(200).give()
    });
    let stack = ServiceBuilder::new().layer(AttemptTimeoutLayer::default()).layer(limit).service(answer);
    let calls: Vec<_> =
        (0..4).map(|_| tokio::spawn(stack.clone().oneshot(request(Endpoint::Orders)))).collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().status(), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_local_refusal_is_not_repeated() {
    for endpoint in Endpoint::SPECIFIED {
        let script = Script::new([Reply::Refused]);
        let start = Instant::now();
        let error = policy().layer().layer(script.clone()).oneshot(request(endpoint)).await.unwrap_err();
        assert_eq!((script.sends(), start.elapsed()), (1, Duration::ZERO));
        assert!(error.downcast_ref::<Failure>().is_some_and(Failure::is_refusal), "untouched");
    }
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_message_is_not_taken_for_not_sent() {
    // Two well-known crates repeat any request whose connection closed before the message was complete.
    for (endpoint, sends) in [(Endpoint::PlaceOrder, 1), (Endpoint::ModifyOrder, 1), (Endpoint::Orders, 5)] {
        let script = Script::new([Reply::Lost]);
        let _ = policy().layer().layer(script.clone()).oneshot(request(endpoint)).await;
        assert_eq!(script.sends(), sends, "{endpoint:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn whole_second_delays_have_jitter_too() {
    // tower's exponential backoff truncates its jitter to whole seconds: at these delays to none.
    let script = Script::new([Reply::Status(500)]);
    policy()
        .jitter(Jitter::percent(10))
        .seed(7)
        .layer()
        .layer(script.clone())
        .oneshot(request(Endpoint::Orders))
        .await
        .unwrap();
    let trace = script.trace();
    assert_ne!(trace, secs([0, 1, 3, 7, 15]));
    for (waited, scheduled) in trace.windows(2).map(|w| w[1] - w[0]).zip(secs([1, 2, 4, 8])) {
        assert!(waited >= scheduled && waited <= scheduled.mul_f64(1.1) + Duration::from_millis(1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_never_sent_again_as_an_empty_body() {
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let log = bodies.clone();
    let echo =
        service_fn(move |request: Request<steadfast_retry::BufferedBody<BoxBody<Bytes, Infallible>>>| {
            let log = log.clone();
            async move {
                let body = request.into_body().collect().await?.to_bytes();
                log.lock().unwrap().push(body.len());
                Err::<Response<Sent>, BoxError>(Failure::new(Fate::NeverLeft, "no route to host").into())
            }
        });
    for (limit, sends) in [(64, vec![64; 5]), (63, vec![64])] {
        let stack = ServiceBuilder::new()
            .layer(BufferBodyLayer::new().limit(limit))
            .layer(policy().layer())
            .service(echo.clone());
        let body = Sent::from(vec![b'x'; 64]).boxed();
        let request = Request::post("https://host/v2/api/oms/place-order").body(body).unwrap();
        stack.oneshot(request).await.unwrap_err();
        assert_eq!(std::mem::take(&mut *bodies.lock().unwrap()), sends, "limit {limit}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_layer_that_waits_is_always_ready_and_asks_for_readiness_after_the_wait() {
    let asked = Arc::new(AtomicBool::new(false));
    #[derive(Clone)]
    struct Watched(Arc<AtomicBool>);
    impl<B> Service<Request<B>> for Watched {
        type Response = Response<Sent>;
        type Error = BoxError;
        type Future = Ready<Result<Response<Sent>, BoxError>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
            self.0.store(true, Ordering::Relaxed);
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<B>) -> Self::Future {
            ready(Reply::Status(200).give())
        }
    }
    let mut stack = BufferBodyLayer::new().layer(Watched(asked.clone()));
    let slow = Steps::new([Step::Pause(Duration::from_secs(5)), data("x")]);
    let call = tokio::spawn(ready_for(&mut stack, Request::new(slow)));
    sleep(Duration::from_secs(4)).await;
    assert!(!asked.load(Ordering::Relaxed), "nothing is held while the body is read");
    assert_eq!(call.await.unwrap().unwrap().status(), 200);
    assert!(asked.load(Ordering::Relaxed));
}

#[tokio::test]
async fn debug_output_of_a_request_holds_no_form() {
    let secret = Request::new(steadfast_retry::BufferedBody::<Sent>::from(Bytes::from("password=hunter2")));
    assert!(!format!("{secret:?}").contains("hunter2"));
    assert!(!format!("{:?}", policy()).is_empty());
}
