use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use http::Request;
use http_body_util::Full;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use steadfast::{
    Operation,
    auth::{Attempt, Grant, Login, LoginFailure, LoginMode},
    call::{Call, WallClock},
    limit::{Builder, Lane, Zone, ZoneLimiter},
    metrics::{self, Kind, METRICS, MeteredLogin},
};
use steadfast_sandbox::Sandbox;
use tokio::time::{Instant, sleep, timeout};

use crate::world::{SECOND, World, script};

type Key = (String, BTreeMap<String, String>);

/// Returns everything that was recorded; histograms by sum and count.
fn taken(from: &Snapshotter) -> BTreeMap<Key, (Kind, f64, usize)> {
    let entries = from.snapshot().into_vec().into_iter();
    entries
        .map(|(key, _, _, value)| {
            let labels = key.key().labels().map(|l| (l.key().to_owned(), l.value().to_owned())).collect();
            let value = match value {
                DebugValue::Counter(count) => (Kind::Counter, count as f64, 1),
                DebugValue::Gauge(value) => (Kind::Gauge, value.into_inner(), 1),
                DebugValue::Histogram(values) => {
                    (Kind::Histogram, values.iter().map(|value| value.into_inner()).sum(), values.len())
                }
            };
            ((key.key().name().to_owned(), labels), value)
        })
        .collect()
}

fn key<const N: usize>(name: &str, labels: [(&str, &str); N]) -> Key {
    (name.to_owned(), labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into())
}

fn value(taken: &BTreeMap<Key, (Kind, f64, usize)>, key: Key) -> f64 {
    taken.get(&key).unwrap_or_else(|| panic!("no {key:?} in {:#?}", taken.keys())).1
}

#[tokio::test(start_paused = true)]
async fn a_storm_records_nothing_beside_the_catalogue() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _local = ::metrics::set_default_local_recorder(&recorder);
    let world = World::new(
        Sandbox::builder()
            .seed(11)
            .fault("placement.504-applied", 0.3)
            .unwrap()
            .fault("list.401", 0.1)
            .unwrap()
            .fault("quota.storm", 0.1)
            .unwrap(),
    );
    for intent in 0..20 {
        let _ = world.place(&intent.to_string()).await;
        let _ = world.send(&Operation::orders(), None).await;
    }
    metrics::describe();
    metrics::record(&world.stack);

    let recorded = taken(&snapshotter);
    let mut names = BTreeSet::new();
    for ((name, labels), (kind, ..)) in &recorded {
        let metric = METRICS.iter().find(|metric| metric.name == name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(*kind, metric.kind, "{name}");
        assert_eq!(
            labels.keys().map(String::as_str).collect::<BTreeSet<_>>(),
            metric.labels.iter().map(|label| label.key).collect()
        );
        for label in metric.labels {
            assert!(label.values().contains(&labels[label.key].as_str()), "{name} {label:?} {labels:?}");
        }
        names.insert(name.as_str());
    }
    // With given tokens there are no logins. One wait ends without a permit: of a read that could wait, for one that cannot.
    let absent: Vec<_> = METRICS.iter().map(|m| m.name).filter(|name| !names.contains(name)).collect();
    assert_eq!(absent, [metrics::LOGINS], "{names:?}");
    assert!(value(&recorded, key(metrics::RECOVERED, [("confidence", "exact")])) > 0.0);
}

#[tokio::test(start_paused = true)]
async fn a_lost_order_is_told_from_its_send_to_its_end() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _local = ::metrics::set_default_local_recorder(&recorder);
    let world = World::new(script("[[fault]]\nname = 'placement.504-applied'\nnth = 1"));
    assert!(world.place("one").await.unwrap().is_some());
    metrics::record(&world.stack);
    // Again, because recording twice must not count twice.
    metrics::record(&world.stack);

    let taken = taken(&snapshotter);
    let of = |name, labels| value(&taken, key(name, [labels]));
    assert_eq!(of(metrics::AMBIGUOUS, ("cause", "gateway_timeout")), 1.0);
    assert_eq!(of(metrics::RECOVERED, ("confidence", "exact")), 1.0);
    assert_eq!(of(metrics::VERIFICATIONS, ("verdict", "found")), 1.0);
    assert_eq!(of(metrics::VISIBILITY_LAG, ("le", "+Inf")), 1.0);
    assert_eq!(value(&taken, key(metrics::ORDERS_IN_DOUBT, [])), 0.0);
    let calls = &taken[&key(metrics::CALL_DURATION, [("endpoint", "place-order"), ("outcome", "accepted")])];
    let sends = &taken[&key(metrics::ATTEMPT_DURATION, [("endpoint", "place-order"), ("status", "504")])];
    assert_eq!((calls.2, sends.2), (1, 1), "one call, and one send of the order");
    assert!(calls.1 > sends.1, "looking for it takes longer than losing it");
    let lists = &taken[&key(metrics::ATTEMPT_DURATION, [("endpoint", "orders"), ("status", "2xx")])];
    assert!(lists.2 >= 1, "it was looked for");
}

