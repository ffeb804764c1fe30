//! Futures that are kept and not polled: an idle branch of a `select!`, a stream whose consumer is busy.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use proptest::prelude::*;
use steadfast_call::Call;
use steadfast_limit::{
    Account, Acquire, Answer, BoxError, Ceilings, Decision, Lane, Loss, Permit, Refusal, SECOND, ScopeKeys,
    Zone, ZoneLimiter,
};
use tokio::time::{Instant, advance, sleep, timeout};
use tokio_test::task::{Spawn, spawn};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn, util::BoxCloneSyncService};

use crate::drive::{Core, HELD_SECOND, MS, S, granted, per_second, queued};

const ORDER: Zone = Zone::PLACE_ORDER;
const GENERAL: Zone = Zone::GENERAL;
/// The window, the second in which a permit must be collected, and a margin.
const BOUND: Duration = Duration::from_millis(1_001 + 1_000 + 50);
/// How long idle futures may delay others, with a margin.
const IDLE: Duration = Duration::from_millis(1_020);

/// Polls futures once and leaves them. Permits granted at once are sent and answered.
fn leave(limiter: &ZoneLimiter, keys: ScopeKeys, zone: Zone, lane: Lane, n: usize) -> Vec<Spawn<Acquire>> {
    let mut idle = Vec::new();
    for _ in 0..n {
        let mut asks = spawn(limiter.acquire(&[zone], keys, lane));
        match asks.poll() {
            Poll::Ready(permit) => answer(permit.unwrap()),
            Poll::Pending => idle.push(asks),
        }
    }
    idle
}

fn answer(mut permit: Permit) {
    permit.sent();
    permit.settle(Answer::Accepted);
}

async fn live(limiter: &ZoneLimiter, keys: ScopeKeys, zone: Zone, lane: Lane) -> Duration {
    let asked = Instant::now();
    let wait = timeout(60 * SECOND, limiter.acquire(&[zone], keys, lane)).await;
    answer(wait.expect("held up for a minute").unwrap());
    asked.elapsed()
}

/// Returns how long eight requests wait, one after the other, beside `n` idle futures that are kept or dropped.
async fn beside(zone: Zone, lane: Lane, n: usize, kept: bool) -> Vec<Duration> {
    let limiter = ZoneLimiter::preset();
    let keys = limiter.keys("", &Account::default());
    // The burst is spent, so that even a single one waits.
    drop(leave(&limiter, keys, zone, lane, 10));
    let mut idle = leave(&limiter, keys, zone, lane, n);
    assert_eq!(idle.len(), n);
    if !kept {
        idle.clear();
    }
    let mut waits = Vec::new();
    for lane in [lane, Lane::Critical].into_iter().cycle().take(8) {
        waits.push(live(&limiter, keys, zone, lane).await);
    }
    let zones = limiter.snapshot().zones;
    let waiting: u32 = zones.iter().flat_map(|zone| &zone.lanes).map(|lane| lane.waiting).sum();
    assert_eq!(waiting, 0, "{} idle futures stand in no queue any longer", idle.len());
    waits
}

/// Regression: futures that were not polled kept a zone's timer and its free slots.
#[tokio::test(start_paused = true)]
async fn l04_idle_futures_hold_up_others_for_a_second_at_most() {
    let mut most = Duration::ZERO;
    for (zone, lane, n) in [
        (GENERAL, Lane::Normal, 1),
        (GENERAL, Lane::Critical, 12),
        (ORDER, Lane::Trading, 30),
        (GENERAL, Lane::Bulk, 120),
    ] {
        let (with, without) = (beside(zone, lane, n, true).await, beside(zone, lane, n, false).await);
        println!("{n} idle of {lane}: {with:?}, without {without:?}");
        let longest = |waits: &[Duration]| waits.iter().copied().max().unwrap();
        assert!(longest(&with) <= longest(&without) + IDLE, "{n} idle of {lane}: {with:?}, {without:?}");
        let later = longest(&with[1..]);
        assert!(later < SECOND, "and that once only: {with:?}");
        most = most.max(longest(&with).saturating_sub(longest(&without)));
    }
    println!("figures: unsent_idle_ms={}", most.as_millis());
}

