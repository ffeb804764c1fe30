use std::time::Duration;

use steadfast_sandbox::{FaultEntry, Sandbox};
use tokio::time::Instant;

use crate::world::{MARKET, ORDERS, World};

#[tokio::test(start_paused = true)]
async fn intent_and_attempt_name_exactly_one_send() {
    let world =
        World::with_script("[[fault]]\nname = 'placement.502-not-applied'\nintent = 'b'\nattempt = 2");
    let mut statuses = Vec::new();
    for intent in ["a", "b", "a", "b", "b"] {
        statuses.push(world.place_for(intent).await.status());
    }
    assert_eq!(statuses, [200, 200, 200, 502, 200]);
}

#[tokio::test(start_paused = true)]
async fn an_intent_alone_names_all_its_sends() {
    let world = World::with_script("[[fault]]\nname = 'placement.502-not-applied'\nintent = 'b'");
    for (intent, status) in [("b", 502), ("a", 200), ("b", 502)] {
        assert_eq!(world.place_for(intent).await.status(), status);
    }
    assert_eq!(world.place(MARKET).await.status(), 200, "a request without an intent");
}

#[tokio::test(start_paused = true)]
async fn nth_and_times_name_a_run_of_requests() {
    let world = World::with_script("[[fault]]\nname = 'placement.503-applied'\nnth = 2\ntimes = 3");
    let mut statuses = Vec::new();
    for _ in 0..6 {
        statuses.push(world.place(MARKET).await.status());
    }
    assert_eq!(statuses, [200, 503, 503, 503, 200, 200]);
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_limits_a_fault_that_could_strike_any() {
    let world = World::with_script("[[fault]]\nname = 'connection.reset-after'\nendpoint = 'orders'");
    assert!(world.list().await.is_reset());
    assert_eq!(world.place(MARKET).await.status(), 200);
    // The path is known before the request is looked at.
    let world = World::with_script("[[fault]]\nname = 'connection.reset-before'\nendpoint = 'orders'");
    assert_eq!(world.place(MARKET).await.status(), 200);
    assert!(world.list().await.is_reset());
}

#[tokio::test(start_paused = true)]
async fn a_script_says_how_long_an_answer_takes_whatever_the_fault() {
    for name in [
        "placement.500-applied",
        "placement.504-not-applied",
        "placement.reset-applied",
        "quota.storm",
        "auth.token-revoked",
        "auth.date-skew",
        "connection.reset-before",
        "connection.reset-after",
    ] {
        let world =
            World::with_script(&format!("[[fault]]\nname = '{name}'\nnth = 1\nanswer_after_ms = 1234"));
        let sent = Instant::now();
        world.place(MARKET).await;
        assert_eq!(sent.elapsed(), Duration::from_millis(1_234), "{name}");
    }
    let world = World::with_script("[[fault]]\nname = 'list.empty'\nnth = 1\nanswer_after_ms = 1234");
    let sent = Instant::now();
    world.get(ORDERS).send().await;
    assert_eq!(sent.elapsed(), Duration::from_millis(1_234));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_a_lifetime_away_comes_and_brings_nothing_down() {
    let script = format!(
        "[[fault]]\nname = 'placement.504-late'\nnth = 1\nlate_by_ms = {0}\nanswer_after_ms = {0}",
        i64::MAX
    );
    let world = World::with_script(&script);
    assert_eq!(world.place(MARKET).await.status(), 504);
    assert_eq!((world.orders(), world.truth().pending_orders), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_script_wins_over_a_rate_and_leaves_it_the_rest() {
    let builder = Sandbox::builder().fault("placement.500-applied", 1.0).expect("a fault");
    let world = World::of(
        builder.script("[[fault]]\nname = 'placement.502-not-applied'\nnth = 2").expect("a script"),
    );
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(world.place(MARKET).await.status());
    }
    assert_eq!(statuses, [500, 502, 500]);
}

#[tokio::test(start_paused = true)]
async fn entries_of_a_script_take_turns_in_the_order_in_which_they_stand() {
    let world = World::with_script(
        "[[fault]]\nname = 'placement.500-applied'\nnth = 1\n\
         [[fault]]\nname = 'placement.503-applied'\nnth = 1\n\
         [[fault]]\nname = 'placement.502-applied'\ntimes = 2",
    );
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(world.place(MARKET).await.status());
    }
    assert_eq!(statuses, [500, 503, 502, 502, 200]);
}

#[test]
fn a_script_that_cannot_be_meant_is_refused_by_the_name_of_its_field() {
    for (fields, named) in [
        ("name = 'placement.504'", "placement.504"),
        ("name = 'list.empty'\nrate = -0.1", "rate"),
        ("name = 'list.empty'\nrate = 1.1", "rate"),
        ("name = 'list.empty'\nrate = 'often'", "invalid type"),
        ("name = 'list.empty'\nnth = 0", "nth"),
        ("name = 'list.empty'\nattempt = 0", "attempt"),
        ("name = 'list.empty'\nendpoint = 'orderz'", "endpoint"),
        ("name = 'list.empty'\nlate_by_ms = 5", "late_by_ms"),
        // A rate is a share of all requests, so it cannot be combined with a selection.
        ("name = 'list.empty'\nrate = 0.5\nintent = 'a'", "intent"),
        ("name = 'list.empty'\nrate = 0.5\nattempt = 1", "attempt"),
        ("name = 'list.empty'\nrate = 0.5\nendpoint = 'orders'", "endpoint"),
        ("name = 'list.empty'\nrate = 0.5\nnth = 1", "nth"),
        ("name = 'list.empty'\nrate = 0.5\ntimes = 1", "times"),
        ("name = 'placement.504-late'\nrate = 0.5\nlate_by_ms = 1", "late_by_ms"),
        ("name = 'list.empty'\nrate = 0.5\nanswer_after_ms = 1", "answer_after_ms"),
        ("name = 'list.empty'\nfrequency = 1", "frequency"),
        ("nth = 1", "name"),
    ] {
        let error = Sandbox::builder().script(&format!("[[fault]]\n{fields}")).expect_err(fields).to_string();
        assert!(error.contains(named), "{fields}: {error}");
    }
    assert!(Sandbox::builder().script("[fault]").is_err());
    assert!(Sandbox::builder().fault("list.empty", f64::NAN).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_fault_injected_while_it_runs_strikes_until_it_is_healed() {
    let world = World::new();
    assert_eq!(world.list().await.status(), 200);
    let mut entry = FaultEntry::default();
    entry.name = "list.504".to_owned();
    world.sandbox.inject(entry).expect("a known fault");
    assert_eq!([world.list().await.status(), world.list().await.status()], [504, 504]);
    world.sandbox.heal();
    assert_eq!(world.list().await.status(), 200);
}
