//! G. Crash: the process ends at any moment, and the next one continues its journal.

use std::{
    path::{Path, PathBuf},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, UNIX_EPOCH},
};

use http::{HeaderValue, Request, Response, header};
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use serde_json::json;
use steadfast_call::{BoxError, Call, Failure, Outcome, Route, WallClock, ext, find_cause};
use steadfast_dedup::{
    AccountMode, Dedup, DedupLayer, GuardedBody, OrderEvent, OrderTag, OrderTracker, OrderWithheld, Reason,
    Recover, RecoveredOrder, ResendPolicy, Ruling, SendGuard, SendGuardLayer, Settings, Verdict,
    journal::{Disk, Durable, Entry, FileJournal, FileSystem, Journal, JournalError, Log, Record},
    unresolved,
};
use steadfast_spec::Endpoint;
use steadfast_verify::{
    invariants::{Run, violations},
    noon::at_noon,
};
use tempfile::TempDir;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};
use tower::{Layer, Service, ServiceExt};

use crate::{
    clocks::Clockwork,
    fillable::Fillable,
    gateway::{Body, Gateway, Place, ReadReply, Reply, ack, documented, gw504, http, read},
    rig::{ORDER, Told, order, tell},
};

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A journal that writes on the calling thread, so that paused time waits for no other thread.
#[derive(Clone, Debug)]
struct Inline<D: Disk>(Arc<Mutex<Written<D>>>);

#[derive(Debug)]
struct Written<D: Disk> {
    /// `None` once its process has ended.
    log: Option<Log<D>>,
    salt: [u8; 16],
    /// How long a write takes.
    pause: Duration,
    /// How long it takes for earlier entries.
    flush_takes: Duration,
}

impl<D: Disk> Inline<D> {
    fn open(disk: D, path: &Path) -> Self {
        let log = Log::open(disk, path).unwrap();
        let salt = log.salt();
        Self(Arc::new(Mutex::new(Written {
            log: Some(log),
            salt,
            pause: Duration::ZERO,
            flush_takes: Duration::ZERO,
        })))
    }

    /// Stops all writing.
    fn kill(&self) {
        self.0.lock().log = None;
    }
}

impl<D: Disk + 'static> Journal for Inline<D>
where
    D::Lock: 'static,
{
    fn recover(&self) -> Vec<Entry> {
        self.0.lock().log.as_ref().unwrap().entries().cloned().collect()
    }

    fn append(&self, entry: Entry) {
        if let Some(log) = &mut self.0.lock().log {
            drop(log.append([&entry]));
        }
    }

    fn append_durably(&self, entry: Entry) -> Durable {
        let mut written = self.0.lock();
        let result = match &mut written.log {
            Some(log) => log.append_durably([&entry]),
            None => Err(JournalError::Poisoned),
        };
        after(written.pause, result)
    }

    fn flush(&self) -> Durable {
        after(self.0.lock().flush_takes, Ok(()))
    }

    fn salt(&self) -> [u8; 16] {
        self.0.lock().salt
    }
}

fn after(pause: Duration, result: Result<(), JournalError>) -> Durable {
    if pause.is_zero() {
        return Durable::known(result);
    }
    let (report, durable) = Durable::pending();
    tokio::spawn(async move {
        sleep(pause).await;
        report.tell(result);
    });
    durable
}

/// The connection to the gateway, until the process ends: after that nothing passes in either direction.
#[derive(Clone)]
struct Line {
    gateway: Gateway,
    cut: Arc<AtomicBool>,
}

impl Service<Request<GuardedBody<Body>>> for Line {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<GuardedBody<Body>>) -> Self::Future {
        let Self { gateway, cut } = self.clone();
        Box::pin(async move {
            let is_cut = || cut.load(Ordering::Relaxed);
            if is_cut() {
                return std::future::pending().await;
            }
            let answer = gateway.oneshot(request).await;
            if is_cut() { std::future::pending().await } else { answer }
        })
    }
}

/// The machine and the gateway, which outlive every process.
struct World {
    gateway: Gateway,
    folder: TempDir,
    settings: Settings,
    token: &'static str,
}

/// One process.
struct Process {
    tracker: OrderTracker,
    service: Dedup<SendGuard<Line>>,
    journal: Inline<FileSystem>,
    gateway: Gateway,
    cut: Arc<AtomicBool>,
    token: &'static str,
}

impl World {
    fn new() -> Self {
        let (gateway, folder) = (Gateway::default(), tempfile::tempdir().unwrap());
        Self { gateway, folder, settings: at_noon(Settings::default()), token: "Bearer key:one" }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("orders.journal")
    }

    fn start(&self) -> Process {
        let journal = Inline::open(FileSystem, &self.path());
        let tracker = OrderTracker::journaled(self.settings.clone(), journal.clone());
        let cut = Arc::new(AtomicBool::new(false));
        let service = stack(&tracker, Line { gateway: self.gateway.clone(), cut: cut.clone() });
        Process { tracker, service, journal, gateway: self.gateway.clone(), cut, token: self.token }
    }
}

fn stack(tracker: &OrderTracker, line: Line) -> Dedup<SendGuard<Line>> {
    DedupLayer::new(tracker).layer(SendGuardLayer::new(tracker).layer(line))
}

impl Process {
    fn request(&self, intent: &str, form: &str) -> Request<Body> {
        Request::post("https://gateway.example/v2/api/oms/place-order")
            .header("x-test-intent", intent)
            .header(header::AUTHORIZATION, HeaderValue::from_static(self.token))
            .body(Full::from(form.to_owned()))
            .unwrap()
    }

    async fn place(&self, intent: &str, form: &str) -> Told {
        tell(self.service.clone().oneshot(self.request(intent, form)).await).await
    }

    /// Places an order under a name that is the same in the next process.
    async fn place_as(&self, name: &str, form: &str) -> Told {
        let mut request = self.request(name, form);
        Call::of_mut(request.extensions_mut()).set_intent(ext::IntentId::new(name));
        tell(self.service.clone().oneshot(request).await).await
    }

    fn start_placing(&self, intent: &str, form: &str) -> JoinHandle<()> {
        let (service, mut request) = (self.service.clone(), self.request(intent, form));
        Call::of_mut(request.extensions_mut()).set_intent(ext::IntentId::new(intent));
        tokio::spawn(async move { drop(service.oneshot(request).await) })
    }

    /// Sends changes of an order.
    async fn change(&self, order_id: &str, times: usize) {
        for _ in 0..times {
            let mut request = self.request("change", &format!("orderId={order_id}&qty=7"));
            Call::of_mut(request.extensions_mut()).set_route(Arc::new(Route::new(Endpoint::ModifyOrder)));
            // The gateway of these tests makes no change by itself.
            self.gateway.will([http(200, "changed")]);
            assert!(self.service.clone().oneshot(request).await.is_ok());
        }
    }

    /// Like `kill -9`: no caller gets an answer, and nothing more is written.
    fn kill(self) {
        self.journal.kill();
        self.cut.store(true, Ordering::Relaxed);
    }

    fn kill_and_start(self, world: &World) -> Self {
        self.kill();
        world.start()
    }

    async fn recover(&self) -> Vec<RecoveredOrder> {
        let mut request =
            Request::get("https://gateway.example/v2/api/oms/orders").body(Body::default()).unwrap();
        request.headers_mut().insert(header::AUTHORIZATION, HeaderValue::from_static(self.token));
        request.extensions_mut().insert(Recover);
        let answer = self.service.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status(), 204);
        self.tracker.recover().await.unwrap()
    }
}

/// Returns how each recovered order ended: its name, and its identifier or the reason.
fn ends(recovered: &[RecoveredOrder]) -> Vec<(String, String)> {
    let end = |order: &RecoveredOrder| {
        let end = match &order.verdict {
            Verdict::Recovered { order_id, .. } => order_id.clone(),
            Verdict::Unresolved(unresolved) => unresolved.reason.to_string(),
            other => format!("{other:?}"),
        };
        (order.name.as_ref().map(|name| name.as_str().to_owned()).unwrap_or_default(), end)
    };
    recovered.iter().map(end).collect()
}

fn is(recovered: &[RecoveredOrder], expected: &[(&str, &str)]) {
    let expected: Vec<_> =
        expected.iter().map(|(name, end)| ((*name).to_owned(), (*end).to_owned())).collect();
    assert_eq!(ends(recovered), expected);
}

#[tokio::test(start_paused = true)]
async fn s78_crash_before_send() {
    let world = World::new();
    world.gateway.will([ack().reply(Reply::NotPolled).answered_after(s(60))]);
    let process = world.start();
    process.start_placing("a", ORDER);
    sleep(s(2)).await;
    process.kill();

    let process = world.start();
    assert_eq!(process.tracker.in_doubt(), 1);
    let start = Instant::now();
    is(&process.recover().await, &[("a", "not_observed")]);
    assert!(start.elapsed() >= s(45), "the whole settle time: {:?}", start.elapsed());
    assert_eq!(world.gateway.posts(), 0);
}

#[tokio::test(start_paused = true)]
async fn s79_crash_after_send() {
    let world = World::new();
    world.gateway.will([ack().reply(Reply::Hang)]);
    let process = world.start();
    process.start_placing("a", ORDER);
    sleep(s(2)).await;
    process.kill();

    let process = world.start();
    is(&process.recover().await, &[("a", "o1")]);
    assert_eq!(world.gateway.posts(), 1);
    // The outcome is in the journal, too: the third process has nothing to search for.
    process.kill();
    let process = world.start();
    let reads = world.gateway.gets();
    is(&process.recover().await, &[]);
    assert_eq!((world.gateway.posts(), world.gateway.gets()), (1, reads));
}

