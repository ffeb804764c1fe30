//! The wire between a client and the sandbox gateway: latency, loss, and the faults of each request.

mod acks;
mod body;
mod broken;
mod day;
mod ending;
mod exchange;
mod fault;
mod pipe;
mod weather;

use std::{
    collections::{BTreeMap, BTreeSet},
    future::{Future, pending},
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, Full};
use serde::de::IgnoredAny;
use steadfast::{
    BoxError,
    spec::{
        PlacedOrder,
        ext::{self, Stamp},
    },
};
use steadfast_sandbox::{FaultEntry, Sandbox};
use tokio::time::{Instant, sleep};
use tower::ServiceExt;

use self::{
    acks::{Acks, Told},
    ending::Line,
};
pub(crate) use self::{
    body::Body,
    broken::Broken,
    day::Day,
    ending::Ending,
    exchange::{Call, Ended, Exchange, Says},
    fault::{FORMS, Fault, Kind, Way, catalogue, drawn},
    pipe::{FATES, OUTAGE, Pipe, SimIo, pair},
    weather::{Lateness, Weather},
};
use crate::sim::{
    axes::Axis,
    chooser::{Chooser, Site},
};

/// The request header that names a call in the gateway's ground truth.
pub(crate) const INTENT: &str = "x-test-intent";
/// The beginning of that name for a caller's own read of the list, which has no order.
pub(crate) const LOOK: &str = "r";

/// A connection to a sandbox, in virtual time and without sockets.
///
/// # Clone
///
/// Clones are the same wire.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    shared: Arc<Shared>,
    /// Set once the process at this end is dead: nothing that it still wants to send leaves.
    cut: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Shared {
    sandbox: Sandbox,
    chooser: Arc<Chooser>,
    weather: Weather,
    healed: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// How often each order was sent, by its number.
    sends: Vec<u64>,
    lists: u64,
    cancels: u64,
    others: u64,
    /// Orders with a send whose end is unknown.
    doubted: BTreeSet<u64>,
    losses: Vec<Loss>,
    /// Orders that were placed and answered by a refusal.
    refused: BTreeSet<u64>,
    /// Those of them after whose refusal no search is made (403).
    refused_for_good: BTreeSet<u64>,
    /// Orders that may have got the answer to another one.
    misled: BTreeSet<u64>,
    attempts: u64,
    attempts_in_doubt: u64,
    /// How often each fault struck.
    struck: Vec<(&'static str, u64)>,
    /// True while a fault of an earlier request may still wait in the gateway.
    armed: bool,
    acks: Acks,
    /// Sends of orders that left and were not refused.
    standing: BTreeSet<(u64, u64)>,
    /// The orders that an earlier process had sent.
    inherited: BTreeSet<u64>,
    /// How often one of them was sent again.
    sent_again: u64,
    trace: u64,
    exchanges: Vec<Exchange>,
    /// How many requests of each call arrived whole at the gateway's end of a pipe.
    arrivals: BTreeMap<Call, u64>,
    /// Every token, in order of appearance.
    sessions: Vec<String>,
    /// The tokens with which the living process has read a non-empty list: an empty one is then a contradiction.
    listed: BTreeSet<usize>,
}

/// A request on its way.
#[derive(Clone, Copy, Debug)]
struct Numbered {
    kind: Kind,
    of: u64,
    nth: u64,
}

/// A send of an order whose end is unknown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    pub(crate) order: u64,
    /// When it left.
    pub(crate) at: Instant,
}

