//! A gateway that follows a script and records the truth.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use steadfast_call::{BoxError, Call, Failure, Fate, Outcome, Peek, WallClock, ext, outcome_of};
use steadfast_dedup::GuardedBody;
use steadfast_spec::{Endpoint, Envelope, Form};
use tokio::time::{Instant, sleep};
use tower::Service;

pub(crate) type Body = Full<Bytes>;

/// The script for one order.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) apply: Option<Duration>,
    pub(crate) lag: Duration,
    pub(crate) reply: Reply,
    pub(crate) after: Duration,
    pub(crate) copies: usize,
    pub(crate) edit: fn(&mut Map<String, Value>),
}

#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Ack,
    AckId(&'static str),
    Http(u16, &'static str),
    /// This status and body.
    Answer(u16, &'static str),
    /// A 200 whose body was cut.
    Cut,
    /// No answer; the transport reports how far the request got.
    Lost(Fate),
    /// No answer; the connection has ended, so nothing more of the request can arrive.
    Ended,
    /// Refused before the body is polled.
    NotPolled,
    /// Never answers.
    Hang,
}

pub(crate) fn ack() -> Place {
    Place {
        apply: Some(Duration::ZERO),
        lag: Duration::ZERO,
        reply: Reply::Ack,
        after: Duration::from_millis(50),
        copies: 1,
        edit: |_| {},
    }
}

pub(crate) fn http(status: u16, msg: &'static str) -> Place {
    Place { reply: Reply::Http(status, msg), apply: None, ..ack() }
}

/// A 4xx with the text that §7 documents.
pub(crate) fn documented(status: u16) -> Place {
    let row = steadfast_spec::ERRORS.iter().find(|row| row.status == status).unwrap();
    http(status, row.msg.unwrap_or("Unsupported media type"))
}

pub(crate) fn gw504() -> Place {
    http(504, "Gateway timedout")
}

impl Place {
    pub(crate) fn placed(self) -> Self {
        self.placed_after(Duration::ZERO)
    }

    pub(crate) fn placed_after(mut self, after: Duration) -> Self {
        self.apply = Some(after);
        self
    }

    pub(crate) fn reply(mut self, reply: Reply) -> Self {
        self.reply = reply;
        self
    }

    pub(crate) fn answered_after(mut self, after: Duration) -> Self {
        self.after = after;
        self
    }

    pub(crate) fn edit(mut self, edit: fn(&mut Map<String, Value>)) -> Self {
        self.edit = edit;
        self
    }
}

/// The script for one read of the list.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub(crate) before: Duration,
    pub(crate) after: Duration,
    pub(crate) reply: ReadReply,
}

#[derive(Clone, Debug)]
pub(crate) enum ReadReply {
    List,
    Raw(String),
    Answer(u16, String),
    Http(u16),
    Lost,
    Without(Vec<&'static str>),
    OnlyOpen,
    Aged,
    /// With this `X-Cache` header.
    Cached(&'static str),
}

pub(crate) fn read(reply: ReadReply) -> Read {
    Read { before: Duration::ZERO, after: Duration::from_millis(20), reply }
}

pub(crate) struct Listed {
    pub(crate) id: String,
    pub(crate) owner: String,
    /// When it comes into existence.
    pub(crate) at: Instant,
    record: Map<String, Value>,
    token: String,
}

impl Listed {
    pub(crate) fn record(&self) -> &Map<String, Value> {
        &self.record
    }
}

#[derive(Default)]
pub(crate) struct Book {
    pub(crate) places: VecDeque<Place>,
    pub(crate) reads: VecDeque<Read>,
    pub(crate) always: Option<Read>,
    pub(crate) orders: Vec<Listed>,
    pub(crate) posts: Vec<(Instant, String)>,
    pub(crate) gets: Vec<Instant>,
    pub(crate) methods: Vec<Method>,
    /// The `Authorization` of every read, where there was one.
    pub(crate) tokens: Vec<String>,
    /// Tokens that are refused.
    pub(crate) dead: Vec<&'static str>,
    /// Whether each token's list holds only the orders that were sent with it.
    pub(crate) by_session: bool,
    /// Whether the end of a connection has an instant since which nothing more of it arrives.
    pub(crate) promises: bool,
    wires: Vec<Arc<Wire>>,
    /// The cache directives of every read.
    pub(crate) cache_controls: Vec<String>,
    /// When the service's trading day changes: from then on no older order is listed.
    pub(crate) midnight: Option<Instant>,
    /// The service's clock for the `Date` of answers.
    pub(crate) date: Option<WallClock>,
    next: u64,
}

/// The connection of one order.
#[derive(Debug)]
struct Wire {
    promises: bool,
    ended: OnceLock<Instant>,
}

#[expect(clippy::disallowed_types, reason = "what layers share knows no runtime")]
impl ext::Connection for Wire {
    fn abort(&self) -> Option<std::time::Instant> {
        let ended = *self.ended.get_or_init(Instant::now);
        self.promises.then(|| ended.into_std())
    }
}

#[derive(Clone, Default)]
pub(crate) struct Gateway(pub(crate) Arc<Mutex<Book>>);

impl Gateway {
    pub(crate) fn will(&self, places: impl IntoIterator<Item = Place>) {
        self.0.lock().places.extend(places);
    }

    pub(crate) fn reads(&self, reads: impl IntoIterator<Item = Read>) {
        self.0.lock().reads.extend(reads);
    }

    pub(crate) fn always(&self, read: Read) {
        self.0.lock().always = Some(read);
    }

    pub(crate) fn posts(&self) -> usize {
        self.0.lock().posts.len()
    }

    pub(crate) fn gets(&self) -> usize {
        self.0.lock().gets.len()
    }

    /// Places a stranger's order.
    pub(crate) fn foreign(&self, form: &str, edit: fn(&mut Map<String, Value>)) -> String {
        self.0.lock().apply(form, "foreign", Duration::ZERO, edit)
    }

    pub(crate) fn set(&self, id: &str, field: &str, value: Value) {
        let mut book = self.0.lock();
        let order = book.orders.iter_mut().find(|order| order.id == id).unwrap();
        order.record.insert(field.into(), value);
    }

    /// Returns how many connections were ended by a layer above.
    pub(crate) fn aborted(&self) -> usize {
        self.0.lock().wires.iter().filter(|wire| wire.ended.get().is_some()).count()
    }

    async fn place(self, request: Request<GuardedBody<Body>>) -> Result<Response<Body>, BoxError> {
        let script = self.0.lock().places.pop_front().unwrap_or_else(ack);
        if let Some(stamp) = Call::of(request.extensions()).send() {
            let mut book = self.0.lock();
            let wire = Arc::new(Wire { promises: book.promises, ended: OnceLock::new() });
            stamp.set_connection(wire.clone());
            book.wires.push(wire);
        }
        if matches!(script.reply, Reply::NotPolled) {
            sleep(script.after).await;
            return Err("connection refused".into());
        }
        let owner = request.headers()["x-test-intent"].to_str().unwrap().to_owned();
        let token = token_of(&request);
        let length = request.headers().get(http::header::CONTENT_LENGTH);
        let length = length.map(|length| length.to_str().unwrap().parse().unwrap());
        let form = request.into_body().collect().await?.to_bytes();
        let mut form = String::from_utf8(form.to_vec()).unwrap();
        // Clients send no more of a body than its header says.
        form.truncate(length.unwrap_or(usize::MAX));
        let mut id = String::new();
        {
            let mut book = self.0.lock();
            book.posts.push((Instant::now(), owner.clone()));
            if let Some(after) = script.apply {
                for copy in 0..script.copies {
                    let made = book.apply(&form, &owner, after + script.lag, script.edit);
                    if let Some(order) = book.orders.last_mut() {
                        order.token.clone_from(&token);
                    }
                    if copy == 0 {
                        id = made;
                    }
                }
            }
        }
        sleep(script.after).await;
        let ok = |id: &str| json!({"s": "ok", "d": {"orderId": id, "msg": "placed"}}).to_string();
        let (status, body) = match script.reply {
            Reply::Ack => (200, ok(&id)),
            Reply::AckId(id) => (200, ok(id)),
            Reply::Http(status, msg) if msg.starts_with('<') => (status, msg.to_owned()),
            Reply::Http(status, msg) => (status, json!({"s": "error", "msg": msg}).to_string()),
            Reply::Answer(status, body) => (status, body.to_owned()),
            Reply::Cut => (200, ok(&id)[..20].to_owned()),
            Reply::Lost(fate) => return Err(Failure::new(fate, "connection reset").into()),
            Reply::Ended => {
                let ended = Some(Instant::now().into_std());
                return Err(Failure::new(Fate::Lost { ended }, "connection reset").into());
            }
            Reply::Hang => return std::future::pending().await,
            Reply::NotPolled => unreachable!(),
        };
        Ok(respond(Some(Endpoint::PlaceOrder), status, body))
    }

    async fn list(self, token: String) -> Result<Response<Body>, BoxError> {
        let script = {
            let mut book = self.0.lock();
            book.gets.push(Instant::now());
            book.tokens.push(token.clone());
            if book.dead.contains(&token.as_str()) {
                return Ok(respond(Some(Endpoint::Orders), 401, "{}".into()));
            }
            let scripted = book.reads.pop_front();
            scripted.or_else(|| book.always.clone()).unwrap_or_else(|| read(ReadReply::List))
        };
        sleep(script.before).await;
        let visible: Vec<Value> = {
            let book = self.0.lock();
            let hidden = |order: &&Listed| match &script.reply {
                ReadReply::Without(ids) => ids.contains(&order.id.as_str()),
                ReadReply::OnlyOpen => order.record["status"] != "open",
                _ => false,
            };
            let shown = book.orders.iter().filter(|order| {
                let elsewhere = book.by_session && order.token != token;
                let over = book.midnight.is_some_and(|turn| order.at < turn && turn <= Instant::now());
                order.at <= Instant::now() && !hidden(order) && !elsewhere && !over
            });
            shown.map(|order| Value::Object(order.record.clone())).collect()
        };
        sleep(script.after).await;
        let list = if visible.is_empty() {
            json!({"s": "no-data", "msg": "no-data"}).to_string()
        } else {
            json!({"s": "ok", "d": visible}).to_string()
        };
        let (status, body) = match script.reply {
            ReadReply::Raw(ref body) => (200, body.clone()),
            ReadReply::Answer(status, ref body) => (status, body.clone()),
            ReadReply::Http(status) => (status, json!({"s": "error", "msg": "x"}).to_string()),
            ReadReply::Lost => return Err(Failure::new(Fate::Lost { ended: None }, "reset").into()),
            _ => (200, list),
        };
        let mut response = respond(Some(Endpoint::Orders), status, body);
        if let ReadReply::Cached(how) = script.reply {
            response.headers_mut().insert("x-cache", http::HeaderValue::from_static(how));
        }
        if matches!(script.reply, ReadReply::Aged) {
            response.headers_mut().insert("age", 7.into());
        }
        Ok(response)
    }
}

impl Book {
    /// Gives the next order the number after `last`.
    pub(crate) fn renumber(&mut self, last: u64) {
        self.next = last;
    }

    fn apply(
        &mut self,
        form: &str,
        owner: &str,
        after: Duration,
        edit: fn(&mut Map<String, Value>),
    ) -> String {
        self.next += 1;
        let id = format!("o{}", self.next);
        let mut record = Map::new();
        record.insert("orderId".into(), json!(id));
        record.insert("status".into(), json!("open"));
        for (name, value) in Form::parse(form.as_bytes()).unwrap().iter() {
            record.insert(name.into(), json!(value));
        }
        edit(&mut record);
        self.orders.push(Listed {
            id: id.clone(),
            owner: owner.into(),
            at: Instant::now() + after,
            record,
            token: String::new(),
        });
        id
    }
}

fn token_of<B>(request: &Request<B>) -> String {
    let header = request.headers().get(http::header::AUTHORIZATION);
    header.map(|header| header.to_str().unwrap().to_owned()).unwrap_or_default()
}

/// Adds the service's `Date`, if it has a clock.
async fn dated(
    gateway: Gateway,
    answer: impl Future<Output = Result<Response<Body>, BoxError>>,
) -> Result<Response<Body>, BoxError> {
    let mut response = answer.await?;
    if let Some(clock) = &gateway.0.lock().date {
        let date = httpdate::fmt_http_date(clock.now());
        response.headers_mut().insert(http::header::DATE, date.parse().unwrap());
    }
    Ok(response)
}

fn respond(endpoint: Option<Endpoint>, status: u16, body: String) -> Response<Body> {
    let status = StatusCode::from_u16(status).unwrap();
    let outcome: Outcome = outcome_of(endpoint, status, Peek::Whole(body.as_bytes()));
    let denied =
        status == StatusCode::OK && matches!(Envelope::parse(body.as_bytes()), Ok(Envelope::Error { .. }));
    let mut response = Response::new(Full::from(body));
    if denied {
        response.extensions_mut().insert(ext::ErrorEnvelope);
    }
    *response.status_mut() = status;
    ext::Sent::of_mut(response.extensions_mut()).set_outcome(outcome);
    response
}

impl Service<Request<GuardedBody<Body>>> for Gateway {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<GuardedBody<Body>>) -> Self::Future {
        let gateway = self.clone();
        self.0.lock().methods.push(request.method().clone());
        if request.method() == Method::POST {
            Box::pin(dated(gateway.clone(), gateway.place(request)))
        } else {
            let uri = request.uri().to_string();
            assert!(uri.starts_with("https://gateway.example/v2/api/oms/orders"), "{uri}");
            let asked = request.headers().get(http::header::CACHE_CONTROL);
            let asked = asked.map(|asked| asked.to_str().unwrap().to_owned()).unwrap_or_default();
            self.0.lock().cache_controls.push(asked);
            let token = token_of(&request);
            Box::pin(dated(gateway.clone(), gateway.list(token)))
        }
    }
}
