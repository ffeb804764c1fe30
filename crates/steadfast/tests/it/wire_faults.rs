//! Every fault of a connection and of an answer's bytes, with the whole stack and a real HTTP client: an order whose
//! answer is lost is in doubt, is found, and exists once.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{
        Client,
        connect::{Connected, Connection},
    },
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use steadfast::{
    BaseUrl, BoxError, HostTransport, HyperTransport, Line, Operation, OrderRequest, Paths, RequestBody,
    Stack,
    auth::{ApiKey, TokenSource},
    call::{Failure, Fate, Routes},
    dedup::{Resolution, Unresolved},
};
use steadfast_sandbox::{Fault, Sandbox};
use steadfast_verify::noon;
use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex},
    time::{Instant, sleep},
};
use tower::{Service, ServiceExt, service_fn, util::BoxCloneSyncService};

use crate::world::{World, order, script};

/// The client's end of a pipe in memory.
#[derive(Debug)]
struct Pipe(DuplexStream);

impl AsyncRead for Pipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

impl Connection for Pipe {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

/// How dialling a connection goes.
#[derive(Clone, Copy)]
enum Dial {
    Through,
    /// The first lookups or connections fail with this error.
    Fails(u64, io::ErrorKind),
    /// Each takes this long.
    Slow(Duration),
}

/// The result of an order.
struct Told {
    status: StatusCode,
    order_id: Option<String>,
    recovered: bool,
    unresolved: bool,
}

/// The transport below the stack.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Over {
    Host,
    Hyper,
}

/// Places an order for intent `a` through the whole stack over the transport to one host.
async fn place(sandbox: &Sandbox, dial: Dial) -> Result<Told, BoxError> {
    place_over(Over::Host, sandbox, dial).await
}

async fn place_over(over: Over, sandbox: &Sandbox, dial: Dial) -> Result<Told, BoxError> {
    let facts = sandbox.credentials();
    let tokens = TokenSource::fixed(ApiKey::new(facts.api_key)?, facts.access_token)?;
    let base: BaseUrl = facts.base_url.parse()?;
    let stack =
        Stack::new(base.clone(), tokens).routes(Routes::new(&Paths::public())).tracker(noon::tracker());
    let dialled = Arc::new(AtomicU64::new(0));
    let far = sandbox.clone();
    let connector = service_fn(move |_: Uri| {
        let number = dialled.fetch_add(1, Ordering::Relaxed);
        let sandbox = far.clone();
        // The client requires a future that is `Unpin`.
        Box::pin(async move {
            match dial {
                Dial::Fails(times, kind) if number < times => return Err(io::Error::from(kind)),
                Dial::Slow(time) => sleep(time).await,
                Dial::Fails(..) | Dial::Through => {}
            }
            let (client, server) = duplex(64 * 1024);
            tokio::spawn(async move { sandbox.serve_line(server, [127, 0, 0, 1].into()).await });
            // The server of the pipe has read what was written before anything else happens, so nothing arrives later.
            Ok::<_, io::Error>(Line::over(TokioIo::new(Pipe(client)), true))
        })
    });
    // The limits of `Transport`, which has sockets of its own.
    let client = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .timer(TokioTimer::new())
        .http1_max_buf_size(128 * 1024)
        .build(connector.clone());
    let service = match over {
        Over::Host => boxed(&stack, HostTransport::over(&base, connector)),
        Over::Hyper => boxed(&stack, HyperTransport::new(client)),
    };
    let operation = Operation::place_order(&order("EQT_INFY_EQ_NSE"));
    let request = Request::builder()
        .method(operation.method())
        .uri(format!("{}{}", facts.base_url, operation.target(&Paths::public())?))
        .header("x-test-intent", "a")
        .body(Full::from(operation.body().unwrap_or_default()))?;
    let response = service.oneshot(request).await?;
    let told = Told {
        status: response.status(),
        recovered: matches!(response.extensions().get(), Some(Resolution::Recovered { .. })),
        unresolved: response.extensions().get::<Unresolved>().is_some(),
        order_id: None,
    };
    let body = response.into_body();
    let order_id = steadfast::spec::PlacedOrder::parse(&body).ok().map(|placed| placed.order_id);
    Ok(Told { order_id, ..told })
}

/// Returns the stack around a transport, with answers read to their end; one that breaks off is empty.
fn boxed<S, B>(
    stack: &Stack,
    transport: S,
) -> BoxCloneSyncService<Request<Full<Bytes>>, Response<Bytes>, BoxError>
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error = BoxError>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError> + Send,
{
    let service = stack.boxed(transport).and_then(async |response: Response<steadfast::ResponseBody<B>>| {
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        Ok(Response::from_parts(parts, body))
    });
    BoxCloneSyncService::new(service)
}

