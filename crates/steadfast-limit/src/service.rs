use std::{
    net::IpAddr,
    sync::{Arc, LazyLock, OnceLock},
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response, header::HOST};
use steadfast_call::{BoxError, Call, Routes, ext};
use steadfast_spec::Zone;
use tokio::time::Instant;
use tower_service::Service;

use crate::{
    future::{Asked, ResponseFuture},
    request::{
        keys::{ApiKeyName, ScopeKeys, normal},
        zones_of::{ByRoute, ZonesOf},
    },
    shell::zone_limiter::ZoneLimiter,
};

/// Holds each request until all of its zones admit it; made by [`RateLimitLayer`](crate::RateLimitLayer).
///
/// It is always ready, because a request's zones are unknown before the request. The future does the waiting: the
/// number of waiters is bounded per lane, and the inner service is polled ready afterwards.
///
/// It reads from the [`Call`] of a request: its lane, else the route's; its account, else the unnamed one; the time to
/// send and the deadline, of which the earlier one refuses the request at once if it cannot be met; and whether it
/// waits at the head of its lane. An [`ApiKeyName`] in the extensions counts before the layer's.
///
/// # Errors
///
/// A refused [`Failure`](steadfast_call::Failure) with a [`Refusal`](crate::Refusal), or the inner service's error. That one
/// must convert into a [`BoxError`]: of another one the compiler says only that `RateLimit` is no service, or that
/// "trait bounds were not satisfied".
///
/// # Clone
///
/// Clones share the limiter, and each has its own clone of the inner service.
///
/// # Cancellation
///
/// Dropping the future leaves the queue. If the request has not been passed on, its permit goes to the next in line.
/// Otherwise its slots are held as long as the gateway may still count it.
#[derive(Clone, Debug)]
pub struct RateLimit<S, Z = ByRoute> {
    inner: S,
    zones_of: Z,
    // One `Arc`, because services are cloned for every call.
    state: Arc<LayerState>,
}

#[derive(Debug)]
pub(crate) struct LayerState {
    limiter: ZoneLimiter,
    local_address: Option<IpAddr>,
    api_key: Option<ApiKeyName>,
    ends_when_dropped: bool,
    usual: OnceLock<Usual>,
}

/// The gateway and account of the first request, and their keys: nearly always those of every request. Making keys
/// takes as long as the rest of a free permit.
#[derive(Debug)]
struct Usual {
    /// In its one spelling, which holds no password.
    authority: Box<str>,
    account: ext::Account,
    keys: ScopeKeys,
}

impl<S, Z> RateLimit<S, Z> {
    pub(crate) fn new(inner: S, zones_of: Z, state: LayerState) -> Self {
        Self { inner, zones_of, state: Arc::new(state) }
    }

    /// Returns the limiter shared by all services of the same layer.
    #[must_use]
    pub fn limiter(&self) -> &ZoneLimiter {
        &self.state.limiter
    }
}

impl LayerState {
    pub(crate) fn new(
        limiter: ZoneLimiter,
        local_address: Option<IpAddr>,
        api_key: Option<ApiKeyName>,
        ends_when_dropped: bool,
    ) -> Self {
        Self { limiter, local_address, api_key, ends_when_dropped, usual: OnceLock::new() }
    }

    fn keys(&self, authority: &str, account: &ext::Account, own_name: Option<&ApiKeyName>) -> ScopeKeys {
        let authority = &*normal(authority);
        let make = |name: Option<&ApiKeyName>| {
            let keys = self.limiter.keys(authority, account);
            let keys = self.local_address.map_or(keys, |address| keys.local_address(address));
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

    /// Prepares the wait for a permit for `request` in `zones`, with the instant by which it must have left.
    fn ask<B>(&self, request: &Request<B>, zones: &[Zone]) -> Asked {
        let call = Call::of(request.extensions());
        let account = call.account().unwrap_or(&UNNAMED);
        let keys = self.keys(authority_of(request), account, request.extensions().get());
        let route = Routes::or_shown(call.route(), request.method(), request.uri());
        let lane = call.lane().unwrap_or(route.lane);
        let watched = self.limiter.watch(zones, keys, route.endpoint, request.uri().path());
        let mut acquire = self.limiter.acquire_watched(zones, keys, lane, watched);
        let send_by = send_by(call);
        if let Some(send_by) = send_by {
            acquire = acquire.send_by(send_by);
        }
        if call.is_at_head_of_lane() {
            acquire = acquire.at_head_of_lane();
        }
        Asked { acquire, watched, send_by, ends_when_dropped: self.ends_when_dropped }
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
        // Neither the inner service nor its clone has been polled ready, so the clone will do.
        let asked = self.state.ask(&request, self.zones_of.zones_of(&request).as_ref());
        ResponseFuture::new(asked, self.inner.clone(), request)
    }
}

/// The account of a request that names none.
static UNNAMED: LazyLock<ext::Account> = LazyLock::new(ext::Account::default);

/// Returns the instant by which a request must have left.
fn send_by(call: &Call) -> Option<Instant> {
    // A request must leave before the instant by which it must be answered.
    let before =
        call.deadline().map(|deadline| deadline.checked_sub(Duration::from_nanos(1)).unwrap_or(deadline));
    call.send_by().into_iter().chain(before).min().map(Instant::from_std)
}

/// Returns the host and port that a request goes to.
fn authority_of<B>(request: &Request<B>) -> &str {
    let host = || request.headers().get(HOST).and_then(|host| host.to_str().ok());
    request.uri().authority().map(|authority| authority.as_str()).or_else(host).unwrap_or_default()
}
