use std::{future::pending, time::Duration};

use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use steadfast_call::{BoxError, Call, Failure, Fate, Outcome, Resend, ext};
use steadfast_retry::{AttemptTimedOut, AttemptTimeoutLayer, BodyStalled, ClassifyLayer};
use steadfast_spec::Endpoint;
use tokio::time::{Instant, sleep};
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};

use crate::support::{PLACED, Sent, Step, Steps, data, request};

const ATTEMPT: Duration = Duration::from_secs(30);
const HOUR: Duration = Duration::from_secs(3600);

/// Returns the duration and the error of a send that is never answered.
async fn silence(request: Request<Sent>) -> (Duration, BoxError) {
    let start = Instant::now();
    let silent = service_fn(|_: Request<Sent>| pending::<Result<Response<Steps>, BoxError>>());
    let error = AttemptTimeoutLayer::default().layer(silent).oneshot(request).await.unwrap_err();
    (start.elapsed(), error)
}

fn fate(error: &BoxError) -> Fate {
    Failure::find(&**error).unwrap().fate()
}

#[tokio::test(start_paused = true)]
async fn a_blank_stamp_proves_that_nothing_left() {
    let mut request = request(Endpoint::PlaceOrder);
    Call::of_mut(request.extensions_mut()).set_send(ext::SendStamp::new());
    let (after, error) = silence(request).await;
    assert_eq!((after, fate(&error)), (ATTEMPT, Fate::NeverLeft));
    let timed_out = std::error::Error::source(&*error).unwrap().downcast_ref::<AttemptTimedOut>();
    assert_eq!(timed_out.unwrap().after(), ATTEMPT);
}

#[tokio::test(start_paused = true)]
async fn a_written_stamp_or_none_at_all_leaves_the_send_in_doubt() {
    let (_, error) = silence(request(Endpoint::PlaceOrder)).await;
    assert_eq!(fate(&error), Fate::Lost { ended: None });

    let stamp = ext::SendStamp::new();
    let mut request = request(Endpoint::PlaceOrder);
    Call::of_mut(request.extensions_mut()).set_send(stamp.clone());
    let late = async {
        sleep(Duration::from_secs(29)).await;
        assert!(stamp.begin(Instant::now().into_std()));
    };
    let ((_, error), ()) = tokio::join!(silence(request), late);
    assert_eq!(fate(&error), Fate::Lost { ended: None });
}

#[tokio::test(start_paused = true)]
async fn a_blank_stamp_on_a_request_without_a_body_proves_nothing() {
    // A transport never polls such a body, so the stamp would not have been written.
    let mut request = request(Endpoint::Orders).map(|_| Sent::default());
    Call::of_mut(request.extensions_mut()).set_send(ext::SendStamp::new());
    let (_, error) = silence(request).await;
    assert_eq!(fate(&error), Fate::Lost { ended: None });
}

#[tokio::test(start_paused = true)]
async fn the_stamp_is_read_after_the_send_was_given_up() {
    // Stamps when it is dropped, like a transport that polls the body at the last moment.
    struct Late(ext::SendStamp);
    impl Drop for Late {
        fn drop(&mut self) {
            assert!(self.0.begin(Instant::now().into_std()));
        }
    }
    let stamp = ext::SendStamp::new();
    let mut request = request(Endpoint::PlaceOrder);
    Call::of_mut(request.extensions_mut()).set_send(stamp.clone());
    let inner = service_fn(move |_: Request<Sent>| {
        let late = Late(stamp.clone());
        async move {
            let _late = late;
            pending::<Result<Response<Steps>, BoxError>>().await
        }
    });
    let error = AttemptTimeoutLayer::default().layer(inner).oneshot(request).await.unwrap_err();
    assert_eq!(fate(&error), Fate::Lost { ended: None });
}

