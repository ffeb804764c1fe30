//! Real processes on one account at one sandbox, with a real store.

use std::{collections::HashMap, env, path::PathBuf, process::Stdio, time::Duration};

use redis::cmd;
use steadfast::{Access, Client, OrderRequest, Paths, ext::IntentId, spec::Form};
use steadfast_limit::Account;
use steadfast_redis::{Orders, OrdersError, Shared};
use steadfast_sandbox::Sandbox;
use tokio::{
    net::TcpListener,
    process::{Child, Command},
    time::{sleep, timeout},
};

use crate::server::Server;

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const OWNER: &str = "{sf:SB0001}:orders";

/// Gives a child the gateway, its credentials, the store, what to do, and where to say what came of it.
pub(crate) const CHILD: &str = "STEADFAST_OWNER_CHILD";

/// A sandbox and a store, and what a client needs.
pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    pub(crate) server: Server,
    /// Where the processes find it.
    pub(crate) url: String,
    pub(crate) base: String,
    pub(crate) folder: tempfile::TempDir,
}

impl World {
    /// `None` if no store is installed. A person has accepted the new store.
    pub(crate) async fn start(sandbox: Sandbox) -> Option<Self> {
        Self::start_at(Server::start().await?, sandbox).await
    }

    pub(crate) async fn start_at(server: Server, sandbox: Sandbox) -> Option<Self> {
        let url = server.url();
        Some(Self::start_by(server, url, sandbox).await)
    }

    /// Starts one of which the processes reach the store at this address.
    pub(crate) async fn start_by(server: Server, url: String, sandbox: Sandbox) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/v2", listener.local_addr().unwrap());
        let served = sandbox.clone();
        tokio::spawn(async move { served.serve(listener, std::future::pending()).await });
        let world = Self { sandbox, server, url, base, folder: tempfile::tempdir().unwrap() };
        let shared = world.shared().await;
        // A store that does not answer in time, where the cores are busy, is waited for.
        let Err(OrdersError::MayLackEntries { mark, .. }) = shared.wait_for_orders("first").await else {
            panic!("a new store is accepted by nobody")
        };
        while shared.accept_orders(&mark).await.is_err() {}
        // No process has used it yet, so the wait is left out.
        let mut remove = cmd("HDEL");
        remove.arg(OWNER).arg("owner");
        () = remove.query_async(&mut world.server.connection().await).await.unwrap();
        world
    }

    pub(crate) async fn shared(&self) -> Shared {
        let shared = connect(&self.url).await;
        shared.has_new_token();
        shared
    }

    pub(crate) async fn orders(&self, process: &str) -> Orders {
        self.shared().await.orders(process).await.unwrap()
    }

    /// A client of the process that has these orders.
    pub(crate) async fn client(&self, orders: Orders) -> Client {
        let own = self.sandbox.credentials();
        client(&self.base, &own.api_key, &own.access_token, self.shared().await, orders)
    }

    /// Starts a process of [`owner::child`](crate::owner) that does this.
    pub(crate) fn child(&self, does: &str) -> Child {
        let own = self.sandbox.credentials();
        let said = self.said().display().to_string();
        let facts = [self.base.as_str(), &own.api_key, &own.access_token, &self.url, does, &said].join("\n");
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "owner::child"]).env(CHILD, facts).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap()
    }

    pub(crate) fn said(&self) -> PathBuf {
        self.folder.path().join("said")
    }

    /// Returns how many orders the gateway has of each quantity.
    pub(crate) fn book(&self) -> HashMap<String, usize> {
        let mut book = HashMap::new();
        for order in self.sandbox.state().orders {
            *book.entry(order.qty).or_default() += 1;
        }
        book
    }

    /// Waits until the gateway has so many orders.
    pub(crate) async fn has(&self, orders: usize) {
        timeout(120 * SECOND, async {
            while self.sandbox.state().orders.len() < orders {
                sleep(10 * MS).await;
            }
        })
        .await
        .unwrap();
    }
}

/// Connects, once the store answers in time, which it may not where the cores are busy.
pub(crate) async fn connect(url: &str) -> Shared {
    for _ in 0..100 {
        if let Ok(shared) = Shared::connect(url, &account()).await {
            return shared;
        }
        sleep(200 * MS).await;
    }
    panic!("the store does not answer")
}

pub(crate) fn account() -> Account {
    Account::new("SB0001")
}

pub(crate) fn client(base: &str, key: &str, token: &str, shared: Shared, orders: Orders) -> Client {
    let builder = Client::builder(base.parse().unwrap(), Access::token(key, token).unwrap());
    let builder = builder.paths(Paths::published_client());
    builder.account(account()).shared(shared).shared_orders(orders).build().unwrap()
}

/// The order of that name. Each has a quantity of its own.
pub(crate) fn order(name: usize) -> OrderRequest {
    const REST: &str =
        "symId=EQT_INFY_EQ_NSE&side=buy&type=limit&limitPrice=1500.05&product=intraday&validity=day";
    let form = Form::parse(format!("{REST}&qty={}", name + 1).as_bytes()).unwrap();
    OrderRequest::from_fields(form.iter()).unwrap()
}

pub(crate) fn name(name: usize) -> IntentId {
    IntentId::new(format!("order {name}"))
}

pub(crate) fn sandbox(script: &str) -> Sandbox {
    Sandbox::builder().published_client().script(script).unwrap().build().unwrap()
}
