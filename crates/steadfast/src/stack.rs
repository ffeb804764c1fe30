mod describe;
mod layer;
mod settings;

use std::net::IpAddr;

use bytes::Bytes;
use http::{
    Method, Request, Response,
    header::{AUTHORIZATION, Entry},
};
use http_body_util::Full;
use steadfast_auth::{AuthHeaderLayer, RefreshLayer, TokenSource};
use steadfast_call::{BoxError, Call, Routes, ext};
use steadfast_dedup::{DedupLayer, GuardedBody, OrderTracker, SendGuardLayer};
use steadfast_limit::{Account, ApiKeyName, RateLimitLayer, ZoneLimiter};
use steadfast_retry::{AttemptTimeoutLayer, ClassifyLayer, PeekedBody, RetryPolicy, TimedBody};
use steadfast_spec::BaseUrl;
use tokio::time::Instant;
use tower::{Service, ServiceBuilder, util::BoxCloneSyncService};

pub(crate) use self::settings::StackSettings;
use crate::{
    deadline::DeadlineLayer,
    metrics::{AdmittedLayer, AttemptMetricsLayer, CallMetricsLayer, QueuedLayer},
    route::RouteLayer,
    span::{self, TracedBody},
};

/// All layers in their order, around any transport.
///
/// The order is fixed; each setter replaces one layer's settings. Hand-made stacks take the same layers with tower's
/// `ServiceBuilder`.
///
/// # Example
///
/// ```
/// use bytes::Bytes;
/// use http::{Request, StatusCode};
/// use http_body_util::Full;
/// use steadfast::{Stack, auth::{ApiKey, TokenSource}};
/// use steadfast_sandbox::Sandbox;
/// use tower::ServiceExt;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), steadfast::BoxError> {
/// // The gateway places the first order and answers 504; the stack finds it in the list.
/// let sandbox = Sandbox::builder().script("[[fault]]\nname = 'placement.504-applied'\nnth = 1")?.build()?;
/// let account = sandbox.credentials();
/// let tokens = TokenSource::fixed(ApiKey::new(account.api_key)?, account.access_token)?;
/// let stack = Stack::new(account.base_url.parse()?, tokens).service(sandbox.gateway());
///
/// let order = "symId=EQT_INFY_EQ_NSE&qty=10&side=buy&type=market&product=intraday&validity=day";
/// let request = Request::post("http://localhost/v2/api/oms/place-order").body(Full::<Bytes>::from(order))?;
/// let response = stack.oneshot(request).await?;
/// assert_eq!(response.status(), StatusCode::OK);
/// assert_eq!(response.headers()["x-steadfast-resolution"], "recovered");
/// assert_eq!(sandbox.state().orders.len(), 1, "placed once");
/// # Ok(())
/// # }
/// ```
///
/// # Order
///
/// The order is that of the [crate's page](crate#order): layers that may send a request more than once stand outside of
/// what must hold for every send.
///
/// Nothing outside of the stack may repeat an order: the stack has made every safe repeat, and an answer that must not
/// be repeated carries [`DoNotRetry`](ext::DoNotRetry). Do not queue requests there either, for instance with a
/// concurrency limit: a cancel would wait behind polls, because only the stack knows lanes. Instead of a timeout use
/// the stack's own [deadline](Self::deadline), which ends waits with a typed result and drops nothing. Only the
/// transport, and limits on its connections, stand inside.
///
/// # Cancellation
///
/// Dropping a call's future is safe at any point. A waiting request leaves its queue, and its permit goes to the next
/// one. Slots of a sent request stay taken as long as the gateway may count it. An order that may have left is looked
/// for by a task of its own, and never sent again; [`OrderTracker::shutdown`] waits for that task. A token renewal that
/// others share goes on.
#[derive(Clone, Debug)]
#[must_use]
pub struct Stack {
    base: BaseUrl,
    tokens: TokenSource,
    settings: StackSettings,
}

