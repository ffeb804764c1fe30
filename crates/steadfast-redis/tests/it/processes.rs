//! Real processes of one account at one gateway.

use std::{env, process::Stdio, time::Duration};

use steadfast::{Access, Client, InvalidClient, OrderRequest, limit::ZoneLimiter};
use steadfast_limit::Account;
use steadfast_redis::Shared;
use steadfast_sandbox::Sandbox;
use tokio::{net::TcpListener, process::Command, task::JoinSet, time::Instant};

use crate::server::Server;

/// Gives a child the gateway, its credentials and the store; without a store it counts alone.
const CHILD: &str = "STEADFAST_SHARING_CHILD";
const LASTS: Duration = Duration::from_secs(5);

/// The child: reads as often as it may, and places orders meanwhile.
#[tokio::test]
async fn child() {
    let Ok(facts) = env::var(CHILD) else { return };
    let facts: Vec<&str> = facts.split('\n').collect();
    let [base, key, token, store] = facts[..] else { panic!("four facts") };
    let account = Account::new("SB0001");
    let access = Access::token(key, token).unwrap();
    let mut builder = Client::builder(base.parse().unwrap(), access).account(account.clone());
    if !store.is_empty() {
        let shared = Shared::connect(store, &account).await.unwrap();
        shared.has_new_token();
        builder = builder.shared(shared);
    }
    let client = builder.build().unwrap();
    let end = Instant::now() + LASTS;
    let mut tasks = JoinSet::new();
    for _ in 0..12 {
        let client = client.clone();
        tasks.spawn(async move {
            while Instant::now() < end {
                client.orders().await.unwrap();
            }
        });
    }
    for _ in 0..3 {
        client.place_order(&order()).await.unwrap();
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    client.shutdown().await;
}

fn order() -> OrderRequest {
    let fields = [
        ("symId", "EQT_INFY_EQ_NSE"),
        ("qty", "1"),
        ("side", "buy"),
        ("type", "market"),
        ("product", "intraday"),
        ("validity", "day"),
    ];
    OrderRequest::from_fields(fields).unwrap()
}

/// The requests of all processes, as the gateway counted them.
struct Seen {
    /// Requests of the first seconds.
    in_time: usize,
    all: usize,
    /// How many were answered with 429.
    refused: u64,
}

/// Runs so many processes at once.
async fn run(processes: usize, store: &str) -> Seen {
    let sandbox = Sandbox::builder().build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v2", listener.local_addr().unwrap());
    let served = sandbox.clone();
    let server = tokio::spawn(async move { served.serve(listener, std::future::pending()).await });
    let own = sandbox.credentials();
    let facts = [base.as_str(), &own.api_key, &own.access_token, store].join("\n");
    let mut children = JoinSet::new();
    for _ in 0..processes {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "processes::child"]).env(CHILD, &facts).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
        children.spawn(async move { command.status().await.unwrap().success() });
    }
    while let Some(succeeded) = children.join_next().await {
        assert!(succeeded.unwrap(), "a process failed");
    }
    server.abort();
    let state = sandbox.state();
    assert_eq!(state.orders.len(), 3 * processes);
    let first = state.arrivals.iter().map(|arrival| arrival.at_ns).min().unwrap_or(0);
    let in_time = |at: u64| Duration::from_nanos(at - first) < LASTS;
    Seen {
        in_time: state.arrivals.iter().filter(|arrival| in_time(arrival.at_ns)).count(),
        all: state.arrivals.len(),
        refused: state.refusals.values().sum(),
    }
}

/// Returns how often the store was asked for each request, without the call for its answer and the readings of clocks.
async fn calls_for_each(store: &Server, seen: &Seen) -> f64 {
    let stats: String =
        redis::cmd("INFO").arg("commandstats").query_async(&mut store.connection().await).await.unwrap();
    // The script that decides about requests sends this command twice, and no other one does.
    let line = stats.lines().find(|line| line.contains("zremrangebyscore")).unwrap();
    let calls = line.split("calls=").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
    calls.parse::<f64>().unwrap() / 2.0 / seen.all as f64
}

#[tokio::test]
async fn two_processes_on_one_account_meet_no_429_and_use_as_much_as_one() {
    let Some(alone) = Server::start().await else { return };
    let [together, crowded] = [Server::start().await.unwrap(), Server::start().await.unwrap()];
    let urls = [&alone, &together, &crowded].map(Server::url);
    let (one, two, four, uncounted) =
        tokio::join!(run(1, &urls[0]), run(2, &urls[1]), run(4, &urls[2]), run(2, ""));
    for (processes, store, seen) in [(1, &alone, &one), (2, &together, &two), (4, &crowded, &four)] {
        let calls = calls_for_each(store, seen).await;
        let Seen { in_time, all, refused } = seen;
        println!(
            "{processes}: {in_time} requests in 5 s, {all} in all, {refused} refused; {calls:.2} calls for each"
        );
        assert_eq!(*refused, 0);
        // It was 3 to 4 while each request asked for itself.
        assert!(calls <= 2.0, "{calls} calls for each request of {processes} processes");
    }
    println!("uncounted: {} refused", uncounted.refused);
    assert!(10 * two.in_time >= 9 * one.in_time, "{} of two processes, {} of one", two.in_time, one.in_time);
    assert!(uncounted.refused > 0, "the gateway refuses processes that count alone");
}

#[tokio::test]
async fn limits_that_do_not_count_with_the_others_are_refused() {
    let Some(store) = Server::start().await else { return };
    let shared = Shared::connect(&store.url(), &Account::new("SB0001")).await.unwrap();
    let access = Access::token("key", "token").unwrap();
    let builder = Client::builder("http://127.0.0.1:9/v2".parse().unwrap(), access);
    let refused = builder.limiter(ZoneLimiter::preset()).shared(shared).build();
    assert!(matches!(refused, Err(InvalidClient::SharedLimiter)));
}
