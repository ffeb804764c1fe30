use std::{sync::Arc, time::Duration};

use redis::cmd;
use steadfast_limit::{Account, Answer, Ceilings, Lane, Profile, Quota, SECOND, Scope, Zone, ZoneLimiter};
use steadfast_redis::{NotGranted, Rule, Shared, SharedPermit, SharedZone, StoreError, Unfit};
use steadfast_sandbox::enforce::{Enforcer, Kind, Window, decide};
use tokio::time::{Instant, sleep, timeout_at};

use crate::server::Server;

const MS: Duration = Duration::from_millis(1);
const KEY: &str = "{sf:SB0001}:general:gateway";

/// Ten a second, with reserves.
fn rule(profile: Profile) -> Rule {
    let quota = Quota::new(Zone::GENERAL, Scope::AuthToken).limit(10, SECOND);
    let quota = quota.ceilings(Ceilings::standard()).profile(profile);
    Rule::new(&ZoneLimiter::builder().zone(quota).build().unwrap().settings()[0])
}

/// Regression: the address was printed, and the store's password with it.
#[test]
fn what_connects_to_a_store_shows_no_password() {
    let connect = Shared::connect("rediss://user:canary@store.example", &Account::new("SB0001"));
    for shown in [format!("{connect:?}"), format!("{:?}", connect.root_certificates("canary"))] {
        assert!(shown.contains("Connect") && !shown.contains("canary"), "{shown}");
    }
}

/// A process of the account, as far as the store can tell.
async fn process(server: &Server, profile: Profile) -> SharedZone {
    let shared = Shared::connect(&server.url(), &Account::new("SB0001")).await.unwrap();
    shared.has_new_token();
    shared.zone("gateway", rule(profile))
}

fn soon() -> Option<Instant> {
    Some(Instant::now() + 200 * MS)
}

/// Waits until the store has as many requests of the zone as this.
async fn holds(server: &Server, expected: usize) {
    let mut connection = server.connection().await;
    for _ in 0..300 {
        let mut count = cmd("ZCOUNT");
        let count: usize = count.arg(KEY).arg("(0").arg("+inf").query_async(&mut connection).await.unwrap();
        if count == expected {
            return;
        }
        sleep(10 * MS).await;
    }
    panic!("the store does not come to hold {expected} requests");
}

#[tokio::test]
async fn four_clients_fill_the_windows_and_no_gateway_refuses() {
    for (profile, kind, least) in [
        (Profile::WindowLog, Kind::SlidingLog, 33),
        (Profile::Universal, Kind::SlidingCounter { phase: 370 * MS }, 26),
    ] {
        let Some(server) = Server::start().await else { return };
        let gateway = Arc::new(std::sync::Mutex::new(Enforcer::new(kind, Window::new(10, SECOND).unwrap())));
        let began = Instant::now();
        let mut tasks = Vec::new();
        for _ in 0..4 {
            let zone = process(&server, profile).await;
            for _ in 0..4 {
                let (zone, gateway) = (zone.clone(), Arc::clone(&gateway));
                tasks.push(tokio::spawn(async move {
                    let (mut accepted, mut refused) = (0, 0);
                    while began.elapsed() < 4 * SECOND {
                        let mut permit = zone.acquire(Lane::Critical, None).await.unwrap();
                        permit.sent();
                        sleep(5 * MS).await;
                        let decision = decide(&mut [&mut gateway.lock().unwrap()], began.elapsed());
                        sleep(5 * MS).await;
                        permit.settle();
                        *(if decision.is_ok() { &mut accepted } else { &mut refused }) += 1;
                    }
                    (accepted, refused)
                }));
            }
        }
        let (mut accepted, mut refused) = (0, 0);
        for task in tasks {
            let (its_accepted, its_refused) = task.await.unwrap();
            accepted += its_accepted;
            refused += its_refused;
        }
        let stats: String =
            cmd("INFO").arg("commandstats").query_async(&mut server.connection().await).await.unwrap();
        let calls = stats.lines().find(|line| line.contains("evalsha")).unwrap();
        println!("{profile:?}: {accepted} accepted, {refused} refused; {calls}");
        assert_eq!(refused, 0, "{profile:?}");
        assert!(accepted >= least, "{profile:?}: {accepted}");
    }
}

