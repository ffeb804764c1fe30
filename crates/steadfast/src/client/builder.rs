use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, header};
use http_body_util::BodyExt;
use steadfast_call::{BoxError, Routes};
use steadfast_dedup::{OrderTracker, Settings, journal::FileJournal};
use steadfast_limit::{Account, ApiKeyName, ZoneLimiter};
use steadfast_retry::{AttemptTimeoutLayer, RetryPolicy};
use steadfast_spec::{BaseUrl, Endpoint, Paths, is_template};
use tower::{Service, ServiceExt, util::BoxCloneSyncService};

use super::{Address, Body, BrokenBody, Client};
use crate::{
    access::Access,
    deadline::DeadlineLayer,
    description::LayerDescription,
    gate::LimiterGate,
    invalid_client::InvalidClient,
    stack::{RequestBody, Stack, StackSettings},
    transport::Transport,
};

/// The headers that the layers and the connection write.
const OWN_HEADERS: [HeaderName; 5] = [
    header::AUTHORIZATION,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::HOST,
    header::TRANSFER_ENCODING,
];

/// How long the gateway may still count a request of a process that died: its own timeout.
#[cfg(feature = "redis")]
const COUNTED_AFTER_DEATH: std::time::Duration = std::time::Duration::from_secs(30);

/// Collects a client's settings; made by [`Client::builder`].
#[derive(Debug)]
#[must_use]
pub struct ClientBuilder {
    base: BaseUrl,
    access: Access,
    transport: Transport,
    headers: HeaderMap,
    paths: Paths,
    layers: StackSettings,
    // The defaults of these three depend on other settings.
    routes: Option<Routes>,
    tracker: Option<OrderTracker>,
    limiter: Option<ZoneLimiter>,
    orders: Settings,
    journal: Option<PathBuf>,
    #[cfg(feature = "redis")]
    shared: Option<steadfast_redis::Shared>,
    #[cfg(feature = "redis")]
    shared_orders: Option<steadfast_redis::Orders>,
}

impl ClientBuilder {
    pub(super) fn new(base: BaseUrl, access: Access) -> Self {
        Self {
            base,
            access,
            transport: Transport::new(),
            headers: HeaderMap::new(),
            paths: Paths::default(),
            layers: StackSettings::default(),
            routes: None,
            tracker: None,
            limiter: None,
            orders: Settings::default(),
            journal: None,
            #[cfg(feature = "redis")]
            shared: None,
            #[cfg(feature = "redis")]
            shared_orders: None,
        }
    }

    /// Names the account, where several clients share a limiter.
    pub fn account(mut self, account: Account) -> Self {
        self.layers.account = account;
        self
    }

    /// Sends a header with every request except logins, such as a `User-Agent`. A [raw](Client::raw) request keeps a
    /// header of the same name that it already has.
    ///
    /// [`build`](Self::build) refuses the headers that the layers write (`Authorization`, the length and type of the
    /// body).
    pub fn header(mut self, name: HeaderName, mut value: HeaderValue) -> Self {
        // Its value may be a secret.
        value.set_sensitive(true);
        self.headers.insert(name, value);
        self
    }

    /// Lets JSON bodies of [raw](Client::raw) requests pass, instead of refusing them here. The service refuses them.
    pub fn pass_json(mut self) -> Self {
        self.layers.pass_json = true;
        self
    }

    /// Sets the paths that the specification does not show; none by default.
    pub fn paths(mut self, paths: Paths) -> Self {
        self.paths = paths;
        self
    }

    /// Sets which endpoint falls under which zones; by default as specified, with the given paths. They have to know these paths,
    /// too: begin with [`Routes::new`] of the same ones.
    pub fn routes(mut self, routes: Routes) -> Self {
        self.routes = Some(routes);
        self
    }

    /// Sets how connections are made.
    pub fn transport(mut self, transport: Transport) -> Self {
        self.transport = transport;
        self
    }

