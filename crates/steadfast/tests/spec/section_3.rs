//! The life of a token.

use std::time::Duration;

use http::StatusCode;
use steadfast_sandbox::Sandbox;

use crate::{
    wire::Wire,
    world::{HOUR, World, sandbox, totp_source},
};

const LOGIN: &str = "POST /api-gw/oauth/individual-token-v2 200";
const READ: &str = "GET /api/oms/orders 200";

fn world(sandbox: &Sandbox) -> World {
    let wire = Wire::to(sandbox);
    let tokens = totp_source(sandbox, &wire);
    World::logging_in(wire, tokens)
}

#[tokio::test(start_paused = true)]
async fn spec_3_client_a_token_serves_for_most_of_24_hours_and_is_renewed_before_their_end() {
    let world = world(&sandbox(Sandbox::builder()));
    let half_hours = 4 * 48;
    for _ in 0..half_hours {
        assert_eq!(world.orders().await.status(), StatusCode::OK);
        tokio::time::sleep(HOUR / 2).await;
    }
    let logins = world.wire.to_path("/api-gw/oauth/individual-token-v2");
    assert!(
        world.wire.lines().iter().all(|line| line == LOGIN || line == READ),
        "no token was used too long"
    );
    let apart: Vec<Duration> = logins.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    assert!(apart.iter().all(|apart| *apart < 24 * HOUR), "{apart:?}");
    assert!(apart[0] > 20 * HOUR, "a token is not renewed long before its end: {apart:?}");
    // A token from the early morning is renewed once more before the market opens.
    assert!(logins.len() <= 2 + 4, "{apart:?}");
}

#[tokio::test(start_paused = true)]
async fn spec_3_client_a_token_that_ended_overnight_is_not_tried() {
    let world = world(&sandbox(Sandbox::builder()));
    world.orders().await;
    tokio::time::sleep(24 * HOUR + Duration::from_secs(1)).await;
    assert_eq!(world.orders().await.status(), StatusCode::OK);
    assert_eq!(world.wire.lines(), [LOGIN, READ, LOGIN, READ]);
}

#[tokio::test(start_paused = true)]
async fn spec_3_client_a_silent_401_leads_to_a_login_and_the_request_is_sent_again() {
    let sandbox = sandbox(Sandbox::builder());
    let world = world(&sandbox);
    world.orders().await;
    tokio::time::sleep(HOUR).await;
    sandbox.revoke(None);
    assert_eq!(world.orders().await.status(), StatusCode::OK);
    assert_eq!(world.wire.lines()[2..], ["GET /api/oms/orders 401", LOGIN, READ]);
    let sent = world.wire.to_path("/api/oms/orders");
    assert_ne!(sent[1].authorization(), sent[2].authorization(), "the second send carries the new token");
}
