//! State that sources share through a store, and that outlives them. `steadfast-redis` runs all of this against its own
//! store, too.

use std::{
    future::Future,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use steadfast_auth::{
    ApiKey, AuthErrorKind, AuthHeaderLayer, Credentials, FileStore, Identity, IndividualLogin, Login, Record,
    RefreshLayer, Renewal, StoreError, StoreLease, Stored, Summary, TokenPhase, TokenSource, TokenStore,
    TotpSecret,
};
use steadfast_spec::BaseUrl;
use tokio::time::Instant;
use tower::{Layer, ServiceExt};

use crate::{
    kept,
    support::{Answer, Clock, Script, TOTP_SECRET, api_key, base, hours, place_order, secs, totp_login},
};

/// Returns a source as in a process of its own, on a shared store.
fn process(clock: &Clock, logins: &Script, store: impl TokenStore) -> TokenSource {
    TokenSource::builder(api_key(), totp_login(logins.clone()))
        .clock(clock.wall())
        .renewal(Renewal::new().jitter_seed(7))
        .store(store)
        .build()
}

fn header(source: &TokenSource) -> String {
    // The token is not shown, so find it by what the source quotes.
    ["one", "two", "three"].into_iter().find(|token| source.is_quoted_in(token)).unwrap_or("none").to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_restart_takes_the_stored_token_and_logs_in_no_more() {
    let (clock, store) = (Clock::new(), kept::store());
    let logins = Script::new(&clock, [Answer::Token("one")]);
    process(&clock, &logins, store.clone()).login().await.unwrap();
    for _ in 0..5 {
        let restarted = process(&clock, &logins, store.clone());
        restarted.login().await.unwrap();
        assert_eq!(restarted.status().phase, TokenPhase::Valid);
        assert_eq!(header(&restarted), "one");
    }
    assert_eq!(logins.count(), 1);
    tokio::time::advance(hours(25)).await;
    process(&clock, &logins, store).login().await.unwrap();
    assert_eq!(logins.count(), 2, "an ended token is no token");
}

#[tokio::test(start_paused = true)]
async fn eight_sources_that_start_cold_make_one_login() {
    let (clock, store) = (Clock::new(), kept::store());
    let logins = Script::new(&clock, [Answer::Token("one")]).taking(secs(2));
    let sources: Vec<_> = (0..8).map(|_| process(&clock, &logins, store.clone())).collect();
    let tasks: Vec<_> =
        sources.iter().cloned().map(|source| tokio::spawn(async move { source.login().await })).collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(logins.count(), 1);
    assert!(sources.iter().all(|source| header(source) == "one"));
}

#[tokio::test(start_paused = true)]
async fn the_budget_and_the_latch_outlive_the_process() {
    let (clock, store) = (Clock::new(), kept::store());
    let logins = Script::new(&clock, [Answer::Status(401)]);
    for _ in 0..20 {
        let error = process(&clock, &logins, store.clone()).login().await.unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Latched);
    }
    assert_eq!(logins.count(), 2);

    // Other credentials start with a fresh budget.
    let corrected = {
        let secret = TotpSecret::new(TOTP_SECRET).unwrap();
        let credentials = Credentials::new("U1", "corrected");
        IndividualLogin::totp(logins.clone(), &base(), api_key(), credentials, secret).unwrap()
    };
    logins.answer_with([Answer::Token("one")]);
    let source = TokenSource::builder(api_key(), corrected).clock(clock.wall()).store(store.clone()).build();
    source.login().await.unwrap();
    assert_eq!(logins.count(), 3);
}

#[test]
fn a_process_that_dies_during_its_exchange_or_after_a_refusal_has_spent_budget() {
    for answer in [Answer::Hang, Answer::Status(401)] {
        let store = kept::store();
        let mut left = 0;
        for run in 0..20 {
            // A runtime of its own, which ends like a process, with all its tasks.
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
            runtime.unwrap().block_on(async {
                let clock = Clock::new();
                let logins = Script::new(&clock, [answer.clone()]);
                let source = process(&clock, &logins, store.clone());
                let ended = tokio::spawn(async move { source.login().await });
                while logins.count() == 0 && !ended.is_finished() {
                    tokio::time::sleep(secs(1)).await;
                }
                left += logins.count();
                if logins.count() == 0 {
                    assert_eq!(ended.await.unwrap().unwrap_err().kind(), AuthErrorKind::Latched);
                }
            });
            assert_eq!(left, 2.min(run + 1), "{answer:?}");
        }
    }
}

/// As [`process`], with another password.
fn with_password(clock: &Clock, logins: &Script, store: impl TokenStore, password: &str) -> TokenSource {
    let secret = TotpSecret::new(TOTP_SECRET).unwrap();
    let credentials = Credentials::new("U1", password);
    let login = IndividualLogin::totp(logins.clone(), &base(), api_key(), credentials, secret).unwrap();
    TokenSource::builder(api_key(), login).clock(clock.wall()).store(store).build()
}

/// Failures used to be counted only for the credentials used last. Two programs with different wrong passwords reset
/// each other's count with every start, and made 40 wrong logins.
#[test]
fn t21_two_wrong_passwords_and_twenty_restarts_each_make_three_logins() {
    // Refused, and killed during the exchange.
    for answer in [Answer::Status(401), Answer::Hang] {
        let directory = tempfile::tempdir().unwrap();
        let store = FileStore::open(directory.path().join("auth.json")).unwrap();
        let mut left = 0;
        for password in ["wrong", "also wrong"].repeat(20) {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
            runtime.unwrap().block_on(async {
                let clock = Clock::new();
                let logins = Script::new(&clock, [answer.clone()]);
                let source = with_password(&clock, &logins, store.clone(), password);
                let ended = tokio::spawn(async move { source.login().await });
                let hangs = matches!(answer, Answer::Hang);
                while !(ended.is_finished() || hangs && logins.count() > 0) {
                    tokio::time::sleep(secs(1)).await;
                }
                left += logins.count();
            });
        }
        assert_eq!(left, 3, "{answer:?}");
        let summary = block_on(store.summary()).unwrap().unwrap();
        assert_eq!((summary.failures, summary.latched, summary.needs_reset), (3, true, true), "{answer:?}");
    }
}

/// Every spelling of an account used to have a file of its own and two wrong logins. Five spellings locked the account.
#[tokio::test(start_paused = true)]
async fn t21_all_spellings_of_an_account_have_one_budget() {
    let directory = tempfile::tempdir().unwrap();
    let clock = Clock::new();
    let logins = Script::new(&clock, [Answer::Status(401)]);
    // As the command line does: one file for each account.
    let source = |base: &str, user: &str, password: &str| {
        let (base, secret) = (BaseUrl::new(base).unwrap(), TotpSecret::new(TOTP_SECRET).unwrap());
        let credentials = Credentials::new(user, password);
        let login = IndividualLogin::totp(logins.clone(), &base, api_key(), credentials, secret).unwrap();
        let label = Login::identity(&login).unwrap().label();
        let store = FileStore::open(directory.path().join(format!("auth-{label}.json"))).unwrap();
        TokenSource::builder(api_key(), login).clock(clock.wall()).store(store).build()
    };
    let spellings = [
        ("https://api.example/tradeapi/v2", "U1"),
        ("HTTPS://api.example/tradeapi/v2", "U1"),
        ("https://API.example/tradeapi/v2", "u1"),
        ("https://api.example:443/tradeapi/v2", "U1 "),
        ("https://api.example./tradeapi//v2/", " u1"),
    ];
    for (base, user) in spellings.repeat(4) {
        let error = source(base, user, "wrong").login().await.unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Latched, "{base} {user:?}");
    }
    assert_eq!(logins.count(), 2);
    // A success with one spelling restores all.
    logins.answer_with([Answer::Token("one")]);
    for (base, user) in spellings {
        let source = source(base, user, "right");
        source.login().await.unwrap();
        assert_eq!(header(&source), "one");
    }
    assert_eq!(logins.count(), 3);
    let other = source("https://api.example/tradeapi/v2", "U2", "right");
    logins.answer_with([Answer::Token("two")]);
    other.login().await.unwrap();
    assert_eq!(header(&other), "two", "another user is another account");
}