/// The record of a wire at the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) doubted: BTreeSet<u64>,
    /// The sends with an unknown end, in order of sending.
    pub(crate) losses: Vec<Loss>,
    /// Orders that were placed and answered by a refusal.
    pub(crate) refused: BTreeSet<u64>,
    /// Those of them after whose refusal no search is made (403).
    pub(crate) refused_for_good: BTreeSet<u64>,
    /// Orders that may have got the answer to another one.
    pub(crate) misled: BTreeSet<u64>,
    /// Sends of orders that left.
    pub(crate) attempts: u64,
    pub(crate) attempts_in_doubt: u64,
    pub(crate) struck: Vec<(&'static str, u64)>,
    /// A hash of every request, its time, its fault and its answer.
    pub(crate) trace: u64,
    /// Every send, in order of sending.
    pub(crate) exchanges: Vec<Exchange>,
    /// How many requests of each call arrived whole at the gateway's end of a pipe.
    pub(crate) arrivals: BTreeMap<Call, u64>,
}

/// The end of the wire that holds a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// By the client itself.
    Client,
    /// Behind a pipe, which may lose the answer. Lists are never incomplete there, because the client may not have got
    /// the acknowledgement that contradicts them.
    Gateway,
}

impl Wire {
    pub(crate) fn new(sandbox: Sandbox, chooser: Arc<Chooser>, weather: Weather) -> Self {
        let (healed, state) = (AtomicBool::new(false), Mutex::default());
        Self { shared: Arc::new(Shared { sandbox, chooser, weather, healed, state }), cut: Arc::default() }
    }

    /// Ends the process at this end. Returns the end for the next process, and the orders that have left and were not
    /// refused.
    pub(crate) fn cut(&self) -> (Self, BTreeSet<u64>) {
        self.cut.store(true, Ordering::Relaxed);
        let mut state = self.shared.state();
        // The next process may have lost the acknowledgements of this one, and then cannot notice a contradiction.
        state.acks = Acks::default();
        state.listed.clear();
        state.inherited = state.standing.iter().map(|&(of, _)| of).collect();
        (Self { shared: self.shared.clone(), cut: Arc::default() }, state.inherited.clone())
    }

    /// Returns how many sends of orders have left, and how many of them were of orders that an earlier process had
    /// sent.
    pub(crate) fn sends(&self) -> (u64, u64) {
        let state = self.shared.state();
        (state.attempts, state.sent_again)
    }

    /// Ends all faults from now on.
    pub(crate) fn heal(&self) {
        self.shared.healed.store(true, Ordering::Relaxed);
    }

    fn is_healed(&self) -> bool {
        self.shared.healed.load(Ordering::Relaxed)
    }

    fn chooser(&self) -> &Chooser {
        &self.shared.chooser
    }

    /// Records an event that no request chose.
    fn met(&self, name: &'static str) {
        self.shared.struck(Fault { name, ..Fault::NONE });
    }

    /// The gateway's end of a connection: answers a request that came over it.
    async fn answer(self, request: Request<hyper::body::Incoming>) -> Result<Response<Body>, Broken> {
        self.carry(request, End::Gateway, Arc::default()).await
    }

    pub(crate) fn seen(&self) -> Seen {
        let state = self.shared.state();
        Seen {
            doubted: state.doubted.clone(),
            losses: state.losses.clone(),
            refused: state.refused.clone(),
            refused_for_good: state.refused_for_good.clone(),
            misled: state.misled.clone(),
            attempts: state.attempts,
            attempts_in_doubt: state.attempts_in_doubt,
            struck: state.struck.clone(),
            trace: state.trace,
            exchanges: state.exchanges.clone(),
            arrivals: state.arrivals.clone(),
        }
    }

    async fn carry<B>(self, request: Request<B>, end: End, line: Arc<Line>) -> Result<Response<Body>, Broken>
    where
        B: http_body::Body<Data = Bytes> + Send,
    {
        if self.cut.load(Ordering::Relaxed) {
            return pending().await;
        }
        let shared = self.shared.clone();
        let (parts, body) = request.into_parts();
        let of = Call::of(&parts);
        let call = shared.number(&of);
        let fault = shared.choose(call, &parts);
        let token = text(&parts, header::AUTHORIZATION).to_owned();
        if fault.way == Way::Refused {
            shared.struck(fault);
            let exchange = (end == End::Client).then(|| shared.sends(of, &token));
            sleep(Duration::from_millis(20)).await;
            let mut answer = Err(Broken::Refused);
            shared.ends(call, exchange, &mut answer, false);
            return answer;
        }
        // The first poll of the body is the send.
        let body = body.collect().await.map_err(|_| Broken::Withheld)?.to_bytes();
        shared.left(call, fault);
        let exchange = match end {
            End::Client => Some(shared.sends(of, &token)),
            End::Gateway => {
                shared.arrives(of);
                None
            }
        };
        let mut answer = shared.clone().travel(call, fault, parts, body, &line).await;
        shared.ends(call, exchange, &mut answer, self.cut.load(Ordering::Relaxed));
        answer
    }
}

