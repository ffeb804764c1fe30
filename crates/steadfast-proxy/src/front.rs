//! Decides from the head of a request whether it may pass.
//!
//! Everything here is a function of bytes: no socket, no clock. A refused request never reaches the service. The order
//! of the checks is fixed, so that a stranger learns as little as possible:
//!
//! 1. **Parse**: HTTP/1.1 in its strictest grammar. Each disagreement that two parsers could have about where a request
//!    ends is refused: line ends without a carriage return, folded lines, a length given twice or beside a transfer
//!    encoding.
//! 2. **Host**: one of the listener's own names. A web page can point its name at this machine (DNS rebinding), and
//!    then calls it by that name.
//! 3. **Page**: no `Origin`, and no `Sec-Fetch-Site` but `none`. Orders are forms, which a page can post to any address
//!    without asking.
//! 4. **Token**: `Authorization: Bearer TOKEN`, or `Bearer ANYTHING:TOKEN` for clients that insist on the service's own
//!    form. Compared in constant time. A login has none: its token is in its form.
//! 5. **Path**: below `/v2`, in one spelling only, and within the token's scope.
//! 6. **Headers**: the few that are passed on, and those that steer the proxy.

mod admission;
mod caller;
mod fields;
mod head;
mod methods;
mod refusal;
mod target;

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use steadfast::{
    call::{Lane, Routes},
    spec::Endpoint,
};

pub(crate) use self::{
    admission::Shared,
    caller::{Visitor, bearer},
    head::BODY_LIMIT,
};
pub use self::{
    admission::{Admission, Host, InvalidHost},
    caller::{Hosts, InvalidToken, Scope, Tokens},
    head::{Framing, HEAD_LIMIT, Head},
    methods::Methods,
    refusal::Refusal,
};

/// The version segment, below which all paths of the service lie (§1).
const BASE: &str = "/v2";

/// The checks of the listener for trading programs.
#[derive(Clone, Debug)]
pub struct Front {
    hosts: Hosts,
    shared: Shared,
    routes: Arc<Routes>,
    passes_intent: bool,
}

/// A request that may pass. It holds everything that is used of the head; the head itself is not passed on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Admitted {
    /// The method.
    pub method: Method,
    /// The path below the base address.
    pub path: String,
    /// The query, without the question mark.
    pub query: Option<String>,
    /// The endpoint; `None` for a path that is not in the table.
    pub endpoint: Option<Endpoint>,
    /// The scope that the caller's token allows.
    pub scope: Scope,
    /// The lane that the caller asks for.
    pub lane: Option<Lane>,
    /// The caller's own name for an order, from `Idempotency-Key`.
    pub key: Option<String>,
    /// True if the caller says that an order is not a repetition of an equal one, by `x-new-order: 1`.
    pub is_new_order: bool,
    /// The caller's name for the request, from `X-Request-Id`.
    pub request_id: Option<String>,
    /// The headers that are passed on.
    pub headers: HeaderMap,
    /// Where the body ends.
    pub framing: Framing,
    /// The request that the proxy answers by itself; `None` for one to the service.
    pub local: Option<Local>,
}

/// A request that never goes to the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Local {
    /// `GET /openapi.json`.
    Description,
    /// `POST /v2/api-gw/oauth/individual-token-v2`, the login of a program that insists on one. It shows its token in the
    /// form, so that it is a stranger until then.
    Login,
}

impl Local {
    fn of(head: &Head<'_>) -> Option<Self> {
        match (head.method().as_str(), head.target()) {
            ("GET", "/openapi.json") => Some(Self::Description),
            ("POST", "/v2/api-gw/oauth/individual-token-v2") => Some(Self::Login),
            _ => None,
        }
    }
}

/// The ground truth of tests at a sandbox: which order is meant.
const INTENT: HeaderName = HeaderName::from_static("x-test-intent");

impl Front {
    /// Admits callers that know one of the tokens and name one of `hosts`. `routes` says which path needs which scope.
    #[must_use]
    pub fn new(hosts: Hosts, admission: impl Into<Admission>, routes: impl Into<Arc<Routes>>) -> Self {
        Self::sharing(hosts, Shared::new(admission.into()), routes)
    }

    /// As [`new`](Self::new), with an admission that other listeners share.
    pub(crate) fn sharing(hosts: Hosts, shared: Shared, routes: impl Into<Arc<Routes>>) -> Self {
        Self { hosts, shared, routes: routes.into(), passes_intent: false }
    }

    /// Passes `x-test-intent` on, for a sandbox behind it.
    #[must_use]
    pub fn passing_intent(self) -> Self {
        Self { passes_intent: true, ..self }
    }

