//! Tests against the defects of other clients, by number.
//!
//! `cargo xtask planted` shows that each test fails where its defect is, in this crate and by the same assertion. The
//! defects are files of `crates/steadfast-verify/planted`.

use std::sync::Arc;

use http::StatusCode;
use steadfast_auth::{
    Attempt, AuthErrorKind, Grant, Login, LoginFailure, LoginMode, TokenPhase, TokenSource, Unrenewed,
};
use steadfast_call::{
    BootClock,
    ext::{DoNotRetry, TokenGeneration},
};
use tokio::{sync::Notify, task::JoinSet};
use tower::ServiceExt;

use crate::support::{Answer, Bench, api_key, hours, kind, orders, place_order, secs, totp_login};

/// Against clients that drop a valid token when its renewal fails.
#[tokio::test(start_paused = true)]
async fn t01_a_failed_renewal_never_displaces_a_token_that_is_still_valid() {
    let bench = Bench::with_working_token("one", [Answer::Status(400)]).await;
    tokio::time::advance(hours(23)).await;
    for _ in 0..3 {
        assert_eq!(bench.get().await.unwrap().status(), 200);
        tokio::time::sleep(secs(40)).await;
    }
    assert_eq!(bench.logins.count(), 2, "the renewal was tried once and latched");
    assert!(bench.source.status().latched);

    // In the last minute requests would wait for a renewal. None is possible, and the token still works.
    tokio::time::advance(secs(3_600 - 160)).await;
    assert_eq!(bench.source.status().phase, TokenPhase::Mandatory);
    assert_eq!(bench.get().await.unwrap().status(), 200);
    tokio::time::advance(secs(100)).await;
    assert_eq!(kind(&bench.get().await.unwrap_err()), AuthErrorKind::Latched);
}

/// Against clients that remember a failed login for ever.
#[tokio::test(start_paused = true)]
async fn t02_a_failure_that_passes_is_forgotten_when_its_time_is_over() {
    let bench = Bench::new([Answer::NotSent]);
    bench.api.accept(["one"]);
    assert_eq!(kind(&bench.get().await.unwrap_err()), AuthErrorKind::Unavailable);
    assert_eq!(bench.logins.count(), 5, "1/2/4/8");
    assert_eq!(kind(&bench.get().await.unwrap_err()), AuthErrorKind::Unavailable);
    assert_eq!(bench.logins.count(), 5, "held back");
    bench.logins.answer_with([Answer::Token("one")]);
    tokio::time::sleep(secs(8)).await;
    assert_eq!(bench.get().await.unwrap().status(), 200);
}

/// Against clients whose late 401 for token n clears token n+1.
#[tokio::test(start_paused = true)]
async fn t03_a_late_401_for_an_old_token_leaves_the_new_one_alone() {
    let bench = Bench::with_working_token("one", [Answer::Token("two")]).await;
    bench.api.accept(["two"]);
    // The slow request is refused at once but gets the answer only after the renewal.
    let slow = crate::support::Script::new(&bench.clock, [Answer::ByToken]).taking(secs(60));
    slow.accept(["two"]);
    let late = {
        use steadfast_auth::{AuthHeaderLayer, RefreshLayer};
        use tower::Layer;
        let header = AuthHeaderLayer::new(bench.source.clone()).layer(slow.clone());
        tokio::spawn(RefreshLayer::new(bench.source.clone()).layer(header).oneshot(orders()))
    };
    tokio::task::yield_now().await;
    assert_eq!(slow.count(), 1);
    assert_eq!(bench.get().await.unwrap().status(), 200);
    assert_eq!(late.await.unwrap().unwrap().status(), 200);
    assert_eq!(slow.tokens(), ["one", "two"]);
    assert_eq!(bench.logins.count(), 2, "one for each token");
    assert_eq!(bench.source.status().generation, Some(TokenGeneration(2)));
}

/// Against clients in which each waiter logs in.
#[tokio::test(start_paused = true)]
async fn t04_a_thousand_waiters_make_one_login() {
    let bench = Bench::new([Answer::Token("one"), Answer::Token("wrong")]);
    bench.api.accept(["one"]);
    let stack = bench.stack();
    let mut calls: JoinSet<_> = (0..1_000).map(|_| stack.clone().oneshot(orders())).collect();
    while let Some(response) = calls.join_next().await {
        assert_eq!(response.unwrap().unwrap().status(), 200);
    }
    // Codes are half a minute apart, so logins of the other waiters would be too.
    tokio::time::sleep(secs(600)).await;
    assert_eq!(bench.logins.count(), 1);
}

