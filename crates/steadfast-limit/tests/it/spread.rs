//! Requests without an answer in a zone that a 429 has spread.

use std::{
    future::pending,
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{Request, Response, StatusCode};
use steadfast_limit::{
    BoxError, Decision, Lane, Loss, Nanos, Profile, Quota, RateLimitLayer, SECOND, Scope, Zone,
};
use tokio::time::{Instant, sleep, timeout};
use tower::{ServiceBuilder, ServiceExt, service_fn};

use crate::drive::{Core, HELD_SECOND, MS, S};

const ORDER: Zone = Zone::PLACE_ORDER;
const PROFILES: [Profile; 3] =
    [Profile::Universal, Profile::WindowLog, Profile::Adaptive { burst: NonZeroU32::MIN }];

/// Returns a core whose zone has met a 429 for each halving of ten a second, and one more.
fn spread(profile: Profile, halvings: usize) -> Core {
    let mut core = Core::of(Quota::new(ORDER, Scope::AuthToken).limit(10, SECOND).profile(profile));
    for _ in 0..=halvings {
        let refused = core.next(ORDER, Lane::Trading);
        core.answer_429(refused);
        let probe = core.next(ORDER, Lane::Trading);
        core.answer(probe);
    }
    core.now += 2 * S;
    core
}

/// Sends requests, each answered at once, until `end`. Returns how many, and the longest wait.
fn go_on(core: &mut Core, lane: Lane, end: Nanos) -> (u64, Nanos) {
    let (mut sent, mut longest) = (0, 0);
    while core.now < end {
        let asked = core.now;
        let grant = core.next(ORDER, lane);
        longest = longest.max(core.now - asked);
        core.answer(grant);
        sent += 1;
    }
    (sent, longest)
}

/// Regression: all others waited until it was answered or, once lost, until the gateway could no longer count it.
#[test]
fn o11_a_request_without_an_answer_costs_one_slot_of_ten() {
    for profile in PROFILES {
        for lane in [Lane::Verification, Lane::Trading, Lane::Normal] {
            let mut core = spread(profile, 0);
            let hangs = core.next(ORDER, lane);
            let sent = core.now;
            let (count, longest) = go_on(&mut core, lane, sent + 30 * S);
            assert!(longest < HELD_SECOND + S / 4, "{profile:?} {lane}: {longest}");
            assert!((220..=260).contains(&count), "{profile:?} {lane}: {count}");
            core.lose(hangs, sent, Loss::GivenUp);
            let lost = core.now;
            let (count, longest) = go_on(&mut core, lane, lost + 20 * S);
            assert!(longest < S / 4, "{profile:?} {lane}: {longest}");
            assert!((150..=185).contains(&count), "{profile:?} {lane}: {count}");
        }
    }
}

#[test]
fn o11_each_of_several_costs_one_slot_more() {
    // Of ten slots one is for the burst, so nine a second leave. The last one is free in any two seconds.
    for (lost, expected) in [180, 160, 140, 120, 100, 80, 60, 40, 20, 10].into_iter().enumerate() {
        let mut core = spread(Profile::Universal, 0);
        for _ in 0..lost {
            let grant = core.next(ORDER, Lane::Trading);
            core.lose(grant, core.now, Loss::GivenUp);
        }
        let end = core.now + 20 * S;
        let (count, _) = go_on(&mut core, Lane::Trading, end);
        assert!(count.abs_diff(expected) <= 3, "{lost} lost: {count} in 20 s");
    }
}

/// Returns a core whose ten orders have just left: one was refused, and the others were reset.
fn reset() -> Core {
    let profile = Profile::Adaptive { burst: NonZeroU32::MIN };
    let mut core = Core::of(Quota::new(ORDER, Scope::AuthToken).limit(10, SECOND).profile(profile));
    let sent = core.now;
    let mut grants: Vec<_> = (0..10).map(|_| core.granted(ORDER, Lane::Trading)).collect();
    core.now += 40 * MS;
    core.answer_429(grants.remove(0));
    core.now += 5 * MS;
    grants.into_iter().for_each(|grant| core.lose(grant, sent, Loss::Reset));
    core
}

/// Regression: the distance was that of the slots free when it was first computed, ten seconds instead of two.
#[test]
fn o11_an_order_leaves_when_the_lost_ones_before_it_are_over() {
    for (lane, most) in [(Lane::Trading, 2_100 * MS), (Lane::Verification, 1_300 * MS)] {
        let mut core = reset();
        let asked = core.now;
        let waiter = core.queued(ORDER, lane);
        let at = core.alarm(waiter).unwrap();
        assert!(at <= asked + most, "{lane}: {} ms", (at - asked) / MS);
        core.now = at;
        assert!(matches!(core.poll(waiter), Decision::Granted(_)), "{lane}");
    }
}

/// Regression: it was refused at once, because the slots free now would have let it go only after ten seconds.
#[test]
fn o11_an_order_that_could_leave_in_time_is_not_refused() {
    let mut core = reset();
    core.now += 500 * MS;
    let by = core.now + 3 * S;
    let zone = core.zone(ORDER);
    let earliest = core.limiter.earliest(&[zone], Lane::Trading, core.now).unwrap();
    assert!(earliest < by, "{} ms", (earliest - core.now) / MS);
    let Decision::Queued { waiter, alarm } = core.ask_by(&[ORDER], Lane::Trading, Some(by), false) else {
        panic!("refused")
    };
    core.now = alarm.unwrap();
    assert!(core.now < by && matches!(core.poll(waiter), Decision::Granted(_)));
}

/// The only slot is taken for as long as the gateway may count the request.
#[test]
fn o11_where_one_a_second_is_learned_a_request_without_an_answer_is_waited_for() {
    let mut core = spread(Profile::Universal, 3);
    let hangs = core.next(ORDER, Lane::Trading);
    let sent = core.now;
    let waiter = core.queued(ORDER, Lane::Trading);
    assert_eq!(core.alarm(waiter), None, "until it is answered");
    core.now += 5 * S;
    core.lose(hangs, sent, Loss::Reset);
    assert_eq!(core.alarm(waiter), Some(sent + 6 * S + HELD_SECOND), "or can no longer be counted");
}

#[test]
fn o11_where_two_a_second_are_learned_the_other_slot_goes_on() {
    let mut core = spread(Profile::Universal, 2);
    let grant = core.next(ORDER, Lane::Trading);
    core.lose(grant, core.now, Loss::GivenUp);
    let end = core.now + 10 * S;
    let (count, longest) = go_on(&mut core, Lane::Trading, end);
    assert!(longest <= 2 * HELD_SECOND + 2 * MS && count >= 5, "{count} in ten seconds, {longest}");
}

/// The zone's own profile says that the gateway allows no bursts, so a late one must find an empty bucket.
#[test]
fn a_zone_that_is_paced_by_its_profile_waits_for_a_request_without_an_answer() {
    let mut core = spread(Profile::Paced { burst: NonZeroU32::MIN }, 0);
    let grant = core.next(ORDER, Lane::Trading);
    core.lose(grant, core.now, Loss::GivenUp);
    let waiter = core.queued(ORDER, Lane::Trading);
    assert!(core.alarm(waiter).is_some_and(|at| at > core.now + 120 * S));
}

/// Regression: no order left for 31 s, or for two minutes after the call was dropped.
#[tokio::test(start_paused = true)]
async fn o11_after_a_429_an_order_that_hangs_or_is_dropped_holds_up_no_other() {
    for is_dropped in [false, true] {
        let order = Arc::new(AtomicUsize::new(0));
        let service = ServiceBuilder::new().layer(RateLimitLayer::default()).service(service_fn(
            move |_: Request<&'static str>| {
                let order = order.fetch_add(1, Ordering::Relaxed);
                async move {
                    sleep(Duration::from_millis(40)).await;
                    match order {
                        0 => Ok(Response::builder().status(StatusCode::TOO_MANY_REQUESTS).body("")?),
                        // The probe after the pause is answered, and the next order is not.
                        2 => pending().await,
                        _ => Ok::<_, BoxError>(Response::new("")),
                    }
                }
            },
        ));
        let place = || {
            let order = Request::post("https://example.com/v2/api/oms/place-order").body("symId=x").unwrap();
            service.clone().oneshot(order)
        };
        assert_eq!(place().await.unwrap().status(), StatusCode::TOO_MANY_REQUESTS);
        place().await.unwrap();
        let hangs = tokio::spawn(place());
        sleep(SECOND).await;
        if is_dropped {
            hangs.abort();
        }
        let start = Instant::now();
        for _ in 0..20 {
            timeout(2 * SECOND, place()).await.expect("held up by the order that hangs").unwrap();
        }
        assert!(start.elapsed() < 5 * SECOND, "{:?}", start.elapsed());
    }
}
