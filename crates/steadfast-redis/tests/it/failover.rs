//! Servers that sentinels watch.

use std::{
    collections::HashMap,
    fs,
    net::TcpListener,
    process::{Child, Stdio},
};

use redis::cmd;
use steadfast_limit::Account;
use steadfast_redis::{Shared, StoreError, Unfit};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::{
    faults::{REPLICATED, has_replicas},
    server::{self, Server},
    world::{MS, SECOND},
};

/// Two replicas of a server, and three sentinels that put one of them in its place. The server is the caller's.
pub(crate) struct Watched {
    _replicas: [Server; 2],
    sentinels: Vec<(Child, u16)>,
    _folder: TempDir,
}

impl Watched {
    /// Starts a server and what watches it. `None` if no server is installed.
    pub(crate) async fn start(settings: &[&str]) -> Option<(Server, Self)> {
        let server = Server::start_with(settings).await?;
        let port = server.port().to_string();
        let of: Vec<&str> = settings.iter().copied().chain(["--replicaof", "127.0.0.1", &port]).collect();
        let replicas = [Server::start_with(&of).await?, Server::start_with(&of).await?];
        if settings == REPLICATED {
            has_replicas(&server, 2).await;
        }
        let folder = TempDir::new().unwrap();
        let sentinels = (0..3).map(|it| sentinel(&folder, it, server.port())).collect();
        let watched = Self { _replicas: replicas, sentinels, _folder: folder };
        for (_, sentinel) in &watched.sentinels {
            knows_all(*sentinel).await;
        }
        Some((server, watched))
    }

    pub(crate) fn url(&self) -> String {
        let hosts: Vec<String> = self.sentinels.iter().map(|(_, port)| format!("127.0.0.1:{port}")).collect();
        format!("redis-sentinel://{}/orders", hosts.join(","))
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        for (sentinel, _) in &mut self.sentinels {
            // It may have ended by itself.
            let _ = sentinel.kill();
            let _ = sentinel.wait();
        }
    }
}

fn sentinel(folder: &TempDir, it: usize, server: u16) -> (Child, u16) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let file = folder.path().join(format!("sentinel-{it}.conf"));
    let settings = format!(
        "port {port}\nbind 127.0.0.1\nsentinel monitor orders 127.0.0.1 {server} 2\n\
         sentinel down-after-milliseconds orders 1000\nsentinel failover-timeout orders 6000\n"
    );
    fs::write(&file, settings).unwrap();
    let mut command = server::program();
    command.arg(file).arg("--sentinel").current_dir(folder.path());
    (command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap(), port)
}

/// Waits until a sentinel knows the replicas and the other sentinels.
async fn knows_all(port: u16) {
    for _ in 0..400 {
        if let Ok(mut connection) =
            redis::Client::open(("127.0.0.1", port)).unwrap().get_multiplexed_async_connection().await
        {
            let told: Result<HashMap<String, String>, _> =
                cmd("SENTINEL").arg("MASTER").arg("orders").query_async(&mut connection).await;
            let is = |field, expected| {
                told.as_ref().is_ok_and(|told| told.get(field).is_some_and(|it| it == expected))
            };
            if is("num-slaves", "2") && is("num-other-sentinels", "2") {
                return;
            }
        }
        sleep(50 * MS).await;
    }
    panic!("the sentinels do not find each other");
}

#[tokio::test]
async fn a_store_is_found_where_most_sentinels_say() {
    let account = Account::new("SB0001");
    let Some((mut server, mut watched)) = Watched::start(&REPLICATED).await else { return };
    let shared = Shared::connect(&watched.url(), &account).await.unwrap();
    assert!(shared.health().await.unwrap().store.starts_with("orders of sentinels 127.0.0.1:"));
    let other = watched.url().replace("/orders", "/others");
    let unknown = Shared::connect(&other, &account).await;
    assert!(matches!(unknown, Err(StoreError::Unreachable { .. })), "{unknown:?}");
    server.end();
    let began = Instant::now();
    while shared.health().await.is_err() {
        assert!(began.elapsed() < 30 * SECOND, "no replica takes its place");
        sleep(100 * MS).await;
    }
    println!("a replica was found after {:?}", began.elapsed());
    // One sentinel alone may not have heard of the last failover.
    for (sentinel, _) in &mut watched.sentinels[..2] {
        sentinel.kill().unwrap();
        sentinel.wait().unwrap();
    }
    let alone = Shared::connect(&watched.url(), &account).await;
    let Err(StoreError::Unreachable { why, .. }) = &alone else { panic!("{alone:?}") };
    assert!(why.contains("sentinels"), "{why}");
}

#[tokio::test]
async fn a_store_that_writes_without_its_replicas_is_refused_where_sentinels_watch_it() {
    let Some((_server, watched)) = Watched::start(&[]).await else { return };
    let refused = Shared::connect(&watched.url(), &Account::new("SB0001")).await;
    assert!(matches!(&refused, Err(StoreError::Unfit { why: Unfit::ForgetsAtPromotion, .. })), "{refused:?}");
}
