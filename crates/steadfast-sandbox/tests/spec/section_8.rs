//! §8 Limits: the five quotas, the minute ceiling, and which endpoint draws on which.

use std::time::Duration;

use steadfast_spec::Zone;

use crate::{
    answer::{INVALID_INPUT, TOO_MANY_REQUESTS},
    endpoints::{self, INDIVIDUAL_TOKEN, ORDERS, PLACE_ORDER},
    form::limit_order,
    world::{EQUITY, TWO_WINDOWS, World, ZONES, ip, per_second},
};

const JUST_OVER_A_SECOND: Duration = Duration::from_millis(1_001);

#[tokio::test(start_paused = true)]
async fn spec_8_each_zone_admits_its_limit_and_refuses_the_next() {
    for (zone, limit) in ZONES {
        let world = World::new();
        let probe = world.probe(zone);
        assert_eq!(world.admitted_back_to_back(&probe, limit).await, limit, "{zone:?}");
        probe.send().await.assert_error(429, TOO_MANY_REQUESTS);
        assert_eq!(last_refusal(&world), Some(zone));

        world.pass(Duration::from_millis(998));
        probe.send().await.assert_error(429, TOO_MANY_REQUESTS);
        world.pass(JUST_OVER_A_SECOND);
        assert!(probe.send().await.is_admitted(), "{zone:?} a second later");
    }
}