#[tokio::test(start_paused = true)]
async fn repeats_are_counted_by_what_they_follow_whoever_makes_them() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _local = ::metrics::set_default_local_recorder(&recorder);
    let world = World::new(script("[[fault]]\nname = 'list.504'\nendpoint = 'orders'\nnth = 1\ntimes = 2"));
    assert_eq!(world.send(&Operation::orders(), None).await.unwrap().status(), 200);
    let taken = taken(&snapshotter);
    assert_eq!(value(&taken, key(metrics::RETRIES, [("reason", "gateway_timeout")])), 2.0);
    let sends = &taken[&key(metrics::ATTEMPT_DURATION, [("endpoint", "orders"), ("status", "504")])];
    assert_eq!(sends.2, 2);
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_permits_is_recorded_under_its_zone_and_lane() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _local = ::metrics::set_default_local_recorder(&recorder);
    let world = World::new(Sandbox::builder());
    let orders = Operation::orders();
    let polls = (0..25).map(|_| world.send(&orders, None));
    futures_util::future::join_all(polls).await.into_iter().collect::<Result<Vec<_>, _>>().unwrap();
    metrics::record(&world.stack);

    let now = taken(&snapshotter);
    let wait = &now[&key(metrics::PERMIT_WAIT, [("zone", "general"), ("lane", "normal")])];
    assert_eq!(wait.2, 25);
    assert!(wait.1 > 15.0, "ten a second: {} s between them", wait.1);
    let minute = [("zone", "general"), ("window", "60s")];
    assert_eq!(value(&now, key(metrics::ZONE_USED, minute)), 25.0);
    assert_eq!(value(&now, key(metrics::ZONE_FREE, minute)), 375.0);

    // A zone that is no longer used is shown as free, not with its last value.
    tokio::time::sleep(Duration::from_secs(7_200)).await;
    metrics::record(&world.stack);
    assert_eq!(value(&taken(&snapshotter), key(metrics::ZONE_USED, minute)), 0.0);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_ends_without_permits_is_recorded_by_its_end() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _local = ::metrics::set_default_local_recorder(&recorder);
    let one_in_20_s = Builder::preset(ZoneLimiter::builder())
        .adjust(Zone::GENERAL, |quota| quota.clear_limits().limit(1, 20 * SECOND))
        .queue_bound(Lane::Normal, 1)
        .build()
        .unwrap();
    let world = World::with(Sandbox::builder(), |stack| stack.limiter(one_in_20_s));
    let orders = Operation::orders();
    world.send(&orders, None).await.unwrap();

    // One waits and is dropped after 5 s; the next finds its queue full, and one of another lane has no time.
    let waits = timeout(5 * SECOND, world.send(&orders, None));
    let finds_no_room = async {
        sleep(SECOND).await;
        world.send(&orders, None).await.unwrap_err();
        let base = world.sandbox.credentials().base_url;
        let mut late = Request::get(format!("{base}/api/oms/orders")).body(Full::default()).unwrap();
        Call::of_mut(late.extensions_mut()).set_lane(Lane::Critical);
        Call::of_mut(late.extensions_mut()).set_deadline((Instant::now() + SECOND).into_std());
        world.call(late).await.unwrap_err();
    };
    let (waited, ()) = tokio::join!(waits, finds_no_room);
    waited.unwrap_err();

    let taken = taken(&snapshotter);
    let missed = |lane, end| {
        let labels = [("zone", "general"), ("lane", lane), ("end", end)];
        let (_, seconds, count) = taken[&key(metrics::PERMIT_MISSED, labels)];
        (seconds, count)
    };
    assert_eq!(missed("normal", "dropped"), (5.0, 1));
    assert_eq!(missed("normal", "queue_full"), (0.0, 1));
    assert_eq!(missed("critical", "deadline"), (0.0, 1));
    assert_eq!(taken[&key(metrics::PERMIT_WAIT, [("zone", "general"), ("lane", "normal")])].2, 1);
    let missed = taken.keys().filter(|(name, _)| name == metrics::PERMIT_MISSED).count();
    assert_eq!(missed, 3, "{:?}", taken.keys());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_is_recorded_as_dropped() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _local = ::metrics::set_default_local_recorder(&recorder);
    let world = World::new(script("[[fault]]\nname = 'list.504'\nendpoint = 'orders'\nnth = 1\ntimes = 9"));
    let orders = Operation::orders();
    let call = world.send(&orders, None);
    tokio::time::timeout(Duration::from_millis(1_500), call).await.unwrap_err();
    let taken = taken(&snapshotter);
    let call = &taken[&key(metrics::CALL_DURATION, [("endpoint", "orders"), ("outcome", "dropped")])];
    assert_eq!((call.1, call.2), (1.5, 1));
}

