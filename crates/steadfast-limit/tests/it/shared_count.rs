//! A limiter that counts with other processes: when it asks them, and what it tells them.

use std::{
    future::{Ready, ready},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use steadfast_limit::{
    Account, Acquire, Answer, BoxError, Lane, Loss, Quota, Refusal, SECOND, Scope, ScopeKeys, SharedAcquire,
    SharedAsk, SharedCount, SharedSlot, TokenOrigin, Zone, ZoneLimiter,
};
use tokio::{
    sync::Notify,
    time::{Instant, timeout},
};
use tokio_test::{assert_pending, task};
use tower::{Layer, Service, ServiceExt};

/// Other processes that decide as the test says, and note what they are told.
#[derive(Debug, Default)]
struct Others {
    told: Mutex<Vec<&'static str>>,
    /// Those who ask wait for this if it is set.
    closed: AtomicBool,
    opens: Notify,
    refuses: AtomicBool,
    /// The first slot that they give cannot be used.
    too_late: AtomicBool,
}

impl Others {
    fn tell(&self, what: &'static str) {
        self.told.lock().unwrap().push(what);
    }

    fn told(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.told.lock().unwrap())
    }
}

/// Longer than what anything else takes by default.
const ARRIVES_WITHIN: Duration = Duration::from_secs(45);

#[derive(Clone, Debug)]
struct Shared(Arc<Others>);

