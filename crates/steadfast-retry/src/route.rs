use std::sync::LazyLock;

use http::Request;
use steadfast_spec::{Class, Endpoint, Route, Routes, ext};

/// The table that a layer without a route layer above it falls back to.
static TABLE: LazyLock<Routes> = LazyLock::new(Routes::default);

/// The endpoint and class of a request: from its route if it has one, from its method and path otherwise.
pub(crate) fn known_of<B>(request: &Request<B>) -> (Option<Endpoint>, Class) {
    if let Some(route) = request.extensions().get::<ext::Route>() {
        return (route.endpoint, route.class);
    }
    let path = request.uri().path();
    // The base address may have a path of its own, so every suffix that starts with a segment is tried.
    path.match_indices('/')
        .find_map(|(at, _)| TABLE.find(request.method(), &path[at..]))
        .map(|route| (route.endpoint, route.class))
        .unwrap_or_else(|| (None, Route::unknown(request.method()).class))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::Method;

    use super::*;

    fn request(method: Method, uri: &str) -> Request<()> {
        Request::builder().method(method).uri(uri).body(()).unwrap()
    }

    #[test]
    fn a_route_wins_over_the_path() {
        let mut request = request(Method::GET, "https://h/v2/api/oms/orders");
        let route: ext::Route = Arc::new(Route::new(Endpoint::PlaceOrder));
        request.extensions_mut().insert(route);
        assert_eq!(known_of(&request), (Some(Endpoint::PlaceOrder), Class::VerifyFirst));
    }

    #[test]
    fn the_path_below_any_base_address_is_known() {
        for base in ["", "https://h", "https://h/v2", "https://h/a/b/v2"] {
            let order = request(Method::POST, &format!("{base}/api/oms/place-order?x=/api/oms/orders"));
            assert_eq!(known_of(&order), (Some(Endpoint::PlaceOrder), Class::VerifyFirst), "{base:?}");
        }
    }

    #[test]
    fn an_unknown_path_is_repeated_in_doubt_only_if_it_reads() {
        assert_eq!(known_of(&request(Method::GET, "/x")), (None, Class::Safe));
        assert_eq!(known_of(&request(Method::POST, "/x")), (None, Class::OnlyIfNotExecuted));
        assert_eq!(known_of(&request(Method::OPTIONS, "*")), (None, Class::OnlyIfNotExecuted));
    }
}
