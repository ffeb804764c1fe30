//! The two layers over the scripted gateway, with a small stand-in for the layers between them.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use steadfast_call::{BoxError, Call, Failure, Lane, Outcome, ext};
use steadfast_dedup::{
    Dedup, DedupLayer, OrderEvent, OrderTracker, RESOLUTION_HEADER, Resolution, SendGuard, SendGuardLayer,
    Settings, Unresolved,
};
use steadfast_spec::PlacedOrder;
use steadfast_verify::{
    invariants::{Answer, Order, Run, violations},
    noon::at_noon,
};
use tokio::{
    sync::broadcast,
    task::JoinHandle,
    time::{Instant, sleep},
};
use tower::{Layer, Service, ServiceExt};

use crate::gateway::{Body, Gateway, Listed};

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Placed(String),
    Recovered(String),
    Attached(String),
    Resent(String),
    Unresolved(&'static str, Vec<String>, u16),
    Answer(u16),
    NotSent(String),
    NotExecuted(String),
    Error(String),
}

pub(crate) struct Rig {
    pub(crate) gateway: Gateway,
    pub(crate) tracker: OrderTracker,
    pub(crate) between: Between,
    pub(crate) service: Dedup<Middle<SendGuard<Gateway>>>,
    events: Mutex<broadcast::Receiver<OrderEvent>>,
    seen: Mutex<Vec<OrderEvent>>,
    told: Arc<Mutex<Vec<(String, Told)>>>,
    answers: Arc<Mutex<Vec<Answer>>>,
    settings: Settings,
    /// The process is one of several over its gateway, or its history is not complete: nothing is checked at the end.
    pub(crate) unchecked: bool,
}

/// The part between the two layers: queues, tokens, and repeats of requests that were certainly not executed.
#[derive(Clone, Default)]
pub(crate) struct Between(Arc<Mutex<Knobs>>);

#[derive(Clone, Default)]
struct Knobs {
    generation: u64,
    first_queue: Duration,
    resend_queue: Duration,
    bulk_queue: Duration,
    bulk_repeats: Option<Duration>,
    careless: bool,
    silent: bool,
    authorizes: bool,
}

impl Between {
    pub(crate) fn token(&self, generation: u64) {
        self.0.lock().generation = generation;
    }

    /// Sets the header of the token, except on requests that carry their own.
    pub(crate) fn authorizes(&self) {
        self.0.lock().authorizes = true;
    }

    /// Makes it repeat what it must not repeat, as a generic retry layer would.
    pub(crate) fn repeats_everything(&self) {
        self.0.lock().careless = true;
    }

    /// Makes it repeat nothing, as when the repeats are spent or the token cannot be renewed.
    pub(crate) fn repeats_nothing(&self) {
        self.0.lock().silent = true;
    }

    pub(crate) fn queue(&self, first: Duration, resend: Duration) {
        let mut knobs = self.0.lock();
        (knobs.first_queue, knobs.resend_queue) = (first, resend);
    }

    /// Sets how long requests that can wait do wait, as behind a minute's window that is spent.
    pub(crate) fn bulk_queue(&self, wait: Duration) {
        self.0.lock().bulk_queue = wait;
    }

    /// Repeats a refused request that can wait after this time.
    pub(crate) fn bulk_repeats(&self, after: Duration) {
        self.0.lock().bulk_repeats = Some(after);
    }
}

pub(crate) const ORDER: &str =
    "symId=EQT_INFY_EQ_NSE&qty=10&side=buy&type=limit&product=delivery&validity=day&limitPrice=100";

pub(crate) fn order(qty: u32) -> String {
    ORDER.replace("qty=10", &format!("qty={qty}"))
}