/// Regression: the next process told all orders under the identifiers of wrong answers, and the last one's own as one too
/// many.
#[tokio::test(start_paused = true)]
async fn o06_shifted_answers_are_corrected_after_a_crash() {
    let world = World::new();
    world.gateway.foreign(&ORDER.replace("qty=10", "qty=9"), |_| {});
    world.gateway.reads([read(ReadReply::Without(vec!["o1"]))]);
    let rows = [("a", 1, "o1", "o2"), ("b", 2, "o2", "o3"), ("c", 3, "o3", "o4")];
    let form = |qty: u32| ORDER.replace("qty=10", &format!("qty={qty}"));
    let process = world.start();
    for (name, qty, told, _) in rows {
        let lag = if qty == 3 { s(3) } else { Duration::ZERO };
        world.gateway.will([Place { lag, ..ack() }.reply(Reply::AckId(told))]);
        assert_eq!(process.place_as(name, &form(qty)).await, Told::Placed(told.into()));
    }
    process.kill();

    let process = world.start();
    let mut events = process.tracker.events();
    for (name, qty, told, _) in rows {
        assert_eq!(process.place_as(name, &form(qty)).await, Told::Attached(told.into()));
    }
    let stop = tokio::spawn({
        let tracker = process.tracker.clone();
        async move { tracker.shutdown().await }
    });
    sleep(s(4)).await;
    let mut request =
        Request::get("https://gateway.example/v2/api/oms/orders").body(Body::default()).unwrap();
    request.headers_mut().insert(header::AUTHORIZATION, HeaderValue::from_static(process.token));
    drop(process.service.clone().oneshot(request).await.unwrap().into_body().collect().await);
    stop.await.unwrap();
    let mut right = Vec::new();
    while let Ok(event) = events.try_recv() {
        match event {
            OrderEvent::Recovered { name, order_id, .. } => {
                right.push((name.unwrap().as_str().to_owned(), order_id))
            }
            OrderEvent::Excess { order_id, .. } => panic!("{order_id} is one of ours"),
            _ => {}
        }
    }
    right.sort();
    // The first may be the user's order, in another form.
    assert!(matches!(process.place_as("a", &form(1)).await, Told::Unresolved("near_match", ..)));
    assert_eq!(
        right,
        rows[1..].iter().map(|(name, _, _, own)| ((*name).to_owned(), (*own).to_owned())).collect::<Vec<_>>()
    );
    assert_eq!(world.gateway.posts(), 3);
    for &(name, qty, _, own) in &rows[1..] {
        assert_eq!(process.place_as(name, &form(qty)).await, Told::Attached(own.into()));
    }
}

/// Regression: the invented identifier was missing in all lists of later processes, too.
#[tokio::test(start_paused = true)]
async fn o06_an_invented_identifier_whose_order_was_found_bars_no_absence_after_a_crash() {
    let world = World::new();
    world
        .gateway
        .will([ack().reply(Reply::AckId("ghost")), Place { apply: None, ..ack().reply(Reply::Hang) }]);
    let process = world.start();
    assert_eq!(process.place_as("a", ORDER).await, Told::Placed("ghost".into()));
    sleep(s(20)).await;
    process.start_placing("b", &ORDER.replace("qty=10", "qty=3"));
    sleep(s(1)).await;
    process.kill();

    let process = world.start();
    is(&process.recover().await, &[("b", "not_observed")]);
    assert_eq!(process.place_as("a", ORDER).await, Told::Attached("o1".into()));
    assert_eq!(world.gateway.posts(), 2);
}