impl tower::Service<Request<Full<Bytes>>> for Wire {
    type Response = Response<Body>;
    type Error = Broken;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Broken>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Full<Bytes>>) -> Self::Future {
        Box::pin(self.clone().carry(request, End::Client, Arc::default()))
    }
}

impl tower::Service<Request<steadfast::RequestBody>> for Wire {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<steadfast::RequestBody>) -> Self::Future {
        let line = Arc::new(Line::new(self.shared.weather.ending));
        if let Some(stamp) = ext::SendStamp::of(request.extensions()) {
            stamp.set_connection(line.clone());
        }
        let carried = self.clone().carry(request, End::Client, line.clone());
        Box::pin(async move { carried.await.map_err(|broken| line.failed(broken)) })
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn number(&self, of: &Call) -> Numbered {
        let mut state = self.state();
        let next = |count: &mut u64| {
            *count += 1;
            *count
        };
        match *of {
            Call::Order(of) => {
                let index = usize::try_from(of).unwrap_or_default().min(100_000);
                if state.sends.len() <= index {
                    state.sends.resize(index + 1, 0);
                }
                Numbered { kind: Kind::Place, of, nth: next(&mut state.sends[index]) }
            }
            Call::Look(_) | Call::Verification => {
                Numbered { kind: Kind::List, of: next(&mut state.lists), nth: 0 }
            }
            Call::Cancel(_) => Numbered { kind: Kind::Cancel, of: next(&mut state.cancels), nth: 0 },
            Call::Other => Numbered { kind: Kind::Other, of: next(&mut state.others), nth: 0 },
        }
    }

    fn choose(&self, call: Numbered, parts: &Parts) -> Fault {
        if self.healed.load(Ordering::Relaxed) {
            return Fault::NONE;
        }
        let fault = self.weather.fault(&self.chooser, call.kind, call.of, call.nth);
        if !fault.hides_orders {
            return fault;
        }
        if self.weather.lists_are_whole {
            return Fault::NONE;
        }
        // An incomplete list breaks an assumption of every proof. It is injected only where the client can notice.
        let session = text(parts, header::AUTHORIZATION);
        let state = self.state();
        let old = state.acks.old(session, self.weather.lateness.noticed_after());
        let noticeable = match fault.name {
            "list.empty" if state.listed.iter().any(|&index| state.sessions[index] == session) => true,
            "list.partial" => old.windows(2).any(|pair| pair[0].0 + 1 == pair[1].0),
            "list.open-only" => old.iter().any(|(_, completed)| *completed),
            _ => !old.is_empty(),
        };
        if noticeable { fault } else { Fault::NONE }
    }

    /// Carries a request and its answer as far as the fault allows.
    async fn travel(
        self: Arc<Self>,
        call: Numbered,
        fault: Fault,
        parts: Parts,
        body: Bytes,
        line: &Line,
    ) -> Result<Response<Body>, Broken> {
        sleep(self.weather.up(&self.chooser, call.kind, call.of, call.nth)).await;
        if line.is_cut() {
            return pending().await;
        }
        let response = match fault.way {
            Way::Lost => pending().await,
            Way::AnswerLost => {
                drop(self.clone().arrive(call, fault, parts, body).await);
                pending().await
            }
            // A request under way arrives even if the client stops waiting.
            Way::Slow => {
                let delay = self.weather.slow_by(&self.chooser, call.of, call.nth);
                let arrival = tokio::spawn(async move {
                    sleep(delay).await;
                    let answer = self.clone().arrive(call, fault, parts, body).await;
                    self.deliver(call, answer).await
                });
                return arrival.await.unwrap_or(Err(Broken::Reset));
            }
            Way::Through | Way::Refused => self.clone().arrive(call, fault, parts, body).await,
        };
        self.deliver(call, response).await
    }

