//! Stamps on each request what the inner layers need to know: endpoint, zones, class and credentials.
//!
//! # Order
//!
//! Outside of everything that reads the route of a [`Call`]: deduplication, retry, refresh, rate limit and header. A debug build
//! panics at a wrong [order](ext::Place).
//!
//! # Clone
//!
//! Clones share the table.
//!
//! # Cost
//!
//! About 600 instructions for a successful call, and no allocation beside the entry that all stamps share
//! (`cargo xtask bench overhead`).
//!
//! # Cancellation
//!
//! It holds nothing: dropping the future drops the call.

use std::{
    error::Error,
    fmt,
    future::Future,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use http::{HeaderValue, Method, Request, header};
use pin_project_lite::pin_project;
use steadfast_call::{BoxError, Call, Failure, Routes, ext};
use steadfast_spec::{BaseUrl, Endpoint, Form};
use tower_layer::Layer;
use tower_service::Service;

/// Builds [`Route`].
///
/// A request is checked before anything waits or is spent (§1, §7): it must lie below the base address, the path of an
/// endpoint must be spelled as in the table, the query must be readable, the body must not be JSON, and a cancel must
/// name its order. A POST or PUT without a `Content-Type` gets that of a form.
///
/// # Example
///
/// ```
/// use http::{Request, Response};
/// use steadfast::{
///     BoxError,
///     call::{Call, Routes},
///     route::RouteLayer,
///     spec::Endpoint,
/// };
/// use tower::{ServiceBuilder, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// let service = ServiceBuilder::new()
///     .layer(RouteLayer::new("https://api.example/v2".parse()?, Routes::default()))
///     .service(service_fn(async |request: Request<()>| {
///         let route = Call::of(request.extensions()).route().ok_or("no route")?;
///         Ok::<_, BoxError>(Response::new(route.endpoint))
///     }));
///
/// let orders = Request::get("https://api.example/v2/api/oms/orders").body(())?;
/// assert_eq!(service.clone().oneshot(orders).await?.into_body(), Some(Endpoint::Orders));
///
/// let elsewhere = Request::get("https://elsewhere.example/v2/api/oms/orders").body(())?;
/// assert!(service.oneshot(elsewhere).await.is_err(), "refused before it was sent");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RouteLayer {
    table: Arc<Table>,
}

#[derive(Clone, Debug)]
struct Table {
    base: BaseUrl,
    routes: Routes,
    account: Option<ext::Account>,
    pass_json: bool,
}

impl RouteLayer {
    /// Routes requests below `base` by the table `routes`.
    #[must_use]
    pub fn new(base: BaseUrl, routes: Routes) -> Self {
        Self { table: Arc::new(Table { base, routes, account: None, pass_json: false }) }
    }

    /// Names the account of each request that does not name its own.
    #[must_use]
    pub fn account(mut self, account: ext::Account) -> Self {
        // A request without an account belongs to the unnamed one anyway.
        Arc::make_mut(&mut self.table).account = (!account.as_str().is_empty()).then_some(account);
        self
    }

    /// Lets JSON bodies pass, instead of refusing them here. The service refuses them.
    #[must_use]
    pub fn pass_json(mut self) -> Self {
        Arc::make_mut(&mut self.table).pass_json = true;
        self
    }
}

impl<S> Layer<S> for RouteLayer {
    type Service = Route<S>;

    fn layer(&self, inner: S) -> Route<S> {
        Route { inner, table: self.table.clone() }
    }
}

/// Puts the route of each request into its extensions, or refuses it.
#[derive(Clone, Debug)]
pub struct Route<S> {
    inner: S,
    table: Arc<Table>,
}

impl Table {
    fn route<B>(&self, request: &mut Request<B>) -> Result<(), InvalidRequest> {
        let path = self.base.strip(request.uri()).ok_or(InvalidRequest::OutsideBase)?;
        let route = match self.routes.find(request.method(), path) {
            Some(route) => route.clone(),
            // By §7 the service does not find it. A less strict server would take an order that is not recognised as
            // one here.
            None if self.routes.is_misspelled(request.method(), path) => return Err(InvalidRequest::Path),
            None => Arc::new(self.routes.unknown(request.method())),
        };
        let query = match request.uri().query() {
            Some(query) => Form::parse(query.as_bytes()).map_err(|_| InvalidRequest::Query)?,
            None => Form::new(),
        };
        if route.endpoint == Some(Endpoint::CancelOrder)
            && query.get("orderId").is_none_or(|id| id.trim().is_empty())
        {
            return Err(InvalidRequest::CancelWithoutOrder);
        }
        if matches!(*request.method(), Method::POST | Method::PUT) {
            match request.headers().get(header::CONTENT_TYPE) {
                // The service refuses an empty one like a missing one.
                kind if kind.is_none_or(HeaderValue::is_empty) => {
                    request.headers_mut().insert(header::CONTENT_TYPE, Form::CONTENT_TYPE);
                }
                Some(kind) if !self.pass_json && is_json(kind) => return Err(InvalidRequest::Json),
                _ => {}
            }
        }
        let call = Call::of_mut(request.extensions_mut());
        call.set_route(route);
        if let Some(account) = &self.account
            && call.account().is_none()
        {
            call.set_account(account.clone());
        }
        Ok(())
    }
}

fn is_json(content_type: &HeaderValue) -> bool {
    let kind = content_type.as_bytes().split(|&b| b == b';').next().unwrap_or_default().trim_ascii();
    kind.eq_ignore_ascii_case(b"application/json")
}

