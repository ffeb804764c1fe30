#![cfg(unix)]

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown, symlink},
    path::{Path, PathBuf},
};

use steadfast_auth::{
    AuthErrorKind, Credentials, FileStore, Identity, IndividualLogin, StoreError, Stored, TokenSource,
    TokenStore, TotpSecret,
};
use tempfile::{TempDir, tempdir};

use crate::support::{Answer, Clock, Script, TOTP_SECRET, api_key, base, secs, totp_login};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Returns a store with the record of a login.
async fn kept() -> (TempDir, FileStore, Clock) {
    let directory = tempdir().unwrap();
    let store = FileStore::open(directory.path().join("state/auth.json")).unwrap();
    let clock = Clock::new();
    let logins = Script::new(&clock, [Answer::Token("one")]);
    source(&clock, &logins, &store).login().await.unwrap();
    (directory, store, clock)
}

fn source(clock: &Clock, logins: &Script, store: &FileStore) -> TokenSource {
    TokenSource::builder(api_key(), totp_login(logins.clone()))
        .clock(clock.wall())
        .store(store.clone())
        .build()
}

fn chain(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {}", chain(source)))
}

fn user() -> Identity {
    Identity::new(&base().to_string(), &api_key(), "U1")
}

/// Returns the file for what the user's logins with several API keys have in common.
fn user_file(store: &FileStore) -> PathBuf {
    store.of_user(user().user_label().unwrap()).unwrap().path().to_owned()
}

#[tokio::test(start_paused = true)]
async fn everything_it_makes_is_its_owners_alone_and_nothing_is_left_behind() {
    let (_directory, store, _) = kept().await;
    let directory = store.path().parent().unwrap();
    assert_eq!(mode(directory), 0o700);
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(mode(&entry.path()), 0o600);
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort();
    let user = user_file(&store).file_name().unwrap().to_str().unwrap().to_owned();
    let users = [user.clone(), user + ".lock"];
    assert_eq!(names[..3], ["auth.json", "auth.json.lock", "otp.place"]);
    assert_eq!(names[3..], users);
}

#[tokio::test(start_paused = true)]
async fn what_others_may_read_and_what_leads_elsewhere_is_refused_by_name() {
    let (_directory, store, clock) = kept().await;
    let path = store.path();
    for open in [0o604, 0o640, 0o660, 0o602] {
        set_mode(path, open);
        let Err(StoreError::OpenToOthers { place, mode }) = FileStore::open(path) else { panic!("{open:o}") };
        assert_eq!((place.as_str(), mode), (path.to_str().unwrap(), open));
        // A store that was opened before sees it too, and nothing is sent.
        let logins = Script::new(&clock, [Answer::Token("two")]);
        let error = source(&clock, &logins, &store).login().await.unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Unavailable);
        assert!(chain(&error).contains("auth.json is open to others"), "{}", chain(&error));
        assert_eq!(logins.count(), 0);
    }
    set_mode(path, 0o600);

    let link = path.with_file_name("link.json");
    symlink(path, &link).unwrap();
    assert!(matches!(FileStore::open(&link), Err(StoreError::NotAFile { .. })));
    fs::create_dir(path.with_file_name("directory.json")).unwrap();
    assert!(matches!(
        FileStore::open(path.with_file_name("directory.json")),
        Err(StoreError::NotAFile { .. })
    ));
    set_mode(path.parent().unwrap(), 0o777);
    assert!(matches!(FileStore::open(path), Err(StoreError::OpenToOthers { mode: 0o777, .. })));
    set_mode(path.parent().unwrap(), 0o700);
    FileStore::open(path).unwrap();
}

