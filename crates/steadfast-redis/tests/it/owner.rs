//! One owner of an account's orders at a time: real processes, a real store, one sandbox.

use std::{collections::HashMap, env, fs, sync::Arc, time::Duration};

use redis::cmd;
use steadfast::{Access, Client, ErrorKind, InvalidClient, OrderChange};
use steadfast_dedup::Reason;
use steadfast_limit::Account;
use steadfast_redis::{OrdersError, OrdersScript, ResumeError};
use steadfast_sandbox::{OrderTruth, Sandbox};
use tokio::{
    process::Command,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use crate::{
    faults::place_and_say,
    server::Server,
    world::{CHILD, MS, OWNER, SECOND, World, account, client, connect, name, order, sandbox},
};

/// The owner that is killed or stopped.
#[tokio::test]
async fn child() {
    let Ok(facts) = env::var(CHILD) else { return };
    let facts: Vec<&str> = facts.split('\n').collect();
    let [base, key, token, store, does, said] = facts[..] else { panic!("six facts") };
    let shared = connect(store).await;
    shared.has_new_token();
    let orders = shared.wait_for_orders("the first").await.unwrap();
    assert!(orders.is_owner());
    let client = client(base, key, token, shared, orders);
    if does == "say" {
        return place_and_say(&client, said).await;
    }
    if does == "burst" {
        let mut calls = JoinSet::new();
        for it in 0..BURST {
            let client = client.clone();
            calls.spawn(async move { client.place_order_as(&order(it), name(it)).await.map(drop) });
        }
        while calls.join_next().await.is_some() {}
        return;
    }
    let stopped = client.place_order_as(&order(0), name(0)).await.err();
    let later = client.place_order_as(&order(1), name(1)).await.unwrap_err();
    let reason = stopped.and_then(|stopped| stopped.unresolved().map(|it| it.reason));
    fs::write(said, format!("{reason:?} {:?}", later.kind())).unwrap();
}

const BURST: usize = 24;

#[tokio::test]
async fn a_process_that_does_not_own_the_orders_says_who_does_and_sends_none() {
    let Some(world) = World::start(sandbox("")).await else { return };
    let one = world.client(world.orders("one").await).await;
    let id = one.place_order_as(&order(0), name(0)).await.unwrap().order_id;
    let other = world.orders("other").await;
    assert!(!other.is_owner());
    let other = world.client(other).await;
    let refused = other.place_order_as(&order(1), name(1)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotOwner, "{refused:?}");
    assert_eq!(refused.not_owner().and_then(|it| it.owner.as_deref()), Some("one"));
    assert!(refused.retry_in().is_some_and(|wait| wait > Duration::ZERO), "{refused:?}");
    assert!(refused.to_string().contains("process one owns the orders"), "{refused}");
    let change = OrderChange::new().qty(5);
    assert_eq!(other.modify(&id, &change).await.unwrap_err().kind(), ErrorKind::NotOwner);
    // It cancels what the other one has placed.
    other.cancel(&id).await.unwrap();
    assert_eq!(other.orders().await.unwrap().len(), 1);
    one.shutdown().await;
    drop(one);
    // They were given back.
    let began = Instant::now();
    let orders = world.orders("other").await;
    assert!(orders.is_owner() && began.elapsed() < SECOND, "{:?}", began.elapsed());
    let other = world.client(orders).await;
    let same = other.place_order_as(&order(0), name(0)).await.unwrap();
    assert_eq!(same.order_id, id, "a name is one order on all machines");
    other.place_order_as(&order(1), name(1)).await.unwrap();
    assert_eq!(world.sandbox.state().orders.len(), 2);
}

#[tokio::test]
async fn a_halt_at_one_process_stops_the_orders_of_all_and_outlives_their_owner() {
    let Some(world) = World::start(sandbox("")).await else { return };
    let one = world.client(world.orders("one").await).await;
    let id = one.place_order_as(&order(0), name(0)).await.unwrap().order_id;
    let (other, began) = (world.shared().await, Instant::now());
    assert!(other.halt_orders().await.unwrap());
    println!("halted everywhere after {:?}", began.elapsed());
    assert!(began.elapsed() < 2 * SECOND, "{:?}", began.elapsed());
    assert!(one.is_halted());
    // That is its own switch.
    one.resume();
    let refused = one.place_order_as(&order(1), name(1)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Halted, "{refused:?}");
    let refused = one.modify(&id, &OrderChange::new().qty(5)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Halted, "{refused:?}");
    one.cancel(&id).await.unwrap();
    one.shutdown().await;
    drop(one);
    let next = world.client(world.orders("the next").await).await;
    let refused = next.place_order_as(&order(1), name(1)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Halted, "{refused:?}");
    other.resume_orders().await.unwrap();
    next.place_order_as(&order(1), name(1)).await.unwrap();
    assert_eq!(world.book(), HashMap::from([("1".to_owned(), 1), ("2".to_owned(), 1)]));
}

#[tokio::test]
async fn no_order_of_a_burst_leaves_after_a_halt_has_returned_at_another_process() {
    let Some(world) = World::start(sandbox("")).await else { return };
    let mut owner = world.child("burst");
    world.has(4).await;
    assert!(world.shared().await.halt_orders().await.unwrap());
    // Those that had left arrive.
    sleep(200 * MS).await;
    let placed = world.sandbox.state().orders.len();
    assert!(timeout(20 * SECOND, owner.wait()).await.unwrap().unwrap().success());
    println!("{placed} of {BURST} were placed before the halt");
    assert!(placed < BURST && world.sandbox.state().orders.len() == placed, "{placed}");
}

#[tokio::test]
async fn a_halt_waits_for_an_owner_that_is_stopped_as_long_as_it_may_own_the_orders() {
    let script = "[[fault]]\nname = 'placement.504-applied'\nnth = 1\nanswer_after_ms = 12000";
    let Some(world) = World::start(sandbox(script)).await else { return };
    let mut owner = world.child("stopped");
    world.has(1).await;
    let id = owner.id().unwrap().to_string();
    let signal = async |signal: &str| {
        assert!(Command::new("kill").args([signal, id.as_str()]).status().await.unwrap().success());
    };
    signal("-STOP").await;
    let began = Instant::now();
    assert!(world.shared().await.halt_orders().await.unwrap());
    let took = began.elapsed();
    assert!(took >= 8 * SECOND && took < 11 * SECOND, "{took:?}");
    signal("-CONT").await;
    assert!(timeout(60 * SECOND, owner.wait()).await.unwrap().unwrap().success());
    let said = fs::read_to_string(world.said()).unwrap();
    assert!(said.ends_with(" Halted"), "{said}");
    assert_eq!(world.sandbox.state().orders.len(), 1);
}

#[tokio::test]
async fn a_halt_that_the_store_has_forgotten_stands_while_a_process_knows_of_it() {
    let Some(world) = World::start(sandbox("")).await else { return };
    let shared = world.shared().await;
    assert!(shared.halt_orders().await.unwrap());
    () = cmd("FLUSHALL").query_async(&mut world.server.connection().await).await.unwrap();
    let Err(OrdersError::MayLackEntries { mark, .. }) = shared.wait_for_orders("one").await else {
        panic!("an emptied store is accepted by nobody")
    };
    assert!(shared.accept_orders(&mark).await.unwrap());
    // A process that knows nothing of it gets the orders.
    let orders = world.shared().await.wait_for_orders("other").await.unwrap();
    let client = world.client(orders).await;
    let refused = client.place_order_as(&order(0), name(0)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Halted, "{refused:?}");
    shared.resume_orders().await.unwrap();
    client.place_order_as(&order(0), name(0)).await.unwrap();
}

/// Regression: it succeeded, and its own process halted the next owner again.
#[tokio::test]
async fn a_resume_also_ends_a_halt_that_the_store_has_forgotten() {
    let Some(world) = World::start(sandbox("")).await else { return };
    let shared = world.shared().await;
    assert!(shared.halt_orders().await.unwrap());
    () = cmd("FLUSHALL").query_async(&mut world.server.connection().await).await.unwrap();
    shared.resume_orders().await.unwrap();
    let Err(OrdersError::MayLackEntries { mark, .. }) = shared.wait_for_orders("one").await else {
        panic!("an emptied store is accepted by nobody")
    };
    assert!(shared.accept_orders(&mark).await.unwrap());
    let client = world.client(shared.wait_for_orders("one").await.unwrap()).await;
    client.place_order_as(&order(0), name(0)).await.unwrap();
}

/// Regression: it succeeded. One that was late ended the newer halt as well.
#[tokio::test]
async fn a_resume_ends_no_newer_halt_and_says_which_one_holds() {
    let Some(world) = World::start(sandbox("")).await else { return };
    let (shared, other) = (world.shared().await, world.shared().await);
    assert!(shared.halt_orders().await.unwrap());
    // An owner that says nothing, so that the resume waits for it.
    let mut store = world.server.connection().await;
    let mut silent = cmd("HSET");
    silent.arg(OWNER).arg(&["owner", "silent", "renewals", "0", "heard", "0"]);
    () = silent.query_async(&mut store).await.unwrap();
    let resuming = shared.clone();
    let resume = tokio::spawn(async move { resuming.resume_orders().await });
    sleep(SECOND / 2).await;
    let halt = tokio::spawn(async move { other.halt_orders().await });
    let newer = resume.await.unwrap().unwrap_err();
    assert_eq!(newer, ResumeError::HaltedAgain { halt: 3 });
    assert_eq!(newer.to_string(), "orders were halted again meanwhile, by halt 3");
    // The store is slow: what it was told of the first halt comes once more.
    let info: String = cmd("INFO").arg("server").query_async(&mut store).await.unwrap();
    let run = info.lines().find_map(|line| line.strip_prefix("run_id:")).unwrap();
    let mut late = cmd("EVAL");
    late.arg(OrdersScript::HALT.text(run)).arg(1).arg(OWNER).arg("resume").arg(1);
    let state: Vec<String> = late.query_async(&mut store).await.unwrap();
    assert_eq!(state[0], "3");
    assert!(halt.await.unwrap().unwrap(), "no order leaves");
    shared.resume_orders().await.unwrap();
}

#[tokio::test]
async fn no_order_leaves_before_a_replica_has_its_entry() {
    // It counts as there for so long after its last sign of life.
    let settings = ["--min-replicas-to-write", "1", "--min-replicas-max-lag", "60"];
    let Some(server) = Server::start_with(&settings).await else { return };
    let replica = Server::start_with(&["--replicaof", "127.0.0.1", server.port().to_string().as_str()]).await;
    let replica = replica.unwrap();
    let info = async || {
        let mut info = cmd("INFO");
        info.arg("replication");
        let info: String = info.query_async(&mut server.connection().await).await.unwrap();
        info
    };
    timeout(20 * SECOND, async {
        while !info().await.contains("min_slaves_good_slaves:1") {
            sleep(50 * MS).await;
        }
    })
    .await
    .unwrap();
    let world = World::start_at(server, sandbox("")).await.unwrap();
    let client = world.client(world.orders("one").await).await;
    client.place_order_as(&order(0), name(0)).await.unwrap();
    replica.stop(true);
    let call = tokio::spawn(async move { client.place_order_as(&order(1), name(1)).await });
    sleep(3 * SECOND).await;
    let placed = world.sandbox.state().orders.len();
    replica.stop(false);
    assert_eq!(placed, 1);
    call.await.unwrap().unwrap();
    assert_eq!(world.book(), HashMap::from([("1".to_owned(), 1), ("2".to_owned(), 1)]));
}

#[tokio::test]
async fn an_owner_that_loses_the_orders_takes_no_listed_order_for_its_own() {
    // The gateway places the order, and its answer is lost. The list shows it late.
    let script = "[[fault]]\nname = 'placement.504-applied'\nnth = 1\nanswer_after_ms = 3500";
    let Some(world) = World::start(sandbox(script)).await else { return };
    let client = world.client(world.orders("one").await).await;
    let caller = client.clone();
    let call = tokio::spawn(async move { caller.place_order_as(&order(0), name(0)).await });
    world.has(1).await;
    () = cmd("FLUSHALL").query_async(&mut world.server.connection().await).await.unwrap();
    let lost = timeout(15 * SECOND, call).await.unwrap().unwrap().unwrap_err();
    assert_eq!(lost.unresolved().map(|it| it.reason), Some(Reason::OwnerChanged), "{lost:?}");
    let refused = client.place_order_as(&order(1), name(1)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotOwner, "{refused:?}");
    // Nor does another process get them before a person has looked.
    let again = world.shared().await.orders("other").await;
    let Err(OrdersError::MayLackEntries { mark, .. }) = again else { panic!("{again:?}") };
    assert!(!world.shared().await.accept_orders("another mark").await.unwrap());
    assert!(world.shared().await.accept_orders(&mark).await.unwrap());
    let began = Instant::now();
    let orders = world.orders("other").await;
    assert!(orders.is_owner() && began.elapsed() > 8 * SECOND, "{:?}", began.elapsed());
    assert_eq!(world.sandbox.state().orders.len(), 1);
}

#[tokio::test]
async fn an_owner_killed_in_a_burst_is_followed_and_no_order_is_placed_twice_or_forgotten() {
    killed(1).await;
}

/// The same, as often as a campaign wants it.
#[tokio::test]
async fn owner_is_killed_many_times() {
    let times = env::var("STEADFAST_OWNER_KILLS").map_or(0, |times| times.parse().unwrap());
    for seed in 0..times {
        killed(seed).await;
    }
}

async fn killed(seed: u64) {
    let sandbox =
        Sandbox::builder().published_client().seed(seed).fault("placement.504-applied", 0.3).unwrap();
    let sandbox = sandbox.fault("placement.504-not-applied", 0.2).unwrap().build().unwrap();
    let Some(world) = World::start(sandbox).await else { return };
    let mut owner = world.child("burst");
    world.has(4 + seed as usize % 12).await;
    let standby = Arc::new(world.shared().await);
    let next = tokio::spawn(async move { standby.wait_for_orders("the next").await });
    sleep(SECOND / 2).await;
    owner.start_kill().unwrap();
    let died = Instant::now();
    owner.wait().await.unwrap();
    let orders = timeout(30 * SECOND, next).await.unwrap().unwrap().unwrap();
    let took = died.elapsed();
    assert!(orders.is_owner() && took <= 12 * SECOND, "{took:?}");
    world.sandbox.heal();
    let client = world.client(orders).await;
    client.recover().await.unwrap();
    let (mut placed, mut doubted) = (0, 0);
    for it in 0..BURST {
        match client.place_order_as(&order(it), name(it)).await {
            Ok(told) => {
                placed += 1;
                let qty = (it + 1).to_string();
                let orders = world.sandbox.state().orders;
                let is_right = |order: &OrderTruth| order.order_id == told.order_id && order.qty == qty;
                assert!(orders.iter().any(is_right), "{it} is told {told:?} of {orders:?}");
            }
            // It is told, and not sent.
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::InDoubt | ErrorKind::NotObserved), "{error:?}");
                doubted += 1;
            }
        }
    }
    let book = world.book();
    println!("took over after {took:?}: {placed} placed, {doubted} in doubt, {} at the gateway", book.len());
    assert!(book.values().all(|count| *count == 1), "placed twice: {book:?}");
}