/// Returns a source as the command line makes it: one file for each API key, in one directory.
fn with_key(directory: &Path, clock: &Clock, logins: &Script, key: &str, password: &str) -> TokenSource {
    let (key, secret) = (ApiKey::new(key).unwrap(), TotpSecret::new(TOTP_SECRET).unwrap());
    let credentials = Credentials::new("U1", password);
    let login = IndividualLogin::totp(logins.clone(), &base(), key.clone(), credentials, secret).unwrap();
    let label = Login::identity(&login).unwrap().label();
    let store = FileStore::open(directory.join(format!("auth-{label}.json"))).unwrap();
    TokenSource::builder(key, login).clock(clock.wall()).store(store).build()
}

/// Each API key of a user used to have a file of its own and two wrong logins. Three keys locked the user.
#[tokio::test(start_paused = true)]
async fn t21_several_api_keys_of_a_user_have_one_budget() {
    let directory = tempfile::tempdir().unwrap();
    let clock = Clock::new();
    let logins = Script::new(&clock, [Answer::Status(401)]);
    let source = |key: &str, password: &str| with_key(directory.path(), &clock, &logins, key, password);
    for key in ["key-a", "key-b", "key-c"].repeat(5) {
        let error = source(key, "wrong").login().await.unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Latched, "{key}");
    }
    assert_eq!(logins.count(), 3, "the user's three");
    // A reset with one of them applies to the user, and a success restores the account's budget for all.
    let running = source("key-b", "right");
    assert_eq!(running.login().await.unwrap_err().kind(), AuthErrorKind::Latched);
    source("key-a", "wrong").reset();
    tokio::time::sleep(secs(1)).await;
    running.restore().await.unwrap();
    logins.answer_with([Answer::Token("one")]);
    running.login().await.unwrap();
    logins.answer_with([Answer::Status(401)]);
    for key in ["key-a", "key-c", "key-d"].repeat(2) {
        source(key, "also wrong").login().await.unwrap_err();
    }
    assert_eq!(logins.count(), 4 + 3);
}

