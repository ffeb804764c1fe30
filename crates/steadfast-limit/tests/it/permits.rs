use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use steadfast_limit::{
    Account, Answer, Event, Lane, Loss, Permit, Refusal, ScopeKeys, Zone, ZoneLimiter, ZoneSnapshot,
};
use tokio::time::{Instant, advance, sleep};
use tokio_test::{assert_pending, assert_ready, task};

use crate::drive::{general, per_second};

const ORDER: Zone = Zone::PLACE_ORDER;

fn limiter(per: u32) -> (ZoneLimiter, ScopeKeys) {
    let limiter = ZoneLimiter::builder().zone(per_second(ORDER, per)).build().unwrap();
    let keys = limiter.keys("example.com", &Account::default());
    (limiter, keys)
}

/// Returns how many requests are on their way, lost and waiting.
fn order(limiter: &ZoneLimiter) -> (u32, usize, u32) {
    let zones = limiter.snapshot().zones;
    let waiting = |zone: &ZoneSnapshot| zone.lanes.iter().map(|lane| lane.waiting).sum();
    zones.first().map_or((0, 0, 0), |zone| (zone.in_flight, zone.lost, waiting(zone)))
}

fn answered(mut permit: Permit) {
    permit.sent();
    permit.settle(Answer::Accepted);
}