#[tokio::test]
async fn a_permit_that_is_dropped_unsent_is_given_back() {
    let Some(server) = Server::start().await else { return };
    let zone = process(&server, Profile::WindowLog).await;
    let permits: Vec<_> = futures(10, || async { zone.acquire(Lane::Critical, None).await.unwrap() }).await;
    holds(&server, 10).await;
    assert!(matches!(zone.acquire(Lane::Critical, soon()).await, Err(NotGranted::WouldMissDeadline { .. })));
    drop(permits);
    holds(&server, 0).await;
    let mut sent = zone.acquire(Lane::Critical, soon()).await.unwrap();
    sent.sent();
    drop(sent);
    sleep(50 * MS).await;
    holds(&server, 1).await;
}

#[tokio::test]
async fn a_request_that_is_not_polled_holds_nobody_up_that_waits_behind_it() {
    let Some(server) = Server::start().await else { return };
    let zone = process(&server, Profile::WindowLog).await;
    let first = futures(9, || async { zone.acquire(Lane::Trading, soon()).await.unwrap() }).await;
    let mut unpolled = Box::pin(zone.acquire(Lane::Trading, None));
    assert!(timeout_at(Instant::now() + 50 * MS, &mut unpolled).await.is_err());
    first.into_iter().for_each(SharedPermit::settle);
    let behind = zone.acquire(Lane::Trading, Some(Instant::now() + 3 * SECOND)).await;
    behind.unwrap().refund();
    unpolled.await.unwrap().refund();
}

#[tokio::test]
async fn a_request_that_gives_up_leaves_no_place_in_the_store() {
    let Some(server) = Server::start().await else { return };
    let zone = process(&server, Profile::WindowLog).await;
    let first = futures(9, || async { zone.acquire(Lane::Trading, soon()).await.unwrap() }).await;
    for _ in 0..3 {
        assert!(timeout_at(Instant::now() + 50 * MS, zone.acquire(Lane::Trading, None)).await.is_err());
    }
    first.into_iter().for_each(SharedPermit::refund);
    holds(&server, 0).await;
    let mut connection = server.connection().await;
    let waiters: usize = cmd("ZCOUNT")
        .arg(KEY)
        .arg("(-4503599627370496")
        .arg("(0")
        .query_async(&mut connection)
        .await
        .unwrap();
    assert_eq!(waiters, 0);
}

#[tokio::test]
async fn a_store_that_is_silent_twice_ends_no_wait_if_it_has_answered_meanwhile() {
    let Some(server) = Server::start().await else { return };
    let zone = process(&server, Profile::WindowLog).await;
    let first = futures(9, || async { zone.acquire(Lane::Trading, soon()).await.unwrap() }).await;
    let waits =
        tokio::spawn(async move { zone.acquire(Lane::Trading, None).await.map(SharedPermit::refund) });
    for goes_on_for in [10, 1] {
        sleep(200 * MS).await;
        server.stop(true);
        sleep(5 * SECOND / 2).await;
        server.stop(false);
        sleep(goes_on_for * SECOND).await;
    }
    assert!(!waits.is_finished());
    first.into_iter().for_each(SharedPermit::refund);
    timeout_at(Instant::now() + 5 * SECOND, waits).await.unwrap().unwrap().unwrap();
}

/// Awaits as many of them, one by one.
async fn futures<T, F: Future<Output = T>>(count: usize, each: impl Fn() -> F) -> Vec<T> {
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(each().await);
    }
    all
}

#[tokio::test]
async fn a_store_that_starts_again_counts_as_full_except_for_cancels() {
    let Some(mut server) = Server::start().await else { return };
    let zone = process(&server, Profile::WindowLog).await;
    let permit = zone.acquire(Lane::Bulk, soon()).await.unwrap();
    permit.settle();
    server.restart().await;
    // Another process has no new token: it cannot know that nothing was counted.
    let shared = Shared::connect(&server.url(), &Account::new("SB0001")).await.unwrap();
    let other = shared.zone("gateway", rule(Profile::WindowLog));
    let refused = other.acquire(Lane::Trading, soon()).await;
    let Err(NotGranted::WouldMissDeadline { earliest }) = refused else { panic!("{refused:?}") };
    assert!(earliest > 30 * SECOND, "{earliest:?}");
    // The first process meets another run with a connection that has broken.
    let mut cancel = zone.acquire(Lane::Critical, Some(Instant::now() + 5 * SECOND)).await.unwrap();
    cancel.sent();
    cancel.settle();
}

