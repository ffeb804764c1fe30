use std::sync::{Arc, LazyLock};

use http::Request;
use steadfast_spec::{AuthKind, Routes, ext};

/// The table for requests that no route layer has looked at.
static SHOWN: LazyLock<Routes> = LazyLock::new(Routes::default);

/// What the request's `Authorization` header must hold.
///
/// A layer used alone knows no base address, so it tries every tail of the path; a path that is in no table needs
/// the full header.
pub(crate) fn auth_kind<B>(request: &Request<B>) -> AuthKind {
    if let Some(route) = request.extensions().get::<ext::Route>() {
        return Arc::as_ref(route).auth;
    }
    let path = request.uri().path();
    path.match_indices('/')
        .find_map(|(at, _)| SHOWN.find(request.method(), &path[at..]))
        .map_or(AuthKind::Full, |route| route.auth)
}

#[cfg(test)]
mod tests {
    use steadfast_spec::{Endpoint, Route};

    use super::*;

    fn request(method: &str, uri: &str) -> Request<()> {
        Request::builder().method(method).uri(uri).body(()).unwrap()
    }

    #[test]
    fn without_a_route_layer_the_path_decides_below_any_base_address() {
        for (method, uri, kind) in [
            ("POST", "https://a.example/tradeapi/v2/api-gw/oauth/individual-token-v2", AuthKind::ApiKey),
            ("POST", "https://a.example/v2/api-gw/oauth/token", AuthKind::None),
            ("GET", "https://a.example/v2/api/oms/orders", AuthKind::Full),
            ("GET", "https://a.example/v2/new", AuthKind::Full),
            ("GET", "https://a.example/v2/api-gw/oauth/token", AuthKind::Full),
        ] {
            assert_eq!(auth_kind(&request(method, uri)), kind, "{method} {uri}");
        }
    }

    #[test]
    fn the_route_layer_has_the_last_word() {
        let mut request = request("GET", "https://a.example/v2/new");
        request.extensions_mut().insert::<ext::Route>(Arc::new(Route::new(Endpoint::Token)));
        assert_eq!(auth_kind(&request), AuthKind::None);
    }
}