/// Also at the same instant: logins of one user run one after the other, and no code is submitted twice.
#[tokio::test(start_paused = true)]
async fn t21_several_api_keys_at_once_make_three_logins() {
    let directory = tempfile::tempdir().unwrap();
    let clock = Clock::new();
    let logins = Script::new(&clock, [Answer::Status(401)]).taking(secs(2));
    let all: Vec<_> = ["key-a", "key-b", "key-c", "key-d"]
        .map(|key| {
            let source = with_key(directory.path(), &clock, &logins, key, "wrong");
            tokio::spawn(async move { source.login().await })
        })
        .into();
    for one in all {
        assert_eq!(one.await.unwrap().unwrap_err().kind(), AuthErrorKind::Latched);
    }
    let codes: std::collections::BTreeSet<_> =
        logins.seen().iter().map(|seen| seen.form().get("twoFa").unwrap().to_owned()).collect();
    assert_eq!((logins.count(), codes.len()), (3, 3));
}

/// Failures that an older version has counted for an API key count for the user, once.
#[tokio::test(start_paused = true)]
async fn t21_the_failures_of_an_older_store_count_for_the_user() {
    let directory = tempfile::tempdir().unwrap();
    let clock = Clock::new();
    let logins = Script::new(&clock, [Answer::Status(401)]);
    let source = |key: &str, password: &str| with_key(directory.path(), &clock, &logins, key, password);
    source("key-a", "wrong").login().await.unwrap_err();
    assert_eq!(logins.count(), 2);
    // As in version 2: without the user.
    for file in std::fs::read_dir(directory.path()).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.starts_with("user-") {
            std::fs::remove_file(&path).unwrap();
        } else if name.starts_with("auth-") && name.ends_with(".json") {
            let mut record: serde_json::Value =
                serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            record["version"] = 2.into();
            record.as_object_mut().unwrap().remove("user").unwrap();
            std::fs::write(&path, record.to_string()).unwrap();
        }
    }
    for _ in 0..3 {
        source("key-a", "wrong").login().await.unwrap_err();
    }
    assert_eq!(logins.count(), 2, "they are not forgotten");
    for key in ["key-a", "key-b", "key-a"] {
        source(key, "other").login().await.unwrap_err();
    }
    assert_eq!(logins.count(), 3, "nor counted twice");
}

