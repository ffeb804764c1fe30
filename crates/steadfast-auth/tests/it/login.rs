use std::{sync::Arc, time::Duration};

use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use steadfast_auth::{
    ApiKey, AuthErrorKind, CodeExchange, Credentials, Gate, GatePermit, IndividualLogin, InvalidSecret,
    Login, LoginFields, OneTimeCode, TokenPhase, TokenSource, TotpSecret,
};
use steadfast_call::{BoxError, Lane};
use steadfast_spec::{BaseUrl, Form, Zone};
use tokio::time::Instant;

use crate::support::{
    Answer, Bench, Clock, START_S, Script, TOTP_SECRET, api_key, base, hours, secs, totp, totp_login,
};

fn pauses(script: &Script) -> Vec<u64> {
    let at: Vec<_> = script.seen().iter().map(|seen| seen.at).collect();
    at.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect()
}

#[tokio::test(start_paused = true)]
async fn spec_4_3_the_login_sends_the_key_alone_and_the_four_fields() {
    let bench = Bench::new([Answer::Token("one")]);
    bench.source.login().await.unwrap();
    let seen = &bench.logins.seen()[0];
    assert_eq!(seen.uri, "https://api.example/tradeapi/v2/api-gw/oauth/individual-token-v2");
    assert_eq!(seen.authorization.as_deref(), Some("Bearer K3y"));
    let expected = Form::new()
        .with("client_id", "U1")
        .with("password", "hunter2")
        .with("twoFa", totp(START_S / 30))
        .with("twoFaTyp", "totp");
    assert_eq!(seen.form(), expected);
}

#[tokio::test(start_paused = true)]
async fn the_field_client_id_can_be_left_out_and_fields_renamed() {
    let clock = Clock::new();
    let script = Script::new(&clock, [Answer::Token("one")]);
    let mut fields = LoginFields::without_client_id();
    fields.two_fa = "otpCode".into();
    let login = totp_login(script.clone()).fields(fields);
    TokenSource::builder(api_key(), login).clock(clock.wall()).build().login().await.unwrap();
    let form = script.seen()[0].form();
    assert!(!form.contains("client_id") && !form.contains("twoFa") && form.contains("otpCode"));
}