/// The process that made the token used to say so for ever, and an emptied store counted as empty windows.
#[tokio::test]
async fn a_store_that_is_emptied_later_counts_as_full_for_those_who_made_the_token_too() {
    let Some(server) = Server::start().await else { return };
    let zone = process(&server, Profile::WindowLog).await;
    zone.acquire(Lane::Trading, soon()).await.unwrap().settle();
    () = cmd("FLUSHALL").query_async(&mut server.connection().await).await.unwrap();
    let refused = zone.acquire(Lane::Trading, soon()).await;
    let Err(NotGranted::WouldMissDeadline { earliest }) = refused else { panic!("{refused:?}") };
    assert!(earliest > 30 * SECOND, "{earliest:?}");
}

/// Each try used to leave a call for the store to hear later, twenty a second for each request that waited.
#[tokio::test]
async fn a_store_that_comes_back_is_not_told_of_what_it_was_never_asked() {
    let Some(mut server) = Server::start().await else { return };
    let zone = process(&server, Profile::WindowLog).await;
    zone.acquire(Lane::Trading, soon()).await.unwrap().refund();
    holds(&server, 0).await;
    server.end();
    let waiting: Vec<_> = (0..20)
        .map(|_| {
            let zone = zone.clone();
            tokio::spawn(
                async move { zone.acquire(Lane::Trading, Some(Instant::now() + SECOND)).await.is_err() },
            )
        })
        .collect();
    for refused in waiting {
        assert!(refused.await.unwrap());
    }
    server.restart().await;
    zone.acquire(Lane::Critical, Some(Instant::now() + 5 * SECOND)).await.unwrap().settle();
    holds(&server, 1).await;
    let stats: String =
        cmd("INFO").arg("commandstats").query_async(&mut server.connection().await).await.unwrap();
    let told = stats.lines().find_map(|line| line.strip_prefix("cmdstat_zrem:calls=")?.split(',').next());
    // Those of the scripts, and of calls that were on their way at the end.
    let told: u32 = told.map_or(0, |told| told.parse().unwrap());
    assert!(told <= 30, "{told}");
}

/// Each account used to have a count of its own in zones that count by address (§8, OTP).
#[tokio::test]
async fn accounts_behind_one_address_are_counted_together_where_the_service_counts_addresses() {
    let Some(server) = Server::start().await else { return };
    let otp = Quota::new(Zone::OTP, Scope::ClientIp).limit(3, SECOND).profile(Profile::WindowLog);
    let rule = Rule::new(&ZoneLimiter::builder().zone(otp).build().unwrap().settings()[0]);
    let zone = async |account: &str| {
        let shared = Shared::connect(&server.url(), &Account::new(account)).await.unwrap();
        shared.zone("gateway", rule.clone())
    };
    let (one, other) = (zone("SB0001").await, zone("SB0002").await);
    // The store knows nothing of the address, so it lets one login of a second through.
    one.acquire(Lane::Critical, soon()).await.unwrap().settle();
    let refused = other.acquire(Lane::Critical, soon()).await;
    assert!(matches!(refused, Err(NotGranted::WouldMissDeadline { .. })), "{refused:?}");
}

/// A slot of the first zone used to run out while the second one was waited for, and the request left without it.
#[tokio::test]
async fn a_slot_that_runs_out_while_another_zone_is_waited_for_is_asked_for_again() {
    const QUICK: Zone = Zone::new("quick");
    const SLOW: Zone = Zone::new("slow");
    let Some(server) = Server::start().await else { return };
    let process = async || {
        let shared = Shared::connect(&server.url(), &Account::new("SB0001")).await.unwrap();
        shared.has_new_token();
        let quota =
            |zone, period| Quota::new(zone, Scope::AuthToken).limit(1, period).profile(Profile::WindowLog);
        let builder = ZoneLimiter::builder().zone(quota(QUICK, SECOND)).zone(quota(SLOW, 6 * SECOND));
        builder.count_with(Arc::new(shared)).build().unwrap()
    };
    let (one, other) = (process().await, process().await);
    let account = Account::new("SB0001");
    let mut before = other.acquire(&[SLOW], other.keys("gateway", &account), Lane::Trading).await.unwrap();
    before.sent();
    before.settle(Answer::Accepted);
    let both = one.acquire(&[QUICK, SLOW], one.keys("gateway", &account), Lane::Trading);
    let mut both = both.await.unwrap();
    both.sent();
    let mut connection = server.connection().await;
    let key: Vec<String> = cmd("KEYS").arg("*:quick:*").query_async(&mut connection).await.unwrap();
    let mut last = cmd("ZRANGE");
    last.arg(&key[0]).arg(-1).arg(-1).arg("WITHSCORES");
    let last: Vec<String> = last.query_async(&mut connection).await.unwrap();
    let (now, _): (f64, f64) = cmd("TIME").query_async(&mut connection).await.unwrap();
    let left = last[1].parse::<f64>().unwrap() / 1e6 - now;
    assert!(left > 123.0, "its slot in the first zone is {left} s old");
}