#[tokio::test(start_paused = true)]
async fn l04_whoever_comes_back_has_its_place_before_all_who_came_later() {
    let limiter = ZoneLimiter::builder().zone(per_second(ORDER, 1)).build().unwrap();
    let keys = limiter.keys("", &Account::default());
    let mut idle = leave(&limiter, keys, ORDER, Lane::Trading, 3);
    let asked = Instant::now();
    assert!(live(&limiter, keys, ORDER, Lane::Trading).await <= BOUND);
    let mut later = spawn(limiter.acquire(&[ORDER], keys, Lane::Trading));
    assert!(later.poll().is_pending());
    assert!(idle[1].poll().is_pending() && idle[0].poll().is_pending(), "{:?}", asked.elapsed());
    for expected in [0, 1, 2] {
        sleep(Duration::from_millis(1_010)).await;
        let polled = [idle[0].poll(), idle[1].poll(), later.poll()];
        for (n, polled) in polled.into_iter().enumerate() {
            match polled {
                Poll::Ready(permit) => {
                    assert_eq!(n, expected);
                    answer(permit.unwrap());
                    break;
                }
                Poll::Pending => assert!(n != expected, "{n} before {expected}"),
            }
        }
        if expected < 2 {
            // A resolved future asks again when it is polled.
            drop(std::mem::replace(&mut idle[expected], spawn(limiter.acquire(&[ORDER], keys, Lane::Bulk))));
        }
    }
}

#[test]
fn l04_a_grant_that_nobody_collects_for_a_second_goes_to_the_next() {
    let mut core = Core::of(per_second(ORDER, 1));
    let first = core.granted(ORDER, Lane::Trading);
    let (idle, next) = (core.queued(ORDER, Lane::Trading), core.queued(ORDER, Lane::Trading));
    core.limiter.refund(first, core.now);
    assert_eq!(core.woken(), [idle], "granted, and told so");
    core.now += S - 1;
    assert!(matches!(core.poll(next), Decision::Queued { .. }));
    core.now += 1;
    let grant = granted(core.poll(next));
    assert_eq!(grant.at(), core.now);
    assert!(core.limiter.poll(idle, core.now).is_none(), "it asks again");
    core.answer(grant);
}

#[test]
fn l04_a_grant_is_collected_until_its_second_is_over() {
    let mut core = Core::of(per_second(ORDER, 1));
    let first = core.granted(ORDER, Lane::Trading);
    let slow = core.queued(ORDER, Lane::Trading);
    core.limiter.refund(first, core.now);
    core.now += S - 1;
    let grant = granted(core.poll(slow));
    core.now += 2 * S;
    core.answer(grant);
    core.queued(ORDER, Lane::Trading);
}

#[test]
fn l04_a_grant_ends_with_its_waiters_deadline() {
    let mut core = Core::of(per_second(ORDER, 1));
    let first = core.granted(ORDER, Lane::Trading);
    let by = core.now + 300 * MS;
    core.limiter.refund(first, core.now);
    let first = core.granted(ORDER, Lane::Trading);
    let idle = queued(core.ask_by(&[ORDER], Lane::Trading, Some(core.now + 5 * S), false));
    core.cancel(idle);
    core.limiter.refund(first, core.now);
    core.spend(ORDER, Lane::Trading, 1);
    core.now += HELD_SECOND - 200 * MS;
    let idle = queued(core.ask_by(&[ORDER], Lane::Trading, Some(by + HELD_SECOND), false));
    let next = core.queued(ORDER, Lane::Trading);
    core.now += 200 * MS;
    assert!(matches!(core.poll(next), Decision::Queued { .. }), "granted to the one before");
    core.now = by + HELD_SECOND + 1;
    let grant = granted(core.poll(next));
    assert!(core.limiter.poll(idle, core.now).is_none());
    core.answer(grant);
}