#[tokio::test(start_paused = true)]
async fn s80_crash_mid_verification() {
    for (after, end, least) in [(s(50), "o1", s(40)), (s(3_600), "not_observed", s(45))] {
        let world = World::new();
        world.gateway.will([gw504().placed_after(after)]);
        let process = world.start();
        process.start_placing("a", ORDER);
        sleep(s(10)).await;
        process.kill();

        let start = Instant::now();
        let process = world.start();
        is(&process.recover().await, &[("a", end)]);
        assert!(start.elapsed() >= least, "what has passed does not count: {:?}", start.elapsed());
        assert_eq!(world.gateway.posts(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_in_the_middle_of_a_recovery_is_one_more_doubt_and_no_send() {
    let world = World::new();
    let late = |after| gw504().placed_after(s(after));
    world.gateway.will([late(70), late(3_600), ack().reply(Reply::Hang)]);
    let first = world.start();
    first.start_placing("a", ORDER);
    first.start_placing("b", &ORDER.replace("qty=10", "qty=7"));
    sleep(s(10)).await;
    first.kill();
    // The second one recovers, and places an order of its own meanwhile.
    let second = world.start();
    let recovery = {
        let (service, mut request) = (second.service.clone(), second.request("a", ORDER));
        Call::of_mut(request.extensions_mut()).set_intent(ext::IntentId::new("a"));
        tokio::spawn(async move { drop(service.oneshot(request).await) })
    };
    sleep(s(10)).await;
    second.start_placing("c", &ORDER.replace("buy", "sell"));
    sleep(s(10)).await;
    assert_eq!(world.gateway.posts(), 3, "a name that is in doubt is not sent again");
    recovery.abort();
    second.kill();
    // The third process knows all three, and waits the whole time for each.
    let (third, start) = (world.start(), Instant::now());
    assert_eq!(third.tracker.in_doubt(), 3);
    is(&third.recover().await, &[("a", "o1"), ("b", "not_observed"), ("c", "o3")]);
    assert!(start.elapsed() >= s(40), "{:?}", start.elapsed());
    assert_eq!(world.gateway.posts(), 3);
    assert_eq!(third.place_as("a", ORDER).await, Told::Attached("o1".into()));
    assert_eq!(world.gateway.posts(), 3);
}

/// An order that was found after its refusal belongs to its name in every process.
#[tokio::test(start_paused = true)]
async fn o05_an_order_found_after_a_refusal_is_attached_after_a_restart() {
    let (found, attached) = (Told::Recovered("o1".into()), Told::Attached("o1".into()));
    // After a 401 the caller gets the answer after the check, after a 429 before it.
    for (status, told) in [(401, [found.clone(), attached]), (429, [Told::Answer(429), found])] {
        let world = World::new();
        world.gateway.will([documented(status).placed_after(Duration::from_millis(900))]);
        let process = world.start();
        for told in told {
            assert_eq!(process.place_as("a", ORDER).await, told, "nobody repeats it");
        }
        process.kill();

        let process = world.start();
        assert_eq!(process.place_as("a", ORDER).await, Told::Attached("o1".into()));
        assert_eq!(world.gateway.posts(), 1);
    }
}

/// A process that dies before its check leaves it to the next one.
#[tokio::test(start_paused = true)]
async fn o05_a_refusal_of_a_dead_process_is_checked_before_its_name_is_sent() {
    for (placed, told, posts) in
        [(true, Told::Recovered("o1".into()), 1), (false, Told::Placed("o1".into()), 2)]
    {
        let mut world = World::new();
        world.settings = world.settings.traced();
        let refusal = http(429, "Too many requests");
        world.gateway.will([if placed { refusal.placed() } else { refusal }]);
        let process = world.start();
        assert_eq!(process.place_as("a", ORDER).await, Told::Answer(429));
        process.kill();
        let entries = world.start().journal.recover();
        assert_eq!(
            unresolved(&entries).len(),
            1,
            "nothing but the service's word says that it is not placed"
        );

        let process = world.start();
        assert_eq!(process.place_as("a", ORDER).await, told);
        assert_eq!(world.gateway.posts(), posts);
        // An order sent by a caller's repeat is not sent by the restart.
        let run = Run::new(&world.settings, vec![process.tracker.trace(None)], process.tracker.in_doubt());
        assert_eq!(violations(&run), Vec::<String>::new());
    }
}

/// Regression: it was forgotten, also where the order was placed.
#[tokio::test(start_paused = true)]
async fn o05_a_refusal_of_a_dead_process_is_looked_for_by_the_next_one() {
    for (status, placed) in [(401, true), (401, false), (429, true), (429, false)] {
        let world = World::new();
        let refusal = documented(status);
        world.gateway.will([if placed { refusal.placed() } else { refusal }]);
        let process = world.start();
        process.start_placing("a", ORDER);
        sleep(Duration::from_millis(500)).await;
        process.kill();

        let process = world.start();
        assert_eq!(unresolved(&process.journal.recover()).len(), 1, "{status}");
        let start = Instant::now();
        is(&process.recover().await, &[("a", if placed { "o1" } else { "NotPlaced" })]);
        if !placed {
            assert!(start.elapsed() < s(2), "one list is enough");
        }
        process.kill();
        let entries = world.start().journal.recover();
        assert_eq!(unresolved(&entries), [], "{status} {placed}");
        assert_eq!(world.gateway.posts(), 1);
    }
}

/// Regression: lists lagged, so the list of the next process did not show the order, and it was sent once more.
#[tokio::test(start_paused = true)]
async fn o05_a_name_refused_in_a_dead_process_waits_for_a_list_beyond_the_bound() {
    for status in [400, 403, 429] {
        for lag in [None, Some(8), Some(14)] {
            let world = World::new();
            let refusal = documented(status);
            world.gateway.will([match lag {
                Some(lag) => Place { lag: s(lag), ..refusal.placed() },
                None => refusal,
            }]);
            let process = world.start();
            assert_eq!(process.place_as("a", ORDER).await, Told::Answer(status));
            process.kill();
            let start = tokio::time::Instant::now();
            let process = world.start();
            let again = process.place_as("a", ORDER).await;
            let posts = world.gateway.posts();
            if lag.is_some() {
                let is_told = matches!(&again, Told::Attached(id) | Told::Recovered(id) if id == "o1");
                assert!(is_told && posts == 1, "{status} {lag:?}: {again:?}");
            } else {
                assert_eq!((again, posts), (Told::Placed("o1".into()), 2), "{status}");
                assert!(start.elapsed() >= s(15), "{status}: {:?}", start.elapsed());
            }
        }
    }
}

/// Regression: it was reported, and the next run sent it once more.
#[tokio::test(start_paused = true)]
async fn o05_a_name_refused_for_good_means_the_order_that_is_listed() {
    for (mode, told) in [
        (AccountMode::Exclusive, Some(Told::Attached("o1".into()))),
        // It may be a stranger's.
        (AccountMode::Shared, None),
    ] {
        for restarts in [false, true] {
            let mut world = World::new();
            world.settings = world.settings.account_mode(mode);
            world.gateway.will([documented(403).placed()]);
            let mut process = world.start();
            assert_eq!(process.place_as("a", ORDER).await, Told::Answer(403));
            process.tracker.shutdown().await;
            if restarts {
                process.kill();
                process = world.start();
            } else {
                process.tracker.resume();
            }
            let again = process.place_as("a", ORDER).await;
            match &told {
                Some(told) => assert_eq!(again, *told),
                None => assert!(matches!(again, Told::Unresolved(..)), "{again:?}, restarts: {restarts}"),
            }
            assert_eq!(world.gateway.posts(), 1, "{mode:?}, restarts: {restarts}");
        }
    }
}

/// Regression: no list of the next login could release it, and it ended in doubt after the whole time of a search.
#[tokio::test(start_paused = true)]
async fn o05_a_name_refused_for_good_is_free_for_the_next_process_under_another_login() {
    let mut world = World::new();
    world.gateway.0.lock().by_session = true;
    world.gateway.will([documented(403)]);
    let process = world.start();
    assert_eq!(process.place_as("a", ORDER).await, Told::Answer(403));
    process.tracker.shutdown().await;
    process.kill();
    world.token = "Bearer key:two";
    let start = Instant::now();
    assert_eq!(world.start().place_as("a", ORDER).await, Told::Placed("o1".into()));
    assert!(start.elapsed() <= s(20), "{:?}", start.elapsed());
}

/// Regression: a process that died at once left no list of its own session, and one of the next login's released the
/// name: two orders.
#[tokio::test(start_paused = true)]
async fn o05_a_name_that_no_list_of_its_session_confirmed_is_not_sent_under_another_login() {
    let mut world = World::new();
    world.gateway.0.lock().by_session = true;
    world.gateway.will([documented(403).placed()]);
    let process = world.start();
    assert_eq!(process.place_as("a", ORDER).await, Told::Answer(403));
    process.kill();
    world.token = "Bearer key:two";
    let process = world.start();
    let told = process.place_as("a", ORDER).await;
    assert_eq!((told, world.gateway.posts()), (Told::Unresolved("unverifiable", vec![], 0), 1));

    // Regression: its doubt was in no journal. No verb knew it, nobody could rule on it, and the next process ended as if
    // nothing were left.
    assert_eq!(unresolved(&process.journal.recover()).len(), 1);
    process.kill();
    let process = world.start();
    assert_eq!(process.recover().await.len(), 1);
    let left = process.tracker.unresolved();
    assert_eq!(left.len(), 1, "{left:?}");
    process.tracker.resolve(None, left[0].intent, Ruling::Placed { order_id: "o1".into() }).unwrap();
    assert_eq!(unresolved(&process.journal.recover()), []);
    assert_eq!(process.place_as("a", ORDER).await, Told::Attached("o1".into()));
    assert_eq!(world.gateway.posts(), 1);
}

/// Regression: the wall clock was stepped by a day, so the next process took the rejection for one of yesterday, whose
/// name is free: two orders.
#[tokio::test(start_paused = true)]
async fn o05_a_name_rejected_in_a_dead_process_is_in_doubt_on_a_later_day_unless_a_list_confirmed_it() {
    for confirmed in [false, true] {
        let now = Arc::new(Mutex::new(UNIX_EPOCH + s(43_200)));
        let clock = now.clone();
        let settings = Settings::default().trading_day(WallClock::new(move || *clock.lock()), 0);
        let world = World { settings, ..World::new() };
        world.gateway.will([if confirmed { documented(403) } else { documented(403).placed() }]);
        let process = world.start();
        assert_eq!(process.place_as("a", ORDER).await, Told::Answer(403));
        if confirmed {
            process.tracker.shutdown().await;
        }
        process.kill();
        *now.lock() += s(86_400);
        let told = world.start().place_as("a", ORDER).await;
        let expected = match confirmed {
            true => (Told::Placed("o1".into()), 2),
            false => (Told::Unresolved("epoch_changed", vec![], 0), 1),
        };
        assert_eq!((told, world.gateway.posts()), expected);
    }
}

/// Regression: the first list of the next process showed two orders behind two refusals. Both were reported as the
/// first one's, and the second one was sent again.
#[tokio::test(start_paused = true)]
async fn o05_each_of_two_listed_orders_may_be_the_one_that_is_asked_for_again() {
    let world = World::new();
    let refusal = || http(429, "Too many requests").placed();
    world.gateway.will([refusal(), refusal()]);
    let process = world.start();
    for name in ["a", "b"] {
        assert_eq!(process.place_as(name, ORDER).await, Told::Answer(429));
    }
    process.kill();
    let process = world.start();
    // Its list is read before this order leaves.
    assert_eq!(process.place_as("z", &order(3)).await, Told::Placed("o3".into()));
    for name in ["b", "a"] {
        let told = process.place_as(name, ORDER).await;
        assert!(!matches!(told, Told::Placed(_) | Told::Answer(_)), "{name}: {told:?}");
    }
    assert_eq!(world.gateway.posts(), 3);
}

/// The process died before any list had shown the order; the first list of the next process does.
#[tokio::test(start_paused = true)]
async fn o05_a_name_refused_for_good_is_not_sent_again_beside_its_listed_order() {
    for (mode, statuses) in [(AccountMode::Exclusive, [403, 404, 405, 415]), (AccountMode::Shared, [403; 4])]
    {
        for status in statuses {
            let mut world = World::new();
            world.settings = world.settings.account_mode(mode);
            world.gateway.will([documented(status).placed_after(s(2))]);
            let process = world.start();
            assert_eq!(process.place_as("a", ORDER).await, Told::Answer(status));
            process.kill();
            sleep(s(5)).await;
            let process = world.start();
            let again = process.place_as("a", ORDER).await;
            match mode {
                AccountMode::Exclusive => assert_eq!(again, Told::Attached("o1".into())),
                AccountMode::Shared => assert!(matches!(again, Told::Unresolved(..)), "{again:?}"),
            }
            assert_eq!(process.place_as("b", &order(3)).await, Told::Placed("o2".into()));
            assert_eq!(world.gateway.posts(), 2, "{mode:?} {status}");
        }
    }
}

/// Regression: it was in doubt, and the next process did not search for it, but reported at once that nothing was.
#[tokio::test(start_paused = true)]
async fn o05_a_refusal_that_could_not_be_verified_is_recovered_after_a_restart() {
    let world = World::new();
    let process = world.start();
    assert_eq!(process.place("z", &order(3)).await, Told::Placed("o1".into()));
    world.gateway.always(read(ReadReply::Http(403)));
    world.gateway.will([http(401, "Unauthorized").placed()]);
    let told = process.place_as("a", ORDER).await;
    assert!(matches!(told, Told::Unresolved(..)), "{told:?}");
    process.kill();
    world.gateway.0.lock().always = None;
    let process = world.start();
    is(&process.recover().await, &[("a", "o2")]);
    assert_eq!(world.gateway.posts(), 2);
}

/// Regression: it was called in doubt, although the service had refused its repeat for good.
#[tokio::test(start_paused = true)]
async fn o05_a_refused_order_whose_repeat_is_refused_for_good_was_not_placed() {
    let world = World::new();
    world.gateway.always(read(ReadReply::Http(504)));
    world.gateway.will([http(429, "Too many requests"), documented(403)]);
    let process = world.start();
    assert_eq!(process.place_as("a", ORDER).await, Told::Answer(429));
    process.kill();
    world.gateway.0.lock().always = None;
    let process = world.start();
    let again = process.place_as("a", ORDER).await;
    assert_eq!((again, world.gateway.posts()), (Told::Answer(403), 2));
    let recovered = process.tracker.recovered().unwrap();
    assert_eq!(recovered.iter().map(|it| &it.verdict).collect::<Vec<_>>(), [&Verdict::NotPlaced]);
}

/// It was not confirmed before midnight, and no list of the next day can confirm it.
#[tokio::test(start_paused = true)]
async fn o05_an_unconfirmed_refusal_of_a_dead_process_is_doubt_after_midnight() {
    let clocks = Clockwork::before_midnight(s(3_600));
    let world = World { settings: clocks.settings(), ..World::new() };
    world.gateway.0.lock().always = Some(read(ReadReply::Http(504)));
    world.gateway.will([http(429, "Too many requests").placed()]);
    let process = world.start();
    assert_eq!(process.place_as("a", ORDER).await, Told::Answer(429));
    process.kill();

    let process = world.start();
    sleep(s(43_200)).await;
    assert!(matches!(process.place_as("a", ORDER).await, Told::Unresolved(..)));
    assert_eq!(world.gateway.posts(), 1);
}

/// Otherwise the next process would search again, and might take the other one of two equal orders.
#[tokio::test(start_paused = true)]
async fn o05_an_order_that_was_found_is_durable_before_its_caller_is_told() {
    let world = World::new();
    world.gateway.will([gw504().placed()]);
    let process = world.start();
    process.journal.0.lock().flush_takes = ms(400);
    let start = Instant::now();
    assert_eq!(process.place_as("a", ORDER).await, Told::Recovered("o1".into()));
    let with = start.elapsed();
    process.journal.0.lock().flush_takes = s(3_600);
    world.gateway.will([gw504().placed()]);
    let start = Instant::now();
    assert_eq!(process.place_as("b", &order(3)).await, Told::Recovered("o2".into()));
    assert!(start.elapsed() > with + ms(500), "it waits");
    assert!(start.elapsed() < with + s(2), "and not for ever");
}

/// A journal with records too long to read back would lose orders in doubt.
#[tokio::test(start_paused = true)]
async fn o08_an_endless_identifier_reaches_no_journal() {
    let world = World::new();
    let list = format!(r#"{{"s":"ok","d":[{{"orderId":"{}","symId":"S"}}]}}"#, "7".repeat(1_100_000));
    world.gateway.always(read(ReadReply::Raw(list)));
    world.gateway.will([ack().reply(Reply::Hang)]);
    let process = world.start();
    process.start_placing("a", ORDER);
    sleep(s(3)).await;
    process.kill();
    let process = world.start();
    assert_eq!(process.tracker.in_doubt(), 1, "what is in doubt can be read again");
    assert!(std::fs::metadata(world.path()).unwrap().len() < 10_000);
}

#[tokio::test(start_paused = true)]
async fn s81_torn_tail() {
    let world = World::new();
    world.gateway.will([ack().reply(Reply::Hang)]);
    let process = world.start();
    let lock = world.path().with_extension("journal.lock");
    let noted = std::fs::read(&lock).unwrap();
    process.start_placing("a", ORDER);
    sleep(s(2)).await;
    process.kill();
    // The record of a send that was not reported durable is cut: that send has not left, and the lock does not note
    // it.
    std::fs::write(lock, noted).unwrap();
    let whole = std::fs::read(world.path()).unwrap();
    let (torn, world) = (whole.len() / 2, World { gateway: Gateway::default(), ..world });
    std::fs::write(world.path(), &whole[..torn]).unwrap();
    let process = world.start();
    is(&process.recover().await, &[]);
    assert_eq!((world.gateway.posts(), world.gateway.gets()), (0, 0));
    assert_eq!(process.place("b", ORDER).await, Told::Placed("o1".into()));
}

/// The sidecar places a form without a name again unless its caller has not heard of the first order.
#[tokio::test(start_paused = true)]
async fn an_order_is_unheard_in_every_later_process_until_it_is_noted_as_heard() {
    let unheard = |process: &Process| -> Vec<(String, Verdict)> {
        let orders = process.tracker.unheard().into_iter();
        orders.map(|order| (order.name.unwrap().as_str().to_owned(), order.verdict)).collect()
    };
    let world = World::new();
    world.gateway.will([ack(), ack(), ack()]);
    let process = world.start();
    for name in ["a", "b", "c"] {
        assert!(matches!(process.place_as(name, ORDER).await, Told::Placed(_)));
    }
    process.tracker.note_heard(&ext::IntentId::new("b"));
    process.tracker.note_heard(&ext::IntentId::new("never asked for"));
    assert!(unheard(&process).is_empty(), "those of earlier processes alone");
    process.kill();
    // The second one reads what the first one wrote anew.
    for _ in 0..2 {
        let process = world.start();
        let placed =
            |name: &str, id: &str| (name.to_owned(), Verdict::Acknowledged { order_id: id.to_owned() });
        assert_eq!(unheard(&process), [placed("a", "o1"), placed("c", "o3")]);
        assert!(process.tracker.recovered().unwrap().is_empty());
        process.kill();
    }
    let process = world.start();
    process.tracker.note_heard(&ext::IntentId::new("a"));
    process.kill();
    assert_eq!(unheard(&world.start()).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn s81_disk_full() {
    let world = World::new();
    let disk = Fillable::default();
    let journal = Inline::open(disk.clone(), &world.path());
    let tracker = OrderTracker::journaled(world.settings.clone(), journal.clone());
    let line = Line { gateway: world.gateway.clone(), cut: Arc::default() };
    let process = Process {
        service: stack(&tracker, line),
        tracker,
        journal: Inline::open(FileSystem, &world.folder.path().join("unused")),
        gateway: world.gateway.clone(),
        cut: Arc::default(),
        token: world.token,
    };
    assert_eq!(process.place("a", ORDER).await, Told::Placed("o1".into()));
    disk.fill(0);
    for _ in 0..2 {
        let mut request = process.request("b", ORDER);
        Call::of_mut(request.extensions_mut()).set_intent(ext::IntentId::new("b"));
        let Err(error) = process.service.clone().oneshot(request).await else {
            panic!("not written down, and sent")
        };
        assert_eq!(Failure::outcome_of(&*error), Outcome::NotSent);
        assert!(Failure::find(&*error).is_some_and(Failure::is_refusal), "nobody repeats it");
        assert!(matches!(find_cause(&*error), Some(OrderWithheld::JournalFailed(_))), "{error:?}");
    }
    assert_eq!(world.gateway.posts(), 1, "failed closed");
    assert_eq!(process.tracker.in_doubt(), 0);
    let list = Request::get("https://gateway.example/v2/api/oms/orders").body(Body::default()).unwrap();
    assert_eq!(process.service.clone().oneshot(list).await.unwrap().status(), 200, "reads go on");
    // Regression: with new room, orders were still refused until a restart.
    disk.make_room();
    assert_eq!(process.place_as("b", ORDER).await, Told::Placed("o2".into()));
    process.kill();
    journal.kill();
    // The entries that waited for room are in the journal, too.
    let process = World { gateway: Gateway::default(), ..world }.start();
    assert_eq!(process.place_as("b", ORDER).await, Told::Attached("o2".into()));
    is(&process.recover().await, &[]);
}

#[tokio::test(start_paused = true)]
async fn s82_restart_next_day() {
    let day = Arc::new(Mutex::new(UNIX_EPOCH));
    let clock = day.clone();
    let settings = Settings::default().trading_day(WallClock::new(move || *clock.lock()), 0);
    let world = World { settings, ..World::new() };
    world.gateway.will([ack().reply(Reply::Hang), ack()]);
    let process = world.start();
    process.start_placing("a", ORDER);
    sleep(s(2)).await;
    assert_eq!(process.place_as("b", ORDER).await, Told::Placed("o2".into()));
    process.kill();

    // Later or earlier: it is another day's list.
    for now in [UNIX_EPOCH + s(86_400), UNIX_EPOCH + s(3 * 86_400)] {
        *day.lock() = now;
        let process = world.start();
        let reads = world.gateway.gets();
        is(&process.recover().await, &[("a", "epoch_changed")]);
        assert_eq!((world.gateway.posts(), world.gateway.gets()), (2, reads));
        process.kill();
    }
    // On the day itself it can still be found.
    *day.lock() = UNIX_EPOCH;
    is(&world.start().recover().await, &[("a", "o1")]);
}

#[tokio::test(start_paused = true)]
async fn s84_shutdown_while_verifying() {
    let world = World::new();
    world.gateway.will([gw504().placed_after(s(5))]);
    let process = world.start();
    process.start_placing("a", ORDER);
    sleep(s(1)).await;
    // After a shutdown, nothing is left to the next process.
    process.tracker.shutdown().await;
    process.kill();
    let process = world.start();
    is(&process.recover().await, &[]);

    // A runtime that stops drops all futures. This proves nothing, and the next process searches.
    world.gateway.will([gw504().placed_after(s(5))]);
    let call = process.start_placing("b", ORDER);
    sleep(s(1)).await;
    call.abort();
    sleep(Duration::from_millis(1)).await;
    process.kill();
    let process = world.start();
    is(&process.recover().await, &[("b", "o2")]);
    assert_eq!(world.gateway.posts(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_name_means_the_same_order_after_a_restart() {
    let world = World::new();
    world.gateway.will([ack(), ack().reply(Reply::Hang)]);
    let process = world.start();
    assert_eq!(process.place_as("a", ORDER).await, Told::Placed("o1".into()));
    process.start_placing("b", ORDER);
    sleep(s(2)).await;
    process.kill();

    let process = world.start();
    assert_eq!(process.place_as("a", ORDER).await, Told::Attached("o1".into()));
    let other = process.place_as("b", &order(11)).await;
    assert!(matches!(&other, Told::NotSent(text) if text.contains("another order")), "{other:?}");
    // The call shows the path to the list, and waits for the result.
    assert_eq!(process.place_as("b", ORDER).await, Told::Attached("o2".into()));
    assert_eq!(world.gateway.posts(), 2);
    is(&process.tracker.recovered().unwrap(), &[("b", "o2")]);
}

/// Regression: a process that died before it had looked left the wrong identifier to all later ones.
#[tokio::test(start_paused = true)]
async fn o06_an_ack_that_no_list_shows_is_told_by_the_next_process() {
    for token in ["Bearer key:one", "Bearer key:two"] {
        let world = World::new();
        let ghost = Place { apply: None, ..ack().reply(Reply::AckId("ghost")) };
        world.gateway.will([ack(), ghost, ack()]);
        let process = world.start();
        assert_eq!(process.place_as("a", ORDER).await, Told::Placed("o1".into()));
        assert_eq!(process.place_as("b", &order(3)).await, Told::Placed("ghost".into()));
        process.kill();

        // After another login, the list still shows the first order, so it would show the second.
        let world = World { token, ..world };
        let process = world.start();
        let mut events = process.tracker.events();
        assert_eq!(process.place_as("b", &order(3)).await, Told::Attached("ghost".into()));
        assert_eq!(process.place_as("c", &order(4)).await, Told::Placed("o2".into()));
        sleep(s(20)).await;
        let mut told = Vec::new();
        while let Ok(event) = events.try_recv() {
            if let OrderEvent::AckNotListed { name, order_id, .. } = event {
                told.push((name.unwrap().as_str().to_owned(), order_id));
            }
        }
        assert_eq!(told, [("b".to_owned(), "ghost".to_owned())], "{token}");
        assert_eq!((process.tracker.in_doubt(), world.gateway.posts()), (1, 3), "{token}");
    }
}

/// Regression: the next process did not know that a change had been sent, and told the changed order as unconfirmed.
#[tokio::test(start_paused = true)]
async fn o06_an_order_changed_by_an_earlier_process_is_not_unconfirmed() {
    // A change before the order was sent explains nothing.
    for (before, after, told) in [(0, 0, 1), (2, 0, 1), (0, 1, 0), (0, 3, 0), (1, 1, 0)] {
        let world = World::new();
        let process = world.start();
        assert_eq!(process.place("a", &order(3)).await, Told::Placed("o1".into()));
        process.change("o1", before).await;
        assert_eq!(process.place("b", ORDER).await, Told::Placed("o2".into()));
        process.change("o2", after).await;
        let written = std::fs::read(world.path()).unwrap();
        let changes = String::from_utf8_lossy(&written).matches("changed").count();
        assert_eq!(changes, before.min(1) + after.min(1), "no more than one between two sends");
        world.gateway.set("o2", "qty", json!(7));
        process.kill();

        // Its journal is written anew.
        world.start().kill();
        let process = world.start();
        let mut events = process.tracker.events();
        is(&process.recover().await, &[]);
        process.tracker.shutdown().await;
        let mut unconfirmed = 0;
        while let Ok(event) = events.try_recv() {
            if let OrderEvent::AckUnconfirmed { order_id, .. } = event {
                assert_eq!(order_id, "o2");
                unconfirmed += 1;
            }
        }
        assert_eq!(unconfirmed, told, "{before} {after}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_known_before_the_crash_is_not_taken_for_what_was_lost() {
    let world = World::new();
    let morning = world.gateway.foreign(ORDER, |_| {});
    let process = world.start();
    assert_eq!(process.place("a", ORDER).await, Told::Placed("o2".into()));
    assert_eq!(morning, "o1", "a twin of another's");
    world.gateway.will([ack().reply(Reply::NotPolled).answered_after(s(60))]);
    process.start_placing("b", ORDER);
    sleep(s(2)).await;
    process.kill();
    let process = world.start();
    is(&process.recover().await, &[("b", "not_observed")]);
    assert_eq!(world.gateway.posts(), 1);
}

/// An order that may be a stranger's is reported and ends no search, even after a restart.
#[tokio::test(start_paused = true)]
async fn an_order_that_may_be_anothers_is_not_remembered_as_the_one_that_was_lost() {
    let settings = Settings::default().account_mode(AccountMode::Shared).resend(ResendPolicy::Never);
    let world = World { settings, ..World::new() };
    world.gateway.will([gw504()]);
    let process = world.start();
    let mut events = process.tracker.events();
    let told = process.place_as("a", ORDER).await;
    assert!(matches!(told, Told::Unresolved("not_observed", ..)), "{told:?}");
    let theirs = world.gateway.foreign(ORDER, |_| {});
    sleep(s(3_600)).await;
    let reported = std::iter::from_fn(|| events.try_recv().ok()).any(
        |event| matches!(event, OrderEvent::LateDuplicate { order_id, kept: None, .. } if order_id == theirs),
    );
    assert!(reported, "it may be his");
    process.kill();
    let process = world.start();
    is(&process.recover().await, &[("a", "ambiguous_owner")]);
    let told = process.place_as("a", ORDER).await;
    assert!(matches!(told, Told::Unresolved(..)), "{told:?}");
    assert_eq!(world.gateway.posts(), 1);
}

#[tokio::test(start_paused = true)]
async fn another_sessions_list_finds_and_never_proves_an_absence() {
    for (apply, end) in [(Some(Duration::ZERO), "o1"), (None, "session_changed")] {
        let world = World::new();
        let mut place = ack().reply(Reply::Hang);
        place.apply = apply;
        world.gateway.will([place]);
        let process = world.start();
        process.start_placing("a", ORDER);
        sleep(s(2)).await;
        process.kill();
        // The token was lost.
        let world = World { token: "Bearer key:two", ..world };
        is(&world.start().recover().await, &[("a", end)]);
        assert_eq!(world.gateway.posts(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_takes_long_leaves_the_order_unsent() {
    let world = World::new();
    let process = world.start();
    process.journal.0.lock().pause = s(5);
    let answer = process.service.clone().oneshot(process.request("a", ORDER)).await;
    let Err(error) = answer else { panic!("sent before it was durable") };
    assert!(matches!(find_cause(&*error), Some(OrderWithheld::JournalSlow)), "{error:?}");
    let failure = Failure::find(&*error).unwrap();
    assert!(failure.outcome() == Outcome::NotSent && !failure.is_refusal(), "it may be tried again");
    assert_eq!((world.gateway.posts(), process.tracker.in_doubt()), (0, 0));
    process.journal.0.lock().pause = Duration::from_millis(900);
    let start = Instant::now();
    assert_eq!(process.place("b", ORDER).await, Told::Placed("o1".into()));
    assert!(start.elapsed() >= Duration::from_millis(900), "sent once it is durable");
    process.kill();
    is(&world.start().recover().await, &[]);
}

/// Otherwise the next process would take its name for one of the day before, which is free.
#[tokio::test(start_paused = true)]
async fn an_order_leaves_only_on_the_day_that_its_entry_has() {
    let world = World { settings: Clockwork::before_midnight(ms(1_500)).settings(), ..World::new() };
    let process = world.start();
    process.journal.0.lock().pause = ms(900);
    sleep(s(1)).await;
    let mut request = process.request("a", ORDER);
    Call::of_mut(request.extensions_mut()).set_intent(ext::IntentId::new("a"));
    let answer = process.service.clone().oneshot(request).await;
    let Err(error) = answer else { panic!("sent on another day than was written down") };
    assert!(matches!(find_cause(&*error), Some(OrderWithheld::DayTurned)), "{error:?}");
    let failure = Failure::find(&*error).unwrap();
    assert!(failure.outcome() == Outcome::NotSent && !failure.is_refusal(), "it may be tried again");
    assert_eq!(world.gateway.posts(), 0);
    assert_eq!(process.place_as("a", ORDER).await, Told::Placed("o1".into()));
    process.kill();

    let process = world.start();
    sleep(s(1_200)).await;
    assert_eq!(process.place_as("a", ORDER).await, Told::Attached("o1".into()));
    assert_eq!(world.gateway.posts(), 1);
}

#[tokio::test(start_paused = true)]
async fn every_send_is_written_down_before_it_leaves() {
    let world = World::new();
    world.gateway.will([gw504()]);
    let process = world.start();
    assert_eq!(process.place("a", ORDER).await, Told::Resent("o1".into()));
    let log = process.journal.0.lock();
    let entries = log.log.as_ref().unwrap().entries();
    let begun = entries.filter(|entry| matches!(entry.record, Record::Begun { .. })).count();
    assert_eq!((begun, world.gateway.posts()), (2, 2), "I1: the resend, too");
}

#[tokio::test(start_paused = true)]
async fn o06_a_contradicted_answer_is_no_end_for_the_next_process() {
    // Two orders with one identifier, and one with an identifier that no list shows.
    let world = World::new();
    let stray = |id| Place { apply: None, ..ack().reply(Reply::AckId(id)) };
    world.gateway.will([ack(), stray("o1"), stray("ghost")]);
    let process = world.start();
    assert_eq!(process.place_as("a", ORDER).await, Told::Placed("o1".into()));
    process.start_placing("b", &order(3));
    sleep(Duration::from_millis(100)).await;
    assert_eq!(process.place_as("c", &ORDER.replace("buy", "sell")).await, Told::Placed("ghost".into()));
    process.kill();
    // It has just been contradicted.
    let entries: Vec<_> = FileJournal::read(world.path()).unwrap().unwrap();
    let open: Vec<_> = unresolved(&entries).into_iter().filter_map(|order| order.name).collect();
    assert_eq!(open.iter().map(ext::IntentId::as_str).collect::<Vec<_>>(), ["a", "b"]);
    let process = world.start();
    is(&process.recover().await, &[("a", "o1"), ("b", "accepted_unknown_id")]);
    sleep(s(120)).await;
    process.kill();
    // By now the third one's answer is contradicted, too.
    let process = world.start();
    assert_eq!(process.tracker.recovered().unwrap().len(), 2);
    let told: Vec<_> = process.recover().await.into_iter().filter_map(|order| order.name).collect();
    assert_eq!(told.iter().map(ext::IntentId::as_str).collect::<Vec<_>>(), ["b", "c"]);
    assert_eq!(world.gateway.posts(), 3, "nothing is sent again");
}

#[tokio::test(start_paused = true)]
async fn nothing_that_is_written_holds_the_token() {
    let world = World { token: "Bearer key:CANARY-c0ffee", ..World::new() };
    world.gateway.will([ack().reply(Reply::Hang)]);
    let process = world.start();
    process.start_placing("a", ORDER);
    sleep(s(2)).await;
    let bytes = std::fs::read(world.path()).unwrap();
    let holds = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds("EQT_INFY_EQ_NSE"));
    assert!(!holds("CANARY") && !holds("c0ffee") && !holds("Bearer"));
}

#[tokio::test(start_paused = true)]
async fn a_tracker_that_is_dropped_lets_its_journal_go() {
    let world = World::new();
    let process = world.start();
    assert_eq!(process.place("a", ORDER).await, Told::Placed("o1".into()));
    sleep(s(10)).await;
    let Process { tracker, service, journal, .. } = process;
    assert_eq!(Arc::strong_count(&journal.0), 2, "the tracker's and the test's");
    drop((tracker, service));
    // The poller, asleep until its next read, wakes and ends.
    tokio::task::yield_now().await;
    assert_eq!(Arc::strong_count(&journal.0), 1, "what holds the way to the list does not hold the tracker");
}

/// After a restart just after midnight, a name still stands for its order; later it is free.
#[tokio::test(start_paused = true)]
async fn o03_a_name_outlives_midnight_over_a_restart() {
    let clocks = crate::clocks::Clockwork::before_midnight(s(5));
    let world = World { settings: clocks.settings(), ..World::new() };
    let process = world.start();
    assert_eq!(process.place_as("n", ORDER).await, Told::Placed("o1".into()));
    process.kill();
    sleep(s(10)).await;
    let process = world.start();
    assert_eq!(process.place_as("n", ORDER).await, Told::Attached("o1".into()));
    sleep(s(600)).await;
    assert_eq!(process.place_as("n", ORDER).await, Told::Placed("o2".into()));
    assert_eq!(world.gateway.posts(), 2);
}

/// The machine's clock is set back over midnight while no process runs.
#[tokio::test(start_paused = true)]
async fn o03_a_restart_does_not_go_back_a_day() {
    let clocks = crate::clocks::Clockwork::before_midnight(s(5));
    let world = World { settings: clocks.settings(), ..World::new() };
    sleep(s(1_000)).await;
    let process = world.start();
    assert_eq!(process.place_as("n", ORDER).await, Told::Placed("o1".into()));
    process.kill();
    clocks.set_wall(-3_600);
    let process = world.start();
    assert_eq!(process.place_as("n", ORDER).await, Told::Attached("o1".into()));
    assert_eq!(world.gateway.posts(), 1);
}

/// A clock two days ahead wrote it. The service's clock shows that, and nothing is sent.
#[tokio::test(start_paused = true)]
async fn o03_a_journal_two_days_ahead_is_refused() {
    let clocks = crate::clocks::Clockwork::before_midnight(s(43_200));
    clocks.set_wall(2 * 86_400);
    let world = World { settings: clocks.settings(), ..World::new() };
    let process = world.start();
    assert_eq!(process.place_as("n", ORDER).await, Told::Placed("o1".into()), "nobody says what day it is");
    process.kill();
    clocks.set_wall(0);
    let truth = clocks.clone();
    world.gateway.0.lock().date = Some(WallClock::new(move || truth.truth()));
    let process = world.start();
    let answer = process.service.clone().oneshot(process.request("m", ORDER)).await;
    let Err(error) = answer else { panic!("sent on the word of a journal of another day") };
    assert!(matches!(find_cause(&*error), Some(OrderWithheld::JournalAhead(_))), "{error:?}");
    assert_eq!(Failure::outcome_of(&*error), Outcome::NotSent);
    assert_eq!(world.gateway.posts(), 1);
}

/// Regression: a process of two days later did not know the name, and sent the order again.
#[tokio::test(start_paused = true)]
async fn o03_a_name_in_doubt_is_not_free_to_a_process_of_a_later_day() {
    let clocks = crate::clocks::Clockwork::before_midnight(s(43_200));
    let world = World { settings: clocks.settings(), ..World::new() };
    world.gateway.will([ack().reply(Reply::Hang)]);
    let process = world.start();
    assert!(timeout(s(2), process.place_as("n", ORDER)).await.is_err());
    process.kill();
    for days in 1..4 {
        sleep(s(86_400)).await;
        let process = world.start();
        let told = process.place_as("n", ORDER).await;
        assert!(matches!(told, Told::Unresolved("epoch_changed", ..)), "{days}: {told:?}");
        assert_eq!(world.gateway.posts(), 1);
        process.kill();
    }
    let process = world.start();
    let left = process.tracker.recovered().unwrap().remove(0);
    assert_eq!(process.tracker.unresolved(), std::slice::from_ref(&left), "once");
    process.tracker.resolve(None, left.intent, Ruling::NotPlaced).unwrap();
    assert_eq!(process.tracker.unresolved(), []);
    assert_eq!(process.tracker.recovered().unwrap()[0].verdict, Verdict::NotPlaced);
    assert_eq!(process.place_as("n", ORDER).await, Told::Placed("o2".into()));
}

/// Orders lost before midnight are watched for by the next process, too.
#[tokio::test(start_paused = true)]
async fn o13_what_was_lost_before_midnight_is_watched_over_a_restart() {
    let clocks = crate::clocks::Clockwork::before_midnight(s(5));
    let world = World { settings: clocks.settings(), ..World::new() };
    world.gateway.will([ack().placed_after(s(40)).reply(Reply::Hang)]);
    let process = world.start();
    process.start_placing("a", ORDER);
    sleep(s(2)).await;
    process.kill();
    sleep(s(10)).await;
    let process = world.start();
    let mut events = process.tracker.events();
    is(&process.recover().await, &[("a", "epoch_changed")]);
    sleep(s(1_200)).await;
    let told: Vec<_> = std::iter::from_fn(|| events.try_recv().ok()).collect();
    assert!(
        told.iter().any(|event| matches!(event, OrderEvent::LateDuplicate { order_id, kept: None, .. } if order_id == "o1")),
        "{told:?}"
    );
    assert_eq!(world.gateway.posts(), 1);
}

/// Restarted with a clock a day ahead, or on the next day: the service tells which.
#[tokio::test(start_paused = true)]
async fn o03_a_restart_asks_the_service_what_day_it_is() {
    for (ahead, passed, told) in
        [(86_400, s(60), Told::Attached("o1".into())), (0, s(86_400), Told::Placed("o2".into()))]
    {
        let clocks = crate::clocks::Clockwork::before_midnight(s(43_200));
        let world = World { settings: clocks.settings(), ..World::new() };
        let truth = clocks.clone();
        world.gateway.0.lock().date = Some(WallClock::new(move || truth.truth()));
        let process = world.start();
        assert_eq!(process.place_as("n", ORDER).await, Told::Placed("o1".into()));
        process.kill();
        sleep(passed).await;
        clocks.set_wall(ahead);
        let process = world.start();
        assert_eq!(process.place_as("n", ORDER).await, told);
    }
}

/// Regression: the dates of a whole process, or its first one, were of another day, and the process after it sent the
/// order again.
#[tokio::test(start_paused = true)]
async fn o03_a_wrong_date_in_one_process_frees_no_name_in_the_next() {
    let cases = [-15_i64, -24, -50 * 24, 24].map(|hours| [(3_600 * hours, true), (3_600 * hours, false)]);
    for (off, refuses) in cases.into_iter().flatten() {
        for lasts in [1, 2, 1_000] {
            let clocks = crate::clocks::Clockwork::before_midnight(s(43_200));
            let settings = clocks.settings().refuse_disputed_day(refuses);
            let world = World { settings, ..World::new() };
            let date = |lasts: usize| {
                let (truth, answers) = (clocks.clone(), AtomicUsize::new(0));
                world.gateway.0.lock().date = Some(WallClock::new(move || {
                    let by = s(off.unsigned_abs());
                    match answers.fetch_add(1, Ordering::SeqCst) {
                        n if n >= lasts => truth.truth(),
                        _ if off < 0 => truth.truth() - by,
                        _ => truth.truth() + by,
                    }
                }));
            };
            for name in ["n", "m"] {
                let process = world.start();
                date(if name == "n" { 0 } else { lasts });
                process.place_as("n", ORDER).await;
                process.tracker.note_heard(&ext::IntentId::new("n"));
                sleep(s(70)).await;
                process.place_as(name, ORDER).await;
                process.kill();
            }
            date(0);
            let process = world.start();
            let what = format!("by {off} s for {lasts} answers, refuses {refuses}");
            assert_eq!(process.place_as("n", ORDER).await, Told::Attached("o1".into()), "{what}");
            let of_n = world.gateway.0.lock().orders.iter().filter(|order| order.owner == "n").count();
            assert_eq!(of_n, 1, "{what}");
        }
    }
}

/// Regression: one process saw a date ahead of the day, the next one a date behind it, and the third sent the order again;
/// or a date far ahead was written into the journal, and no order left any more.
#[tokio::test(start_paused = true)]
async fn o03_wrong_dates_in_several_processes_free_no_name() {
    const HOURS: [i64; 8] = [24, -24, 15, -15, 48, -48, 60 * 24, -60 * 24];
    for (refuses, first) in [true, false].into_iter().flat_map(|refuses| HOURS.map(|first| (refuses, first)))
    {
        for (second, asks) in HOURS.into_iter().flat_map(|second| [(second, true), (second, false)]) {
            let clocks = crate::clocks::Clockwork::before_midnight(s(43_200));
            let world = World { settings: clocks.settings().refuse_disputed_day(refuses), ..World::new() };
            let date = |hours: i64| {
                let (truth, by) = (clocks.clone(), s(3_600 * hours.unsigned_abs()));
                world.gateway.0.lock().date = Some(WallClock::new(move || match hours < 0 {
                    true => truth.truth() - by,
                    false => truth.truth() + by,
                }));
            };
            date(0);
            let process = world.start();
            assert_eq!(process.place_as("n", ORDER).await, Told::Placed("o1".into()));
            process.kill();
            for hours in [first, second] {
                date(hours);
                let process = world.start();
                process.place_as("n", ORDER).await;
                if asks && refuses {
                    process.place_as("m", ORDER).await;
                }
                sleep(s(8)).await;
                process.kill();
            }
            date(0);
            let process = world.start();
            let told = process.place_as("n", ORDER).await;
            let what = format!("by {first} h, then {second} h, refuses {refuses}, asks {asks}: {told:?}");
            assert!(!refuses || told == Told::Attached("o1".into()), "{what}");
            assert_eq!(world.gateway.posts(), 1, "{what}");
        }
    }
}

/// A service whose `Date` is days ahead of this machine's clock from some time on.
fn days_ahead(world: &World, clocks: &Clockwork) -> Arc<AtomicU64> {
    let (days, truth) = (Arc::new(AtomicU64::new(0)), clocks.clone());
    let ahead = days.clone();
    world.gateway.0.lock().date =
        Some(WallClock::new(move || truth.truth() + s(86_400 * ahead.load(Ordering::SeqCst))));
    days
}

/// Regression: a machine stood still over midnight, or a weekend, and its first request was an order, which left under the old
/// day. Once the clock was set right, the name was free, and the next process sent the order again.
#[tokio::test(start_paused = true)]
async fn o03_an_order_whose_answer_names_a_later_day_keeps_its_name_on_that_day() {
    for case in 0..16 {
        let days = if case & 1 == 0 { 1 } else { 3 };
        let [refuses, restarts, is_lost] = [2, 4, 8].map(|bit| case & bit != 0);
        let what = format!("{days} days, refuses {refuses}, restarts {restarts}, is lost {is_lost}");
        let clocks = Clockwork::before_midnight(s(43_200));
        let world = World { settings: clocks.settings().refuse_disputed_day(refuses), ..World::new() };
        let ahead = days_ahead(&world, &clocks);
        let mut process = world.start();
        assert_eq!(process.place_as("before", &order(3)).await, Told::Placed("o1".into()));
        ahead.store(days, Ordering::SeqCst);
        // Lists are of another day, so one that was lost cannot be found.
        let lost = Told::Unresolved("epoch_changed", vec![], 504);
        let told = if is_lost {
            world.gateway.will([gw504().placed()]);
            lost
        } else {
            Told::Placed("o2".into())
        };
        assert_eq!(process.place_as("n", ORDER).await, told, "{what}");
        clocks.set_wall(i64::try_from(86_400 * days).unwrap());
        process = if restarts { process.kill_and_start(&world) } else { process };
        let again = process.place_as("n", ORDER).await;
        match is_lost {
            true => assert!(matches!(again, Told::Unresolved("epoch_changed", ..)), "{what}: {again:?}"),
            false => assert_eq!(again, Told::Attached("o2".into()), "{what}"),
        }
        assert_eq!(process.place_as("before", &order(3)).await, Told::Placed("o3".into()), "{what}");
        sleep(s(86_400)).await;
        if !is_lost {
            assert_eq!(
                process.place_as("n", ORDER).await,
                Told::Placed("o4".into()),
                "{what}: the day after"
            );
        }
    }
}

/// Regression: after a weekend the clock was set right at once, and Monday's order under Friday's name was told as placed.
#[tokio::test(start_paused = true)]
async fn o03_a_name_is_free_once_a_clock_that_was_set_is_confirmed() {
    for refuses in [false, true] {
        let clocks = Clockwork::before_midnight(s(43_200));
        let world = World { settings: clocks.settings().refuse_disputed_day(refuses), ..World::new() };
        let ahead = days_ahead(&world, &clocks);
        let process = world.start();
        assert_eq!(process.place_as("n", ORDER).await, Told::Placed("o1".into()));
        ahead.store(3, Ordering::SeqCst);
        clocks.set_wall(3 * 86_400);
        assert_eq!(process.place_as("n", ORDER).await, Told::Placed("o2".into()), "{refuses}");
        assert_eq!(process.place_as("n", ORDER).await, Told::Attached("o2".into()), "{refuses}");
    }
}

/// Regression: a process that began while the clock still showed the day before read the new day's empty list, and withdrew
/// all orders of that day.
#[tokio::test(start_paused = true)]
async fn o03_a_list_of_another_day_withdraws_no_order() {
    let clocks = Clockwork::before_midnight(s(43_200));
    let world = World { settings: clocks.settings().refuse_disputed_day(true), ..World::new() };
    let ahead = days_ahead(&world, &clocks);
    let process = world.start();
    assert_eq!(process.place_as("n", ORDER).await, Told::Placed("o1".into()));
    sleep(s(120)).await;
    ahead.store(1, Ordering::SeqCst);
    world.gateway.0.lock().orders.clear();
    let process = process.kill_and_start(&world);
    let mut events = process.tracker.events();
    process.recover().await;
    process.place_as("m", &order(3)).await;
    sleep(s(300)).await;
    let told: Vec<_> = std::iter::from_fn(|| events.try_recv().ok()).collect();
    let is_withdrawn =
        |event: &OrderEvent| matches!(event, OrderEvent::AckNotListed { .. } | OrderEvent::Unresolved { .. });
    assert!(!told.iter().any(is_withdrawn), "{told:?}");
}

/// Regression: a machine stood still over midnight while an order was in doubt. The new day's list is empty, and the order was
/// sent again.
#[tokio::test(start_paused = true)]
async fn o03_a_list_of_another_day_shows_no_absence() {
    for (refuses, day_late) in [(false, 1), (false, 3), (true, 1)] {
        let clocks = Clockwork::before_midnight(s(43_200));
        let world = World { settings: clocks.settings().refuse_disputed_day(refuses), ..World::new() };
        let ahead = days_ahead(&world, &clocks);
        let process = world.start();
        assert_eq!(process.place_as("before", &order(3)).await, Told::Placed("o1".into()));
        world.gateway.will([gw504().placed()]);
        let call = process.start_placing("n", ORDER);
        sleep(ms(100)).await;
        ahead.store(day_late, Ordering::SeqCst);
        world.gateway.0.lock().orders.clear();
        call.await.unwrap();
        let mut ends = process.tracker.unresolved();
        assert_eq!(ends.len(), 1, "{refuses} {day_late}");
        let verdict = ends.remove(0).verdict;
        assert!(
            matches!(&verdict, Verdict::Unresolved(it) if it.reason == Reason::EpochChanged),
            "{verdict:?}"
        );
        assert_eq!(world.gateway.posts(), 2, "nothing is sent again");
    }
}

/// A later `Date` was the service's mistake: on the next day the name is free.
#[tokio::test(start_paused = true)]
async fn o03_a_later_date_that_is_taken_back_holds_no_name() {
    for (refuses, restarts) in [(false, false), (false, true), (true, false), (true, true)] {
        let what = format!("refuses {refuses}, restarts {restarts}");
        let clocks = Clockwork::before_midnight(s(43_200));
        let world = World { settings: clocks.settings().refuse_disputed_day(refuses), ..World::new() };
        let ahead = days_ahead(&world, &clocks);
        let mut process = world.start();
        assert_eq!(process.place_as("before", &order(3)).await, Told::Placed("o1".into()));
        ahead.store(1, Ordering::SeqCst);
        assert_eq!(process.place_as("n", ORDER).await, Told::Placed("o2".into()), "{what}");
        ahead.store(0, Ordering::SeqCst);
        process = if restarts { process.kill_and_start(&world) } else { process };
        // The caller's list tells the date where orders are withheld, and the answer to an order where they are not.
        let list = Request::get("https://gateway.example/v2/api/oms/orders").body(Body::default()).unwrap();
        process.service.clone().oneshot(list).await.unwrap();
        process.place("other", &ORDER.replace("INFY", "TCS")).await;
        assert_eq!(process.place_as("n", ORDER).await, Told::Attached("o2".into()), "{what}");
        sleep(s(86_400)).await;
        process = if restarts { process.kill_and_start(&world) } else { process };
        let told = process.place_as("n", ORDER).await;
        assert!(matches!(&told, Told::Placed(id) if id != "o2"), "{what}: {told:?}");
    }
}

/// Restarted with a clock a day ahead, and no list to correct it: a name may be today's.
#[tokio::test(start_paused = true)]
async fn o03_a_name_waits_until_the_service_says_what_day_it_is() {
    for fails in [s(10), s(1_000)] {
        let clocks = crate::clocks::Clockwork::before_midnight(s(43_200));
        let world = World { settings: clocks.settings(), ..World::new() };
        let truth = clocks.clone();
        world.gateway.0.lock().date = Some(WallClock::new(move || truth.truth()));
        let process = world.start();
        assert_eq!(process.place_as("n", ORDER).await, Told::Placed("o1".into()));
        process.kill();
        clocks.set_wall(86_400);
        let process = world.start();
        world.gateway.always(read(ReadReply::Http(504)));
        let gateway = world.gateway.clone();
        tokio::spawn(async move {
            sleep(fails).await;
            gateway.0.lock().always = None;
        });
        let told = process.place_as("n", ORDER).await;
        let unknown = Told::Unresolved("epoch_changed", vec!["o1".into()], 0);
        assert_eq!(told, if fails < s(30) { Told::Attached("o1".into()) } else { unknown });
        assert_eq!(world.gateway.posts(), 1);
    }
}

/// Restarted with a clock a day ahead that is set right before any answer of the service.
#[tokio::test(start_paused = true)]
async fn o03_a_clock_set_right_after_a_restart_frees_no_name() {
    let clocks = crate::clocks::Clockwork::before_midnight(s(43_200));
    let world = World { settings: clocks.settings(), ..World::new() };
    let truth = clocks.clone();
    world.gateway.0.lock().date = Some(WallClock::new(move || truth.truth()));
    let process = world.start();
    assert_eq!(process.place_as("n", ORDER).await, Told::Placed("o1".into()));
    process.kill();
    clocks.set_wall(86_400);
    let process = world.start();
    clocks.set_wall(0);
    assert_eq!(process.place_as("n", ORDER).await, Told::Attached("o1".into()));
    assert_eq!(world.gateway.posts(), 1);
}

/// Regression: the machine's clock was behind when a process began, and no answer told the date. The next process took its
/// orders for those of a day before, and sent a placed one again.
#[tokio::test(start_paused = true)]
async fn o03_a_name_of_a_process_that_began_days_behind_is_not_free() {
    for days in [1, 3] {
        let clocks = crate::clocks::Clockwork::before_midnight(s(43_200));
        clocks.set_wall(-days * 86_400);
        let world = World { settings: clocks.settings(), ..World::new() };
        let process = world.start();
        // The clocks are read from the first order on.
        assert_eq!(process.place_as("m", &order(5)).await, Told::Placed("o1".into()));
        clocks.set_wall(0);
        assert_eq!(process.place_as("n", ORDER).await, Told::Placed("o2".into()));
        process.kill();
        let process = world.start();
        assert_eq!(process.place_as("n", ORDER).await, Told::Attached("o2".into()), "{days}");
        assert_eq!(world.gateway.posts(), 2);
    }
}

/// Regression: an answer told the date, and the journal kept the wrong day of the orders before it. The next process took
/// them for those of a day before, and sent a placed one again.
#[tokio::test(start_paused = true)]
async fn o03_a_name_of_a_day_that_was_renamed_is_not_free() {
    for days in [1, 3] {
        let clocks = crate::clocks::Clockwork::before_midnight(s(43_200));
        clocks.set_wall(-days * 86_400);
        let world = World { settings: clocks.settings(), ..World::new() };
        let process = world.start();
        assert_eq!(process.place_as("n", ORDER).await, Told::Placed("o1".into()));
        let truth = clocks.clone();
        world.gateway.0.lock().date = Some(WallClock::new(move || truth.truth()));
        assert_eq!(process.place_as("m", &order(5)).await, Told::Placed("o2".into()));
        world.gateway.0.lock().date = None;
        clocks.set_wall(0);
        process.kill();
        let process = world.start();
        assert_eq!(process.place_as("n", ORDER).await, Told::Attached("o1".into()), "{days}");
        assert_eq!(process.place_as("m", &order(5)).await, Told::Attached("o2".into()), "{days}");
        assert_eq!(world.gateway.posts(), 2);
    }
}

/// Regression: a clock was a day ahead for a moment while an order left. The next process went on with that day, also once
/// the service told the date, and an order from before that moment was sent again.
#[tokio::test(start_paused = true)]
async fn o03_a_day_of_the_journal_that_has_not_begun_frees_no_name() {
    let unknown = Told::Unresolved("epoch_changed", vec!["o1".into()], 0);
    for (dated, told) in [(true, Told::Attached("o1".into())), (false, unknown)] {
        let clocks = crate::clocks::Clockwork::before_midnight(s(43_200));
        let world = World { settings: clocks.settings(), ..World::new() };
        let process = world.start();
        assert_eq!(process.place_as("n", ORDER).await, Told::Placed("o1".into()));
        clocks.set_wall(86_400);
        assert_eq!(process.place_as("m", &order(5)).await, Told::Placed("o2".into()));
        clocks.set_wall(0);
        process.kill();
        if dated {
            let truth = clocks.clone();
            world.gateway.0.lock().date = Some(WallClock::new(move || truth.truth()));
        }
        let process = world.start();
        assert_eq!(process.place_as("n", ORDER).await, told);
        assert_eq!(process.place_as("m", &order(5)).await, Told::Attached("o2".into()));
        assert_eq!(world.gateway.posts(), 2);
    }
}

/// The machine's clock is a day behind, and so is one answer of the service after an order was sent. In the next process, with
/// both clocks right, its name must not be free.
#[tokio::test(start_paused = true)]
async fn o03_one_wrong_date_frees_no_name_of_an_order_that_was_sent() {
    let clocks = crate::clocks::Clockwork::before_midnight(s(43_200));
    clocks.set_wall(-86_400);
    let world = World { settings: clocks.settings(), ..World::new() };
    let (service, is_behind) = (clocks.clone(), Arc::new(AtomicBool::new(false)));
    let behind = is_behind.clone();
    world.gateway.0.lock().date = Some(WallClock::new(move || {
        let truth = service.truth();
        if behind.load(Ordering::Relaxed) { truth - s(86_400) } else { truth }
    }));
    let process = world.start();
    assert_eq!(process.place_as("n", ORDER).await, Told::Placed("o1".into()));
    is_behind.store(true, Ordering::Relaxed);
    let list = Request::get("https://gateway.example/v2/api/oms/orders").body(Body::default()).unwrap();
    process.service.clone().oneshot(list).await.unwrap();
    process.kill();
    is_behind.store(false, Ordering::Relaxed);
    clocks.set_wall(0);
    assert_eq!(world.start().place_as("n", ORDER).await, Told::Attached("o1".into()));
    assert_eq!(world.gateway.posts(), 1);
}

/// An order acknowledged today is not taken for another's late order when the day is corrected to today.
#[tokio::test(start_paused = true)]
async fn o03_a_corrected_day_keeps_the_orders_that_have_owners() {
    let clocks = crate::clocks::Clockwork::before_midnight(s(43_200));
    let world = World { settings: clocks.settings(), ..World::new() };
    let truth = clocks.clone();
    world.gateway.0.lock().date = Some(WallClock::new(move || truth.truth()));
    world.gateway.will([ack(), ack().reply(Reply::Hang)]);
    let process = world.start();
    assert_eq!(process.place_as("n", ORDER).await, Told::Placed("o1".into()));
    process.start_placing("m", ORDER);
    sleep(s(2)).await;
    process.kill();
    clocks.set_wall(86_400);
    let process = world.start();
    let mut events = process.tracker.events();
    assert_eq!(process.place_as("n", ORDER).await, Told::Attached("o1".into()));
    sleep(s(1_200)).await;
    let told = std::iter::from_fn(|| events.try_recv().ok()).filter_map(|event| match event {
        OrderEvent::LateDuplicate { order_id, .. } | OrderEvent::Excess { order_id, .. } => Some(order_id),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), ["o2"]);
    assert_eq!(world.gateway.posts(), 2);
}

/// A gateway returns the token in place of an identifier. Journals are read by people and passed on.
#[tokio::test(start_paused = true)]
async fn x01_a_token_in_the_place_of_an_order_id_reaches_no_journal() {
    let mut world = World::new();
    world.token = "Bearer key-56789:token-56789";
    world.gateway.will([ack().reply(Reply::AckId("x-token-56789")), ack(), gw504().placed()]);
    let process = world.start();
    let first = process.place("a", ORDER).await;
    assert!(!format!("{first:?}").contains("token-56789"), "{first:?}");
    assert!(matches!(process.place("b", &order(7)).await, Told::Placed(_)));

    let list = r#"{"s":"ok","d":[{"orderId":"key-56789"}]}"#;
    world.gateway.reads([read(ReadReply::Raw(list.to_owned()))]);
    let second = process.place("c", &order(8)).await;
    assert!(matches!(second, Told::Recovered(_)), "{second:?}, though the next list was as good as any");
    assert_eq!(world.gateway.posts(), 3);
    let journal = std::fs::read(world.path()).unwrap();
    let journal = String::from_utf8_lossy(&journal);
    assert!(!journal.is_empty());
    for secret in ["token-56789", "key-56789"] {
        assert!(!journal.contains(secret), "{secret} stands in the journal");
    }
}

/// A later order with the tag of one that is in doubt would be taken for it.
#[tokio::test(start_paused = true)]
async fn s73_no_tag_is_used_again_after_a_restart() {
    let mut world = World::new();
    let sends_of_a_process = |settings: Settings| {
        let drawn = std::sync::atomic::AtomicU64::new(7);
        // Each process draws the same tags.
        let draw = move || drawn.fetch_add(1, Ordering::Relaxed);
        settings.tag(OrderTag::field("remarks").drawn_from(draw))
    };
    let settings = at_noon(Settings::default().account_mode(AccountMode::Shared));
    world.settings = sends_of_a_process(settings.clone());
    world.gateway.will([gw504().placed_after(s(30)), ack()]);
    let process = world.start();
    process.start_placing("a", ORDER);
    sleep(s(2)).await;
    assert_eq!(process.place_as("b", &order(3)).await, Told::Placed("o2".into()));
    process.kill();

    world.settings = sends_of_a_process(settings);
    let process = world.start();
    assert_eq!(process.place_as("c", &order(4)).await, Told::Placed("o3".into()));
    let shown = |id: &str| {
        let book = world.gateway.0.lock();
        let order = book.orders.iter().find(|order| order.id == id).unwrap();
        order.record()["remarks"].as_str().unwrap().to_owned()
    };
    let tags = ["o1", "o2", "o3"].map(shown);
    assert!(tags[0] != tags[1] && tags[0] != tags[2] && tags[1] != tags[2], "{tags:?}");
    // The next process knows the order by the tag that the one before gave it.
    is(&process.recover().await, &[("a", "o1")]);
}

/// Regression: it was sent without its tag, was listed without it, and was taken for a stranger's. It was sent twice.
#[tokio::test(start_paused = true)]
async fn s74_an_order_that_is_asked_for_again_without_tags_is_not_known_by_its_tag() {
    let mut world = World::new();
    let settings = at_noon(Settings::default().account_mode(AccountMode::Shared));
    world.settings = settings.clone().tag(OrderTag::field("remarks"));
    let process = world.start();
    for (name, qty) in [("b", 3), ("c", 4), ("d", 5)] {
        assert!(matches!(process.place_as(name, &order(qty)).await, Told::Placed(_)));
    }
    world.gateway.will([documented(429)]);
    assert_eq!(process.place_as("a", ORDER).await, Told::Answer(429));
    process.kill();

    // The user has switched tags off.
    world.settings = settings;
    let process = world.start();
    world.gateway.will([gw504().placed()]);
    let told = process.place_as("a", ORDER).await;
    assert_eq!(told, Told::Unresolved("ambiguous_owner", vec!["o4".into()], 504));
    assert_eq!(world.gateway.posts(), 5);
}
