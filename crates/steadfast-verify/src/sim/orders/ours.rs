use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full};
use steadfast::{
    BoxError, LimiterGate, Paths, RequestBody, ResponseBody, Stack,
    auth::{ApiKey, Credentials, IndividualLogin, Login, Renewal, TokenSource, Totp, TotpSecret},
    call::{BootClock, Failure, Outcome, Routes, WallClock, causes},
    dedup::{OrderTracker, Recover, Settings, Unresolved, Verdict},
    ext::{DoNotRetry, IntentId},
    limit::{Account, ColdStart, ZoneLimiter},
    retry::{AttemptTimeoutLayer, RetryPolicy},
    spec::{Endpoint, Form, PlacedOrder},
};
use steadfast_call::Call;
use steadfast_sandbox::Sandbox;
use tokio::time::timeout;
use tower::{Service, ServiceExt, util::BoxCloneSyncService};

use crate::invariants::Answer as Answered;
use crate::sim::{
    axes::Axes,
    orders::{
        crash::MemoryJournal,
        line::Line,
        trader::{Told, Trader},
        workload::Wanted,
    },
    wire::{INTENT, LOOK, Pipe, Wire, intent_number},
};

/// The time in which a process must resolve the orders that the one before it left in doubt.
const LONGEST_RECOVERY: Duration = Duration::from_secs(600);

type Answer = Response<Full<Bytes>>;
type Transported = BoxCloneSyncService<Request<Full<Bytes>>, Answer, BoxError>;

/// This project's whole stack, with its defaults except for the choices of a seed.
pub(crate) struct Ours {
    service: Transported,
    tracker: OrderTracker,
    place: Uri,
    cancel: String,
    list: Uri,
    names_all: bool,
    /// The results of calls with orders in doubt.
    answers: Mutex<Vec<Answered>>,
}

/// The settings of a stack that a seed or the command line chooses.
#[derive(Clone, Debug)]
pub(crate) struct Choices {
    pub(crate) settings: Settings,
    /// The clock that tokens age by.
    pub(crate) boot: BootClock,
    pub(crate) attempt_timeout: Duration,
    pub(crate) logs_in: bool,
    pub(crate) medium: Medium,
    /// The journal of an earlier process, which this one continues.
    pub(crate) journal: Option<MemoryJournal>,
    pub(crate) cold_start: ColdStart,
    pub(crate) axes: Axes,
}

/// The transport under a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Medium {
    /// The gateway's service, without HTTP between.
    #[default]
    Direct,
    /// A real HTTP client and server, with a pipe of bytes between them.
    Pipe,
}

impl Ours {
    /// Creates a stack around `wire`, which leads to `sandbox`.
    pub(crate) fn new(
        sandbox: &Sandbox,
        wire: &Wire,
        choices: Choices,
        clock: &WallClock,
    ) -> Result<Self, BoxError> {
        let Choices { medium, axes, .. } = choices;
        let base = sandbox.credentials().base_url.parse()?;
        Self::build(sandbox, choices, clock, wire.clone(), |stack| match medium {
            Medium::Direct => around(stack, wire.clone()),
            Medium::Pipe => around(stack, Pipe::transport(wire, &base, axes)),
        })
    }

    /// Creates a stack whose connections end at the server of `sandbox`, with nothing between.
    pub(crate) fn over_lines(
        sandbox: &Sandbox,
        choices: Choices,
        clock: &WallClock,
    ) -> Result<Self, BoxError> {
        let base = sandbox.credentials().base_url.parse()?;
        Self::build(sandbox, choices, clock, Line::transport(sandbox, &base), |stack| {
            around(stack, Line::transport(sandbox, &base))
        })
    }

    fn build<L>(
        sandbox: &Sandbox,
        choices: Choices,
        clock: &WallClock,
        login: L,
        around: impl FnOnce(&Stack) -> Transported,
    ) -> Result<Self, BoxError>
    where
        IndividualLogin<L, Totp, LimiterGate>: Login,
    {
        let facts = sandbox.credentials();
        let base: steadfast::BaseUrl = facts.base_url.parse()?;
        let limiter = ZoneLimiter::builder().preset().cold_start(choices.cold_start).build()?;
        let account = Account::default();
        let key = ApiKey::new(facts.api_key)?;
        let tokens = if choices.logs_in {
            let credentials = Credentials::new(facts.client_id, facts.password);
            let secret = TotpSecret::new(facts.totp_secret)?;
            let gate = LimiterGate::new(limiter.clone(), &base, account.clone());
            let login = IndividualLogin::totp(login, &base, key.clone(), credentials, secret)?.gate(gate);
            TokenSource::builder(key, login)
                .clock(clock.clone())
                .boot_clock(choices.boot.clone())
                .renewal(Renewal::new().jitter_seed(1))
                .build()
        } else {
            TokenSource::fixed(key, facts.access_token)?
        };
        let settings = choices.settings.trading_day(clock.clone(), 19_800);
        // The next process can be asked only for orders with a name.
        let names_all = choices.journal.is_some();
        let tracker = match choices.journal {
            Some(journal) => OrderTracker::journaled(settings, journal),
            None => OrderTracker::new(settings),
        };
        let paths = Paths::public();
        let stack = Stack::new(base, tokens)
            .account(account)
            .limiter(limiter)
            .routes(Routes::new(&paths))
            .tracker(tracker.clone())
            .retry(RetryPolicy::default().seed(1))
            .attempt_timeout(AttemptTimeoutLayer::new(choices.attempt_timeout));
        let path = |endpoint| format!("{}{}", facts.base_url, paths.of(endpoint).unwrap_or_default());
        Ok(Self {
            service: around(&stack),
            tracker,
            place: path(Endpoint::PlaceOrder).parse()?,
            cancel: path(Endpoint::CancelOrder),
            list: path(Endpoint::Orders).parse()?,
            names_all,
            answers: Mutex::default(),
        })
    }

