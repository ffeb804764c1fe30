//! The spent limits of a stored token are kept beside it.

use std::time::Duration;

use steadfast::{
    Access, Client, InvalidClient,
    auth::FileStore,
    limit::{Account, Answer, Lane, ScopeKeys, Zone, ZoneLimiter},
};
use steadfast_sandbox::Sandbox;
use tokio::time::Instant;

const ACCOUNT: &str = "one";

fn client(sandbox: &Sandbox, store: FileStore) -> Result<Client, InvalidClient> {
    let facts = sandbox.credentials();
    let access = Access::stored(facts.api_key, facts.client_id, store).unwrap();
    let builder = Client::builder(facts.base_url.parse().unwrap(), access);
    builder.account(Account::new(ACCOUNT)).build_over(sandbox.gateway())
}

fn keys(sandbox: &Sandbox, limiter: &ZoneLimiter) -> ScopeKeys {
    let base: steadfast::BaseUrl = sandbox.credentials().base_url.parse().unwrap();
    limiter.keys(base.uri().authority().unwrap().as_str(), &Account::new(ACCOUNT))
}

async fn spend(sandbox: &Sandbox, limiter: &ZoneLimiter, n: u32) {
    for _ in 0..n {
        let asked = limiter.acquire(&[Zone::PLACE_ORDER], keys(sandbox, limiter), Lane::Trading);
        let mut permit = asked.await.unwrap();
        permit.sent();
        permit.settle(Answer::Accepted);
    }
}

fn wait(sandbox: &Sandbox, limiter: &ZoneLimiter, zone: Zone) -> Duration {
    let at = limiter.earliest(&[zone], keys(sandbox, limiter), Lane::Trading).unwrap();
    at.saturating_duration_since(Instant::now())
}

#[tokio::test(start_paused = true)]
async fn the_next_client_of_a_stored_token_begins_with_what_this_one_has_spent() {
    let (folder, sandbox) = (tempfile::TempDir::new().unwrap(), Sandbox::builder().build().unwrap());
    let store = || FileStore::open(folder.path().join("token")).unwrap();
    let first = client(&sandbox, store()).unwrap();
    spend(&sandbox, first.limiter(), 10).await;
    assert!(wait(&sandbox, first.limiter(), Zone::PLACE_ORDER) > Duration::ZERO);

    let beside = client(&sandbox, store()).unwrap();
    assert_eq!(
        wait(&sandbox, beside.limiter(), Zone::PLACE_ORDER),
        Duration::ZERO,
        "a client beside it works, but sees nothing of it"
    );
    drop((first, beside));
    let next = client(&sandbox, store()).unwrap();
    assert!(wait(&sandbox, next.limiter(), Zone::PLACE_ORDER) > Duration::ZERO);
    assert_eq!(wait(&sandbox, next.limiter(), Zone::GENERAL), Duration::ZERO, "and no more than that");
}

#[tokio::test(start_paused = true)]
async fn a_stored_token_of_which_nothing_else_is_known_is_taken_for_spent() {
    let (folder, sandbox) = (tempfile::TempDir::new().unwrap(), Sandbox::builder().build().unwrap());
    let path = folder.path().join("token");
    let store = FileStore::open(&path).unwrap();
    let empty = client(&sandbox, store.clone()).unwrap();
    assert_eq!(wait(&sandbox, empty.limiter(), Zone::GENERAL), Duration::ZERO, "there is no token yet");
    drop(empty);
    std::fs::remove_file(folder.path().join("token.limits")).unwrap();
    std::fs::write(&path, "").unwrap();
    let known = client(&sandbox, store).unwrap();
    assert!(wait(&sandbox, known.limiter(), Zone::GENERAL) > Duration::from_secs(59));
}