#[tokio::test]
async fn an_owner_that_was_stopped_in_a_send_is_told_in_doubt_and_places_nothing_more() {
    let script = "[[fault]]\nname = 'placement.504-applied'\nnth = 1\nanswer_after_ms = 12000";
    let Some(world) = World::start(sandbox(script)).await else { return };
    let mut owner = world.child("stopped");
    world.has(1).await;
    let signal = async |signal: &str| {
        let id = owner.id().unwrap().to_string();
        assert!(Command::new("kill").args([signal, id.as_str()]).status().await.unwrap().success());
    };
    signal("-STOP").await;
    let orders = timeout(20 * SECOND, world.orders("the next")).await.unwrap();
    assert!(orders.is_owner());
    let client = world.client(orders).await;
    let found = client.recover().await.unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    let same = client.place_order_as(&order(0), name(0)).await.unwrap();
    assert!(!same.order_id.is_empty());
    signal("-CONT").await;
    assert!(timeout(60 * SECOND, owner.wait()).await.unwrap().unwrap().success());
    let said = fs::read_to_string(world.said()).unwrap();
    assert_eq!(said, "Some(OwnerChanged) NotOwner");
    assert_eq!(world.book(), HashMap::from([("1".to_owned(), 1)]));
}

#[tokio::test]
async fn shared_orders_go_with_no_other_account_journal_or_tracker() {
    let Some(world) = World::start(sandbox("")).await else { return };
    let builder = || {
        let access = Access::token("key", "token").unwrap();
        Client::builder(world.base.parse().unwrap(), access).account(account())
    };
    let tracker = steadfast_dedup::OrderTracker::default();
    for builder in [
        builder().account(Account::new("SB0002")),
        builder().journal(world.folder.path().join("journal")),
        builder().tracker(tracker),
    ] {
        let refused = builder.shared_orders(world.orders("one").await).build();
        assert!(matches!(refused, Err(InvalidClient::SharedOrders)), "{refused:?}");
    }
}
