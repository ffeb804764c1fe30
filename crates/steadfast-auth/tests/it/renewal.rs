use std::sync::{Arc, atomic::Ordering};

use parking_lot::Mutex;
use steadfast_auth::{
    AuthErrorKind, Credentials, DailyAt, IndividualLogin, OneTimeCode, Renewal, TokenPhase, TokenSource,
};
use steadfast_call::{BoxError, ext::TokenGeneration};

use crate::{
    refresh::flag,
    support::{Answer, Bench, api_key, base, hours, kind, secs, totp_login},
};

#[tokio::test(start_paused = true)]
async fn the_background_renews_before_the_end_and_no_request_waits() {
    let bench = Bench::with_working_token("one", [Answer::Token("two")]).await;
    bench.api.accept(["one", "two"]);
    let background = tokio::spawn(bench.source.keep_fresh());
    // Issued at 10:30 at +05:30; the daily time comes first.
    tokio::time::sleep(hours(21)).await;
    assert_eq!(bench.logins.count(), 1);
    tokio::time::sleep(secs(1_800 + 60)).await;
    assert_eq!(bench.logins.count(), 2, "08:00");
    assert_eq!(bench.source.status().generation, Some(TokenGeneration(2)));
    assert_eq!(bench.get().await.unwrap().status(), 200);
    drop(bench);
    tokio::time::sleep(secs(31)).await;
    assert!(background.is_finished(), "it ends with the last source");
}

