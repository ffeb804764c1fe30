//! Measures a list of a hundred thousand orders while fifty are in doubt: time, memory, and the waits of other tasks.
//!
//! Time is real here, because the pauses of other tasks are measured.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and prints its figures"
)]

use std::{
    alloc::System,
    collections::BTreeSet,
    convert::Infallible,
    fmt::Write as _,
    future::{Ready, ready},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Body;
use http_body_util::Full;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use steadfast_call::{Call, Outcome, Resend, Route, ext::Sent};
use steadfast_dedup::{DedupLayer, OrderTracker, SendGuardLayer, Settings, Unresolved};
use steadfast_spec::Endpoint;
use steadfast_verify::noon::at_noon;
use tower::{Layer, Service, ServiceExt};

#[global_allocator]
static COUNTED: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const ORDERS: usize = 50;
const ROWS: usize = 100_000;

/// Beside other processes this takes up to twice as long, and in a debug build much longer.
const SLACK: u32 = if cfg!(debug_assertions) { 100 } else { 2 };

/// A gateway that loses every order. Its first list is empty, the others hold `rows` rows each.
#[derive(Clone)]
struct Gateway {
    lists: Arc<AtomicUsize>,
    lost: Arc<AtomicUsize>,
    bodies: Arc<Vec<Bytes>>,
}

impl<B: Body<Data = Bytes> + Unpin> Service<Request<B>> for Gateway {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let is_order = request.method() == Method::POST;
        let mut body = request.into_body();
        let mut cx = Context::from_waker(std::task::Waker::noop());
        while let Poll::Ready(Some(Ok(_))) = Pin::new(&mut body).poll_frame(&mut cx) {}
        if is_order {
            self.lost.fetch_add(1, Relaxed);
            let mut response = Response::new(Full::from(Bytes::from_static(br#"{"s":"error","msg":"x"}"#)));
            *response.status_mut() = http::StatusCode::GATEWAY_TIMEOUT;
            Sent::of_mut(response.extensions_mut())
                .set_outcome(Outcome::Unknown { resend: Resend::AfterAbsence });
            return ready(Ok(response));
        }
        let body = match self.lists.fetch_add(1, Relaxed) {
            0 => Bytes::from_static(br#"{"s":"no-data","msg":"no-data"}"#),
            n => self.bodies[(n - 1) % self.bodies.len()].clone(),
        };
        ready(Ok(Response::new(Full::from(body))))
    }
}

fn list(first: usize, fields: &str) -> Bytes {
    let mut body = String::from(r#"{"s":"ok","d":["#);
    for n in first..first + ROWS {
        let comma = if n > first { "," } else { "" };
        write!(body, r#"{comma}{{"orderId":"x{n}"{fields}}}"#).unwrap();
    }
    (body + "]}").into()
}

fn request(qty: usize) -> Request<Full<Bytes>> {
    let form = format!(
        "symId=EQT_INFY_EQ_NSE&qty={qty}&side=buy&type=limit&product=delivery&validity=day&limitPrice=100"
    );
    let mut request = Request::post("https://gateway.example/v2/api/oms/place-order")
        .body(Full::from(Bytes::from(form)))
        .unwrap();
    Call::of_mut(request.extensions_mut()).set_route(Arc::new(Route::new(Endpoint::PlaceOrder)));
    request
}

/// Returns how long this thread has run, without the time of other threads of the machine.
#[cfg(unix)]
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap()
}

/// Returns the elapsed time, where thread times are not known.
#[cfg(not(unix))]
fn thread_time() -> Duration {
    static START: std::sync::OnceLock<tokio::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(tokio::time::Instant::now).elapsed()
}

/// A shorter turn of another task is the runtime's own.
const TURN: Duration = Duration::from_micros(20);

/// How long another task of the runtime had to wait for its turns.
#[derive(Default)]
struct Seen {
    /// Its longest wait between two of its turns, after all orders were sent.
    longest: Duration,
    /// How long the others ran in total.
    all: Duration,
    /// The most memory that was held at any of its turns.
    held: usize,
}

async fn watch(lost: Arc<AtomicUsize>, over: Arc<AtomicBool>) -> Seen {
    let (mut seen, mut last, region) = (Seen::default(), thread_time(), Region::new(COUNTED));
    while !over.load(Relaxed) {
        let counts = lost.load(Relaxed) == ORDERS;
        tokio::task::yield_now().await;
        let now = thread_time();
        let turn = now.saturating_sub(last);
        last = now;
        if turn > TURN {
            seen.all += turn;
            let spent = region.change();
            seen.held = seen.held.max(spent.bytes_allocated.saturating_sub(spent.bytes_deallocated));
        }
        if counts {
            seen.longest = seen.longest.max(turn);
        }
    }
    seen
}

const SAME: &str = r#","symId":"EQT_INFY_EQ_NSE","side":"buy","qty":7,"type":"limit","limitPrice":100,"product":"delivery","validity":"day""#;
const NEAR: &str = r#","symId":"EQT_INFY_EQ_NSE","side":"buy","qty":99"#;

#[tokio::test]
async fn o08_a_crowded_list_holds_up_nobody() {
    let mut worst = Seen::default();
    for (what, fields, lists) in
        [("bare", "", 1), ("near", NEAR, 1), ("one like ours", SAME, 1), ("new each time", NEAR, 8)]
    {
        let bodies: Vec<_> = (0..lists).map(|n| list(n * ROWS, fields)).collect();
        let (lists, lost, bodies) = (Arc::default(), Arc::default(), Arc::new(bodies));
        let settings = at_noon(Settings::default())
            .gateway_timeout(Duration::from_secs(30))
            .lateness(Duration::from_millis(50))
            .verification_budget(Duration::from_secs(10));
        let tracker = OrderTracker::new(settings);
        let gateway = Gateway { lists: Arc::clone(&lists), lost: Arc::clone(&lost), bodies };
        let service = DedupLayer::new(&tracker).layer(SendGuardLayer::new(&tracker).layer(gateway));
        let over = Arc::new(AtomicBool::new(false));
        let watch = tokio::spawn(watch(lost, over.clone()));
        let calls: Vec<_> =
            (1..=ORDERS).map(|qty| tokio::spawn(service.clone().oneshot(request(qty)))).collect();
        let mut reasons = BTreeSet::new();
        for call in calls {
            let answer = call.await.unwrap().unwrap();
            reasons
                .extend(answer.extensions().get::<Unresolved>().map(|unresolved| unresolved.reason.as_str()));
            assert!(
                answer.extensions().get::<steadfast_dedup::Resolution>().is_none() || what == "one like ours"
            );
        }
        over.store(true, Relaxed);
        let (Seen { longest: pause, all: took, held }, reads) = (watch.await.unwrap(), lists.load(Relaxed));
        println!(
            "{what}: {reads} lists, {took:?} of this thread, others wait {pause:?}, {} MB at most, {reasons:?}",
            held >> 20
        );
        assert!(took <= Duration::from_secs(1) * SLACK.min(10), "{what}: {reads} lists took {took:?}");
        assert!(held <= 200 << 20, "{what}: {held} bytes");
        worst.longest = worst.longest.max(pause);
        worst.all = worst.all.max(took);
        worst.held = worst.held.max(held);
        drop((service, tracker));
        tokio::task::yield_now().await;
    }
    let Seen { longest, all, held } = worst;
    println!(
        "figures: crowd_cpu_ms={} crowd_pause_us={} crowd_mb={}",
        all.as_millis(),
        longest.as_micros(),
        held >> 20
    );
    // Asked last, so that every case says its figures.
    assert!(longest <= Duration::from_millis(5) * SLACK, "others waited {longest:?}");
}
