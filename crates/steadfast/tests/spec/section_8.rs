//! The five zones, as used by a client that shares them with no other program.

use std::{net::IpAddr, time::Duration};

use futures_util::{StreamExt, future::join_all, stream::FuturesUnordered};
use steadfast::{
    Operation,
    deadline::DeadlineLayer,
    ext::Account,
    limit::{Lane, Profile, ZoneLimiter},
    spec::{Endpoint, Form, Scope, Zone, zones},
};
use steadfast_sandbox::{Sandbox, enforce::Kind};
use steadfast_verify::probes::{accountings, densest_window};
use tokio::time::Instant;

use crate::{
    wire::{Wire, ok, token},
    world::{SECOND, World, limited_totp_source, order_with, sandbox},
};

fn quotes() -> Operation {
    Operation::new(Endpoint::Quotes).query("symId", "EQT_INFY_EQ_NSE")
}

/// Sends `count` of these requests at once, waits for all, and returns how long that took.
async fn burst(world: &World, operation: &Operation, count: usize) -> Duration {
    let start = Instant::now();
    let mut calls: FuturesUnordered<_> = (0..count).map(|_| world.send(operation)).collect();
    while let Some(answer) = calls.next().await {
        assert_ne!(answer.unwrap().status(), 429);
    }
    start.elapsed()
}

fn refused(sandbox: &Sandbox) -> u64 {
    sandbox.state().refusals.values().sum()
}

/// Returns the most requests of a zone in any stretch of `period` at the gateway.
fn densest(sandbox: &Sandbox, zone: Zone, period: Duration) -> usize {
    let counted = accountings(&sandbox.state(), zone, &sandbox.credentials().client_id);
    densest_window(&counted, period)
}

/// Returns the instants at which requests left, in nanoseconds since the first.
fn instants(wire: &Wire) -> Vec<u64> {
    let seen = wire.seen();
    seen.iter().map(|request| (request.at - seen[0].at).as_nanos() as u64).collect()
}

#[test]
fn spec_8_client_the_preset_is_the_table_of_the_specification() {
    let table: Vec<_> = zones()
        .iter()
        .map(|spec| {
            let windows =
                spec.windows.iter().map(|window| (window.limit().get(), window.period().as_secs())).collect();
            (spec.zone, spec.scope, windows)
        })
        .collect::<Vec<(_, _, Vec<(u32, u64)>)>>();
    assert_eq!(
        table,
        [
            (Zone::OTP, Scope::ClientIp, vec![(3, 1)]),
            (Zone::API_KEY, Scope::ApiKey, vec![(100, 1)]),
            (Zone::DATA, Scope::AuthToken, vec![(100, 1)]),
            (Zone::PLACE_ORDER, Scope::AuthToken, vec![(10, 1)]),
            (Zone::GENERAL, Scope::AuthToken, vec![(10, 1), (400, 60)]),
        ]
    );
}

