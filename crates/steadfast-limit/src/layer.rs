use std::net::IpAddr;

use tower_layer::Layer;

use crate::{ApiKeyName, ByRoute, RateLimit, ZoneLimiter, service::Shared};

/// Makes every request wait until all of its zones admit it.
///
/// See the [crate's page](crate) for what it does and why.
///
/// # Example
///
/// ```
/// use http::{Request, Response};
/// use steadfast_limit::{BoxError, RateLimitLayer};
/// use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), BoxError> {
/// let mut service = ServiceBuilder::new()
///     .layer(RateLimitLayer::default())
///     .service(service_fn(async |_: Request<String>| Ok::<_, BoxError>(Response::new("ok"))));
///
/// let start = tokio::time::Instant::now();
/// for _ in 0..11 {
///     let orders = Request::get("http://example.com/v2/api/oms/orders").body(String::new())?;
///     service.ready().await?.call(orders).await?;
/// }
/// // Eight of ten slots a second are for reads; the others stay free for orders and cancels.
/// assert!(start.elapsed().as_secs_f64() > 1.0);
/// # Ok(())
/// # }
/// ```
///
/// # Order
///
/// Outside of it: everything that may send a request more than once, so that every physical send takes a permit of
/// its own. Inside: whatever must be fresh when the request leaves, such as its token, and the transport. A debug build
/// panics at a wrong [order](steadfast_spec::ext::Place).
///
/// # Clone
///
/// Clones, and all services made of them, share one [`ZoneLimiter`].
///
/// # Cost
///
/// About 2,700 instructions and no allocation for a call that goes well (`cargo xtask bench overhead`).
///
/// # Cancellation
///
/// A future dropped while it waits leaves the queue. One dropped with a permit, before its request was passed on,
/// gives the permit to the next in line. Once the request was passed on, its slots stay taken as long as the
/// gateway may still count it: see [`ends_dropped_calls`](Self::ends_dropped_calls).
#[derive(Clone, Debug)]
pub struct RateLimitLayer<Z = ByRoute> {
    limiter: ZoneLimiter,
    zones_of: Z,
    from: Option<IpAddr>,
    api_key: Option<ApiKeyName>,
    ends_when_dropped: bool,
}

impl RateLimitLayer {
    /// A layer over `limiter`; a request's zones are those of its route.
    #[must_use]
    pub fn new(limiter: ZoneLimiter) -> Self {
        Self { limiter, zones_of: ByRoute, from: None, api_key: None, ends_when_dropped: false }
    }
}

impl<Z> RateLimitLayer<Z> {
    /// Asks `zones_of` for the zones of a request instead of its route.
    #[must_use]
    pub fn zones_of<T>(self, zones_of: T) -> RateLimitLayer<T> {
        let Self { limiter, zones_of: _, from, api_key, ends_when_dropped } = self;
        RateLimitLayer { limiter, zones_of, from, api_key, ends_when_dropped }
    }

    /// The local address that requests leave from: zones that count client addresses (§8, OTP) count it apart
    /// from others. Without it all share one count.
    #[must_use]
    pub fn local_address(mut self, from: IpAddr) -> Self {
        self.from = Some(from);
        self
    }

    /// The API key that requests are sent with, by a public name: zones that count API keys (§8, `api_key`) count it
    /// apart from others. Without it all share one count. A request's own [`ApiKeyName`] comes before it.
    #[must_use]
    pub fn api_key(mut self, name: ApiKeyName) -> Self {
        self.api_key = Some(name);
        self
    }

    /// Promises that the transport ends a connection abortively when a call is dropped that was sent over it, as
    /// steadfast's own does where nothing stands between it and the service.
    ///
    /// The slots of such a call are then held for a second and a window. Without the promise they are held for
    /// [as long as it may arrive](crate::Builder::arrives_within) and a window, two minutes, but for cancels and
    /// verifications: a program that drops ten reads in a second (`select!`, `timeout`) has no more reads in that time.
    #[must_use]
    pub fn ends_dropped_calls(mut self) -> Self {
        self.ends_when_dropped = true;
        self
    }
}

impl Default for RateLimitLayer {
    fn default() -> Self {
        Self::new(ZoneLimiter::preset())
    }
}

impl<S, Z: Clone> Layer<S> for RateLimitLayer<Z> {
    type Service = RateLimit<S, Z>;

    fn layer(&self, inner: S) -> RateLimit<S, Z> {
        let Self { limiter, zones_of, from, api_key, ends_when_dropped } = self.clone();
        let shared = Shared::new(limiter, from, api_key, ends_when_dropped);
        RateLimit::new(inner, zones_of, shared)
    }
}