fn orders(sandbox: &Sandbox) -> Vec<String> {
    sandbox.state().orders.into_iter().map(|order| order.order_id).collect()
}

/// Returns how often an order arrived.
fn sends(sandbox: &Sandbox) -> usize {
    sandbox.state().arrivals.iter().filter(|arrival| arrival.path.ends_with("/place-order")).count()
}

fn of_groups(groups: &[&str]) -> impl Iterator<Item = Fault> {
    Fault::ALL.iter().copied().filter(move |fault| groups.contains(&fault.group()))
}

/// Answers that contain everything of a success, however oddly: nothing is in doubt.
const DIRECT: [Fault; 11] = [
    Fault::AnswerOrderIdNumber,
    Fault::AnswerNulInMsg,
    Fault::AnswerGzipClaim,
    Fault::AnswerConnectionClose,
    Fault::TransportBareLf,
    Fault::TransportContinueStorm,
    Fault::TransportEarlyHintsStorm,
    Fault::TransportAnswerAgain,
    Fault::TransportCloseAfter,
    Fault::TransportCloseInRace,
    Fault::TransportMassReset,
];

/// Direct over hyper-util, which hands the first of two answers on that come at once.
const TWICE: Fault = Fault::TransportExtraAnswer;

async fn an_order_behind_any_spoiled_answer_is_found(over: Over) {
    for fault in of_groups(&["answer", "transport"]) {
        let sandbox = struck(fault, "endpoint = 'place-order'");
        let told = place_over(over, &sandbox, Dial::Through).await.unwrap();
        let there = orders(&sandbox);
        assert_eq!((told.order_id, there.len()), (there.first().cloned(), 1), "{fault}");
        assert_eq!((told.status, told.unresolved), (StatusCode::OK, false), "{fault}");
        let is_direct = DIRECT.contains(&fault) || over == Over::Hyper && fault == TWICE;
        assert_eq!(told.recovered, !is_direct, "{fault}");
        assert_eq!(sandbox.fault_counts().get(fault.as_str()), Some(&1), "{fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_behind_any_spoiled_answer_is_in_doubt_and_found_and_there_once() {
    an_order_behind_any_spoiled_answer_is_found(Over::Host).await;
}

#[tokio::test(start_paused = true)]
async fn an_order_behind_any_spoiled_answer_is_found_over_hyper_util_too() {
    an_order_behind_any_spoiled_answer_is_found(Over::Hyper).await;
}

#[tokio::test(start_paused = true)]
async fn an_order_that_was_not_placed_is_placed_once_or_stays_in_doubt_behind_any_spoiled_answer() {
    let mut placed = 0;
    for fault in of_groups(&["answer", "transport"]) {
        let script = format!(
            "[[fault]]\nname = 'placement.504-not-applied'\nnth = 1\n\
             [[fault]]\nname = '{fault}'\nendpoint = 'place-order'\nnth = 1"
        );
        let sandbox = script_of(&script);
        let told = place(&sandbox, Dial::Through).await;
        let there = orders(&sandbox);
        assert!(there.len() <= 1, "{fault}: {there:?}");
        // A send that ends after half a minute settles when the order is too old to be sent again.
        let Ok(told) = told else {
            assert_eq!((there.len(), sends(&sandbox)), (0, 1), "{fault}");
            continue;
        };
        // The caller is given the id of an order that exists, or told that it is in doubt; never the id of one that
        // does not exist.
        assert_eq!(told.order_id.as_ref(), there.first(), "{fault}");
        assert_eq!(told.unresolved, there.is_empty(), "{fault}");
        placed += there.len();
    }
    // A 504 with a spoiled text is not the gateway's own word, and is never sent again.
    assert!(placed > 25, "{placed} were sent again once their absence was established");
}

#[tokio::test(start_paused = true)]
async fn an_order_is_placed_once_whatever_happens_to_its_connection() {
    for fault in of_groups(&["connection"]) {
        let sandbox = struck(fault, "");
        let told = place(&sandbox, Dial::Through).await.unwrap();
        let there = orders(&sandbox);
        assert_eq!((told.order_id, there.len()), (there.first().cloned(), 1), "{fault}");
        assert_eq!(sandbox.fault_counts().get(fault.as_str()), Some(&1), "{fault}");
    }
}

/// Tests every byte with `STEADFAST_DEEP=1`, otherwise every seventh.
#[tokio::test(start_paused = true)]
async fn an_order_is_placed_once_at_whichever_byte_request_or_answer_breaks_off() {
    let step = if std::env::var_os("STEADFAST_DEEP").is_some() { 1 } else { 7 };
    for (fault, bytes) in [("transport.reset-at-byte", 260), ("connection.reset-mid-request", 420)] {
        for byte in (0..bytes).step_by(step) {
            let script = format!("[[fault]]\nname = '{fault}'\nnth = 1\nat_byte = {byte}");
            let sandbox = script_of(&script);
            let told = place(&sandbox, Dial::Through).await.unwrap();
            let there = orders(&sandbox);
            assert_eq!((told.order_id, there.len()), (there.first().cloned(), 1), "{fault} at {byte}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_not_found_or_a_refused_connection_leaves_nothing_in_doubt() {
    for kind in [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused] {
        let sandbox = script_of("");
        let error = place(&sandbox, Dial::Fails(u64::MAX, kind)).await.err().unwrap();
        assert_eq!(Failure::find(&*error).map(Failure::fate), Some(Fate::NeverLeft), "{kind}");
        assert_eq!(sandbox.state().requests, 0, "{kind}");
        let told = place(&sandbox, Dial::Fails(1, kind)).await.unwrap();
        assert_eq!((told.order_id, told.recovered), (orders(&sandbox).pop(), false), "{kind}");
        assert_eq!((sends(&sandbox), orders(&sandbox).len()), (1, 1), "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_made_late_carries_the_order_once() {
    let sandbox = script_of("");
    let start = Instant::now();
    let told = place(&sandbox, Dial::Slow(Duration::from_secs(20))).await.unwrap();
    assert_eq!((told.order_id, told.recovered), (orders(&sandbox).pop(), false));
    assert_eq!((sends(&sandbox), start.elapsed()), (1, Duration::from_secs(20)));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_never_made_leaves_nothing_in_doubt() {
    let sandbox = script_of("");
    let error = place(&sandbox, Dial::Slow(Duration::from_secs(86_400))).await.err().unwrap();
    assert_eq!(Failure::find(&*error).map(Failure::fate), Some(Fate::NeverLeft), "{error}");
    assert_eq!(sandbox.state().requests, 0);
}

#[tokio::test(start_paused = true)]
async fn an_order_whose_list_fails_for_as_long_as_anybody_asks_stays_in_doubt() {
    for status in [403, 429, 500, 502, 503, 504] {
        let sandbox = script_of(&format!(
            "[[fault]]\nname = 'placement.504-applied'\n[[fault]]\nname = 'list.{status}'"
        ));
        let told = place(&sandbox, Dial::Through).await.unwrap();
        assert_eq!((told.order_id, told.unresolved), (None, true), "list.{status}");
        assert_eq!(orders(&sandbox).len(), 1, "list.{status}");
    }
    // One 401 to the read before the order may be a mistake, so the order leaves. A second one, to the search for it,
    // invalidates a token that cannot be renewed.
    let sandbox = script_of("[[fault]]\nname = 'placement.504-applied'\n[[fault]]\nname = 'list.401'");
    let told = place(&sandbox, Dial::Through).await.unwrap();
    assert_eq!((told.order_id, told.unresolved), (None, true));
    assert_eq!((orders(&sandbox).len(), sends(&sandbox)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn near_twins_are_told_apart() {
    let base = [
        ("symId", "EQT_INFY_EQ_NSE"),
        ("qty", "10"),
        ("side", "buy"),
        ("type", "limit"),
        ("limitPrice", "100.05"),
        ("product", "delivery"),
        ("validity", "day"),
    ];
    for (field, other) in
        [("limitPrice", "100.10"), ("product", "intraday"), ("validity", "ioc"), ("qty", "11")]
    {
        let twin = base.map(|(name, value)| (name, if name == field { other } else { value }));
        let orders = [base, twin].map(|fields| OrderRequest::from_fields(fields).unwrap());
        let world = World::new(script("[[fault]]\nname = 'placement.504-applied'\nnth = 1\ntimes = 2"));
        let (one, two) =
            tokio::join!(world.place_order(&orders[0], "one"), world.place_order(&orders[1], "two"));
        let placed = world.placed();
        for (told, intent) in [(one.unwrap(), "one"), (two.unwrap(), "two")] {
            assert_eq!(told.into_iter().collect::<Vec<_>>(), placed[intent], "{field}: {intent}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_dies_while_a_read_is_repeated_is_an_answer_and_no_loop() {
    let world = World::new(script(
        "[[fault]]\nname = 'list.504'\nnth = 1\ntimes = 2\n\
         [[fault]]\nname = 'auth.token-revoked'\nendpoint = 'orders'\nnth = 3",
    ));
    let response = world.send(&Operation::orders(), None).await.unwrap();
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(world.sandbox.state().requests, 3);
}

/// Returns a sandbox in which the fault strikes the first request that it can strike.
fn struck(fault: Fault, more: &str) -> Sandbox {
    script_of(&format!("[[fault]]\nname = '{fault}'\nnth = 1\n{more}"))
}

fn script_of(toml: &str) -> Sandbox {
    script(toml).build().unwrap()
}
