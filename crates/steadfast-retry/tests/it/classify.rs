use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::{Body, SizeHint};
use http_body_util::BodyExt;
use proptest::prelude::*;
use steadfast_call::{BoxError, Failure, Fate, Outcome, Peek, Resend, outcome_of};
use steadfast_retry::{Classify, PEEK_LIMIT, PeekedBody};
use steadfast_spec::{Endpoint, msg};
use tower::{Service, ServiceExt, service_fn};

use crate::support::{PLACED, Sent, Step, Steps, data, error, request};

const NEVER: Outcome = Outcome::Unknown { resend: Resend::Never };
const AFTER_ABSENCE: Outcome = Outcome::Unknown { resend: Resend::AfterAbsence };

async fn classified(endpoint: Endpoint, status: u16, body: Steps) -> Response<PeekedBody<Steps>> {
    let mut body = Some(body);
    let inner = service_fn(move |_: Request<Sent>| {
        let mut response = Response::new(body.take().unwrap());
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        async { Ok::<_, BoxError>(response) }
    });
    Classify::new(inner).oneshot(request(endpoint)).await.unwrap()
}

async fn outcome(endpoint: Endpoint, status: u16, body: impl Into<Bytes>) -> Outcome {
    let response = classified(endpoint, status, Steps::new([data(body)])).await;
    Outcome::of(response.extensions()).unwrap().clone()
}

/// Everything that a reader of the body gets.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    bytes: Vec<u8>,
    trailers: Vec<HeaderMap>,
    error: Option<String>,
}

async fn read<B>(mut body: B) -> Read
where
    B: Body<Data = Bytes, Error = BoxError> + Unpin,
{
    let mut read = Read::default();
    while let Some(frame) = body.frame().await {
        match frame.map(|frame| frame.into_data().map_err(|frame| frame.into_trailers())) {
            Ok(Ok(data)) => read.bytes.extend_from_slice(&data),
            Ok(Err(trailers)) => read.trailers.push(trailers.unwrap()),
            Err(error) => {
                assert!(read.error.replace(error.to_string()).is_none(), "an error ends a body");
            }
        }
    }
    assert!(body.frame().await.is_none(), "an end is for ever");
    read
}

#[tokio::test]
async fn spec_7_every_status_has_its_outcome_on_place_order() {
    for status in 100..=999 {
        if status == 200 || status == 400 {
            continue;
        }
        assert_eq!(outcome(Endpoint::PlaceOrder, status, "<html>").await, NEVER, "{status}");
    }
}

#[tokio::test]
async fn o02_a_4xx_of_an_order_counts_by_its_text() {
    for (status, text, proves) in [
        (401, msg::UNAUTHORIZED, Outcome::NotExecuted),
        (429, msg::TOO_MANY_REQUESTS, Outcome::NotExecuted),
        (403, msg::FORBIDDEN, Outcome::Rejected),
        (404, msg::NOT_FOUND, Outcome::Rejected),
        (405, msg::METHOD_NOT_ALLOWED, Outcome::Rejected),
    ] {
        for endpoint in [Endpoint::PlaceOrder, Endpoint::ModifyOrder] {
            assert_eq!(outcome(endpoint, status, error(text)).await, proves, "{endpoint:?} {status}");
            for page in ["", "<html>", "{}", &error("x")] {
                assert_eq!(
                    outcome(endpoint, status, page.to_owned()).await,
                    NEVER,
                    "{endpoint:?} {status} {page}"
                );
            }
        }
        for endpoint in [Endpoint::Orders, Endpoint::CancelOrder] {
            assert_eq!(outcome(endpoint, status, "<html>").await, proves, "{endpoint:?} {status}");
        }
    }
}

#[tokio::test]
async fn o02_a_5xx_of_place_order_counts_by_its_text() {
    for (status, text) in [
        (500, msg::INTERNAL_SERVER_ERROR),
        (502, msg::BAD_GATEWAY),
        (503, msg::SERVICE_UNAVAILABLE),
        (504, msg::GATEWAY_TIMED_OUT),
    ] {
        assert_eq!(outcome(Endpoint::PlaceOrder, status, error(text)).await, AFTER_ABSENCE, "{status}");
        assert_eq!(outcome(Endpoint::PlaceOrder, status, error("x")).await, NEVER, "{status}");
        assert_eq!(outcome(Endpoint::PlaceOrder, status, "").await, NEVER, "{status}");
        assert_eq!(outcome(Endpoint::Orders, status, "<html>").await, AFTER_ABSENCE, "{status}");
    }
}

