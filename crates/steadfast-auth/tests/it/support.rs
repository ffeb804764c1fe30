//! A service that answers from memory, a clock that can be set, and the stack under test.

use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header::DATE};
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use steadfast_auth::{
    ApiKey, AuthError, AuthErrorKind, AuthHeaderLayer, Credentials, IndividualLogin, Refresh, RefreshLayer,
    Renewal, TokenSource, Totp, TotpSecret,
};
use steadfast_call::{BootClock, BoxError, Call, Failure, Fate, WallClock};
use steadfast_spec::{BaseUrl, Form};
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt};

/// RFC 4226's key in base32.
pub(crate) const TOTP_SECRET: &str = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
/// 2023-11-14 05:00:00 UTC, 10:30 at +05:30; a whole half minute.
pub(crate) const START_S: u64 = 1_699_938_000;

pub(crate) fn secs(s: u64) -> Duration {
    Duration::from_secs(s)
}

pub(crate) fn hours(h: u64) -> Duration {
    secs(h * 3_600)
}

/// This machine's clock and the service's. The monotonic clock is tokio's, paused.
#[derive(Clone)]
pub(crate) struct Clock {
    start: Instant,
    // The error of this machine's clock, in milliseconds.
    off: Arc<AtomicI64>,
    // Time in suspension, which the monotonic clock did not count.
    slept: Arc<AtomicI64>,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), off: Arc::default(), slept: Arc::default() }
    }

    pub(crate) fn set_off(&self, ms: i64) {
        self.off.store(ms, Ordering::Relaxed);
    }

    pub(crate) fn suspend(&self, slept: Duration) {
        self.slept.fetch_add(slept.as_millis() as i64, Ordering::Relaxed);
    }

    /// Returns milliseconds since the epoch by the service's clock.
    pub(crate) fn true_ms(&self) -> i64 {
        (secs(START_S) + self.start.elapsed()).as_millis() as i64 + self.slept.load(Ordering::Relaxed)
    }

    pub(crate) fn wall(&self) -> WallClock {
        let clock = self.clone();
        WallClock::new(move || {
            let ms = clock.true_ms() + clock.off.load(Ordering::Relaxed);
            SystemTime::UNIX_EPOCH + Duration::from_millis(ms as u64)
        })
    }

    /// Returns the clock that is never set and runs on in suspension.
    pub(crate) fn boot(&self) -> BootClock {
        let clock = self.clone();
        BootClock::new(move || Some(Duration::from_millis(clock.true_ms() as u64)))
    }

    fn date(&self) -> HeaderValue {
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(self.true_ms() as u64);
        HeaderValue::from_str(&httpdate::fmt_http_date(now)).unwrap()
    }
}

/// How a scripted service answers.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// 200 with a token record.
    Token(&'static str),
    /// 200 with a token record with that life in seconds.
    ShortToken(&'static str, u64),
    /// That status with an error envelope.
    Status(u16),
    /// That status with a header.
    With(u16, &'static str, &'static str),
    /// 200 with that body.
    Body(&'static str),
    /// The transport fails before anything leaves.
    NotSent,
    /// The transport fails after the request has left.
    Lost,
    /// No answer at all.
    Hang,
    /// The service panics.
    Panic,
    /// The business service decides by the token.
    ByToken,
    /// 200 with a token record if the one-time code is right by the service's clock, else 401.
    ByCode(&'static str),
}

/// A request as a service saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) at: Instant,
    pub(crate) authorization: Option<String>,
    pub(crate) body: String,
    pub(crate) head_of_lane: bool,
    pub(crate) uri: String,
}

impl Seen {
    pub(crate) fn form(&self) -> Form {
        Form::parse(self.body.as_bytes()).unwrap()
    }
}

/// A service that answers from a script, and repeats the last answer when the script ends.
#[derive(Clone)]
pub(crate) struct Script(Arc<Mutex<Inner>>);

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A service sees every secret, and only the output of the layers is tested.
        f.write_str("Script")
    }
}

struct Inner {
    clock: Clock,
    script: VecDeque<Answer>,
    seen: Vec<Seen>,
    takes: Duration,
    accepted: Vec<&'static str>,
}

