//! The token of an account on a real server: what others see of it, and who may replace it.

use std::time::Duration;

use redis::cmd;
use steadfast_auth::{Record, StoreError, StoreLease, TokenStore};
use steadfast_limit::Account;
use steadfast_redis::{RedisStore, Seal, Shared};
use tokio::{
    runtime,
    time::{sleep, timeout},
};

use crate::{kept::seal, server::Server};

const TOKEN: &str = "canary-token-0123456789";
const KEY: &str = "{sf:SB0001}:token";

async fn shared(server: &Server) -> Shared {
    Shared::connect(&server.url(), &Account::new("SB0001")).await.unwrap()
}

async fn store(server: &Server) -> RedisStore {
    shared(server).await.token_store(seal())
}

fn record(revision: u64) -> Record {
    let text = format!(
        r#"{{"version":5,"revision":{revision},"account":null,"token":{{"serial":{revision},"access_token":"{TOKEN}",
        "issued_ms":5,"life_ms":60000,"worked":true}},"failures":{{"account":0,"last":{{"credentials":null,"spent":0,
        "latched":false}},"others":[]}},"unknown_ms":[],"totp_steps":[],"sessions_ms":[],"suspected_ms":null}}"#
    );
    Record::decode(text.as_bytes(), "test").unwrap()
}

async fn revision(store: &RedisStore) -> Option<u64> {
    store.load().await.unwrap().map(|record| record.revision())
}

fn chain(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {}", chain(source)))
}

#[tokio::test]
async fn a_dump_of_the_store_shows_no_token() {
    let Some(server) = Server::start().await else { return };
    let store = store(&server).await;
    assert_eq!(revision(&store).await, None);
    store.lease().await.unwrap().save(&record(1), 0).await.unwrap();
    assert_eq!(revision(&store).await, Some(1));
    let mut connection = server.connection().await;
    let dump: Vec<u8> = cmd("HGET").arg(KEY).arg("record").query_async(&mut connection).await.unwrap();
    for piece in TOKEN.as_bytes().windows(6) {
        assert!(!dump.windows(6).any(|part| part == piece));
    }
    assert!(!format!("{store:?}").contains("canary"));
    assert!(store.name().contains(KEY) && server.url().contains(store.name().split(' ').next().unwrap()));
}

#[tokio::test]
async fn a_record_of_another_key_is_refused_by_name_and_survives_a_reset() {
    let Some(server) = Server::start().await else { return };
    let (own, shared) = (store(&server).await, shared(&server).await);
    own.lease().await.unwrap().save(&record(1), 0).await.unwrap();
    let others = [
        (shared.token_store(Seal::of_text("02".repeat(32)).unwrap()), "is sealed with another key"),
        (shared.unsealed_token_store().unwrap(), "is sealed, and no key is given"),
    ];
    for (other, why) in others {
        for error in [other.load().await.unwrap_err(), other.reset().await.unwrap_err()] {
            let said = chain(&error);
            assert!(said.contains(why) && said.contains(KEY), "{said}");
        }
    }
    assert_eq!(revision(&own).await, Some(1));
    // One that was written without a key is read with one, and sealed with the next write.
    let open = shared.unsealed_token_store().unwrap().of_user("u1").unwrap();
    open.lease().await.unwrap().save(&record(1), 0).await.unwrap();
    let sealed = own.of_user("u1").unwrap();
    sealed.lease().await.unwrap().save(&record(2), 1).await.unwrap();
    assert!(open.load().await.is_err());
    assert_eq!(revision(&sealed).await, Some(2));
}

#[tokio::test]
async fn a_damaged_or_exchanged_record_stops_until_it_is_reset() {
    let Some(server) = Server::start().await else { return };
    let store = store(&server).await;
    for change in [("record", "x"), ("record", ""), ("revision", "7"), ("revision", "none")] {
        let mut connection = server.connection().await;
        () = cmd("DEL").arg(KEY).query_async(&mut connection).await.unwrap();
        store.lease().await.unwrap().save(&record(1), 0).await.unwrap();
        () = cmd("HSET").arg(KEY).arg(change.0).arg(change.1).query_async(&mut connection).await.unwrap();
        let error = store.load().await.unwrap_err();
        assert!(
            matches!(&error, StoreError::Garbled { place } if place.contains(KEY)),
            "{change:?}: {error}"
        );
        store.reset().await.unwrap();
        assert_eq!(revision(&store).await, Some(1), "{change:?}");
    }
}