#[test]
fn spec_8_client_each_endpoint_falls_under_the_zones_of_the_specification() {
    for endpoint in Endpoint::SPECIFIED {
        let expected: &[Zone] = match endpoint {
            Endpoint::IndividualToken => &[Zone::OTP, Zone::API_KEY],
            Endpoint::Authorize | Endpoint::Token => &[Zone::API_KEY],
            Endpoint::PlaceOrder => &[Zone::PLACE_ORDER],
            Endpoint::SymbolStore | Endpoint::ScripMaster | Endpoint::Quotes => &[Zone::DATA],
            Endpoint::Positions | Endpoint::Holdings | Endpoint::Funds => &[Zone::DATA],
            _ => &[Zone::GENERAL],
        };
        assert_eq!(endpoint.zones(), expected, "{endpoint:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn spec_8_client_place_order_uses_ten_a_second_and_meets_no_429() {
    let sandbox = sandbox(Sandbox::builder());
    let took = burst(&World::at(&sandbox), &Operation::place_order(&order_with(&[])), 60).await;
    assert_eq!((refused(&sandbox), densest(&sandbox, Zone::PLACE_ORDER, SECOND)), (0, 10));
    assert!(took < 7 * SECOND, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn spec_8_client_data_uses_a_hundred_a_second_and_meets_no_429() {
    let sandbox = sandbox(Sandbox::builder());
    let took = burst(&World::at(&sandbox), &quotes(), 450).await;
    assert_eq!(refused(&sandbox), 0);
    let most = densest(&sandbox, Zone::DATA, SECOND);
    assert!((80..=100).contains(&most), "{most}");
    assert!(took < 7 * SECOND, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn spec_8_client_general_keeps_its_second_and_its_minute() {
    let sandbox = sandbox(Sandbox::builder());
    let patient = DeadlineLayer::new(Duration::from_secs(600));
    let world = World::at_with(&sandbox, |stack| stack.deadline(patient));
    let history = Operation::new(Endpoint::History);
    let took = burst(&world, &history, 900).await;
    assert_eq!(refused(&sandbox), 0);
    let second = densest(&sandbox, Zone::GENERAL, SECOND);
    let minute = densest(&sandbox, Zone::GENERAL, 60 * SECOND);
    assert!((6..=10).contains(&second), "{second} in a second: bursts are allowed briefly");
    assert!((300..=400).contains(&minute), "{minute} in a minute");
    assert!(took > 120 * SECOND && took < 200 * SECOND, "{took:?} for 900 at 400 a minute");
}

#[tokio::test(start_paused = true)]
async fn spec_8_client_logins_from_one_address_share_three_a_second() {
    let limiter = ZoneLimiter::preset();
    let wire = Wire::scripted([token("one")]);
    let sources: Vec<_> =
        (0..8).map(|user| limited_totp_source(&wire, &limiter, &format!("user {user}"))).collect();
    for login in join_all(sources.iter().map(|source| source.login())).await {
        login.unwrap();
    }
    assert_eq!(wire.seen().len(), 8);
    assert_eq!(densest_window(&instants(&wire), SECOND), 3);
}

#[tokio::test(start_paused = true)]
async fn spec_8_client_token_exchanges_use_a_hundred_a_second() {
    let world = World::scripted([token("one")]);
    let exchange = Operation::new(Endpoint::Token).form(Form::new().with("grant_type", "authorization_code"));
    burst(&world, &exchange, 150).await;
    assert_eq!(densest_window(&instants(&world.wire), SECOND), 100);
}

#[tokio::test(start_paused = true)]
async fn spec_8_client_a_login_takes_both_of_its_zones() {
    let limiter = ZoneLimiter::preset();
    let wire = Wire::scripted([token("one")]);
    limited_totp_source(&wire, &limiter, "u").login().await.unwrap();
    let used: Vec<_> =
        limiter.snapshot().zones.into_iter().map(|zone| (zone.zone, zone.windows[0].used)).collect();
    assert_eq!(used, [(Zone::OTP, 1), (Zone::API_KEY, 1)]);
}

#[tokio::test(start_paused = true)]
async fn spec_8_client_a_login_waits_for_the_zone_that_is_used_up_and_spends_nothing_of_the_other() {
    let limiter = ZoneLimiter::preset();
    let keys = limiter.keys("localhost", &Account::new("u"));
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut permit = limiter.acquire(&[Zone::OTP], keys, Lane::Critical).await.unwrap();
        permit.sent();
        held.push(permit);
    }
    let waiting = limiter.acquire(&[Zone::OTP, Zone::API_KEY], keys, Lane::Critical);
    assert!(tokio::time::timeout(SECOND / 2, waiting).await.is_err());
    let spent = limiter.snapshot().zones.into_iter().find(|zone| zone.zone == Zone::API_KEY);
    assert!(spent.is_none_or(|zone| zone.windows[0].used == 0), "the other zone is not spent meanwhile");
}

#[tokio::test(start_paused = true)]
async fn spec_8_client_other_traffic_does_not_consume_the_otp_quota() {
    let limiter = ZoneLimiter::preset();
    let wire = Wire::scripted([ok(r#"{"orderId":"1","msg":"x"}"#)]);
    let world = World::with(wire, |stack| stack.limiter(limiter.clone()));
    for endpoint in Endpoint::SPECIFIED {
        if endpoint != Endpoint::IndividualToken && endpoint != Endpoint::SymbolStore {
            let call = Operation::new(endpoint).query("orderId", "1");
            // Some of them are orders that the stack refuses; none may touch the zone.
            let _ = world.send(&call).await;
        }
    }
    assert!(world.wire.seen().len() > 10, "{:?}", world.wire.lines());
    assert!(limiter.snapshot().zones.iter().all(|zone| zone.zone != Zone::OTP), "{:?}", limiter.snapshot());
    let start = Instant::now();
    let logins = Wire::scripted([token("one")]);
    for user in ["a", "b", "c"] {
        limited_totp_source(&logins, &limiter, user).login().await.unwrap();
    }
    assert!(start.elapsed() < SECOND);
}

#[tokio::test(start_paused = true)]
async fn spec_8_client_a_used_up_zone_holds_up_no_other() {
    let sandbox = sandbox(Sandbox::builder());
    let world = World::at(&sandbox);
    let orders = Operation::place_order(&order_with(&[]));
    let quote = quotes();
    let history = Operation::new(Endpoint::History);
    let (_, data, general) =
        tokio::join!(burst(&world, &orders, 40), burst(&world, &quote, 5), burst(&world, &history, 5));
    assert!(data < SECOND && general < SECOND, "{data:?} {general:?}");
    assert_eq!(refused(&sandbox), 0);
}

#[tokio::test(start_paused = true)]
async fn spec_8_client_the_otp_zone_counts_addresses_and_the_others_accounts() {
    let limiter = ZoneLimiter::preset();
    let (home, office): (IpAddr, IpAddr) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
    let (one, two) = (Account::new("one"), Account::new("two"));
    let wait = async |zone: Zone, from: IpAddr, account: &Account| {
        let keys = limiter.keys("api.example", account).local_address(from);
        limiter.earliest(&[zone], keys, Lane::Critical).unwrap() - Instant::now()
    };
    for (zone, limit) in [(Zone::OTP, 3), (Zone::PLACE_ORDER, 10), (Zone::GENERAL, 10), (Zone::DATA, 100)] {
        let keys = limiter.keys("api.example", &one).local_address(home);
        for _ in 0..limit {
            let mut permit = limiter.acquire(&[zone], keys, Lane::Critical).await.unwrap();
            permit.sent();
            permit.settle(steadfast::limit::Answer::Accepted);
        }
        assert!(wait(zone, home, &one).await > Duration::ZERO, "{zone} is used up");
        let (another_address, another_account) =
            (wait(zone, office, &one).await, wait(zone, home, &two).await);
        if zone == Zone::OTP {
            assert_eq!(another_address, Duration::ZERO, "{zone}: another address has its own quota");
            assert!(another_account > Duration::ZERO, "{zone}: another user of the address shares it");
        } else {
            assert!(another_address > Duration::ZERO, "{zone}: another address shares the token's");
            assert_eq!(another_account, Duration::ZERO, "{zone}: another token has its own quota");
        }
    }
}

/// Sends bursts in three zones to a gateway that counts by `kind`; returns how many were refused.
async fn refused_by(kind: &str, limiter: ZoneLimiter) -> u64 {
    let kind: Kind = kind.parse().unwrap();
    let builder =
        Zone::ALL.into_iter().fold(Sandbox::builder(), |builder, zone| builder.enforcer(zone, kind));
    let sandbox = sandbox(builder);
    let world = World::at_with(&sandbox, |stack| stack.limiter(limiter));
    let orders = Operation::place_order(&order_with(&[]));
    let history = Operation::new(Endpoint::History);
    let quote = quotes();
    tokio::join!(burst(&world, &orders, 45), burst(&world, &history, 45), burst(&world, &quote, 250));
    refused(&sandbox)
}

#[tokio::test(start_paused = true)]
async fn spec_8_client_no_counting_of_windows_or_tokens_refuses_anything() {
    for kind in ["fixed", "fixed:370ms", "first-hit", "sliding-log", "token-bucket", "whole-second"] {
        assert_eq!(refused_by(kind, ZoneLimiter::preset()).await, 0, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn spec_8_client_can_be_set_so_that_no_interpolating_counter_refuses_anything() {
    for kind in ["sliding-counter", "sliding-counter:610ms", "counting-rejects"] {
        let orders_too = ZoneLimiter::builder()
            .preset()
            .adjust(Zone::PLACE_ORDER, |orders| orders.profile(Profile::Universal))
            .build()
            .unwrap();
        assert_eq!(refused_by(kind, orders_too).await, 0, "{kind}");
    }
}
