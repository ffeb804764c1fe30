//! The bytes as a real HTTP client sees them, over a pipe in memory; the in-process service must return the same.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use steadfast_sandbox::{Fault, Place, Seen, wire::Line};
use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex},
    time::{Instant, timeout},
};
use tower::ServiceExt;

use crate::world::{MARKET, World};

pub(super) fn faults() -> Vec<Fault> {
    Fault::ALL.iter().copied().filter(|fault| fault.group() == "transport").collect()
}

/// Shorter than what hangs, longer than the slowest answer.
const PATIENCE: Duration = Duration::from_secs(550);
const PLACED: &str = r#"{"s":"ok","d":{"msg":"Order placed","orderId":"260000000001"}}"#;

/// One end of a pipe; the other end can tell its reset from its end.
pub(super) struct End {
    io: DuplexStream,
    reset: Arc<AtomicBool>,
}

/// Creates a pipe: the client's end and the server's.
pub(super) fn pipe() -> (End, End) {
    let (client, server) = duplex(64 * 1024);
    let reset = Arc::new(AtomicBool::new(false));
    (End { io: client, reset: reset.clone() }, End { io: server, reset })
}

impl Line for End {
    fn reset(self) {
        self.reset.store(true, Ordering::Relaxed);
    }
}

impl AsyncRead for End {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.io).poll_read(cx, buf);
        let ended = matches!(polled, Poll::Ready(Ok(()))) && buf.filled().len() == before;
        if ended && self.reset.load(Ordering::Relaxed) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        polled
    }
}

impl AsyncWrite for End {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

pub(super) type Client = SendRequest<Full<Bytes>>;

/// Creates a client with a connection of its own.
pub(super) async fn connect(world: &World) -> Client {
    let (client, server) = pipe();
    let sandbox = world.sandbox.clone();
    tokio::spawn(async move { sandbox.serve_line(server, [127, 0, 0, 1].into()).await });
    let (sender, connection) = handshake(TokioIo::new(client)).await.expect("a pipe");
    tokio::spawn(connection);
    sender
}

pub(super) fn order(world: &World) -> Request<Full<Bytes>> {
    let (key, token) = (&world.user.api_key, &world.user.access_token);
    Request::post("/v2/api/oms/place-order")
        .header("host", "sandbox")
        .header("authorization", format!("Bearer {key}:{token}"))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Full::from(MARKET))
        .expect("a request")
}

/// Returns the result of a request, in the terms of [`Seen`].
pub(super) async fn seen<B, E>(answer: impl Future<Output = Result<Response<B>, E>>) -> (Seen, u16)
where
    B: http_body::Body<Data = Bytes>,
    E: std::error::Error + 'static,
{
    let sent = Instant::now();
    let response = match timeout(PATIENCE, answer).await {
        Err(_) => return (Seen::HeadStalls, 0),
        Ok(Err(error)) => return (error_seen(&error), 0),
        Ok(Ok(response)) => response,
    };
    let status = response.status();
    let seen = match timeout(PATIENCE, response.into_body().collect()).await {
        Err(_) => Seen::BodyStalls,
        Ok(Err(_)) => Seen::BodyBroken,
        Ok(Ok(_)) if status == StatusCode::SWITCHING_PROTOCOLS => Seen::Whole,
        Ok(Ok(body)) => match body.to_bytes() == PLACED {
            false => Seen::SilentlyCut,
            true if sent.elapsed() > Duration::from_secs(100) => Seen::Slow,
            true => Seen::Whole,
        },
    };
    (seen, status.as_u16())
}

