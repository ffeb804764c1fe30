use std::{
    borrow::Cow,
    sync::{Arc, LazyLock},
};

use http::{Method, Request, Uri};
use percent_encoding::percent_decode_str;
use steadfast_spec::{AuthKind, Endpoint, Paths, Zone, has_dots, matches_template};

use crate::{Call, Class, Lane};

/// The properties of a request that follow from its method and path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Route {
    /// The endpoint; `None` for a path that is not in the table.
    pub endpoint: Option<Endpoint>,
    /// The required content of the `Authorization` header.
    pub auth: AuthKind,
    /// The rule for repeats in doubt.
    pub class: Class,
    /// The zones that it falls under; never empty.
    pub zones: Vec<Zone>,
    /// The lane that it waits in.
    pub lane: Lane,
    /// True for a path that is not in the table if it must be taken for one that places or changes an order, so that a
    /// halt stops it ([`Routes::guard_unknown`]).
    pub may_trade: bool,
}

impl Route {
    /// Returns the route of an endpoint according to the specification.
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint: Some(endpoint),
            auth: endpoint.auth(),
            class: Class::of(endpoint),
            zones: endpoint.zones().to_vec(),
            lane: Lane::of(endpoint),
            may_trade: false,
        }
    }

    /// True if a refusal as not executed (401, 429) cannot be checked, so that the request is not sent again after one:
    /// its effect is unknown, and no list shows it.
    ///
    /// Special kinds of orders, exits and conversions are like that, and so is a path that is not in the table, because
    /// it may be one of them. Requests of §4.1 may be sent again: for an order the list is checked first, a change made twice is
    /// the same change, and a code that was exchanged is refused.
    #[must_use]
    pub fn is_unverifiable(&self) -> bool {
        self.class == Class::OnlyIfNotExecuted && self.endpoint.is_none_or(Endpoint::is_special)
    }

    /// Returns the route of a path that is not in the table: the strictest zone, and no repeats unless it only reads.
    #[must_use]
    pub fn unknown(method: &Method) -> Self {
        Self {
            endpoint: None,
            auth: AuthKind::Full,
            class: if method == Method::GET || method == Method::HEAD {
                Class::Safe
            } else {
                Class::OnlyIfNotExecuted
            },
            zones: vec![Zone::GENERAL],
            lane: Lane::Normal,
            may_trade: false,
        }
    }

    /// Returns the same for requests of which their sender knows nothing but what he was asked to pass on: never
    /// repeated once it has left, not even a GET. A DELETE may be a cancel, so it leaves ahead of others, and a halt does
    /// not stop it; all but GETs may trade.
    #[must_use]
    pub fn guarded(method: &Method) -> Self {
        let (is_read, is_cancel) =
            (method == Method::GET || method == Method::HEAD, method == Method::DELETE);
        Self {
            class: Class::OnlyIfNotExecuted,
            lane: if is_cancel { Lane::Critical } else { Lane::Normal },
            may_trade: !is_read && !is_cancel,
            ..Self::unknown(method)
        }
    }
}

/// The table from method and path to [`Route`], which users may extend and override.
#[derive(Clone, Debug)]
pub struct Routes {
    entries: Vec<(String, Arc<Route>, Method)>,
    guards_unknown: bool,
}

impl Routes {
    /// Creates the table of §4.1, with `paths` for the endpoints whose paths are not shown.
    #[must_use]
    pub fn new(paths: &Paths) -> Self {
        let entries = Endpoint::every()
            .filter_map(|endpoint| {
                paths
                    .of(endpoint)
                    .map(|path| (path.to_owned(), Arc::new(Route::new(endpoint)), endpoint.method()))
            })
            .collect();
        Self { entries, guards_unknown: false }
    }

    /// Takes requests to paths that are not in the table for [guarded](Route::guarded) ones, and not for
    /// [unknown](Route::unknown) ones.
    ///
    /// For a program that passes on requests of others. A program's own request to a path of its choice is understood
    /// by its method.
    #[must_use]
    pub fn guard_unknown(mut self) -> Self {
        self.guards_unknown = true;
        self
    }

    /// Returns the route of a request whose path is not in the table.
    #[must_use]
    pub fn unknown(&self, method: &Method) -> Route {
        if self.guards_unknown { Route::guarded(method) } else { Route::unknown(method) }
    }