    /// Sets by when calls must be answered (default 120 s), and by when they must have left (default: no limit).
    /// [`Client::with_deadline`] sets it for some of the calls only.
    pub fn deadline(mut self, deadline: DeadlineLayer) -> Self {
        self.layers.deadline = deadline;
        self
    }

    /// Sets what may be assumed when orders are in doubt.
    pub fn order_safety(mut self, settings: Settings) -> Self {
        self.orders = settings;
        self
    }

    /// Shares what is known of orders with other clients of the same account. The tracker's settings replace
    /// [`order_safety`](Self::order_safety).
    ///
    /// Clients of one account that share no tracker take each other's orders for their own.
    pub fn tracker(mut self, tracker: OrderTracker) -> Self {
        self.tracker = Some(tracker);
        self
    }

    /// Writes every order to the file at `path` before it is sent. After a crash the next process looks for the orders
    /// in doubt; see [`Client::recover`].
    ///
    /// No order is sent while the journal fails. That includes a journal that is moved, removed or replaced, or whose
    /// lock file is (`path` with `.lock` appended): leave both where they are. To begin a new journal, end the process
    /// first, then move both away.
    ///
    /// Has no effect with a [`tracker`](Self::tracker), which keeps its own journal or none.
    pub fn journal(mut self, path: impl Into<PathBuf>) -> Self {
        self.journal = Some(path.into());
        self
    }

