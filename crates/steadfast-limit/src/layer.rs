use std::net::IpAddr;

use http::Request;
use steadfast_spec::Zone;
use tower_layer::Layer;

use crate::{
    request::{
        keys::ApiKeyName,
        zones_of::{AllIn, ByRoute},
    },
    service::{LayerState, RateLimit},
    shell::zone_limiter::ZoneLimiter,
};

/// Makes every request wait until all of its zones admit it.
///
/// The [crate's page](crate) describes the rules and the reasons.
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
/// Outside of it: every layer that may send a request more than once, so that every physical send takes a permit.
/// Inside: layers whose result must be fresh when the request leaves, such as the token, and the transport. A debug
/// build panics at a wrong [order](steadfast_call::ext::Place).
///
/// # Clone
///
/// Clones, and all services made by them, share one [`ZoneLimiter`].
///
/// # Cost
///
/// About 2,700 instructions and no allocation for a call that succeeds (`cargo xtask bench overhead`).
///
/// # Cancellation
///
/// A future dropped while it waits leaves the queue. One dropped with a permit, before its request was passed on,
/// gives the permit to the next in line. Once the request was passed on, its slots stay taken as long as the gateway
/// may still count it: see [`ends_dropped_calls`](Self::ends_dropped_calls).
#[derive(Clone, Debug)]
pub struct RateLimitLayer<Z = ByRoute> {
    limiter: ZoneLimiter,
    zones_of: Z,
    from: Option<IpAddr>,
    api_key: Option<ApiKeyName>,
    ends_when_dropped: bool,
}

impl ZoneLimiter {
    /// Returns a layer that takes a permit for every request.
    #[must_use]
    pub fn layer(&self) -> RateLimitLayer {
        RateLimitLayer::new(self.clone())
    }
}

impl RateLimitLayer {
    /// Makes a layer over `limiter` that takes a request's zones from its route.
    #[must_use]
    pub fn new(limiter: ZoneLimiter) -> Self {
        Self { limiter, zones_of: ByRoute, from: None, api_key: None, ends_when_dropped: false }
    }
}

impl<Z> RateLimitLayer<Z> {
    /// Takes the zones of a request, one or a list, from `zones_of` instead of its route. An empty list refuses the request.
    ///
    /// # Example
    ///
    /// ```
    /// use steadfast_limit::{Zone, ZoneLimiter};
    ///
    /// // Some pages of the service count account data under `general`.
    /// let layer = ZoneLimiter::preset().layer().zones_of(|request| match request.uri().path() {
    ///     "/v2/api/account/holdings" => Zone::GENERAL,
    ///     _ => Zone::DATA, // or a list: `[Zone::DATA, MINE]`
    /// });
    /// # let client = tower::service_fn(async |_: http::Request<()>| Ok::<_, std::io::Error>(http::Response::new(())));
    /// # fn is_service<S: tower::Service<http::Request<()>>>(_: S) {}
    /// # is_service(tower::Layer::layer(&layer, client));
    /// ```
    // With `Fn` in its own bounds, the compiler knows the type of a closure's argument.
    #[must_use]
    pub fn zones_of<B, F, Zones>(self, zones_of: F) -> RateLimitLayer<F>
    where
        F: Fn(&Request<B>) -> Zones,
        Zones: AsRef<[Zone]>,
    {
        self.counted_by(zones_of)
    }

    fn counted_by<T>(self, zones_of: T) -> RateLimitLayer<T> {
        let Self { limiter, zones_of: _, from, api_key, ends_when_dropped } = self;
        RateLimitLayer { limiter, zones_of, from, api_key, ends_when_dropped }
    }

    /// Counts every request in `zone`: for a service that is not the one of §8.
    ///
    /// # Example
    ///
    /// Five requests a second and a hundred a minute, whatever is asked:
    ///
    /// ```
    /// # use steadfast_limit::{InvalidLimiter, MINUTE, Quota, SECOND, Scope, Zone, ZoneLimiter};
    /// const WEATHER: Zone = Zone::new("weather");
    /// let quota = Quota::new(WEATHER, Scope::Shared).limit(5, SECOND).limit(100, MINUTE);
    /// let layer = ZoneLimiter::builder().zone(quota).build()?.layer().all_in(WEATHER);
    /// # let _ = layer;
    /// # Ok::<(), InvalidLimiter>(())
    /// ```
    #[must_use]
    pub fn all_in(self, zone: Zone) -> RateLimitLayer<AllIn> {
        self.counted_by(AllIn(zone))
    }

    /// Sets the local address that requests leave from. Zones that count client addresses (§8, OTP) count it apart
    /// from others. Without it all share one count.
    #[must_use]
    pub fn local_address(mut self, from: IpAddr) -> Self {
        self.from = Some(from);
        self
    }

    /// Sets the public name of the API key that requests are sent with. Zones that count API keys (§8, `api_key`)
    /// count it apart from others. Without it all share one count. A request's own [`ApiKeyName`] takes precedence.
    #[must_use]
    pub fn api_key(mut self, name: ApiKeyName) -> Self {
        self.api_key = Some(name);
        self
    }

    /// Promises that the transport ends a connection abortively when the call on it is dropped. steadfast's own
    /// transport does so if there is nothing between it and the service.
    ///
    /// The slots of such a call are then held for a second and a window. Without the promise they are held for [as
    /// long as it may arrive](crate::Builder::arrives_within), two minutes, and a window, except for cancels and
    /// verifications. A program that drops ten reads in a second (`select!`, `timeout`) then has no reads for that
    /// time.
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

// `S: Clone` is checked here, where the layer is put around a service, and not at the first call.
impl<S: Clone, Z: Clone> Layer<S> for RateLimitLayer<Z> {
    type Service = RateLimit<S, Z>;

    fn layer(&self, inner: S) -> RateLimit<S, Z> {
        let Self { limiter, zones_of, from, api_key, ends_when_dropped } = self.clone();
        let state = LayerState::new(limiter, from, api_key, ends_when_dropped);
        RateLimit::new(inner, zones_of, state)
    }
}