type End = fn() -> Result<Grant, LoginFailure>;

/// A login that ends as given.
struct Told(End);

impl Login for Told {
    fn mode(&self) -> LoginMode {
        LoginMode::Unattended
    }

    async fn attempt(&self, _: &Attempt) -> Result<Grant, LoginFailure> {
        (self.0)()
    }
}

#[tokio::test]
async fn logins_are_counted_by_their_results() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _local = ::metrics::set_default_local_recorder(&recorder);
    let ends: [(&str, End); 9] = [
        ("ok", || Ok(Grant::new("canary", std::time::UNIX_EPOCH))),
        ("refused", || Err(LoginFailure::Refused)),
        ("code_refused", || Err(LoginFailure::CodeRefused)),
        ("misconfigured", || Err(LoginFailure::Misconfigured("canary".into()))),
        ("denied", || Err(LoginFailure::Denied("canary".into()))),
        ("rate_limited", || Err(LoginFailure::RateLimited { retry_after: None })),
        ("not_sent", || Err(LoginFailure::NotSent("canary".into()))),
        ("unknown", || Err(LoginFailure::Unknown("canary".into()))),
        ("no_code", || Err(LoginFailure::NoCode("canary".into()))),
    ];
    let attempt = Attempt::new(WallClock::system());
    for (_, end) in ends {
        let _ = MeteredLogin::new(Told(end)).attempt(&attempt).await;
    }
    let taken = taken(&snapshotter);
    for (result, _) in ends {
        assert_eq!(value(&taken, key(metrics::LOGINS, [("result", result)])), 1.0, "{result}");
    }
}

#[tokio::test(start_paused = true)]
async fn several_clients_are_added_up() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _local = ::metrics::set_default_local_recorder(&recorder);
    let fault = "[[fault]]\nname = 'placement.504-applied'\nnth = 1";
    let (one, other) = (World::new(script(fault)), World::new(script(fault)));
    one.place("one").await.unwrap();
    other.place("other").await.unwrap();
    metrics::record_all([&one.stack, &other.stack]);
    let taken = taken(&snapshotter);
    assert_eq!(value(&taken, key(metrics::AMBIGUOUS, [("cause", "gateway_timeout")])), 2.0);
}

#[tokio::test(start_paused = true)]
async fn a_login_and_the_send_after_a_401_are_counted() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _local = ::metrics::set_default_local_recorder(&recorder);
    let world = crate::logging_in("[[fault]]\nname = 'list.401'\nendpoint = 'orders'\nnth = 1");
    assert_eq!(world.send(&Operation::orders(), None).await.unwrap().status(), 200);
    metrics::record(&world.stack);
    let taken = taken(&snapshotter);
    assert_eq!(value(&taken, key(metrics::LOGINS, [("result", "ok")])), 1.0);
    assert_eq!(value(&taken, key(metrics::RETRIES, [("reason", "unauthorized")])), 1.0);
    assert_eq!(value(&taken, key(metrics::TOKEN_USABLE, [])), 1.0);
    assert_eq!(value(&taken, key(metrics::SESSIONS, [])), 1.0);
}