    /// Decides about a request by its whole head, with the empty line that ends it.
    ///
    /// # Errors
    ///
    /// [`Refusal`], the first that applies. Its connection has to be closed, because where the next request begins is
    /// not known.
    pub fn admit(&self, head: &[u8]) -> Result<Admitted, Refusal> {
        let head = Head::parse(head)?;
        let framing = head.framing()?;
        self.page(&head)?;
        let local = Local::of(&head);
        let granted = match local {
            Some(Local::Login) => Scope::Read,
            _ => self.token(&head)?,
        };
        if local.is_some() {
            let steering = fields::steering(&head)?;
            return Ok(Admitted::locally(&head, framing, granted, local, steering.request_id));
        }
        let (path, query) = target::split(head.target())?;
        let path = target::below_base(path)?;
        let route = self.routes.find(head.method(), path);
        let endpoint = route.and_then(|route| route.endpoint);
        let needed = Scope::needed(endpoint, head.method());
        if granted < needed {
            return Err(Refusal::Scope);
        }
        self.shared.permits(needed, head.method())?;
        let has_other_methods = route.is_none() && self.routes.template(path).is_some();
        if has_other_methods && !self.may_cancel(head.method(), path, query) {
            // A service that is not strict could take it for the order.
            return Err(Refusal::WrongMethod(self.routes.methods(path).collect()));
        }
        if endpoint == Some(Endpoint::CancelOrder) && !target::names_order(query) {
            return Err(Refusal::NoOrderId);
        }
        if endpoint == Some(Endpoint::PlaceOrder) && query.is_some_and(|query| !query.is_empty()) {
            return Err(Refusal::OrderQuery);
        }
        let steering = fields::steering(&head)?;
        // Its caller would rely on it, and repeat what is done twice.
        let is_repeatable = needed == Scope::Read || head.method() == Method::DELETE;
        if steering.key.is_some() && endpoint != Some(Endpoint::PlaceOrder) && !is_repeatable {
            return Err(Refusal::KeyElsewhere);
        }
        let lane = match steering.lane {
            // A poll that is called critical would hold up cancels.
            Some(lane) if head.method() == Method::GET => Some(lane.max(Lane::Normal)),
            Some(lane) if lane < Lane::Normal && granted < Scope::Trade => return Err(Refusal::Scope),
            lane => lane,
        };
        let mut headers = fields::passed_on(&head)?;
        if self.passes_intent
            && let Some(intent) = head.one(INTENT.as_str())?
        {
            headers.insert(INTENT, HeaderValue::from_bytes(intent).map_err(|_| Refusal::Malformed)?);
        }
        Ok(Admitted {
            method: head.method().clone(),
            path: path.to_owned(),
            query: query.map(str::to_owned),
            endpoint,
            scope: granted,
            lane,
            key: steering.key,
            is_new_order: steering.is_new_order,
            request_id: steering.request_id,
            headers,
            framing,
            local: None,
        })
    }

    /// True if a request that the path does not have at the service may be a cancel all the same, which must get out: §4.5
    /// does not show the path of cancels, but that they name their order. None is where orders are placed.
    fn may_cancel(&self, method: &Method, path: &str, query: Option<&str>) -> bool {
        let place = self.routes.find(&Method::POST, path).and_then(|route| route.endpoint);
        method == Method::DELETE && target::names_order(query) && place != Some(Endpoint::PlaceOrder)
    }

    /// Decides about host and page on the operator's listener, which has a page of its own.
    pub(crate) fn visitor(&self, head: &Head<'_>) -> Result<Visitor, Refusal> {
        self.hosts.check(head)?;
        Visitor::of(head)
    }

    /// Decides about host and page.
    fn page(&self, head: &Head<'_>) -> Result<(), Refusal> {
        self.hosts.check(head).or_else(|refusal| match head.one("host")? {
            Some(host) if self.shared.knows_host(host) => Ok(()),
            _ => Err(refusal),
        })?;
        caller::refuse_pages(head)
    }

    /// Decides about the token.
    pub(crate) fn token(&self, head: &Head<'_>) -> Result<Scope, Refusal> {
        self.shared.scope_of(head)
    }
}

impl Admitted {
    /// Admits a request that the proxy answers by itself. Its headers are not read any more.
    fn locally(
        head: &Head<'_>,
        framing: Framing,
        scope: Scope,
        local: Option<Local>,
        request_id: Option<String>,
    ) -> Self {
        Self {
            method: head.method().clone(),
            path: head.target().to_owned(),
            query: None,
            endpoint: None,
            scope,
            lane: None,
            key: None,
            is_new_order: false,
            request_id,
            headers: HeaderMap::new(),
            framing,
            local,
        }
    }
}

#[cfg(test)]
mod tests;
