//! The thirteen rows of the error table, for requests that only read.

use std::time::Duration;

use http::StatusCode;
use steadfast::{
    ErrorKind, Operation, Outcome,
    spec::{ERRORS, Endpoint, ErrorRow},
};

use crate::{
    served::{canned, envelope_error},
    wire::{Wire, error, ok, token},
    world::{World, limited_totp_source},
};

fn rows(keep: impl Fn(&ErrorRow) -> bool) -> Vec<(u16, &'static str)> {
    let text = |row: &ErrorRow| (row.status.as_u16(), row.msg.unwrap_or("Unsupported media type"));
    ERRORS.iter().filter(|row| keep(row)).map(text).collect()
}

fn msg_of(status: u16) -> &'static str {
    rows(|row| row.status.as_u16() == status)[0].1
}

/// Returns the whole seconds between the sends of a read that always gets this answer.
async fn pauses_of_a_read(status: u16, msg: &str) -> Vec<u64> {
    let world = World::scripted([error(status, msg)]);
    let response = world.orders().await;
    assert_eq!(response.status().as_u16(), status, "the last answer is handed on");
    world.wire.pauses()
}

#[test]
fn spec_7_client_knows_the_thirteen_rows_with_their_texts() {
    let texts = rows(|_| true);
    assert_eq!(
        texts,
        [
            (400, "Bad request"),
            (
                400,
                "Input validation failed. Kindly check your input contains required fields for the request"
            ),
            (400, "Internal Error occurred. Kindly try again."),
            (401, "Unauthorized"),
            (403, "Forbidden"),
            (404, "Resource not found"),
            (405, "Method not allowed"),
            (415, "Unsupported media type"),
            (429, "Too many requests"),
            (500, "Internal server error"),
            (502, "Bad gateway"),
            (503, "Service unavailable"),
            (504, "Gateway timedout"),
        ]
    );
    assert_eq!(ERRORS[7].msg, None, "the text of 415 is not shown");
}

#[tokio::test(start_paused = true)]
async fn spec_7_client_a_final_answer_is_returned_at_once_and_never_repeated() {
    let finals = rows(|row| !row.retry && row.status != StatusCode::UNAUTHORIZED);
    assert_eq!(finals.iter().map(|row| row.0).collect::<Vec<_>>(), [400, 400, 403, 404, 405, 415]);
    for (status, msg) in finals {
        let world = World::scripted([error(status, msg)]);
        let start = tokio::time::Instant::now();
        let response = world.orders().await;
        assert_eq!(response.status().as_u16(), status);
        assert_eq!(Outcome::of(response.extensions()), Some(&Outcome::Rejected), "{status} {msg}");
        assert_eq!((world.wire.seen().len(), start.elapsed()), (1, Duration::ZERO), "{status} {msg}");
    }
}