impl<S, B> Service<Request<B>> for Route<S>
where
    S: Service<Request<B>> + Clone,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        ext::Place::Route.pass(request.extensions_mut());
        match self.table.route(&mut request) {
            Ok(()) => ResponseFuture { state: State::Routed { future: self.inner.call(request) } },
            Err(invalid) => {
                // The service that was polled ready may hold a slot for the call. It is not called, so an unreserved
                // clone replaces it.
                let clone = self.inner.clone();
                drop(mem::replace(&mut self.inner, clone));
                ResponseFuture { state: State::Refused { invalid: Some(invalid) } }
            }
        }
    }
}

pin_project! {
    /// Response future of [`Route`].
    pub struct ResponseFuture<F> {
        #[pin]
        state: State<F>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F> {
        Routed { #[pin] future: F },
        Refused { invalid: Option<InvalidRequest> },
    }
}

impl<F, T, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
{
    type Output = Result<T, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match self.project().state.project() {
            StateProj::Routed { future } => ready!(future.poll(cx)).map_err(Into::into),
            // A future polled again after its end stays pending.
            StateProj::Refused { invalid } => match invalid.take() {
                Some(invalid) => Err(Failure::refused(invalid).into()),
                None => return Poll::Pending,
            },
        })
    }
}

impl<F> fmt::Debug for ResponseFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

/// A request that the service would refuse for its form, found before it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidRequest {
    /// It does not lie below the base address (§9).
    OutsideBase,
    /// Its path is another spelling of an endpoint's, or contains dots (§7, 404).
    Path,
    /// Its query cannot be read (§7, 400).
    Query,
    /// Its body is JSON; the service takes forms only (§1).
    Json,
    /// It cancels an order without naming it (§4.5).
    CancelWithoutOrder,
}

impl fmt::Display for InvalidRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OutsideBase => "request lies outside the base url",
            Self::Path => "path is not written as the service knows it",
            Self::Query => "query is not percent-encoded",
            Self::Json => "content-type is application/json, and the service takes forms only",
            Self::CancelWithoutOrder => "query parameter orderId is required to cancel an order",
        })
    }
}

impl Error for InvalidRequest {}

#[cfg(test)]
mod tests {
    use steadfast_call::Class;
    use steadfast_spec::{Paths, Zone};
    use tower::{ServiceExt, service_fn};

    use super::*;

    async fn routed(request: Request<()>) -> Result<Request<()>, String> {
        let base = "https://api.example/t/v2".parse::<BaseUrl>().unwrap();
        let layer = RouteLayer::new(base, Routes::new(&Paths::public()));
        let echo = service_fn(|request: Request<()>| async { Ok::<_, BoxError>(request) });
        layer.layer(echo).oneshot(request).await.map_err(|error| {
            assert!(Failure::find(&*error).is_some_and(Failure::is_refusal));
            error.source().map(ToString::to_string).unwrap_or_default()
        })
    }

    fn request(method: Method, path: &str) -> Request<()> {
        let uri = format!("https://api.example/t/v2{path}");
        Request::builder().method(method).uri(uri).body(()).unwrap()
    }

    #[tokio::test]
    async fn a_known_path_gets_its_route_and_a_post_its_content_type() {
        let request = routed(request(Method::POST, "/api/oms/place-order")).await.unwrap();
        let route = Call::of(request.extensions()).route().unwrap();
        assert_eq!((route.class, route.zones.as_slice()), (Class::VerifyFirst, &[Zone::PLACE_ORDER][..]));
        assert_eq!(request.headers()[header::CONTENT_TYPE], Form::CONTENT_TYPE);
    }

    #[tokio::test]
    async fn an_unknown_path_falls_under_the_strictest_zone() {
        let request = routed(request(Method::POST, "/api/new")).await.unwrap();
        let route = Call::of(request.extensions()).route().unwrap();
        assert_eq!((route.class, route.zones.as_slice()), (Class::OnlyIfNotExecuted, &[Zone::GENERAL][..]));
    }

    #[tokio::test]
    async fn what_the_service_would_refuse_is_refused_before_it_is_sent() {
        let mut json = request(Method::POST, "/api/oms/place-order");
        json.headers_mut()
            .insert(header::CONTENT_TYPE, HeaderValue::from_static("Application/JSON; charset=utf-8"));
        assert_eq!(
            routed(json).await.unwrap_err(),
            "content-type is application/json, and the service takes forms only"
        );
        for (path, message) in [
            ("/api/oms/cancel-order", "query parameter orderId is required to cancel an order"),
            ("/api/oms/cancel-order?orderId=", "query parameter orderId is required to cancel an order"),
            ("/api/oms/cancel-order?orderId=%20", "query parameter orderId is required to cancel an order"),
            ("/api/oms/cancel-order?orderId=%zz", "query is not percent-encoded"),
        ] {
            assert_eq!(routed(request(Method::DELETE, path)).await.unwrap_err(), message);
        }
        let elsewhere = Request::get("https://api.example/t/v3/api/oms/orders").body(()).unwrap();
        assert_eq!(routed(elsewhere).await.unwrap_err(), "request lies outside the base url");
        let foreign = Request::post("https://evil.example/t/v2/api-gw/oauth/token").body(()).unwrap();
        assert_eq!(routed(foreign).await.unwrap_err(), "request lies outside the base url");
    }
}
