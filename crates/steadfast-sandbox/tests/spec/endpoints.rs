//! The endpoints of §4.1 with their methods, authorization and zones.
//!
//! Paths that the specification does not show are marked `public`: they are the sandbox's defaults, a
//! reading, and only written here.

use http::Method;
use steadfast_spec::Zone;

pub(crate) const AUTHORIZE: &str = "/api-gw/oauth/authorize";
pub(crate) const TOKEN: &str = "/api-gw/oauth/token";
pub(crate) const INDIVIDUAL_TOKEN: &str = "/api-gw/oauth/individual-token-v2";
pub(crate) const PLACE_ORDER: &str = "/api/oms/place-order";
pub(crate) const ORDERS: &str = "/api/oms/orders";
pub(crate) const HISTORY: &str = "/api/oms/history";
pub(crate) const BASKET_MARGIN: &str = "/api/oms/basket-margin";
pub(crate) const SYMBOL_STORE: &str = "/api/mkt-data/scrips/symbol-store";

// public
pub(crate) const CANCEL_ORDER: &str = "/api/oms/cancel-order";
pub(crate) const MODIFY_ORDER: &str = "/api/oms/modify-order";
pub(crate) const MARGIN: &str = "/api/oms/margin";
pub(crate) const SCRIP_MASTER: &str = "/api/mkt-data/scrips/master";
pub(crate) const SCRIP_GROUP: &str = "/api/mkt-data/scrips/symbol-store/NSE_EQ";
pub(crate) const QUOTES: &str = "/api/mkt-data/quotes";
pub(crate) const POSITIONS: &str = "/api/account/positions";
pub(crate) const HOLDINGS: &str = "/api/account/holdings";
pub(crate) const FUNDS: &str = "/api/account/funds";

/// The contents of an endpoint's Authorization header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    None,
    ApiKey,
    Full,
}

#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) access: Access,
    pub(crate) zone: Option<Zone>,
}

/// Returns every endpoint, each with the zone that limits it first.
pub(crate) fn all() -> Vec<Endpoint> {
    let endpoint = |method: Method, path, access, zone| Endpoint { method, path, access, zone };
    vec![
        endpoint(Method::GET, AUTHORIZE, Access::None, None),
        endpoint(Method::POST, TOKEN, Access::None, Some(Zone::API_KEY)),
        endpoint(Method::POST, INDIVIDUAL_TOKEN, Access::ApiKey, Some(Zone::OTP)),
        endpoint(Method::POST, PLACE_ORDER, Access::Full, Some(Zone::PLACE_ORDER)),
        endpoint(Method::GET, ORDERS, Access::Full, Some(Zone::GENERAL)),
        endpoint(Method::GET, HISTORY, Access::Full, Some(Zone::GENERAL)),
        endpoint(Method::DELETE, CANCEL_ORDER, Access::Full, Some(Zone::GENERAL)),
        endpoint(Method::PUT, MODIFY_ORDER, Access::Full, Some(Zone::GENERAL)),
        endpoint(Method::POST, BASKET_MARGIN, Access::Full, Some(Zone::GENERAL)),
        endpoint(Method::POST, MARGIN, Access::Full, Some(Zone::GENERAL)),
        endpoint(Method::GET, SCRIP_GROUP, Access::Full, Some(Zone::DATA)),
        endpoint(Method::GET, SCRIP_MASTER, Access::Full, Some(Zone::DATA)),
        endpoint(Method::GET, QUOTES, Access::Full, Some(Zone::DATA)),
        endpoint(Method::GET, POSITIONS, Access::Full, Some(Zone::DATA)),
        endpoint(Method::GET, HOLDINGS, Access::Full, Some(Zone::DATA)),
        endpoint(Method::GET, FUNDS, Access::Full, Some(Zone::DATA)),
    ]
}

/// Returns the endpoints with a body, and therefore a Content-Type.
pub(crate) fn with_a_body() -> Vec<Endpoint> {
    all().into_iter().filter(|endpoint| matches!(endpoint.method, Method::POST | Method::PUT)).collect()
}

/// Returns the endpoints that require the full header.
pub(crate) fn protected() -> Vec<Endpoint> {
    all().into_iter().filter(|endpoint| endpoint.access == Access::Full).collect()
}
