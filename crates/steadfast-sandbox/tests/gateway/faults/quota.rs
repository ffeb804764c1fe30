use std::time::Duration;

use steadfast_sandbox::Fault;

use crate::world::{ORDERS, POSITIONS, World};

const TABLE: &[(Fault, &str)] = &[
    (Fault::QuotaForeign, "quota.foreign"),
    (Fault::QuotaHalved, "quota.halved"),
    (Fault::QuotaLowered, "quota.lowered"),
    (Fault::QuotaStorm, "quota.storm"),
    (Fault::QuotaStormRetryAfter, "quota.storm-retry-after"),
    (Fault::QuotaStormAbsurd, "quota.storm-absurd"),
    (Fault::QuotaStormRetryAfterZero, "quota.storm-retry-after-zero"),
    (Fault::QuotaStormRetryAfter60, "quota.storm-retry-after-60"),
    (Fault::QuotaStormRetryAfterDate, "quota.storm-retry-after-date"),
    (Fault::QuotaStormRetryAfterGarbage, "quota.storm-retry-after-garbage"),
    (Fault::QuotaStormMinute, "quota.storm-minute"),
];

pub(super) fn faults() -> Vec<Fault> {
    TABLE.iter().map(|(fault, _)| *fault).collect()
}

#[tokio::test(start_paused = true)]
async fn a_quota_fault_refuses_what_it_says_and_the_truth_tells_whose_429_it_was() {
    for &(fault, name) in TABLE {
        assert_eq!(fault.as_str(), name);
        let world = World::with_script(&format!("[[fault]]\nname = '{name}'\nnth = 1"));
        match fault {
            Fault::QuotaForeign => somebody_else_used_the_quota(&world).await,
            Fault::QuotaHalved => limits_are_half(&world).await,
            Fault::QuotaLowered => limits_are_one(&world).await,
            Fault::QuotaStormRetryAfter => refused_without_reason(&world, Some("2")).await,
            Fault::QuotaStormAbsurd => refused_without_reason(&world, Some("999999")).await,
            Fault::QuotaStormRetryAfterZero => refused_without_reason(&world, Some("0")).await,
            Fault::QuotaStormRetryAfter60 => refused_without_reason(&world, Some("60")).await,
            // Two seconds after the start of the world.
            Fault::QuotaStormRetryAfterDate => {
                refused_without_reason(&world, Some("Mon, 21 Sep 2026 14:13:22 GMT")).await;
            }
            Fault::QuotaStormRetryAfterGarbage => refused_without_reason(&world, Some("soon")).await,
            Fault::QuotaStormMinute => a_minute_is_refused(&world).await,
            _ => refused_without_reason(&world, None).await,
        }
        assert_eq!(world.struck(name), 1, "{name}");
    }
}

async fn refused_without_reason(world: &World, retry_after: Option<&str>) {
    let answer = world.list().await;
    assert_eq!(answer.error(), (429, "Too many requests".to_owned()));
    assert_eq!(answer.header("retry-after"), retry_after);
    let truth = world.truth();
    assert_eq!((truth.injected_429s, truth.refusals.len()), (1, 0));
    assert_eq!(admitted(world, ORDERS, 12).await, 10, "nothing was counted");
}

async fn somebody_else_used_the_quota(world: &World) {
    let answer = world.list().await;
    assert_eq!(answer.error(), (429, "Too many requests".to_owned()));
    let truth = world.truth();
    assert_eq!(truth.refusals.get("general"), Some(&1), "the zone refuses it, as it would for real");
    assert_eq!((truth.injected_429s, truth.arrivals[0].zone_refused), (0, Some("general")));
    world.pass(Duration::from_secs(1));
    assert_eq!(admitted(world, ORDERS, 12).await, 10, "the next second is whole");
}

async fn a_minute_is_refused(world: &World) {
    for (seconds, status) in [(0, 429), (1, 429), (58, 429), (1, 200), (1, 200)] {
        world.pass(Duration::from_secs(seconds));
        assert_eq!(world.list().await.status(), status);
    }
    assert_eq!(world.truth().injected_429s, 3);
}

async fn limits_are_half(world: &World) {
    assert_eq!(admitted(world, ORDERS, 12).await, 5);
    assert_eq!(admitted(world, POSITIONS, 102).await, 50, "every zone's");
    assert_eq!(world.truth().refusals.get("general"), Some(&7));
    world.sandbox.heal();
    world.pass(Duration::from_secs(1));
    assert_eq!(admitted(world, ORDERS, 12).await, 5, "from now on: healing stops faults, not their effects");
}

async fn limits_are_one(world: &World) {
    assert_eq!(admitted(world, ORDERS, 12).await, 1);
    world.pass(Duration::from_secs(1));
    assert_eq!(admitted(world, POSITIONS, 3).await, 1, "every zone's");
    assert_eq!(admitted(world, ORDERS, 12).await, 1);
    assert_eq!(world.truth().refusals.get("general"), Some(&22));
}

/// Returns how many of these simultaneous requests are not answered with 429.
async fn admitted(world: &World, path: &str, requests: usize) -> usize {
    let mut admitted = 0;
    for _ in 0..requests {
        admitted += usize::from(world.get(path).send().await.status() != 429);
    }
    admitted
}