/// Three used to leave at once, and three more each hour, for ever: twelve in fifty hours, any of which may have been
/// wrong.
#[tokio::test(start_paused = true)]
async fn t21_unknown_ends_wait_longer_and_longer_over_all_processes() {
    for end in
        [Answer::Status(500), Answer::Status(302), Answer::Status(403), Answer::Lost, Answer::Body("<html>")]
    {
        let directory = tempfile::tempdir().unwrap();
        let clock = Clock::new();
        let logins = Script::new(&clock, [end.clone()]);
        let source = |key: &str, password: &str| with_key(directory.path(), &clock, &logins, key, password);
        // A supervisor restarts the program for ever.
        for quarter in 0..200 {
            let error = source("key-a", "p").login().await.unwrap_err();
            let bound = [2, 3, 4, 5, 6][[1, 5, 13, 37].iter().filter(|hour| quarter / 4 >= **hour).count()];
            assert!(logins.count() <= bound, "{} after {quarter} quarters: {end:?}", logins.count());
            if !matches!(end, Answer::Status(403)) {
                assert_eq!(error.kind(), AuthErrorKind::Unavailable, "{end:?}");
            }
            assert!(error.ready_at().is_some_and(|at| at > Instant::now()), "no latch: {end:?}");
            tokio::time::sleep(secs(900)).await;
        }
        assert_eq!(logins.count(), 6, "{end:?}");
        let said = format!("{:?}", source("key-a", "p").login().await.unwrap_err());
        let last = match &end {
            Answer::Status(status) => format!("(the last: token endpoint answered {status}"),
            _ => "(the last: ".to_owned(),
        };
        for part in [
            "6 logins since the last success ended unknown",
            &last,
            "the next may leave at",
            "or after a reset",
        ] {
            assert!(said.contains(part), "{said}");
        }
        // The user's other key has no login left, and neither have other credentials with the same key.
        source("key-b", "p").login().await.unwrap_err();
        source("key-a", "q").login().await.unwrap_err();
        assert_eq!(logins.count(), 6, "{end:?}");
        let store = FileStore::open(directory.path().join("auth-x.json")).unwrap();
        let identity = Identity::new(&base().to_string(), &api_key(), "U1");
        let summary = store.summary_of(&identity).await.unwrap().unwrap();
        assert_eq!((summary.unknown, summary.failures, summary.latched), (6, 0, false));
        assert!(summary.next_login_at.is_some() && summary.unknown_why.is_some());

        // The service is back: no person is needed.
        logins.answer_with([Answer::Token("one")]);
        tokio::time::sleep(hours(24)).await;
        source("key-a", "p").login().await.unwrap();
        assert_eq!(store.summary_of(&identity).await.unwrap().unwrap().unknown, 0);
    }
}

/// Regression: a program that starts again asked every half minute, for ever, and no store knew of it.
#[tokio::test(start_paused = true)]
async fn logins_answered_with_429_wait_longer_and_longer_over_all_processes() {
    let directory = tempfile::tempdir().unwrap();
    let clock = Clock::new();
    let logins = Script::new(&clock, [Answer::Status(429)]);
    let source = |password: &str| with_key(directory.path(), &clock, &logins, "key-a", password);
    // A supervisor restarts the program for an hour.
    for _ in 0..360 {
        let error = source("p").login().await.unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Unavailable);
        assert!(error.ready_at().is_some_and(|at| at <= Instant::now() + secs(300)), "no latch");
        tokio::time::sleep(secs(10)).await;
    }
    // Twelve an hour in the end; half minutes would make 120.
    assert!((12..=24).contains(&logins.count()), "{}", logins.count());
    let said = format!("{:?}", source("p").login().await.unwrap_err());
    assert!(said.contains("logins in a row were answered with 429; the next may leave at"), "{said}");

    // Nothing of it counts as a wrong password, and the wait is over five minutes after the last.
    let summary = summary_in(directory.path()).await;
    assert!(summary.throttled > 10 && summary.next_login_at.is_some());
    assert_eq!((summary.failures, summary.failures_of_credentials, summary.unknown), (0, 0, 0));
    assert!(!summary.latched);
    logins.answer_with([Answer::Token("one")]);
    tokio::time::sleep(secs(300)).await;
    source("p").login().await.unwrap();
    assert_eq!(summary_in(directory.path()).await.throttled, 0);
}

