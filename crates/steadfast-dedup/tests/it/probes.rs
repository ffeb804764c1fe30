//! K. Callers: readiness, and drops at every await.

use std::cell::Cell;

use http::Request;
use steadfast_dedup::{DedupLayer, SendGuardLayer};
use steadfast_verify::{
    noon,
    probes::{Strict, drop_at_every_poll},
};
use tower::{Layer, Service, ServiceExt};

use crate::{
    gateway::{Body, Gateway, Place, gw504},
    rig::{ORDER, Rig, Told, tell},
};

fn request() -> Request<Body> {
    let request =
        Request::post("https://gateway.example/v2/api/oms/place-order").header("x-test-intent", "a");
    request.body(Body::from(ORDER)).unwrap()
}

#[tokio::test(start_paused = true)]
async fn every_service_below_is_called_only_when_it_was_polled_ready() {
    let (gateway, tracker) = (Gateway::default(), noon::tracker());
    let guarded = Strict::new(SendGuardLayer::new(&tracker).layer(Strict::new(gateway.clone())));
    let uses = guarded.uses();
    let mut service = DedupLayer::new(&tracker).layer(guarded);
    // A resend calls the same service a second time; the poller calls a clone.
    gateway.will([gw504()]);
    let answer = service.ready().await.unwrap().call(request()).await;
    assert_eq!(tell(answer).await, Told::Resent("o1".into()));
    let list = Request::get("https://gateway.example/v2/api/oms/orders").body(Body::default()).unwrap();
    service.ready().await.unwrap().call(list).await.unwrap();
    assert_eq!(uses.calls(), gateway.posts() + gateway.gets());
    assert_eq!(uses.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn k1_dropped_at_every_await_an_order_is_placed_at_most_once() {
    let scripts: [fn() -> Place; 3] = [gw504, || gw504().placed(), crate::gateway::ack];
    for script in scripts {
        let rig = Rig::new();
        let runs = Cell::new(0);
        let start = || {
            runs.set(runs.get() + 1);
            rig.gateway.0.lock().places.clear();
            rig.gateway.will([script()]);
            rig.service.clone().oneshot(rig.request(&format!("i{}", runs.get()), ORDER))
        };
        let (answer, polls) = drop_at_every_poll(start, |_| async {
            rig.tracker.shutdown().await;
            assert_eq!(rig.tracker.in_doubt(), 0);
            assert!(rig.gateway.posts() <= runs.get(), "I14: whoever is gone has nothing sent again");
            rig.audit();
        })
        .await;
        tell(answer).await;
        assert!(polls > 2, "dropped at {polls} points");
        rig.audit();
    }
}
