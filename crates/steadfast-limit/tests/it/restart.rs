use std::time::Duration;

use steadfast_limit::{Account, Answer, Lane, Loss, ScopeKeys, Spent, Zone, ZoneLimiter};
use tokio::time::{Instant, sleep};

use crate::drive::{Core, general};

const GENERAL: Zone = Zone::GENERAL;

fn start() -> (ZoneLimiter, ScopeKeys) {
    let limiter = ZoneLimiter::builder().zone(general()).build().unwrap();
    let keys = limiter.keys("example.com", &Account::default());
    (limiter, keys)
}

async fn spend(limiter: &ZoneLimiter, keys: ScopeKeys, n: usize) {
    for _ in 0..n {
        let mut permit = limiter.acquire(&[GENERAL], keys, Lane::Critical).await.unwrap();
        permit.sent();
        permit.settle(Answer::Accepted);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_spent_before_a_restart_is_spent_after_it() {
    let (before, keys) = start();
    let first = Instant::now();
    spend(&before, keys, 395).await;
    let exported: Vec<_> = before.export(keys);
    drop(before);

    sleep(Duration::from_secs(2)).await;
    let (after, keys) = start();
    after.import(keys, &exported, Duration::from_secs(2)).unwrap();
    let used: Vec<_> = after.snapshot().zones[0].windows.iter().map(|window| window.used).collect();
    assert_eq!(used, [0, 395]);
    spend(&after, keys, 6).await;
    assert!(
        first.elapsed() > Duration::from_secs(60),
        "the sixth waited for the first of the earlier process"
    );
}

#[tokio::test(start_paused = true)]
async fn what_was_on_its_way_or_lost_is_held_as_late_as_it_may_be_counted() {
    let (before, keys) = start();
    let on_its_way = before.acquire(&[GENERAL], keys, Lane::Critical).await.unwrap();
    before.acquire(&[GENERAL], keys, Lane::Critical).await.unwrap().lose(Loss::Reset);
    let exported = before.export(keys);
    assert_eq!(exported, [Spent::new("general", [1_000_000_000, 120_000_000_000])]);
    drop(on_its_way);
    let (after, keys) = start();
    after.import(keys, &exported, Duration::from_millis(500)).unwrap();
    assert_eq!(after.snapshot().zones[0].lost, 2);
    sleep(Duration::from_secs(185)).await;
    assert_eq!(after.snapshot().zones.len(), 0, "it ends by itself");
}

/// Regression: the next export overflowed.
#[test]
fn an_imported_instant_is_no_later_than_the_earlier_process_could_be_counted() {
    let mut core = Core::of(general());
    let (zone, key) = core.zone(GENERAL);
    core.limiter.import(zone, key, &[i64::MIN, -1, i64::MAX], core.now, core.now).unwrap();
    assert_eq!(core.limiter.export(zone, key, core.now), [-1, 120_000_000_000]);
}

#[tokio::test(start_paused = true)]
async fn who_knows_nothing_may_take_everything_for_spent() {
    let (limiter, keys) = start();
    limiter.assume_spent(keys).unwrap();
    let start = Instant::now();
    spend(&limiter, keys, 1).await;
    assert_eq!(start.elapsed(), Duration::ZERO, "a cancel goes");
    limiter.acquire(&[GENERAL], keys, Lane::Trading).await.unwrap().refund();
    assert!(start.elapsed() > Duration::from_secs(60), "an order does not");
}
