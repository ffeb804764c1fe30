//! Every physical send takes a permit, and a request that never left takes none.

use std::{
    collections::BTreeMap,
    time::{Duration, UNIX_EPOCH},
};

use futures_util::future::join_all;
use steadfast::{
    BaseUrl, LimiterGate, Operation, Paths, Stack,
    auth::{ApiKey, Credentials, IndividualLogin, TokenSource, TotpSecret},
    call::{Routes, WallClock},
    limit::{Account, ScopeKeys, Zone, ZoneLimiter},
};
use steadfast_sandbox::Sandbox;
use tokio::time::{Instant, sleep};

use crate::world::{SECOND, World};

/// Returns a limiter that forgets nothing for an hour, so that its spent slots are grants less refunds.
fn limiter() -> ZoneLimiter {
    let hour = Duration::from_secs(3_600);
    let remembers =
        |builder: steadfast::limit::Builder, zone| builder.adjust(zone, |quota| quota.limit(100_000, hour));
    let zones = [Zone::OTP, Zone::API_KEY, Zone::DATA, Zone::PLACE_ORDER, Zone::GENERAL];
    zones.into_iter().fold(ZoneLimiter::builder().preset(), remembers).build().unwrap()
}

/// Creates a world that logs in by itself, every login through the same limiter.
fn world(script: &str) -> (World, ZoneLimiter, ScopeKeys) {
    let (noon, start) = (UNIX_EPOCH + Duration::from_secs(1_795_240_800), Instant::now());
    let clock = WallClock::new(move || noon + start.elapsed());
    let sandbox = Sandbox::builder().seed(5).wall_clock(clock.now()).script(script).unwrap().build().unwrap();
    let facts = sandbox.credentials();
    let base: BaseUrl = facts.base_url.parse().unwrap();
    let key = ApiKey::new(facts.api_key).unwrap();
    let credentials = Credentials::new(facts.client_id, facts.password);
    let secret = TotpSecret::new(facts.totp_secret).unwrap();
    let login = IndividualLogin::totp(sandbox.gateway(), &base, key.clone(), credentials, secret).unwrap();
    let limiter = limiter();
    let gate = LimiterGate::new(limiter.clone(), &base, Account::default());
    let login = login.gate(gate);
    let tokens = TokenSource::builder(key, login).clock(clock).build();
    let keys = limiter.keys(base.uri().authority().unwrap().as_str(), &Account::default());
    let stack = Stack::new(base, tokens).routes(Routes::new(&Paths::public())).limiter(limiter.clone());
    (World::around(sandbox, stack), limiter, keys)
}

/// Returns the number of requests that arrived at the sandbox, by zone.
fn sends(world: &World) -> BTreeMap<String, usize> {
    let mut sends = BTreeMap::new();
    for arrival in world.sandbox.state().arrivals {
        // A connection that ended before the gateway read anything counts for the zone of the request all
        // the same.
        let zone = if arrival.path.ends_with("place-order") { "place_order" } else { "general" };
        let unread = arrival.zones.is_empty().then_some(zone);
        for zone in arrival.zones.into_iter().chain(unread) {
            *sends.entry(zone.to_owned()).or_insert(0) += 1;
        }
    }
    sends
}

/// Returns the number of permits that were granted and not refunded, by zone.
fn permits(limiter: &ZoneLimiter, keys: ScopeKeys) -> BTreeMap<String, usize> {
    limiter.export(keys).into_iter().map(|spent| (spent.zone, spent.stamps.len())).collect()
}

#[tokio::test(start_paused = true)]
async fn permits_not_refunded_are_the_sends_at_the_transport() {
    // Repeats, searches for orders in doubt, lost connections.
    let (world, limiter, keys) = world(
        "[[fault]]\nname = 'placement.504-applied'\nnth = 2\ntimes = 2\n\
         [[fault]]\nname = 'placement.503-not-applied'\nnth = 7\ntimes = 1\n\
         [[fault]]\nname = 'placement.reset-applied'\nnth = 9\ntimes = 1\n\
         [[fault]]\nname = 'connection.reset-before'\nendpoint = 'orders'\nnth = 3\ntimes = 1\n\
         [[fault]]\nname = 'list.504'\nnth = 5\ntimes = 2",
    );
    let list = Operation::orders();
    for wave in 0..2 {
        let intents: Vec<String> = (0..15).map(|i| format!("{wave}-{i}")).collect();
        let orders = intents.iter().map(|intent| world.place(intent));
        let polls = (0..12).map(|_| world.send(&list, None));
        let (placed, _) = tokio::join!(join_all(orders), join_all(polls));
        assert!(placed.into_iter().filter(|placed| matches!(placed, Ok(Some(_)))).count() > 10);
        sleep(40 * SECOND).await;
        if wave == 0 {
            // The next wave meets a dead token: 401s, one login, and a second send for each.
            world.sandbox.revoke(None);
        }
    }
    // Dropped while they wait: some never leave.
    let hasty = (0..30).map(|i| {
        let (world, list) = (&world, &list);
        async move {
            let _ = tokio::time::timeout(Duration::from_millis(i * 40), world.send(list, None)).await;
        }
    });
    join_all(hasty).await;
    sleep(5 * SECOND).await;

    let (sends, permits) = (sends(&world), permits(&limiter, keys));
    assert_eq!(permits, sends);
    assert!(sends["otp"] == 2 && sends["otp"] == sends["api_key"], "{sends:?}");
    assert!(sends["place_order"] > 30 && sends["general"] > 24, "{sends:?}");
    let dead = world.sandbox.state().arrivals.iter().filter(|arrival| arrival.status == 401).count();
    assert!(dead > 0, "what was answered 401 counts all the same");
    assert_eq!(world.refused(), 0);
}
