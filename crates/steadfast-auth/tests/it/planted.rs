//! The defects of [`defects`](crate::defects), planted in a small client of the usual kind: each scenario must tell it
//! from ours, or the test that runs it proves nothing.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, header::AUTHORIZATION};
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use steadfast_spec::{Form, TokenRecord};
use tokio::time::Instant;
use tower::ServiceExt;

use crate::support::{Answer, Clock, Script, hours, orders, place_order, secs};

/// How most clients do it: a token in a lock, a login where it is missing, another one after a 401.
#[derive(Clone)]
struct Naive {
    logins: Script,
    api: Script,
    held: Arc<Mutex<Held>>,
}

#[derive(Clone, Default)]
struct Held {
    token: Option<String>,
    // By the monotonic clock.
    until: Option<Instant>,
    // The last error, kept for ever.
    error: Option<String>,
}

impl Naive {
    fn new(clock: &Clock, script: impl IntoIterator<Item = Answer>) -> Self {
        let api = Script::new(clock, [Answer::ByToken]);
        Self { logins: Script::new(clock, script), api, held: Arc::default() }
    }

    /// A copy with a state of its own, as a clone by value has.
    fn copied(&self) -> Self {
        Self { held: Arc::new(Mutex::new(self.held.lock().clone())), ..self.clone() }
    }

    async fn log_in(&self) -> Result<String, String> {
        if let Some(error) = self.held.lock().error.clone() {
            return Err(error);
        }
        // The step of the moment, used or not, by this machine's clock.
        let form = Form::new().with("twoFa", "123456");
        let request = Request::post("https://api.example/v2/api-gw/oauth/individual-token-v2");
        let request = request.body(Full::from(form.encode())).unwrap();
        let answer = self.logins.clone().oneshot(request).await;
        let token = match answer {
            Ok(response) if response.status() == StatusCode::OK => {
                let body = response.into_body().collect().await.unwrap().to_bytes();
                TokenRecord::parse(&body)
                    .map_err(|error| error.to_string())
                    .map(|record| secrecy::ExposeSecret::expose_secret(&record.access_token).to_owned())
            }
            _ => Err("login failed".to_owned()),
        };
        let mut held = self.held.lock();
        match token {
            Ok(token) => {
                held.token = Some(token.clone());
                held.until = Some(Instant::now() + hours(24));
                Ok(token)
            }
            Err(error) => {
                held.token = None;
                held.error = Some(error.clone());
                Err(error)
            }
        }
    }

    async fn send(&self, request: &Request<Full<Bytes>>, token: &str) -> StatusCode {
        let mut request = request.clone();
        let header = HeaderValue::from_str(&format!("Bearer K3y:{token}")).unwrap();
        request.headers_mut().insert(AUTHORIZATION, header);
        self.api.clone().oneshot(request).await.unwrap().status()
    }

    /// Renews an hour ahead, logs in where there is no token and after each 401, and sends again what is left of the
    /// request.
    async fn call(&self, request: Request<Full<Bytes>>) -> Result<StatusCode, String> {
        let (held, until) = {
            let held = self.held.lock();
            (held.token.clone(), held.until)
        };
        let due = until.is_some_and(|until| Instant::now() + hours(1) >= until);
        let token = match held.filter(|_| !due) {
            Some(token) => token,
            None => self.log_in().await?,
        };
        let status = self.send(&request, &token).await;
        if status != StatusCode::UNAUTHORIZED {
            return Ok(status);
        }
        // Whoever learns of a 401 clears what is held, whatever it is by now.
        self.held.lock().token = None;
        let _ = self.log_in().await;
        let emptied = request.map(|_| Full::default());
        Ok(self.send(&emptied, &token).await)
    }

    async fn get(&self) -> Result<StatusCode, String> {
        self.call(orders()).await
    }
}

/// The client with a token that works.
async fn working(clock: &Clock, script: impl IntoIterator<Item = Answer>) -> Naive {
    let naive = Naive::new(clock, [Answer::Token("one")]);
    naive.api.accept(["one"]);
    assert_eq!(naive.get().await, Ok(StatusCode::OK));
    naive.logins.answer_with(script);
    naive
}

#[tokio::test(start_paused = true)]
async fn t01_sees_a_failed_renewal_displace_a_valid_token() {
    let naive = working(&Clock::new(), [Answer::Status(400)]).await;
    tokio::time::advance(hours(23)).await;
    assert!(naive.get().await.is_err(), "ours answers 200 here");
}

#[tokio::test(start_paused = true)]
async fn t02_sees_an_error_that_is_remembered_for_ever() {
    let naive = Naive::new(&Clock::new(), [Answer::NotSent]);
    assert!(naive.get().await.is_err());
    naive.logins.answer_with([Answer::Token("one")]);
    tokio::time::sleep(secs(8)).await;
    assert!(naive.get().await.is_err(), "ours answers 200 here");
}

#[tokio::test(start_paused = true)]
async fn t03_sees_a_late_401_cost_another_login() {
    let clock = Clock::new();
    let naive = working(&clock, [Answer::Token("two")]).await;
    naive.api.accept(["two"]);
    let slow = Naive { api: Script::new(&clock, [Answer::ByToken]).taking(secs(60)), ..naive.clone() };
    slow.api.accept(["two"]);
    let late = tokio::spawn({
        let slow = slow.clone();
        async move { slow.get().await }
    });
    tokio::time::sleep(secs(1)).await;
    let _ = naive.get().await;
    let _ = late.await.unwrap();
    assert_eq!(naive.logins.count(), 3, "ours makes one for each token, which is two");
}

