use std::sync::Arc;

use http::Request;
use steadfast_call::{Route, Routes};
use steadfast_spec::Zone;

/// Decides which zones a request falls under.
///
/// Closures that return a list of zones implement it.
///
/// # Example
///
/// ```
/// use http::Request;
/// use steadfast_limit::{ByRoute, Zone, ZonesOf};
///
/// // Some pages of the service count account data under `general`.
/// let mine = |request: &Request<()>| match request.uri().path() {
///     "/v2/api/account/holdings" => [Zone::GENERAL],
///     _ => [Zone::DATA],
/// };
/// let request = Request::get("/v2/api/account/holdings").body(())?;
/// assert_eq!(mine.zones_of(&request).as_ref(), [Zone::GENERAL]);
///
/// // A path in no table falls under the strictest zone, never under none.
/// assert_eq!(ByRoute.zones_of(&request).as_ref(), [Zone::GENERAL]);
/// # Ok::<(), http::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say in which zones a `Request<{B}>` is counted",
    label = "gives no list of zones for a request",
    note = "`all_in(ZONE)` counts all requests in one zone, `zones_of(|request| [ZONE])` each in what the closure returns"
)]
pub trait ZonesOf<B> {
    /// A list of zones.
    type Zones: AsRef<[Zone]>;

    /// Returns the zones of `request`. An empty list refuses it.
    fn zones_of(&self, request: &Request<B>) -> Self::Zones;
}

impl<B, F, Z> ZonesOf<B> for F
where
    F: Fn(&Request<B>) -> Z,
    Z: AsRef<[Zone]>,
{
    type Zones = Z;

    fn zones_of(&self, request: &Request<B>) -> Z {
        self(request)
    }
}

/// Counts every request in one zone; made by [`RateLimitLayer::all_in`](crate::RateLimitLayer::all_in).
#[derive(Clone, Copy, Debug)]
pub struct AllIn(pub(crate) Zone);

impl<B> ZonesOf<B> for AllIn {
    type Zones = [Zone; 1];

    fn zones_of(&self, _: &Request<B>) -> [Zone; 1] {
        [self.0]
    }
}

/// Takes the zones of the request's [`Route`](steadfast_call::Route), which the route layer put into its extensions.
///
/// Without a route it uses the service's own table (§4.1, §8) for the request's method and path, and the strictest
/// zone for a path in no table.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByRoute;

impl<B> ZonesOf<B> for ByRoute {
    type Zones = RouteZones;

    fn zones_of(&self, request: &Request<B>) -> RouteZones {
        RouteZones(Routes::of(request).into_owned())
    }
}

/// The zones of one route.
#[derive(Clone, Debug)]
pub struct RouteZones(Arc<Route>);

impl AsRef<[Zone]> for RouteZones {
    fn as_ref(&self) -> &[Zone] {
        &self.0.zones
    }
}

#[cfg(test)]
mod tests {
    use steadfast_call::Call;

    use super::*;

    fn request(method: &str, path: &str) -> Request<()> {
        Request::builder().method(method).uri(path).body(()).unwrap()
    }

    #[test]
    fn without_a_route_the_table_decides_below_any_base_address() {
        let zones = |method, path| ByRoute.zones_of(&request(method, path)).as_ref().to_vec();
        assert_eq!(zones("POST", "https://example.com/x/v2/api/oms/place-order"), [Zone::PLACE_ORDER]);
        assert_eq!(zones("GET", "/v2/api/oms/orders?x=1"), [Zone::GENERAL]);
        assert_eq!(zones("POST", "/api-gw/oauth/individual-token-v2"), [Zone::OTP, Zone::API_KEY]);
        assert_eq!(zones("DELETE", "/v2/never/heard/of"), [Zone::GENERAL]);
    }

    #[test]
    fn the_route_of_the_extensions_comes_before_the_table() {
        let mut request = request("GET", "/v2/api/oms/orders");
        let mut route = Route::unknown(request.method());
        route.zones = vec![Zone::DATA];
        Call::of_mut(request.extensions_mut()).set_route(Arc::new(route));
        assert_eq!(ByRoute.zones_of(&request).as_ref(), [Zone::DATA]);
    }
}
