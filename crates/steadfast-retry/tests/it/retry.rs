use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response, StatusCode};
use http_body::SizeHint;
use http_body_util::BodyExt;
use steadfast_call::{BoxError, Call, Failure, Outcome, Resend, ext};
use steadfast_retry::{AttemptTrail, Jitter, RetriesEnded, RetryPolicy, Schedule, StopReason};
use steadfast_spec::Endpoint;
use tokio::time::{Instant, sleep};
use tower::{Layer, Service, ServiceExt, retry::budget::TpsBudget, service_fn};

use crate::support::{Reply, Script, Sent, Step, Steps, data, request, secs};

fn exact() -> RetryPolicy {
    RetryPolicy::default().jitter(Jitter::NONE)
}

async fn call(
    policy: RetryPolicy,
    script: &Script,
    request: Request<Sent>,
) -> Result<Response<Sent>, BoxError> {
    policy.layer().layer(script.clone()).oneshot(request).await
}

fn trail(response: &Response<Sent>) -> Vec<(Option<u16>, Option<u64>)> {
    let trail = response.extensions().get::<AttemptTrail>().expect("a trail");
    let row = |a: &steadfast_retry::Attempt| (a.status.map(|s| s.as_u16()), a.delay.map(|d| d.as_secs()));
    trail.attempts().iter().map(row).collect()
}

#[tokio::test(start_paused = true)]
async fn five_sends_at_0_1_3_7_15_and_then_the_last_answer_with_its_trail() {
    let script = Script::new([Reply::Status(500)]);
    let response = call(exact(), &script, request(Endpoint::Orders)).await.unwrap();
    assert_eq!(script.trace(), secs([0, 1, 3, 7, 15]));
    assert_eq!(response.status(), 500);
    assert!(response.extensions().get::<ext::DoNotRetry>().is_some());
    let row = |delay| (Some(500), delay);
    assert_eq!(trail(&response), [row(Some(1)), row(Some(2)), row(Some(4)), row(Some(8)), row(None)]);
}

#[tokio::test(start_paused = true)]
async fn an_exhausted_error_carries_the_trail_and_what_is_proved() {
    let script = Script::new([Reply::NeverLeft]);
    let error = call(exact(), &script, request(Endpoint::PlaceOrder)).await.unwrap_err();
    assert_eq!(script.sends(), 5);
    assert_eq!(Failure::outcome_of(&*error), Outcome::NotSent);
    let stopped = RetriesEnded::find(&*error).unwrap();
    assert_eq!(stopped.stopped(), Some(StopReason::Spent));
    assert_eq!(stopped.trail().attempts().len(), 5);
    assert!(stopped.trail().attempts().iter().all(|a| a.outcome == Outcome::NotSent && a.status.is_none()));
    assert_eq!(
        error.to_string(),
        "failed after 5 tries, none sent, not repeated: schedule is spent: request not sent: no route to host"
    );
}

#[test]
fn each_setting_of_the_policy_is_a_rule_of_its_own() {
    let secs = Duration::from_secs;
    let policy = RetryPolicy::default()
        .schedule([3].map(secs).into_iter().collect())
        .jitter(Jitter::percent(7))
        .retry_after_cap(secs(11))
        .unavailable_delay(secs(13))
        .persistent_bad_gateway(secs(17)..=secs(19));
    let rules = policy.rules();
    assert_eq!(rules.schedule.delays(), [secs(3)]);
    assert_eq!(rules.jitter.most(), 7);
    assert_eq!((rules.retry_after_cap, rules.unavailable_delay), (secs(11), secs(13)));
    assert_eq!(rules.persistent_bad_gateway, Some(secs(17)..=secs(19)));
}