#[tokio::test]
async fn a_sidecar_forbids_to_send_again_what_it_answers_as_failed() {
    let told = async |status: u16, body: &'static str, retry_safe: &'static str| {
        let inner = service_fn(move |_: Request<Sent>| async move {
            let answer = Response::builder().status(status).header("retry-safe", retry_safe);
            Ok::<_, BoxError>(answer.body(Steps::new([data(body)])).unwrap())
        });
        let answer = Classify::new(inner).oneshot(request(Endpoint::PlaceOrder)).await.unwrap();
        Outcome::of(answer.extensions()).unwrap().clone()
    };
    let timed_out = r#"{"s":"error","msg":"Gateway timedout"}"#;
    assert_eq!(told(504, timed_out, "false").await, NEVER);
    assert_eq!(told(504, timed_out, "true").await, AFTER_ABSENCE);
    assert_eq!(told(403, r#"{"s":"error","msg":"Forbidden"}"#, "false").await, NEVER);
    assert!(matches!(told(200, PLACED, "false").await, Outcome::Accepted { .. }));
}

#[tokio::test]
async fn spec_7_only_the_exact_texts_of_a_400_are_definite() {
    for endpoint in [Endpoint::PlaceOrder, Endpoint::Orders, Endpoint::Token] {
        assert_eq!(outcome(endpoint, 400, error(msg::BAD_REQUEST)).await, Outcome::Rejected);
        assert_eq!(outcome(endpoint, 400, error(msg::INPUT_VALIDATION)).await, Outcome::Rejected);
        assert_eq!(outcome(endpoint, 400, error(msg::INTERNAL_ERROR)).await, AFTER_ABSENCE);
        for text in ["bad request", "Bad request ", "Internal Error occurred", ""] {
            assert_eq!(outcome(endpoint, 400, error(text)).await, NEVER, "{text:?}");
        }
    }
}

#[tokio::test]
async fn a_placed_order_is_accepted_with_its_id() {
    let accepted = Outcome::Accepted { order_id: Some("7".into()) };
    assert_eq!(outcome(Endpoint::PlaceOrder, 200, PLACED).await, accepted);
}

// The names come from the fault catalogue, part E.
#[tokio::test]
async fn every_broken_envelope_of_a_place_order_stays_in_doubt() {
    let deep = format!(r#"{{"s":"ok","d":{}{}}}"#, "[".repeat(5_000), "]".repeat(5_000));
    for (fault, body) in [
        ("E1 empty", ""),
        ("E2 html", "<html><body>ok</body></html>"),
        ("E3 truncated", r#"{"s":"ok","d":{"orderId":"7","ms"#),
        ("E5 no s", r#"{"d":{"orderId":"7","msg":"x"}}"#),
        ("E5 unknown s", r#"{"s":"OK","d":{"orderId":"7","msg":"x"}}"#),
        ("E6 no d", r#"{"s":"ok"}"#),
        ("E7 no id", r#"{"s":"ok","d":{"msg":"x"}}"#),
        ("E7 empty id", r#"{"s":"ok","d":{"orderId":"","msg":"x"}}"#),
        ("E7 null id", r#"{"s":"ok","d":{"orderId":null,"msg":"x"}}"#),
        ("E8 error with 200", r#"{"s":"error","msg":"Bad request"}"#),
        ("E11 no-data", r#"{"s":"no-data","msg":"no-data","d":{"orderId":"7"}}"#),
        ("E13 depth", &deep),
        ("C5 longer than announced", r#"{"s":"ok","d":{"orderId":"7","msg":"placed"}}}"#),
    ] {
        assert_eq!(outcome(Endpoint::PlaceOrder, 200, body.to_owned()).await, NEVER, "{fault}");
    }
    let invalid = b"{\"s\":\"ok\",\"d\":{\"orderId\":\"\xff\",\"msg\":\"x\"}}".to_vec();
    assert_eq!(outcome(Endpoint::PlaceOrder, 200, invalid).await, NEVER, "E4 invalid utf-8");
    let gzip = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    assert_eq!(outcome(Endpoint::PlaceOrder, 200, gzip).await, NEVER, "gzip not asked for");
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_not_believed_and_not_lost() {
    let padded = |len: usize| format!("{PLACED}{}", " ".repeat(len - PLACED.len()));
    let fits = padded(PEEK_LIMIT);
    assert!(matches!(outcome(Endpoint::PlaceOrder, 200, fits).await, Outcome::Accepted { .. }));
    let long = padded(PEEK_LIMIT + 1);
    let response =
        classified(Endpoint::PlaceOrder, 200, Steps::new([data(long.clone()), data("tail")])).await;
    assert_eq!(Outcome::of(response.extensions()), Some(&NEVER));
    assert_eq!(read(response.into_body()).await.bytes, format!("{long}tail").into_bytes());
}

#[tokio::test]
async fn an_endless_body_is_held_only_up_to_the_limit() {
    let endless = std::iter::repeat_n(data(vec![b' '; 1024]), 10_000);
    let body = Steps::new(endless);
    let counter = body.read.clone();
    let response = classified(Endpoint::PlaceOrder, 200, body).await;
    assert_eq!(Outcome::of(response.extensions()), Some(&NEVER));
    assert!(*counter.lock().unwrap() <= PEEK_LIMIT + 1024);
    // Endless frames without data are not held either.
    let empty = Steps::new([data(PLACED)].into_iter().chain(std::iter::repeat_n(data(""), PEEK_LIMIT)));
    assert_eq!(Outcome::of(classified(Endpoint::PlaceOrder, 200, empty).await.extensions()), Some(&NEVER));
}

#[tokio::test]
async fn a_body_that_announces_too_much_is_not_read_at_all() {
    let body = Steps::new([data("x")]).announcing(SizeHint::with_exact(10 << 30));
    let counter = body.read.clone();
    let response = classified(Endpoint::Orders, 400, body).await;
    assert_eq!(Outcome::of(response.extensions()), Some(&NEVER));
    assert_eq!(*counter.lock().unwrap(), 0);
    assert_eq!(read(response.into_body()).await.bytes, b"x");
}

#[tokio::test]
async fn other_answers_are_not_looked_into() {
    for (endpoint, status) in [
        (Endpoint::Orders, 200),
        (Endpoint::ScripMaster, 200),
        (Endpoint::Orders, 504),
        (Endpoint::Orders, 429),
        (Endpoint::CancelOrder, 404),
    ] {
        let body = Steps::new([data("x")]);
        let counter = body.read.clone();
        let response = classified(endpoint, status, body).await;
        assert_eq!(*counter.lock().unwrap(), 0, "{endpoint:?} {status}");
        let status = response.status();
        assert_eq!(
            Outcome::of(response.extensions()),
            Some(&outcome_of(Some(endpoint), status, Peek::NotRead))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_comes_slowly_is_waited_for() {
    let slow = PLACED.bytes().flat_map(|b| [Step::Pause(Duration::from_secs(1)), data(vec![b])]);
    let response = classified(Endpoint::PlaceOrder, 200, Steps::new(slow)).await;
    assert!(matches!(Outcome::of(response.extensions()), Some(Outcome::Accepted { .. })));
    assert_eq!(response.body().size_hint().exact(), Some(PLACED.len() as u64));
    assert_eq!(read(response.into_body()).await.bytes, PLACED.as_bytes());
}

#[tokio::test(start_paused = true)]
async fn a_body_that_knows_its_end_is_not_waited_for() {
    let start = tokio::time::Instant::now();
    let body = Steps::new([data(PLACED), Step::Pause(Duration::from_secs(9))]).knowing_its_end();
    let response = classified(Endpoint::PlaceOrder, 200, body).await;
    assert!(matches!(Outcome::of(response.extensions()), Some(Outcome::Accepted { .. })));
    assert!(start.elapsed().is_zero());
}

#[tokio::test]
async fn the_size_hint_counts_what_is_held_and_what_is_to_come() {
    let hint = SizeHint::with_exact(5);
    let body = Steps::new([data(vec![b'x'; PEEK_LIMIT + 1]), data("12345")]).announcing(hint);
    let mut body = classified(Endpoint::PlaceOrder, 200, body).await.into_body();
    assert_eq!(body.size_hint().exact(), Some(PEEK_LIMIT as u64 + 6));
    body.frame().await.unwrap().unwrap();
    assert_eq!(body.size_hint().exact(), Some(5));
    let cut = Steps::new([data("123"), Step::Fail("cut")]);
    let mut body = classified(Endpoint::PlaceOrder, 200, cut).await.into_body();
    assert_eq!((body.size_hint().lower(), body.size_hint().upper()), (3, None));
    body.frame().await.unwrap().unwrap();
    assert!(!body.is_end_stream(), "the error is still to come");
    body.frame().await.unwrap().unwrap_err();
    assert!(body.is_end_stream());
}

#[tokio::test]
async fn an_error_passes_as_it_is() {
    let inner = service_fn(|_: Request<Sent>| async {
        Err::<Response<Steps>, BoxError>(Failure::new(Fate::NeverLeft, "no route to host").into())
    });
    let error = Classify::new(inner).oneshot(request(Endpoint::PlaceOrder)).await.unwrap_err();
    assert_eq!(Failure::outcome_of(&*error), Outcome::NotSent);
    assert_eq!(error.downcast_ref::<Failure>().unwrap().fate(), Fate::NeverLeft);
}

#[tokio::test(start_paused = true)]
async fn the_future_holds_the_body_only_while_it_reads() {
    let body = Steps::new([data(PLACED), Step::Pause(Duration::from_secs(3600))]);
    let alive = std::sync::Arc::downgrade(&body.read);
    let mut body = Some(body);
    let mut service = Classify::new(service_fn(move |_: Request<Sent>| {
        let response = Response::new(body.take().unwrap());
        async { Ok::<_, BoxError>(response) }
    }));
    let future = service.ready().await.unwrap().call(request(Endpoint::PlaceOrder));
    let mut future = Box::pin(future);
    let second = Duration::from_secs(1);
    assert!(tokio::time::timeout(second, &mut future).await.is_err(), "the body stalls");
    assert!(alive.upgrade().is_some());
    drop(future);
    assert!(alive.upgrade().is_none(), "a dropped future leaves no body behind");
}

#[tokio::test]
async fn debug_output_holds_no_byte_of_a_body() {
    let response = classified(Endpoint::PlaceOrder, 200, Steps::new([data("secret-token")])).await;
    assert!(!format!("{response:?}").contains("secret"));
}

/// Draws a body cut into pieces, and its end.
fn script() -> impl Strategy<Value = (Vec<u8>, Vec<usize>, u8)> {
    let texts = prop_oneof![
        Just(PLACED.as_bytes().to_vec()),
        Just(error(msg::BAD_REQUEST).into_bytes()),
        Just(error(msg::INTERNAL_ERROR).into_bytes()),
        proptest::collection::vec(any::<u8>(), 0..200),
        proptest::collection::vec(Just(b' '), PEEK_LIMIT - 2..PEEK_LIMIT + 3),
    ];
    (texts, proptest::collection::vec(0..6000usize, 0..8), 0..3u8)
}

proptest! {
    #[test]
    fn whatever_the_pieces_the_reader_sees_the_same_and_the_verdict_is_that_of_the_whole(
        (text, cuts, end) in script(),
        placing: bool,
        bad: bool,
        tail in 0..3usize,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut steps = Vec::new();
        let mut left = &text[..];
        for cut in cuts {
            let (piece, rest) = left.split_at(cut.min(left.len()));
            steps.push(data(piece.to_vec()));
            left = rest;
        }
        steps.push(data(left.to_vec()));
        match end {
            0 => {}
            1 => steps.push(Step::Fail("cut")),
            _ => steps.push(Step::Trailers([(http::header::ETAG, "x".parse().unwrap())].into_iter().collect())),
        }
        let frames = steps.len();
        let (endpoint, status) = (
            if placing { Endpoint::PlaceOrder } else { Endpoint::Orders },
            if bad { 400 } else { 200 },
        );
        let plain = runtime.block_on(read(Steps::new(steps.clone())));
        let response = runtime.block_on(classified(endpoint, status, Steps::new(steps)));
        let outcome = Outcome::of(response.extensions()).unwrap().clone();

        let status = StatusCode::from_u16(status).unwrap();
        let whole = outcome_of(Some(endpoint), status, Peek::Whole(&text));
        if !bad && !placing {
            prop_assert_eq!(outcome, outcome_of(Some(endpoint), status, Peek::NotRead));
        } else if end == 1 || text.len() > PEEK_LIMIT {
            prop_assert_eq!(outcome, NEVER);
        } else if text.len() + frames < PEEK_LIMIT {
            prop_assert_eq!(outcome, whole);
        }
        // The same holds if a reader takes some frames and leaves the rest for later.
        let mut body = response.into_body();
        let mut first = Vec::new();
        for _ in 0..tail {
            if let Some(Ok(frame)) = runtime.block_on(body.frame()) {
                if let Ok(data) = frame.into_data() {
                    first.extend_from_slice(&data);
                }
            } else {
                return Ok(());
            }
        }
        let rest = runtime.block_on(read(body));
        first.extend_from_slice(&rest.bytes);
        prop_assert_eq!(first, plain.bytes);
        if tail == 0 {
            prop_assert_eq!(rest.trailers, plain.trailers);
        }
        if end == 1 {
            prop_assert_eq!(rest.error, plain.error);
        }
    }
}