/// Against clients in which each waiter repeats the login that has just failed.
#[tokio::test(start_paused = true)]
async fn t05_a_failed_login_fails_for_everybody_who_waited_and_is_not_repeated() {
    let bench = Bench::new([Answer::Status(401)]);
    let stack = bench.stack();
    let mut calls: JoinSet<_> = (0..1_000).map(|_| stack.clone().oneshot(orders())).collect();
    while let Some(response) = calls.join_next().await {
        assert_eq!(kind(&response.unwrap().unwrap_err()), AuthErrorKind::Latched);
    }
    tokio::time::sleep(secs(600)).await;
    assert_eq!(bench.logins.count(), 2, "the budget, once for all");
    assert_eq!(bench.api.count(), 0);
}

/// Against clients in which a dropped caller takes the login that it drives with it.
#[tokio::test(start_paused = true)]
async fn t06_a_dropped_caller_neither_stops_the_login_nor_wastes_its_code() {
    let bench = Bench::new([Answer::Token("one")]);
    bench.api.accept(["one"]);
    let logins = bench.logins.clone().taking(secs(5));
    let call = bench.spawn_get();
    tokio::time::sleep(secs(1)).await;
    assert_eq!(logins.count(), 1);
    call.abort();
    tokio::time::sleep(secs(10)).await;
    assert_eq!(bench.source.status().phase, TokenPhase::Valid);
    assert_eq!(bench.get().await.unwrap().status(), 200);
    assert_eq!(logins.count(), 1);
}

/// Against clients that count a token's age by the monotonic clock, which stands still in a suspended machine.
#[tokio::test(start_paused = true)]
async fn t07_a_token_that_ended_while_the_machine_slept_is_not_sent() {
    let bench = Bench::with_working_token("one", [Answer::Token("two")]).await;
    bench.api.accept(["two"]);
    tokio::time::advance(hours(14)).await;
    bench.clock.suspend(hours(10));
    assert_eq!(bench.source.status().phase, TokenPhase::Expired);
    assert_eq!(bench.get().await.unwrap().status(), 200);
    assert_eq!(bench.api.tokens(), ["one", "two"], "no 401 was needed to notice");
}

/// Against clients that count a token's age by a wall clock, which may be set.
#[tokio::test(start_paused = true)]
async fn t27_a_wall_clock_that_is_set_ends_no_token_and_keeps_none_alive() {
    for days in [1, -1, 400] {
        let bench = Bench::with_working_token("one", [Answer::Token("two")]).await;
        bench.api.accept(["one", "two"]);
        tokio::time::advance(hours(1)).await;
        bench.clock.set_off(days * 86_400_000);
        assert_eq!(bench.get().await.unwrap().status(), 200);
        assert_eq!((bench.source.status().phase, bench.logins.count()), (TokenPhase::Valid, 1), "{days}");
        tokio::time::advance(hours(23)).await;
        assert_eq!(bench.get().await.unwrap().status(), 200);
        assert_eq!(bench.api.tokens(), ["one", "one", "two"], "{days}");
        assert_eq!((bench.source.status().phase, bench.logins.count()), (TokenPhase::Valid, 2), "{days}");
    }
}

/// The service's answer counts more than any clock.
#[tokio::test(start_paused = true)]
async fn t27_refused_and_dead_by_the_wall_clock_is_renewed_at_once() {
    let bench = Bench::with_working_token("one", [Answer::Token("two"), Answer::Token("three")]).await;
    for token in ["two", "three"] {
        tokio::time::advance(secs(60)).await;
        // The machine was stopped altogether, which none of its clocks has noticed.
        bench.clock.set_off(bench.logins.count() as i64 * 86_400_000);
        bench.api.accept([token]);
        assert_eq!(bench.get().await.unwrap().status(), 200, "{token}");
    }
    assert_eq!(bench.logins.count(), 3, "a suspicion allows one in a quarter of an hour");
}