pub(crate) fn market() -> String {
    ORDER.replace("type=limit", "type=market").replace("&limitPrice=100", "")
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    /// Returns a process in the middle of its trading day.
    pub(crate) fn with(settings: Settings) -> Self {
        Self::on(at_noon(settings))
    }

    /// Returns a process on the trading day of its settings.
    pub(crate) fn on(settings: Settings) -> Self {
        Self::over(Gateway::default(), settings)
    }

    /// Returns another process on the same account.
    pub(crate) fn over(gateway: Gateway, settings: Settings) -> Self {
        let settings = settings.traced();
        Self::around(gateway, OrderTracker::new(settings.clone()), settings)
    }

    /// Returns a process with a tracker of these settings.
    pub(crate) fn around(gateway: Gateway, tracker: OrderTracker, settings: Settings) -> Self {
        let between = Between::default();
        let guarded = SendGuardLayer::new(&tracker).layer(gateway.clone());
        let service = DedupLayer::new(&tracker).layer(Middle { inner: guarded, between: between.clone() });
        let events = Mutex::new(tracker.events());
        Self {
            gateway,
            tracker,
            between,
            service,
            events,
            seen: Mutex::default(),
            told: Arc::default(),
            answers: Arc::default(),
            settings,
            unchecked: false,
        }
    }

    pub(crate) fn request(&self, intent: &str, form: &str) -> Request<Body> {
        Request::post("https://gateway.example/v2/api/oms/place-order")
            .header("x-test-intent", intent)
            .body(Full::from(form.to_owned()))
            .unwrap()
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn send(&self, request: Request<Body>) -> Told {
        let intent = request.headers()["x-test-intent"].to_str().unwrap().to_owned();
        let (told, answer) = judge(self.service.clone().oneshot(request).await).await;
        self.told.lock().push((intent, told.clone()));
        self.answers.lock().push(answer);
        told
    }

    pub(crate) async fn place(&self, intent: &str, form: &str) -> Told {
        self.send(self.request(intent, form)).await
    }

    /// Does the same for identifiers that the gateway's truth does not know.
    pub(crate) async fn service_told(&self, intent: &str, form: &str) -> Told {
        tell(self.service.clone().oneshot(self.request(intent, form)).await).await
    }

    /// Does the same in the background.
    pub(crate) fn start(&self, intent: &str, form: &str) -> JoinHandle<Told> {
        let (service, request) = (self.service.clone(), self.request(intent, form));
        let (told, answers, intent) = (self.told.clone(), self.answers.clone(), intent.to_owned());
        tokio::spawn(async move {
            let (answer, marks) = judge(service.oneshot(request).await).await;
            told.lock().push((intent, answer.clone()));
            answers.lock().push(marks);
            answer
        })
    }

    pub(crate) fn events(&self) -> Vec<OrderEvent> {
        let (mut events, mut seen) = (self.events.lock(), self.seen.lock());
        while let Ok(event) = events.try_recv() {
            seen.push(event);
        }
        seen.clone()
    }

    /// Returns the identifiers that were reported as late or too many.
    pub(crate) fn flagged(&self) -> Vec<String> {
        let flagged = self.events().into_iter().filter_map(|event| match event {
            OrderEvent::LateDuplicate { order_id, .. }
            | OrderEvent::RefusedButPlaced { order_id, .. }
            | OrderEvent::Excess { order_id, .. } => Some(order_id),
            _ => None,
        });
        flagged.collect()
    }

    /// Returns the run so far, for the checkers.
    pub(crate) fn run(&self) -> Run {
        let accounts = [None, Some(ext::Account::new("one")), Some(ext::Account::new("two"))];
        let accounts: Vec<_> = accounts.iter().map(|name| self.tracker.trace(name.as_ref())).collect();
        let book = self.gateway.0.lock();
        let order = |order: &Listed| Order { id: order.id.clone(), owner: order.owner.clone() };
        let mut run = Run::new(&self.settings, accounts, self.tracker.in_doubt());
        run.posts = book.posts.iter().map(|(_, owner)| owner.clone()).collect();
        run.orders = book.orders.iter().map(order).collect();
        run.methods = book.methods.iter().map(ToString::to_string).collect();
        run.answers = self.answers.lock().clone();
        run
    }

    /// Checks all invariants, and compares the answers with the gateway's truth: none was invented.
    pub(crate) fn audit(&self) {
        self.check();
        let book = self.gateway.0.lock();
        let told = self.told.lock().clone();
        let mut claimed = Vec::new();
        for (intent, told) in &told {
            if let Told::Placed(id) | Told::Recovered(id) | Told::Resent(id) = told {
                assert!(!claimed.contains(id), "I2: {id} was given to two intents");
                claimed.push(id.clone());
                assert!(book.orders.iter().any(|order| order.id == *id), "{intent} was told of no order");
            }
        }
        let mut flagged = self.flagged();
        let count = flagged.len();
        flagged.sort();
        flagged.dedup();
        assert_eq!(flagged.len(), count, "I11: an order was flagged twice");
        let ours: Vec<_> = book.orders.iter().filter(|order| order.owner != "foreign").collect();
        let mut intents: Vec<_> = book.posts.iter().map(|(_, owner)| owner).collect();
        intents.sort();
        intents.dedup();
        let excess = ours.len().saturating_sub(intents.len());
        assert!(excess <= flagged.len(), "I3: {excess} orders too many, flagged {flagged:?}");
    }
}

impl Rig {
    pub(crate) fn check(&self) {
        let violations = violations(&self.run());
        assert!(violations.is_empty(), "{violations:#?}");
    }
}

/// Checks every scenario, audited or not, for broken invariants.
impl Drop for Rig {
    fn drop(&mut self) {
        if !self.unchecked && !std::thread::panicking() {
            self.check();
        }
    }
}

/// Returns the result of a call, and its marks.
async fn judge<RB>(answer: Result<Response<RB>, BoxError>) -> (Told, Answer)
where
    RB: http_body::Body<Data = bytes::Bytes>,
    RB::Error: std::fmt::Debug,
{
    let mut marks = Answer { unresolved: false, do_not_retry: false, unknown: false, has_original: true };
    match &answer {
        Ok(response) => {
            let extensions = response.extensions();
            marks.unresolved = extensions.get::<Unresolved>().is_some();
            marks.do_not_retry = extensions.get::<ext::DoNotRetry>().is_some();
            marks.unknown = Outcome::of(extensions).is_some_and(Outcome::is_unknown);
        }
        Err(error) => {
            // An error is its own mark: it has an outcome that is not repeated, and the original as its source.
            marks.unresolved = Unresolved::find(&**error).is_some();
            marks.unknown = Failure::outcome_of(&**error).is_unknown();
            marks.do_not_retry = marks.unknown;
            marks.has_original = error.source().is_some();
        }
    }
    (tell(answer).await, marks)
}

pub(crate) async fn tell<RB>(answer: Result<Response<RB>, BoxError>) -> Told
where
    RB: http_body::Body<Data = bytes::Bytes>,
    RB::Error: std::fmt::Debug,
{
    let response = match answer {
        Ok(response) => response,
        Err(error) => {
            if let Some(Unresolved { reason, candidates, .. }) = Unresolved::find(&*error) {
                assert!(Failure::outcome_of(&*error).is_unknown(), "no order in doubt has an outcome");
                return Told::Unresolved(reason.as_str(), candidates.clone(), 0);
            }
            // Its own text, without its causes.
            let text = format!("{:#}", error.source().unwrap_or(&*error));
            return match Failure::outcome_of(&*error) {
                Outcome::NotSent => Told::NotSent(text),
                Outcome::NotExecuted => Told::NotExecuted(text),
                _ => Told::Error(text),
            };
        }
    };
    let (parts, body) = response.into_parts();
    let status = parts.status.as_u16();
    let body = body.collect().await.unwrap().to_bytes();
    if let Some(Unresolved { reason, candidates, .. }) = parts.extensions.get::<Unresolved>() {
        assert!(parts.extensions.get::<ext::DoNotRetry>().is_some(), "I21");
        assert!(
            Outcome::of(&parts.extensions).is_some_and(Outcome::is_unknown),
            "no order in doubt has an outcome"
        );
        assert!(!body.is_empty(), "I21: the original body comes back");
        return Told::Unresolved(reason.as_str(), candidates.clone(), status);
    }
    let marked = parts.headers.contains_key(RESOLUTION_HEADER);
    let id = || PlacedOrder::parse(&body).unwrap().order_id;
    match parts.extensions.get::<Resolution>() {
        Some(Resolution::Recovered { order_id, .. }) => {
            assert!(marked && id() == *order_id);
            Told::Recovered(id())
        }
        Some(Resolution::Attached { .. }) => Told::Attached(id()),
        Some(Resolution::Resent) if status == 200 => Told::Resent(id()),
        None if status == 200 => {
            assert!(!marked);
            Told::Placed(id())
        }
        _ => Told::Answer(status),
    }
}

/// The stand-in.
#[derive(Clone)]
pub(crate) struct Middle<S> {
    inner: S,
    between: Between,
}

impl<S> Service<Request<Body>> for Middle<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (inner, between) = (self.inner.clone(), self.between.clone());
        Box::pin(async move {
            let knobs = between.0.lock().clone();
            let resend = Call::of(request.extensions()).is_at_head_of_lane();
            let is_order = request.method() == http::Method::POST;
            if is_order {
                sleep(if resend { knobs.resend_queue } else { knobs.first_queue }).await;
            }
            let can_wait = Call::of(request.extensions()).lane() == Some(Lane::Bulk);
            if can_wait {
                sleep(knobs.bulk_queue).await;
            }
            let deadline = Call::of(request.extensions()).deadline().map(Instant::from_std);
            if is_order && deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(Failure::refused("deadline passed in the queue").into());
            }
            let mut waits = [1_u64, 2, 4, 8].into_iter();
            loop {
                let mut again = request.clone();
                let (generation, authorizes) = {
                    let knobs = between.0.lock();
                    (knobs.generation, knobs.authorizes)
                };
                if !Call::of(again.extensions()).has_own_authorization() {
                    Call::of_mut(again.extensions_mut()).set_generation(ext::TokenGeneration(generation));
                    if authorizes {
                        let header = format!("Bearer key:token-{generation}").parse().unwrap();
                        again.headers_mut().insert(http::header::AUTHORIZATION, header);
                    }
                }
                let answer = inner.clone().oneshot(again).await;
                if let Some(after) = knobs.bulk_repeats.filter(|_| can_wait)
                    && !answer.as_ref().is_ok_and(|response| response.status().is_success())
                {
                    sleep(after).await;
                    continue;
                }
                let (outcome, refusal) = match &answer {
                    Ok(response) => (Outcome::of(response.extensions()).cloned(), false),
                    Err(error) => (
                        Some(Failure::outcome_of(&**error)),
                        Failure::find(&**error).is_some_and(Failure::is_refusal),
                    ),
                };
                let repeat =
                    is_order && !refusal && matches!(outcome, Some(Outcome::NotSent | Outcome::NotExecuted));
                let repeat = repeat || knobs.careless && is_order && !refusal;
                match waits.next().filter(|_| repeat && !knobs.silent) {
                    Some(wait) => sleep(Duration::from_secs(wait)).await,
                    None => return answer,
                }
            }
        })
    }
}
