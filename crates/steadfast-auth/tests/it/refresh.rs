use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::StatusCode;
use http_body_util::Full;
use steadfast_auth::{
    AuthErrorKind, AuthHeaderLayer, Cause, RefreshLayer, RefusedHeader, Renewal, TokenPhase, TokenSource,
    Unrenewed,
};
use steadfast_call::{Call, Failure, Outcome, Route, ext::DoNotRetry};
use steadfast_spec::Endpoint;
use tokio::{task::JoinSet, time::Instant};
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::support::{Answer, Bench, Script, api_key, base, kind, orders, place_order, secs, totp_login};

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_the_first_token_and_carries_it() {
    let bench = Bench::new([Answer::Token("one")]);
    bench.api.accept(["one"]);
    let logins = bench.logins.clone().taking(secs(3));
    let response = bench.get().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(bench.api.tokens(), ["one"]);
    assert_eq!(bench.api.seen()[0].at - logins.seen()[0].at, secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_no_longer_than_send_by_or_deadline_allow() {
    let bench = Bench::new([Answer::Hang]);
    let start = Instant::now();
    let mut by_deadline = orders();
    Call::of_mut(by_deadline.extensions_mut()).set_deadline((start + secs(7)).into_std());
    let mut by_both = by_deadline.clone();
    Call::of_mut(by_both.extensions_mut()).set_send_by((start + secs(5)).into_std());
    for (request, waited) in [(by_both, 5), (by_deadline, 7)] {
        let error = bench.stack().oneshot(request).await.unwrap_err();
        assert_eq!(kind(&error), AuthErrorKind::TooLate);
        assert_eq!(Failure::outcome_of(&*error), Outcome::NotSent);
        assert_eq!(start.elapsed(), secs(waited));
    }
    assert_eq!(bench.api.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_401_whose_renewal_comes_too_late_goes_to_the_caller() {
    let bench = Bench::with_working_token("one", [Answer::Hang]).await;
    bench.api.accept([]);
    let mut request = orders();
    Call::of_mut(request.extensions_mut()).set_deadline((Instant::now() + secs(5)).into_std());
    let start = Instant::now();
    let response = bench.stack().oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(response.extensions().get::<Unrenewed>().unwrap().0.kind(), AuthErrorKind::TooLate);
    assert_eq!(start.elapsed(), secs(5));
}

#[tokio::test(start_paused = true)]
async fn fifty_requests_refused_in_mid_burst_make_one_login_and_all_succeed() {
    let bench = Bench::with_working_token("one", [Answer::Token("two"), Answer::Status(400)]).await;
    bench.api.accept(["two"]);
    let api = bench.api.clone().taking(Duration::from_millis(40));
    let mut calls: JoinSet<_> = (0..50).map(|_| bench.stack().oneshot(place_order("qty=1"))).collect();
    while let Some(response) = calls.join_next().await {
        assert_eq!(response.unwrap().unwrap().status(), 200);
    }
    assert_eq!(bench.logins.count(), 2);
    assert_eq!(api.count(), 1 + 50 + 50);
}

/// It may have been executed in spite of the 401, and no list would show it. The token is still renewed, for later
/// requests.
#[tokio::test(start_paused = true)]
async fn o05_a_401_to_an_unknown_post_is_returned() {
    let bench = Bench::with_working_token("one", [Answer::Token("two")]).await;
    bench.api.accept(["two"]);
    let mut unknown = place_order("qty=1");
    *unknown.uri_mut() = "https://api.example/tradeapi/v2/api/oms/gtt-order".parse().unwrap();
    let sent = bench.api.count();
    let response = bench.stack().oneshot(unknown).await.unwrap();
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert!(response.extensions().get::<DoNotRetry>().is_some());
    assert_eq!(bench.api.count(), sent + 1);
    assert_eq!(bench.stack().oneshot(place_order("qty=1")).await.unwrap().status(), 200);
    assert_eq!((bench.api.count(), bench.logins.count()), (sent + 2, 2));
}

/// While a refused token is being renewed, no request is sent with it.
#[tokio::test(start_paused = true)]
async fn a_refused_token_is_withdrawn_until_its_renewal_is_there() {
    let bench = Bench::with_working_token("one", [Answer::Token("two")]).await;
    bench.api.accept(["two"]);
    let _slow = bench.logins.clone().taking(secs(10));
    let first = bench.spawn_get();
    tokio::time::sleep(secs(1)).await;
    assert_eq!(bench.source.status().phase, TokenPhase::Suspect);
    let second = bench.spawn_get();
    tokio::time::sleep(secs(1)).await;
    assert_eq!(bench.api.count(), 2, "the second waits and is not refused");
    assert_eq!(first.await.unwrap().unwrap().status(), 200);
    assert_eq!(second.await.unwrap().unwrap().status(), 200);
    assert_eq!(bench.api.tokens(), ["one", "one", "two", "two"]);
}

fn cancel() -> http::Request<Full<Bytes>> {
    let mut request = orders();
    *request.method_mut() = http::Method::DELETE;
    let route = Arc::new(Route::new(Endpoint::CancelOrder));
    Call::of_mut(request.extensions_mut()).set_route(route);
    request
}

/// Regression: after one stray 401 cancels waited for the login, up to 90 s, although the service accepted the token.
#[tokio::test(start_paused = true)]
async fn a_cancel_tries_the_token_in_doubt_and_waits_for_no_login() {
    for last in [Answer::Hang, Answer::Status(500), Answer::Status(401)] {
        let bench = Bench::with_working_token("one", [last]).await;
        bench.api.accept([]);
        let read = bench.spawn_get();
        tokio::time::sleep(secs(1)).await;
        bench.api.accept(["one"]);
        let (start, logins) = (Instant::now(), bench.logins.count());
        for _ in 0..3 {
            let left = tokio::time::timeout(secs(5), bench.stack().oneshot(cancel())).await;
            assert_eq!(left.expect("it waits for the login").unwrap().status(), 200);
        }
        assert_eq!((start.elapsed(), bench.logins.count()), (secs(0), logins));
        read.abort();
    }
}

/// It costs one more 401 if the token is over, and then the cancel waits like any other request.
#[tokio::test(start_paused = true)]
async fn a_cancel_whose_token_is_over_gets_the_next_one() {
    let bench = Bench::with_working_token("one", [Answer::Token("two")]).await;
    bench.api.accept(["two"]);
    let _slow = bench.logins.clone().taking(secs(10));
    let read = bench.spawn_get();
    tokio::time::sleep(secs(1)).await;
    assert_eq!(bench.stack().oneshot(cancel()).await.unwrap().status(), 200);
    assert_eq!(read.await.unwrap().unwrap().status(), 200);
    assert_eq!(bench.api.tokens(), ["one", "one", "one", "two", "two"]);
    assert_eq!(bench.logins.count(), 2);
}

/// A request whose token is withdrawn while it waits for its permit gets the next token.
#[tokio::test(start_paused = true)]
async fn a_token_withdrawn_behind_a_waiting_request_costs_it_nothing() {
    let bench = Bench::with_working_token("one", [Answer::Token("two")]).await;
    bench.api.accept(["two"]);
    let _slow = bench.logins.clone().taking(secs(10));
    let header = AuthHeaderLayer::new(bench.source.clone()).layer(bench.api.clone());
    // Stands for the rate limiter: the first pass takes five seconds.
    let queue = service_fn(move |request| {
        let header = header.clone();
        async move {
            tokio::time::sleep(secs(5)).await;
            header.oneshot(request).await
        }
    });
    let queued = RefreshLayer::new(bench.source.clone()).layer(queue);
    let waiting = tokio::spawn(queued.oneshot(orders()));
    tokio::time::sleep(secs(1)).await;
    let first = bench.spawn_get();
    assert_eq!(waiting.await.unwrap().unwrap().status(), 200);
    assert_eq!(first.await.unwrap().unwrap().status(), 200);
    assert_eq!(bench.api.tokens(), ["one", "one", "two", "two"], "no second 401");
}

/// A repeat whose token is withdrawn before it leaves waits for the next one and still has its request.
#[tokio::test(start_paused = true)]
async fn t26_a_token_withdrawn_before_a_repeat_costs_it_nothing() {
    let bench = Bench::new([Answer::Token("one"), Answer::Token("two")]);
    // The token may not be known everywhere yet, so it is tried again in two seconds.
    bench.api.accept([]);
    let repeated = tokio::spawn(bench.stack().oneshot(place_order("qty=1")));
    tokio::time::sleep(secs(1)).await;
    bench.api.accept(["one"]);
    assert_eq!(bench.get().await.unwrap().status(), 200);
    // It works by then, but is ended before the repeat.
    bench.api.accept(["two"]);
    let _slow = bench.logins.clone().taking(secs(10));
    assert_eq!(bench.get().await.unwrap().status(), 200);
    assert_eq!(repeated.await.unwrap().unwrap().status(), 200);
    assert_eq!(bench.api.tokens(), ["one", "one", "one", "two", "two"]);
    let bodies = bench.api.seen().into_iter().map(|seen| seen.body).filter(|body| !body.is_empty());
    assert_eq!(bodies.collect::<Vec<_>>(), ["qty=1", "qty=1"], "the order, and its repeat");
}

/// Two sources in one stack are a mistake, which must not cause an endless loop.
#[tokio::test(start_paused = true)]
async fn a_header_that_never_finds_a_token_ends_in_an_error() {
    let bench = Bench::with_working_token("one", [Answer::Token("two")]).await;
    let other = AuthHeaderLayer::new(TokenSource::not_configured(api_key()));
    let service = RefreshLayer::new(bench.source.clone()).layer(other.layer(bench.api.clone()));
    let error = service.oneshot(orders()).await.unwrap_err();
    let source = std::error::Error::source(Failure::find(&*error).unwrap()).unwrap();
    assert_eq!(source.downcast_ref(), Some(&RefusedHeader::NoToken));
    assert_eq!(bench.logins.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waited_for_a_renewal_that_failed_goes_with_the_token_there_is() {
    let bench = Bench::with_working_token("one", [Answer::NotSent]).await;
    tokio::time::advance(secs(86_400 - 50)).await;
    let start = Instant::now();
    assert_eq!(bench.get().await.unwrap().status(), 200);
    assert_eq!(start.elapsed(), secs(15), "1/2/4/8");
    assert_eq!(bench.logins.count(), 1 + 5);
}

#[tokio::test(start_paused = true)]
async fn a_second_401_with_the_same_new_token_surfaces() {
    let bench = Bench::with_working_token("one", [Answer::Token("two"), Answer::Token("three")]).await;
    bench.api.accept([]);
    let response = bench.get().await.unwrap();
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert!(response.extensions().get::<DoNotRetry>().is_some());
    assert_eq!(bench.api.tokens(), ["one", "one", "two", "two"]);
    assert_eq!(bench.logins.count(), 2);
}

/// Regression: one stray 401 caused a login, and none followed for 15 minutes, although the session had ended.
#[tokio::test(start_paused = true)]
async fn a_session_that_ends_soon_after_a_stray_401_is_told_and_followed_by_another() {
    let answers = [Answer::Token("two"), Answer::Token("three"), Answer::Token("four")];
    let bench = Bench::with_working_token("one", answers).await;
    bench.api.answer_with([Answer::Status(401), Answer::ByToken]);
    bench.api.accept(["one", "two"]);
    let suspected = Instant::now();
    assert_eq!(bench.get().await.unwrap().status(), 200, "one stray 401");
    assert_eq!(bench.logins.count(), 2);
    bench.api.accept(["three"]);
    // The login has waited for the next code.
    let ended = Instant::now();
    while suspected.elapsed() < secs(60) {
        let refused = bench.get().await.unwrap();
        assert_eq!(refused.status(), 401);
        let ready = refused.extensions().get::<Unrenewed>().unwrap().0.ready_at();
        let status = bench.source.status();
        // One 401 may be a mistake.
        let is_known = ended.elapsed() >= secs(2);
        assert_eq!((status.unusable, ready), (is_known, is_known.then_some(suspected + secs(60))));
        assert_eq!(status.phase, if is_known { TokenPhase::Suspect } else { TokenPhase::Valid });
        assert_eq!(status.next_login_at.is_some(), is_known);
        tokio::time::sleep(secs(7)).await;
    }
    assert_eq!(bench.logins.count(), 2);
    assert_eq!(bench.get().await.unwrap().status(), 200);
    assert_eq!((bench.logins.count(), bench.source.status().unusable), (3, false));
    // The next one waits longer, and an answer shows that the token works after all.
    bench.api.answer_with([Answer::Status(401), Answer::Status(401), Answer::ByToken]);
    for _ in 0..2 {
        assert_eq!(bench.get().await.unwrap().status(), 401);
        tokio::time::sleep(secs(50)).await;
    }
    assert!(bench.source.status().unusable);
    assert_eq!(bench.get().await.unwrap().status(), 200);
    assert_eq!((bench.logins.count(), bench.source.status().phase), (3, TokenPhase::Valid));
}

#[tokio::test(start_paused = true)]
async fn a_403_is_no_reason_to_log_in_and_shows_that_the_token_works() {
    let bench = Bench::new([Answer::Token("one"), Answer::Token("two")]);
    bench.api.answer_with([Answer::Status(403)]);
    for _ in 0..5 {
        assert_eq!(bench.get().await.unwrap().status(), 403);
    }
    assert_eq!((bench.api.count(), bench.logins.count()), (5, 1));
    assert!(bench.source.token().unwrap().has_worked());
}

#[tokio::test(start_paused = true)]
async fn neither_429_nor_a_broken_upstream_shows_that_a_token_works() {
    for status in [429, 400, 500, 502, 503, 504] {
        let bench = Bench::new([Answer::Token("one")]);
        bench.api.answer_with([Answer::Status(status)]);
        assert_eq!(bench.get().await.unwrap().status(), status);
        assert!(!bench.source.token().unwrap().has_worked(), "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_token_that_is_not_known_everywhere_yet_is_tried_once_more_after_2_seconds() {
    let bench = Bench::new([Answer::Token("one"), Answer::Token("two")]);
    bench.api.answer_with([Answer::Status(401), Answer::Body("{}")]);
    assert_eq!(bench.get().await.unwrap().status(), 200);
    let sends = bench.api.seen();
    assert_eq!(sends[1].at - sends[0].at, secs(2));
    assert_eq!(bench.api.tokens(), ["one", "one"]);
    assert_eq!(bench.logins.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_pause_of_2_seconds_is_not_begun_when_the_deadline_comes_first() {
    let bench = Bench::new([Answer::Token("one")]);
    bench.source.login().await.unwrap();
    let mut request = orders();
    Call::of_mut(request.extensions_mut()).set_deadline((Instant::now() + secs(2)).into_std());
    let start = Instant::now();
    let response = bench.stack().oneshot(request).await.unwrap();
    assert_eq!(response.extensions().get::<Unrenewed>().unwrap().0.kind(), AuthErrorKind::TooLate);
    assert_eq!((start.elapsed(), bench.api.count()), (secs(0), 1));
}

#[tokio::test(start_paused = true)]
async fn a_token_that_was_never_accepted_opens_the_breaker() {
    let bench = Bench::new([Answer::Token("one"), Answer::Token("two")]);
    let response = bench.get().await.unwrap();
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    let causes = response.extensions().get::<Unrenewed>().unwrap().0.causes().to_vec();
    assert_eq!(causes.first(), Some(&Cause::IpNotWhitelisted));
    assert_eq!(bench.source.status().phase, TokenPhase::Suspect);

    // Breaker open: nothing is sent, and no login starts.
    for _ in 0..20 {
        assert_eq!(kind(&bench.get().await.unwrap_err()), AuthErrorKind::Rejected);
        tokio::time::sleep(secs(1)).await;
    }
    assert_eq!((bench.api.count(), bench.logins.count()), (2, 1));

    // Half open: one request in 30 seconds tests the service, and closes the breaker once the address is on the
    // whitelist.
    tokio::time::sleep(secs(10)).await;
    assert_eq!(bench.get().await.unwrap().status(), 401);
    assert_eq!(kind(&bench.get().await.unwrap_err()), AuthErrorKind::Rejected);
    assert_eq!(bench.api.count(), 3);
    bench.api.accept(["one"]);
    tokio::time::sleep(secs(30)).await;
    assert_eq!(bench.get().await.unwrap().status(), 200);
    assert_eq!(bench.get().await.unwrap().status(), 200);
    assert_eq!(bench.logins.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_reset_drops_a_token_that_was_never_accepted() {
    let bench = Bench::new([Answer::Token("one"), Answer::Token("two")]);
    assert_eq!(bench.get().await.unwrap().status(), 401);
    bench.api.accept(["two"]);
    bench.source.reset();
    assert!(bench.source.token().is_none());
    assert_eq!(bench.get().await.unwrap().status(), 200);
    assert_eq!(bench.logins.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_suspect_token_whose_renewal_fails_is_used_again() {
    let bench = Bench::with_working_token("one", [Answer::NotSent]).await;
    bench.api.answer_with([Answer::Status(401), Answer::ByToken]);
    let response = bench.get().await.unwrap();
    assert_eq!(response.status(), 401, "no newer token came");
    assert_eq!(response.extensions().get::<Unrenewed>().unwrap().0.kind(), AuthErrorKind::Unavailable);
    assert_eq!(bench.get().await.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn requests_that_need_no_token_pass_without_one() {
    let bench = Bench::new([Answer::Hang]);
    bench.api.answer_with([Answer::Status(401)]);
    let mut request = orders();
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = base().join("/api-gw/oauth/individual-token-v2").unwrap();
    assert_eq!(bench.stack().oneshot(request).await.unwrap().status(), 401);
    assert_eq!((bench.api.count(), bench.logins.count()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn no_more_requests_wait_than_are_allowed_and_dropped_ones_make_room() {
    let mut bench = Bench::new([Answer::Hang]);
    bench.source = TokenSource::builder(api_key(), totp_login(bench.logins.clone()))
        .clock(bench.clock.wall())
        .renewal(Renewal::new().max_waiting(2))
        .build();
    let first = bench.spawn_get();
    let _second = bench.spawn_get();
    tokio::time::sleep(secs(1)).await;
    assert_eq!(kind(&bench.get().await.unwrap_err()), AuthErrorKind::Overloaded);
    first.abort();
    tokio::time::sleep(secs(1)).await;
    let third = tokio::time::timeout(secs(1), bench.get()).await;
    assert!(third.is_err(), "it waits");
}

/// Against layers that ask a service for readiness and then do not call it.
#[tokio::test(start_paused = true)]
async fn no_slot_below_is_held_while_a_request_waits_for_a_token() {
    let bench = Bench::new([Answer::Hang]);
    let limited = tower::limit::ConcurrencyLimit::new(bench.api.clone(), 1);
    let header = AuthHeaderLayer::new(bench.source.clone());
    let mut waiting = RefreshLayer::new(bench.source.clone()).layer(header.layer(limited.clone()));
    let call = tokio::spawn(waiting.ready().await.unwrap().call(orders()));
    tokio::time::sleep(secs(1)).await;
    bench.api.answer_with([Answer::Body("{}")]);
    assert!(tokio::time::timeout(secs(1), limited.oneshot(orders())).await.is_ok());
    assert!(!call.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_login_that_panics_fails_its_waiters_and_is_not_repeated_at_once() {
    let bench = Bench::new([Answer::Panic, Answer::Token("one")]);
    bench.api.accept(["one"]);
    assert_eq!(kind(&bench.get().await.unwrap_err()), AuthErrorKind::Unavailable);
    assert_eq!(kind(&bench.get().await.unwrap_err()), AuthErrorKind::Unavailable);
    assert_eq!(bench.logins.count(), 1);
    tokio::time::sleep(secs(30)).await;
    assert_eq!(bench.get().await.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn tokens_that_live_for_a_second_do_not_make_a_storm_of_logins() {
    let bench = Bench::new([Answer::ShortToken("one", 1)]);
    bench.api.accept(["one"]);
    let end = Instant::now() + secs(600);
    while Instant::now() < end {
        let _ = bench.get().await;
        tokio::time::sleep(secs(1)).await;
    }
    assert!(bench.logins.count() <= 21, "{}", bench.logins.count());
}

#[tokio::test(start_paused = true)]
async fn dropping_a_request_at_any_point_leaves_the_source_usable() {
    for dropped_after_ms in (0..9_000).step_by(250) {
        let bench = Bench::with_working_token("one", [Answer::Token("two")]).await;
        bench.api.accept(["two"]);
        let _slow = (bench.logins.clone().taking(secs(3)), bench.api.clone().taking(secs(2)));
        let call = bench.spawn_get();
        tokio::time::sleep(Duration::from_millis(dropped_after_ms)).await;
        call.abort();
        tokio::time::sleep(secs(30)).await;
        assert_eq!(bench.get().await.unwrap().status(), 200, "dropped after {dropped_after_ms} ms");
        assert_eq!(bench.logins.count(), 2, "dropped after {dropped_after_ms} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_names_the_failure_of_the_login_that_is_its_reason_and_no_older_one() {
    let chain = |error: &dyn std::error::Error| {
        let (mut text, mut next) = (error.to_string(), error.source());
        while let Some(error) = next {
            text = format!("{text}: {error}");
            next = error.source();
        }
        text
    };
    let bench = Bench::with_working_token("one", [Answer::Status(401)]).await;
    bench.api.accept([]);
    for _ in 0..2 {
        let response = bench.get().await.unwrap();
        let error = &response.extensions().get::<Unrenewed>().unwrap().0;
        assert_eq!(error.kind(), AuthErrorKind::Latched);
        assert!(chain(error).ends_with("login refused with 401"), "{}", chain(error));
    }
    tokio::time::advance(secs(86_400)).await;
    let error = bench.get().await.unwrap_err();
    assert!(chain(&*error).ends_with("login refused with 401"), "{}", chain(&*error));

    // A failure followed by a success is no longer a reason.
    let bench = Bench::new([Answer::NotSent]);
    bench.api.accept(["one"]);
    let error = bench.get().await.unwrap_err();
    assert!(chain(&*error).contains("login not sent"), "{}", chain(&*error));
    tokio::time::sleep(secs(10)).await;
    bench.logins.answer_with([Answer::ShortToken("one", 1)]);
    bench.source.login().await.unwrap();
    tokio::time::advance(secs(2)).await;
    let error = bench.get().await.unwrap_err();
    assert_eq!(kind(&error), AuthErrorKind::Unavailable);
    assert!(!chain(&*error).contains("login not sent"), "{}", chain(&*error));
}

/// Returns a flag and a hook that reads it.
pub(crate) fn flag(value: bool) -> (Arc<AtomicBool>, impl Fn() -> bool + Send + Sync + 'static) {
    let flag = Arc::new(AtomicBool::new(value));
    let read = Arc::clone(&flag);
    (flag, move || read.load(Ordering::Relaxed))
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_a_generation_is_handed_on_as_it_is() {
    let bench = Bench::with_working_token("one", [Answer::Token("two")]).await;
    let bare = Script::new(&bench.clock, [Answer::Status(401)]);
    let response =
        RefreshLayer::new(bench.source.clone()).layer(bare.clone()).oneshot(orders()).await.unwrap();
    assert_eq!(response.status(), 401);
    assert_eq!((bare.count(), bench.logins.count()), (1, 1), "nobody knows which token was refused");
}

/// A 401 to another session's token proves nothing about the current one, and renews nothing.
#[tokio::test(start_paused = true)]
async fn a_401_to_an_authorization_of_its_own_goes_back_as_it_is() {
    let bench = Bench::with_working_token("one", [Answer::Token("two")]).await;
    let (logins, sent) = (bench.logins.count(), bench.api.count());
    let mut request = orders();
    request.headers_mut().insert(http::header::AUTHORIZATION, "Bearer K3y:older".parse().unwrap());
    Call::of_mut(request.extensions_mut()).keep_authorization();
    let response = bench.stack().oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    assert_eq!((bench.logins.count(), bench.api.count()), (logins, sent + 1));
    assert_eq!(bench.api.tokens().last().unwrap(), "older");
    assert_eq!(bench.get().await.unwrap().status(), 200, "the current one is as good as before");
}

/// Only a request that was refused or never left is sent again; a lost answer proves neither.
#[tokio::test(start_paused = true)]
async fn an_order_whose_answer_is_lost_is_not_sent_again() {
    let bench = Bench::with_working_token("one", [Answer::Token("two")]).await;
    let sent = bench.api.count();
    bench.api.answer_with([Answer::Lost, Answer::Body("{}")]);
    let error = bench.stack().oneshot(place_order("qty=1")).await.unwrap_err();
    assert!(matches!(Failure::outcome_of(&*error), Outcome::Unknown { .. }), "{error}");
    assert_eq!((bench.api.count(), bench.logins.count()), (sent + 1, 1));
}