#[tokio::test(start_paused = true)]
async fn t27_three_hours_of_sleep_age_a_token_by_three_hours() {
    for (awake, state) in [(18, TokenPhase::Valid), (20, TokenPhase::Advisory), (21, TokenPhase::Expired)] {
        let bench = Bench::with_working_token("one", [Answer::Token("two")]).await;
        bench.api.accept(["one", "two"]);
        tokio::time::advance(hours(awake)).await;
        bench.clock.suspend(hours(3));
        assert_eq!(bench.source.status().phase, state);
        assert_eq!(bench.get().await.unwrap().status(), 200);
        tokio::time::sleep(secs(60)).await;
        assert_eq!(bench.logins.count(), if state == TokenPhase::Valid { 1 } else { 2 }, "{state:?}");
    }
}

/// The clock is set between the send of a login and its answer.
#[tokio::test(start_paused = true)]
async fn t27_a_clock_set_during_a_login_ages_no_token() {
    for days in [1, -1] {
        let bench = Bench::new([Answer::Token("one")]);
        bench.api.accept(["one"]);
        let _slow = bench.logins.clone().taking(secs(5));
        let call = bench.spawn_get();
        tokio::time::sleep(secs(2)).await;
        bench.clock.set_off(days * 86_400_000);
        assert_eq!(call.await.unwrap().unwrap().status(), 200);
        assert_eq!(bench.source.status().phase, TokenPhase::Valid);
        tokio::time::advance(hours(24)).await;
        assert_eq!(bench.source.status().phase, TokenPhase::Expired, "{days}");
    }
}

/// Without a boot clock, the wall clock shows how long a machine was suspended.
#[tokio::test(start_paused = true)]
async fn t27_without_a_boot_clock_tokens_age_by_the_wall_clock() {
    let mut bench = Bench::new([Answer::Token("one"), Answer::Token("two")]);
    bench.source = TokenSource::builder(api_key(), totp_login(bench.logins.clone()))
        .clock(bench.clock.wall())
        .boot_clock(BootClock::new(|| None))
        .build();
    bench.api.accept(["one", "two"]);
    assert_eq!(bench.get().await.unwrap().status(), 200);
    tokio::time::advance(hours(14)).await;
    bench.clock.suspend(hours(10));
    assert_eq!(bench.source.status().phase, TokenPhase::Expired);
    assert_eq!(bench.get().await.unwrap().status(), 200);
    assert_eq!(bench.api.tokens(), ["one", "two"]);
}

/// Against clients that send the refused token once more.
#[tokio::test(start_paused = true)]
async fn t08_a_refused_token_is_not_sent_again_when_the_login_brings_no_other() {
    for script in [vec![Answer::Token("one")], vec![Answer::Status(401)], vec![Answer::Status(400)]] {
        let bench = Bench::with_working_token("one", script).await;
        bench.api.accept([]);
        let response = bench.get().await.unwrap();
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        assert!(response.extensions().get::<DoNotRetry>().is_some());
        assert_eq!(bench.api.count(), 2, "the one that worked and the one that was refused");
    }
}

/// Against clients whose resend carries the header of the first send.
#[tokio::test(start_paused = true)]
async fn t09_the_resend_carries_the_new_token() {
    let bench = Bench::with_working_token("one", [Answer::Token("two")]).await;
    bench.api.accept(["two"]);
    assert_eq!(bench.get().await.unwrap().status(), 200);
    assert_eq!(bench.api.tokens(), ["one", "one", "two"]);
    let resend = bench.api.seen().pop().unwrap();
    assert!(resend.head_of_lane, "it has waited for its permits once");
}

/// Against clients whose resend has an empty body.
#[tokio::test(start_paused = true)]
async fn t10_the_resend_carries_the_whole_body() {
    let bench = Bench::with_working_token("one", [Answer::Token("two")]).await;
    bench.api.accept(["two"]);
    let form = "symId=EQT_INFY_EQ_NSE&qty=1&side=buy";
    let response = bench.stack().oneshot(place_order(form)).await.unwrap();
    assert_eq!(response.status(), 200);
    let bodies: Vec<_> = bench.api.seen().into_iter().skip(1).map(|seen| seen.body).collect();
    assert_eq!(bodies, [form, form]);
}

