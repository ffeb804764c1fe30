use super::*;

#[test]
fn every_shown_endpoint_is_found_by_its_own_path() {
    let mut found = Vec::new();
    for paths in [Paths::public(), Paths::published_client()] {
        let routes = Routes::new(&paths);
        for endpoint in Endpoint::all() {
            let Some(path) = paths.of(endpoint) else { continue };
            let path = path.replace("{scripGroup}", "NSE%5FEQ").replace("{kind}", "gtt");
            assert_eq!(routes.find(&endpoint.method(), &path).and_then(|r| r.endpoint), Some(endpoint));
            found.push(endpoint);
        }
    }
    assert!(Endpoint::all().all(|endpoint| found.contains(&endpoint)), "in one of the two");
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
        assert_eq!(**Routes::of(&request(method.clone(), uri)), Route::unknown(&method), "{method} {uri}");
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
