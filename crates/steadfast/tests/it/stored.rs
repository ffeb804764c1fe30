//! Tokens that outlive the client that fetched them, and clients without a password.

use std::{error::Error, time::Duration};

use steadfast::{
    Access, Client, ErrorKind,
    auth::{ApiKey, Credentials, FileStore, IndividualLogin, TokenSource, TokenStore, TotpSecret},
};
use steadfast_sandbox::Sandbox;
use tempfile::TempDir;

use crate::served::{Served, serve, totp};

fn store(folder: &TempDir) -> FileStore {
    FileStore::open(folder.path().join("auth.json")).unwrap()
}

fn with_password(served: &Served, store: FileStore) -> Client {
    let facts = served.facts.clone();
    let access = Access::totp(totp(facts)).unwrap();
    served.builder(access.store(store)).build().unwrap()
}

/// Creates a source that fetches tokens like `steadfast login` or another program of the account.
fn fetcher(sandbox: &Sandbox, store: FileStore) -> TokenSource {
    let facts = sandbox.credentials();
    let (base, api_key) = (facts.base_url.parse().unwrap(), ApiKey::new(facts.api_key).unwrap());
    let (secret, credentials) =
        (TotpSecret::new(facts.totp_secret).unwrap(), Credentials::new(facts.client_id, facts.password));
    let login =
        IndividualLogin::totp(sandbox.gateway(), &base, api_key.clone(), credentials, secret).unwrap();
    TokenSource::builder(api_key, login).store(store).build()
}

fn chain(error: &dyn Error) -> String {
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {}", chain(source)))
}

#[tokio::test]
async fn a_client_with_a_store_logs_in_once_for_all_that_follow() {
    let (folder, served) = (TempDir::new().unwrap(), serve(Sandbox::builder().build().unwrap()).await);
    assert_eq!(with_password(&served, store(&folder)).orders().await.unwrap(), []);
    assert_eq!(served.sandbox.state().logins.succeeded, 1);

    // A restart, and a program without a password.
    assert_eq!(with_password(&served, store(&folder)).orders().await.unwrap(), []);
    let facts = served.facts.clone();
    let access = Access::stored(facts.api_key, facts.client_id, store(&folder)).unwrap();
    assert_eq!(served.builder(access).build().unwrap().orders().await.unwrap(), []);
    assert_eq!(served.sandbox.state().logins.succeeded, 1);
}

#[tokio::test]
async fn a_client_without_a_password_says_that_somebody_has_to_log_in_and_follows_who_does() {
    let (folder, served) = (TempDir::new().unwrap(), serve(Sandbox::builder().build().unwrap()).await);
    let facts = served.facts.clone();
    let access = Access::stored(facts.api_key, facts.client_id, store(&folder)).unwrap();
    let client = served.builder(access).build().unwrap();
    let error = client.orders().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized, "{}", chain(&error));
    assert_eq!(served.sandbox.state().logins.succeeded, 0, "it never logs in itself");

    assert_eq!(with_password(&served, store(&folder)).orders().await.unwrap(), []);
    // Requests without a token look for a stored one every five seconds.
    tokio::time::sleep(Duration::from_millis(5_100)).await;
    assert_eq!(client.orders().await.unwrap(), []);
    assert_eq!(served.sandbox.state().logins.succeeded, 1);
}

#[tokio::test]
async fn a_store_of_another_account_is_named_and_left_alone() {
    let (folder, sandbox) = (TempDir::new().unwrap(), Sandbox::builder().build().unwrap());
    fetcher(&sandbox, store(&folder)).login().await.unwrap();
    let facts = sandbox.credentials();
    let access = Access::stored(facts.api_key, "somebody else", store(&folder)).unwrap();
    let client = Client::builder(facts.base_url.parse().unwrap(), access);
    let error = client.build_over(sandbox.gateway()).unwrap().orders().await.unwrap_err();
    let said = chain(&error);
    assert!(said.contains("belongs to another base address, api_key or user"), "{said}");
    assert!(store(&folder).summary().await.unwrap().unwrap().issued_at.is_some(), "untouched");
}
