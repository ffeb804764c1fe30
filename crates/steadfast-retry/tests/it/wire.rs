//! How raw bytes from a server are classified: hyper over an in-memory pipe, below the layers of this crate.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use steadfast_call::{BoxError, Failure, Fate, Outcome, Resend};
use steadfast_retry::{AttemptTimeoutLayer, ClassifyLayer, PeekedBody, TimedBody};
use steadfast_spec::Endpoint;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tower::{ServiceBuilder, ServiceExt, service_fn};

use crate::support::{PLACED, Sent, request};

const NEVER: Outcome = Outcome::Unknown { resend: Resend::Never };
const AFTER_ABSENCE: Outcome = Outcome::Unknown { resend: Resend::AfterAbsence };

/// The server's action after its last byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Close,
    Hang,
}

type Answer = Result<Response<PeekedBody<TimedBody<Incoming>>>, BoxError>;

/// Sends a place-order to a server that reads all of it and answers with these bytes.
async fn exchange(bytes: &[u8], then: Then) -> Answer {
    let (ours, mut theirs) = tokio::io::duplex(64 * 1024);
    let (mut send, connection) = http1::handshake::<_, Sent>(TokioIo::new(ours)).await?;
    tokio::spawn(connection);
    let answer = bytes.to_vec();
    tokio::spawn(async move {
        let mut seen = Vec::new();
        while !seen.ends_with(b"a=1") {
            let mut chunk = [0; 1024];
            match theirs.read(&mut chunk).await {
                Ok(0) | Err(_) => return,
                Ok(n) => seen.extend_from_slice(&chunk[..n]),
            }
        }
        let _ = theirs.write_all(&answer).await;
        if then == Then::Hang {
            std::future::pending::<()>().await;
        }
    });
    send.ready().await?;
    let transport = service_fn(move |mut request: Request<Sent>| {
        request.headers_mut().insert("host", "host".parse().unwrap());
        let sent = send.send_request(request);
        async { sent.await.map_err(|error| BoxError::from(Failure::new(Fate::Lost { ended: None }, error))) }
    });
    let stack = ServiceBuilder::new()
        .layer(ClassifyLayer::new())
        .layer(AttemptTimeoutLayer::new(Duration::from_secs(30)))
        .service(transport);
    stack.oneshot(request(Endpoint::PlaceOrder)).await
}

fn outcome(answer: &Answer) -> Outcome {
    match answer {
        Ok(response) => Outcome::of(response.extensions()).unwrap().clone(),
        Err(error) => Failure::outcome_of(&**error),
    }
}

fn with_length(status: &str, length: usize, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}")
}

// The names come from the fault catalogue, part C.
#[tokio::test(start_paused = true)]
async fn no_cut_or_garbled_answer_is_taken_for_a_placed_order() {
    let n = PLACED.len();
    let chunk = format!("{n:x}\r\n{PLACED}\r\n");
    let chunked = |rest: &str| format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{rest}");
    for (fault, bytes, then, expected) in [
        ("C1 status line cut", "HTTP/1.".to_owned(), Then::Close, AFTER_ABSENCE),
        ("C2 headers cut", "HTTP/1.1 200 OK\r\ncontent-le".to_owned(), Then::Close, AFTER_ABSENCE),
        ("C3 less than announced", with_length("200 OK", n, &PLACED[..n - 5]), Then::Close, NEVER),
        ("C4 less, then silence", with_length("200 OK", n, &PLACED[..n - 5]), Then::Hang, NEVER),
        ("C5 more than announced", with_length("200 OK", n - 1, PLACED), Then::Close, NEVER),
        ("C6 zero announced", with_length("200 OK", 0, PLACED), Then::Close, NEVER),
        ("C10 chunked without end", chunked(&chunk), Then::Close, NEVER),
        ("C10 and then silence", chunked(&chunk), Then::Hang, NEVER),
        ("C11 bad chunk size", chunked(&format!("zz\r\n{PLACED}\r\n0\r\n\r\n")), Then::Close, NEVER),
        (
            "C13 close-delimited, cut",
            format!("HTTP/1.1 200 OK\r\n\r\n{}", &PLACED[..n - 5]),
            Then::Close,
            NEVER,
        ),
        ("C18 junk", "\x16\x03\x01 hello".to_owned(), Then::Close, AFTER_ABSENCE),
        ("C19 status 999", with_length("999 ?", n, PLACED), Then::Close, NEVER),
        ("C20 unsolicited 101", "HTTP/1.1 101 Switching Protocols\r\n\r\n".to_owned(), Then::Close, NEVER),
        ("C21 204 with body", format!("HTTP/1.1 204 No Content\r\n\r\n{PLACED}"), Then::Close, NEVER),
        ("C25 announces 10 GB", with_length("200 OK", 10 << 30, PLACED), Then::Hang, NEVER),
        (
            "302",
            "HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n".to_owned(),
            Then::Hang,
            NEVER,
        ),
        ("no answer", String::new(), Then::Hang, AFTER_ABSENCE),
        ("B4 closed unread", String::new(), Then::Close, AFTER_ABSENCE),
    ] {
        assert_eq!(outcome(&exchange(bytes.as_bytes(), then).await), expected, "{fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn complete_answers_are_accepted_however_they_are_framed() {
    let accepted = Outcome::Accepted { order_id: Some("7".into()) };
    let chunks: String = PLACED.chars().map(|c| format!("1\r\n{c}\r\n")).collect();
    for (framing, bytes, then) in [
        ("length", with_length("200 OK", PLACED.len(), PLACED), Then::Hang),
        (
            "length after 100s",
            format!(
                "{}{}",
                "HTTP/1.1 100 Continue\r\n\r\n".repeat(5),
                with_length("200 OK", PLACED.len(), PLACED)
            ),
            Then::Hang,
        ),
        ("close", format!("HTTP/1.1 200 OK\r\n\r\n{PLACED}"), Then::Close),
        (
            "chunks",
            format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunks}0\r\n\r\n"),
            Then::Hang,
        ),
    ] {
        let answer = exchange(bytes.as_bytes(), then).await;
        assert_eq!(outcome(&answer), accepted, "{framing}");
        let body = answer.unwrap().into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, Bytes::from(PLACED), "{framing}");
    }
}

// B8: a reset after k bytes of the answer, for every k.
#[tokio::test(start_paused = true)]
async fn an_answer_cut_after_any_byte_is_never_accepted_before_its_last_one() {
    let bytes = with_length("200 OK", PLACED.len(), PLACED);
    for k in 0..bytes.len() {
        for then in [Then::Close, Then::Hang] {
            let answer = exchange(&bytes.as_bytes()[..k], then).await;
            assert!(outcome(&answer).is_unknown(), "cut after {k} bytes, then {then:?}");
        }
    }
    assert!(matches!(outcome(&exchange(bytes.as_bytes(), Then::Close).await), Outcome::Accepted { .. }));
}

// The reader of a cut body gets the bytes that came, and then hyper's own error.
#[tokio::test(start_paused = true)]
async fn a_cut_body_goes_on_with_its_bytes_and_its_error() {
    let answer = exchange(with_length("200 OK", 100, "half").as_bytes(), Then::Close).await.unwrap();
    let mut body = answer.into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "half");
    let error = body.frame().await.unwrap().unwrap_err();
    let error = error.downcast::<hyper::Error>().unwrap();
    let cause = std::error::Error::source(&*error).unwrap().downcast_ref::<std::io::Error>().unwrap();
    assert_eq!(cause.kind(), std::io::ErrorKind::UnexpectedEof);
    assert!(body.frame().await.is_none());
}