impl SharedCount for Shared {
    fn acquire(&self, zones: &[SharedAsk<'_>], _: Lane, _: Option<Instant>) -> SharedAcquire {
        let (others, zone) = (Arc::clone(&self.0), zones[0].zone.zone);
        assert_eq!(zones[0].arrives_within, ARRIVES_WITHIN);
        others.tell("asked");
        Box::pin(async move {
            if others.closed.load(Ordering::Relaxed) {
                others.opens.notified().await;
            }
            if others.refuses.load(Ordering::Relaxed) {
                return Err(Refusal::NotShared { zone, why: "store is away".into() });
            }
            let is_usable = !others.too_late.swap(false, Ordering::Relaxed);
            Ok(Box::new(Slot { others, is_usable, is_sent: false, is_ended: false }) as Box<dyn SharedSlot>)
        })
    }

    fn has_new_token(&self, zones: &[SharedAsk<'_>]) {
        assert_eq!(zones.iter().map(|ask| ask.zone.zone).collect::<Vec<_>>(), [Zone::GENERAL]);
        self.0.tell("new");
    }

    fn expect(&self, zones: &[SharedAsk<'_>]) {
        assert!(zones.iter().all(|ask| ask.arrives_within == ARRIVES_WITHIN));
        zones
            .iter()
            .for_each(|ask| self.0.tell(if ask.zone.zone == Zone::GENERAL { "general" } else { "other" }));
    }
}

struct Slot {
    others: Arc<Others>,
    is_usable: bool,
    is_sent: bool,
    is_ended: bool,
}

impl Slot {
    fn end(&mut self, what: &'static str) {
        self.is_ended = true;
        self.others.tell(what);
    }
}

impl SharedSlot for Slot {
    fn is_usable(&self) -> bool {
        self.is_usable
    }

    fn sent(&mut self) {
        self.is_sent = true;
    }

    fn settle(mut self: Box<Self>) {
        self.end("settled");
    }

    fn lose_ended(mut self: Box<Self>) {
        self.end("lost");
    }

    fn refund(mut self: Box<Self>) {
        self.end("refunded");
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if !self.is_ended {
            self.others.tell(if self.is_sent { "held" } else { "refunded" });
        }
    }
}

struct World {
    limiter: ZoneLimiter,
    keys: ScopeKeys,
    others: Arc<Others>,
}

/// Two a second.
fn world() -> World {
    let others = Arc::new(Others::default());
    let quota = Quota::new(Zone::GENERAL, Scope::AuthToken).limit(2, SECOND);
    let builder = ZoneLimiter::builder().zone(quota).arrives_within(ARRIVES_WITHIN);
    let builder = builder.count_with(Arc::new(Shared(Arc::clone(&others))));
    let limiter = builder.build().unwrap();
    let keys = limiter.keys("gateway", &Account::new("SB0001"));
    World { limiter, keys, others }
}

impl World {
    fn acquire(&self) -> Acquire {
        self.limiter.acquire(&[Zone::GENERAL], self.keys, Lane::Normal)
    }
}

#[tokio::test(start_paused = true)]
async fn the_others_are_told_how_each_request_ended() {
    let world = world();
    let sent = async || {
        let mut permit = world.acquire().await.unwrap();
        permit.sent();
        permit
    };
    drop(world.acquire().await.unwrap());
    sent().await.settle(Answer::Accepted);
    sent().await.refund();
    sent().await.lose(Loss::Reset);
    tokio::time::sleep(10 * SECOND).await;
    sent().await.lose_ended(Instant::now());
    drop(sent().await);
    let ends: Vec<_> = world.others.told().into_iter().filter(|told| *told != "asked").collect();
    assert_eq!(ends, ["refunded", "settled", "refunded", "lost", "lost", "held"]);
}

#[tokio::test(start_paused = true)]
async fn its_own_windows_come_first_and_a_refusal_spends_nothing_of_them() {
    let world = world();
    world.others.refuses.store(true, Ordering::Relaxed);
    for _ in 0..5 {
        let refused = world.acquire().await.unwrap_err();
        assert!(matches!(refused, Refusal::NotShared { .. }), "{refused}");
    }
    world.others.refuses.store(false, Ordering::Relaxed);
    let _permits = [world.acquire().await.unwrap(), world.acquire().await.unwrap()];
    world.others.told();
    assert!(timeout(SECOND, world.acquire()).await.is_err());
    assert_eq!(world.others.told(), [""; 0], "the limiter itself has no room");
}

#[tokio::test(start_paused = true)]
async fn the_others_are_told_of_a_token_that_was_made_here_and_of_no_other() {
    let world = world();
    for origin in [TokenOrigin::Given, TokenOrigin::Stored] {
        world.limiter.token_is(world.keys, origin);
    }
    assert_eq!(world.others.told(), [""; 0]);
    world.limiter.token_is(world.keys, TokenOrigin::Minted);
    assert_eq!(world.others.told(), ["new"]);
}

#[tokio::test(start_paused = true)]
async fn the_others_are_told_in_which_zones_requests_may_come() {
    let world = world();
    world.limiter.expect(world.keys);
    let zones = world.limiter.settings().len();
    let told = world.others.told();
    assert!(told.len() == zones && told.contains(&"general"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn futures_left_while_the_others_are_asked_starve_no_one() {
    let world = world();
    world.others.closed.store(true, Ordering::Relaxed);
    let mut idle = [task::spawn(Box::pin(world.acquire())), task::spawn(Box::pin(world.acquire()))];
    for future in &mut idle {
        assert_pending!(future.poll());
    }
    world.others.closed.store(false, Ordering::Relaxed);
    let began = Instant::now();
    let permit = timeout(5 * SECOND, world.acquire()).await.expect("idle futures hold its slots").unwrap();
    assert!(began.elapsed() <= SECOND + Duration::from_millis(100), "{:?}", began.elapsed());
    drop(permit);
    // Polled again, they are asked for again.
    let [first, _second] = idle;
    timeout(5 * SECOND, first.into_inner()).await.unwrap().unwrap().refund();
}

#[tokio::test(start_paused = true)]
async fn a_waiting_future_may_be_shared_between_threads() {
    fn shared<T: Send + Sync>(future: T) -> T {
        future
    }
    drop(shared(world().acquire()).await.unwrap());
}

/// A service that is ready at the second look, and answers at once.
#[derive(Clone)]
struct ReadyLater(bool);

impl Service<Request<&'static str>> for ReadyLater {
    type Response = Response<&'static str>;
    type Error = BoxError;
    type Future = Ready<Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(Ok(()));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn call(&mut self, _: Request<&'static str>) -> Self::Future {
        ready(Ok(Response::new("")))
    }
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_was_held_too_long_is_given_back_and_asked_for_again() {
    let world = world();
    world.others.too_late.store(true, Ordering::Relaxed);
    let service = world.limiter.layer().all_in(Zone::GENERAL).layer(ReadyLater(false));
    service.oneshot(Request::new("")).await.unwrap();
    assert_eq!(world.others.told(), ["asked", "refunded", "asked", "settled"]);
}
