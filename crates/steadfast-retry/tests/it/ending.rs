//! A send that is given up has ended, and the layers above learn when.

use std::{
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use steadfast_call::{BoxError, Call, Failure, Fate, Outcome, ext};
use steadfast_retry::{AttemptTimeoutLayer, ClassifyLayer, PEEK_LIMIT, PeekedBody, TimedBody};
use steadfast_spec::Endpoint;
use tokio::time::{Instant, sleep};
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};

use crate::support::{PLACED, Sent, Step, Steps, data, request};

/// A connection that records when it was ended.
#[derive(Debug, Default)]
struct Line(Mutex<Option<Instant>>);

#[expect(clippy::disallowed_types, reason = "the trait has the standard library's")]
impl ext::Connection for Line {
    fn abort(&self) -> Option<std::time::Instant> {
        Some(self.0.lock().unwrap().get_or_insert_with(Instant::now).into_std())
    }
}

/// Returns the fate of an unanswered send over `line` after it was given up.
async fn silence(request: Request<Sent>, line: Arc<Line>) -> Fate {
    let silent = service_fn(move |request: Request<Sent>| {
        let stamp = Call::of(request.extensions()).send().unwrap();
        stamp.set_connection(line.clone());
        assert!(stamp.begin(Instant::now().into_std()));
        pending::<Result<Response<Steps>, BoxError>>()
    });
    let error = AttemptTimeoutLayer::default().layer(silent).oneshot(request).await.unwrap_err();
    Failure::find(&*error).unwrap().fate()
}

#[tokio::test(start_paused = true)]
async fn o01_a_timeout_ends_the_connection_and_says_when() {
    let (start, line) = (Instant::now(), Arc::<Line>::default());
    let end = (start + Duration::from_secs(30)).into_std();
    let mut order = request(Endpoint::PlaceOrder);
    Call::of_mut(order.extensions_mut()).set_send(ext::SendStamp::new());
    assert_eq!(silence(order, line.clone()).await, Fate::Lost { ended: Some(end) });
    assert_eq!(line.0.lock().unwrap().unwrap().into_std(), end);
    // A read has no stamp of its own, but its slot needs the instant.
    let read = request(Endpoint::Orders).map(|_| Sent::default());
    let end = (Instant::now() + Duration::from_secs(30)).into_std();
    assert_eq!(silence(read, Arc::default()).await, Fate::Lost { ended: Some(end) });
}

type Answer = Response<PeekedBody<TimedBody<Steps>>>;

/// Runs Classify over AttemptTimeout over a service that answers at once with this body.
async fn answer(endpoint: Endpoint, line: &Arc<Line>, body: Steps) -> Answer {
    let (mut body, line) = (Some(body), line.clone());
    let inner = service_fn(move |request: Request<Sent>| {
        Call::of(request.extensions()).send().unwrap().set_connection(line.clone());
        let body = body.take().unwrap();
        async { Ok::<_, BoxError>(Response::new(body)) }
    });
    let service = ServiceBuilder::new()
        .layer(ClassifyLayer::new())
        .layer(AttemptTimeoutLayer::default())
        .service(inner);
    service.oneshot(request(endpoint)).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn o01_an_answer_that_is_cut_or_late_ends_its_connection() {
    let second = Duration::from_secs(1);
    for (steps, after) in [
        (vec![data(&PLACED[..20]), Step::Pause(second), Step::Fail("reset")], second),
        (vec![data(&PLACED[..20]), Step::Pause(Duration::from_secs(3600))], Duration::from_secs(30)),
    ] {
        let (start, line) = (Instant::now(), Arc::<Line>::default());
        let answer = answer(Endpoint::PlaceOrder, &line, Steps::new(steps)).await;
        assert!(Outcome::of(answer.extensions()).unwrap().is_unknown());
        let ended = line.0.lock().unwrap().expect("it is ended before anybody asks");
        assert_eq!(ended - start, after);
        // The layers above ask the answer's stamp.
        let stamp = ext::Sent::of(answer.extensions()).stamp().unwrap();
        assert_eq!(stamp.abort(), Some(ended.into_std()));
    }
}

#[tokio::test(start_paused = true)]
async fn o01_a_call_dropped_at_its_answer_ends_its_connection() {
    let line = Arc::<Line>::default();
    let steps = Steps::new([data(&PLACED[..20]), Step::Pause(Duration::from_secs(3600))]);
    let call = answer(Endpoint::PlaceOrder, &line, steps);
    assert!(tokio::time::timeout(Duration::from_secs(1), call).await.is_err());
    assert!(line.0.lock().unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn o01_a_connection_whose_answer_is_whole_stays() {
    let whole = |steps: Vec<Step>| Steps::new(steps);
    for (endpoint, body) in [
        (Endpoint::PlaceOrder, whole(vec![data(PLACED)])),
        (Endpoint::PlaceOrder, whole(vec![data(PLACED)]).knowing_its_end()),
        (Endpoint::PlaceOrder, whole(vec![]).knowing_its_end()),
        // The rest belongs to its reader.
        (Endpoint::PlaceOrder, whole(vec![data(vec![b' '; PEEK_LIMIT + 1]), data("x")])),
        (Endpoint::Orders, whole(vec![data("[]"), Step::Pause(Duration::from_secs(9)), data("x")])),
    ] {
        let (line, read) = (Arc::<Line>::default(), body.read.clone());
        let answer = answer(endpoint, &line, body).await;
        let _: Bytes = answer.into_body().collect().await.unwrap().to_bytes();
        sleep(Duration::from_secs(60)).await;
        assert!(line.0.lock().unwrap().is_none(), "{endpoint:?}, {} bytes", *read.lock().unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn o01_an_answer_that_leaves_doubt_names_its_connection() {
    for (status, endpoint, named) in [
        (502, Endpoint::PlaceOrder, true),
        (504, Endpoint::PlaceOrder, true),
        (400, Endpoint::CancelOrder, true),
        (500, Endpoint::Orders, true),
        (200, Endpoint::PlaceOrder, true),
        (200, Endpoint::Orders, false),
    ] {
        let inner = service_fn(move |_: Request<Sent>| async move {
            Ok::<_, BoxError>(Response::builder().status(status).body(Steps::default())?)
        });
        let answer = AttemptTimeoutLayer::default().layer(inner).oneshot(request(endpoint)).await.unwrap();
        assert_eq!(ext::Sent::of(answer.extensions()).stamp().is_some(), named, "{status} {endpoint:?}");
    }
}
