//! §7 Errors: the application and gateway faults that come on demand.

use serde_json::json;
use steadfast_sandbox::Sandbox;

use crate::{
    answer::{
        BAD_GATEWAY, GATEWAY_TIMED_OUT, INTERNAL_ERROR_OCCURRED, INTERNAL_SERVER_ERROR, SERVICE_UNAVAILABLE,
        TOO_MANY_REQUESTS,
    },
    endpoints::{HISTORY, ORDERS},
    form::limit_order,
    world::{EQUITY, World},
};

/// Each fault of an order that answers with an error, what it answers, and whether the order is in the book.
const PLACEMENT: [(&str, u16, &str, usize); 10] = [
    ("placement.400-internal-applied", 400, INTERNAL_ERROR_OCCURRED, 1),
    ("placement.400-internal-not-applied", 400, INTERNAL_ERROR_OCCURRED, 0),
    ("placement.500-applied", 500, INTERNAL_SERVER_ERROR, 1),
    ("placement.500-not-applied", 500, INTERNAL_SERVER_ERROR, 0),
    ("placement.502-applied", 502, BAD_GATEWAY, 1),
    ("placement.502-not-applied", 502, BAD_GATEWAY, 0),
    ("placement.503-applied", 503, SERVICE_UNAVAILABLE, 1),
    ("placement.503-not-applied", 503, SERVICE_UNAVAILABLE, 0),
    ("placement.504-applied", 504, GATEWAY_TIMED_OUT, 1),
    ("placement.504-not-applied", 504, GATEWAY_TIMED_OUT, 0),
];

#[tokio::test(start_paused = true)]
async fn spec_7_each_fault_has_its_status_and_text() {
    for (fault, status, msg, _) in PLACEMENT {
        let answer = World::with_fault(fault).place(&limit_order(EQUITY)).await;
        assert_eq!(answer.status, status, "{fault}: {answer}");
        assert_eq!(answer.json(), json!({"s": "error", "msg": msg}), "{fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn spec_7_each_placement_fault_leaves_the_book_as_it_says() {
    for (fault, status, msg, placed) in PLACEMENT {
        let world = World::with_fault(fault);
        world.place(&limit_order(EQUITY)).await.assert_error(status, msg);
        world.pass(crate::world::TWO_WINDOWS);
        assert_eq!(world.orders_in_the_book(), placed, "{fault}");
        let list = world.calmly(&world.get(ORDERS)).await.envelope();
        assert_eq!(list["d"].as_array().map_or(0, Vec::len), placed, "{fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn spec_7_history_also_tells_what_a_504_placed() {
    for (fault, placed) in [("placement.504-applied", "ok"), ("placement.504-not-applied", "no-data")] {
        let world = World::with_fault(fault);
        world.place(&limit_order(EQUITY)).await.assert_error(504, GATEWAY_TIMED_OUT);
        let answer = world.calmly(&world.get(HISTORY)).await;
        assert_eq!(answer.envelope()["s"], placed, "{fault}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn spec_7_a_fault_is_transient() {
    let sandbox = Sandbox::builder().seed(7).fault("placement.502-not-applied", 0.5).expect("a known fault");
    let world = World::of(sandbox.build().expect("a sandbox"));
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..40 {
        seen.insert(world.place(&limit_order(EQUITY)).await.status.as_u16());
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [200, 502], "the same request fails and later succeeds");
}

#[tokio::test(start_paused = true)]
async fn spec_7_a_storm_of_429_reads_like_a_limit() {
    let world = World::with_fault("quota.storm");
    world.place(&limit_order(EQUITY)).await.assert_error(429, TOO_MANY_REQUESTS);
    assert_eq!(world.orders_in_the_book(), 0);
    assert_eq!(world.sandbox.state().arrivals.last().map(|arrival| arrival.status), Some(429));
}
