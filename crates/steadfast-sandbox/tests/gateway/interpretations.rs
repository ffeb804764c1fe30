//! Where the specification is silent or names two answers, a switch chooses; each switch has an
//! effect.

use std::{
    collections::BTreeSet,
    net::IpAddr,
    time::{Duration, UNIX_EPOCH},
};

use http::Method;
use steadfast_sandbox::{
    EleventhSession, IpRefusal, JsonBody, ListOrder, ListScope, LoginAnswer, RetryAfter, Sandbox,
    SandboxBuilder,
    enforce::{GatewayClock, Kind},
};
use steadfast_spec::{Paths, Zone};
use tokio::time::Instant;

use crate::{
    client::Answer,
    world::{LIMIT, MARKET, ORDERS, PLACE_ORDER, POSITIONS, World},
};

fn world(switch: impl FnOnce(SandboxBuilder) -> SandboxBuilder) -> World {
    World::of(switch(Sandbox::builder().seed(7)))
}

/// Returns how many of these orders, sent at once, are admitted.
async fn admitted(world: &World, orders: usize) -> usize {
    let mut admitted = 0;
    for _ in 0..orders {
        admitted += usize::from(world.place(MARKET).await.status() == 200);
    }
    admitted
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_not_a_form_is_a_400_or_a_415() {
    for (choice, status, msg) in [
        (JsonBody::BadRequest, 400, "Bad request"),
        (JsonBody::UnsupportedMediaType, 415, "Unsupported media type"),
    ] {
        let world = world(|builder| builder.json_body(choice));
        let answer = world.call(Method::POST, PLACE_ORDER).send().await;
        assert_eq!(answer.error(), (status, msg.to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_off_the_whitelist_is_a_401_or_a_403() {
    let [home, elsewhere] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
    for (choice, status) in [(IpRefusal::Unauthorized, 401), (IpRefusal::Forbidden, 403)] {
        let world = world(|builder| builder.ip_refusal(choice).whitelist([home]));
        assert_eq!(world.get(ORDERS).peer(elsewhere).send().await.error().0, status);
        assert_eq!(world.get(ORDERS).peer(home).send().await.status(), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn the_eleventh_session_evicts_the_oldest_or_is_refused() {
    for (choice, oldest, eleventh) in
        [(EleventhSession::EvictOldest, 401, 200), (EleventhSession::Refuse, 200, 403)]
    {
        let world = world(|builder| builder.eleventh_session(choice));
        world.log_in(9).await;
        assert_eq!(world.list().await.status(), 200, "ten sessions stand beside each other");
        world.pass(Duration::from_secs(30));
        assert_eq!(world.login().send().await.status(), eleventh, "{choice:?}");
        assert_eq!(world.list().await.status(), oldest, "{choice:?}");
        assert_eq!(world.truth().logins.active_sessions, 11, "ten of the first user, one of the second");
    }
}

#[tokio::test(start_paused = true)]
async fn the_order_list_is_the_login_sessions_or_the_users() {
    for (choice, listed) in [(ListScope::LoginSession, 1), (ListScope::User, 2)] {
        let world = world(|builder| builder.list_scope(choice));
        world.place(MARKET).await;
        let second = world.log_in(1).await;
        let with_second = |call: crate::client::Call| call.bearer(&world.user.api_key, &second);
        with_second(world.post(PLACE_ORDER, LIMIT)).send().await;
        let list = with_second(world.get(ORDERS)).send().await.records();
        assert_eq!(list.len(), listed, "{choice:?}");
        let history = with_second(world.get("/api/oms/history")).send().await.records();
        assert_eq!(history.len(), 2, "the history is the user's");
        let foreign = world.get(ORDERS).bearer(&world.other.api_key, &world.other.access_token).send().await;
        assert!(foreign.records().is_empty(), "and no list is another user's");
    }
}

#[tokio::test(start_paused = true)]
async fn the_order_list_is_oldest_first_newest_first_or_shuffled() {
    let reads = async |choice: ListOrder| {
        let world = world(|builder| builder.list_order(choice));
        let mut placed = Vec::new();
        for _ in 0..8 {
            placed.push(world.place(MARKET).await.order_id());
        }
        let mut reads = Vec::new();
        for _ in 0..5 {
            let ids = world.records().await;
            reads.push(
                ids.iter().map(|r| r["orderId"].as_str().expect("an id").to_owned()).collect::<Vec<_>>(),
            );
        }
        (placed, reads)
    };
    let (placed, oldest) = reads(ListOrder::OldestFirst).await;
    assert!(oldest.iter().all(|read| *read == placed));
    let (placed, newest) = reads(ListOrder::NewestFirst).await;
    let backwards: Vec<String> = placed.into_iter().rev().collect();
    assert!(newest.iter().all(|read| *read == backwards));
    let (placed, shuffled) = reads(ListOrder::Shuffled).await;
    let set = |ids: &[String]| ids.iter().cloned().collect::<BTreeSet<_>>();
    assert!(shuffled.iter().all(|read| read.len() == 8 && set(read) == set(&placed)));
    assert!(shuffled.iter().collect::<BTreeSet<_>>().len() >= 4, "each read has an order of its own");
}

#[tokio::test(start_paused = true)]
async fn a_429_says_when_to_come_back_or_not_or_nonsense() {
    for (choice, header) in
        [(RetryAfter::Absent, None), (RetryAfter::Seconds, Some("1")), (RetryAfter::Absurd, Some("999999"))]
    {
        let world = world(|builder| builder.retry_after(choice));
        assert_eq!(admitted(&world, 10).await, 10);
        world.pass(Duration::from_millis(300));
        let refused = world.place(MARKET).await;
        assert_eq!((refused.status(), refused.header("retry-after")), (429, header), "{choice:?}");
    }
    // The minute's limit is exhausted: 40 seconds of 60 have passed.
    let world = world(|builder| builder.retry_after(RetryAfter::Seconds));
    for _ in 0..400 {
        world.list().await;
        world.pass(Duration::from_millis(100));
    }
    let refused = world.list().await;
    assert_eq!((refused.status(), refused.header("retry-after")), (429, Some("20")));
    world.pass(Duration::from_secs(20));
    assert_eq!(world.list().await.status(), 200, "and it is true");
}

#[tokio::test(start_paused = true)]
async fn a_login_is_answered_with_the_bare_record_or_an_envelope() {
    let bare = world(|builder| builder.login_answer(LoginAnswer::Bare)).login().send().await.json();
    let enveloped = world(|builder| builder.login_answer(LoginAnswer::Enveloped)).login().send().await.json();
    assert_eq!(enveloped["s"], "ok");
    for record in [&bare, &enveloped["d"]] {
        assert!(record["access_token"].as_str().is_some_and(|token| token.len() >= 20), "{record}");
        assert_eq!((&record["token_type"], &record["scope"]), (&"bearer".into(), &"general".into()));
        assert_eq!(record["expires_in"], 86_400);
    }
}

#[tokio::test(start_paused = true)]
async fn an_authenticators_code_may_be_off_by_the_window_and_no_more() {
    for (window, good) in [(0, 0), (1, 1), (2, 2)] {
        for steps in 0..=3 {
            // The authenticator's clock is behind the gateway's, or ahead of it.
            let [slow, fast] = [0, 1].map(|_| world(|builder| builder.totp_window(window)));
            let early = slow.sandbox.totp_now();
            slow.pass(Duration::from_secs(30 * steps));
            for (world, code) in [(&fast, slow.sandbox.totp_now()), (&slow, early)] {
                let status = world.login_with(&code, "totp").send().await.status();
                assert_eq!(status == 200, steps <= good, "window {window}, {steps} steps off: {status}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_account_is_locked_after_so_many_failures_or_never() {
    for (limit, failures, status) in [(None, 20, 200), (Some(3), 2, 200), (Some(3), 3, 401)] {
        let world = world(|builder| match limit {
            Some(limit) => builder.lock_out_after(limit),
            None => builder,
        });
        for _ in 0..failures {
            world.pass(Duration::from_secs(1));
            assert_eq!(world.login_with("000000", "totp").send().await.status(), 401);
        }
        world.pass(Duration::from_secs(30));
        let answer = world.login().send().await;
        assert_eq!(answer.status(), status, "{limit:?} after {failures}");
    }
    // A success resets the count.
    let world = world(|builder| builder.lock_out_after(3));
    for _ in 0..4 {
        for _ in 0..2 {
            world.pass(Duration::from_secs(1));
            world.login_with("000000", "totp").send().await;
        }
        world.log_in(1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_gateways_patience_is_how_long_a_504_takes() {
    for patience in [Duration::ZERO, Duration::from_secs(30)] {
        let world = world(|builder| {
            builder.gateway_timeout(patience).fault("placement.504-applied", 1.0).expect("a fault")
        });
        let sent = Instant::now();
        assert_eq!(world.place(MARKET).await.status(), 504);
        assert_eq!(sent.elapsed(), patience);
    }
}

#[tokio::test(start_paused = true)]
async fn late_orders_and_stale_lists_are_as_late_and_stale_as_asked() {
    let second = Duration::from_secs(1);
    let world = world(|builder| {
        let builder = builder.late_by(20 * second, 20 * second).stale_by(10 * second);
        builder
            .script("[[fault]]\nname = 'placement.500-late'\nnth = 1\n[[fault]]\nname = 'list.stale'")
            .expect("a script")
    });
    world.place(MARKET).await;
    world.pass(19 * second);
    assert_eq!(world.orders(), 0);
    world.pass(second);
    assert_eq!(world.orders(), 1);
    world.pass(9 * second);
    assert!(world.records().await.is_empty());
    world.pass(second);
    assert_eq!(world.records().await.len(), 1);
    assert!(Sandbox::builder().late_by(2 * second, second).build().is_err(), "the least exceeds the most");
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_counts_late_lets_a_burst_through_and_pays_for_it_later() {
    let punctual = world(|builder| builder);
    assert_eq!(admitted(&punctual, 30).await, 10);
    let lagging = world(|builder| builder.accounting_lag(Duration::from_millis(500)));
    assert_eq!(admitted(&lagging, 30).await, 30);
    lagging.pass(Duration::from_millis(500));
    assert_eq!(admitted(&lagging, 5).await, 0);
    // A request counted at half a second is forgotten at one and a half.
    lagging.pass(Duration::from_millis(999));
    assert_eq!(admitted(&lagging, 1).await, 0);
    lagging.pass(Duration::from_millis(1));
    assert_eq!(admitted(&lagging, 1).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_gateway_with_jitter_counts_requests_where_they_did_not_arrive() {
    // One order in each tenth of a second is exactly the limit.
    let send = async |jitter: Duration| {
        let world = world(|builder| builder.accounting_jitter(jitter));
        let mut refused = 0;
        for _ in 0..300 {
            refused += usize::from(world.place(MARKET).await.status() == 429);
            world.pass(Duration::from_millis(100));
        }
        (refused, world.truth().arrivals)
    };
    let (refused, arrivals) = send(Duration::ZERO).await;
    assert_eq!(refused, 0);
    assert!(arrivals.iter().all(|arrival| arrival.accounted_ns == arrival.at_ns));
    let (refused, arrivals) = send(Duration::from_millis(300)).await;
    assert!(refused > 0, "bunching");
    let late = |arrival: &steadfast_sandbox::ArrivalTruth| arrival.accounted_ns - arrival.at_ns;
    assert!(arrivals.iter().all(|arrival| late(arrival) <= 300_000_000));
    assert!(arrivals.iter().map(late).collect::<BTreeSet<_>>().len() > 200, "each has a delay of its own");
}

#[tokio::test(start_paused = true)]
async fn the_quota_clock_decides_where_windows_begin_and_how_long_they_are() {
    // A window of the gateway's wall clock that is 700 ms old at the start ends 300 ms later.
    for (epoch_ms, wait_ms) in [(0, 1_000), (700, 300), (999, 1)] {
        let world = world(|builder| {
            builder
                .enforcer(Zone::PLACE_ORDER, Kind::WholeSecond)
                .quota_clock(GatewayClock::new().epoch(Duration::from_millis(epoch_ms)))
        });
        assert_eq!(admitted(&world, 12).await, 10);
        world.pass(Duration::from_millis(wait_ms - 1));
        assert_eq!(admitted(&world, 1).await, 0, "{epoch_ms}");
        world.pass(Duration::from_millis(1));
        assert_eq!(admitted(&world, 12).await, 10, "{epoch_ms}");
    }
    // A fast clock forgets after less than a true second, a slow one after more.
    for (ppm, after_ns, admits) in
        [(500, 999_500_251, 10), (500, 999_500_249, 0), (-500, 1_000_000_000, 0), (-500, 1_000_500_251, 10)]
    {
        let world = world(|builder| builder.quota_clock(GatewayClock::new().drift_ppm(ppm)));
        assert_eq!(admitted(&world, 12).await, 10);
        world.pass(Duration::from_nanos(after_ns));
        assert_eq!(admitted(&world, 12).await, admits, "{ppm} ppm after {after_ns} ns");
    }
}

#[tokio::test(start_paused = true)]
async fn every_way_of_counting_is_switched_for_one_zone_and_leaves_the_others() {
    // Two bursts of fifteen, 600 ms apart; the number admitted in the second differs for each kind.
    let mut seen = BTreeSet::new();
    for kind in Kind::ALL {
        let world = world(|builder| builder.enforcer(Zone::PLACE_ORDER, kind));
        world.pass(Duration::from_millis(800));
        let first = admitted(&world, 15).await;
        world.pass(Duration::from_millis(600));
        seen.insert((first, admitted(&world, 15).await));
        let mut lists = 0;
        for _ in 0..12 {
            lists += usize::from(world.list().await.status() == 200);
        }
        assert_eq!(lists, 10, "{kind}");
    }
    assert!(seen.len() >= 5, "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn paths_that_are_not_shown_are_where_they_are_put_or_nowhere() {
    let mut paths = Paths::default();
    paths.positions = Some("/somewhere/positions".to_owned());
    let world = world(|builder| builder.paths(paths));
    assert_eq!(world.get("/somewhere/positions").send().await.status(), 200);
    assert_eq!(world.get(POSITIONS).send().await.error(), (404, "Resource not found".to_owned()));
    assert_eq!(world.list().await.status(), 200, "the paths that are shown stay");
}

#[tokio::test(start_paused = true)]
async fn the_seed_decides_secrets_and_fills_and_the_wall_clock_dates() {
    let run = async |seed: u64, start: u64| {
        let start = UNIX_EPOCH + Duration::from_secs(start);
        let builder = Sandbox::builder().seed(seed).wall_clock(start);
        let sandbox = builder.build().expect("a sandbox");
        let credentials = sandbox.credentials();
        let call = |path: &str| {
            let call = crate::client::Call::new(sandbox.gateway(), Method::POST, path);
            call.bearer(&credentials.api_key, &credentials.access_token)
        };
        let mut date = String::new();
        for _ in 0..20 {
            let answer: Answer = call(PLACE_ORDER).form(LIMIT).send().await;
            date = answer.header("date").expect("a date").to_owned();
            sandbox.advance(Duration::from_millis(200));
        }
        sandbox.advance(Duration::from_secs(60));
        let fills: Vec<&str> = sandbox.state().orders.iter().map(|order| order.status).collect();
        (credentials.access_token.clone(), fills, date)
    };
    let (first, same, other) =
        (run(1, 1_790_000_000).await, run(1, 1_790_000_000).await, run(2, 1_790_000_000).await);
    assert_eq!(first, same);
    assert!(first.0 != other.0 && first.1 != other.1);
    assert!(first.1.contains(&"open") && first.1.contains(&"completed"), "half of what rests is filled");
    assert_ne!(run(1, 1_790_086_400).await.2, first.2);
}
