//! A fault of the store or of the owner in the midst of a burst of orders: none is placed twice, and none is lost.

mod fault;
mod said;

use std::{collections::BTreeMap, env, time::Duration};

use redis::{Cmd, cmd};
use steadfast::{Access, Client, Paths};
use steadfast_redis::{Orders, OrdersError};
use steadfast_sandbox::Sandbox;
use tokio::{
    process::Child,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

pub(crate) use self::{fault::REPLICATED, said::place_and_say};
use self::{
    fault::{
        ALL,
        Fault::{self, *},
    },
    said::{Said, check, said},
};
use crate::{
    failover::Watched,
    relay::Relay,
    server::Server,
    world::{MS, SECOND, World, account, connect, name, order},
};

const BURST: usize = 16;

/// How many runs of each fault the campaign makes, and how many of all at once.
const RUNS: &str = "STEADFAST_STORE_FAULTS";
const AT_ONCE: usize = 12;

/// How long a call may last: less than a store's windows count as full that has forgotten them, so some are never sent.
const CALLS_LAST: Duration = Duration::from_secs(30);

/// The results of a run's orders.
#[derive(Default)]
struct Came {
    placed: usize,
    in_doubt: usize,
    unsent: usize,
    took: Duration,
}

fn signal(process: &Child, signal: &str) {
    let id = process.id().unwrap().to_string();
    assert!(std::process::Command::new("kill").args([signal, &id]).status().unwrap().success());
}

async fn tell(server: &Server, command: &mut Cmd) {
    () = command.query_async(&mut server.connection().await).await.unwrap();
}

/// Two replicas of a server: one that keeps up, and one that does not once its way is cut.
struct Replicas {
    good: Server,
    stale: Server,
    way: Relay,
}

impl Replicas {
    async fn start(server: &Server) -> Self {
        let way = Relay::start(server.port()).await;
        let replica = async |port: u16| {
            let port = port.to_string();
            let settings: Vec<&str> =
                REPLICATED.into_iter().chain(["--replicaof", "127.0.0.1", &port]).collect();
            Server::start_with(&settings).await.unwrap()
        };
        let replicas = Self { good: replica(server.port()).await, stale: replica(way.port()).await, way };
        has_replicas(server, 2).await;
        replicas
    }
}

/// Waits until the server has so many replicas that keep up.
pub(crate) async fn has_replicas(server: &Server, count: usize) {
    let expected = format!("min_slaves_good_slaves:{count}");
    for _ in 0..400 {
        let mut connection = server.connection().await;
        let info: String = cmd("INFO").arg("replication").query_async(&mut connection).await.unwrap();
        if info.contains(&expected) {
            return;
        }
        sleep(50 * MS).await;
    }
    panic!("the server has not {count} replicas");
}

/// A client of another process, which did not make the token.
async fn client(world: &World, orders: Orders) -> Client {
    let own = world.sandbox.credentials();
    let access = Access::token(&*own.api_key, &*own.access_token).unwrap();
    let builder = Client::builder(world.base.parse().unwrap(), access).paths(Paths::published_client());
    let shared = connect(&world.url).await;
    builder.account(account()).shared(shared).shared_orders(orders).build().unwrap()
}

/// Waits for the orders, and accepts the journal as a person does who has compared the order list.
async fn next_owner(url: String, may_lack: bool) -> Orders {
    let shared = connect(&url).await;
    loop {
        match shared.wait_for_orders("the next").await {
            Ok(orders) => return orders,
            Err(OrdersError::MayLackEntries { mark, .. }) if may_lack => {
                // Another loss may have come since, or the store does not answer in time.
                let _ = shared.accept_orders(&mark).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Places orders as the next owner: those of the burst again, or others where the journal lacks some of them.
async fn go_on(world: &World, orders: Orders, fault: Fault) -> BTreeMap<usize, Said> {
    world.sandbox.heal();
    let client = client(world, orders).await;
    timeout(170 * SECOND, client.recover()).await.expect("the list is read").unwrap();
    let names = if fault.loses() { BURST..BURST + 2 } else { 0..BURST };
    let mut after = BTreeMap::new();
    let mut calls = JoinSet::new();
    for it in names {
        let client = client.clone();
        calls.spawn(async move { (it, Said::of(client.place_order_as(&order(it), name(it)).await)) });
    }
    while let Some(ended) = calls.join_next().await {
        let (it, told) = ended.unwrap();
        assert!(!matches!(told, Said::Unsent(_)), "it goes on by itself, but order {it}: {told:?}");
        after.insert(it, told);
    }
    after
}

/// `is_whole` if the next owner goes on until the windows of a store that forgot them are known again.
async fn run(fault: Fault, seed: u64, is_whole: bool) -> Option<Came> {
    // Spread over the burst by the seed alone, so that a run can be made again.
    let turn = |most: u64| ((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) % most;
    let sandbox =
        Sandbox::builder().published_client().seed(seed).fault("placement.504-applied", 0.3).unwrap();
    let sandbox = sandbox.fault("placement.504-not-applied", 0.2).unwrap().build().unwrap();
    let (server, watched) = if fault.fails_over() {
        let (server, watched) = Watched::start(fault.settings()).await?;
        (server, Some(watched))
    } else {
        (Server::start_with(fault.settings()).await?, None)
    };
    let replicas = if fault.promotes() { Some(Replicas::start(&server).await) } else { None };
    let relay = Relay::start(server.port()).await;
    let mut world =
        World::start_by(server, watched.as_ref().map_or_else(|| relay.url(), Watched::url), sandbox).await;
    let mut owner = world.child("say");
    world.has(1 + turn(11) as usize).await;
    if let Some(replicas) = &replicas {
        // All that is written from here on is lost.
        replicas.way.lead_to(1);
        let placed = world.sandbox.state().orders.len();
        world.has((placed + 2).min(BURST / 2)).await;
    }
    sleep(MS * turn(250) as u32).await;
    let began = Instant::now();
    if fault.kills() {
        owner.start_kill().unwrap();
        owner.wait().await.unwrap();
    }
    match fault {
        OwnerKilled => {}
        OwnerStopped => signal(&owner, "-STOP"),
        ConnectionsCut | OwnerKilledAndConnectionsCut => {
            for cut in 0..6 {
                relay.cut_after(turn(2_000) as i64 * (cut + 1) % 2_000);
                sleep(400 * MS).await;
            }
        }
        StoreStopped => {
            world.server.stop(true);
            sleep(5 * SECOND).await;
            world.server.stop(false);
        }
        StoreSlow => {
            let connection = world.server.connection().await;
            let slow = async |seconds: f64| {
                let mut connection = connection.clone();
                // Its reply comes too late for this connection.
                let _: Result<(), _> =
                    cmd("DEBUG").arg("SLEEP").arg(seconds).query_async(&mut connection).await;
            };
            for _ in 0..4 {
                slow(0.2 + turn(12) as f64 / 10.0).await;
                sleep(300 * MS).await;
            }
        }
        PasswordChanged => {
            let mut store = world.server.connection().await;
            let mut set = async |password: &str| {
                () = cmd("CONFIG")
                    .arg("SET")
                    .arg("requirepass")
                    .arg(password)
                    .query_async(&mut store)
                    .await
                    .unwrap();
            };
            set("another").await;
            relay.cut_after(0);
            sleep(3 * SECOND).await;
            set("").await;
        }
        StoreRestarted => world.server.restart_with(fault.settings()).await,
        StoreRestartedEmpty => world.server.restart().await,
        FailedOver | OwnerKilledAndFailedOver => world.server.end(),
        StoreEmptied | OwnerKilledAndStoreEmptied => tell(&world.server, &mut cmd("FLUSHALL")).await,
        StaleReplicaPromoted | OwnerKilledAndStaleReplicaPromoted => {
            let Some(Replicas { good, stale, .. }) = &replicas else { panic!("there are replicas") };
            tell(stale, cmd("REPLICAOF").arg("NO").arg("ONE")).await;
            tell(good, cmd("REPLICAOF").arg("127.0.0.1").arg(stale.port())).await;
            relay.lead_to(stale.port());
            has_replicas(stale, 1).await;
        }
    }
    let mut before = BTreeMap::new();
    if !fault.kills() && fault != OwnerStopped {
        assert!(timeout(170 * SECOND, owner.wait()).await.expect("its calls end").unwrap().success());
        before = said(&world);
        assert_eq!(before.len(), BURST, "{before:?}");
        check(&world, &before);
    }
    let orders = timeout(40 * SECOND, next_owner(world.url.clone(), fault.loses() || fault.fails_over()))
        .await
        .expect("somebody follows");
    let took = began.elapsed();
    let mut after = BTreeMap::new();
    if is_whole || !fault.forgets() {
        after = go_on(&world, orders, fault).await;
    }
    if fault == OwnerStopped {
        signal(&owner, "-CONT");
        assert!(timeout(170 * SECOND, owner.wait()).await.expect("its calls end").unwrap().success());
        before = said(&world);
        assert_eq!(before.len(), BURST, "{before:?}");
        // Those that it did not send may be the next owner's.
        before.retain(|_, told| !matches!(told, Said::Unsent(_)));
        check(&world, &before);
    }
    check(&world, &after);
    if !fault.loses() && !after.is_empty() {
        // Whatever the gateway has, its name tells.
        for (it, told) in &before {
            if let Said::Placed(_) = told {
                // The entry of an answer may be lost: its caller does not wait for it. Then the list has to show the order.
                assert!(
                    [Some(told), Some(&Said::InDoubt)].contains(&after.get(it)),
                    "{fault:?}, order {it}: {after:?}"
                );
            }
        }
    }
    let mut came = Came { took, ..Came::default() };
    before.extend(after);
    for told in before.values() {
        *match told {
            Said::Placed(_) => &mut came.placed,
            Said::InDoubt => &mut came.in_doubt,
            Said::Unsent(_) => &mut came.unsent,
        } += 1;
    }
    Some(came)
}

/// One of each, in the plain tests.
async fn once(fault: Fault) {
    let Some(came) = run(fault, 7, false).await else { return };
    let Came { placed, in_doubt, unsent, took } = came;
    println!(
        "{fault:?}: {placed} placed, {in_doubt} in doubt, {unsent} not sent; owned again after {took:?}"
    );
}

#[tokio::test]
async fn an_owner_killed_while_connections_are_cut_at_any_byte() {
    once(OwnerKilledAndConnectionsCut).await;
}

#[tokio::test]
async fn connections_cut_at_any_byte() {
    once(ConnectionsCut).await;
}

#[tokio::test]
async fn a_store_stopped_for_five_seconds() {
    once(StoreStopped).await;
}

#[tokio::test]
async fn a_store_that_is_slow() {
    once(StoreSlow).await;
}

#[tokio::test]
async fn a_store_that_refuses_the_password_for_a_while() {
    once(PasswordChanged).await;
}

#[tokio::test]
async fn a_store_restarted_with_all_that_it_was_told() {
    once(StoreRestarted).await;
}

#[tokio::test]
async fn a_store_emptied() {
    once(StoreEmptied).await;
}

#[tokio::test]
async fn a_store_restarted_with_nothing() {
    once(StoreRestartedEmpty).await;
}

#[tokio::test]
async fn an_owner_killed_and_the_store_emptied() {
    once(OwnerKilledAndStoreEmptied).await;
}

#[tokio::test]
async fn a_replica_promoted_that_lacks_the_last_writes() {
    once(StaleReplicaPromoted).await;
}

#[tokio::test]
async fn an_owner_killed_and_a_stale_replica_promoted() {
    once(OwnerKilledAndStaleReplicaPromoted).await;
}

#[tokio::test]
async fn an_owner_stopped_in_a_burst_that_goes_on() {
    once(OwnerStopped).await;
}

#[tokio::test]
async fn a_server_whose_place_a_replica_takes_by_sentinels() {
    once(FailedOver).await;
}

#[tokio::test]
async fn an_owner_killed_and_a_server_whose_place_a_replica_takes() {
    once(OwnerKilledAndFailedOver).await;
}

/// The same, as often as a campaign wants it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_times() {
    let times: u64 = env::var(RUNS).map_or(0, |times| times.parse().unwrap());
    let (mut calls, mut sums) = (JoinSet::new(), BTreeMap::<Fault, (u64, Came)>::new());
    let mut left = (0..times).flat_map(|seed| ALL.iter().map(move |fault| (*fault, seed)));
    loop {
        while calls.len() < AT_ONCE
            && let Some((fault, seed)) = left.next()
        {
            // Not all at once: a start keeps the cores busy.
            sleep(300 * MS).await;
            calls.spawn(async move { (fault, seed, tokio::spawn(run(fault, seed, true)).await) });
        }
        let Some(ended) = calls.join_next().await else { break };
        let (fault, seed, came) = ended.unwrap();
        let Some(came) = came.unwrap_or_else(|_| panic!("{fault:?} of seed {seed}")) else { return };
        let (runs, sum) = sums.entry(fault).or_default();
        *runs += 1;
        sum.placed += came.placed;
        sum.in_doubt += came.in_doubt;
        sum.unsent += came.unsent;
        sum.took = sum.took.max(came.took);
        println!("{fault:?} {seed}: owned again after {:?}", came.took);
    }
    for (fault, (runs, Came { placed, in_doubt, unsent, took })) in sums {
        println!(
            "{fault:?}: {runs} runs, {placed} placed, {in_doubt} in doubt, {unsent} not sent; 0 twice, 0 lost, 0 × 429; owned \
             again after {took:.1?} at most"
        );
    }
}