/// Marks a caller's own credentials as sensitive.
///
/// tower-http's layer for this creates a header map for every request without one.
fn sensitive<B>(mut request: Request<B>) -> Request<B> {
    if request.headers().contains_key(AUTHORIZATION)
        && let Entry::Occupied(mut own) = request.headers_mut().entry(AUTHORIZATION)
    {
        own.iter_mut().for_each(|value| value.set_sensitive(true));
    }
    request
}

/// Ends the stack for a request: layers further in have an order of their own.
fn left<B>(mut request: Request<B>) -> Request<B> {
    ext::Place::leave(request.extensions_mut());
    request
}

/// The order list, where orders in doubt are looked up.
const ORDERS: &str = "/api/oms/orders";

/// The body of a stack's requests at its transport.
pub type RequestBody = GuardedBody<Full<Bytes>>;

/// The body of a stack's responses, over a transport's body `B`.
pub type ResponseBody<B> = TracedBody<steadfast_dedup::ResponseBody<PeekedBody<TimedBody<B>>>>;

/// A [`Stack`] around a transport whose bodies are `B`, made by [`Stack::boxed`].
pub type BoxedStack<B> = BoxCloneSyncService<Request<Full<Bytes>>, Response<ResponseBody<B>>, BoxError>;

impl Stack {
    /// Creates the default stack for requests below `base`, with tokens from `tokens`.
    pub fn new(base: BaseUrl, tokens: TokenSource) -> Self {
        Self::with(base, tokens, StackSettings::default())
    }

    pub(crate) fn with(base: BaseUrl, tokens: TokenSource, settings: StackSettings) -> Self {
        Self { base, tokens, settings }
    }

    /// Names the account of the tokens, where several accounts share a limiter or a tracker.
    pub fn account(mut self, account: Account) -> Self {
        self.settings.account = account;
        self
    }

    /// Sets the path and the zones of each endpoint; default [`Routes::default`].
    pub fn routes(mut self, routes: Routes) -> Self {
        self.settings.routes = routes;
        self
    }

    /// Lets JSON bodies pass, instead of refusing them here. The service refuses them.
    pub fn pass_json(mut self) -> Self {
        self.settings.pass_json = true;
        self
    }

    /// Sets by when calls must be answered (default 120 s), and by when they must have left (default: no limit).
    pub fn deadline(mut self, deadline: DeadlineLayer) -> Self {
        self.settings.deadline = deadline;
        self
    }

    /// Sets the tracker, which holds what is known of orders; default a new one with
    /// [`Settings::default`](steadfast_dedup::Settings::default).
    pub fn tracker(mut self, tracker: OrderTracker) -> Self {
        self.settings.tracker = tracker;
        self
    }