#[tokio::test(start_paused = true)]
async fn an_answer_at_the_last_moment_counts() {
    let inner = service_fn(|_: Request<Sent>| async {
        sleep(ATTEMPT).await;
        Ok::<_, BoxError>(Response::new(Empty::new()))
    });
    let response = AttemptTimeoutLayer::default().layer(inner).oneshot(request(Endpoint::Orders)).await;
    assert_eq!(response.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_of_the_call_ends_a_send_earlier() {
    let deadline = |after| (Instant::now() + after).into_std();
    for (after, expected) in [(Duration::from_secs(7), Duration::from_secs(7)), (HOUR, ATTEMPT)] {
        let mut request = request(Endpoint::Orders);
        Call::of_mut(request.extensions_mut()).set_deadline(deadline(after));
        assert_eq!(silence(request).await.0, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_send_without_any_time_left_is_not_begun() {
    let mut request = request(Endpoint::PlaceOrder);
    Call::of_mut(request.extensions_mut()).set_send(ext::SendStamp::new());
    Call::of_mut(request.extensions_mut()).set_deadline(Instant::now().into_std());
    let eager = service_fn(|request: Request<Sent>| async move {
        assert!(Call::of(request.extensions()).send().unwrap().begin(Instant::now().into_std()));
        Ok::<_, BoxError>(Response::new(Steps::default()))
    });
    let error = AttemptTimeoutLayer::default().layer(eager).oneshot(request).await.unwrap_err();
    assert_eq!(fate(&error), Fate::NeverLeft);
}

#[tokio::test(start_paused = true)]
async fn the_longest_timeout_is_no_overflow() {
    let layer = AttemptTimeoutLayer::new(Duration::MAX).body_idle(Some(Duration::MAX));
    let inner = service_fn(|_: Request<Sent>| async {
        sleep(HOUR).await;
        Ok::<_, BoxError>(Response::new(Steps::new([Step::Pause(HOUR), data("x")])))
    });
    let response = layer.clone().layer(inner).oneshot(request(Endpoint::Orders)).await.unwrap();
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "x");

    // A timeout too long for the clock is capped, but not to a noticeable time.
    let start = Instant::now();
    let silent = service_fn(|_: Request<Sent>| pending::<Result<Response<Steps>, BoxError>>());
    layer.layer(silent).oneshot(request(Endpoint::Orders)).await.unwrap_err();
    assert!(start.elapsed() >= 365 * 24 * HOUR);
}

/// Runs Classify over AttemptTimeout over a service that takes 5 s for the head and then gives this body.
async fn classified(
    endpoint: Endpoint,
    body: Steps,
) -> Response<steadfast_retry::PeekedBody<steadfast_retry::TimedBody<Steps>>> {
    let mut body = Some(body);
    let inner = service_fn(move |_: Request<Sent>| {
        let body = body.take().unwrap();
        async {
            sleep(Duration::from_secs(5)).await;
            Ok::<_, BoxError>(Response::new(body))
        }
    });
    let service = ServiceBuilder::new()
        .layer(ClassifyLayer::new())
        .layer(AttemptTimeoutLayer::default())
        .service(inner);
    service.oneshot(request(endpoint)).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_stall_in_the_peeked_part_ends_with_the_attempt() {
    // C4: less than announced, and then nothing.
    let start = Instant::now();
    let body = Steps::new([data(&PLACED[..20]), Step::Pause(HOUR), data(&PLACED[20..])]);
    let response = classified(Endpoint::PlaceOrder, body).await;
    assert_eq!(start.elapsed(), ATTEMPT, "from the call, the head included");
    assert_eq!(Outcome::of(response.extensions()), Some(&Outcome::Unknown { resend: Resend::Never }));
    // The caller gets the bytes that came, and then the same end.
    let mut body = response.into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), &PLACED[..20]);
    let error = body.frame().await.unwrap().unwrap_err();
    assert_eq!(Failure::find(&*error).unwrap().fate(), Fate::Answered);
    assert!(body.frame().await.is_none());
    assert_eq!(start.elapsed(), ATTEMPT);
}

#[tokio::test(start_paused = true)]
async fn a_peeked_body_that_dribbles_is_not_a_pause_but_ends_with_the_attempt() {
    // B12: one byte every 10 s.
    let start = Instant::now();
    let dribble = PLACED.bytes().flat_map(|b| [data(vec![b]), Step::Pause(Duration::from_secs(10))]);
    let response = classified(Endpoint::PlaceOrder, Steps::new(dribble)).await;
    assert_eq!(start.elapsed(), ATTEMPT);
    assert!(Outcome::of(response.extensions()).unwrap().is_unknown());
    // A pause longer than the idle timeout is fine as long as the attempt's time lasts.
    let body = Steps::new([data(&PLACED[..1]), Step::Pause(Duration::from_secs(24)), data(&PLACED[1..])]);
    let response = classified(Endpoint::PlaceOrder, body).await;
    assert!(matches!(Outcome::of(response.extensions()), Some(Outcome::Accepted { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_long_list_may_take_longer_than_the_attempt_but_must_not_pause() {
    let steps = (0..20).flat_map(|_| [data("row"), Step::Pause(Duration::from_secs(9))]);
    let response = classified(Endpoint::Orders, Steps::new(steps)).await;
    let start = Instant::now();
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes().len(), 60);
    assert_eq!(start.elapsed().as_secs(), 180);

    let response = classified(Endpoint::Orders, Steps::new([data("row"), Step::Pause(HOUR)])).await;
    let start = Instant::now();
    let error = response.into_body().collect().await.unwrap_err();
    assert_eq!(start.elapsed().as_secs(), 10);
    let failure = Failure::find(&*error).unwrap();
    assert_eq!(failure.fate(), Fate::Answered);
    assert!(std::error::Error::source(failure).unwrap().is::<BodyStalled>());
    assert!(failure.is_timeout(), "as a head that does not come");
    assert!(failure.outcome().is_unknown());
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_is_not_mistaken_for_a_slow_server() {
    let steps = [data("a"), Step::Pause(Duration::from_secs(1)), data("b")];
    let mut body = classified(Endpoint::Orders, Steps::new(steps)).await.into_body();
    body.frame().await.unwrap().unwrap();
    sleep(HOUR).await;
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "b");
}

#[tokio::test(start_paused = true)]
async fn the_rest_of_a_long_peeked_body_runs_by_the_idle_clock() {
    let long = vec![b' '; steadfast_retry::PEEK_LIMIT + 1];
    let steps = [data(long), Step::Pause(Duration::from_secs(9)), data("x"), Step::Pause(HOUR)];
    let response = classified(Endpoint::PlaceOrder, Steps::new(steps)).await;
    sleep(ATTEMPT).await;
    let start = Instant::now();
    let error = response.into_body().collect().await.unwrap_err();
    assert_eq!(start.elapsed().as_secs(), 9 + 10);
    assert!(std::error::Error::source(Failure::find(&*error).unwrap()).unwrap().is::<BodyStalled>());
}
