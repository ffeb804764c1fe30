use std::time::Duration;

use steadfast_sandbox::Fault;
use tokio::time::Instant;

use crate::world::{MARKET, World};

/// The client's view.
#[derive(Clone, Copy)]
enum Wire {
    Error(u16, &'static str),
    /// An ordinary 200.
    Placed,
    BrokenOff,
    WithoutOrderId,
    /// A 200 whose envelope is an error.
    ErrorWith200,
    Reset,
    /// This status, with a body that is not the gateway's.
    Proxy(u16),
}

/// The fate of the order.
#[derive(Clone, Copy)]
enum Book {
    Once,
    Twice,
    Never,
    Later,
}

const GATEWAY_TIMED_OUT: Wire = Wire::Error(504, "Gateway timedout");
const BAD_GATEWAY: Wire = Wire::Error(502, "Bad gateway");
const INTERNAL_SERVER_ERROR: Wire = Wire::Error(500, "Internal server error");
const SERVICE_UNAVAILABLE: Wire = Wire::Error(503, "Service unavailable");
const INTERNAL_ERROR_OCCURRED: Wire = Wire::Error(400, "Internal Error occurred. Kindly try again.");
const UNKNOWN_TEXT: Wire = Wire::Error(400, "Order could not be processed now");
const BAD_REQUEST: Wire = Wire::Error(400, "Bad request");
const INPUT_VALIDATION: Wire = Wire::Error(400, steadfast_spec::msg::INPUT_VALIDATION);

const TABLE: &[(Fault, &str, Wire, Book)] = &[
    (Fault::Placement504Applied, "placement.504-applied", GATEWAY_TIMED_OUT, Book::Once),
    (Fault::Placement504NotApplied, "placement.504-not-applied", GATEWAY_TIMED_OUT, Book::Never),
    (Fault::Placement504Late, "placement.504-late", GATEWAY_TIMED_OUT, Book::Later),
    (Fault::Placement502Applied, "placement.502-applied", BAD_GATEWAY, Book::Once),
    (Fault::Placement502NotApplied, "placement.502-not-applied", BAD_GATEWAY, Book::Never),
    (Fault::Placement502Late, "placement.502-late", BAD_GATEWAY, Book::Later),
    (Fault::Placement500Applied, "placement.500-applied", INTERNAL_SERVER_ERROR, Book::Once),
    (Fault::Placement500NotApplied, "placement.500-not-applied", INTERNAL_SERVER_ERROR, Book::Never),
    (Fault::Placement500Late, "placement.500-late", INTERNAL_SERVER_ERROR, Book::Later),
    (Fault::Placement503Applied, "placement.503-applied", SERVICE_UNAVAILABLE, Book::Once),
    (Fault::Placement503NotApplied, "placement.503-not-applied", SERVICE_UNAVAILABLE, Book::Never),
    (Fault::Placement503Late, "placement.503-late", SERVICE_UNAVAILABLE, Book::Later),
    (
        Fault::Placement400InternalApplied,
        "placement.400-internal-applied",
        INTERNAL_ERROR_OCCURRED,
        Book::Once,
    ),
    (
        Fault::Placement400InternalNotApplied,
        "placement.400-internal-not-applied",
        INTERNAL_ERROR_OCCURRED,
        Book::Never,
    ),
    (Fault::Placement400InternalLate, "placement.400-internal-late", INTERNAL_ERROR_OCCURRED, Book::Later),
    (Fault::Placement200Truncated, "placement.200-truncated", Wire::BrokenOff, Book::Once),
    (Fault::Placement200NoOrderId, "placement.200-no-order-id", Wire::WithoutOrderId, Book::Once),
    (Fault::Placement200Error, "placement.200-error", Wire::ErrorWith200, Book::Never),
    (Fault::PlacementResetApplied, "placement.reset-applied", Wire::Reset, Book::Once),
    (Fault::PlacementResetNotApplied, "placement.reset-not-applied", Wire::Reset, Book::Never),
    (Fault::Placement400UnknownApplied, "placement.400-unknown-applied", UNKNOWN_TEXT, Book::Once),
    (Fault::Placement400UnknownNotApplied, "placement.400-unknown-not-applied", UNKNOWN_TEXT, Book::Never),
    (Fault::Placement400BadRequest, "placement.400-bad-request", BAD_REQUEST, Book::Never),
    (Fault::Placement400Validation, "placement.400-validation", INPUT_VALIDATION, Book::Never),
    (Fault::PlacementBookedCompleted, "placement.booked-completed", Wire::Placed, Book::Once),
    (Fault::PlacementBookedRejected, "placement.booked-rejected", Wire::Placed, Book::Once),
    (Fault::PlacementBookedCancelled, "placement.booked-cancelled", Wire::Placed, Book::Once),
    (Fault::Placement401Applied, "placement.401-applied", Wire::Error(401, "Unauthorized"), Book::Once),
    (Fault::Placement403Applied, "placement.403-applied", Wire::Error(403, "Forbidden"), Book::Once),
    (Fault::Placement429Applied, "placement.429-applied", Wire::Error(429, "Too many requests"), Book::Once),
    // The first order is placed normally, because there is no earlier one.
    (Fault::PlacementRepeatedIdApplied, "placement.repeated-id-applied", Wire::Placed, Book::Once),
    (Fault::PlacementRepeatedIdNotApplied, "placement.repeated-id-not-applied", Wire::Placed, Book::Once),
    (Fault::PlacementInventedIdApplied, "placement.invented-id-applied", Wire::Placed, Book::Once),
    (Fault::PlacementInventedIdNotApplied, "placement.invented-id-not-applied", Wire::Placed, Book::Never),
    (Fault::PlacementProxy502Applied, "placement.proxy-502-applied", Wire::Proxy(502), Book::Once),
    (Fault::PlacementProxy502NotApplied, "placement.proxy-502-not-applied", Wire::Proxy(502), Book::Never),
    (Fault::PlacementProxy502Late, "placement.proxy-502-late", Wire::Proxy(502), Book::Later),
    (Fault::PlacementProxy503Applied, "placement.proxy-503-applied", Wire::Proxy(503), Book::Once),
    (Fault::PlacementProxy503NotApplied, "placement.proxy-503-not-applied", Wire::Proxy(503), Book::Never),
    (Fault::PlacementProxy503Late, "placement.proxy-503-late", Wire::Proxy(503), Book::Later),
    (Fault::PlacementProxy504Applied, "placement.proxy-504-applied", Wire::Proxy(504), Book::Once),
    (Fault::PlacementProxy504NotApplied, "placement.proxy-504-not-applied", Wire::Proxy(504), Book::Never),
    (Fault::PlacementProxy504Late, "placement.proxy-504-late", Wire::Proxy(504), Book::Later),
    (Fault::PlacementProxy520Applied, "placement.proxy-520-applied", Wire::Proxy(520), Book::Once),
    (Fault::PlacementProxy520NotApplied, "placement.proxy-520-not-applied", Wire::Proxy(520), Book::Never),
    (Fault::PlacementProxy520Late, "placement.proxy-520-late", Wire::Proxy(520), Book::Later),
    (Fault::PlacementProxy401Applied, "placement.proxy-401-applied", Wire::Proxy(401), Book::Once),
    (Fault::PlacementProxy403Applied, "placement.proxy-403-applied", Wire::Proxy(403), Book::Once),
    (Fault::PlacementProxy403NotApplied, "placement.proxy-403-not-applied", Wire::Proxy(403), Book::Never),
    (Fault::PlacementProxy404Applied, "placement.proxy-404-applied", Wire::Proxy(404), Book::Once),
    (Fault::PlacementProxy429Applied, "placement.proxy-429-applied", Wire::Proxy(429), Book::Once),
    (Fault::PlacementDoubleForward, "placement.double-forward", Wire::Placed, Book::Twice),
];

pub(super) fn faults() -> Vec<Fault> {
    TABLE.iter().map(|(fault, ..)| *fault).collect()
}

#[tokio::test(start_paused = true)]
async fn a_placement_fault_does_to_wire_and_book_what_its_row_says() {
    for &(fault, name, wire, book) in TABLE {
        assert_eq!(fault.as_str(), name);
        let world = World::with_fault(name, 1.0);
        let sent = Instant::now();
        let answer = world.place_for("a").await;
        match wire {
            Wire::Error(status, msg) => assert_eq!(answer.error(), (status, msg.to_owned()), "{name}"),
            Wire::Placed => assert!(answer.is_whole() && !answer.order_id().is_empty(), "{name}"),
            Wire::BrokenOff => {
                assert_eq!(answer.status(), 200, "{name}");
                assert!(!answer.is_whole(), "{name}");
                assert!(serde_json::from_slice::<serde_json::Value>(answer.body()).is_err(), "{name}");
            }
            Wire::WithoutOrderId => {
                assert_eq!((answer.status(), &answer.json()["s"]), (200, &"ok".into()), "{name}");
                assert!(answer.json()["d"].get("orderId").is_none(), "{name}");
            }
            Wire::ErrorWith200 => assert_eq!(answer.error().0, 200, "{name}"),
            Wire::Reset => assert!(answer.is_reset(), "{name}"),
            Wire::Proxy(status) => {
                assert_eq!(answer.status(), status, "{name}");
                assert!(serde_json::from_slice::<serde_json::Value>(answer.body()).is_err(), "{name}");
            }
        }
        // Only a 504 makes the client wait, until the gateway's timeout; an intermediary's at most as long.
        let patience = Duration::from_millis(200);
        match wire {
            Wire::Proxy(_) => assert!(sent.elapsed() <= patience, "{name}"),
            _ if answer.status() == 504 => assert_eq!(sent.elapsed(), patience, "{name}"),
            _ => assert_eq!(sent.elapsed(), Duration::ZERO, "{name}"),
        }

        let truth = world.truth();
        let (now, pending) = match book {
            Book::Once => (1, 0),
            Book::Twice => (2, 0),
            Book::Never => (0, 0),
            Book::Later => (0, 1),
        };
        assert_eq!((truth.orders.len(), truth.pending_orders), (now, pending), "{name}");
        assert!(truth.orders.iter().all(|order| order.intent.as_deref() == Some("a")), "{name}");
        assert_eq!(truth.arrivals[0].faults, [name]);
        assert_eq!(truth.arrivals[0].status, answer.status(), "{name}");
        assert_eq!(truth.faults.get(name), Some(&1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_order_comes_to_exist_within_its_bounds_and_with_its_owner() {
    for (fault, name, _, book) in TABLE.iter().copied() {
        if !matches!(book, Book::Later) {
            continue;
        }
        let world = World::with_fault(name, 1.0);
        for intent in ["a", "b", "c"] {
            world.place_for(intent).await;
        }
        let sent: Vec<u64> = world.truth().arrivals.iter().map(|arrival| arrival.at_ns).collect();
        let proxy = name.contains("proxy");
        world.pass(Duration::from_secs(if proxy { 30 } else { 9 }));
        let truth = world.truth();
        assert_eq!((truth.orders.len(), truth.pending_orders), (3, 0), "{fault}");
        for order in &truth.orders {
            let place = ["a", "b", "c"].iter().position(|intent| order.intent.as_deref() == Some(intent));
            let late_by = order.applied_ns - sent[place.expect("one of the three")];
            let bounds = if proxy { 1_000_000_000..=29_000_000_000 } else { 2_000_000_000..=8_000_000_000 };
            assert!(bounds.contains(&late_by), "{fault}: {late_by}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_order_is_in_no_list_before_its_instant_and_in_every_list_from_it_on() {
    let world = World::with_script(
        "[[fault]]\nname = 'placement.504-late'\nnth = 1\nlate_by_ms = 3000\nanswer_after_ms = 0",
    );
    world.place(MARKET).await;
    world.pass(Duration::from_millis(2_999));
    assert!(world.records().await.is_empty());
    world.pass(Duration::from_millis(1));
    assert_eq!(world.records().await.len(), 1);
    assert_eq!(world.truth().orders[0].applied_ns, 3_000_000_000);
}

#[tokio::test(start_paused = true)]
async fn an_order_that_the_gateway_refuses_is_struck_by_no_placement_fault() {
    let world = World::with_fault("placement.504-applied", 1.0);
    let refused =
        world.place("symId=EQT_INFY_EQ_NSE&qty=10&side=BUY&type=market&product=intraday&validity=day");
    assert_eq!(refused.await.status(), 400);
    assert_eq!((world.orders(), world.struck("placement.504-applied")), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_double_forward_answers_with_the_first_of_two_equal_orders() {
    let world = World::with_fault("placement.double-forward", 1.0);
    let answer = world.place_for("a").await;
    let orders = world.truth().orders;
    assert_eq!(answer.order_id(), orders[0].order_id);
    assert_ne!(orders[0].order_id, orders[1].order_id);
    assert_eq!(world.records().await.len(), 2, "the client can see both");
}

#[tokio::test(start_paused = true)]
async fn an_order_is_booked_in_the_status_that_the_fault_names_and_stays_in_it() {
    for (name, status) in [
        ("placement.booked-completed", "completed"),
        ("placement.booked-rejected", "rejected"),
        ("placement.booked-cancelled", "cancelled"),
    ] {
        let world = World::with_fault(name, 1.0);
        assert_eq!(world.place(crate::world::LIMIT).await.status(), 200, "{name}");
        for _ in 0..2 {
            assert_eq!(world.records().await[0]["status"], status, "{name}");
            world.pass(Duration::from_secs(120));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_intermediary_answers_with_a_page_a_text_or_nothing() {
    let world = World::with_fault("placement.proxy-502-applied", 1.0);
    let (mut bodies, mut waits) = (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
    for _ in 0..30 {
        let sent = Instant::now();
        let answer = world.place(MARKET).await;
        let kind =
            answer.header("content-type").expect("a type").split(';').next().expect("a type").to_owned();
        bodies.insert((kind, answer.body().is_empty()));
        waits.insert(sent.elapsed().is_zero());
        world.pass(Duration::from_secs(1));
    }
    let kinds = [("text/html", false), ("text/plain", false), ("text/plain", true)];
    assert_eq!(bodies, kinds.map(|(kind, empty)| (kind.to_owned(), empty)).into());
    assert_eq!(waits.len(), 2, "at once, or late");
}

#[tokio::test(start_paused = true)]
async fn an_answer_with_an_invented_id_names_no_order() {
    for (name, orders) in [("placement.invented-id-applied", 2), ("placement.invented-id-not-applied", 0)] {
        let world = World::with_fault(name, 1.0);
        let told = [world.place(MARKET).await.order_id(), world.place(MARKET).await.order_id()];
        let truth = world.truth().orders;
        assert_eq!(truth.len(), orders, "{name}");
        assert!(told[0] != told[1] && truth.iter().all(|order| !told.contains(&order.order_id)), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_with_a_repeated_id_names_the_users_order_before() {
    for (name, orders) in [("placement.repeated-id-applied", 3), ("placement.repeated-id-not-applied", 1)] {
        let world = World::new();
        let first = world.place(MARKET).await.order_id();
        world.strike_always(name);
        let second = world.place(MARKET).await.order_id();
        assert_eq!(second, first, "{name}");
        let third = world.place(MARKET).await.order_id();
        let truth = world.truth().orders;
        assert_eq!(truth.len(), orders, "{name}");
        let before = if orders == 3 { &truth[1].order_id } else { &first };
        assert_eq!(&third, before, "{name}");
    }
}