    /// Sets what is repeated, and when; default after 1, 2, 4 and 8 s.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.settings.retry = policy;
        self
    }

    /// Sets the rate limits; default those of §8.
    pub fn limiter(mut self, limiter: ZoneLimiter) -> Self {
        self.settings.limiter = limiter;
        self
    }

    /// Sets the local address of requests, for zones that count by address.
    pub fn local_address(mut self, address: IpAddr) -> Self {
        self.settings.local_address = Some(address);
        self
    }

    /// Names the API key of the tokens, where several share a limiter: its zone is counted per key. Stacks without a
    /// name share one count.
    pub fn api_key_name(mut self, name: ApiKeyName) -> Self {
        self.settings.api_key_name = Some(name);
        self
    }

    /// Promises that the transport ends a connection abortively when a call on it is dropped. Its slots are then held
    /// for seconds instead of two minutes. A [`Client`](crate::Client) over its own transport without a proxy promises
    /// it.
    pub fn ends_dropped_calls(mut self) -> Self {
        self.settings.ends_dropped_calls = true;
        self
    }

    /// Sets how long one send may take; default 30 s.
    pub fn attempt_timeout(mut self, timeout: AttemptTimeoutLayer) -> Self {
        self.settings.attempt_timeout = timeout;
        self
    }

    /// Returns the stack around `transport`.
    ///
    /// An order whose answer is lost can be sent again only over a [`Transport`](crate::Transport), because no other
    /// transport says when a connection [ended](crate::Transport#lost-answers). Over others it is looked for and never
    /// sent again.
    ///
    /// # Clone
    ///
    /// Clones of the service, and services made from clones of this stack, share limits, tokens and what is known of
    /// orders.
    pub fn service<S, B>(
        &self,
        transport: S,
    ) -> impl Service<
        Request<Full<Bytes>>,
        Response = Response<ResponseBody<B>>,
        Error = BoxError,
        Future: Send + 'static,
    > + Clone
    + Send
    + use<S, B>
    where
        S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError> + Send,
    {
        let routes = RouteLayer::new(self.base.clone(), self.settings.routes.clone())
            .account(self.settings.account.clone());
        let routes = if self.settings.pass_json { routes.pass_json() } else { routes };
        let limits = match self.settings.local_address {
            Some(address) => RateLimitLayer::new(self.settings.limiter.clone()).local_address(address),
            None => RateLimitLayer::new(self.settings.limiter.clone()),
        };
        let limits = if self.settings.ends_dropped_calls { limits.ends_dropped_calls() } else { limits };
        let limits = match &self.settings.api_key_name {
            Some(name) => limits.api_key(name.clone()),
            None => limits,
        };
        let orders = DedupLayer::new(&self.settings.tracker);
        let orders = match self.settings.routes.find(&Method::GET, ORDERS) {
            Some(route) => orders.list_route(route.clone()),
            None => orders,
        };
        ServiceBuilder::new()
            // Once for each call:
            .map_request(sensitive) // a caller's own header is never shown
            .layer(span::call_spans(self.base.clone(), self.settings.routes.clone())) // sees everything that becomes of the call
            .map_request(span::counted_sends(self.base.clone(), self.settings.routes.clone())) // for the spans of its sends
            .layer(self.settings.deadline) // stamps what all waits below honour
            .layer(routes) // says what the request is, for all layers below
            .layer(CallMetricsLayer::default()) // with the metrics: duration of the whole call, under the name of its route
            .layer(orders) // outermost of the layers that send again, because only it resolves doubt
            .layer(self.settings.retry.clone().predict_permit(self.permits()).layer()) // repeats what was not executed, or only reads
            .layer(RefreshLayer::new(self.tokens.clone())) // a repeat may need a newer token
            // Once for each send:
            .layer(QueuedLayer::default()) // with the metrics: the wait for a permit
            .layer(limits) // every send takes a permit, whichever layer makes it
            .layer(AdmittedLayer::default())
            .layer(AuthHeaderLayer::new(self.tokens.clone()).only_to(&self.base)) // the token of the moment of sending
            .layer(SendGuardLayer::new(&self.settings.tracker)) // the last word on whether an order leaves
            .layer(AttemptMetricsLayer::default()) // with the metrics: duration of the send, and the reason for a repeat
            .layer(ClassifyLayer::new()) // what the answer proves, for all layers above
            .layer(self.settings.attempt_timeout) // its end is an answer that the layers above see
            .map_request(left) // the transport may be a stack of its own
            .map_err(Into::<BoxError>::into)
            .service(transport)
    }

    /// Returns the stack around `transport` as a nameable type, for a field or a signature.
    pub fn boxed<S, B>(&self, transport: S) -> BoxedStack<B>
    where
        S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError> + Send,
    {
        BoxCloneSyncService::new(self.service(transport))
    }

    /// Returns when the limiter would admit the repeat of a request, so that Retry does not wait for one that would
    /// come too late, and hands a refused cancel back to the limiter.
    fn permits(&self) -> impl Fn(&Call) -> Option<Instant> + Send + Sync + use<> {
        let (limiter, address, name) =
            (self.settings.limiter.clone(), self.settings.local_address, self.settings.api_key_name.clone());
        let authority = self.base.uri().authority().map(ToString::to_string).unwrap_or_default();
        move |call| {
            let route = call.route()?;
            let lane = call.lane().unwrap_or(route.lane);
            let account = call.account().cloned().unwrap_or_default();
            let keys = limiter.keys(&authority, &account);
            let keys = address.map_or(keys, |address| keys.local_address(address));
            let keys = name.as_ref().map_or(keys, |name| keys.api_key(name));
            limiter.earliest_again(&route.zones, keys, lane).ok()
        }
    }
}