/// The store used to assume half a minute, however long a request that was given up may arrive.
#[tokio::test]
async fn a_dead_processs_request_counts_for_as_long_as_its_limiter_says_that_it_may_arrive() {
    let Some(server) = Server::start().await else { return };
    let shared = Shared::connect(&server.url(), &Account::new("SB0001")).await.unwrap();
    shared.has_new_token();
    let builder = ZoneLimiter::builder().preset().arrives_within(45 * SECOND);
    let limiter = builder.count_with(Arc::new(shared)).build().unwrap();
    let keys = limiter.keys("gateway", &Account::new("SB0001"));
    let mut permit = limiter.acquire(&[Zone::PLACE_ORDER], keys, Lane::Trading).await.unwrap();
    permit.sent();
    let mut connection = server.connection().await;
    let key: Vec<String> = cmd("KEYS").arg("*place*").query_async(&mut connection).await.unwrap();
    let mut last = cmd("ZRANGE");
    last.arg(&key[0]).arg(-1).arg(-1).arg("WITHSCORES");
    let last: Vec<String> = last.query_async(&mut connection).await.unwrap();
    let (now, _): (f64, f64) = cmd("TIME").query_async(&mut connection).await.unwrap();
    let left = last[1].parse::<f64>().unwrap() / 1e6 - now;
    // Beside the time for which a permit may be held.
    assert!(left > 48.0 && left < 52.0, "{left} s");
}

/// Regression: a key's clock stood still from a process's death until the next one asked, so its requests seemed as old
/// then as when it died.
#[tokio::test]
async fn requests_of_a_dead_process_age_while_the_next_one_asks_for_nothing() {
    let Some(server) = Server::start().await else { return };
    let process = async || {
        let shared = Shared::connect(&server.url(), &Account::new("SB0001")).await.unwrap();
        shared.has_new_token();
        let quota = Quota::new(Zone::PLACE_ORDER, Scope::AuthToken).limit(1, SECOND);
        let builder = ZoneLimiter::builder().zone(quota.profile(Profile::WindowLog));
        builder.arrives_within(Duration::ZERO).count_with(Arc::new(shared)).build().unwrap()
    };
    let (dies, stands_by) = (process().await, process().await);
    let keys = stands_by.keys("gateway", &Account::new("SB0001"));
    stands_by.expect(keys);
    let mut last = dies.acquire(&[Zone::PLACE_ORDER], keys, Lane::Trading).await.unwrap();
    let left = Instant::now();
    last.sent();
    drop((last, dies));
    sleep(5 * SECOND).await;
    stands_by.acquire(&[Zone::PLACE_ORDER], keys, Lane::Trading).await.unwrap().settle(Answer::Accepted);
    // It may have been held for 5 s, and fills the window for one more.
    let waited = left.elapsed();
    assert!(waited > 6 * SECOND, "{waited:?}");
    assert!(waited < 8 * SECOND, "{waited:?}");
}

/// Regression: what tells of answers ended with the runtime that had connected, and so did what keeps a slot lent.
#[test]
fn answers_are_told_and_slots_lent_after_the_runtime_that_connected_has_ended() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    let Some(server) = first.block_on(Server::start()) else { return };
    let zone = first.block_on(async {
        let zone = sharing_process(&server, "gateway").await;
        lends(&server, 1).await;
        zone
    });
    drop(first);
    runtime().block_on(async {
        for _ in 0..5 {
            zone.acquire(Lane::Critical, Some(Instant::now() + 5 * SECOND)).await.unwrap().refund();
        }
        // A new slot beside the old one, which no process uses and the store counts until it has run out.
        lends(&server, 2).await;
        holds(&server, 2).await;
    });
}

#[tokio::test]
async fn a_request_whose_reply_is_lost_is_given_back_and_asked_for_again() {
    let Some(server) = Server::start().await else { return };
    let zone = process(&server, Profile::WindowLog).await;
    zone.acquire(Lane::Trading, soon()).await.unwrap().refund();
    holds(&server, 0).await;
    // The server keeps the call, and executes it after its caller has given it up.
    () = cmd("CLIENT").arg("PAUSE").arg(1_300).query_async(&mut server.connection().await).await.unwrap();
    let mut permit = zone.acquire(Lane::Trading, Some(Instant::now() + 4 * SECOND)).await.unwrap();
    permit.sent();
    holds(&server, 1).await;
}