    /// Sets what is repeated, and when; default after 1, 2, 4 and 8 s.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.layers.retry = policy;
        self
    }

    /// Sets the rate limits; default those of §8.
    ///
    /// With a [stored](Access::store) token the default limits keep what was spent in a file beside it, so that the
    /// next process does not begin with empty windows. Given limits have their own [start](steadfast_limit::ColdStart).
    ///
    /// The zone of one-time codes counts by machine address: clients of one machine that log in at the same time should
    /// share their limits.
    pub fn limiter(mut self, limiter: ZoneLimiter) -> Self {
        self.limiter = Some(limiter);
        self
    }

    /// Counts the requests of the default limits together with the other processes of the account. Each of them connects
    /// to the same store under the same [account](Self::account), and is of the same build.
    ///
    /// [`build`](Self::build) refuses it together with a [`limiter`](Self::limiter), which
    /// [counts with](steadfast_limit::Builder::count_with) others by itself.
    ///
    /// # Example
    ///
    /// ```no_run
    /// use steadfast::{Access, Client, TotpCredentials, limit::Account, redis::{Seal, Shared}};
    ///
    /// # async fn run(credentials: TotpCredentials) -> Result<(), Box<dyn std::error::Error>> {
    /// let account = Account::new("SB0001");
    /// let shared = Shared::connect("redis://store.example:6379", &account).await?;
    /// let seal = Seal::of_environment()?.ok_or("no seal key")?;
    /// let access = Access::totp(credentials)?.shared_store(shared.token_store(seal));
    /// let builder = Client::builder("https://api.example/tradeapi/v2".parse()?, access);
    /// let client = builder.account(account).shared(shared).build()?;
    /// # drop(client);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "redis")]
    pub fn shared(mut self, shared: steadfast_redis::Shared) -> Self {
        self.shared = Some(shared);
        self
    }

    /// Places orders only while this process owns those of the account, with the journal that all processes share. See
    /// [`Orders`](steadfast_redis::Orders).
    ///
    /// While another process owns them, orders and changes end as [`ErrorKind::NotOwner`](crate::ErrorKind::NotOwner),
    /// and nothing of them is sent. Reads and cancels go on. The client stays as it is: to place orders once that process
    /// has ended, ask for the [orders](steadfast_redis::Shared::orders) again and build another client. As after a crash,
    /// that one looks for what was left in doubt; see [`Client::recover`].
    ///
    /// When the last clone of the client is dropped, the orders are given back, and another process may take them at
    /// once.
    ///
    /// [`build`](Self::build) refuses it together with a [`tracker`](Self::tracker) or a [`journal`](Self::journal), and if
    /// the [account](Self::account) is not that of the orders.
    #[cfg(feature = "redis")]
    pub fn shared_orders(mut self, orders: steadfast_redis::Orders) -> Self {
        self.shared_orders = Some(orders);
        self
    }

    /// Names the API key, where several clients share limits: its zone is counted per key. Clients without a name share
    /// one count.
    pub fn api_key_name(mut self, name: ApiKeyName) -> Self {
        self.layers.api_key_name = Some(name);
        self
    }

    /// Sets how long one send may take; default 30 s.
    pub fn attempt_timeout(mut self, timeout: AttemptTimeoutLayer) -> Self {
        self.layers.attempt_timeout = timeout;
        self
    }

    /// Builds the client. Inside a tokio runtime it also starts the early renewal of tokens.
    ///
    /// # Errors
    ///
    /// [`InvalidClient`] naming the settings that contradict each other or cannot be used.
    pub fn build(self) -> Result<Client, InvalidClient> {
        let transport = self.transport.to(&self.base).map_err(InvalidClient::Tls)?;
        let described = self.transport.describe();
        self.build_with(transport, Some(described))
    }

    /// Builds the client over a transport of the caller's own. Logins still make connections of their own.
    ///
    /// Such a transport does not say when a connection ended ([`Fate::Lost`](crate::call::Fate::Lost) with
    /// `ended: None`), so a request that it gives up may still arrive. An order whose answer it loses is looked for and
    /// never sent again. The transports of [`Transport::to`] and [`Transport::service`] do say it, also below layers of
    /// the caller's own.
    ///
    /// # Errors
    ///
    /// [`InvalidClient`] naming the settings that contradict each other or cannot be used.
    pub fn build_over<S, B>(self, transport: S) -> Result<Client, InvalidClient>
    where
        S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError> + Send,
    {
        self.build_with(transport, None)
    }

    fn build_with<S, B>(
        self,
        transport: S,
        described: Option<LayerDescription>,
    ) -> Result<Client, InvalidClient>
    where
        S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError> + Send,
    {
        if self.base.is_clear_text() && !self.base.is_loopback() {
            return Err(InvalidClient::ClearText);
        }
        if self.base.is_clear_text() && self.transport.is_proxied() {
            return Err(InvalidClient::ClearTextThroughProxy);
        }
        if let Some(name) = OWN_HEADERS.into_iter().find(|name| self.headers.contains_key(name)) {
            return Err(InvalidClient::OwnHeader(name));
        }
        self.paths.check().map_err(InvalidClient::Path)?;
        let mut layers = self.layers;
        let own = Routes::new(&self.paths);
        layers.routes = match self.routes {
            Some(routes) => routed(&own, routes)?,
            None => own,
        };
        #[cfg(feature = "redis")]
        let (given, orders) = match self.shared_orders {
            Some(orders)
                if self.tracker.is_some()
                    || self.journal.is_some()
                    || *orders.account() != layers.account =>
            {
                return Err(InvalidClient::SharedOrders);
            }
            Some(orders) => (Some(OrderTracker::journaled(self.orders, orders)), Settings::default()),
            None => (self.tracker, self.orders),
        };
        #[cfg(not(feature = "redis"))]
        let (given, orders) = (self.tracker, self.orders);
        layers.tracker = match (given, self.journal) {
            (Some(tracker), _) => tracker,
            (None, Some(path)) => {
                let journal = FileJournal::open(path).map_err(InvalidClient::Journal)?;
                OrderTracker::journaled(orders, journal)
            }
            (None, None) => OrderTracker::new(orders),
        };
        // A transport of the caller's own, or a proxy, may go on sending.
        let ends_dropped_calls = described.is_some() && !self.transport.is_proxied();
        #[cfg(feature = "redis")]
        let limiter = match (self.limiter, self.shared) {
            (Some(_), Some(_)) => return Err(InvalidClient::SharedLimiter),
            (None, Some(shared)) => {
                let mut limits = ZoneLimiter::builder().preset();
                if ends_dropped_calls {
                    // The connections of a process that died end with it.
                    limits = limits.arrives_within(COUNTED_AFTER_DEATH);
                }
                let limits = limits.count_with(Arc::new(shared)).build();
                Some(limits.map_err(InvalidClient::Limits)?)
            }
            (limiter, None) => limiter,
        };
        #[cfg(not(feature = "redis"))]
        let limiter = self.limiter;
        layers.limiter = match limiter {
            Some(limiter) => limiter,
            None => self
                .access
                .limiter(&self.base, &layers.account, ends_dropped_calls)
                .map_err(InvalidClient::Limits)?,
        };
        limited(&layers.routes, &layers.limiter)?;
        layers.local_address = self.transport.source();
        layers.ends_dropped_calls = ends_dropped_calls;
        let (tracker, limiter, deadline) = (layers.tracker.clone(), layers.limiter.clone(), layers.deadline);
        let gate = LimiterGate::new(limiter.clone(), &self.base, layers.account.clone())
            .local_address(layers.local_address);
        let gate = match &layers.api_key_name {
            Some(name) => gate.api_key_name(name.clone()),
            None => gate,
        };
        gate.expect();
        let tokens = self.access.into_source(&self.base, &self.transport, gate, &tracker)?;
        let stack = Stack::with(self.base.clone(), tokens.clone(), layers);
        let mut description = stack.describe();
        if let Some(described) = described
            && let Some(layer) = description.layers.last_mut()
        {
            *layer = described;
        }
        let service = stack.service(transport);
        let headers = Arc::new(self.headers);
        if !headers.is_empty() {
            let names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
            description.layers.insert(0, LayerDescription::new("Client").with("sends", names.join(", ")));
        }
        let service = service
            .map_request(move |mut request: Request<_>| {
                for (name, value) in headers.iter() {
                    request.headers_mut().entry(name).or_insert_with(|| value.clone());
                }
                request
            })
            .map_response(|response: Response<_>| response.map(|body| Body::new(body.map_err(BrokenBody))));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(tokens.keep_fresh());
        }
        Ok(Client {
            service: BoxCloneSyncService::new(service),
            address: Arc::new(Address { base: self.base, paths: self.paths }),
            description: Arc::new(description),
            deadline,
            own_deadline: false,
            tracker,
            late_changes: Arc::default(),
            limiter,
            tokens,
        })
    }
}