/// Idle polls fill the queue of their lane. The next caller is refused, but not until their deadlines have passed.
#[test]
fn l04_a_queue_full_of_absent_waiters_makes_room() {
    let mut core = Core::new(ZoneLimiter::builder().zone(per_second(ORDER, 1)).queue_bound(Lane::Bulk, 3));
    let on_its_way = core.granted(ORDER, Lane::Bulk);
    let idle: Vec<_> = (0..3).map(|_| core.queued(ORDER, Lane::Bulk)).collect();
    let full = |decision| matches!(decision, Decision::Refused(Refusal::QueueFull { .. }));
    core.now += MS;
    assert!(full(core.ask(&[ORDER], Lane::Bulk)));
    assert_eq!(core.woken(), idle, "they are asked whether they are there");
    core.now += S / 4;
    core.queued(ORDER, Lane::Critical);
    assert!(matches!(core.poll(idle[1]), Decision::Queued { .. }));
    core.now += S / 4;
    let late = core.queued(ORDER, Lane::Bulk);
    assert!(core.limiter.poll(idle[0], core.now).is_none() && core.limiter.poll(idle[2], core.now).is_none());
    assert!(matches!(core.poll(idle[1]), Decision::Queued { .. }), "it has shown that it is there");
    core.cancel(late);
    core.lose(on_its_way, core.now, Loss::Reset);
}

/// A transport that counts its sends, with its delays.
#[derive(Clone)]
struct Line {
    sent: Arc<AtomicUsize>,
    connects: Duration,
    answers: Duration,
}

impl Line {
    fn new(connects: u64, answers: u64) -> Self {
        let [connects, answers] = [connects, answers].map(Duration::from_millis);
        Self { sent: Arc::default(), connects, answers }
    }

    fn service(&self, limiter: &ZoneLimiter) -> BoxCloneSyncService<Request<()>, Response<()>, BoxError> {
        let line = self.clone();
        let transport = service_fn(move |_: Request<()>| {
            let line = line.clone();
            async move {
                sleep(line.connects).await;
                line.sent.fetch_add(1, SeqCst);
                sleep(line.answers).await;
                Ok::<_, BoxError>(Response::new(()))
            }
        });
        BoxCloneSyncService::new(ServiceBuilder::new().layer(limiter.layer()).service(transport))
    }
}

fn request(path: &str, lane: Lane) -> Request<()> {
    let mut request = Request::post(format!("https://example.com/v2{path}")).body(()).unwrap();
    Call::of_mut(request.extensions_mut()).set_lane(lane);
    request
}

/// Regression: calls that were sent and then left kept their slots for good, though they were answered at once.
#[tokio::test(start_paused = true)]
async fn l04_calls_that_were_sent_and_left_hold_up_others_for_a_second_and_the_window() {
    let mut most = Duration::ZERO;
    for (path, lane, n) in [
        ("/api/oms/orders", Lane::Normal, 1),
        ("/api/oms/place-order", Lane::Trading, 30),
        ("/api/oms/orders", Lane::Critical, 12),
        ("/api/oms/orders", Lane::Bulk, 120),
    ] {
        let limiter = ZoneLimiter::builder()
            .zone(per_second(GENERAL, 10).ceilings(Ceilings::standard()))
            .zone(per_second(ORDER, 10))
            .build()
            .unwrap();
        let service = Line::new(0, 20).service(&limiter);
        let mut idle: Vec<_> = (0..n).map(|_| spawn(service.clone().oneshot(request(path, lane)))).collect();
        idle.iter_mut().for_each(|call| assert!(call.poll().is_pending()));
        let start = Instant::now();
        for moment in 0..10 {
            let (asked, call) = (Instant::now(), service.clone().oneshot(request(path, lane)));
            timeout(60 * SECOND, call).await.expect("held up for a minute").unwrap();
            assert!(asked.elapsed() <= BOUND, "{n} idle of {lane}, {moment}: {:?}", asked.elapsed());
            most = most.max(asked.elapsed());
        }
        assert!(start.elapsed() < 4 * SECOND, "{n} idle of {lane}: {:?}", start.elapsed());
        // The calls that were sent have been answered, and the others go on.
        for call in idle {
            timeout(60 * SECOND, call).await.expect("stuck").unwrap();
        }
        let left: u32 = limiter.snapshot().zones.iter().map(|zone| zone.in_flight).sum();
        assert_eq!(left, 0);
    }
    println!("figures: sent_idle_ms={}", most.as_millis());
}

