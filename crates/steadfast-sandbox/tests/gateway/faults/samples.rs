//! The sample scripts for `--script`: each does what it says.

use std::{collections::BTreeMap, fs, path::PathBuf};

use steadfast_sandbox::Sandbox;

use crate::{
    wire::{Response, Server},
    world::{MARKET, ORDERS, PLACE_ORDER, World},
};

/// Returns the samples by name.
fn samples() -> BTreeMap<String, String> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/faults"));
    let files = fs::read_dir(folder).expect("samples").map(|entry| entry.expect("an entry").path());
    let name = |path: &PathBuf| path.file_stem().expect("a name").to_string_lossy().into_owned();
    files.map(|path| (name(&path), fs::read_to_string(&path).expect("a script"))).collect()
}

/// Sends a request on a connection of its own. Some of them get no answer.
async fn ask(server: &Server, head: &str, authorization: &str, form: &str) -> Option<Response> {
    let request = format!(
        "{head} HTTP/1.1\r\nhost: sandbox\r\nauthorization: Bearer {authorization}\r\ncontent-length: {}\r\n\
         content-type: application/x-www-form-urlencoded\r\nconnection: close\r\n\r\n{form}",
        form.len()
    );
    let mut wire = server.connect().await;
    wire.send(request).await;
    wire.response().await.ok()
}

/// Trades for a moment: orders, reads of the list, and a login.
async fn trade(world: &World) {
    let server = Server::gateway(&world.sandbox).await;
    let (key, user) = (&world.user.api_key, &world.user);
    let token = format!("{key}:{}", user.access_token);
    for _ in 0..6 {
        ask(&server, &format!("POST /v2{PLACE_ORDER}"), &token, MARKET).await;
        ask(&server, &format!("GET /v2{ORDERS}"), &token, "").await;
        world.pass(std::time::Duration::from_secs(1));
    }
    let login = format!(
        "client_id={}&password={}&twoFa={}&twoFaTyp=totp",
        user.client_id,
        user.password,
        world.sandbox.totp_now()
    );
    ask(&server, "POST /v2/api-gw/oauth/individual-token-v2", key, &login).await;
    server.stop().await;
}

#[tokio::test]
async fn every_fault_of_a_sample_strikes() {
    for (name, script) in samples() {
        let world = World::of(Sandbox::builder().script(&script).expect("a script"));
        let planned: Vec<String> =
            world.sandbox.planned_faults().into_iter().map(|fault| fault.name).collect();
        assert!(!planned.is_empty() || script.contains("[interpretation]"), "{name}");
        trade(&world).await;
        for fault in planned {
            assert!(world.struck(&fault) > 0, "{name}: {fault} has not struck");
        }
        assert!(world.sandbox.planned_faults().is_empty(), "{name}: something is left");
    }
}

#[tokio::test]
async fn a_sample_does_what_its_first_lines_say() {
    let samples = samples();
    let world = |name: &str| World::of(Sandbox::builder().script(&samples[name]).expect("a script"));

    let lost = world("lost-answers");
    trade(&lost).await;
    assert_eq!(lost.orders(), 5, "six orders, of which one was not placed");

    let odd = world("other-readings");
    assert_eq!(odd.list().await.status(), 404);
    let (first, second) = (odd.place(MARKET).await.order_id(), odd.place(MARKET).await.order_id());
    let listed = odd.records().await;
    assert_eq!(
        (listed[0]["orderId"].as_str(), listed[1]["orderId"].as_str()),
        (Some(&*second), Some(&*first))
    );
    assert!(first.contains('-') && listed[0]["qty"].is_string());

    let night = world("night");
    trade(&night).await;
    assert_eq!(night.list().await.status(), 401);
}