/// Returns the routes if a request can match each of them, and they know every path of `own`, the routes of a client's own
/// paths.
fn routed(own: &Routes, routes: Routes) -> Result<Routes, InvalidClient> {
    if let Some((_, template, _)) = routes.iter().find(|(_, template, _)| !is_template(template)) {
        return Err(InvalidClient::Template(template.to_owned()));
    }
    let lacks = |endpoint: &Endpoint| {
        let mut paths = own.of_endpoint(*endpoint);
        paths.any(|(method, path, _)| routes.find(method, path).is_none())
    };
    Endpoint::all().find(lacks).map_or(Ok(routes), |endpoint| Err(InvalidClient::Unrouted(endpoint)))
}

/// Checks that each route falls under a zone, and that each of its zones has a limit.
fn limited(routes: &Routes, limiter: &ZoneLimiter) -> Result<(), InvalidClient> {
    let limits = limiter.settings();
    for (method, template, route) in routes.iter() {
        if route.zones.is_empty() {
            return Err(InvalidClient::NoZone(format!("{method} {template}")));
        }
        if let Some(zone) = route.zones.iter().find(|zone| limits.iter().all(|limit| limit.zone != **zone)) {
            return Err(InvalidClient::NoLimitOf { zone: *zone, route: format!("{method} {template}") });
        }
    }
    Ok(())
}