/// Returns the content of the one store of an API key in the directory.
async fn summary_in(directory: &Path) -> Summary {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let is_record = |path: &std::path::PathBuf| {
        path.file_name().unwrap().to_string_lossy().starts_with("auth-")
            && path.extension().is_some_and(|extension| extension == "json")
    };
    let path = entries.into_iter().find(is_record).unwrap();
    FileStore::open(path).unwrap().summary().await.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_reset_and_an_hour_without_a_login_forget_the_429s() {
    let clock = Clock::new();
    for forget in [true, false] {
        let store = kept::store();
        let logins = Script::new(&clock, [Answer::Status(429)]);
        process(&clock, &logins, store.clone()).login().await.unwrap_err();
        assert_eq!((logins.count(), store.summary().await.unwrap().unwrap().throttled), (5, 5));
        process(&clock, &logins, store.clone()).login().await.unwrap_err();
        assert_eq!(logins.count(), 5);
        if forget {
            store.reset().await.unwrap();
        } else {
            tokio::time::sleep(hours(1) + secs(1)).await;
        }
        process(&clock, &logins, store.clone()).login().await.unwrap_err();
        assert_eq!((logins.count(), store.summary().await.unwrap().unwrap().throttled), (10, 5));
    }
}

/// A running program follows a reset made elsewhere, however long it would have waited.
#[tokio::test(start_paused = true)]
async fn t21_a_reset_elsewhere_ends_the_wait_after_unknown_ends() {
    let (clock, store) = (Clock::new(), kept::store());
    let logins = Script::new(&clock, [Answer::Status(500)]);
    let source = process(&clock, &logins, store.clone());
    source.login().await.unwrap_err();
    store.reset().await.unwrap();
    source.restore().await.unwrap();
    logins.answer_with([Answer::Token("one")]);
    source.login().await.unwrap();
    assert_eq!(logins.count(), 3);
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// A success restores the account's budget, but not that of wrong credentials.
#[tokio::test(start_paused = true)]
async fn t21_a_success_of_one_gives_the_other_nothing_back() {
    let (clock, store) = (Clock::new(), kept::store());
    let logins = Script::new(&clock, [Answer::Status(401)]);
    let wrong = async || with_password(&clock, &logins, store.clone(), "wrong").login().await.unwrap_err();
    assert_eq!(wrong().await.kind(), AuthErrorKind::Latched);
    assert_eq!(logins.count(), 2);

    logins.answer_with([Answer::ShortToken("one", 60)]);
    with_password(&clock, &logins, store.clone(), "right").login().await.unwrap();
    let summary = store.summary().await.unwrap().unwrap();
    assert_eq!((summary.failures, summary.latched), (0, false), "nothing is wrong with the right ones");
    tokio::time::sleep(secs(120)).await;
    logins.answer_with([Answer::Status(401)]);
    assert_eq!(wrong().await.kind(), AuthErrorKind::Latched);
    assert_eq!(logins.count(), 3, "its two are spent");

    // Other wrong credentials could use the account's whole budget, but have only two of their own.
    with_password(&clock, &logins, store.clone(), "other").login().await.unwrap_err();
    assert_eq!(logins.count(), 5);
    store.reset().await.unwrap();
    assert_eq!(wrong().await.kind(), AuthErrorKind::Latched);
    assert_eq!(logins.count(), 7, "a person has said that it is right");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_refused_as_wrong_is_not_repeated_after_a_restart() {
    let (clock, store) = (Clock::new(), kept::store());
    let logins = Script::new(&clock, [Answer::Status(400)]);
    for _ in 0..5 {
        let error = process(&clock, &logins, store.clone()).login().await.unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Latched);
    }
    assert_eq!(logins.count(), 1);

    // The field names are part of what was refused.
    logins.answer_with([Answer::Token("one")]);
    let login = totp_login(logins.clone()).fields(steadfast_auth::LoginFields::without_client_id());
    let source = TokenSource::builder(api_key(), login).clock(clock.wall()).store(store).build();
    source.login().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_429_or_an_attempt_that_never_left_gives_its_budget_back() {
    let (clock, store) = (Clock::new(), kept::store());
    for answer in [Answer::Status(429), Answer::NotSent] {
        let logins = Script::new(&clock, [answer]);
        process(&clock, &logins, store.clone()).login().await.unwrap_err();
        assert_eq!(store.summary().await.unwrap().unwrap().failures, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_reset_elsewhere_opens_the_latch_of_a_running_source() {
    let (clock, store) = (Clock::new(), kept::store());
    let logins = Script::new(&clock, [Answer::Status(401)]);
    let source = process(&clock, &logins, store.clone());
    tokio::spawn(source.keep_fresh());
    source.login().await.unwrap_err();
    assert!(source.status().latched);
    store.reset().await.unwrap();
    tokio::time::sleep(secs(31)).await;
    assert!(!source.status().latched);
    logins.answer_with([Answer::Token("one")]);
    source.login().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_reset_of_a_source_reaches_the_store() {
    let (clock, store) = (Clock::new(), kept::store());
    let logins = Script::new(&clock, [Answer::Status(401)]);
    let source = process(&clock, &logins, store.clone());
    source.login().await.unwrap_err();
    source.reset();
    tokio::time::sleep(secs(1)).await;
    let summary = store.summary().await.unwrap().unwrap();
    assert_eq!((summary.failures, summary.latched), (0, false));
}

#[tokio::test(start_paused = true)]
async fn a_program_without_credentials_follows_the_tokens_that_others_fetch() {
    let (clock, store) = (Clock::new(), kept::store());
    let logins = Script::new(&clock, [Answer::Token("one"), Answer::Token("two")]);
    let identity = Identity::new(&base().to_string(), &api_key(), "U1");
    let follower = TokenSource::builder(api_key(), Stored::new(identity))
        .clock(clock.wall())
        .store(store.clone())
        .build();
    tokio::spawn(follower.keep_fresh());
    let api = Script::new(&clock, [Answer::ByToken]);
    api.accept(["one", "two"]);
    let get = async || {
        use tower::{Layer, ServiceExt};
        let header = steadfast_auth::AuthHeaderLayer::new(follower.clone()).layer(api.clone());
        let stack = steadfast_auth::RefreshLayer::new(follower.clone()).layer(header);
        stack.oneshot(crate::support::orders()).await
    };
    assert_eq!(crate::support::kind(&get().await.unwrap_err()), AuthErrorKind::NeverLoggedIn);

    let person = process(&clock, &logins, store.clone());
    person.login().await.unwrap();
    tokio::time::sleep(secs(6)).await;
    assert_eq!(get().await.unwrap().status(), 200, "found by the request itself");
    tokio::time::sleep(secs(60)).await;
    assert!(store.summary().await.unwrap().unwrap().has_worked, "it told the others");
    person.login().await.unwrap();
    tokio::time::sleep(secs(31)).await;
    assert_eq!(header(&follower), "two");
    assert_eq!(logins.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_stored_token_that_has_died_is_renewed_once_and_a_new_one_that_is_refused_never() {
    for (worked, logins_expected) in [(true, 2), (false, 1)] {
        let (clock, store) = (Clock::new(), kept::store());
        let logins = Script::new(&clock, [Answer::Token("one"), Answer::Token("two")]);
        let first = process(&clock, &logins, store.clone());
        let api = Script::new(&clock, [Answer::ByToken]);
        let get = async |source: &TokenSource| {
            use tower::{Layer, ServiceExt};
            let header = steadfast_auth::AuthHeaderLayer::new(source.clone()).layer(api.clone());
            let stack = steadfast_auth::RefreshLayer::new(source.clone()).layer(header);
            stack.oneshot(crate::support::orders()).await.unwrap().status().as_u16()
        };
        first.login().await.unwrap();
        if worked {
            api.accept(["one"]);
            assert_eq!(get(&first).await, 200);
            tokio::time::sleep(secs(1)).await;
        }
        drop(first);
        api.accept(["two"]);
        let restarted = process(&clock, &logins, store);
        assert_eq!(get(&restarted).await, if worked { 200 } else { 401 });
        assert_eq!(logins.count(), logins_expected, "worked: {worked}");
    }
}

/// A revoked token used to be taken over by every program that started, and even returned by a login.
#[tokio::test(start_paused = true)]
async fn t23_a_token_that_is_known_to_be_refused_is_taken_over_by_nobody() {
    let (clock, store) = (Clock::new(), kept::store());
    let logins = Script::new(&clock, [Answer::Token("one"), Answer::Token("two")]);
    let first = process(&clock, &logins, store.clone());
    first.login().await.unwrap();
    let summary = async || store.summary().await.unwrap().unwrap();
    first.note_accepted().await.unwrap();
    assert_eq!((summary().await.has_worked, summary().await.is_refused), (true, false));
    first.note_refused().await.unwrap();
    assert_eq!((summary().await.has_worked, summary().await.is_refused), (true, true));
    assert_eq!(header(&first), "one", "it goes on for whoever holds it");

    let restarted = process(&clock, &logins, store.clone());
    assert!(!restarted.restore().await.unwrap());
    restarted.login().await.unwrap();
    assert_eq!((header(&restarted), logins.count()), ("two".to_owned(), 2));
    assert!(!summary().await.is_refused);
    // A verdict on the older token does not affect the newer one.
    first.note_refused().await.unwrap();
    assert!(!summary().await.is_refused);
}

#[tokio::test(start_paused = true)]
async fn t16_no_time_step_is_submitted_twice_by_two_processes() {
    let (clock, store) = (Clock::new(), kept::store());
    let logins = Script::new(&clock, [Answer::Token("one"), Answer::Token("two")]);
    process(&clock, &logins, store.clone()).login().await.unwrap();
    store.forget_token().await.unwrap();
    process(&clock, &logins, store.clone()).login().await.unwrap();
    let codes: Vec<_> =
        logins.seen().iter().map(|seen| seen.form().get("twoFa").unwrap().to_owned()).collect();
    assert_eq!(codes.len(), 2);
    assert_ne!(codes[0], codes[1]);

    // The planted defect: a process that does not know the other's steps.
    let logins = Script::new(&clock, [Answer::Token("one"), Answer::Token("two")]);
    process(&clock, &logins, kept::store()).login().await.unwrap();
    process(&clock, &logins, kept::store()).login().await.unwrap();
    let codes: Vec<_> =
        logins.seen().iter().map(|seen| seen.form().get("twoFa").unwrap().to_owned()).collect();
    assert_eq!(codes[0], codes[1], "the test sees what it is made for");
}

#[tokio::test(start_paused = true)]
async fn sessions_are_counted_over_restarts() {
    let (clock, store) = (Clock::new(), kept::store());
    let logins = Script::new(&clock, [Answer::Token("one"), Answer::Token("two")]);
    for sessions in 1..=7 {
        let source = process(&clock, &logins, store.clone());
        source.restore().await.unwrap();
        source.login().await.unwrap();
        assert_eq!(source.status().sessions, sessions);
        logins.answer_with([if sessions % 2 == 1 { Answer::Token("two") } else { Answer::Token("one") }]);
        tokio::time::sleep(secs(60)).await;
    }
    tokio::time::advance(hours(24)).await;
    let source = process(&clock, &logins, store);
    source.login().await.unwrap();
    assert_eq!(source.status().sessions, 1, "a day later they are over");
}

/// A store for several machines. Its lease expires, and its writes compare revisions unless `compares` is false.
#[derive(Clone)]
struct Leased {
    record: Arc<Mutex<Option<Record>>>,
    until: Arc<Mutex<Option<Instant>>>,
    life: Duration,
    compares: bool,
    broken: Arc<AtomicBool>,
}

struct LeasedLease(Leased);

impl Leased {
    fn new(life: Duration, compares: bool) -> Self {
        Self { record: Arc::default(), until: Arc::default(), life, compares, broken: Arc::default() }
    }
}

impl TokenStore for Leased {
    type Lease = LeasedLease;

    fn name(&self) -> String {
        "leased".to_owned()
    }

    async fn load(&self) -> Result<Option<Record>, StoreError> {
        Ok(self.record.lock().clone())
    }

    async fn lease(&self) -> Result<LeasedLease, StoreError> {
        loop {
            let until = *self.until.lock();
            match until.filter(|until| *until > Instant::now()) {
                Some(until) => tokio::time::sleep_until(until).await,
                None => break,
            }
        }
        *self.until.lock() = Some(Instant::now() + self.life);
        Ok(LeasedLease(self.clone()))
    }
}

impl StoreLease for LeasedLease {
    async fn save(&mut self, record: &Record, over: u64) -> Result<(), StoreError> {
        if self.0.broken.load(Ordering::Relaxed) {
            return Err(StoreError::Other("the disk is full".into()));
        }
        let mut kept = self.0.record.lock();
        if self.0.compares && kept.as_ref().map_or(0, Record::revision) != over {
            return Err(StoreError::Superseded { place: "leased".to_owned() });
        }
        *kept = Some(record.clone());
        Ok(())
    }
}

impl Drop for LeasedLease {
    fn drop(&mut self) {
        *self.0.until.lock() = None;
    }
}

/// A slow login loses its lease, and another process logs in meanwhile. Returns the token that a third process then
/// finds, and the slow one's own.
async fn zombie(compares: bool) -> (String, String) {
    let (clock, store) = (Clock::new(), Leased::new(secs(20), compares));
    let slow = Script::new(&clock, [Answer::Token("one")]).taking(secs(60));
    let quick = Script::new(&clock, [Answer::Token("two")]);
    let patient = totp_login(slow.clone()).timeout(secs(120));
    let zombie = TokenSource::builder(api_key(), patient).clock(clock.wall()).store(store.clone()).build();
    let ended = tokio::spawn({
        let zombie = zombie.clone();
        async move { zombie.login().await }
    });
    tokio::time::sleep(secs(1)).await;
    process(&clock, &quick, store.clone()).login().await.unwrap();
    ended.await.unwrap().unwrap();
    let third = process(&clock, &quick, store);
    third.restore().await.unwrap();
    (header(&third), header(&zombie))
}

/// Against stores whose lease is shorter than the login: the older record of the slow login replaces the newer one.
#[tokio::test(start_paused = true)]
async fn t15_a_login_that_outlives_its_lease_replaces_nothing_newer() {
    assert_eq!(zombie(true).await, ("two".to_owned(), "two".to_owned()));
    // The planted defect: a store that does not compare revisions.
    assert_eq!(zombie(false).await.0, "one", "the test sees what it is made for");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_written_down_is_not_sent() {
    let (clock, store) = (Clock::new(), Leased::new(secs(60), true));
    store.broken.store(true, Ordering::Relaxed);
    let logins = Script::new(&clock, [Answer::Token("one")]);
    let source = process(&clock, &logins, store.clone());
    let error = source.login().await.unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Unavailable);
    assert_eq!(logins.count(), 0);
    store.broken.store(false, Ordering::Relaxed);
    tokio::time::sleep(secs(8)).await;
    source.login().await.unwrap();
    assert_eq!(logins.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_latch_that_could_not_be_stored_holds_in_this_process() {
    let (clock, store) = (Clock::new(), Leased::new(secs(60), true));
    let logins = Script::new(&clock, [Answer::Status(400)]).taking(secs(2));
    let source = process(&clock, &logins, store.clone());
    let ended = tokio::spawn({
        let source = source.clone();
        async move { source.login().await }
    });
    tokio::time::sleep(secs(1)).await;
    store.broken.store(true, Ordering::Relaxed);
    assert_eq!(ended.await.unwrap().unwrap_err().kind(), AuthErrorKind::Latched);
    store.broken.store(false, Ordering::Relaxed);
    source.restore().await.unwrap();
    assert!(source.status().latched, "the store's older word does not open it");
}

/// Two processes on one store. `b` has used the first token. Then `a` has logged in again, and the gateway that answers
/// `b` does not know the new token yet.
async fn lagging(clock: &Clock, logins: &Script) -> (TokenSource, Script) {
    let store = kept::store();
    let (a, b) = (process(clock, logins, store.clone()), process(clock, logins, store));
    let api = Script::new(clock, [Answer::ByToken]).taking(Duration::from_millis(10));
    api.accept(["one"]);
    a.login().await.unwrap();
    assert_eq!(send(&b, &api).await, 200);
    logins.answer_with([Answer::Token("two")]);
    a.login().await.unwrap();
    api.accept([]);
    (b, api)
}

async fn send(source: &TokenSource, api: &Script) -> u16 {
    let header = AuthHeaderLayer::new(source.clone()).only_to(&base());
    let stack = RefreshLayer::new(source.clone()).layer(header.layer(api.clone()));
    stack.oneshot(place_order("qty=1")).await.unwrap().status().as_u16()
}

#[tokio::test(start_paused = true)]
async fn o10_orders_wait_for_a_token_that_is_not_accepted_everywhere() {
    let clock = Clock::new();
    let logins = Script::new(&clock, [Answer::Token("one")]);
    let (b, api) = lagging(&clock, &logins).await;
    let sends: Vec<_> = (0..7)
        .map(|_| {
            let (b, api) = (b.clone(), api.clone());
            tokio::spawn(async move { send(&b, &api).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(api.tokens()[1..], [["one"; 7], ["two"; 7]].concat());
    api.accept(["two"]);
    for sent in sends {
        assert_eq!(sent.await.unwrap(), 200, "refused, though its token was only too new");
    }
    assert_eq!(api.tokens()[15..], ["two"; 7]);
    assert_eq!(logins.count(), 2, "one by each process");
}

#[tokio::test(start_paused = true)]
async fn o10_a_token_that_is_never_accepted_ends_the_wait_and_costs_no_login() {
    let clock = Clock::new();
    let logins = Script::new(&clock, [Answer::Token("one")]);
    let (b, api) = lagging(&clock, &logins).await;
    let begun = Instant::now();
    assert_eq!(send(&b, &api).await, 401);
    assert_eq!(begun.elapsed().as_secs(), 2);
    assert_eq!(api.tokens(), ["one", "one", "two", "two"]);
    assert_eq!(b.status().phase, TokenPhase::Suspect, "nothing is sent in vain");
    assert_eq!(logins.count(), 2, "no login for a token that was never accepted");
}

/// `steadfast auth status` is another process: it knows of a refused session only by the store.
#[tokio::test(start_paused = true)]
async fn a_refused_session_is_in_the_store_until_the_token_is_accepted() {
    let (clock, store) = (Clock::new(), kept::store());
    let logins = Script::new(&clock, [Answer::Token("one"), Answer::Token("two")]);
    let api = Script::new(&clock, [Answer::ByToken]);
    api.accept(["one"]);
    let source = process(&clock, &logins, store.clone());
    assert_eq!(send(&source, &api).await, 200);
    api.accept(["two"]);
    let suspected = Instant::now();
    assert_eq!(send(&source, &api).await, 200, "a login has followed");
    api.accept([]);
    let identity = Identity::new(&base().to_string(), &api_key(), "U1");
    let summary = || async {
        // The store is told in the background.
        tokio::time::sleep(secs(1)).await;
        store.summary_of(&identity).await.unwrap().unwrap()
    };
    assert_eq!(send(&source, &api).await, 401);
    assert_eq!(
        (summary().await.refused_at, summary().await.renewed_at),
        (None, None),
        "one may be a mistake"
    );
    tokio::time::sleep(secs(2)).await;
    let rest = secs(60) - suspected.elapsed();
    assert_eq!(send(&source, &api).await, 401);
    let told = summary().await;
    let next = told.renewed_at.unwrap().duration_since(told.refused_at.unwrap()).unwrap();
    assert!(rest.abs_diff(next) < secs(1), "{rest:?} {next:?}");
    assert!(!told.is_refused, "others may still take it over");
    api.accept(["two"]);
    assert_eq!(send(&source, &api).await, 200);
    assert_eq!((summary().await.refused_at, summary().await.renewed_at), (None, None));
}