#[tokio::test(start_paused = true)]
async fn spec_7_client_a_transient_fault_of_a_read_is_repeated_after_1_2_4_and_8_seconds() {
    for status in [500, 502, 504] {
        assert_eq!(pauses_of_a_read(status, msg_of(status)).await, [1, 2, 4, 8], "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn spec_7_client_a_400_is_repeated_only_if_its_text_asks_for_another_try() {
    assert_eq!(pauses_of_a_read(400, "Internal Error occurred. Kindly try again.").await, [1, 2, 4, 8]);
    for text in ["Internal Error occurred.", "internal error occurred. kindly try again.", "Try again"] {
        assert_eq!(pauses_of_a_read(400, text).await, [0; 0], "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn spec_7_client_a_503_is_repeated_after_a_longer_delay() {
    assert_eq!(pauses_of_a_read(503, "Service unavailable").await, [5, 2, 4, 8]);
}

#[tokio::test(start_paused = true)]
async fn spec_7_client_persistent_502s_wait_half_a_minute_where_that_is_asked_for() {
    let half_to_whole_minute = Duration::from_secs(30)..=Duration::from_secs(60);
    let patient = steadfast::retry::RetryPolicy::default().persistent_bad_gateway(half_to_whole_minute);
    let wire = Wire::scripted([error(502, "Bad gateway"), error(502, "Bad gateway"), ok("[]")]);
    let world = World::with(wire, |stack| stack.retry(patient));
    assert_eq!(world.orders().await.status(), StatusCode::OK);
    let pauses = world.wire.pauses();
    assert!(pauses[0] == 1 && (30..=60).contains(&pauses[1]), "{pauses:?}");
}

#[tokio::test(start_paused = true)]
async fn spec_7_client_a_429_is_backed_off_from_and_never_repeated_at_once() {
    let refused = || error(429, "Too many requests");
    let world = World::scripted([refused(), refused(), refused(), refused(), ok("[]")]);
    let quote = Operation::new(Endpoint::Quotes).query("symId", "EQT_INFY_EQ_NSE");
    assert_eq!(world.send(&quote).await.unwrap().status(), StatusCode::OK);
    assert_eq!(world.wire.pauses(), [1, 2, 4, 8]);
}

#[tokio::test(start_paused = true)]
async fn spec_7_client_a_second_429_of_a_zone_with_a_minute_takes_the_minute_for_spent() {
    let refused = || error(429, "Too many requests");
    let world = World::scripted([refused(), refused(), ok("[]")]);
    assert_eq!(world.orders().await.status(), StatusCode::OK);
    assert_eq!(world.wire.pauses(), [1, 60]);
}

#[tokio::test(start_paused = true)]
async fn spec_7_client_a_429_holds_back_everybody_else_of_its_zone() {
    let world = World::scripted([error(429, "Too many requests"), ok("[]")]);
    let (refused, other) = tokio::join!(world.orders(), async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        world.orders().await
    });
    assert_eq!((refused.status(), other.status()), (StatusCode::OK, StatusCode::OK));
    assert!(world.wire.pauses()[0] >= 1, "nobody sends within the pause: {:?}", world.wire.pauses());
}

#[tokio::test(start_paused = true)]
async fn spec_7_client_a_401_is_answered_by_one_login_and_not_by_repeats() {
    let wire = Wire::answering(|request| {
        let authorization = request.headers().get("authorization").and_then(|value| value.to_str().ok());
        match (request.uri().path(), authorization) {
            ("/v2/api-gw/oauth/individual-token-v2", _) => token("new"),
            _ => error(401, "Unauthorized"),
        }
    });
    let limiter = steadfast::limit::ZoneLimiter::preset();
    let source = limited_totp_source(&wire, &limiter, "u");
    let world = World::logging_in(wire, source);
    let response = world.orders().await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "the second 401 goes to the caller");
    let reads = world.wire.to_path("/api/oms/orders").len();
    let logins = world.wire.to_path("/api-gw/oauth/individual-token-v2").len();
    assert_eq!((reads, logins), (2, 1), "{:?}", world.wire.lines());
}

#[tokio::test(start_paused = true)]
async fn spec_7_client_a_read_succeeds_as_soon_as_the_fault_has_passed() {
    for (status, msg) in rows(|row| row.retry && row.status != StatusCode::TOO_MANY_REQUESTS) {
        let world = World::scripted([error(status, msg), error(status, msg), ok("[]")]);
        assert_eq!(world.orders().await.status(), StatusCode::OK, "{status} {msg}");
        assert_eq!(world.wire.seen().len(), 3, "{status} {msg}");
    }
}

#[tokio::test]
async fn spec_7_client_each_row_has_its_kind_its_text_and_whether_to_try_again() {
    let texts = rows(|row| row.status != StatusCode::UNAUTHORIZED);
    let (client, _) =
        canned(texts.iter().map(|&(status, msg)| (status, envelope_error(msg))).collect()).await;
    let kinds = [
        ErrorKind::Rejected,
        ErrorKind::Rejected,
        ErrorKind::Unavailable,
        ErrorKind::Rejected,
        ErrorKind::Rejected,
        ErrorKind::Rejected,
        ErrorKind::Rejected,
        ErrorKind::RateLimited,
        ErrorKind::Unavailable,
        ErrorKind::Unavailable,
        ErrorKind::Unavailable,
        ErrorKind::Unavailable,
    ];
    for ((status, msg), kind) in texts.into_iter().zip(kinds) {
        // The zone of the 429 pauses by itself; the zone of another operation does not, and the pause stays
        // short.
        let call = if status == 429 { Operation::symbols("NSE_EQ") } else { Operation::orders() };
        let error = client.call(&call).await.unwrap_err();
        assert_eq!((error.kind(), error.status().map(|status| status.as_u16())), (kind, Some(status)));
        assert_eq!(error.message(), Some(msg));
        let again = matches!(kind, ErrorKind::Unavailable | ErrorKind::RateLimited);
        assert_eq!(error.is_retryable(), again, "{status} {msg}");
    }
}