#[tokio::test(start_paused = true)]
async fn spec_8_an_idle_second_restores_the_whole_quota() {
    for (zone, limit) in ZONES {
        let world = World::new();
        let probe = world.probe(zone);
        for round in 0..3 {
            let admitted = world.admitted_back_to_back(&probe, limit).await;
            assert_eq!(admitted, limit, "{zone:?} in round {round}");
            assert!(!probe.send().await.is_admitted(), "{zone:?} in round {round}");
            world.pass(JUST_OVER_A_SECOND);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn spec_8_a_refused_order_is_not_placed() {
    let world = World::new();
    let probe = world.probe(Zone::PLACE_ORDER);
    for _ in 0..25 {
        probe.send().await;
    }
    assert_eq!(world.orders_in_the_book(), per_second(Zone::PLACE_ORDER));
}

#[tokio::test(start_paused = true)]
async fn spec_8_orders_that_fail_validation_count_too() {
    let world = World::new();
    let invalid = world.post(PLACE_ORDER, &limit_order(EQUITY).without("symId"));
    for _ in 0..per_second(Zone::PLACE_ORDER) {
        invalid.send().await.assert_error(400, INVALID_INPUT);
    }
    world.probe(Zone::PLACE_ORDER).send().await.assert_error(429, TOO_MANY_REQUESTS);
    assert_eq!(world.orders_in_the_book(), 0);
}

#[tokio::test(start_paused = true)]
async fn spec_8_general_also_has_a_minute_ceiling() {
    let world = World::new();
    let call = world.get(ORDERS);
    for burst in 0..40 {
        assert_eq!(world.admitted_back_to_back(&call, 10).await, 10, "burst {burst}");
        world.pass(JUST_OVER_A_SECOND);
    }
    // The second's window is empty, the minute's is full: 400 requests in some 40 seconds.
    call.send().await.assert_error(429, TOO_MANY_REQUESTS);
    assert_eq!(last_refusal(&world), Some(Zone::GENERAL));
    world.pass(Duration::from_secs(15));
    call.send().await.assert_error(429, TOO_MANY_REQUESTS);
    world.pass(TWO_WINDOWS);
    assert_eq!(world.admitted_back_to_back(&call, 10).await, 10);
}

#[tokio::test(start_paused = true)]
async fn spec_8_the_minute_ceiling_is_general_only() {
    for zone in [Zone::PLACE_ORDER, Zone::DATA] {
        let world = World::new();
        let probe = world.probe(zone);
        for burst in 0..45 {
            assert_eq!(world.admitted_back_to_back(&probe, 10).await, 10, "{zone:?} in burst {burst}");
            world.pass(JUST_OVER_A_SECOND);
        }
        let limit = per_second(zone);
        assert_eq!(world.admitted_back_to_back(&probe, limit + 1).await, limit, "{zone:?} has a limit");
    }
}

#[tokio::test(start_paused = true)]
async fn spec_8_a_sustained_pace_below_the_ceiling_is_never_refused() {
    let world = World::new();
    let call = world.get(ORDERS);
    // 6.6 a second, just below the 400 / 60 of the ceiling.
    for sent in 0..2_000 {
        assert!(call.send().await.is_admitted(), "request {sent}");
        world.pass(Duration::from_micros(151_515));
    }
    let burst = world.admitted_back_to_back(&call, 11).await;
    assert!(burst < 11, "the pace was limited at all");
}

#[tokio::test(start_paused = true)]
async fn spec_8_every_endpoint_draws_on_its_zone() {
    for endpoint in endpoints::all() {
        let Some(zone) = endpoint.zone else { continue };
        let world = World::new();
        assert!(world.call(&endpoint).send().await.is_admitted(), "{endpoint:?} on a fresh quota");

        world.pass(TWO_WINDOWS);
        world.exhaust(zone).await;
        world.call(&endpoint).send().await.assert_error(429, TOO_MANY_REQUESTS);
        assert_eq!(last_refusal(&world), Some(zone), "{endpoint:?}");

        world.pass(TWO_WINDOWS);
        let limit = per_second(zone);
        assert!(world.call(&endpoint).send().await.is_admitted(), "{endpoint:?} after two windows");
        let left = world.admitted_back_to_back(&world.probe(zone), limit).await;
        assert_eq!(left, limit - 1, "{endpoint:?} uses up one of {limit}");
    }
}

#[tokio::test(start_paused = true)]
async fn spec_8_an_exhausted_zone_leaves_the_others_alone() {
    for (exhausted, _) in ZONES {
        for (zone, limit) in ZONES {
            // A login falls under the API key zone too; that pair has a test of its own.
            if [exhausted, zone].into_iter().all(|zone| matches!(zone, Zone::OTP | Zone::API_KEY)) {
                continue;
            }
            let world = World::new();
            world.exhaust(exhausted).await;
            if zone == exhausted {
                assert!(!world.probe(zone).send().await.is_admitted(), "{zone:?} was exhausted");
            } else {
                let admitted = world.admitted_back_to_back(&world.probe(zone), limit).await;
                assert_eq!(admitted, limit, "{zone:?} after {exhausted:?} is exhausted");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn spec_8_a_login_must_satisfy_the_otp_and_the_api_key_zone() {
    // The OTP quota is whole, the API key's is used up.
    let world = World::new();
    world.exhaust(Zone::API_KEY).await;
    world.probe(Zone::OTP).send().await.assert_error(429, TOO_MANY_REQUESTS);
    assert_eq!(last_refusal(&world), Some(Zone::API_KEY));

    // The other way round: logins from many addresses, each within its own OTP quota, use up the API key's.
    let world = World::new();
    let login = world.probe(Zone::OTP);
    let mut admitted = 0;
    for address in 1..=40 {
        let call = login.clone().peer(ip(address));
        admitted += world.admitted_back_to_back(&call, 3).await;
    }
    assert_eq!(admitted, per_second(Zone::API_KEY));
    let arrivals = world.sandbox.state().arrivals;
    let logins = arrivals.iter().filter(|arrival| arrival.path.ends_with(INDIVIDUAL_TOKEN));
    assert!(logins.clone().count() > 100);
    assert!(
        logins.clone().all(|arrival| arrival.zone_refused.is_none_or(|zone| zone == Zone::API_KEY.as_str()))
    );
    world.probe(Zone::API_KEY).send().await.assert_error(429, TOO_MANY_REQUESTS);
}

/// The zone that refused the latest request.
fn last_refusal(world: &World) -> Option<Zone> {
    let arrivals = world.sandbox.state().arrivals;
    let name = arrivals.last()?.zone_refused?;
    Zone::ALL.into_iter().find(|zone| zone.as_str() == name)
}