    /// Records a send, and returns its number.
    fn sends(&self, of: Call, token: &str) -> usize {
        let mut state = self.state();
        let known = state.sessions.iter().position(|known| known == token);
        let session = known.unwrap_or_else(|| {
            state.sessions.push(token.to_owned());
            state.sessions.len() - 1
        });
        let (sent, sent_at_gateway) = (Instant::now(), self.sandbox.now());
        state.exchanges.push(Exchange { of, session, sent, sent_at_gateway, ended: None });
        state.exchanges.len() - 1
    }

    /// Records how a send ended, or a later finding about that.
    fn ended(&self, exchange: usize, at: Instant, ended: Ended) {
        if let Some(exchange) = self.state().exchanges.get_mut(exchange) {
            exchange.ended = Some((at, ended));
        }
    }

    /// Records that a request has arrived whole.
    fn arrives(&self, of: Call) {
        *self.state().arrivals.entry(of).or_default() += 1;
    }

    fn left(&self, call: Numbered, fault: Fault) {
        let in_doubt = self.weather.doubts(&self.chooser, fault, call.of, call.nth);
        let mut state = self.state();
        if call.kind == Kind::Place {
            state.attempts += 1;
            // A list may have assigned the order of a refused send to an equal one that was truly refused. Then this
            // one is sent once more, and the number of orders is still right; that is counted elsewhere.
            let untrue = state.refused.contains(&call.of);
            state.sent_again += u64::from(!untrue && state.inherited.contains(&call.of));
            state.standing.insert((call.of, call.nth));
            if fault.axis == Some(Axis::StrayAnswers) {
                state.misled.insert(call.of);
            }
            if in_doubt {
                state.attempts_in_doubt += 1;
                state.doubted.insert(call.of);
                state.losses.push(Loss { order: call.of, at: Instant::now() });
            }
        }
        drop(state);
        self.struck(fault);
    }

    fn struck(&self, fault: Fault) {
        if fault.name.is_empty() {
            return;
        }
        let mut state = self.state();
        match state.struck.iter_mut().find(|(name, _)| *name == fault.name) {
            Some((_, times)) => *times += 1,
            None => state.struck.push((fault.name, 1)),
        }
    }

    /// The gateway's side: injects the fault and answers the request.
    async fn arrive(
        self: Arc<Self>,
        call: Numbered,
        fault: Fault,
        parts: Parts,
        body: Bytes,
    ) -> Result<Response<Body>, Broken> {
        let market = call.kind == Kind::Place && contains(&body, b"type=market");
        let session = text(&parts, header::AUTHORIZATION).to_owned();
        self.inject(call, fault);
        // Nothing else runs between the injection and the gateway's decision: a whole body is read without waiting.
        let answer = self.sandbox.gateway().oneshot(Request::from_parts(parts, Full::from(body))).await;
        let status = answer.as_ref().map_or(0, |response| response.status().as_u16());
        let response = match answer {
            Ok(response) => {
                let (head, body) = response.into_parts();
                Ok(Response::from_parts(head, Body::read(body).await))
            }
            Err(_) => Err(Broken::Reset),
        };
        // If the gateway itself refuses first, nothing is placed, whatever the fault was.
        let placed_all_the_same = fault.axis == Some(Axis::PlacedRefusals) && self.has_struck(call.of);
        let mut state = self.state();
        if placed_all_the_same {
            state.refused.insert(call.of);
            if fault.name == "placement.403-applied" {
                state.refused_for_good.insert(call.of);
            }
        } else if matches!(status, 401 | 429) {
            state.standing.remove(&(call.of, call.nth));
        }
        let now = u64::try_from(self.sandbox.now().as_nanos()).unwrap_or(u64::MAX);
        for number in [now, call.of, call.nth, u64::from(status)] {
            state.trace = Site::new(fault.name).of(call.kind as u64).nth(number).mixed(state.trace);
        }
        drop(state);
        match response {
            Ok(mut response) => {
                response.extensions_mut().insert(Told { session, market });
                Ok(response)
            }
            Err(broken) => Err(broken),
        }
    }