#[tokio::test(start_paused = true)]
async fn a_success_after_repeats_says_how_many_it_took() {
    let script = Script::new([Reply::Status(502), Reply::Lost, Reply::Status(200)]);
    let response = call(exact(), &script, request(Endpoint::Orders)).await.unwrap();
    assert_eq!(trail(&response), [(Some(502), Some(1)), (None, Some(2)), (Some(200), None)]);
    assert!(response.extensions().get::<ext::DoNotRetry>().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_success_at_once_is_not_touched() {
    let script = Script::new([Reply::Status(200)]);
    let response = call(exact(), &script, request(Endpoint::Orders)).await.unwrap();
    assert!(response.extensions().is_empty());
}

#[tokio::test(start_paused = true)]
async fn spec_7_an_order_in_doubt_goes_up_untouched() {
    for status in [500, 502, 503, 504] {
        let script = Script::new([Reply::Status(status)]);
        let response = call(exact(), &script, request(Endpoint::PlaceOrder)).await.unwrap();
        assert_eq!((script.sends(), response.status().as_u16()), (1, status));
        assert!(response.extensions().is_empty());
    }
    for reply in [Reply::Lost, Reply::Plain] {
        let script = Script::new([reply]);
        let error = call(exact(), &script, request(Endpoint::PlaceOrder)).await.unwrap_err();
        assert_eq!(script.sends(), 1);
        assert!(RetriesEnded::find(&*error).is_none());
        assert!(Failure::outcome_of(&*error).is_unknown());
    }
    // Also after repeats: the last send is the one in doubt.
    let script = Script::new([Reply::Status(429), Reply::NeverLeft, Reply::Lost]);
    let error = call(exact(), &script, request(Endpoint::PlaceOrder)).await.unwrap_err();
    assert_eq!(script.trace(), secs([0, 1, 3]));
    assert!(error.downcast_ref::<Failure>().is_some(), "the very error of the transport");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_was_lost_once_is_in_doubt_whatever_the_last_send_proves() {
    for last in [Reply::Refused, Reply::NeverLeft] {
        let script = Script::new([Reply::Status(504), last]);
        let error = call(exact(), &script, request(Endpoint::CancelOrder)).await.unwrap_err();
        assert!(Failure::outcome_of(&*error).is_unknown());
        let ended = RetriesEnded::find(&*error).unwrap();
        assert!(ended.trail().is_in_doubt());
        assert_eq!(ended.trail().attempts().len(), script.sends());
    }
    let script = Script::new([Reply::Lost, Reply::Status(404)]);
    let response = call(exact(), &script, request(Endpoint::CancelOrder)).await.unwrap();
    assert!(response.extensions().get::<AttemptTrail>().unwrap().is_in_doubt());
    // If every send is known, nothing is in doubt, and the error is unchanged.
    let script = Script::new([Reply::Status(429), Reply::Refused]);
    let error = call(exact(), &script, request(Endpoint::CancelOrder)).await.unwrap_err();
    assert!(error.downcast_ref::<Failure>().is_some_and(Failure::is_refusal));
}

/// A service that closes after its first call.
#[derive(Clone)]
struct Closing(Script);

impl Service<Request<Sent>> for Closing {
    type Response = Response<Sent>;
    type Error = BoxError;
    type Future = <Script as Service<Request<Sent>>>::Future;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(if self.0.sends() == 0 { Ok(()) } else { Err(Failure::refused("closed").into()) })
    }

    fn call(&mut self, request: Request<Sent>) -> Self::Future {
        self.0.call(request)
    }
}

/// Regression: the error of the service was all that the caller heard, and it says that nothing was sent.
#[tokio::test(start_paused = true)]
async fn a_cancel_that_was_lost_is_in_doubt_also_if_no_service_is_ready_for_its_repeat() {
    let call = async |first| {
        let script = Script::new([first]);
        let service = exact().layer().layer(Closing(script.clone()));
        let error = service.oneshot(request(Endpoint::CancelOrder)).await.unwrap_err();
        assert_eq!(script.sends(), 1);
        error
    };
    let error = call(Reply::Lost).await;
    assert!(Failure::outcome_of(&*error).is_unknown());
    let ended = RetriesEnded::find(&*error).unwrap();
    assert!(ended.trail().is_in_doubt());
    assert_eq!((ended.trail().attempts().len(), ended.stopped()), (2, None));
    // If every send is known, nothing is in doubt, and the error is unchanged.
    let error = call(Reply::NeverLeft).await;
    assert!(error.downcast_ref::<Failure>().is_some_and(Failure::is_refusal));
}

#[tokio::test(start_paused = true)]
async fn an_outcome_in_the_extensions_wins_over_the_status() {
    let doubt = |resend| Outcome::Unknown { resend };
    for (status, outcome, sends) in [
        (400, doubt(Resend::AfterAbsence), 5),
        (400, doubt(Resend::Never), 1),
        (400, Outcome::Rejected, 1),
        (500, doubt(Resend::Never), 1),
    ] {
        let count = Arc::new(AtomicUsize::new(0));
        let (counter, written) = (count.clone(), outcome.clone());
        let inner = service_fn(move |_: Request<Sent>| {
            counter.fetch_add(1, Ordering::Relaxed);
            let mut response = Response::new(Sent::default());
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            ext::Sent::of_mut(response.extensions_mut()).set_outcome(written.clone());
            async { Ok::<_, BoxError>(response) }
        });
        exact().layer().layer(inner).oneshot(request(Endpoint::Orders)).await.unwrap();
        assert_eq!(count.load(Ordering::Relaxed), sends, "{status} {outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_obeyed_up_to_a_minute() {
    for (value, wait) in [("3", 3), ("0", 1), ("600", 60), ("soon", 1)] {
        let first = Reply::Header(429, "retry-after", value.to_owned());
        let script = Script::new([first, Reply::Status(200)]);
        call(exact(), &script, request(Endpoint::PlaceOrder)).await.unwrap();
        assert_eq!(script.trace(), secs([0, wait]), "{value}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_503_waits_five_seconds_first() {
    let script = Script::new([Reply::Status(503), Reply::Status(503), Reply::Status(200)]);
    call(exact(), &script, request(Endpoint::Orders)).await.unwrap();
    assert_eq!(script.trace(), secs([0, 5, 7]));
}

#[tokio::test(start_paused = true)]
async fn a_repeat_that_would_miss_the_deadline_is_not_waited_for() {
    let start = Instant::now();
    let script = Script::new([Reply::Status(500)]);
    let mut request = request(Endpoint::Orders);
    Call::of_mut(request.extensions_mut()).set_deadline((start + Duration::from_secs(7)).into_std());
    let response = call(exact(), &script, request).await.unwrap();
    assert_eq!(script.trace(), secs([0, 1, 3]), "the send at 7 s would be too late");
    assert_eq!(start.elapsed().as_secs(), 3, "nobody sleeps up to the deadline");
    assert!(response.extensions().get::<ext::DoNotRetry>().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_repeat_that_could_not_leave_in_time_is_not_waited_for() {
    let script = Script::new([Reply::NeverLeft]);
    let mut request = request(Endpoint::PlaceOrder);
    Call::of_mut(request.extensions_mut()).set_send_by((Instant::now() + Duration::from_secs(3)).into_std());
    let error = call(exact(), &script, request).await.unwrap_err();
    assert_eq!(script.trace(), secs([0, 1, 3]));
    assert_eq!(RetriesEnded::find(&*error).unwrap().stopped(), Some(StopReason::SendBy));
}

#[tokio::test(start_paused = true)]
async fn the_predicted_permit_counts_and_sees_the_request() {
    let start = Instant::now();
    let policy = exact().predict_permit(move |call| {
        let route = call.route().expect("the request's own facts");
        (route.endpoint == Some(Endpoint::Orders)).then(|| start + Duration::from_secs(60))
    });
    for (endpoint, sends) in [(Endpoint::Orders, 1), (Endpoint::Funds, 5)] {
        let script = Script::new([Reply::Status(500)]);
        let mut request = request(endpoint);
        Call::of_mut(request.extensions_mut()).set_deadline((start + Duration::from_secs(60)).into_std());
        call(policy.clone(), &script, request).await.unwrap();
        assert_eq!(script.sends(), sends, "{endpoint:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_repeat_waits_at_the_head_of_its_lane_with_a_stamp_of_its_own() {
    let script = Script::new([Reply::NeverLeft]);
    let mut request = request(Endpoint::PlaceOrder);
    Call::of_mut(request.extensions_mut()).set_send(ext::SendStamp::new());
    Call::of_mut(request.extensions_mut()).set_intent(ext::IntentId::new("mine"));
    call(exact(), &script, request).await.unwrap_err();
    for (n, extensions) in script.extensions().into_iter().enumerate() {
        let repeat = n > 0;
        let call = Call::of(&extensions);
        assert_eq!(call.is_at_head_of_lane(), repeat, "send {n}");
        assert_eq!(call.send().is_none(), repeat, "send {n}");
        assert_eq!(call.repeats(), n as u32);
        assert_eq!(call.intent().map(|i| i.as_str()), Some("mine"), "send {n}");
        assert!(call.route().is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn an_outer_policy_does_not_multiply_the_repeats() {
    for reply in [Reply::Status(500), Reply::NeverLeft, Reply::Lost] {
        let script = Script::new([reply.clone()]);
        let twice = exact().layer().layer(exact().layer().layer(script.clone()));
        let _ = twice.oneshot(request(Endpoint::Orders)).await;
        assert_eq!(script.sends(), 5, "{reply:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_budget_is_off_by_default_and_stops_repeats_when_it_is_on() {
    // A reserve of ten seconds at one repeat per second, and no deposits.
    let policy = || exact().schedule(Schedule::new([Duration::ZERO; 4]));
    let budget = policy().budget(TpsBudget::new(Duration::from_secs(10), 1, 0.0));
    for (policy, sends) in [(policy(), 100), (budget, 20 + 10)] {
        let script = Script::new([Reply::Status(500)]);
        for _ in 0..20 {
            let response = call(policy.clone(), &script, request(Endpoint::Orders)).await.unwrap();
            assert!(response.extensions().get::<ext::DoNotRetry>().is_some());
        }
        assert_eq!(script.sends(), sends);
    }
}

#[tokio::test(start_paused = true)]
async fn one_seed_gives_one_run_and_calls_differ_within_it() {
    let run = |seed| async move {
        let script = Script::new([Reply::Status(500)]);
        let policy = RetryPolicy::default().seed(seed);
        for _ in 0..2 {
            call(policy.clone(), &script, request(Endpoint::Orders)).await.unwrap();
        }
        script.trace()
    };
    assert_eq!(run(1).await, run(1).await);
    assert_ne!(run(1).await, run(2).await);
    let trace = run(1).await;
    let first_call: Vec<_> = trace[..5].iter().map(|t| *t - trace[0]).collect();
    let second_call: Vec<_> = trace[5..].iter().map(|t| *t - trace[5]).collect();
    assert_ne!(first_call, second_call, "requests that failed together must not repeat together");
}

/// Sends through a service that answers 500 with this body once, and then 200. Returns the time taken.
async fn drained(body: Steps) -> Duration {
    let start = Instant::now();
    let mut bodies = [(500, body), (200, Steps::default())].into_iter();
    let bodies = Arc::new(std::sync::Mutex::new(move || bodies.next().unwrap()));
    let inner = service_fn(move |_: Request<Sent>| {
        let (status, body) = (bodies.lock().unwrap())();
        async move { Ok::<_, BoxError>(Response::builder().status(status).body(body)?) }
    });
    let response = exact().layer().layer(inner).oneshot(request(Endpoint::Orders)).await.unwrap();
    assert_eq!(response.status(), 200);
    start.elapsed()
}

#[tokio::test(start_paused = true)]
async fn the_old_answer_is_read_to_its_end_while_the_delay_runs() {
    let body = Steps::new([data("a"), Step::Pause(Duration::from_millis(500)), data("bc")]);
    let read = body.read.clone();
    assert_eq!(drained(body).await.as_secs(), 1);
    assert_eq!(*read.lock().unwrap(), 3);
}

#[tokio::test(start_paused = true)]
async fn an_old_answer_that_stalls_or_is_too_long_does_not_hold_up_the_repeat() {
    let stalled = Steps::new([data("a"), Step::Pause(Duration::from_secs(3600)), data("b")]);
    let gone = Arc::downgrade(&stalled.read);
    assert_eq!(drained(stalled).await.as_secs(), 1);
    assert!(gone.upgrade().is_none());

    let endless = Steps::new(std::iter::repeat_n(data(vec![0; 1024]), 10_000));
    let read = endless.read.clone();
    assert_eq!(drained(endless).await.as_secs(), 1);
    assert!(*read.lock().unwrap() <= 65 * 1024);

    let announced = Steps::new([data("a")]).announcing(SizeHint::with_exact(1 << 30));
    let read = announced.read.clone();
    drained(announced).await;
    assert_eq!(*read.lock().unwrap(), 0);

    assert_eq!(drained(Steps::new([Step::Fail("cut")])).await.as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_call_sends_nothing_afterwards() {
    let script = Script::new([Reply::Status(500)]);
    let call = tokio::spawn(exact().layer().layer(script.clone()).oneshot(request(Endpoint::Orders)));
    sleep(Duration::from_millis(500)).await;
    call.abort();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(script.sends(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_last_answer_keeps_its_body() {
    let script = Script::new([Reply::Body(500, "the end".into())]);
    let response = call(exact(), &script, request(Endpoint::Orders)).await.unwrap();
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "the end");
}

/// It may be an order that no list shows: a bracket order, a trigger, an exit, a conversion.
#[tokio::test(start_paused = true)]
async fn o05_a_429_to_an_unknown_post_is_returned() {
    for (method, path, sends) in [
        ("POST", "gtt-order", 1),
        ("POST", "place-bo-order", 1),
        ("PUT", "convert-position", 1),
        ("DELETE", "exit-position", 1),
        ("GET", "positions", 2),
        ("POST", "place-order", 2),
    ] {
        let unknown = || {
            let uri = format!("https://host/v2/api/oms/{path}");
            http::Request::builder().method(method).uri(uri).body(Sent::from("a=1")).unwrap()
        };
        let script = Script::new([Reply::Status(429), Reply::Status(200)]);
        let response = call(exact(), &script, unknown()).await.unwrap();
        assert_eq!(script.sends(), sends, "{method} {path}");
        assert_eq!(response.status().as_u16(), if sends == 1 { 429 } else { 200 });
        // A request that never left is sent again all the same.
        let script = Script::new([Reply::NeverLeft, Reply::Status(200)]);
        call(exact(), &script, unknown()).await.unwrap();
        assert_eq!(script.sends(), 2, "{method} {path}");
    }
    // A change made twice is the same change.
    let script = Script::new([Reply::Status(429), Reply::Status(200)]);
    call(exact(), &script, request(Endpoint::ModifyOrder)).await.unwrap();
    assert_eq!(script.sends(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_special_order_is_repeated_only_if_it_was_not_sent() {
    for endpoint in Endpoint::PUBLISHED.into_iter().filter(|endpoint| endpoint.is_special()) {
        for (reply, sends) in [
            (Reply::NeverLeft, 5),
            (Reply::Status(429), 1),
            (Reply::Status(401), 1),
            (Reply::Status(504), 1),
            (Reply::Lost, 1),
        ] {
            let script = Script::new([reply.clone()]);
            let _ = call(exact(), &script, request(endpoint)).await;
            assert_eq!(script.sends(), sends, "{endpoint:?} {reply:?}");
        }
    }
}