    /// Returns the route of a request, for layers whose stack may have no route layer.
    ///
    /// It is the one in the request's extensions, borrowed. Without one, the default table is searched for the method
    /// and for every tail of the path, because the base address is not known here. A request that is not found has the
    /// [unknown](Route::unknown) route.
    ///
    /// # Example
    ///
    /// ```
    /// use http::Request;
    /// use steadfast_call::Routes;
    /// use steadfast_spec::Endpoint;
    ///
    /// let request = Request::get("https://api.example/tradeapi/v2/api/oms/orders").body(())?;
    /// assert_eq!(Routes::of(&request).endpoint, Some(Endpoint::Orders));
    /// # Ok::<(), http::Error>(())
    /// ```
    #[must_use]
    pub fn of<B>(request: &Request<B>) -> Cow<'_, Arc<Route>> {
        Self::or_shown(Call::of(request.extensions()).route(), request.method(), request.uri())
    }

    /// The same for a caller that has already looked into the extensions and found `known`.
    #[must_use]
    pub fn or_shown<'a>(known: Option<&'a Arc<Route>>, method: &Method, uri: &Uri) -> Cow<'a, Arc<Route>> {
        static DEFAULT: LazyLock<Routes> = LazyLock::new(Routes::default);
        if let Some(route) = known {
            return Cow::Borrowed(route);
        }
        let path = uri.path();
        path.match_indices('/')
            .find_map(|(start, _)| DEFAULT.find(method, &path[start..]))
            .map_or_else(|| Cow::Owned(Arc::new(Route::unknown(method))), Cow::Borrowed)
    }

    /// Adds or replaces the route of one method and path template; a `{name}` segment matches any one segment.
    #[must_use]
    pub fn with(mut self, method: Method, template: impl Into<String>, route: Route) -> Self {
        let template = template.into();
        self.entries.retain(|(t, _, m)| !(*t == template && *m == method));
        self.entries.push((template, Arc::new(route), method));
        self
    }

    /// Applies `change` to the route of `endpoint`; an endpoint without a path is left alone.
    #[must_use]
    pub fn override_endpoint(mut self, endpoint: Endpoint, change: impl Fn(&mut Route)) -> Self {
        for (_, route, _) in self.entries.iter_mut().filter(|(_, r, _)| r.endpoint == Some(endpoint)) {
            change(Arc::make_mut(route));
        }
        self
    }

    /// Finds the route of a request by its method and its path below the base address.
    #[must_use]
    pub fn find(&self, method: &Method, path: &str) -> Option<&Arc<Route>> {
        self.entries
            .iter()
            .find(|(t, _, m)| m == method && matches_template(t, path))
            .map(|(_, route, _)| route)
    }

    /// True if a path is not in the table, but would be for a lenient server: one that decodes escapes, ignores case,
    /// drops slashes and parameters, or resolves dots.
    #[must_use]
    pub fn is_misspelled(&self, path: &str) -> bool {
        let given = percent_decode_str(path).decode_utf8_lossy();
        if has_dots(&given) {
            return true;
        }
        let mut templates = self.entries.iter().map(|(template, ..)| template.as_str());
        self.template(path).is_none() && templates.any(|template| is_tidied_to(template, &given))
    }

    /// Returns the template of the path in the table, for any method. Use it in labels of metrics, never the raw path.
    #[must_use]
    pub fn template(&self, path: &str) -> Option<&str> {
        self.entries.iter().find(|(t, ..)| matches_template(t, path)).map(|(t, ..)| t.as_str())
    }

    /// Returns the methods, templates and routes of an endpoint.
    pub fn of_endpoint(&self, endpoint: Endpoint) -> impl Iterator<Item = (&Method, &str, &Route)> {
        let entries = self.entries.iter().filter(move |(_, route, _)| route.endpoint == Some(endpoint));
        entries.map(|(template, route, method)| (method, template.as_str(), &**route))
    }

    /// Returns the methods that the table knows for a path.
    pub fn methods<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a Method> + 'a {
        self.entries.iter().filter(move |(t, ..)| matches_template(t, path)).map(|(_, _, m)| m)
    }
}

impl Default for Routes {
    fn default() -> Self {
        Self::new(&Paths::default())
    }
}

