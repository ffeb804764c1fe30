//! Two programs on one account, as on two machines: they count together, so the gateway refuses neither.
//!
//! Each polls the order list as often as the limits let it. The store is a `redis-server` of this example's own; where
//! none is installed, the programs count alone, and the gateway refuses some of their requests.
//!
//! Prints: 2 orders placed
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::{
    env,
    net::TcpListener as Port,
    process::{Child, Command, Stdio},
    time::Duration,
};

use steadfast::{Access, BoxError, Client, OrderRequest, limit::Account, redis::Shared};
use steadfast_sandbox::Sandbox;
use tokio::{net::TcpListener, time::Instant};

/// One of the programs: polls for three seconds, and places an order.
async fn trade(base: &str, key: &str, token: &str, store: &str) -> Result<(), BoxError> {
    let account = Account::new("SB0001");
    let mut builder = Client::builder(base.parse()?, Access::token(key, token)?).account(account.clone());
    if !store.is_empty() {
        let shared = Shared::connect(store, &account).await?;
        // Nothing has used the sandbox's token yet.
        shared.has_new_token();
        builder = builder.shared(shared);
    }
    let (client, began) = (builder.build()?, Instant::now());
    let order = [("symId", "EQT_INFY_EQ_NSE"), ("qty", "10"), ("side", "buy"), ("type", "market")];
    let order = order.into_iter().chain([("product", "intraday"), ("validity", "day")]);
    client.place_order(&OrderRequest::from_fields(order)?).await?;
    while began.elapsed() < Duration::from_secs(3) {
        client.orders().await?;
    }
    client.shutdown().await;
    Ok(())
}

/// Starts a store on a free port.
fn store() -> Result<(String, Option<Child>), BoxError> {
    let port = Port::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
    let settings = ["--port", &port, "--bind", "127.0.0.1", "--save", "", "--dir"];
    let mut command = Command::new("redis-server");
    match command.args(settings).arg(env::temp_dir()).stdout(Stdio::null()).spawn() {
        Ok(server) => Ok((format!("redis://127.0.0.1:{port}"), Some(server))),
        Err(_) => Ok((String::new(), None)),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let words: Vec<String> = env::args().skip(1).collect();
    if let [base, key, token, store] = &words[..] {
        return trade(base, key, token, store).await;
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}/v2", listener.local_addr()?);
    let sandbox = Sandbox::builder().build()?;
    let (own, served) = (sandbox.credentials(), sandbox.clone());
    tokio::spawn(async move { served.serve(listener, std::future::pending()).await });
    let (address, mut server) = store()?;
    while server.is_some() && Shared::connect(&address, &Account::new("SB0001")).await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let mut programs = Vec::new();
    for _ in 0..2 {
        let facts = [&base, &own.api_key, &own.access_token, &address];
        programs.push(tokio::process::Command::new(env::current_exe()?).args(facts).spawn()?);
    }
    for mut program in programs {
        assert!(program.wait().await?.success());
    }
    if let Some(server) = &mut server {
        server.kill()?;
        server.wait()?;
    }
    let state = sandbox.state();
    let store = if server.is_some() { "with a store" } else { "no redis-server is installed" };
    println!("{store}: {} requests, {} refused", state.arrivals.len(), state.refusals.values().sum::<u64>());
    assert!(server.is_none() || state.refusals.values().sum::<u64>() == 0);
    println!("{} orders placed", state.orders.len());
    Ok(())
}