    /// True if the order's latest send met the fault that was injected for it.
    fn has_struck(&self, order: u64) -> bool {
        let (name, arrivals) = (intent_name(order), self.sandbox.state().arrivals);
        let last = arrivals.iter().rfind(|arrival| arrival.intent.as_deref() == Some(&*name));
        last.is_some_and(|arrival| !arrival.faults.is_empty())
    }

    fn inject(&self, call: Numbered, fault: Fault) {
        let armed = std::mem::replace(&mut self.state().armed, !fault.inject.is_empty());
        if armed {
            self.sandbox.heal();
        }
        for &name in fault.inject {
            let mut entry = FaultEntry::default();
            entry.name = name.to_owned();
            entry.times = Some(1);
            if name.ends_with("-late") {
                let late = self.weather.late_by(&self.chooser, fault, call.of, call.nth);
                entry.late_by_ms = Some(late);
            }
            // The catalogue's test injects every name in it, so this cannot fail.
            let _ = self.sandbox.inject(entry);
        }
    }

    async fn deliver(
        &self,
        call: Numbered,
        response: Result<Response<Body>, Broken>,
    ) -> Result<Response<Body>, Broken> {
        sleep(self.weather.down(&self.chooser, call.kind, call.of, call.nth)).await;
        response
    }

    /// Tells the client how a send ended. The results of a dead process do not count, nor those at the other end of a
    /// pipe.
    fn ends(
        &self,
        call: Numbered,
        exchange: Option<usize>,
        answer: &mut Result<Response<Body>, Broken>,
        is_dead: bool,
    ) {
        let mut state = self.state();
        let Some(exchange) = exchange.and_then(|exchange| state.exchanges.get_mut(exchange)) else { return };
        exchange.ended = Some((Instant::now(), Ended::of(answer)));
        let reads_in = (exchange.of == Call::Verification && !is_dead).then_some(exchange.session);
        let Ok(response) = answer else { return };
        if let Some(session) = reads_in.filter(|session| !state.listed.contains(session))
            && response.status() == StatusCode::OK
            && response.body().whole().is_some_and(lists_orders)
            // The client ignores a list that a cache marks as its own.
            && !["age", "x-cache"].iter().any(|&name| response.headers().contains_key(name))
        {
            state.listed.insert(session);
        }
        let told = response.extensions_mut().remove::<Told>();
        if call.kind == Kind::Place
            && !is_dead
            // An identifier of another order proves nothing.
            && !state.misled.contains(&call.of)
            && response.status() == StatusCode::OK
            && let (Some(told), Some(body)) = (told, response.body().whole())
            && let Ok(placed) = PlacedOrder::parse(body)
        {
            state.acks.push(told, &placed.order_id);
        }
    }
}

/// Returns an order's name in the ground truth.
pub(crate) fn intent_name(number: u64) -> String {
    format!("i{number}")
}

/// Returns the number of an order from its name in the ground truth.
pub(crate) fn intent_number(name: &str) -> Option<u64> {
    name.strip_prefix('i')?.parse().ok()
}

/// True for a readable list that is not empty.
fn lists_orders(body: &[u8]) -> bool {
    contains(body, b"orderId") && serde_json::from_slice::<IgnoredAny>(body).is_ok()
}

fn text(parts: &Parts, name: header::HeaderName) -> &str {
    parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}
