//! Each axis of interpretation does what its values say. Axes with older switches have tests beside these.

use std::time::Duration;

use serde_json::{Value, json};
use steadfast_sandbox::{Sandbox, SpecReading};

use crate::world::{LIMIT, MARKET, ORDERS, POSITIONS, World};

fn world(axis: &str, value: &str) -> World {
    let mut reading = SpecReading::default();
    reading.set(axis, value).expect("an axis");
    World::of(Sandbox::builder().seed(7).interpretation(reading))
}

async fn refusals_of(world: &World, zone: &str) -> u64 {
    for _ in 0..11 {
        world.list().await;
    }
    world.truth().refusals.get(zone).copied().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn the_list_counts_in_the_zones_that_the_reading_names() {
    // The limits are ten a second in general, a hundred in data.
    for (value, general, data) in [("general", 1, 0), ("data", 0, 0), ("both", 1, 0)] {
        let world = world("list-zone", value);
        assert_eq!(refusals_of(&world, "general").await, general, "{value}");
        for _ in 0..100 {
            world.get(POSITIONS).send().await;
        }
        let in_data = world.truth().refusals.get("data").copied().unwrap_or_default();
        let lists = match value {
            "general" => 0,
            "data" => 11,
            _ => 10,
        };
        assert_eq!(in_data, data + lists, "{value}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_counts_in_general_too_or_not() {
    for (value, lists) in [("own", 10), ("also-general", 7)] {
        let world = world("order-zone", value);
        for _ in 0..3 {
            assert_eq!(world.place(MARKET).await.status(), 200);
        }
        let mut admitted = 0;
        for _ in 0..12 {
            admitted += usize::from(world.list().await.status() == 200);
        }
        assert_eq!(admitted, lists, "{value}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_counts_up_to_so_long_after_it_was_answered() {
    let world = World::of(Sandbox::builder().seed(7).counted_after_answer(Duration::from_millis(100)));
    for _ in 0..15 {
        assert_eq!(world.list().await.status(), 200, "none of them was counted yet");
    }
    world.pass(Duration::from_millis(100));
    assert_eq!(world.list().await.status(), 429);
    let counted: Vec<u64> =
        world.truth().arrivals.iter().take(15).map(|arrival| arrival.accounted_ns - arrival.at_ns).collect();
    assert!(counted.iter().all(|&late| late <= 100_000_000), "{counted:?}");
    assert!(counted.iter().any(|&late| late > 50_000_000), "{counted:?}");

    let script = "[[fault]]\nname = 'list.504'\nnth = 1\nanswer_after_ms = 2000";
    let builder = Sandbox::builder().counted_after_answer(Duration::ZERO).script(script).expect("a script");
    let world = World::of(builder);
    assert_eq!(world.list().await.status(), 504);
    let arrival = &world.truth().arrivals[0];
    assert_eq!(arrival.accounted_ns - arrival.at_ns, 2_000_000_000, "from its answer");
}

#[tokio::test(start_paused = true)]
async fn refused_requests_use_up_quota_or_not() {
    for (value, status) in [("free", 200), ("counted", 429)] {
        let world = world("refused", value);
        for _ in 0..10 {
            world.list().await;
        }
        world.pass(Duration::from_millis(900));
        for _ in 0..10 {
            assert_eq!(world.list().await.status(), 429);
        }
        world.pass(Duration::from_millis(200));
        assert_eq!(world.list().await.status(), status, "{value}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_way_of_counting_is_another_one() {
    let mut seen = std::collections::BTreeSet::new();
    for value in SpecReading::AXES[3].values {
        let world = world("counting", value);
        // Two bursts around a border of the gateway's seconds.
        let mut admitted = Vec::new();
        for wait in [850, 300, 500, 900] {
            world.pass(Duration::from_millis(wait));
            let mut burst = 0;
            for _ in 0..12 {
                burst += usize::from(world.place(MARKET).await.status() == 200);
            }
            admitted.push(burst);
        }
        seen.insert(admitted);
    }
    assert!(seen.len() >= 4, "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn no_data_is_a_200_or_a_404_with_the_same_envelope() {
    for (value, status) in [("200", 200), ("404", 404)] {
        let answer = world("no-data", value).list().await;
        assert_eq!(answer.status(), status);
        assert_eq!(answer.json(), json!({"s": "no-data", "msg": "no-data"}));
    }
}

#[tokio::test(start_paused = true)]
async fn the_list_shows_what_the_reading_says() {
    for (axis, value, fault, listed) in [
        ("list-shows", "all", "placement.booked-completed", 1),
        ("list-shows", "open-only", "placement.booked-completed", 0),
        ("list-shows", "open-only", "list.500", 1),
        ("rejected", "kept", "placement.booked-rejected", 1),
        ("rejected", "dropped", "placement.booked-rejected", 0),
        ("rejected", "dropped", "placement.booked-cancelled", 1),
    ] {
        let world = world(axis, value);
        world.strike_always(fault);
        // With this seed the first order rests for some seconds.
        world.place(LIMIT).await;
        world.sandbox.heal();
        assert_eq!(world.records().await.len(), listed, "{axis}={value} {fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn records_are_written_as_the_reading_says() {
    let record = async |axis: &str, value: &str| {
        let world = world(axis, value);
        world.place(LIMIT).await;
        world.place(MARKET).await;
        world.records().await
    };
    let plain = record("prices", "present").await;
    assert_eq!((&plain[0]["limitPrice"], &plain[1]["qty"]), (&json!("100.10"), &json!(10)));
    assert_eq!(record("prices", "absent").await[0].get("limitPrice"), None);
    assert_eq!(record("quantity", "text").await[1]["qty"], "10");
    let decimal = record("quantity", "decimal").await;
    assert_eq!((&decimal[0]["qty"], &decimal[1]["qty"]), (&json!("10.50"), &json!("10.0")));
    let extra = record("extra-fields", "present").await;
    assert_eq!((&extra[0]["exchTime"], &extra[0]["orderId"]), (&Value::Null, &plain[0]["orderId"]));
}

#[tokio::test(start_paused = true)]
async fn identifiers_have_the_form_that_the_reading_says_everywhere() {
    for (value, length) in [("digits", 12), ("uuid", 36), ("leading-zeros", 12)] {
        let world = world("order-ids", value);
        let id = world.place(LIMIT).await.order_id();
        assert_eq!(id.len(), length, "{id}");
        assert_eq!(id.starts_with('0'), value == "leading-zeros", "{id}");
        assert_eq!(world.records().await[0]["orderId"], id);
        let cancel = world.call(http::Method::DELETE, &format!("/api/oms/cancel-order?orderId={id}"));
        let status = cancel.send().await.status();
        assert!(status == 200 || status == 400, "{status}");
        assert_ne!(id, world.place(LIMIT).await.order_id());
    }
}

#[tokio::test(start_paused = true)]
async fn a_login_kills_the_older_tokens_or_not() {
    for (value, status) in [("lives", 200), ("dies", 401)] {
        let world = world("old-token", value);
        let new = world.log_in(1).await;
        assert_eq!(world.list().await.status(), status, "{value}");
        let call = world.get(ORDERS).bearer(&world.user.api_key, &new);
        assert_eq!(call.send().await.status(), 200);
        let other = world.get(ORDERS).bearer(&world.other.api_key, &world.other.access_token);
        assert_eq!(other.send().await.status(), 200, "and never another user's");
    }
}

#[tokio::test(start_paused = true)]
async fn errors_are_spelled_as_the_reading_says_and_have_a_payload_or_not() {
    for (axis, value, body) in [
        ("error-text", "as-shown", json!({"s": "error", "msg": "Unauthorized"})),
        ("error-text", "trailing-space", json!({"s": "error", "msg": "Unauthorized "})),
        ("error-text", "capitals", json!({"s": "error", "msg": "UNAUTHORIZED"})),
        (
            "extra-fields",
            "present",
            json!({"s": "error", "msg": "Unauthorized", "d": {"exchTime": null}, "traceId": "0f3a"}),
        ),
    ] {
        let world = world(axis, value);
        let answer = world.get(ORDERS).bearer(&world.user.api_key, "nobody's").send().await;
        assert_eq!((answer.status(), answer.json()), (401, body));
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_is_listed_at_the_latest_when_the_lag_is_over() {
    for (value, most) in [("none", 0), ("200ms", 200), ("1s", 1_000), ("5s", 5_000), ("15s", 15_000)] {
        let world = world("visibility-lag", value);
        let mut delays = Vec::new();
        for number in 1..=5 {
            // Slowly enough for every zone.
            world.pass(Duration::from_secs(1));
            world.place(MARKET).await;
            let mut waited = 0;
            while world.records().await.len() < number {
                world.pass(Duration::from_millis(most / 20 + 150));
                waited += most / 20 + 150;
            }
            delays.push(waited);
        }
        assert!(delays.iter().all(|delay| *delay <= most + most / 20 + 150), "{value}: {delays:?}");
        if most >= 1_000 {
            assert!(delays.iter().any(|delay| *delay != delays[0]), "each has its own: {delays:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_life_of_a_token_is_a_number_a_text_or_too_short() {
    for (value, written) in [("number", json!(86_400)), ("text", json!("86400")), ("short", json!(300))] {
        let world = world("expires-in", value);
        world.pass(Duration::from_secs(30));
        assert_eq!(world.login().send().await.json()["d"]["expires_in"], written);
    }
}

#[tokio::test(start_paused = true)]
async fn a_script_sets_axes_beside_its_faults() {
    let world = World::with_script("[interpretation]\nno-data = '404'\nprices = 'absent'");
    assert_eq!(world.list().await.status(), 404);
    for (toml, named) in [("colour = 'red'", "colour"), ("prices = 'red'", "prices is one of")] {
        let error = Sandbox::builder().script(&format!("[interpretation]\n{toml}")).expect_err(toml);
        assert!(error.to_string().contains(named), "{error}");
    }
}