#[tokio::test]
async fn without_the_store_nothing_is_granted_and_its_name_is_told() {
    let Some(server) = Server::start().await else { return };
    let zone = process(&server, Profile::WindowLog).await;
    zone.acquire(Lane::Trading, soon()).await.unwrap().refund();
    server.stop(true);
    let refused = zone.acquire(Lane::Critical, soon()).await;
    server.stop(false);
    let Err(NotGranted::Store(StoreError::Unreachable { store, .. })) = refused else {
        panic!("{refused:?}")
    };
    assert!(server.url().contains(&*store), "{store}");
    // It goes on by itself.
    zone.acquire(Lane::Critical, Some(Instant::now() + 5 * SECOND)).await.unwrap().refund();
}

/// Sets the store's clock, as far as the key can tell.
async fn set_clock(server: &Server, by: i64) {
    const HALF_AND_BASE: i64 = (1 << 52) + (1 << 51);
    let mut connection = server.connection().await;
    let mut score = cmd("ZSCORE");
    let score: Option<f64> = score.arg(KEY).arg("offset").query_async(&mut connection).await.unwrap();
    let score = score.map_or(-HALF_AND_BASE, |score| score as i64) - by * 1_000_000;
    () = cmd("ZADD").arg(KEY).arg(score).arg("offset").query_async(&mut connection).await.unwrap();
}

/// A process that started after a step forward used to count the windows as empty, and a step back to stop them all.
#[tokio::test]
async fn a_store_whose_clock_is_set_gives_no_slot_twice_and_goes_on() {
    let Some(server) = Server::start().await else { return };
    let before = process(&server, Profile::WindowLog).await;
    for by in [3_600, -3_600, 90, -7_200] {
        let ten = futures(10, || async {
            before.acquire(Lane::Critical, Some(Instant::now() + 5 * SECOND)).await.unwrap()
        })
        .await;
        ten.into_iter().for_each(steadfast_redis::SharedPermit::settle);
        let answered = Instant::now();
        sleep(100 * MS).await;
        set_clock(&server, by).await;
        // One that starts, and one that was there.
        let after = process(&server, Profile::WindowLog).await;
        for zone in [&after, &before] {
            let refused = zone.acquire(Lane::Critical, soon()).await;
            assert!(matches!(refused, Err(NotGranted::WouldMissDeadline { .. })), "{by} s: {refused:?}");
        }
        after.acquire(Lane::Critical, Some(answered + 3 * SECOND)).await.unwrap().refund();
        assert!(answered.elapsed() > SECOND, "{by} s: {:?}", answered.elapsed());
        sleep(1_200 * MS).await;
    }
}

/// Waits until the store has lent so many slots.
async fn lends(server: &Server, expected: usize) {
    let mut connection = server.connection().await;
    for _ in 0..500 {
        let (now, _): (u64, u64) = cmd("TIME").query_async(&mut connection).await.unwrap();
        let mut count = cmd("ZCOUNT");
        let far = (now + 600) * 1_000_000;
        let count: usize = count.arg(KEY).arg(far).arg("+inf").query_async(&mut connection).await.unwrap();
        if count == expected {
            return;
        }
        sleep(10 * MS).await;
    }
    panic!("the store does not come to lend {expected} slots");
}

/// A process of the account with a slot of its own, once the store has lent it.
async fn sharing_process(server: &Server, gateway: &str) -> SharedZone {
    let shared = Shared::connect(&server.url(), &Account::new("SB0001")).await.unwrap();
    shared.has_new_token();
    let zone = shared.zone(gateway, rule(Profile::WindowLog).emergency_share());
    zone.acquire(Lane::Critical, Some(Instant::now() + 5 * SECOND)).await.unwrap().refund();
    zone
}