#[tokio::test(start_paused = true)]
async fn the_second_permit_waits_a_second_from_the_answer() {
    let (limiter, keys) = limiter(1);
    let mut permit = limiter.acquire(&[ORDER], keys, Lane::Trading).await.unwrap();
    permit.sent();
    let mut second = task::spawn(limiter.acquire(&[ORDER], keys, Lane::Trading));
    assert_pending!(second.poll());
    advance(Duration::from_secs(5)).await;
    assert_pending!(second.poll(), "it looks, and without an answer there is nothing to wait for");
    permit.settle(Answer::Accepted);
    let settled = Instant::now();
    assert!(second.is_woken(), "it sets its timer now");
    second.await.unwrap().refund();
    let waited = settled.elapsed();
    assert!((Duration::from_millis(1_001)..Duration::from_millis(1_004)).contains(&waited), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_permit_dropped_unsent_goes_to_the_next_at_once() {
    let (limiter, keys) = limiter(1);
    let permit = limiter.acquire(&[ORDER], keys, Lane::Trading).await.unwrap();
    let mut second = task::spawn(limiter.acquire(&[ORDER], keys, Lane::Trading));
    let mut third = task::spawn(limiter.acquire(&[ORDER], keys, Lane::Trading));
    assert_pending!(second.poll());
    assert_pending!(third.poll());
    drop(permit);
    assert!(second.is_woken());
    assert!(!third.is_woken(), "one slot wakes one");

    // It is granted, but dropped before it is polled.
    drop(second);
    assert!(third.is_woken());
    assert_ready!(third.poll()).unwrap().refund();
    assert_eq!(order(&limiter), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn o01_a_permit_dropped_after_the_send_is_held_as_long_as_the_request_may_arrive() {
    for (ends, held) in [(false, 121), (true, 2)] {
        let (limiter, keys) = limiter(1);
        let mut permit = limiter.acquire(&[ORDER], keys, Lane::Trading).await.unwrap();
        permit.sent();
        if ends {
            permit.ends_when_dropped();
        }
        drop(permit);
        assert_eq!(order(&limiter), (0, 1, 0));
        let start = Instant::now();
        limiter.acquire(&[ORDER], keys, Lane::Trading).await.unwrap().refund();
        assert_eq!(start.elapsed().as_secs(), held, "its connection ends with it: {ends}");
    }
}

/// The connection's end is reported when the answer is given up, which may be long after it.
#[tokio::test(start_paused = true)]
async fn o01_a_slot_is_held_from_the_instant_at_which_the_connection_ended() {
    for (ago, held) in [(Some(0), 2001), (Some(1_500), 501), (Some(30_000), 0), (None, 121_001)] {
        let (limiter, keys) = limiter(1);
        let mut permit = limiter.acquire(&[ORDER], keys, Lane::Trading).await.unwrap();
        permit.sent();
        advance(Duration::from_secs(30)).await;
        match ago {
            Some(ms) => permit.lose_ended(Instant::now() - Duration::from_millis(ms)),
            None => permit.lose(Loss::GivenUp),
        }
        let start = Instant::now();
        limiter.acquire(&[ORDER], keys, Lane::Trading).await.unwrap().refund();
        let waited = start.elapsed().as_millis();
        assert!((held..held + 5).contains(&waited), "ended {ago:?} ms ago: {waited} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn proof_that_nothing_left_gives_a_sent_permit_back() {
    let (limiter, keys) = limiter(1);
    let mut permit = limiter.acquire(&[ORDER], keys, Lane::Trading).await.unwrap();
    permit.sent();
    permit.refund();
    let permit = limiter.acquire(&[ORDER], keys, Lane::Trading).await.unwrap();
    permit.lose(Loss::Reset);
    let start = Instant::now();
    limiter.acquire(&[ORDER], keys, Lane::Trading).await.unwrap().refund();
    assert_eq!(start.elapsed().as_secs(), 2);
}

#[tokio::test(start_paused = true)]
async fn nobody_is_woken_for_a_slot_that_another_gets() {
    let (limiter, keys) = limiter(1);
    answered(limiter.acquire(&[ORDER], keys, Lane::Trading).await.unwrap());
    let (start, polls) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
    let waiters = (0..50).map(|_| {
        let (limiter, polls) = (limiter.clone(), polls.clone());
        async move {
            let mut acquire = std::pin::pin!(limiter.acquire(&[ORDER], keys, Lane::Trading));
            let permit = std::future::poll_fn(|cx| {
                polls.fetch_add(1, Ordering::SeqCst);
                acquire.as_mut().poll(cx)
            });
            answered(permit.await.unwrap());
        }
    });
    join_all(waiters.map(tokio::spawn)).await.into_iter().for_each(Result::unwrap);
    // Each is polled when it comes, when it becomes the foremost, and when its timer fires. It also wakes twice a
    // second to check on the others, and the deputy wakes whenever the timer fires.
    let polls = polls.load(Ordering::SeqCst);
    let looks = 50 * 2 * start.elapsed().as_secs() as usize / 2 + 2 * 50;
    assert!(polls <= 3 * 50 + looks, "{polls} polls for 50 permits, {looks} of them looks");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_comes_before_any_wait() {
    let (limiter, keys) = limiter(1);
    answered(limiter.acquire(&[ORDER], keys, Lane::Trading).await.unwrap());
    let start = Instant::now();
    let soon = start + Duration::from_millis(500);
    let refused = limiter.acquire(&[ORDER], keys, Lane::Trading).send_by(soon).await.unwrap_err();
    let earliest = Duration::from_nanos(1_001_500_000);
    assert_eq!(refused, Refusal::WouldMissDeadline { zone: ORDER, earliest });
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(limiter.earliest(&[ORDER], keys, Lane::Trading).unwrap(), start + earliest);
    let unknown = Zone::new("unknown");
    assert_eq!(
        limiter.acquire(&[unknown], keys, Lane::Trading).await.unwrap_err(),
        Refusal::UnknownZone(unknown)
    );
    assert_eq!(limiter.acquire(&[], keys, Lane::Trading).await.unwrap_err(), Refusal::NoZone);
}

/// A second permit would be held by nobody's request.
#[tokio::test(start_paused = true)]
#[should_panic(expected = "polled after it has resolved")]
async fn a_resolved_acquire_takes_no_second_permit() {
    let (limiter, keys) = limiter(2);
    let mut acquire = task::spawn(limiter.acquire(&[ORDER], keys, Lane::Trading));
    let _permit = assert_ready!(acquire.poll()).unwrap();
    let _ = acquire.poll();
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_the_wait_for_an_answer() {
    let (limiter, keys) = limiter(1);
    let permit = limiter.acquire(&[ORDER], keys, Lane::Trading).await.unwrap();
    let start = Instant::now();
    let by = start + Duration::from_secs(3);
    let refused = limiter.acquire(&[ORDER], keys, Lane::Trading).send_by(by).await.unwrap_err();
    assert!(matches!(refused, Refusal::WouldMissDeadline { .. }), "{refused:?}");
    assert!(start.elapsed() >= Duration::from_secs(3) && start.elapsed() < Duration::from_millis(3_002));
    assert_eq!(order(&limiter), (1, 0, 0));
    drop(permit);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_overtakes_queued_polls() {
    let limiter = ZoneLimiter::builder().zone(general()).build().unwrap();
    let keys = limiter.keys("example.com", &Account::default());
    let reached = Arc::new(Mutex::new(Vec::new()));
    let ask = |lane: Lane, name: &'static str| {
        let (limiter, reached) = (limiter.clone(), reached.clone());
        async move {
            answered(limiter.acquire(&[Zone::GENERAL], keys, lane).await.unwrap());
            reached.lock().unwrap().push(name);
        }
    };
    let tasks: Vec<_> = (0..40).map(|_| tokio::spawn(ask(Lane::Bulk, "poll"))).collect();
    sleep(Duration::from_millis(10)).await;
    assert_eq!(reached.lock().unwrap().len(), 8, "polls leave two slots alone");
    let cancelled = Instant::now();
    for _ in 0..2 {
        ask(Lane::Critical, "cancel").await;
    }
    assert_eq!(cancelled.elapsed(), Duration::ZERO, "two cancels find the reserve");
    ask(Lane::Critical, "cancel").await;
    assert!(cancelled.elapsed() < Duration::from_millis(1_003), "the third goes when the first slot is free");
    assert!(reached.lock().unwrap().len() <= 8 + 3 + 6, "although the polls came long before it");
    join_all(tasks).await.into_iter().for_each(Result::unwrap);
}

#[tokio::test(start_paused = true)]
async fn events_are_heard_outside_the_lock() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let limiter = Arc::new(Mutex::new(None::<ZoneLimiter>));
    let built = {
        let (heard, limiter) = (heard.clone(), limiter.clone());
        ZoneLimiter::builder()
            .zone(per_second(ORDER, 2))
            .on_event(move |event| {
                // An observer may call the limiter.
                let used = limiter.lock().unwrap().as_ref().map(|limiter| limiter.snapshot().zones.len());
                heard.lock().unwrap().push((event.clone(), used));
            })
            .build()
            .unwrap()
    };
    *limiter.lock().unwrap() = Some(built.clone());
    let keys = built.keys("example.com", &Account::default());
    let mut permit = built.acquire(&[ORDER], keys, Lane::Trading).await.unwrap();
    permit.sent();
    permit.settle(Answer::TooManyRequests { retry_after: Some(Duration::from_secs(4)) });
    let heard = heard.lock().unwrap();
    assert!(matches!(heard[0], (Event::ModelMismatch { zone: ORDER, .. }, Some(1))), "{heard:?}");
    let pause = Duration::from_secs(4);
    assert!(matches!(heard[2], (Event::Paused { zone: ORDER, pause: p, again: false, .. }, _) if p == pause));
    assert_eq!(built.snapshot().zones[0].paused_for, Some(pause));
}

#[tokio::test(start_paused = true)]
async fn accounts_gateways_and_addresses_are_counted_apart_where_the_zone_says_so() {
    let limiter = ZoneLimiter::builder()
        .zone(per_second(ORDER, 1))
        .zone(per_second(Zone::OTP, 1).scope(steadfast_limit::Scope::ClientIp))
        .build()
        .unwrap();
    let (one, two) = (Account::new("one"), Account::new("two"));
    let home = |keys: ScopeKeys| keys.local_address("192.0.2.1".parse().unwrap());
    let start = Instant::now();
    for (authority, account) in [("a", &one), ("a", &two), ("b", &one)] {
        let keys = limiter.keys(authority, account);
        answered(limiter.acquire(&[ORDER], keys, Lane::Trading).await.unwrap());
    }
    for keys in [limiter.keys("a", &one), home(limiter.keys("a", &one)), limiter.keys("b", &one)] {
        answered(limiter.acquire(&[Zone::OTP], keys, Lane::Critical).await.unwrap());
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
    // Another user of the same address shares the count of logins.
    let keys = limiter.keys("a", &two);
    answered(limiter.acquire(&[Zone::OTP], keys, Lane::Critical).await.unwrap());
    assert!(start.elapsed() > Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_renewed_token_is_free_once_the_limiter_is_told() {
    let (limiter, keys) = limiter(1);
    answered(limiter.acquire(&[ORDER], keys, Lane::Trading).await.unwrap());
    let mut waiting = task::spawn(limiter.acquire(&[ORDER], keys, Lane::Trading));
    assert_pending!(waiting.poll());
    limiter.reset(keys);
    assert!(waiting.is_woken());
    answered(assert_ready!(waiting.poll()).unwrap());
}

#[test]
fn many_threads_never_have_more_permits_than_there_are() {
    let limiter = ZoneLimiter::builder().zone(per_second(ORDER, 4)).build().unwrap();
    let keys = limiter.keys("example.com", &Account::default());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    runtime.block_on(async {
        let tasks = (0..64).map(|i| {
            let (limiter, running, most) = (limiter.clone(), running.clone(), most.clone());
            tokio::spawn(async move {
                for round in 0..50 {
                    let lane = Lane::ALL[(i + round) % 5];
                    let acquire = limiter.acquire(&[ORDER], keys, lane);
                    if (i + round) % 7 == 0 {
                        // Given up at a random point of the race.
                        let _ = tokio::time::timeout(Duration::ZERO, acquire).await;
                        continue;
                    }
                    let permit = acquire.await.unwrap();
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    running.fetch_sub(1, Ordering::SeqCst);
                    permit.refund();
                }
            })
        });
        join_all(tasks).await.into_iter().for_each(Result::unwrap);
    });
    assert!(most.load(Ordering::SeqCst) <= 4);
    assert_eq!(order(&limiter), (0, 0, 0));
}