#[tokio::test(start_paused = true)]
async fn without_the_background_the_first_request_starts_the_renewal_and_does_not_wait_for_it() {
    let bench = Bench::with_working_token("one", [Answer::Token("two")]).await;
    bench.api.accept(["one", "two"]);
    let _slow = bench.logins.clone().taking(secs(20));
    tokio::time::sleep(hours(23)).await;
    let start = tokio::time::Instant::now();
    assert_eq!(bench.get().await.unwrap().status(), 200);
    assert_eq!(start.elapsed(), secs(0));
    tokio::time::sleep(secs(60)).await;
    assert_eq!(bench.get().await.unwrap().status(), 200);
    assert_eq!(bench.api.tokens(), ["one", "one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_can_wait_waits_while_an_order_is_in_doubt() {
    let mut bench = Bench::new([Answer::Token("one"), Answer::Token("two")]);
    let (clear, may_renew) = flag(false);
    bench.source = TokenSource::builder(api_key(), totp_login(bench.logins.clone()))
        .clock(bench.clock.wall())
        .renewal(Renewal::new().daily(Some(DailyAt::new(8, 0, 330))))
        .may_renew(may_renew)
        .build();
    bench.api.accept(["one", "two"]);
    tokio::spawn(bench.source.keep_fresh());
    assert_eq!(bench.get().await.unwrap().status(), 200, "a first login is no renewal");
    tokio::time::sleep(hours(23)).await;
    assert_eq!(bench.get().await.unwrap().status(), 200);
    assert_eq!(bench.logins.count(), 1);
    assert_eq!(bench.source.status().phase, TokenPhase::Advisory);
    clear.store(true, Ordering::Relaxed);
    tokio::time::sleep(secs(31)).await;
    assert_eq!(bench.logins.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn in_the_last_minute_requests_wait_even_while_an_order_is_in_doubt() {
    let mut bench = Bench::new([Answer::Token("one"), Answer::Token("two")]);
    let (_clear, may_renew) = flag(false);
    bench.source = TokenSource::builder(api_key(), totp_login(bench.logins.clone()))
        .clock(bench.clock.wall())
        .may_renew(may_renew)
        .build();
    bench.api.accept(["one"]);
    assert_eq!(bench.get().await.unwrap().status(), 200);
    bench.api.accept(["two"]);
    tokio::time::advance(hours(24) - secs(50)).await;
    assert_eq!(bench.get().await.unwrap().status(), 200);
    assert_eq!(bench.api.tokens(), ["one", "two"]);
}

/// A token ages from the instant before the login was sent, so a slow answer makes no token younger.
#[tokio::test(start_paused = true)]
async fn a_slow_login_makes_no_token_younger() {
    let bench = Bench::new([Answer::ShortToken("one", 3_600)]);
    let _slow = bench.logins.clone().taking(secs(20));
    let before = bench.clock.wall().now();
    bench.source.login().await.unwrap();
    let expires = bench.source.status().expires_at.unwrap();
    let off = expires.duration_since(before + secs(3_600)).unwrap_or_else(|early| early.duration());
    assert!(off < secs(1), "{off:?}");
}

#[tokio::test(start_paused = true)]
async fn a_person_is_told_once_an_hour_ahead_and_never_asked_by_a_request() {
    let mut bench = Bench::new([Answer::Token("one")]);
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = Arc::clone(&told);
    let asked = Arc::new(Mutex::new(0));
    let ask = Arc::clone(&asked);
    let source = move || {
        *ask.lock() += 1;
        async { Ok::<_, BoxError>(OneTimeCode::new("123456")) }
    };
    let login =
        IndividualLogin::otp(bench.logins.clone(), &base(), api_key(), Credentials::new("U1", "p"), source);
    bench.source = TokenSource::builder(api_key(), login.unwrap())
        .clock(bench.clock.wall())
        .renewal(Renewal::new().daily(None).jitter_seed(7))
        .on_human_needed(move |needed| tell.lock().push(needed.within))
        .build();
    bench.api.accept(["one"]);
    tokio::spawn(bench.source.keep_fresh());

    assert_eq!(kind(&bench.get().await.unwrap_err()), AuthErrorKind::NeverLoggedIn);
    assert_eq!(*asked.lock(), 0);
    bench.source.login().await.unwrap();
    assert_eq!(bench.get().await.unwrap().status(), 200);
    assert_eq!(*asked.lock(), 1);

    tokio::time::sleep(hours(24) + secs(120)).await;
    let told = told.lock().clone();
    assert_eq!(told.len(), 1);
    assert!(told[0] >= secs(3_500) && told[0] <= secs(3_600 + 330), "{told:?}");
    assert_eq!(kind(&bench.get().await.unwrap_err()), AuthErrorKind::Expired);
    assert_eq!(*asked.lock(), 1);
}

#[tokio::test(start_paused = true)]
async fn logins_are_counted_against_the_ten_sessions_of_a_user() {
    let bench = Bench::new((0..9).map(|n| {
        let tokens = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
        Answer::Token(tokens[n])
    }));
    for expected in 1..=8 {
        bench.source.login().await.unwrap();
        assert_eq!(bench.source.status().sessions, expected);
        tokio::time::sleep(secs(60)).await;
    }
    tokio::time::sleep(hours(24)).await;
    bench.source.login().await.unwrap();
    assert_eq!(bench.source.status().sessions, 1, "a day later they are gone");
}

#[tokio::test(start_paused = true)]
async fn a_person_is_told_once_when_a_token_that_worked_is_refused() {
    let mut bench = Bench::new([Answer::Token("one")]);
    let told = Arc::new(Mutex::new(0));
    let tell = Arc::clone(&told);
    let codes = || async { Ok::<_, BoxError>(OneTimeCode::new("123456")) };
    let login =
        IndividualLogin::otp(bench.logins.clone(), &base(), api_key(), Credentials::new("U1", "p"), codes);
    bench.source = TokenSource::builder(api_key(), login.unwrap())
        .clock(bench.clock.wall())
        .on_human_needed(move |needed| {
            assert_eq!(needed.within, secs(0));
            *tell.lock() += 1;
        })
        .build();
    bench.api.accept(["one"]);
    bench.source.login().await.unwrap();
    assert_eq!(bench.get().await.unwrap().status(), 200);
    bench.api.accept([]);
    for _ in 0..3 {
        assert_eq!(bench.get().await.unwrap().status(), 401);
    }
    assert_eq!((*told.lock(), bench.logins.count()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_person_who_never_answers_does_not_stop_the_next_login() {
    let clock = crate::support::Clock::new();
    let script = crate::support::Script::new(&clock, [Answer::Token("one")]);
    let (present, is_present) = flag(false);
    let is_present = Arc::new(is_present);
    let codes = move || {
        let is_present = Arc::clone(&is_present);
        async move {
            if !is_present() {
                std::future::pending::<()>().await;
            }
            Ok::<_, BoxError>(OneTimeCode::new("123456"))
        }
    };
    let login = IndividualLogin::otp(script.clone(), &base(), api_key(), Credentials::new("U1", "p"), codes);
    let source = TokenSource::builder(api_key(), login.unwrap()).clock(clock.wall()).build();
    let start = tokio::time::Instant::now();
    assert_eq!(source.login().await.unwrap_err().kind(), AuthErrorKind::Unavailable);
    assert_eq!(start.elapsed().as_secs(), 300);
    present.store(true, Ordering::Relaxed);
    source.login().await.unwrap();
    assert_eq!(script.count(), 1);
}

/// The end is kept in the service's time, so correcting the clock later does not move it.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_off_or_set_right_later_does_not_move_the_end() {
    for off_ms in [-18_000_000, 18_000_000] {
        for set_right in [false, true] {
            let bench = Bench::new([Answer::Token("one")]);
            bench.clock.set_off(off_ms);
            bench.api.accept(["one"]);
            assert_eq!(bench.get().await.unwrap().status(), 200);
            if set_right {
                bench.clock.set_off(0);
                let now = bench.clock.wall().now();
                let mut headers = http::HeaderMap::new();
                headers.insert("date", httpdate::fmt_http_date(now).parse().unwrap());
                bench.source.observe_date(&headers, now, now);
            }
            tokio::time::advance(hours(20)).await;
            assert_eq!(bench.source.status().phase, TokenPhase::Valid, "{off_ms} {set_right}");
            assert_eq!(bench.get().await.unwrap().status(), 200);
            assert_eq!(bench.logins.count(), 1);
            bench.logins.answer_with([Answer::Token("two")]);
            bench.api.accept(["two"]);
            tokio::time::advance(hours(4) + secs(1)).await;
            assert_eq!(bench.source.status().phase, TokenPhase::Expired, "{off_ms} {set_right}");
            assert_eq!(bench.get().await.unwrap().status(), 200);
            assert!(!bench.api.tokens()[2..].contains(&"one".to_owned()), "{off_ms} {set_right}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_services_time_is_learned_from_business_answers_once_a_minute() {
    let bench = Bench::with_working_token("one", [Answer::Token("two")]).await;
    let offset = || bench.source.status().clock_offset_ms.unwrap();
    assert!(offset().abs() <= 1_000, "{}", offset());
    // This machine's clock is set back.
    bench.clock.set_off(-20_000);
    tokio::time::sleep(secs(90)).await;
    assert_eq!(bench.get().await.unwrap().status(), 200);
    assert!((offset() - 20_000).abs() <= 1_000, "{}", offset());
    bench.clock.set_off(0);
    assert_eq!(bench.get().await.unwrap().status(), 200);
    assert!((offset() - 20_000).abs() <= 1_000, "not at every answer: {}", offset());
    assert_eq!(bench.logins.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn neither_an_error_nor_a_cache_tells_the_time() {
    for answer in [Answer::Status(500), Answer::With(200, "age", "3600")] {
        let bench = Bench::with_working_token("one", [Answer::Token("two")]).await;
        bench.api.answer_with([answer]);
        bench.clock.set_off(-20_000);
        tokio::time::sleep(secs(90)).await;
        bench.get().await.unwrap();
        assert!(bench.source.status().clock_offset_ms.unwrap().abs() <= 1_000);
    }
}

#[tokio::test(start_paused = true)]
async fn only_a_source_that_fetches_its_tokens_renews_them() {
    let bench = Bench::new([Answer::Token("one")]);
    assert_eq!(bench.source.renewal(), Some(Renewal::new().jitter_seed(7)));
    assert_eq!(TokenSource::fixed(api_key(), "one").unwrap().renewal(), None);
    assert_eq!(TokenSource::not_configured(api_key()).renewal(), None);
}

#[test]
fn a_daily_time_reads_as_a_clock_shows_it() {
    for (hour, minute, offset, text) in
        [(8, 5, 345, "08:05 +05:45"), (23, 59, -210, "23:59 -03:30"), (0, 0, 0, "00:00 +00:00")]
    {
        let at = DailyAt::new(hour, minute, offset);
        assert_eq!(at.to_string(), text);
        assert!(Renewal::new().daily(Some(at)).to_string().contains(&format!("daily at {text}")));
    }
}