/// Against clients whose clones each keep the token they were made with.
#[tokio::test(start_paused = true)]
async fn t11_every_clone_follows_the_roll_over() {
    let bench = Bench::with_working_token("one", [Answer::Token("two"), Answer::Status(400)]).await;
    let (first, second) = (bench.stack(), bench.stack().clone());
    bench.api.accept(["two"]);
    assert_eq!(first.oneshot(orders()).await.unwrap().status(), 200);
    assert_eq!(second.oneshot(orders()).await.unwrap().status(), 200);
    assert_eq!(bench.api.tokens(), ["one", "one", "two", "two"]);
}

/// A login whose codes come from a person who never answers.
struct Absent(Arc<Notify>);

impl Login for Absent {
    fn mode(&self) -> LoginMode {
        LoginMode::Attended
    }

    async fn attempt(&self, attempt: &Attempt) -> Result<Grant, LoginFailure> {
        self.0.notified().await;
        Ok(Grant::new("one", attempt.now()).valid_for(secs(600)))
    }
}

/// Against clients that report "unauthorized" for every cause.
#[tokio::test(start_paused = true)]
async fn t12_five_reasons_for_having_no_token_are_five_errors() {
    let mut bench = Bench::new([Answer::Status(401)]);
    assert_eq!(kind(&bench.get().await.unwrap_err()), AuthErrorKind::Latched);

    bench.source = TokenSource::not_configured(api_key());
    assert_eq!(kind(&bench.get().await.unwrap_err()), AuthErrorKind::NotConfigured);

    let person = Arc::new(Notify::new());
    bench.source =
        TokenSource::builder(api_key(), Absent(Arc::clone(&person))).clock(bench.clock.wall()).build();
    assert_eq!(kind(&bench.get().await.unwrap_err()), AuthErrorKind::NeverLoggedIn);
    assert_eq!(bench.source.status().phase, TokenPhase::NeedsHuman);

    person.notify_one();
    bench.source.login().await.unwrap();
    tokio::time::advance(secs(601)).await;
    assert_eq!(kind(&bench.get().await.unwrap_err()), AuthErrorKind::Expired);

    // A given token that the service does not know.
    bench.source = TokenSource::fixed(api_key(), "foreign").unwrap();
    for _ in 0..2 {
        let response = bench.get().await.unwrap();
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        assert_eq!(response.extensions().get::<Unrenewed>().unwrap().0.kind(), AuthErrorKind::Rejected);
        // One 401 proves nothing of it.
        tokio::time::advance(secs(2)).await;
    }
    assert_eq!(kind(&bench.get().await.unwrap_err()), AuthErrorKind::Rejected);
}

/// Against clients that send one code twice, which services answer with a counted 401.
#[tokio::test(start_paused = true)]
async fn t16_no_time_step_is_submitted_twice() {
    let script = [Answer::Status(429), Answer::Lost, Answer::Status(401), Answer::Token("one")];
    let bench = Bench::new(script);
    // A wrong login after one that may have been wrong is not repeated at once.
    bench.source.login().await.unwrap_err();
    tokio::time::sleep(hours(1)).await;
    bench.source.login().await.unwrap();
    let mut codes: Vec<_> =
        bench.logins.seen().iter().map(|seen| seen.form().get("twoFa").unwrap().to_owned()).collect();
    assert_eq!(codes.len(), 4);
    codes.sort();
    codes.dedup();
    assert_eq!(codes.len(), 4, "each code once");
}

/// Against clients whose codes are wrong while the clock is. From the second exchange on none may be.
#[tokio::test(start_paused = true)]
async fn t17_a_clock_that_is_off_costs_no_login_after_the_first() {
    for off_ms in (-8_000..=8_000).step_by(500).chain([-45_000, 95_000]) {
        for phase_ms in (0..30_000).step_by(2_900) {
            let bench = Bench::new([Answer::ByCode("one")]);
            bench.clock.set_off(off_ms);
            tokio::time::advance(std::time::Duration::from_millis(phase_ms)).await;
            bench.source.login().await.unwrap();
            let first = bench.logins.count();
            assert!(first <= 2, "{off_ms} ms off: {first} attempts");
            tokio::time::advance(secs(3_600)).await;
            bench.source.login().await.unwrap();
            assert_eq!(bench.logins.count(), first + 1, "{off_ms} ms off, phase {phase_ms} ms");
        }
    }
}
