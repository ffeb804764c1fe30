//! Orders that may become another process's.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use steadfast_call::{BoxError, Call, Failure, Route, find_cause};
use steadfast_dedup::{
    DedupLayer, GuardedBody, OrderEvent, OrderTracker, OrderWithheld, SendGuardLayer,
    journal::{Durable, Entry, Journal, NotOwner},
};
use steadfast_spec::Endpoint;
use steadfast_verify::noon::at_noon;
use tokio::{sync::Notify, time::sleep};
use tower::{Layer, ServiceExt, service_fn};

use crate::{
    gateway::{Gateway, gw504},
    rig::{ORDER, Rig, Told},
};

const fn s(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A journal that becomes another process's.
#[derive(Clone, Debug, Default)]
struct Lent {
    is_lost: Arc<AtomicBool>,
    /// The turns of the kill switch that all processes share.
    turns: Arc<AtomicU64>,
}

impl Lent {
    fn lose(&self) {
        self.is_lost.store(true, Ordering::SeqCst);
    }

    /// Some process turns the kill switch.
    fn turn(&self) {
        self.turns.fetch_add(1, Ordering::SeqCst);
    }

    /// A process over a gateway, whose orders it is.
    fn rig(&self, gateway: &Gateway) -> Rig {
        let settings = at_noon(steadfast_dedup::Settings::default()).traced();
        let tracker = OrderTracker::journaled(settings.clone(), self.clone());
        let mut rig = Rig::around(gateway.clone(), tracker, settings);
        // Its history depends on when the orders are lost, so nothing is checked at the end.
        rig.unchecked = true;
        rig
    }
}

impl Journal for Lent {
    fn recover(&self) -> Vec<Entry> {
        Vec::new()
    }

    fn append(&self, _: Entry) {}

    fn append_durably(&self, _: Entry) -> Durable {
        Durable::known(Ok(()))
    }

    fn flush(&self) -> Durable {
        Durable::known(Ok(()))
    }

    fn owned(&self) -> Result<(), NotOwner> {
        if self.is_lost.load(Ordering::SeqCst) {
            Err(NotOwner::new(Some("other".into()), s(8)))
        } else {
            Ok(())
        }
    }

    fn halt_turns(&self) -> u64 {
        self.turns.load(Ordering::SeqCst)
    }

    fn can_be_lost(&self) -> bool {
        true
    }

    fn salt(&self) -> [u8; 16] {
        [0; 16]
    }
}

fn not_owner() -> Told {
    Told::NotSent("orders are not this process's".into())
}

#[tokio::test(start_paused = true)]
async fn a_process_that_lost_the_orders_sends_none() {
    let (journal, gateway) = (Lent::default(), Gateway::default());
    let rig = journal.rig(&gateway);
    assert_eq!(rig.place("a", ORDER).await, Told::Placed("o1".into()));
    assert!(rig.tracker.recovered().is_ok());
    journal.lose();
    assert!(rig.tracker.recovered().is_err(), "what is in doubt, only the owner knows");
    let reads = gateway.gets();
    assert_eq!(rig.place("b", ORDER).await, not_owner());
    assert_eq!((gateway.posts(), gateway.gets()), (1, reads));
}

#[tokio::test(start_paused = true)]
async fn an_order_that_waits_in_a_queue_does_not_leave_after_the_loss() {
    let (journal, gateway) = (Lent::default(), Gateway::default());
    let rig = journal.rig(&gateway);
    rig.between.queue(s(5), Duration::ZERO);
    let a = rig.start("a", ORDER);
    sleep(s(1)).await;
    journal.lose();
    assert_eq!(a.await.unwrap(), not_owner());
    assert_eq!((gateway.posts(), rig.tracker.in_doubt()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_halt_of_another_process_holds_here_and_is_no_halt_of_this_one() {
    let (journal, gateway) = (Lent::default(), Gateway::default());
    let rig = journal.rig(&gateway);
    journal.turn();
    assert!(rig.tracker.is_halted() && !rig.tracker.halts_itself());
    let halted = || Told::NotSent("orders are halted".into());
    assert_eq!(rig.place("a", ORDER).await, halted());
    rig.tracker.resume();
    assert_eq!(rig.place("a", ORDER).await, halted(), "that is another switch");
    rig.tracker.halt();
    journal.turn();
    assert_eq!(rig.place("a", ORDER).await, halted(), "its own switch halts");
    rig.tracker.resume();
    assert_eq!(rig.place("a", ORDER).await, Told::Placed("o1".into()));
    assert_eq!(gateway.posts(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_order_that_waits_in_a_queue_does_not_leave_after_a_halt_of_another_process() {
    for turns in [1, 2] {
        let (journal, gateway) = (Lent::default(), Gateway::default());
        let rig = journal.rig(&gateway);
        rig.between.queue(s(5), Duration::ZERO);
        let a = rig.start("a", ORDER);
        sleep(s(1)).await;
        (0..turns).for_each(|_| journal.turn());
        assert_eq!(a.await.unwrap(), Told::NotSent("orders are halted".into()));
        assert_eq!((gateway.posts(), rig.tracker.in_doubt()), (0, 0), "{turns} turns");
    }
}

/// A request that a layer above has marked with this endpoint.
fn routed(method: Method, endpoint: Endpoint, form: &'static str) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::from(form));
    *request.uri_mut() = "https://gateway.example/v2/api/oms/place-order".parse().unwrap();
    *request.method_mut() = method;
    Call::of_mut(request.extensions_mut()).set_route(Arc::new(Route::new(endpoint)));
    request
}

#[tokio::test(start_paused = true)]
async fn what_is_about_to_leave_asks_where_its_body_is_polled() {
    let all = [(Endpoint::PlaceOrder, false), (Endpoint::ModifyOrder, false), (Endpoint::CancelOrder, true)];
    // The orders are lost, or another process halts.
    for ((endpoint, leaves), is_halt) in all.into_iter().flat_map(|it| [(it, false), (it, true)]) {
        let journal = Lent::default();
        let tracker = OrderTracker::journaled(at_noon(steadfast_dedup::Settings::default()), journal.clone());
        let (held, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let gateway = {
            let (held, go) = (held.clone(), go.clone());
            service_fn(move |request: Request<GuardedBody<Full<Bytes>>>| {
                let (held, go) = (held.clone(), go.clone());
                async move {
                    if request.method() != Method::GET {
                        held.notify_one();
                        go.notified().await;
                    }
                    // The first poll of the body, once the connection is there.
                    request.into_body().collect().await?;
                    Ok::<_, BoxError>(Response::new(Full::<Bytes>::from("{}")))
                }
            })
        };
        let service = DedupLayer::new(&tracker).layer(SendGuardLayer::new(&tracker).layer(gateway));
        let service = tower::util::BoxCloneService::new(service.map_future(Box::pin));
        let call = tokio::spawn(service.oneshot(routed(Method::POST, endpoint, ORDER)));
        held.notified().await;
        if is_halt {
            journal.turn();
        } else {
            journal.lose();
        }
        go.notify_one();
        match call.await.unwrap() {
            Ok(_) => assert!(leaves, "{endpoint:?}"),
            Err(error) => {
                assert!(!leaves, "{endpoint:?}");
                let is_right = match find_cause(&*error) {
                    Some(OrderWithheld::NotOwner(_)) => !is_halt,
                    Some(OrderWithheld::Halted) => is_halt,
                    _ => false,
                };
                assert!(is_right, "{endpoint:?}: {error:?}");
                assert!(Failure::find(&*error).is_some_and(Failure::is_refusal), "nobody repeats it");
            }
        }
        assert_eq!(tracker.in_doubt(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn after_the_loss_nothing_is_sent_again_and_no_listed_order_is_claimed() {
    // It is not there, or comes after the loss: then it may be the next owner's.
    for place in [gw504(), gw504().placed_after(s(9))] {
        let (journal, gateway) = (Lent::default(), Gateway::default());
        let rig = journal.rig(&gateway);
        gateway.will([place]);
        let a = rig.start("a", ORDER);
        sleep(s(3)).await;
        assert!(!a.is_finished());
        journal.lose();
        sleep(Duration::from_millis(300)).await;
        assert!(a.is_finished(), "it is told at once");
        assert_eq!(a.await.unwrap(), Told::Unresolved("owner_changed", vec![], 504));
        sleep(s(300)).await;
        assert_eq!(gateway.posts(), 1);
        let claims = |event: &OrderEvent| matches!(event, OrderEvent::Recovered { .. });
        assert!(!rig.events().iter().any(claims), "{:?}", rig.events());
    }
}