/// A call that answers the roll call keeps its slots, however long its answer takes.
#[tokio::test(start_paused = true)]
async fn l04_a_call_that_somebody_waits_for_keeps_its_slot_until_it_is_answered() {
    let limiter = ZoneLimiter::builder().zone(per_second(ORDER, 1)).build().unwrap();
    let service = Line::new(0, 20_000).service(&limiter);
    let place = || service.clone().oneshot(request("/api/oms/place-order", Lane::Trading));
    let start = Instant::now();
    let hangs = tokio::spawn(place());
    sleep(Duration::from_millis(1)).await;
    let mut second = limiter
        .acquire(&[ORDER], limiter.keys("example.com", &Account::default()), Lane::Trading)
        .await
        .unwrap();
    assert!(start.elapsed() > 21 * SECOND, "{:?}", start.elapsed());
    second.sent();
    hangs.await.unwrap().unwrap();
}

/// If an unsent call was left and is polled again, its send is counted again.
#[tokio::test(start_paused = true)]
async fn l04_what_leaves_after_its_slots_were_given_on_is_counted_once_more() {
    let limiter = ZoneLimiter::builder().zone(per_second(ORDER, 1)).build().unwrap();
    let line = Line::new(100, 100);
    let service = line.service(&limiter);
    let place = || service.clone().oneshot(request("/api/oms/place-order", Lane::Trading));
    let mut idle = spawn(place());
    assert!(idle.poll().is_pending());
    timeout(60 * SECOND, place()).await.expect("held up for a minute").unwrap();
    assert_eq!(line.sent.load(SeqCst), 1, "it is still to leave");
    sleep(5 * SECOND).await;
    assert!(idle.poll().is_pending());
    assert_eq!(line.sent.load(SeqCst), 2);
    let in_flight = limiter.snapshot().zones[0].in_flight;
    assert_eq!(in_flight, 1, "it is on its way once more");
    idle.await.unwrap();
}

/// Regression: the zone heard nothing of it, and the waiters went on into further 429s.
#[tokio::test(start_paused = true)]
async fn l04_a_429_to_a_call_that_was_left_stops_the_zone() {
    let limiter = ZoneLimiter::builder().zone(per_second(ORDER, 1)).build().unwrap();
    let transport = service_fn(|_: Request<()>| async {
        sleep(Duration::from_millis(20)).await;
        let refused = Response::builder().status(429).header("retry-after", "30");
        Ok::<_, BoxError>(refused.body(()).unwrap())
    });
    let service = ServiceBuilder::new().layer(limiter.layer()).service(transport);
    let mut left = spawn(service.oneshot(request("/api/oms/place-order", Lane::Trading)));
    assert!(left.poll().is_pending());
    let keys = limiter.keys("example.com", &Account::default());
    let next = timeout(60 * SECOND, limiter.acquire(&[ORDER], keys, Lane::Trading)).await;
    answer(next.expect("held up for a minute").unwrap());
    assert_eq!(limiter.snapshot().zones[0].in_flight, 0, "the call is presumed counted");
    assert!(left.poll().is_ready());
    let zone = limiter.snapshot().zones.remove(0);
    assert_eq!((zone.paused_for, zone.in_flight), (Some(30 * SECOND), 0));
}

/// Regression: it was refused like a new request, because those behind it filled the queue or its time.
#[tokio::test(start_paused = true)]
async fn an_absent_future_that_comes_back_is_no_newcomer() {
    let order = per_second(ORDER, 1);
    let limiter = ZoneLimiter::builder().zone(order).queue_bound(Lane::Trading, 1).build().unwrap();
    let keys = limiter.keys("", &Account::default());
    drop(leave(&limiter, keys, ORDER, Lane::Trading, 1));
    let asks = || limiter.acquire(&[ORDER], keys, Lane::Trading);
    let mut absent = spawn(asks().send_by(Instant::now() + Duration::from_millis(3_900)));
    assert!(absent.poll().is_pending());
    advance(Duration::from_millis(1_010)).await;
    let mut second = spawn(asks());
    assert!(second.poll().is_pending(), "the slot belongs to the absent one");
    advance(Duration::from_millis(1_010)).await;
    let Poll::Ready(permit) = second.poll() else { panic!("the slot went on") };
    answer(permit.unwrap());
    let mut third = spawn(asks());
    assert!(third.poll().is_pending());
    assert!(absent.poll().is_pending(), "it waits for the next slot");
    advance(Duration::from_millis(1_010)).await;
    let Poll::Ready(permit) = absent.poll() else { panic!("it has its old place") };
    answer(permit.unwrap());
    assert!(third.poll().is_pending());
}

/// A service that becomes ready when its gate opens.
#[derive(Clone)]
struct Gate(Arc<AtomicUsize>);