    /// Resolves the orders that an earlier process left in doubt; they are named by their numbers.
    pub(crate) async fn recover(&self) -> Vec<(u64, Told)> {
        let mut request = Request::new(Full::default());
        *request.uri_mut() = self.list.clone();
        request.extensions_mut().insert(Recover);
        // The result of the call does not matter, only what is known after it.
        drop(timeout(LONGEST_RECOVERY, self.call(request)).await);
        let recovered = self.tracker.recovered().unwrap_or_default().into_iter();
        let told = recovered.filter_map(|order| {
            let number = intent_number(order.name?.as_str())?;
            let told = match order.verdict {
                Verdict::Acknowledged { order_id } | Verdict::Recovered { order_id, .. } => {
                    Told::Placed(order_id)
                }
                Verdict::Unresolved(unresolved) => Told::in_doubt(unresolved.reason),
                // A list has confirmed a refusal of the earlier process.
                Verdict::NotPlaced => Told::Rejected,
                other => Told::Nonsense(format!("{other:?}")),
            };
            Some((number, told))
        });
        told.collect()
    }

    /// True if the order is asked for by a name.
    pub(crate) fn names(&self, wanted: &Wanted) -> bool {
        wanted.named || self.names_all
    }

    /// Returns the results of calls with orders in doubt.
    pub(crate) fn answers(&self) -> Vec<Answered> {
        self.told().clone()
    }

    fn told(&self) -> MutexGuard<'_, Vec<Answered>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tracker(&self) -> &OrderTracker {
        &self.tracker
    }

    async fn call(&self, request: Request<Full<Bytes>>) -> Result<Answer, BoxError> {
        self.service.clone().ready().await?.call(request).await
    }

    async fn send(&self, wanted: &Wanted) -> Result<Told, BoxError> {
        let mut request = Request::new(Full::from(wanted.shape.order()?.form().encode()));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.place.clone();
        let intent = wanted.intent();
        request.headers_mut().insert(header::CONTENT_TYPE, Form::CONTENT_TYPE);
        request.headers_mut().insert(INTENT, HeaderValue::from_str(&intent)?);
        if self.names(wanted) {
            Call::of_mut(request.extensions_mut()).set_intent(IntentId::new(intent));
        }
        let (head, body) = self.call(request).await?.into_parts();
        if let Some(unresolved) = head.extensions.get::<Unresolved>() {
            self.told().push(Answered {
                unresolved: true,
                do_not_retry: head.extensions.get::<DoNotRetry>().is_some(),
                unknown: Outcome::of(&head.extensions).is_some_and(Outcome::is_unknown),
                has_original: true,
            });
            return Ok(Told::in_doubt(unresolved.reason));
        }
        let outcome = Outcome::of(&head.extensions);
        if outcome.is_some_and(Outcome::is_not_executed) {
            return Ok(Told::Rejected);
        }
        let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        Ok(match PlacedOrder::parse(&body) {
            Ok(placed) if head.status == StatusCode::OK => Told::Placed(placed.order_id),
            _ => Told::Nonsense(format!("{} {outcome:?}", head.status)),
        })
    }
}

/// Builds the stack around a transport, and collects the bodies of answers. The layers' extensions count even if a body
/// breaks off.
fn around<S, B>(stack: &Stack, transport: S) -> Transported
where
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError> + Send,
{
    let service = stack.service(transport).and_then(async |response: Response<ResponseBody<B>>| {
        let (head, body) = response.into_parts();
        let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        Ok(Response::from_parts(head, Full::from(body)))
    });
    BoxCloneSyncService::new(service)
}

impl Trader for Ours {
    async fn place(&self, wanted: &Wanted) -> Told {
        self.send(wanted).await.unwrap_or_else(|error| match Unresolved::find(&*error) {
            Some(unresolved) => {
                let unknown = Failure::outcome_of(&*error).is_unknown();
                let has_original = error.source().is_some();
                let do_not_retry = unknown;
                self.told().push(Answered { unresolved: true, do_not_retry, unknown, has_original });
                Told::in_doubt(unresolved.reason)
            }
            None if Failure::outcome_of(&*error).is_not_executed() => Told::Rejected,
            None => {
                let causes: Vec<_> = causes(&*error).map(ToString::to_string).collect();
                Told::Nonsense(causes.join(": "))
            }
        })
    }

    async fn cancel(&self, order_id: &str) {
        let request = Request::delete(format!("{}?orderId={order_id}", self.cancel)).body(Full::default());
        if let Ok(request) = request
            && let Ok(response) = self.call(request).await
        {
            drop(response.into_body().collect().await);
        }
    }

    async fn look(&self, after: u64) {
        let request = Request::get(self.list.clone()).header(INTENT, format!("{LOOK}{after}"));
        if let Ok(request) = request.body(Full::default()) {
            drop(self.call(request).await);
        }
    }
}
