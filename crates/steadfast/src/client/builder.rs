mod invalid;

use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, header};
use http_body_util::BodyExt;
use steadfast_dedup::{Ledger, Settings, journal::FileJournal};
use steadfast_limit::{Account, ApiKeyName, ZoneLimiter};
use steadfast_retry::{AttemptTimeoutLayer, RetryPolicy};
use steadfast_spec::{BaseUrl, BoxError, Paths, Routes};
use tower::{Service, ServiceExt, util::BoxCloneSyncService};

pub use self::invalid::InvalidClient;
use super::{Address, Body, BrokenBody, Client};
use crate::{
    access::Access,
    deadline::DeadlineLayer,
    description::LayerDescription,
    gate::LimiterGate,
    stack::{RequestBody, Stack},
    transport::Transport,
};

/// What the layers and the connection write themselves.
const OWN_HEADERS: [HeaderName; 5] = [
    header::AUTHORIZATION,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::HOST,
    header::TRANSFER_ENCODING,
];

/// Collects a client's settings; made by [`Client::builder`].
#[derive(Debug)]
#[must_use]
pub struct ClientBuilder {
    base: BaseUrl,
    access: Access,
    account: Account,
    headers: HeaderMap,
    pass_json: bool,
    paths: Paths,
    routes: Option<Routes>,
    transport: Transport,
    deadline: DeadlineLayer,
    settings: Settings,
    ledger: Option<Ledger>,
    journal: Option<PathBuf>,
    retry: Option<RetryPolicy>,
    limiter: Option<ZoneLimiter>,
    api_key_name: Option<ApiKeyName>,
    attempt_timeout: Option<AttemptTimeoutLayer>,
}

impl ClientBuilder {
    pub(super) fn new(base: BaseUrl, access: Access) -> Self {
        Self {
            base,
            access,
            account: Account::default(),
            headers: HeaderMap::new(),
            pass_json: false,
            paths: Paths::default(),
            routes: None,
            transport: Transport::new(),
            deadline: DeadlineLayer::default(),
            settings: Settings::default(),
            ledger: None,
            journal: None,
            retry: None,
            limiter: None,
            api_key_name: None,
            attempt_timeout: None,
        }
    }

    /// Names the account, where several clients share a limiter.
    pub fn account(mut self, account: Account) -> Self {
        self.account = account;
        self
    }

    /// Sends a header with every request but logins, such as a `User-Agent`; one that a [raw](Client::raw) request has
    /// already stays. What the layers write themselves (`Authorization`, the length and type of the body) is refused by
    /// [`build`](Self::build).
    pub fn header(mut self, name: HeaderName, mut value: HeaderValue) -> Self {
        // It may be a secret for all that is known of it.
        value.set_sensitive(true);
        self.headers.insert(name, value);
        self
    }

    /// Passes JSON bodies of [raw](Client::raw) requests on, for the service to refuse, instead of refusing them here.
    pub fn pass_json(mut self) -> Self {
        self.pass_json = true;
        self
    }

    /// The paths that the specification does not show; none by default.
    pub fn paths(mut self, paths: Paths) -> Self {
        self.paths = paths;
        self
    }

    /// Which endpoint falls under which zones; by default the specification's, with the paths given.
    pub fn routes(mut self, routes: Routes) -> Self {
        self.routes = Some(routes);
        self
    }

    /// How connections are made.
    pub fn transport(mut self, transport: Transport) -> Self {
        self.transport = transport;
        self
    }

    /// By when calls must be answered, and by when they must have left; default 120 s, and no limit. For some of the
    /// calls only: [`Client::with_deadline`].
    pub fn deadline(mut self, deadline: DeadlineLayer) -> Self {
        self.deadline = deadline;
        self
    }

    /// What may be assumed when orders are in doubt.
    pub fn order_safety(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// What is known of orders, shared with other clients of the same account; its settings count instead of
    /// [`order_safety`](Self::order_safety). Two clients of one account that do not share a ledger take each other's
    /// orders for their own.
    pub fn ledger(mut self, ledger: Ledger) -> Self {
        self.ledger = Some(ledger);
        self
    }

    /// Writes down every order before it is sent, in the file at `path`, so that what is in doubt when the process dies is
    /// looked for by the next one; see [`Client::recover`]. A journal that fails keeps orders from being sent; so does one
    /// that is moved, removed or replaced, or whose lock (`path` with `.lock` behind it) is: leave both where they are. To
    /// begin a new journal, end the process first, and move both away.
    ///
    /// A [`ledger`](Self::ledger) that is given keeps its own journal, or none.
    pub fn journal(mut self, path: impl Into<PathBuf>) -> Self {
        self.journal = Some(path.into());
        self
    }

    /// What is repeated, and when; default 1, 2, 4 and 8 s.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = Some(policy);
        self
    }