fn is_tidied_to(template: &str, path: &str) -> bool {
    let segments = |path: &str| {
        path.split('/').filter(|segment| !segment.is_empty()).map(str::to_lowercase).collect::<Vec<_>>()
    };
    let (wanted, given) = (segments(template), segments(path));
    wanted.len() == given.len()
        && wanted.iter().zip(&given).all(|(wanted, given)| {
            wanted.starts_with('{') || given.split(';').next() == Some(wanted.as_str())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shown_endpoint_is_found_by_its_own_path() {
        let mut found = Vec::new();
        for paths in [Paths::public(), Paths::published_client()] {
            let routes = Routes::new(&paths);
            for endpoint in Endpoint::every() {
                let Some(path) = paths.of(endpoint) else { continue };
                let path = path.replace("{scripGroup}", "NSE%5FEQ").replace("{kind}", "gtt");
                assert_eq!(routes.find(&endpoint.method(), &path).and_then(|r| r.endpoint), Some(endpoint));
                found.push(endpoint);
            }
        }
        assert!(Endpoint::every().all(|endpoint| found.contains(&endpoint)), "in one of the two");
    }

    #[test]
    fn special_orders_cost_place_orders_quota_and_are_never_repeated_in_doubt() {
        let routes = Routes::new(&Paths::published_client());
        for (method, path, zone) in [
            (Method::POST, "/api/oms/place-order/bo", Zone::PLACE_ORDER),
            (Method::PUT, "/api/oms/modify-order/gtt", Zone::GENERAL),
            (Method::POST, "/api/oms/exit-order", Zone::GENERAL),
            (Method::POST, "/api/oms/convert-position", Zone::GENERAL),
        ] {
            let route = routes.find(&method, path).unwrap();
            assert_eq!((route.class, &*route.zones), (Class::OnlyIfNotExecuted, &[zone][..]), "{path}");
            assert!(route.is_unverifiable(), "{path}");
        }
        let cancel = routes.find(&Method::DELETE, "/api/oms/cancel-order/gtt").unwrap();
        assert_eq!((cancel.class, cancel.lane), (Class::Safe, Lane::Critical));
    }

    #[test]
    fn paths_that_are_not_shown_are_unknown_until_they_are_set() {
        assert!(Routes::default().find(&Method::DELETE, "/api/oms/cancel-order").is_none());
    }

    #[test]
    fn a_path_is_case_sensitive_and_its_parameter_is_required() {
        let routes = Routes::default();
        for path in [
            "/api/oms/Orders",
            "/api/oms/orders/",
            "//api/oms/orders",
            "/api/mkt-data/scrips/symbol-store/",
            "/api/mkt-data/scrips/symbol-store",
            "/api/mkt-data/scrips/symbol-store/a/b",
        ] {
            assert!(routes.find(&Method::GET, path).is_none(), "{path}");
        }
    }

    #[test]
    fn an_unknown_path_falls_under_the_strictest_zone_and_is_repeated_only_if_it_reads() {
        assert_eq!(Route::unknown(&Method::GET).class, Class::Safe);
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
            let route = Route::unknown(&method);
            assert_eq!((route.class, route.zones), (Class::OnlyIfNotExecuted, vec![Zone::GENERAL]));
        }
    }

    fn request(method: Method, uri: &str) -> Request<()> {
        Request::builder().method(method).uri(uri).body(()).unwrap()
    }

    #[test]
    fn without_a_route_layer_the_method_and_path_decide_below_any_base_address() {
        for base in ["", "https://a.example", "https://a.example/v2", "https://a.example/a/b/v2"] {
            for (method, path, endpoint) in [
                (Method::POST, "/api/oms/place-order?x=/api/oms/orders", Endpoint::PlaceOrder),
                (Method::GET, "/api/oms/orders?x=1", Endpoint::Orders),
                (Method::GET, "/api/mkt-data/scrips/symbol-store/NSE", Endpoint::SymbolStore),
                (Method::POST, "/api-gw/oauth/individual-token-v2", Endpoint::IndividualToken),
                (Method::POST, "/api-gw/oauth/token", Endpoint::Token),
            ] {
                let uri = format!("{base}{path}");
                assert_eq!(**Routes::of(&request(method, &uri)), Route::new(endpoint), "{uri}");
            }
        }
    }

    #[test]
    fn without_a_route_layer_a_request_that_is_not_in_the_table_is_unknown() {
        for (method, uri) in [
            (Method::GET, "https://a.example/v2/new"),
            (Method::GET, "https://a.example/v2/api-gw/oauth/token"),
            (Method::POST, "/xapi/oms/place-order"),
            (Method::DELETE, "/v2/never/heard/of"),
            (Method::OPTIONS, "*"),
        ] {
            assert_eq!(
                **Routes::of(&request(method.clone(), uri)),
                Route::unknown(&method),
                "{method} {uri}"
            );
        }
    }

    #[test]
    fn the_route_layer_has_the_last_word() {
        let mut request = request(Method::GET, "https://a.example/v2/api/oms/orders");
        let route = Arc::new(Route::new(Endpoint::PlaceOrder));
        Call::of_mut(request.extensions_mut()).set_route(route.clone());
        assert!(Arc::ptr_eq(&Routes::of(&request), &route), "shared, not copied");
    }

    #[test]
    fn a_guarded_path_is_never_repeated_and_may_trade_unless_it_reads_or_cancels() {
        let routes = Routes::default().guard_unknown();
        for (method, lane, may_trade) in [
            (Method::GET, Lane::Normal, false),
            (Method::DELETE, Lane::Critical, false),
            (Method::POST, Lane::Normal, true),
            (Method::PUT, Lane::Normal, true),
            (Method::PATCH, Lane::Normal, true),
        ] {
            let route = routes.unknown(&method);
            assert!(route.is_unverifiable() && route.zones == [Zone::GENERAL], "{method}");
            assert_eq!((route.lane, route.may_trade), (lane, may_trade), "{method}");
            assert_eq!(Routes::default().unknown(&method), Route::unknown(&method));
        }
    }

    #[test]
    fn users_override_the_zones_of_an_endpoint() {
        let routes =
            Routes::default().override_endpoint(Endpoint::SymbolStore, |r| r.zones = vec![Zone::GENERAL]);
        let route = routes.find(&Method::GET, "/api/mkt-data/scrips/symbol-store/NSE").unwrap();
        assert_eq!(route.zones, [Zone::GENERAL]);
    }
}