#[tokio::test(start_paused = true)]
async fn t04_and_t05_see_each_waiter_log_in() {
    for answer in [Answer::Token("one"), Answer::Status(401)] {
        let naive = Naive::new(&Clock::new(), [answer]);
        let _slow = naive.logins.clone().taking(secs(1));
        naive.api.accept(["one"]);
        let waiters: Vec<_> = (0..100)
            .map(|_| {
                let naive = naive.clone();
                tokio::spawn(async move { naive.get().await })
            })
            .collect();
        for waiter in waiters {
            let _ = waiter.await.unwrap();
        }
        assert_eq!(naive.logins.count(), 100, "ours makes one, and two where it is refused");
    }
}

#[tokio::test(start_paused = true)]
async fn t06_sees_a_dropped_caller_take_the_login_along() {
    let naive = Naive::new(&Clock::new(), [Answer::Token("one")]);
    let logins = naive.logins.clone().taking(secs(5));
    let call = tokio::spawn({
        let naive = naive.clone();
        async move { naive.get().await }
    });
    tokio::time::sleep(secs(1)).await;
    call.abort();
    tokio::time::sleep(secs(10)).await;
    assert_eq!(logins.count(), 1);
    assert!(naive.held.lock().token.is_none(), "ours holds the token here");
}

#[tokio::test(start_paused = true)]
async fn t07_sees_a_token_sent_that_ended_while_the_machine_slept() {
    let clock = Clock::new();
    let naive = working(&clock, [Answer::Token("two")]).await;
    naive.api.accept(["two"]);
    tokio::time::advance(hours(14)).await;
    clock.suspend(hours(10));
    let _ = naive.get().await;
    assert_eq!(naive.api.tokens()[1], "one", "ours sends \"two\" without a 401");
}

#[tokio::test(start_paused = true)]
async fn t08_t09_and_t10_see_the_old_header_and_an_empty_body_sent_again() {
    let naive = working(&Clock::new(), [Answer::Token("two")]).await;
    naive.api.accept(["two"]);
    let status = naive.call(place_order("qty=1")).await;
    assert_eq!(status, Ok(StatusCode::UNAUTHORIZED), "ours answers 200 here");
    assert_eq!(naive.api.tokens(), ["one", "one", "one"], "ours ends with \"two\"");
    assert_eq!(naive.api.seen()[2].body, "", "ours repeats the body");
}

#[tokio::test(start_paused = true)]
async fn t11_sees_a_clone_that_misses_the_roll_over() {
    let naive = working(&Clock::new(), [Answer::Token("two")]).await;
    let clone = naive.copied();
    naive.api.accept(["two"]);
    let _ = naive.get().await;
    let _ = naive.get().await;
    let _ = clone.get().await;
    assert_eq!(clone.api.tokens().last().map(String::as_str), Some("one"), "ours sends \"two\"");
}

#[tokio::test(start_paused = true)]
async fn t12_sees_five_reasons_in_one_error() {
    let mut errors = Vec::new();
    for answer in [Answer::Status(401), Answer::Status(400), Answer::NotSent, Answer::Lost] {
        errors.push(Naive::new(&Clock::new(), [answer]).get().await.unwrap_err());
    }
    errors.dedup();
    assert_eq!(errors.len(), 1, "ours tells them apart");
}

#[tokio::test(start_paused = true)]
async fn t16_sees_a_code_submitted_twice() {
    let naive = Naive::new(&Clock::new(), [Answer::Status(401)]);
    for _ in 0..2 {
        let _ = naive.log_in().await;
        naive.held.lock().error = None;
    }
    let codes: Vec<_> =
        naive.logins.seen().iter().map(|s| s.form().get("twoFa").unwrap().to_owned()).collect();
    assert_eq!(codes[0], codes[1], "ours waits for the next step");
}

/// T17 and T20: codes by an uncorrected clock, and the middle of one exchange taken for the truth.
#[test]
fn t17_and_t20_see_a_clock_that_nobody_corrects() {
    let mut refused = 0;
    let mut worst = 0;
    for off_ms in (-8_000_i64..=8_000).step_by(500) {
        for phase_ms in (0_i64..30_000).step_by(1_000) {
            refused += u32::from((phase_ms + off_ms).div_euclid(30_000) != 0);
            // The service writes whole seconds: without the half second in the middle the estimate is early.
            let date = (phase_ms + off_ms).div_euclid(1_000) * 1_000;
            worst = worst.max(((date - phase_ms) - off_ms).abs());
        }
    }
    assert!(
        refused > 33 * 30 / 20,
        "{refused} codes of 990 are wrong; ours are right from the second login on"
    );
    assert!(worst >= 500, "ours knows how far it may be off");
}

/// T18: what libraries do that insist on RFC 4226's 128 bits.
#[test]
fn t18_sees_an_80_bit_secret_refused() {
    let insists = |text: &str| {
        let bytes = data_encoding::BASE32_NOPAD.decode(text.as_bytes()).unwrap();
        (bytes.len() >= 16).then_some(bytes)
    };
    assert!(insists("JBSWY3DPEHPK3PXP").is_none(), "ours takes it");
    assert!(steadfast_auth::TotpSecret::new("JBSWY3DPEHPK3PXP").is_ok());
}
