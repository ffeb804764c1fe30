//! Tokens that die while orders are placed.

use std::time::{Duration, UNIX_EPOCH};

use futures_util::future::join_all;
use steadfast::{
    Paths, Stack,
    auth::{ApiKey, Credentials, IndividualLogin, TokenSource, TotpSecret},
    call::{Routes, WallClock},
};
use steadfast_sandbox::Sandbox;
use tokio::time::Instant;

use crate::world::{SECOND, World};

/// Returns a sandbox, and a stack that logs in by itself with a wall clock that follows the paused one.
pub(crate) fn stack_that_logs_in(script: &str) -> (Sandbox, Stack) {
    let (noon, start) = (UNIX_EPOCH + Duration::from_secs(1_795_240_800), Instant::now());
    let clock = WallClock::new(move || noon + start.elapsed());
    let sandbox = Sandbox::builder().seed(5).wall_clock(clock.now()).script(script).unwrap().build().unwrap();
    let facts = sandbox.credentials();
    let base = facts.base_url.parse().unwrap();
    let key = ApiKey::new(facts.api_key).unwrap();
    let credentials = Credentials::new(facts.client_id, facts.password);
    let secret = TotpSecret::new(facts.totp_secret).unwrap();
    let login = IndividualLogin::totp(sandbox.gateway(), &base, key.clone(), credentials, secret).unwrap();
    let tokens = TokenSource::builder(key, login).clock(clock).build();
    (sandbox, Stack::new(base, tokens).routes(Routes::new(&Paths::public())))
}

fn world_that_logs_in(script: &str) -> World {
    let (sandbox, stack) = stack_that_logs_in(script);
    World::around(sandbox, stack)
}

#[tokio::test(start_paused = true)]
async fn an_order_in_doubt_right_after_a_renewal_is_found() {
    let world = world_that_logs_in("[[fault]]\nname = 'placement.504-applied'\nintent = 'b'\ntimes = 1");
    assert!(world.place("a").await.unwrap().is_some());
    // Long enough for the next login to have another code.
    tokio::time::sleep(40 * SECOND).await;
    world.sandbox.revoke(None);
    assert!(world.place("b").await.unwrap().is_some(), "neither duplicated nor stranded");
    assert_eq!(world.placed()["b"].len(), 1);
    assert_eq!(world.sandbox.state().logins.succeeded, 2);
}

#[tokio::test(start_paused = true)]
async fn a_wave_of_orders_that_meets_a_dead_token_is_placed_once_each_or_told() {
    // The new session's list is slow, so that many orders are placed while it is being read.
    for (lag, nth) in [(0, 2), (0, 15), (300, 2), (300, 12), (700, 3), (700, 12), (900, 22)] {
        let world = world_that_logs_in(&format!(
            "[[fault]]\nname = 'list.unknown-enums'\nendpoint = 'orders'\nanswer_after_ms = {lag}\n\
             [[fault]]\nname = 'placement.504-applied'\nendpoint = 'place-order'\nnth = {nth}\ntimes = 3"
        ));
        assert!(world.place("first").await.unwrap().is_some());
        tokio::time::sleep(40 * SECOND).await;
        world.sandbox.revoke(None);
        let intents: Vec<String> = (0..30).map(|i| format!("w{i}")).collect();
        let calls = intents.iter().zip(0..).map(|(intent, number)| {
            let world = &world;
            async move {
                tokio::time::sleep(Duration::from_millis(10 * number)).await;
                world.place(intent).await
            }
        });
        let ended = join_all(calls).await;
        // The orders are equal, and nothing tells the record of a lost one from that of a refused one: at most one of them is
        // in doubt then.
        let doubtful = ended.iter().filter(|placed| placed.is_err()).count();
        let orders = world.sandbox.state().orders.len();
        assert!(doubtful <= 1, "{doubtful} in doubt, lag {lag} ms, from order {nth} on");
        assert!(orders <= 31 && orders + doubtful >= 31, "{orders}, lag {lag} ms, from order {nth} on");
        assert_eq!((world.stack.known_orders().in_doubt(), world.refused()), (0, 0));
    }
}
