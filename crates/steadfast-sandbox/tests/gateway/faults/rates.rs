use std::collections::BTreeMap;

use steadfast_sandbox::{Fault, Place, Sandbox};

use crate::world::{MARKET, ORDERS, PLACE_ORDER, World};

/// Sends `attempts` orders for each intent, slowly enough for every zone, and returns the faults that
/// struck each.
async fn strikes(
    world: &World,
    intents: &[String],
    attempts: u32,
) -> BTreeMap<(String, u32), Vec<&'static str>> {
    for _ in 0..attempts {
        for intent in intents {
            world.pass(std::time::Duration::from_millis(200));
            world.post(PLACE_ORDER, MARKET).intent(intent).send().await;
        }
    }
    let mut sent: BTreeMap<String, u32> = BTreeMap::new();
    let arrivals = world.truth().arrivals.into_iter().filter(|arrival| arrival.path == PLACE_ORDER);
    arrivals
        .map(|arrival| {
            let intent = arrival.intent.expect("an intent");
            let attempt = sent.entry(intent.clone()).or_default();
            *attempt += 1;
            ((intent, *attempt), arrival.faults)
        })
        .collect()
}

fn shaky(seed: u64) -> World {
    let builder = Sandbox::builder().seed(seed);
    let builder = builder.fault("placement.504-applied", 0.3).expect("a fault");
    World::of(builder.fault("placement.502-not-applied", 0.3).expect("a fault"))
}

#[tokio::test(start_paused = true)]
async fn a_fault_strikes_the_share_of_requests_that_its_rate_says() {
    let world = shaky(1);
    let intents: Vec<String> = (0..600).map(|i| i.to_string()).collect();
    let strikes = strikes(&world, &intents, 1).await;
    for name in ["placement.504-applied", "placement.502-not-applied"] {
        let struck = strikes.values().filter(|faults| faults.contains(&name)).count();
        // Six standard deviations around 30 %.
        assert!((113..=247).contains(&struck), "{name}: {struck} of 600");
        assert_eq!(world.struck(name), struck as u64);
    }
    assert!(strikes.values().all(|faults| faults.len() <= 1), "one fault for one placement");
}

#[tokio::test(start_paused = true)]
async fn several_clients_meet_the_same_faults_for_the_same_intents_whatever_else_they_send() {
    let forwards: Vec<String> = (0..60).map(|i| format!("intent-{i}")).collect();
    let backwards: Vec<String> = forwards.iter().rev().cloned().collect();
    let (quiet, busy, other_seed) = (shaky(1), shaky(1), shaky(2));
    let first = strikes(&quiet, &forwards, 3).await;
    for _ in 0..7 {
        busy.get(ORDERS).send().await;
    }
    assert_eq!(first, strikes(&busy, &backwards, 3).await);
    assert_ne!(first, strikes(&other_seed, &forwards, 3).await);
    let attempts_differ =
        (0..60).any(|i| first[&(format!("intent-{i}"), 1)] != first[&(format!("intent-{i}"), 2)]);
    assert!(attempts_differ, "a resend is a new draw");
}

#[tokio::test(start_paused = true)]
async fn a_run_with_the_same_seed_and_requests_is_the_same_run() {
    let run = async |seed: u64| {
        let mut builder = Sandbox::builder().seed(seed).wall_clock(monday());
        // Faults of connections, and those whose bodies are too large to keep, are left out.
        let large = [Fault::AnswerEndless, Fault::Answer50MibError, Fault::ListHuge];
        for fault in Fault::ALL.iter().filter(|f| f.place() == Place::Anywhere && !large.contains(f)) {
            builder = builder.fault(fault.as_str(), 0.02).expect("a fault");
        }
        let world = World::of(builder);
        let mut seen = Vec::new();
        for i in 0..300 {
            world.pass(std::time::Duration::from_millis(150));
            let answer = match i % 3 {
                0 => world.list().await,
                _ => world.post(PLACE_ORDER, MARKET).send().await,
            };
            seen.push(format!("{answer:?}"));
        }
        (seen, serde_json::to_string(&world.truth()).expect("JSON"))
    };
    let (one, same, other) = (run(5).await, run(5).await, run(6).await);
    assert_eq!(one, same);
    assert_ne!(one, other);
}

fn monday() -> std::time::SystemTime {
    std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_790_000_000)
}