/// Another user could put a file, a lock or a link there beforehand, and read the token or block logins.
#[tokio::test(start_paused = true)]
async fn x03_what_belongs_to_another_user_is_refused_by_name() {
    // Only root can give a file away; other users test with a file of root's.
    if !rustix::process::geteuid().is_root() {
        assert!(matches!(FileStore::open("/etc/passwd"), Err(StoreError::OfAnother { owner: 0, .. })));
        return;
    }
    let nobody = 65_534;
    let (_directory, store, clock) = kept().await;
    for name in ["auth.json", "auth.json.lock", "otp.place"] {
        let path = store.path().with_file_name(name);
        store.forget_token().await.unwrap();
        chown(&path, Some(nobody), None).unwrap();
        let logins = Script::new(&clock, [Answer::Token("two")]);
        let ended = source(&clock, &logins, &store).login().await;
        if name == "otp.place" {
            // The places are only a courtesy to other accounts: without them the service answers 429 at worst.
            ended.unwrap();
        } else {
            let said = chain(&ended.unwrap_err());
            let expected = format!("{} belongs to another user (user id {nobody})", path.display());
            assert!(said.contains(&expected), "{said}");
            assert_eq!(logins.count(), 0, "{name}");
        }
        chown(&path, Some(0), None).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn x03_no_file_of_the_store_is_opened_through_a_link() {
    let (_directory, store, clock) = kept().await;
    store.forget_token().await.unwrap();
    let elsewhere = store.path().with_file_name("elsewhere");
    for name in ["auth.json", "auth.json.lock"] {
        let path = store.path().with_file_name(name);
        fs::rename(&path, &elsewhere).unwrap();
        symlink(&elsewhere, &path).unwrap();
        let logins = Script::new(&clock, [Answer::Token("two")]);
        let error = source(&clock, &logins, &store).login().await.unwrap_err();
        assert!(chain(&error).contains(&format!("{name} is a link")), "{}", chain(&error));
        assert_eq!(logins.count(), 0, "{name}");
        fs::remove_file(&path).unwrap();
        fs::rename(&elsewhere, &path).unwrap();
    }
}

/// Each damaged record used to allow one more login, and the token was lost silently.
#[tokio::test(start_paused = true)]
async fn t01_a_damaged_record_stops_logins_until_somebody_allows_them() {
    for damaged in ["", "{\"version\":1,\"rev", "null", "\u{0}\u{0}", "{}\n{}"] {
        for is_users in [false, true] {
            let (_directory, store, clock) = kept().await;
            let place = if is_users { user_file(&store) } else { store.path().to_owned() };
            fs::write(&place, damaged).unwrap();
            let logins = Script::new(&clock, [Answer::Token("two")]);
            let named = format!("{} is damaged", place.display());
            for _ in 0..3 {
                let error = source(&clock, &logins, &store).login().await.unwrap_err();
                assert!(chain(&error).contains(&named), "{}", chain(&error));
                let error = source(&clock, &logins, &store).restore().await.unwrap_err();
                assert!(error.to_string().contains(&named), "{error}");
                let error = store.summary_of(&user()).await.unwrap_err();
                assert!(error.to_string().contains(&named), "{error}");
            }
            if !is_users {
                store.forget_token().await.unwrap_err();
            }
            assert_eq!((fs::read_to_string(&place).unwrap().as_str(), logins.count()), (damaged, 0));

            store.reset_of(&user()).await.unwrap();
            source(&clock, &logins, &store).login().await.unwrap();
            assert_eq!(store.summary_of(&user()).await.unwrap().unwrap().failures, 0);
        }
    }
}

/// A program may allow its own logins too. The store learns it in the background, before or after the next login.
#[tokio::test(start_paused = true)]
async fn t01_a_reset_of_the_source_begins_damaged_records_anew() {
    for pause in [secs(0), secs(1)] {
        let (_directory, store, clock) = kept().await;
        fs::write(store.path(), "{").unwrap();
        fs::write(user_file(&store), "{").unwrap();
        let logins = Script::new(&clock, [Answer::Token("two")]);
        let source = source(&clock, &logins, &store);
        source.login().await.unwrap_err();
        source.reset();
        tokio::time::sleep(pause).await;
        source.login().await.unwrap();
        assert_eq!(store.summary_of(&user()).await.unwrap().unwrap().failures, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_of_another_version_or_account_is_refused_and_left_as_it_is() {
    let (_directory, store, clock) = kept().await;
    let other = IndividualLogin::totp(
        Script::new(&clock, [Answer::Token("two")]),
        &base(),
        api_key(),
        Credentials::new("U2", "hunter2"),
        TotpSecret::new(TOTP_SECRET).unwrap(),
    );
    let before = fs::read(store.path()).unwrap();
    let source =
        TokenSource::builder(api_key(), other.unwrap()).clock(clock.wall()).store(store.clone()).build();
    let error = source.login().await.unwrap_err();
    assert!(chain(&error).contains("belongs to another base address, api_key or user"), "{}", chain(&error));
    assert_eq!(fs::read(store.path()).unwrap(), before);

    let newer = r#"{"version":7,"revision":9}"#;
    fs::write(store.path(), newer).unwrap();
    assert!(matches!(store.load().await, Err(StoreError::UnknownVersion { version: 7, .. })));
    assert!(store.reset().await.is_err());
    assert_eq!(fs::read_to_string(store.path()).unwrap(), newer);
}

/// Regression: the first user who was typed had the store for good, also if he was mistyped and no login of his succeeded.
#[tokio::test(start_paused = true)]
async fn a_store_that_names_no_user_is_its_tokens_user_and_else_whoever_logs_in() {
    let directory = tempdir().unwrap();
    let store = FileStore::open(directory.path().join("state/auth.json")).unwrap();
    let clock = Clock::new();
    let source = |user: &str, password: &str, logins: &Script| {
        let (credentials, secret) = (Credentials::new(user, password), TotpSecret::new(TOTP_SECRET).unwrap());
        let login = IndividualLogin::totp(logins.clone(), &base(), api_key(), credentials, secret).unwrap();
        TokenSource::builder(api_key(), login).clock(clock.wall()).unnamed_store(store.clone()).build()
    };
    let failures = async || store.summary().await.unwrap().unwrap().failures;
    let refused = Script::new(&clock, [Answer::Status(401), Answer::Status(401)]);
    assert_eq!(source("U9", "hunter2", &refused).login().await.unwrap_err().kind(), AuthErrorKind::Latched);
    assert_eq!((refused.count(), failures().await), (2, 2));
    let granted = Script::new(&clock, [Answer::Token("one")]);
    source("U1", "hunter2", &granted).login().await.unwrap();
    assert_eq!(failures().await, 0);
    // Verbs that do not know the user find his token.
    let nobody = Stored::new(Identity::new(&base().to_string(), &api_key(), ""));
    let nobody = TokenSource::builder(api_key(), nobody).clock(clock.wall()).store(store.clone()).build();
    assert!(nobody.restore().await.unwrap());
    // No other user may use or replace the token.
    let other = Script::new(&clock, [Answer::Token("two"), Answer::Status(401), Answer::Status(401)]);
    for user in ["U9", "U2"] {
        let error = source(user, "hunter2", &other).login().await.unwrap_err();
        assert!(chain(&error).contains("belongs to another base address"), "{user}: {}", chain(&error));
    }
    assert_eq!(other.count(), 0);
    store.forget_token().await.unwrap();
    source("U2", "hunter2", &other).login().await.unwrap();
    // The wrong logins of each user count on, whoever used the store meanwhile: three in all.
    store.forget_token().await.unwrap();
    source("U9", "hunter3", &other).login().await.unwrap_err();
    assert_eq!((other.count(), failures().await), (2, 3));
    source("U1", "hunter2", &other).login().await.unwrap_err();
    assert_eq!(other.count(), 2, "whose they are is not known for certain");
    store.reset().await.unwrap();
    other.answer_with([Answer::Token("three"), Answer::Token("four")]);
    source("U1", "hunter2", &other).login().await.unwrap();
    // A login that does not know its user, as in a browser.
    store.forget_token().await.unwrap();
    source("", "hunter2", &other).login().await.unwrap();
    assert_eq!(other.count(), 4);
    source("U1", "hunter2", &other).login().await.unwrap_err();
}

/// The OTP zone counts by address, and all accounts of a machine share it (§8).
#[tokio::test(start_paused = true)]
async fn logins_of_eight_accounts_at_once_keep_their_distance_in_the_otp_zone() {
    let (directory, clock) = (tempdir().unwrap(), Clock::new());
    let logins = Script::new(&clock, [Answer::Token("one")]);
    let account = |number: usize| {
        let store = FileStore::open(directory.path().join(format!("state/{number}.json"))).unwrap();
        let credentials = Credentials::new(format!("U{number}"), "hunter2");
        let secret = TotpSecret::new(TOTP_SECRET).unwrap();
        let login = IndividualLogin::totp(logins.clone(), &base(), api_key(), credentials, secret).unwrap();
        TokenSource::builder(api_key(), login).clock(clock.wall()).store(store).build()
    };
    let accounts: Vec<_> = (0..8).map(account).collect();
    let tasks: Vec<_> =
        accounts.iter().cloned().map(|source| tokio::spawn(async move { source.login().await })).collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    let mut sent: Vec<_> = logins.seen().iter().map(|seen| seen.at).collect();
    sent.sort();
    assert_eq!(sent.len(), 8);
    assert!(sent.windows(4).all(|four| four[3] - four[0] >= secs(1)), "more than three a second");
}

#[tokio::test(start_paused = true)]
async fn the_record_holds_the_token_and_no_other_secret() {
    let (_directory, store, _) = kept().await;
    let text = fs::read_to_string(store.path()).unwrap();
    assert!(text.contains("\"access_token\":\"one\""));
    for secret in ["K3y", "U1", "hunter2", TOTP_SECRET] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_one_processs_and_ends_when_it_is_dropped() {
    let (_directory, store, _) = kept().await;
    let other = FileStore::open(store.path()).unwrap();
    let lease = store.lease().await.unwrap();
    let waiting = tokio::spawn(async move { other.lease().await.map(drop) });
    tokio::time::sleep(secs(60)).await;
    assert!(!waiting.is_finished());
    drop(lease);
    waiting.await.unwrap().unwrap();
}

#[test]
fn what_a_store_of_ones_own_says_is_the_cause_of_its_error() {
    let error = StoreError::Other("the vault is sealed".into());
    let cause = std::error::Error::source(&error).map(ToString::to_string);
    assert_eq!(cause.as_deref(), Some("the vault is sealed"));
}

#[test]
fn a_store_is_named_by_its_place() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("auth.json");
    assert_eq!(FileStore::open(&path).unwrap().name(), path.display().to_string());
    assert_eq!(steadfast_auth::MemoryStore::new().name(), "memory");
}