#[tokio::test]
async fn without_the_store_cancels_leave_by_the_slot_that_is_lent_to_their_process() {
    let Some(server) = Server::start().await else { return };
    let zone = sharing_process(&server, "gateway").await;
    lends(&server, 1).await;
    server.stop(true);
    let began = Instant::now();
    let mut cancel = zone.acquire(Lane::Critical, Some(began + 5 * SECOND)).await.unwrap();
    assert!(began.elapsed() < 500 * MS, "{:?}", began.elapsed());
    assert!(cancel.is_usable());
    cancel.sent();
    cancel.settle();
    // One a second, and nothing else.
    assert!(matches!(zone.acquire(Lane::Critical, soon()).await, Err(NotGranted::Store(_))));
    assert!(matches!(zone.acquire(Lane::Trading, soon()).await, Err(NotGranted::Store(_))));
    let mut next = zone.acquire(Lane::Critical, Some(Instant::now() + 3 * SECOND)).await.unwrap();
    assert!(began.elapsed() > SECOND, "{:?}", began.elapsed());
    next.sent();
    drop(next);
    assert!(
        matches!(zone.acquire(Lane::Critical, soon()).await, Err(NotGranted::Store(_))),
        "it has no answer"
    );
    server.stop(false);
    zone.acquire(Lane::Critical, Some(Instant::now() + 5 * SECOND)).await.unwrap().refund();
}

#[tokio::test]
async fn what_is_lent_is_taken_from_the_limit_and_leaves_five() {
    let Some(server) = Server::start().await else { return };
    let mut processes = Vec::new();
    for lent in [1, 2, 3, 4, 5, 5] {
        processes.push(sharing_process(&server, "gateway").await);
        lends(&server, lent).await;
        sleep(50 * MS).await;
        lends(&server, lent).await;
    }
    // Two of ten were left to cancels, so eight polls still fit beside two slots: five beside five.
    let polls = futures(5, || async { processes[0].acquire(Lane::Bulk, soon()).await.unwrap() }).await;
    // Those who have a slot use it for a cancel, and the sixth has none.
    for (process, lane, is_granted) in [
        (1, Lane::Bulk, false),
        (1, Lane::Critical, true),
        (1, Lane::Critical, false),
        (5, Lane::Critical, false),
    ] {
        match processes[process].acquire(lane, soon()).await {
            Ok(mut permit) => {
                assert!(is_granted, "{process} {lane:?}");
                permit.sent();
            }
            Err(NotGranted::WouldMissDeadline { .. }) => assert!(!is_granted, "{process} {lane:?}"),
            Err(error) => panic!("{error}"),
        }
    }
    drop(polls);
    // The slots of those that end are given back.
    processes.clear();
    lends(&server, 0).await;
}

#[tokio::test]
async fn a_store_says_how_far_it_is_and_whether_it_persists() {
    for (settings, persists) in [(&[][..], false), (&["--appendonly", "yes"], true)] {
        let Some(server) = Server::start_with(settings).await else { return };
        let shared = Shared::connect(&server.url(), &Account::new("SB0001")).await.unwrap();
        let health = shared.health().await.unwrap();
        assert!(health.version.starts_with("Redis ") || health.version.starts_with("Valkey "), "{health:?}");
        assert!(health.round_trip < SECOND && health.clock_differs < SECOND, "{health:?}");
        assert_eq!(health.persists, persists, "{health:?}");
    }
}

#[tokio::test]
async fn a_store_that_may_forget_or_is_none_is_refused_by_name() {
    let account = Account::new("SB0001");
    let connect = async |address: &str| Shared::connect(address, &account).await.err();
    let Some(evicts) = Server::start_with(&["--maxmemory-policy", "allkeys-lru"]).await else { return };
    let refused = connect(&evicts.url()).await;
    assert!(
        matches!(&refused, Some(StoreError::Unfit { why: Unfit::Evicts { policy }, .. }) if policy == "allkeys-lru"),
        "{refused:?}"
    );
    let mut connection = evicts.connection().await;
    let mut set = cmd("CONFIG");
    () = set.arg("SET").arg("maxmemory-policy").arg("noeviction").query_async(&mut connection).await.unwrap();
    assert_eq!(connect(&evicts.url()).await, None);
    let mut set = cmd("CONFIG");
    () = set.arg("SET").arg("requirepass").arg("right").query_async(&mut connection).await.unwrap();
    for address in [evicts.url(), evicts.url().replace("//", "//:canary-wrong@")] {
        let refused = connect(&address).await;
        assert!(matches!(refused, Some(StoreError::PasswordRefused { .. })), "{refused:?}");
        assert!(!format!("{refused:?}").contains("canary"));
    }
    assert_eq!(connect(&evicts.url().replace("//", "//:right@")).await, None);
    assert_eq!(connect("file:///etc").await, Some(StoreError::InvalidAddress));
}
