//! The wire between a client and the sandbox gateway: latency, loss, and the faults of each request.

mod acks;
mod body;
mod broken;
mod day;
mod ending;
mod exchange;
mod fault;
mod log;
mod pipe;
mod weather;

use std::{
    collections::BTreeSet,
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
use http::{Request, Response, header, request::Parts};
use http_body_util::{BodyExt, Full};
use steadfast::{BoxError, call::BootClock};
use steadfast_sandbox::{FaultEntry, Sandbox};
use tokio::time::{Instant, sleep};
use tower::ServiceExt;

use self::{
    acks::Told,
    ending::Line,
    log::{Numbered, WireLog},
};
pub(crate) use self::{
    body::Body,
    broken::Broken,
    day::Day,
    ending::Ending,
    exchange::{Call, Ended, Exchange, Says},
    fault::{FORMS, Fault, Kind, Way, catalogue, drawn},
    log::{Loss, Seen},
    pipe::{FATES, OUTAGE, Pipe, SimIo, pair},
    weather::{Lateness, Weather},
};
use crate::sim::{axes::Axis, chooser::Chooser};

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
    /// The client's.
    boot: BootClock,
    chooser: Arc<Chooser>,
    weather: Weather,
    healed: AtomicBool,
    log: Mutex<WireLog>,
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
    pub(crate) fn new(sandbox: Sandbox, boot: BootClock, chooser: Arc<Chooser>, weather: Weather) -> Self {
        let (healed, log) = (AtomicBool::new(false), Mutex::default());
        Self {
            shared: Arc::new(Shared { sandbox, boot, chooser, weather, healed, log }),
            cut: Arc::default(),
        }
    }

    /// Ends the process at this end. Returns the end for the next process, and the orders that have left and were not
    /// refused.
    pub(crate) fn cut(&self) -> (Self, BTreeSet<u64>) {
        self.cut.store(true, Ordering::Relaxed);
        let inherited = self.shared.log().cut();
        (Self { shared: self.shared.clone(), cut: Arc::default() }, inherited)
    }

    /// Returns how many sends of orders have left, and how many of them were of orders that an earlier process had
    /// sent.
    pub(crate) fn sends(&self) -> (u64, u64) {
        self.shared.log().sends()
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
        self.shared.log().struck(name);
    }

    /// The gateway's end of a connection: answers a request that came over it.
    async fn answer(self, request: Request<hyper::body::Incoming>) -> Result<Response<Body>, Broken> {
        self.carry(request, End::Gateway, Arc::default()).await
    }

    pub(crate) fn seen(&self) -> Seen {
        self.shared.log().seen().clone()
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
        let call = shared.log().number(&of);
        let fault = shared.choose(call, &parts);
        let token = text(&parts, header::AUTHORIZATION).to_owned();
        if fault.way == Way::Refused {
            shared.log().struck(fault.name);
            let exchange = (end == End::Client).then(|| shared.sends(of, &token));
            sleep(Duration::from_millis(20)).await;
            let mut answer = Err(Broken::Refused);
            shared.log().ends(call, exchange, &mut answer, false);
            return answer;
        }
        // The first poll of the body is the send.
        let body = body.collect().await.map_err(|_| Broken::Withheld)?.to_bytes();
        shared.left(call, fault);
        let exchange = match end {
            End::Client => Some(shared.sends(of, &token)),
            End::Gateway => {
                shared.log().arrives(of);
                None
            }
        };
        let mut answer = shared.clone().travel(call, fault, parts, body, &line).await;
        shared.log().ends(call, exchange, &mut answer, self.cut.load(Ordering::Relaxed));
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
        if let Some(stamp) = steadfast::call::Call::of(request.extensions()).send() {
            stamp.set_connection(line.clone());
        }
        let carried = self.clone().carry(request, End::Client, line.clone());
        Box::pin(async move { carried.await.map_err(|broken| line.failed(broken)) })
    }
}

impl Shared {
    fn log(&self) -> MutexGuard<'_, WireLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
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
        let noticeable = self.log().contradicts(fault.name, session, self.weather.lateness.noticed_after());
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
        self.log().begins(of, token, self.boot.now().unwrap_or_default())
    }

    /// Records how a send ended, or a later finding about that.
    fn ended(&self, exchange: usize, at: Instant, ended: Ended) {
        self.log().ended(exchange, at, ended);
    }

    fn left(&self, call: Numbered, fault: Fault) {
        let in_doubt = self.weather.doubts(&self.chooser, fault, call.of, call.nth);
        self.log().left(call, fault, in_doubt);
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
        // If the gateway itself refuses first, nothing is placed, with any fault.
        let placed_all_the_same = fault.axis == Some(Axis::PlacedRefusals) && self.has_struck(call.of);
        self.log().answered(call, fault, status, placed_all_the_same, self.sandbox.now());
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
        if self.log().arms(!fault.inject.is_empty()) {
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
}

/// Returns an order's name in the ground truth.
pub(crate) fn intent_name(number: u64) -> String {
    format!("i{number}")
}

/// Returns the number of an order from its name in the ground truth.
pub(crate) fn intent_number(name: &str) -> Option<u64> {
    name.strip_prefix('i')?.parse().ok()
}

fn text(parts: &Parts, name: header::HeaderName) -> &str {
    parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}