fn error_seen(error: &(dyn std::error::Error + 'static)) -> Seen {
    match error.downcast_ref::<hyper::Error>() {
        Some(error) if error.is_incomplete_message() => Seen::Incomplete,
        Some(error) if error.is_parse_too_large() => Seen::TooLarge,
        Some(error) if error.is_parse() => Seen::Unparsable,
        // The in-process service has one error for all of them.
        _ => Seen::Reset,
    }
}

/// Returns the status that a client sees, if it sees one.
fn status(fault: Fault) -> u16 {
    match fault {
        Fault::TransportStatus600 => 600,
        Fault::TransportStatus999 => 999,
        Fault::TransportSwitchingProtocols => 101,
        Fault::Transport204Body => 204,
        Fault::Transport304Body => 304,
        _ => 200,
    }
}

fn world(fault: Fault) -> World {
    World::with_script(&format!("[[fault]]\nname = '{fault}'\nendpoint = 'place-order'\nnth = 1"))
}

#[tokio::test(start_paused = true)]
async fn an_http_client_reports_of_every_transport_fault_what_its_row_says_and_the_order_exists() {
    for fault in faults() {
        if fault == Fault::TransportResetAtByte {
            continue;
        }
        let world = world(fault);
        let mut client = connect(&world).await;
        let (seen, shown) = seen(client.send_request(order(&world))).await;
        assert_eq!(Some(seen), fault.seen(), "{fault}");
        let head = !matches!(seen, Seen::HeadStalls | Seen::Unparsable | Seen::TooLarge | Seen::Incomplete);
        assert_eq!(shown, if head { status(fault) } else { 0 }, "{fault}");
        assert_eq!((world.orders(), world.struck(fault.as_str())), (1, 1), "{fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_in_process_service_answers_what_an_http_client_would_make_of_the_bytes() {
    for fault in faults() {
        if fault == Fault::TransportResetAtByte {
            continue;
        }
        let world = world(fault);
        let request = order(&world);
        let (parts, body) = request.into_parts();
        let (seen, shown) = seen(world.sandbox.gateway().oneshot(Request::from_parts(parts, body))).await;
        let expected = match fault.seen().expect("a transport fault") {
            Seen::Unparsable | Seen::TooLarge | Seen::Incomplete => Seen::Reset,
            seen => seen,
        };
        assert_eq!(seen, expected, "{fault}");
        let head = !matches!(seen, Seen::HeadStalls | Seen::Reset);
        assert_eq!(shown, if head { status(fault) } else { 0 }, "{fault}");
        assert_eq!((world.orders(), world.struck(fault.as_str())), (1, 1), "{fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_reset_after_every_single_byte_of_it() {
    let script = |byte| {
        format!(
            "[[fault]]\nname = 'transport.reset-at-byte'\nendpoint = 'place-order'\nnth = 1\nat_byte = {byte}"
        )
    };
    let mut counted = [0_usize; 3];
    for byte in 0.. {
        let world = World::with_script(&script(byte));
        let mut client = connect(&world).await;
        let over_a_pipe = seen(client.send_request(order(&world))).await.0;
        assert_eq!(world.orders(), 1, "{byte}");
        let same = World::with_script(&script(byte));
        let in_process = seen(same.sandbox.gateway().oneshot(order(&same))).await.0;
        assert_eq!(in_process, over_a_pipe, "{byte}");
        match over_a_pipe {
            Seen::Reset | Seen::Incomplete => counted[0] += 1,
            Seen::BodyBroken => counted[1] += 1,
            Seen::Whole => {
                counted[2] += 1;
                break;
            }
            other => panic!("{byte}: {other:?}"),
        }
    }
    assert_eq!(counted[1..], [PLACED.len(), 1], "every byte of the body, and then none is missing");
    assert!(counted[0] > 100, "every byte of the head: {counted:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_client_accepts_leaves_its_connection_usable() {
    for fault in [
        Fault::TransportLengthAndChunked,
        Fault::TransportBareLf,
        Fault::TransportStatus600,
        Fault::TransportStatus999,
        Fault::TransportContinueStorm,
        Fault::TransportEarlyHintsStorm,
    ] {
        let world = world(fault);
        let mut client = connect(&world).await;
        for orders in [1, 2] {
            client.ready().await.expect("the connection");
            let response = client.send_request(order(&world)).await.expect("an answer");
            response.into_body().collect().await.expect("a body");
            assert_eq!(world.orders(), orders, "{fault}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_was_kept_alive_ends_after_the_answer_or_in_the_race_with_the_next_request() {
    for (fault, error) in
        [(Fault::TransportCloseAfter, None), (Fault::TransportCloseInRace, Some(Seen::Incomplete))]
    {
        let world = world(fault);
        let mut client = connect(&world).await;
        assert_eq!(seen(client.send_request(order(&world))).await.0, Seen::Whole, "{fault}");
        match error {
            None => assert!(client.ready().await.is_err(), "{fault}: the client knows before it sends"),
            Some(error) => {
                client.ready().await.expect("nothing is wrong yet");
                assert_eq!(seen(client.send_request(order(&world))).await.0, error, "{fault}");
            }
        }
        assert_eq!(world.orders(), 1, "{fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_request_on_a_connection_gets_the_answer_of_the_one_before() {
    let world = world(Fault::TransportAnswerAgain);
    let mut client = connect(&world).await;
    let mut acks = Vec::new();
    for _ in 0..2 {
        client.ready().await.expect("the connection");
        let response = client.send_request(order(&world)).await.expect("an answer");
        acks.push(response.into_body().collect().await.expect("a body").to_bytes());
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(acks, [PLACED, PLACED], "two acks with one identifier");
    assert_eq!(world.orders(), 2, "and the second order was placed");
    assert!(client.ready().await.is_err(), "its own answer came when nothing was asked");
}

#[tokio::test(start_paused = true)]
async fn a_mass_reset_ends_every_connection_and_not_the_gateway() {
    let world = world(Fault::TransportMassReset);
    let (mut idle, mut struck) = (connect(&world).await, connect(&world).await);
    let list = || {
        let request = order(&world);
        let (mut parts, _) = request.into_parts();
        (parts.method, parts.uri) = (http::Method::GET, "/v2/api/oms/orders".parse().expect("a path"));
        Request::from_parts(parts, Full::default())
    };
    assert_eq!(idle.send_request(list()).await.expect("an answer").status(), 200);
    assert_eq!(seen(struck.send_request(order(&world))).await.0, Seen::Whole);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(idle.ready().await.is_err() && struck.ready().await.is_err());
    assert_eq!(connect(&world).await.send_request(list()).await.expect("an answer").status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_fault_that_strikes_connections_is_refused_by_name_where_there_are_none() {
    for &fault in Fault::ALL.iter().filter(|fault| fault.place() == Place::Connection) {
        let world = World::with_fault(fault.as_str(), 1.0);
        let error = world.sandbox.gateway().oneshot(order(&world)).await.expect_err(fault.as_str());
        assert!(error.to_string().contains(fault.as_str()), "{error}");
        assert_eq!(world.orders(), 0, "{fault}");
        world.sandbox.heal();
        assert_eq!(world.place(MARKET).await.status(), 200, "{fault}");
    }
}
