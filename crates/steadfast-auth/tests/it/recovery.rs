//! Clocks that jump, stores that vanish or cannot be written, and resets during a login.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use http::StatusCode;
use steadfast_auth::{
    AuthErrorKind, AuthHeaderLayer, FileStore, MemoryLease, MemoryStore, Record, RefreshLayer, Renewal,
    StoreError, StoreLease, TokenPhase, TokenSource, TokenStore,
};
use tower::{Layer, ServiceExt};

use crate::support::{Answer, Bench, Clock, Script, api_key, hours, orders, secs, totp_login};

const DAY_MS: i64 = 86_400_000;

fn process(clock: &Clock, logins: &Script, store: impl TokenStore) -> TokenSource {
    TokenSource::builder(api_key(), totp_login(logins.clone()))
        .clock(clock.wall())
        .renewal(Renewal::new().jitter_seed(7))
        .store(store)
        .build()
}

async fn get(source: &TokenSource, api: &Script) -> StatusCode {
    let header = AuthHeaderLayer::new(source.clone()).layer(api.clone());
    RefreshLayer::new(source.clone()).layer(header).oneshot(orders()).await.unwrap().status()
}

/// A date that is wrong by a day or a month makes every code wrong until the service's `Date` is used.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_days_off_costs_one_refused_login() {
    for days in [-30, -1, 1, 30] {
        let bench = Bench::new([Answer::ByCode("one")]);
        bench.clock.set_off(days * DAY_MS);
        bench.api.accept(["one"]);
        assert_eq!(bench.get().await.unwrap().status(), 200, "{days} days");
        assert_eq!(bench.logins.count(), 2, "{days} days");
        assert!(!bench.source.status().latched);
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_by_a_day_in_operation_costs_no_call_and_locks_nothing() {
    for days in [-1, 1] {
        let bench = Bench::with_working_token("one", [Answer::ByCode("two"), Answer::ByCode("three")]).await;
        bench.api.accept(["one", "two", "three"]);
        // Logins that start by themselves are half a minute apart.
        tokio::time::sleep(secs(60)).await;
        bench.clock.set_off(days * DAY_MS);
        for _ in 0..40 {
            assert_eq!(bench.get().await.unwrap().status(), 200, "{days} days");
            tokio::time::sleep(hours(1)).await;
        }
        assert!(bench.logins.count() <= 4, "{days} days: {}", bench.logins.count());
        assert!(!bench.source.status().latched);
    }
}

/// Times written before a clock was set back lie in the future. They must not block logins until then.
#[tokio::test(start_paused = true)]
async fn stamps_that_lie_a_day_ahead_hold_no_login_up() {
    let (clock, store) = (Clock::new(), MemoryStore::new());
    let logins = Script::new(&clock, [Answer::Lost, Answer::Token("one"), Answer::Token("two")]);
    let api = Script::new(&clock, [Answer::ByToken]);
    api.accept(["one"]);
    let first = process(&clock, &logins, store.clone());
    assert_eq!(get(&first, &api).await, 200);
    tokio::time::sleep(secs(60)).await;
    api.accept(["two"]);
    assert_eq!(get(&first, &api).await, 200, "the one login that a refused young token is worth");
    tokio::time::sleep(hours(1)).await;

    clock.set_off(-DAY_MS);
    logins.answer_with([Answer::Token("three")]);
    let restarted = process(&clock, &logins, store.clone());
    assert!(restarted.restore().await.unwrap());
    api.accept(["three"]);
    assert_eq!(get(&restarted, &api).await, 200, "refused young tokens were long ago");

    store.forget_token().await.unwrap();
    process(&clock, &logins, store).login().await.unwrap();
}

/// Against sources that compare only the serials of logins: each would log in again.
#[tokio::test(start_paused = true)]
async fn a_store_that_was_removed_and_began_anew_is_followed() {
    let (clock, directory) = (Clock::new(), tempfile::tempdir().unwrap());
    let path = directory.path().join("auth.json");
    let open = || FileStore::open(&path).unwrap();
    let logins = Script::new(&clock, [Answer::Token("one"), Answer::Token("two"), Answer::Token("three")]);
    process(&clock, &logins, open()).login().await.unwrap();
    tokio::time::sleep(hours(25)).await;
    let running = process(&clock, &logins, open());
    running.login().await.unwrap();
    assert!(running.is_quoted_in("two"));

    std::fs::remove_file(&path).unwrap();
    tokio::time::sleep(secs(60)).await;
    process(&clock, &logins, open()).login().await.unwrap();
    assert!(running.restore().await.unwrap());
    assert!(running.is_quoted_in("three"));
    assert!(!running.restore().await.unwrap(), "once");
    assert_eq!(logins.count(), 3);
}

/// A reset allows two more wrong logins, not another two after those.
#[tokio::test(start_paused = true)]
async fn a_reset_during_a_wrong_login_gives_the_budget_back_once() {
    let (clock, store) = (Clock::new(), MemoryStore::new());
    let logins = Script::new(&clock, [Answer::Status(401)]).taking(secs(5));
    let source = process(&clock, &logins, store.clone());
    let flight = tokio::spawn({
        let source = source.clone();
        async move { source.login().await }
    });
    tokio::time::sleep(secs(2)).await;
    assert_eq!(logins.count(), 1, "under way");
    source.reset();
    assert_eq!(flight.await.unwrap().unwrap_err().kind(), AuthErrorKind::Latched);
    for _ in 0..5 {
        tokio::time::sleep(secs(60)).await;
        source.restore().await.unwrap();
        assert_eq!(source.login().await.unwrap_err().kind(), AuthErrorKind::Latched);
        let other = process(&clock, &logins, store.clone());
        assert_eq!(other.login().await.unwrap_err().kind(), AuthErrorKind::Latched);
    }
    assert_eq!(logins.count(), 2);
}

/// A login that was under way must not carry the failures before a reset over it.
#[tokio::test(start_paused = true)]
async fn a_reset_during_a_login_that_ends_without_a_verdict_makes_the_budget_whole() {
    let (clock, store) = (Clock::new(), MemoryStore::new());
    let logins = Script::new(&clock, [Answer::Status(401), Answer::Status(403)]).taking(secs(5));
    let source = process(&clock, &logins, store.clone());
    let flight = tokio::spawn({
        let source = source.clone();
        async move { source.login().await }
    });
    while logins.count() < 2 {
        tokio::time::sleep(secs(1)).await;
    }
    source.reset();
    assert_eq!(flight.await.unwrap().unwrap_err().kind(), AuthErrorKind::Rejected);
    tokio::time::sleep(secs(1)).await;
    assert_eq!(store.summary().await.unwrap().unwrap().failures, 0);
}

/// A store in memory that fails one write.
#[derive(Clone)]
struct Failing {
    store: MemoryStore,
    saves: Arc<AtomicUsize>,
    fails: usize,
}

struct FailingLease(MemoryLease, Failing);

impl Failing {
    fn at_write(fails: usize) -> Self {
        Self { store: MemoryStore::new(), saves: Arc::default(), fails }
    }
}

impl TokenStore for Failing {
    type Lease = FailingLease;

    fn name(&self) -> String {
        self.store.name()
    }

    async fn load(&self) -> Result<Option<Record>, StoreError> {
        self.store.load().await
    }

    async fn lease(&self) -> Result<FailingLease, StoreError> {
        Ok(FailingLease(self.store.lease().await?, self.clone()))
    }
}

impl StoreLease for FailingLease {
    async fn save(&mut self, record: &Record, over: u64) -> Result<(), StoreError> {
        if self.1.saves.fetch_add(1, Ordering::Relaxed) + 1 == self.1.fails {
            return Err(StoreError::Other("disk full".into()));
        }
        self.0.save(record, over).await
    }
}

/// Against sources that after one failed write ignore the store for ever: a third wrong login would leave.
#[tokio::test(start_paused = true)]
async fn a_write_that_failed_once_blinds_nobody_to_the_latch_of_others() {
    let (clock, store) = (Clock::new(), Failing::at_write(2));
    // The first attempt never leaves, and that cannot be written down. The second one brings a token.
    let logins = Script::new(&clock, [Answer::NotSent, Answer::Token("one"), Answer::Status(401)]);
    let source = process(&clock, &logins, store.clone());
    source.login().await.unwrap();
    store.forget_token().await.unwrap();
    let other = process(&clock, &logins, store.clone());
    assert_eq!(other.login().await.unwrap_err().kind(), AuthErrorKind::Latched);
    assert_eq!(logins.count(), 4, "two wrong ones");
    assert_eq!(source.login().await.unwrap_err().kind(), AuthErrorKind::Latched);
    assert_eq!(logins.count(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_latch_of_others_counts_while_an_own_failure_is_not_written_down() {
    let (clock, store) = (Clock::new(), Failing::at_write(2));
    let logins = Script::new(&clock, [Answer::Status(403), Answer::Status(401)]);
    let source = process(&clock, &logins, store.clone());
    assert_eq!(source.login().await.unwrap_err().kind(), AuthErrorKind::Rejected);
    let other = process(&clock, &logins, store.clone());
    assert_eq!(other.login().await.unwrap_err().kind(), AuthErrorKind::Latched);
    let sent = logins.count();
    // After a denial the next login may leave a quarter of an hour later.
    tokio::time::sleep(secs(16 * 60)).await;
    assert_eq!(source.login().await.unwrap_err().kind(), AuthErrorKind::Latched);
    assert_eq!(logins.count(), sent);
}

/// The success of a counted attempt cannot be written down. Its count must not latch the source.
#[tokio::test(start_paused = true)]
async fn a_success_that_cannot_be_stored_is_a_success() {
    let (clock, store) = (Clock::new(), Failing::at_write(4));
    let logins = Script::new(&clock, [Answer::Status(401), Answer::Token("one"), Answer::Token("two")]);
    let source = process(&clock, &logins, store.clone());
    source.login().await.unwrap();
    source.restore().await.unwrap();
    assert_eq!((source.status().phase, source.status().latched), (TokenPhase::Valid, false));
    assert!(source.is_quoted_in("one"));
    source.login().await.unwrap();
    assert!(source.is_quoted_in("two"));
    assert_eq!(store.summary().await.unwrap().unwrap().failures, 0);
}

/// The user's record still holds the submitted codes.
#[tokio::test(start_paused = true)]
async fn a_damaged_record_that_is_begun_anew_does_not_submit_a_code_again() {
    let (clock, directory) = (Clock::new(), tempfile::tempdir().unwrap());
    let path = directory.path().join("auth.json");
    let logins = Script::new(&clock, [Answer::Token("one"), Answer::Token("two")]);
    process(&clock, &logins, FileStore::open(&path).unwrap()).login().await.unwrap();
    // Overwriting keeps the file's mode.
    std::fs::write(&path, "{").unwrap();
    let store = FileStore::open(&path).unwrap();
    store.reset().await.unwrap();
    process(&clock, &logins, store).login().await.unwrap();
    let seen = logins.seen();
    assert_ne!(seen[0].form().get("twoFa"), seen[1].form().get("twoFa"));
}

/// If the holder of the lock is stopped, requests wait no longer than their limit, and a valid token stays usable.
#[tokio::test(start_paused = true)]
async fn a_stopped_holder_of_the_lease_stops_neither_a_valid_token_nor_the_end_of_a_wait() {
    let (clock, store) = (Clock::new(), MemoryStore::new());
    let logins = Script::new(&clock, [Answer::Token("one"), Answer::Token("two")]);
    let api = Script::new(&clock, [Answer::ByToken]);
    api.accept(["one", "two"]);
    let source = process(&clock, &logins, store.clone());
    assert_eq!(get(&source, &api).await, 200);
    tokio::time::sleep(secs(1)).await;
    let stopped = store.lease().await.unwrap();
    tokio::time::sleep(hours(23)).await;
    for _ in 0..3 {
        assert_eq!(get(&source, &api).await, 200, "renewal ahead waits in the background");
        tokio::time::sleep(secs(600)).await;
    }
    tokio::time::sleep(hours(2)).await;
    let start = tokio::time::Instant::now();
    let error = source.login().await.unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Unavailable);
    assert!(start.elapsed() <= secs(601), "{:?}", start.elapsed());
    drop(stopped);
    assert_eq!(get(&source, &api).await, 200);
    assert_eq!(logins.count(), 2);
}

/// A service may count logins that it answers with 504. After a wrong login that would be the next one.
#[tokio::test(start_paused = true)]
async fn a_login_in_doubt_after_a_wrong_one_spends_the_rest_of_the_budget_for_all_processes() {
    for doubt in [Answer::Status(504), Answer::Lost, Answer::Body("{")] {
        let (clock, store) = (Clock::new(), MemoryStore::new());
        let logins = Script::new(&clock, [Answer::Status(401), doubt, Answer::Token("one")]);
        for _ in 0..3 {
            let source = process(&clock, &logins, store.clone());
            assert_eq!(source.login().await.unwrap_err().kind(), AuthErrorKind::Latched);
            tokio::time::sleep(hours(2)).await;
        }
        assert_eq!(logins.count(), 2);
        assert_eq!(store.summary().await.unwrap().unwrap().failures, 2);
        // A person who has checked it allows the next login.
        store.reset().await.unwrap();
        process(&clock, &logins, store).login().await.unwrap();
    }
}

/// The login in doubt may have been wrong, which would make two. That is not certain, so it latches nothing.
#[tokio::test(start_paused = true)]
async fn a_login_in_doubt_before_a_wrong_one_makes_the_next_wait() {
    let (clock, store) = (Clock::new(), MemoryStore::new());
    let logins = Script::new(&clock, [Answer::Status(504), Answer::Status(401), Answer::Token("one")]);
    let error = process(&clock, &logins, store.clone()).login().await.unwrap_err();
    assert_eq!((error.kind(), logins.count()), (AuthErrorKind::Unavailable, 2));
    tokio::time::sleep(secs(3_601)).await;
    process(&clock, &logins, store.clone()).login().await.unwrap();
    assert_eq!(logins.count(), 3);
    assert_eq!(store.summary().await.unwrap().unwrap().unknown, 0, "a success takes all of it back");
}

/// Frequent writes by others stop a login only if its own write never succeeds.
#[tokio::test(start_paused = true)]
async fn a_record_that_others_replace_is_written_within_six_tries_or_no_login_leaves() {
    for (superseded, leaves) in [(5, 1), (6, 0)] {
        let clock = Clock::new();
        let store = Contended { store: MemoryStore::new(), left: Arc::new(AtomicUsize::new(superseded)) };
        let logins = Script::new(&clock, [Answer::Token("one")]);
        let login = process(&clock, &logins, store).login().await;
        assert_eq!((login.is_ok(), logins.count()), (leaves == 1, leaves), "{superseded}");
    }
}

/// A store in memory that rejects a number of writes as superseded.
#[derive(Clone)]
struct Contended {
    store: MemoryStore,
    left: Arc<AtomicUsize>,
}

struct ContendedLease(MemoryLease, Contended);

impl TokenStore for Contended {
    type Lease = ContendedLease;

    fn name(&self) -> String {
        self.store.name()
    }

    async fn load(&self) -> Result<Option<Record>, StoreError> {
        self.store.load().await
    }

    async fn lease(&self) -> Result<ContendedLease, StoreError> {
        Ok(ContendedLease(self.store.lease().await?, self.clone()))
    }
}

impl StoreLease for ContendedLease {
    async fn save(&mut self, record: &Record, over: u64) -> Result<(), StoreError> {
        let left = self.1.left.load(Ordering::Relaxed);
        if left > 0 {
            self.1.left.store(left - 1, Ordering::Relaxed);
            return Err(StoreError::Superseded { place: self.1.name() });
        }
        self.0.save(record, over).await
    }
}
