use std::{
    net::IpAddr,
    sync::{Arc, LazyLock, OnceLock},
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response, header::HOST};
use steadfast_spec::{
    BoxError, Lane, Routes,
    ext::{self, Stamp},
};
use tokio::time::Instant;
use tower_service::Service;

use crate::{
    Acquire, ApiKeyName, ByRoute, ResponseFuture, ScopeKeys, ZoneLimiter, ZonesOf, zone_limiter::Watched,
};

/// Holds each request until all of its zones admit it; made by [`RateLimitLayer`](crate::RateLimitLayer).
///
/// It is always ready, because the zones of a request are not known before the request. The waiting is done by the
/// future: its number is bounded per lane, and the inner service is polled ready after it.
///
/// It reads from the extensions of a request: [`Lane`], else the route's; [`ext::Account`], else the unnamed one;
/// [`ApiKeyName`], else the layer's; [`ext::SendBy`] and [`ext::Deadline`], the earlier of which refuses the request at once when it cannot be met;
/// and [`ext::HeadOfLane`].
///
/// # Clone
///
/// Clones share the limiter, and each has its own clone of the inner service.
///
/// # Cancellation
///
/// Dropping the future leaves the queue. If the request has not been passed on, its permit goes to the next in
/// line; if it has, its slots are held as long as the gateway may still count it.
#[derive(Clone, Debug)]
pub struct RateLimit<S, Z = ByRoute> {
    inner: S,
    limiter: ZoneLimiter,
    zones_of: Z,
    from: Option<IpAddr>,
    api_key: Option<ApiKeyName>,
    usual: Arc<OnceLock<Usual>>,
}

/// The first gateway and account that were asked for, and their keys: nearly always those of every request. Making keys
/// takes as long as all else that a free permit takes.
#[derive(Debug)]
struct Usual {
    authority: Box<str>,
    account: ext::Account,
    keys: ScopeKeys,
}

impl<S, Z> RateLimit<S, Z> {
    pub(crate) fn new(
        inner: S,
        limiter: ZoneLimiter,
        zones_of: Z,
        from: Option<IpAddr>,
        api_key: Option<ApiKeyName>,
    ) -> Self {
        Self { inner, limiter, zones_of, from, api_key, usual: Arc::default() }
    }

    /// The limiter that all services of the same layer share.
    pub fn limiter(&self) -> &ZoneLimiter {
        &self.limiter
    }

    fn keys(&self, authority: &str, account: &ext::Account, own_name: Option<&ApiKeyName>) -> ScopeKeys {
        let make = |name: Option<&ApiKeyName>| {
            let keys = self.limiter.keys_from(authority, self.from, account);
            name.map_or(keys, |name| keys.api_key(name))
        };
        if own_name.is_some() {
            return make(own_name);
        }
        let usual = self.usual.get_or_init(|| Usual {
            authority: authority.into(),
            account: account.clone(),
            keys: make(self.api_key.as_ref()),
        });
        if *usual.authority == *authority && usual.account == *account {
            usual.keys
        } else {
            make(self.api_key.as_ref())
        }
    }

    fn acquire<B>(&self, request: &Request<B>) -> (Acquire, Option<Watched>)
    where
        Z: ZonesOf<B>,
    {
        let extensions = request.extensions();
        let account = extensions.get::<ext::Account>().unwrap_or(&UNNAMED);
        let uncounted = extensions.get::<ext::HeadOfLane>().is_some()
            && steadfast_spec::Planted::RepeatsUncounted.is_on();
        let authority = if uncounted { "nowhere" } else { authority_of(request) };
        let keys = self.keys(authority, account, extensions.get());
        let route = Routes::of(request);
        let lane = extensions.get::<Lane>().copied().unwrap_or(route.lane);
        let zones = self.zones_of.zones_of(request);
        let watched = self.limiter.watch(zones.as_ref(), keys, route.endpoint, request.uri().path());
        let mut acquire = self.limiter.acquire_watched(zones.as_ref(), keys, lane, watched);
        if let Some(deadline) = send_by(extensions) {
            acquire = acquire.deadline(deadline);
        }
        if extensions.get::<ext::HeadOfLane>().is_some() {
            acquire = acquire.at_head_of_lane();
        }
        (acquire, watched)
    }
}

impl<S, Z, B, R> Service<Request<B>> for RateLimit<S, Z>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    S::Error: Into<BoxError>,
    Z: ZonesOf<B>,
{
    type Response = Response<R>;
    type Error = BoxError;
    type Future = ResponseFuture<S, B>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> ResponseFuture<S, B> {
        ext::Place::RateLimit.pass(request.extensions_mut());
        // The inner service has not been polled ready, so its clone is as good as itself.
        let (acquire, watched) = self.acquire(&request);
        ResponseFuture::new(acquire, watched, send_by(request.extensions()), self.inner.clone(), request)
    }
}

/// Whom a request belongs to that says nothing.
static UNNAMED: LazyLock<ext::Account> = LazyLock::new(ext::Account::default);

/// The instant by which a request must have left.
fn send_by(extensions: &http::Extensions) -> Option<Instant> {
    let send_by = ext::SendBy::of(extensions).map(|send_by| send_by.0);
    // What leaves at the instant by which it must be answered is too late.
    let before =
        |deadline: &ext::Deadline| deadline.0.checked_sub(Duration::from_nanos(1)).unwrap_or(deadline.0);
    let deadline = ext::Deadline::of(extensions).map(before);
    send_by.into_iter().chain(deadline).min().map(Instant::from_std)
}

/// The host and port that a request goes to.
fn authority_of<B>(request: &Request<B>) -> &str {
    let host = || request.headers().get(HOST).and_then(|host| host.to_str().ok());
    request.uri().authority().map(|authority| authority.as_str()).or_else(host).unwrap_or_default()
}