#[tokio::test]
async fn the_lease_is_one_processs_and_ends_when_it_is_dropped() {
    let Some(server) = Server::start().await else { return };
    let (one, other) = (store(&server).await, store(&server).await);
    // It is renewed for as long as it is held.
    let one = one.lease_life(Duration::from_millis(400));
    let lease = one.lease().await.unwrap();
    let waiting = tokio::spawn(async move { other.lease().await.map(drop) });
    sleep(Duration::from_millis(1_000)).await;
    assert!(!waiting.is_finished());
    assert!(one.try_lease().await.unwrap().is_none());
    drop(lease);
    waiting.await.unwrap().unwrap();
}

/// Against stores whose lease is shorter than the login: the older record of the slow login replaces the newer one.
#[tokio::test]
async fn t15_a_process_that_was_stopped_replaces_nothing_newer_and_ends_no_other_lease() {
    let Some(server) = Server::start().await else { return };
    let life = Duration::from_millis(300);
    let zombies = store(&server).await.lease_life(life);
    // A runtime that stands still between its calls, as a stopped process does.
    let (process, mut zombie) = stopped(move || {
        let process = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let lease = process.block_on(async { zombies.try_lease().await.unwrap().unwrap() });
        (process, lease)
    })
    .await;
    let store = store(&server).await.lease_life(life);
    let mut lease = timeout(10 * life, store.lease()).await.unwrap().unwrap();
    lease.save(&record(1), 0).await.unwrap();
    lease.save(&record(2), 1).await.unwrap();
    stopped(move || {
        process.block_on(async {
            for (old, over) in [(1, 0), (2, 1)] {
                let saved = zombie.save(&record(old), over).await;
                assert!(matches!(saved, Err(StoreError::Superseded { .. })), "{saved:?}");
            }
            drop(zombie);
            sleep(Duration::from_millis(100)).await;
        });
    })
    .await;
    assert_eq!(revision(&store).await, Some(2));
    assert!(store.try_lease().await.unwrap().is_none(), "the lease is still its owner's");
}

async fn stopped<T: Send + 'static>(process: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(process).await.unwrap()
}

/// The OTP zone counts by address (§8): three a second.
#[tokio::test]
async fn logins_of_all_accounts_keep_their_distance_in_the_otp_zone() {
    let Some(server) = Server::start().await else { return };
    let of = async |account: &str| {
        let shared = Shared::connect(&server.url(), &Account::new(account)).await.unwrap();
        shared.token_store(seal())
    };
    let (one, two) = (of("SB0001").await, of("SB0002").await);
    let (mut first, mut second) = (one.lease().await.unwrap(), two.lease().await.unwrap());
    let mut waits = Vec::new();
    for _ in 0..2 {
        waits.push(first.otp_place(0).await.unwrap());
        waits.push(second.otp_place(0).await.unwrap());
    }
    assert_eq!(waits[0], Duration::ZERO);
    for pair in waits.windows(2) {
        assert!(pair[1] - pair[0] > Duration::from_millis(300), "{waits:?}");
    }
    let elsewhere = of("SB0003").await.address("office");
    assert_eq!(elsewhere.lease().await.unwrap().otp_place(0).await.unwrap(), Duration::ZERO);
}

#[tokio::test]
async fn a_store_that_cannot_be_reached_is_named() {
    let Some(mut server) = Server::start().await else { return };
    let store = store(&server).await;
    server.end();
    for error in [store.load().await.unwrap_err(), store.try_lease().await.unwrap_err()] {
        let said = chain(&error);
        assert!(said.contains("cannot be reached") && said.contains(store.name().split(' ').next().unwrap()));
    }
}
