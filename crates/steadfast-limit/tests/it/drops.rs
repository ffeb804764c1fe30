//! Drops at any point leave no permit, no waiter and no trace.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, mpsc},
    task::{Context, Wake, Waker},
    thread,
    time::Duration,
};

use http::{Request, Response};
use steadfast_limit::{Account, Acquire, Answer, BoxError, Lane, Zone, ZoneLimiter};
use steadfast_verify::probes::{Strict, drop_at_every_poll};
use tokio::time::{advance, sleep};
use tower::{ServiceBuilder, ServiceExt, service_fn};

use crate::drive::per_second;

const ORDER: Zone = Zone::PLACE_ORDER;

fn place() -> Request<&'static str> {
    Request::post("https://example.com/v2/api/oms/place-order").body("symId=x").unwrap()
}

fn left_behind(limiter: &ZoneLimiter) -> (u32, u32) {
    let snapshot = limiter.snapshot();
    let waiting =
        |zone: &steadfast_limit::ZoneSnapshot| zone.lanes.iter().map(|lane| lane.waiting).sum::<u32>();
    (snapshot.zones.iter().map(|zone| zone.in_flight).sum(), snapshot.zones.iter().map(waiting).sum())
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_after_any_number_of_polls_leaves_nothing_behind() {
    let limiter = ZoneLimiter::builder().zone(per_second(ORDER, 1)).build().unwrap();
    let strict = Strict::new(service_fn(async |_: Request<&'static str>| {
        for _ in 0..4 {
            sleep(Duration::from_millis(5)).await;
        }
        Ok::<_, BoxError>(Response::new(""))
    }));
    let uses = strict.uses();
    let service = ServiceBuilder::new().layer(limiter.layer()).service(strict);
    let keys = limiter.keys("example.com", &Account::default());
    let start = || {
        let (service, limiter) = (service.clone(), limiter.clone());
        async move {
            // The slot is taken when the call begins, so that it queues, and is answered while it waits.
            let mut other = limiter.acquire(&[ORDER], keys, Lane::Critical).await.unwrap();
            other.sent();
            tokio::spawn(async move {
                sleep(Duration::from_millis(50)).await;
                other.settle(Answer::Accepted);
            });
            service.oneshot(place()).await
        }
    };
    let check = |_| {
        let (limiter, uses) = (limiter.clone(), uses.clone());
        async move {
            sleep(Duration::from_millis(100)).await;
            assert_eq!(left_behind(&limiter), (0, 0));
            assert_eq!(uses.running(), 0);
            // Slots still held free themselves.
            advance(Duration::from_secs(125)).await;
            assert_eq!(limiter.snapshot().zones.len(), 0);
        }
    };
    let (output, polls) = drop_at_every_poll(start, check).await;
    output.unwrap();
    assert!(polls >= 8, "the call was dropped in its queue, before and after the send: {polls}");
}

#[tokio::test(start_paused = true)]
async fn those_behind_a_dropped_waiter_go_on() {
    for most in 1..6 {
        let limiter = ZoneLimiter::builder().zone(per_second(ORDER, 1)).build().unwrap();
        let keys = limiter.keys("example.com", &Account::default());
        let ask = || limiter.acquire(&[ORDER], keys, Lane::Trading);
        let mut first = ask().await.unwrap();
        first.sent();
        let mut dropped = tokio_test::task::spawn(ask());
        let behind = tokio::spawn(ask());
        for poll in 0..most {
            if let std::task::Poll::Ready(permit) = dropped.poll() {
                permit.unwrap().refund();
                break;
            }
            if poll == 1 {
                first.sent();
            }
            tokio::task::yield_now().await;
            advance(Duration::from_millis(300)).await;
        }
        first.settle(Answer::Accepted);
        tokio::task::yield_now().await;
        drop(dropped);
        behind.await.unwrap().unwrap().refund();
        assert_eq!(left_behind(&limiter), (0, 0), "after {most} polls");
    }
}

#[tokio::test(start_paused = true)]
async fn a_limiter_outlives_nobody() {
    let limiter = ZoneLimiter::builder().zone(per_second(ORDER, 1)).build().unwrap();
    let keys = limiter.keys("example.com", &Account::default());
    let permit = limiter.acquire(&[ORDER], keys, Lane::Trading).await.unwrap();
    let waiting = limiter.acquire(&[ORDER], keys, Lane::Trading);
    drop(limiter);
    permit.settle(Answer::Accepted);
    waiting.await.unwrap().refund();
}

/// A waker that owns a waiting future of the same limiter.
struct Owner(#[expect(dead_code, reason = "dropped with the waker")] Mutex<Pin<Box<Acquire>>>);

impl Wake for Owner {
    fn wake(self: Arc<Self>) {}
}

/// Regression: wakers were dropped under the lock, which a future that they own takes when it is dropped.
#[test]
fn a_waker_may_own_a_future_of_the_limiter() {
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _entered = runtime.enter();
        let limiter = ZoneLimiter::builder().zone(per_second(ORDER, 1)).build().unwrap();
        let keys = limiter.keys("example.com", &Account::default());
        let polled = |waker: &Waker| {
            let mut asks = Box::pin(limiter.acquire(&[ORDER], keys, Lane::Trading));
            assert!(asks.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
            asks
        };
        let owner = || Waker::from(Arc::new(Owner(Mutex::new(polled(Waker::noop())))));
        let hangs =
            service_fn(|_: Request<&'static str>| std::future::pending::<Result<Response<()>, BoxError>>());
        let service = ServiceBuilder::new().layer(limiter.layer()).service(hangs);
        let mut call = Box::pin(service.oneshot(place()));
        for _ in 0..3 {
            assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            assert!(call.as_mut().poll(&mut Context::from_waker(&owner())).is_pending());
        }
        let mut waits = polled(&owner());
        assert!(
            waits.as_mut().poll(&mut Context::from_waker(&owner())).is_pending(),
            "it replaces the first"
        );
        drop(waits);
        drop(call);
        done.send(()).unwrap();
    });
    is_done.recv_timeout(Duration::from_secs(30)).expect("the limiter waits for itself");
}