    /// The rate limits; default those of §8. With a [stored](Access::store) token, what was spent is kept in a file beside
    /// it, so that the next process does not begin with empty windows; limits of the caller's own say by themselves how
    /// they [start](steadfast_limit::ColdStart).
    ///
    /// The zone of one-time codes counts the machine's address: clients of one machine that log in at the same time
    /// should share their limits.
    pub fn limiter(mut self, limiter: ZoneLimiter) -> Self {
        self.limiter = Some(limiter);
        self
    }

    /// Names the API key, where several clients share limits: its zone is counted per key. Without a name, all share one.
    pub fn api_key_name(mut self, name: ApiKeyName) -> Self {
        self.api_key_name = Some(name);
        self
    }

    /// How long one send may take; default 30 s.
    pub fn attempt_timeout(mut self, timeout: AttemptTimeoutLayer) -> Self {
        self.attempt_timeout = Some(timeout);
        self
    }

    /// The client. Inside a tokio runtime it also starts renewing tokens ahead of their end.
    ///
    /// # Errors
    ///
    /// [`InvalidClient`] naming what contradicts itself.
    pub fn build(self) -> Result<Client, InvalidClient> {
        let leaf = self.transport.leaf().map_err(InvalidClient::Tls)?;
        let described = self.transport.describe();
        self.build_with(leaf, Some(described))
    }

    /// The client over a transport of the caller's own; logins still make connections of their own.
    ///
    /// What such a transport gives up may still be on its way: nobody says when its connection ended
    /// ([`Fate::Lost`](crate::spec::Fate::Lost) with `ended: None`), so an order whose answer it loses is looked for and never
    /// sent again. A [`Leaf`](crate::leaf::Leaf) that [`Transport::leaf`] made does say it, also under layers of the caller's own.
    ///
    /// # Errors
    ///
    /// [`InvalidClient`] naming what contradicts itself.
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
        if self.base.is_clear_text()
            && self.transport.has_proxy()
            && !steadfast_spec::Planted::ClearTextThroughProxy.is_on()
        {
            return Err(InvalidClient::ClearTextThroughProxy);
        }
        if let Some(name) = OWN_HEADERS.into_iter().find(|name| self.headers.contains_key(name)) {
            return Err(InvalidClient::OwnHeader(name));
        }
        self.paths.check().map_err(InvalidClient::Path)?;
        let ledger = match (self.ledger, self.journal) {
            (Some(ledger), _) => ledger,
            (None, Some(path)) => {
                let journal = FileJournal::open(path).map_err(InvalidClient::Journal)?;
                Ledger::journaled(self.settings, journal)
            }
            (None, None) => Ledger::new(self.settings),
        };
        let limiter = match self.limiter {
            Some(limiter) => limiter,
            None => self.access.limiter(&self.base, &self.account).map_err(InvalidClient::Limits)?,
        };
        let gate = LimiterGate::new(limiter.clone(), &self.base, self.account.clone())
            .local_address(self.transport.source());
        let gate = match &self.api_key_name {
            Some(name) => gate.api_key_name(name.clone()),
            None => gate,
        };
        let tokens = self.access.into_source(&self.base, &self.transport, gate, &ledger)?;
        let mut stack = Stack::new(self.base.clone(), tokens.clone())
            .account(self.account)
            .routes(self.routes.unwrap_or_else(|| Routes::new(&self.paths)))
            .ledger(ledger.clone())
            .limiter(limiter.clone())
            .deadline(self.deadline);
        if let Some(retry) = self.retry {
            stack = stack.retry(retry);
        }
        if let Some(timeout) = self.attempt_timeout {
            stack = stack.attempt_timeout(timeout);
        }
        // A transport of the caller's own, or a proxy, may go on sending.
        if described.is_some() && !self.transport.is_proxied() {
            stack = stack.ends_dropped_calls();
        }
        if let Some(name) = self.api_key_name {
            stack = stack.api_key_name(name);
        }
        if let Some(address) = self.transport.source() {
            stack = stack.local_address(address);
        }
        if self.pass_json {
            stack = stack.pass_json();
        }
        let mut description = stack.describe();
        if let Some(described) = described
            && let Some(leaf) = description.layers.last_mut()
        {
            *leaf = described;
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
            deadline: self.deadline,
            own_deadline: false,
            ledger,
            late_changes: Arc::default(),
            limiter,
            tokens,
        })
    }
}
