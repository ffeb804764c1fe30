//! Tests reads that a layer above the send guard refuses before they start: a failed login, a full queue.

use std::{
    future::ready,
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll},
    time::Duration,
};

use http::{Method, Request, Response};
use parking_lot::Mutex;
use steadfast_call::{BoxError, Failure};
use steadfast_dedup::{Baseline, Dedup, DedupLayer, OrderTracker, SendGuard, SendGuardLayer, Settings};
use tokio::time::{Instant, sleep, timeout};
use tower::{Layer, Service, ServiceExt};

use crate::{
    gateway::{Body, Gateway, gw504},
    rig::{ORDER, Told, tell},
};

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Refuses at once: every read, and every order too if `orders_too`.
#[derive(Clone)]
struct Refusing {
    inner: SendGuard<Gateway>,
    orders_too: bool,
    reads: Arc<Mutex<Vec<Instant>>>,
}

impl Service<Request<Body>> for Refusing {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let read = request.method() == Method::GET;
        if read {
            self.reads.lock().push(Instant::now());
            // A loop without time would not end otherwise.
            assert!(self.reads.lock().len() < 10_000, "reads without end");
        }
        if read || self.orders_too {
            Box::pin(ready(Err(Failure::refused("no token").into())))
        } else {
            Box::pin(self.inner.call(request))
        }
    }
}

struct Stack {
    tracker: OrderTracker,
    gateway: Gateway,
    service: Dedup<Refusing>,
    reads: Arc<Mutex<Vec<Instant>>>,
}

impl Stack {
    fn new(settings: Settings, orders_too: bool) -> Self {
        let (tracker, gateway) = (OrderTracker::new(settings), Gateway::default());
        let reads = Arc::<Mutex<Vec<Instant>>>::default();
        let inner = SendGuardLayer::new(&tracker).layer(gateway.clone());
        let service = DedupLayer::new(&tracker).layer(Refusing { inner, orders_too, reads: reads.clone() });
        Self { tracker, gateway, service, reads }
    }

    async fn place(&self) -> Told {
        let request =
            Request::post("https://gateway.example/v2/api/oms/place-order").header("x-test-intent", "a");
        tell(self.service.clone().oneshot(request.body(Body::from(ORDER)).unwrap()).await).await
    }

    fn assert_paced(&self) {
        let reads = self.reads.lock();
        for pair in reads.windows(2) {
            assert!(pair[1] - pair[0] >= s(1), "two reads within {:?}", pair[1] - pair[0]);
        }
    }
}

/// Regression: a read that was refused at once was repeated at once, for ever: neither a position nor time moved.
#[tokio::test(start_paused = true)]
async fn a_refused_baseline_is_one_try_and_holds_up_nothing() {
    for baseline in [Baseline::Cold, Baseline::Always, Baseline::MaxAge(s(5))] {
        let stack = Stack::new(Settings::default().baseline(baseline), true);
        let start = Instant::now();
        assert!(matches!(stack.place().await, Told::NotSent(_)));
        assert!(start.elapsed() <= s(1), "an order waits for its baseline for a second at most");
        assert_eq!(stack.reads.lock().len(), 1);
        for _ in 0..5 {
            assert!(matches!(stack.place().await, Told::NotSent(_)));
        }
        sleep(s(3_600)).await;
        stack.assert_paced();
        timeout(s(1), stack.tracker.shutdown()).await.expect("nothing is in doubt");
        // There are no more reads, so the transport goes with its owners.
        let reads = Arc::downgrade(&stack.reads);
        drop(stack);
        assert_eq!(Weak::strong_count(&reads), 0, "something still reads");
    }
}

#[tokio::test(start_paused = true)]
async fn refused_reads_for_an_order_in_doubt_keep_their_distance() {
    let stack = Stack::new(Settings::default(), false);
    stack.gateway.will([gw504()]);
    let start = Instant::now();
    assert_eq!(stack.place().await, Told::Unresolved("budget", vec![], 504));
    assert!(start.elapsed() < s(107), "{:?}", start.elapsed());
    assert_eq!(stack.gateway.posts(), 1);
    // The watch sees nothing either: until it does, it reads every half minute.
    let searched = stack.reads.lock().len();
    sleep(s(3_600)).await;
    let looks = stack.reads.lock().len() - searched;
    assert!((119..=121).contains(&looks), "{looks}");
    stack.assert_paced();
    timeout(s(2), stack.tracker.shutdown()).await.expect("a last look that is refused is over");
    stack.assert_paced();
}