impl Script {
    pub(crate) fn new(clock: &Clock, script: impl IntoIterator<Item = Answer>) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            clock: clock.clone(),
            script: script.into_iter().collect(),
            seen: Vec::new(),
            takes: Duration::ZERO,
            accepted: Vec::new(),
        })))
    }

    /// Makes each answer take that long.
    pub(crate) fn taking(self, takes: Duration) -> Self {
        self.0.lock().takes = takes;
        self
    }

    pub(crate) fn answer_with(&self, script: impl IntoIterator<Item = Answer>) {
        self.0.lock().script = script.into_iter().collect();
    }

    /// Sets the only accepted tokens from now on.
    pub(crate) fn accept(&self, tokens: impl IntoIterator<Item = &'static str>) {
        self.0.lock().accepted = tokens.into_iter().collect();
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.0.lock().seen.clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().seen.len()
    }

    /// Returns the tokens of the requests, in order.
    pub(crate) fn tokens(&self) -> Vec<String> {
        let token = |seen: Seen| seen.authorization.unwrap().split_once(':').unwrap().1.to_owned();
        self.seen().into_iter().map(token).collect()
    }
}

impl Service<Request<Full<Bytes>>> for Script {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Full<Bytes>>) -> Self::Future {
        let script = self.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let head_of_lane = Call::of(&head.extensions).is_at_head_of_lane();
            let seen = Seen {
                at: Instant::now(),
                authorization: head.headers.get("authorization").map(|h| h.to_str().unwrap().to_owned()),
                body: String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap(),
                head_of_lane,
                uri: head.uri.to_string(),
            };
            // The answer is decided when the request arrives, as at a gateway.
            let (takes, answer, date) = {
                let mut inner = script.0.lock();
                inner.seen.push(seen.clone());
                let answer = if inner.script.len() > 1 {
                    inner.script.pop_front().unwrap()
                } else {
                    inner.script.front().unwrap().clone()
                };
                (inner.takes, inner.decide(answer, &seen), inner.clock.date())
            };
            tokio::time::sleep(takes).await;
            match answer {
                Answer::Token(token) => Ok(record(token, 86_400, date)),
                Answer::ShortToken(token, life) => Ok(record(token, life, date)),
                Answer::Status(status) => Ok(respond(status, "x", date)),
                Answer::With(status, name, value) => {
                    let mut response = respond(status, "x", date);
                    response.headers_mut().insert(name, HeaderValue::from_static(value));
                    Ok(response)
                }
                Answer::Body(body) => Ok(respond(200, body, date)),
                Answer::NotSent => Err(Failure::new(Fate::NeverLeft, "connection refused").into()),
                Answer::Lost => Err(Failure::new(Fate::Lost { ended: None }, "reset").into()),
                Answer::Hang => std::future::pending().await,
                Answer::Panic => panic!("scripted panic"),
                Answer::ByToken | Answer::ByCode(_) => unreachable!("decided on arrival"),
            }
        })
    }
}

impl Inner {
    fn decide(&self, answer: Answer, seen: &Seen) -> Answer {
        match answer {
            Answer::ByToken => {
                let header = seen.authorization.as_deref().unwrap_or_default();
                let known = self.accepted.iter().any(|token| header == format!("Bearer K3y:{token}"));
                if known { Answer::Body("{}") } else { Answer::Status(401) }
            }
            Answer::ByCode(token) => {
                let code = seen.form().get("twoFa").unwrap().to_owned();
                let now = self.clock.true_ms() / 30_000;
                if code == totp(now as u64) { Answer::Token(token) } else { Answer::Status(401) }
            }
            other => other,
        }
    }
}

/// Returns the code of a step, computed independently of the crate under test.
pub(crate) fn totp(step: u64) -> String {
    use hmac::{Hmac, KeyInit, Mac};
    let mut mac = Hmac::<sha1::Sha1>::new_from_slice(b"12345678901234567890").unwrap();
    mac.update(&step.to_be_bytes());
    let digest = mac.finalize().into_bytes();
    let at = usize::from(digest[19] & 15);
    let word = u32::from_be_bytes(digest[at..at + 4].try_into().unwrap()) & 0x7fff_ffff;
    format!("{:06}", word % 1_000_000)
}

