//! Real processes that start without a token, at one service and one store.

use std::{env, process::Stdio};

use steadfast::{Access, Client, TotpCredentials};
use steadfast_limit::Account;
use steadfast_redis::{Seal, Shared};
use steadfast_sandbox::Sandbox;
use tokio::{net::TcpListener, process::Command, task::JoinSet};

use crate::server::Server;

/// Gives a child the gateway, its credentials and the store.
const CHILD: &str = "STEADFAST_COLD_CHILD";
const PROCESSES: usize = 8;

/// The child: reads from the service. It logs in, unless another one has.
#[tokio::test]
async fn child() {
    let Ok(facts) = env::var(CHILD) else { return };
    let facts: Vec<&str> = facts.split('\n').collect();
    let [base, key, user, password, totp, store] = facts[..] else { panic!("six facts") };
    let credentials = TotpCredentials {
        api_key: key.into(),
        client_id: user.into(),
        password: password.into(),
        totp_secret: totp.into(),
    };
    let account = Account::new("SB0001");
    let shared = Shared::connect(store, &account).await.unwrap();
    let seal = Seal::of_environment().unwrap().unwrap();
    let access = Access::totp(credentials).unwrap().shared_store(shared.token_store(seal));
    // Each counts its own requests: an empty store counts as full for a while.
    let client = Client::builder(base.parse().unwrap(), access).account(account).build().unwrap();
    client.orders().await.unwrap();
    client.shutdown().await;
}

/// Guards against clients of which every process logs in.
#[tokio::test]
async fn t14_eight_processes_on_different_machines_that_start_cold_make_one_login() {
    let Some(store) = Server::start().await else { return };
    let sandbox = Sandbox::builder().build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v2", listener.local_addr().unwrap());
    let served = sandbox.clone();
    let server = tokio::spawn(async move { served.serve(listener, std::future::pending()).await });
    let own = sandbox.credentials();
    let facts = [&base, &own.api_key, &own.client_id, &own.password, &own.totp_secret, &store.url()];
    let facts = facts.map(String::as_str).join("\n");
    let mut children = JoinSet::new();
    for _ in 0..PROCESSES {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "cold::child"]).env(CHILD, &facts).env(Seal::VARIABLE, "07".repeat(32));
        command.kill_on_drop(true).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
        children.spawn(async move { command.status().await.unwrap().success() });
    }
    while let Some(succeeded) = children.join_next().await {
        assert!(succeeded.unwrap(), "a process failed");
    }
    server.abort();
    let state = sandbox.state();
    assert_eq!((state.logins.succeeded, state.logins.failed), (1, 0));
    assert_eq!(state.refusals.values().sum::<u64>(), 0, "{:?}", state.refusals);
}