#[tokio::test(start_paused = true)]
async fn a_wrong_login_is_tried_once_more_in_the_next_step_and_then_latches() {
    let bench = Bench::new([Answer::Status(401)]);
    let error = bench.source.login().await.unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Latched);
    let codes: Vec<_> =
        bench.logins.seen().iter().map(|seen| seen.form().get("twoFa").unwrap().to_owned()).collect();
    assert_eq!(codes, [totp(START_S / 30), totp(START_S / 30 + 1)]);
    assert_eq!(bench.source.status().phase, TokenPhase::Latched);

    tokio::time::sleep(hours(100)).await;
    assert_eq!(bench.source.login().await.unwrap_err().kind(), AuthErrorKind::Latched);
    assert_eq!(bench.logins.count(), 2, "no time opens the latch");
    bench.source.reset();
    bench.logins.answer_with([Answer::Token("one")]);
    bench.source.login().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_the_gateway_denies_latches_nothing_and_is_asked_again_after_a_quarter_of_an_hour() {
    for status in [403, 404, 405] {
        let bench = Bench::new([Answer::Status(status)]);
        let error = bench.source.login().await.unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Rejected, "{status}");
        assert_eq!(error.ready_at(), Some(Instant::now() + secs(900)));
        tokio::time::sleep(secs(899)).await;
        assert!(bench.source.login().await.is_err());
        assert_eq!(bench.logins.count(), 1, "left alone");
        bench.logins.answer_with([Answer::Status(401), Answer::Token("one")]);
        tokio::time::sleep(secs(1)).await;
        // The unknown end may have been wrong too, so a wrong login now counts as the second.
        let error = bench.source.login().await.unwrap_err();
        assert_eq!((error.kind(), bench.logins.count()), (AuthErrorKind::Unavailable, 2));
        tokio::time::sleep(secs(3_600)).await;
        bench.source.login().await.unwrap();
        assert_eq!(bench.logins.count(), 3, "and latched nothing");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_the_service_refuses_as_wrong_latches_at_once() {
    for status in [400, 415] {
        let bench = Bench::new([Answer::Status(status)]);
        let error = bench.source.login().await.unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Latched, "{status}");
        assert_eq!(bench.logins.count(), 1);
        let mut chain = String::new();
        let mut next: Option<&dyn std::error::Error> = Some(&error);
        while let Some(error) = next {
            chain.push_str(&error.to_string());
            next = error.source();
        }
        assert!(chain.contains(&format!("answered {status}")), "{chain}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_429_pauses_and_spends_nothing() {
    let mut script = vec![Answer::With(429, "retry-after", "45")];
    script.extend([Answer::Status(429), Answer::Status(429), Answer::Status(401), Answer::Token("one")]);
    let bench = Bench::new(script);
    bench.source.login().await.unwrap();
    // Each further attempt also waits for an unused step: half minutes here. The service asked for 45 s before the
    // first.
    assert_eq!(pauses(&bench.logins), [45, 15, 30, 30]);
}

#[tokio::test(start_paused = true)]
async fn each_wait_within_a_login_is_reported_when_it_begins() {
    let bench =
        Bench::new([Answer::With(429, "retry-after", "45"), Answer::Status(401), Answer::Token("one")]);
    let waits: Arc<Mutex<Vec<_>>> = Arc::default();
    let (told, clock) = (waits.clone(), bench.clock.wall());
    let source = TokenSource::builder(api_key(), totp_login(bench.logins.clone()))
        .clock(bench.clock.wall())
        .on_login_wait(move |wait| {
            let left = wait.until.duration_since(clock.now()).unwrap_or_default();
            told.lock().push((wait.after, left.as_secs()));
        })
        .build();
    source.login().await.unwrap();
    assert_eq!(*waits.lock(), [(Some("rate_limited"), 45), (Some("refused"), 15)]);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_never_left_is_repeated_after_1_2_4_8_seconds_with_its_step() {
    let bench = Bench::new([Answer::NotSent]);
    assert_eq!(bench.source.login().await.unwrap_err().kind(), AuthErrorKind::Unavailable);
    assert_eq!(pauses(&bench.logins), [1, 2, 4, 8]);
    let codes: Vec<_> = bench.logins.seen().into_iter().map(|seen| seen.body).collect();
    assert!(codes.iter().all(|code| *code == codes[0]), "the code has not been submitted yet");
}

/// A token with a colon used to be accepted: the header had three parts, every request got a 401, and no login
/// followed.
#[tokio::test(start_paused = true)]
async fn t22_a_token_with_a_colon_is_no_token_and_the_login_is_repeated() {
    let bench = Bench::new([Answer::Token("K3y:one"), Answer::Token("two")]);
    bench.api.accept(["two"]);
    assert_eq!(bench.get().await.unwrap().status(), 200);
    assert_eq!((bench.logins.count(), bench.api.tokens()), (2, vec!["two".to_owned()]));

    let bench = Bench::new([Answer::Token("one:")]);
    assert_eq!(bench.source.login().await.unwrap_err().kind(), AuthErrorKind::Unavailable);
    assert_eq!(bench.logins.count(), 2, "two at once, like every answer without a token");
    assert!(pauses(&bench.logins).iter().all(|&s| s >= 30));

    let given = TokenSource::fixed(api_key(), "K3y:one").unwrap_err();
    assert_eq!(given, InvalidSecret::Token);
    assert!(!given.to_string().contains("one"), "{given}");
}

#[tokio::test(start_paused = true)]
async fn t21_logins_in_doubt_are_two_at_once_and_half_a_minute_apart() {
    for doubt in [
        Answer::Status(500),
        Answer::Status(504),
        Answer::Lost,
        Answer::Hang,
        Answer::Body(r#"{"access_tok"#),
        Answer::Body("<html>"),
    ] {
        let bench = Bench::new([doubt.clone()]);
        let error = bench.source.login().await.unwrap_err();
        assert_eq!(error.kind(), AuthErrorKind::Unavailable, "{doubt:?}");
        assert_eq!(bench.logins.count(), 2, "{doubt:?}");
        assert!(pauses(&bench.logins).iter().all(|&s| s >= 30), "{doubt:?}");
        assert!(error.ready_at().unwrap() > Instant::now() + secs(3_300));
        bench.source.login().await.unwrap_err();
        tokio::time::sleep(secs(1_800)).await;
        bench.source.login().await.unwrap_err();
        assert_eq!(bench.logins.count(), 2, "{doubt:?}");
        assert_eq!(bench.source.status().sessions, 2, "each may have opened one");
    }
}

/// The second attempt after a wrong login uses the other clock, so that a wrong clock does not latch.
#[tokio::test(start_paused = true)]
async fn the_second_try_is_by_the_services_clock() {
    let bench = Bench::new([Answer::ByCode("one")]);
    bench.clock.set_off(-600_000);
    bench.source.login().await.unwrap();
    assert_eq!(bench.logins.count(), 2);
    let offset = bench.source.status().clock_offset_ms.unwrap();
    assert!((offset - 600_000).abs() <= 1_000, "{offset}");
}

/// A gate that delays logins and records what it sees.
#[derive(Clone)]
struct SlowGate {
    takes: Duration,
    log: Arc<Mutex<Vec<String>>>,
}

struct Logged(Arc<Mutex<Vec<String>>>);

impl Gate for SlowGate {
    type Permit = Logged;

    async fn acquire(&self, zones: &[Zone], lane: Lane) -> Result<Logged, BoxError> {
        tokio::time::sleep(self.takes).await;
        self.log.lock().push(format!("{zones:?} {lane}"));
        Ok(Logged(Arc::clone(&self.log)))
    }
}

impl GatePermit for Logged {
    fn sent(&mut self) {
        self.0.lock().push("sent".into());
    }

    fn answered(&mut self, status: StatusCode, _: &HeaderMap) {
        self.0.lock().push(format!("answered {}", status.as_u16()));
    }
}

impl Drop for Logged {
    fn drop(&mut self) {
        self.0.lock().push("dropped".into());
    }
}

/// Against clients whose code grows stale while the login waits for its permit.
#[tokio::test(start_paused = true)]
async fn the_code_is_made_after_the_permit_is_in_hand() {
    let clock = Clock::new();
    let script = Script::new(&clock, [Answer::ByCode("one")]);
    let gate = SlowGate { takes: secs(70), log: Arc::default() };
    let login = totp_login(script.clone()).gate(gate.clone());
    TokenSource::builder(api_key(), login).clock(clock.wall()).build().login().await.unwrap();
    assert_eq!(script.count(), 1, "right at the first try");
    let log = gate.log.lock().clone();
    assert_eq!(log, ["[Zone(otp), Zone(api_key)] critical", "sent", "answered 200", "dropped"]);
}

/// A gate that never answers.
struct ShutGate;

impl Gate for ShutGate {
    type Permit = ();

    async fn acquire(&self, _: &[Zone], _: Lane) -> Result<(), BoxError> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_never_answers_does_not_hold_logins_up_for_ever() {
    let clock = Clock::new();
    let script = Script::new(&clock, [Answer::Token("one")]);
    let login = totp_login(script.clone()).gate(ShutGate);
    let source = TokenSource::builder(api_key(), login).clock(clock.wall()).build();
    let start = Instant::now();
    assert_eq!(source.login().await.unwrap_err().kind(), AuthErrorKind::Unavailable);
    assert!(start.elapsed() < secs(15 * 60));
    assert_eq!(script.count(), 0);
}

/// Against logins that hold a permit, and so block their zone, while they wait for the next code.
#[tokio::test(start_paused = true)]
async fn no_permit_is_held_while_the_next_step_is_waited_for() {
    let clock = Clock::new();
    let script = Script::new(&clock, [Answer::Status(401), Answer::Token("one")]);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let ask = Arc::clone(&asked);
    let login = totp_login(script.clone()).gate(NotedGate(ask));
    TokenSource::builder(api_key(), login).clock(clock.wall()).build().login().await.unwrap();
    let sent = script.seen();
    assert_eq!(*asked.lock(), [sent[0].at, sent[1].at]);
    assert!(sent[1].at - sent[0].at >= secs(29));
}

/// A gate that admits at once and records when it was asked.
struct NotedGate(Arc<Mutex<Vec<Instant>>>);

impl Gate for NotedGate {
    type Permit = ();

    async fn acquire(&self, _: &[Zone], _: Lane) -> Result<(), BoxError> {
        self.0.lock().push(Instant::now());
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_code_near_its_end_is_not_used() {
    let clock = Clock::new();
    let script = Script::new(&clock, [Answer::ByCode("one")]).taking(secs(0));
    let start = Instant::now();
    tokio::time::advance(secs(27)).await;
    let source = TokenSource::builder(api_key(), totp_login(script.clone())).clock(clock.wall()).build();
    source.login().await.unwrap();
    let at = script.seen()[0].at - start;
    assert!(at >= secs(30) && at < secs(31), "{at:?}");
}

#[tokio::test(start_paused = true)]
async fn a_typed_code_is_asked_for_again_until_the_budget_is_spent() {
    let clock = Clock::new();
    let script = Script::new(&clock, [Answer::Status(401)]);
    let asked = Arc::new(Mutex::new(0));
    let ask = Arc::clone(&asked);
    let codes = move || {
        *ask.lock() += 1;
        let code = format!("00000{}\n", *ask.lock());
        async move { Ok::<_, BoxError>(OneTimeCode::new(code)) }
    };
    let credentials = Credentials::new("U1", "hunter2");
    let login = IndividualLogin::otp(script.clone(), &base(), api_key(), credentials, codes).unwrap();
    let source = TokenSource::builder(api_key(), login).clock(clock.wall()).build();
    assert_eq!(source.login().await.unwrap_err().kind(), AuthErrorKind::Latched);
    let sent: Vec<_> = script.seen().iter().map(|s| s.form().get("twoFa").unwrap().to_owned()).collect();
    assert_eq!(sent, ["000001", "000002"]);
    assert_eq!(script.seen()[0].form().get("twoFaTyp"), Some("otp"));
}

fn code_exchange(script: &Script, clock: &Clock) -> (TokenSource, Arc<Mutex<u32>>) {
    let asked = Arc::new(Mutex::new(0));
    let ask = Arc::clone(&asked);
    let codes = move || {
        *ask.lock() += 1;
        let code = format!("c0de/{}", *ask.lock());
        async move { Ok::<_, BoxError>(OneTimeCode::new(code)) }
    };
    let redirect = "http://127.0.0.1:9000/cb?x=1";
    let login = CodeExchange::new(script.clone(), &base(), api_key(), "s3cret", redirect, codes).unwrap();
    (TokenSource::builder(api_key(), login).clock(clock.wall()).build(), asked)
}

#[tokio::test(start_paused = true)]
async fn spec_4_2_the_exchange_sends_all_five_fields_and_no_header() {
    let clock = Clock::new();
    let script = Script::new(&clock, [Answer::Token("one")]);
    let (source, _) = code_exchange(&script, &clock);
    source.login().await.unwrap();
    let seen = &script.seen()[0];
    assert_eq!(seen.uri, "https://api.example/tradeapi/v2/api-gw/oauth/token");
    assert_eq!(seen.authorization, None);
    let redirect = "http%3A%2F%2F127.0.0.1%3A9000%2Fcb%3Fx%3D1";
    assert_eq!(
        seen.body,
        format!(
            "code=c0de%2F1&client_id=K3y&client_secret=s3cret&redirect_uri={redirect}&grant_type=authorization_code"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_refused_authorization_code_asks_for_a_new_one_and_latches_nothing() {
    let clock = Clock::new();
    let script = Script::new(&clock, [Answer::Status(401)]);
    let (source, asked) = code_exchange(&script, &clock);
    for n in 1..=5 {
        assert_eq!(source.login().await.unwrap_err().kind(), AuthErrorKind::Rejected);
        assert_eq!((script.count(), *asked.lock()), (n, n as u32));
    }
    assert!(!source.status().latched);
}

#[tokio::test(start_paused = true)]
async fn an_authorization_code_survives_what_does_not_use_it_up() {
    let clock = Clock::new();
    let script = Script::new(&clock, [Answer::NotSent, Answer::Status(429), Answer::Token("one")]);
    let (source, asked) = code_exchange(&script, &clock);
    source.login().await.unwrap();
    assert_eq!(*asked.lock(), 1);
    assert_eq!(pauses(&script), [1, 1], "the service has refused one");
    // The lost request may have used the code up.
    script.answer_with([Answer::Lost]);
    source.login().await.unwrap_err();
    tokio::time::sleep(secs(30)).await;
    source.login().await.unwrap_err();
    assert_eq!(*asked.lock(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_login_does_not_leave_in_clear_text() {
    let clock = Clock::new();
    let script = Script::new(&clock, [Answer::Token("one")]);
    let plain = BaseUrl::new("http://api.example/v2").unwrap();
    let key = ApiKey::new("K3y").unwrap();
    let secret = TotpSecret::new(TOTP_SECRET).unwrap();
    let login = IndividualLogin::totp(script.clone(), &plain, key, Credentials::new("U1", "hunter2"), secret)
        .unwrap();
    let source = TokenSource::builder(api_key(), login).clock(clock.wall()).build();
    assert_eq!(source.login().await.unwrap_err().kind(), AuthErrorKind::Latched);
    assert_eq!(script.count(), 0);
}

/// Two users of one app and one store are two accounts. Neither takes the other's token.
#[tokio::test(start_paused = true)]
async fn an_exchange_that_knows_its_user_is_another_account_than_anothers() {
    let script = Script::new(&Clock::new(), [Answer::Token("one")]);
    let account = |user: Option<&str>| {
        let codes = || async { Ok::<_, BoxError>(OneTimeCode::new("c0de")) };
        let redirect = "http://127.0.0.1/";
        let login = CodeExchange::new(script.clone(), &base(), api_key(), "s3cret", redirect, codes).unwrap();
        let login = if let Some(user) = user { login.user(user) } else { login };
        login.identity().unwrap().label()
    };
    let accounts = [account(None), account(Some("U1")), account(Some("U2"))];
    assert_eq!(account(Some("U1")), accounts[1]);
    assert!(accounts[0] != accounts[1] && accounts[0] != accounts[2] && accounts[1] != accounts[2]);
}