impl Service<Request<()>> for Gate {
    type Response = Response<()>;
    type Error = BoxError;
    type Future = std::future::Ready<Result<Response<()>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if self.0.load(SeqCst) == 0 { Poll::Pending } else { Poll::Ready(Ok(())) }
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        std::future::ready(Ok(Response::new(())))
    }
}

/// Regression: it went to the tail of its lane.
#[tokio::test(start_paused = true)]
async fn a_call_whose_permit_was_taken_back_before_it_left_has_its_old_place() {
    let limiter = ZoneLimiter::builder().zone(per_second(ORDER, 1)).build().unwrap();
    let gate = Gate(Arc::default());
    let service = ServiceBuilder::new().layer(limiter.layer()).service(gate.clone());
    let mut call = spawn(service.oneshot(request("/api/oms/place-order", Lane::Trading)));
    assert!(call.poll().is_pending(), "granted, and not ready");
    let keys = limiter.keys("example.com", &Account::default());
    let asks = || spawn(limiter.acquire(&[ORDER], keys, Lane::Trading));
    let (mut second, mut third) = (asks(), asks());
    assert!(second.poll().is_pending() && third.poll().is_pending());
    let permit = loop {
        advance(Duration::from_millis(100)).await;
        if let Poll::Ready(permit) = second.poll() {
            break permit;
        }
        assert!(third.poll().is_pending());
    };
    gate.0.store(1, SeqCst);
    assert!(call.poll().is_pending(), "its permit is gone");
    answer(permit.unwrap());
    advance(Duration::from_millis(1_010)).await;
    assert!(third.poll().is_pending(), "it came later");
    assert!(call.poll().is_ready());
}

/// An action of a caller, beside idle futures.
#[derive(Clone, Debug)]
enum Step {
    /// Polls this many futures once, and keeps them.
    Idle {
        lane: usize,
        n: usize,
        by: Option<u64>,
    },
    /// Polls some idle ones again.
    Touch(usize),
    /// Drops some idle ones.
    Drop(usize),
    /// Makes a request that must not wait for any of them.
    Live(usize),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..5_usize, 1..40_usize, proptest::option::of(1..5_000_u64)).prop_map(|(lane, n, by)| Step::Idle { lane, n, by }),
        2 => (0..50_usize).prop_map(Step::Touch),
        1 => (0..50_usize).prop_map(Step::Drop),
        4 => (0..5_usize).prop_map(Step::Live),
        2 => (0..3_000_u64).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 1..40)
}

async fn play(steps: Vec<Step>) {
    let limiter = ZoneLimiter::builder().zone(per_second(ORDER, 4)).build().unwrap();
    let keys = limiter.keys("", &Account::default());
    let mut idle: Vec<Spawn<Acquire>> = Vec::new();
    for step in steps {
        match step {
            Step::Idle { lane, n, by } => {
                for _ in 0..n {
                    let asks = limiter.acquire(&[ORDER], keys, Lane::ALL[lane]);
                    let by = by.map(|ms| Instant::now() + Duration::from_millis(ms));
                    let mut asks = spawn(if let Some(by) = by { asks.send_by(by) } else { asks });
                    match asks.poll() {
                        Poll::Ready(permit) => permit.into_iter().for_each(answer),
                        Poll::Pending => idle.push(asks),
                    }
                }
            }
            Step::Touch(n) => {
                let rest = idle.split_off(n.min(idle.len()));
                idle.retain_mut(|asks| match asks.poll() {
                    Poll::Ready(permit) => {
                        permit.into_iter().for_each(answer);
                        false
                    }
                    Poll::Pending => true,
                });
                idle.extend(rest);
            }
            Step::Drop(n) => drop(idle.drain(..n.min(idle.len()))),
            // Only idle ones of its own lane are ahead of the highest. Lower lanes come after all of them.
            Step::Live(lane) => {
                let waited = live(&limiter, keys, ORDER, Lane::ALL[lane]).await;
                assert!(waited <= BOUND, "{:?} waited {waited:?} for {} idle", Lane::ALL[lane], idle.len());
            }
            Step::Wait(ms) => advance(Duration::from_millis(ms)).await,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn l04_no_set_of_idle_futures_holds_anybody_up_for_longer(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(play(steps));
    }
}