fn record(token: &str, life: u64, date: HeaderValue) -> Response<Full<Bytes>> {
    let body = format!(
        r#"{{"access_token":"{token}","token_type":"bearer","expires_in":{life},"scope":"general"}}"#
    );
    respond(200, &body, date)
}

fn respond(status: u16, body: &str, date: HeaderValue) -> Response<Full<Bytes>> {
    let body = Full::from(Bytes::copy_from_slice(body.as_bytes()));
    Response::builder().status(status).header(DATE, date).body(body).unwrap()
}

pub(crate) fn base() -> BaseUrl {
    BaseUrl::new("https://api.example/tradeapi/v2").unwrap()
}

pub(crate) fn api_key() -> ApiKey {
    ApiKey::new("K3y").unwrap()
}

pub(crate) fn totp_login(leaf: Script) -> IndividualLogin<Script, Totp> {
    let secret = TotpSecret::new(TOTP_SECRET).unwrap();
    IndividualLogin::totp(leaf, &base(), api_key(), Credentials::new("U1", "hunter2"), secret).unwrap()
}

/// A source with a TOTP login, and all its surroundings.
pub(crate) struct Bench {
    pub(crate) clock: Clock,
    pub(crate) logins: Script,
    pub(crate) api: Script,
    pub(crate) source: TokenSource,
}

pub(crate) type Stack = Refresh<steadfast_auth::AuthHeader<Script>>;

impl Bench {
    /// Creates a bench whose logins answer from `script`. The business service accepts no token yet.
    pub(crate) fn new(script: impl IntoIterator<Item = Answer>) -> Self {
        let clock = Clock::new();
        let logins = Script::new(&clock, script);
        let renewal = Renewal::new().jitter_seed(7);
        let source = TokenSource::builder(api_key(), totp_login(logins.clone()))
            .clock(clock.wall())
            .boot_clock(clock.boot())
            .renewal(renewal)
            .build();
        let api = Script::new(&clock, [Answer::ByToken]);
        Self { clock, logins, api, source }
    }

    /// Creates a bench with that first token, accepted and used once.
    pub(crate) async fn with_working_token(
        token: &'static str,
        script: impl IntoIterator<Item = Answer>,
    ) -> Self {
        let bench = Self::new([Answer::Token(token)]);
        bench.api.accept([token]);
        assert_eq!(bench.get().await.unwrap().status(), 200);
        bench.logins.answer_with(script);
        bench
    }

    pub(crate) fn stack(&self) -> Stack {
        let header = AuthHeaderLayer::new(self.source.clone()).only_to(&base());
        RefreshLayer::new(self.source.clone()).layer(header.layer(self.api.clone()))
    }

    pub(crate) async fn get(&self) -> Result<Response<Full<Bytes>>, BoxError> {
        self.stack().oneshot(orders()).await
    }

    pub(crate) fn spawn_get(&self) -> tokio::task::JoinHandle<Result<Response<Full<Bytes>>, BoxError>> {
        tokio::spawn(self.stack().oneshot(orders()))
    }
}

pub(crate) fn orders() -> Request<Full<Bytes>> {
    Request::get("https://api.example/tradeapi/v2/api/oms/orders").body(Full::default()).unwrap()
}

pub(crate) fn place_order(body: &'static str) -> Request<Full<Bytes>> {
    Request::post("https://api.example/tradeapi/v2/api/oms/place-order").body(Full::from(body)).unwrap()
}

/// Returns the kind of the refusal in `error`.
pub(crate) fn kind(error: &BoxError) -> AuthErrorKind {
    auth_error(error).kind()
}

/// Returns the refusal in `error`.
pub(crate) fn auth_error(error: &BoxError) -> &AuthError {
    let failure = Failure::find(&**error).expect("a failure");
    assert!(failure.is_refusal(), "{failure:?}");
    std::error::Error::source(failure).and_then(|e| e.downcast_ref::<AuthError>()).expect("an auth error")
}
