use std::{error::Error, fmt, mem};

use http::{
    HeaderValue, Method, Request, Uri, header,
    uri::{Authority, PathAndQuery, Scheme},
};
use steadfast_spec::BaseUrl;

/// The one address that a [`HostTransport`](super::HostTransport) sends to.
#[derive(Clone, Debug)]
pub(super) struct Address {
    uri: Uri,
    /// The value of `Host`.
    host: HeaderValue,
}

impl Address {
    pub(super) fn of(base: &BaseUrl) -> Self {
        let uri = base.uri().clone();
        // Every base URL has a host that a header can hold. Without one nothing would match, and nothing be sent.
        let host =
            uri.authority().and_then(|own| HeaderValue::from_str(without_default_port(&uri, own)).ok());
        Self { host: host.unwrap_or(HeaderValue::from_static("")), uri }
    }

    /// Returns the address to connect to.
    pub(super) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Prepares a request for a connection to this address: its target without the address, and `Host` if the caller
    /// has set none.
    pub(super) fn prepare<B>(&self, request: &mut Request<B>) -> Result<(), Unsendable> {
        if request.method() == Method::CONNECT {
            return Err(Unsendable::Connect);
        }
        if !self.is_of(request.uri()) {
            return Err(Unsendable::AnotherHost);
        }
        let path = mem::take(request.uri_mut()).into_parts().path_and_query;
        *request.uri_mut() = path.unwrap_or_else(|| PathAndQuery::from_static("/")).into();
        request.headers_mut().entry(header::HOST).or_insert_with(|| self.host.clone());
        Ok(())
    }

    fn is_of(&self, uri: &Uri) -> bool {
        let (Some(given), Some(own)) = (uri.authority(), self.uri.authority()) else { return false };
        // The usual case: written as the base is.
        let is_same = given.as_str() == own.as_str()
            || without_default_port(uri, given).eq_ignore_ascii_case(without_default_port(&self.uri, own));
        is_same && uri.scheme() == self.uri.scheme()
    }
}

/// Returns host and port, without a port that the scheme implies.
fn without_default_port<'a>(uri: &Uri, authority: &'a Authority) -> &'a str {
    let port = if uri.scheme() == Some(&Scheme::HTTP) { ":80" } else { ":443" };
    authority.as_str().strip_suffix(port).unwrap_or(authority.as_str())
}

/// A request that does not go over a connection to one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unsendable {
    AnotherHost,
    Connect,
}

impl fmt::Display for Unsendable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AnotherHost => "request is for another host than the transport's",
            Self::Connect => "CONNECT is not sent over this transport",
        })
    }
}

impl Error for Unsendable {}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(base: &str, target: &str) -> Result<(String, String), Unsendable> {
        let address = Address::of(&base.parse().unwrap());
        let mut request = Request::get(target).body(()).unwrap();
        address.prepare(&mut request)?;
        let host = request.headers()[header::HOST].to_str().unwrap().to_owned();
        Ok((request.uri().to_string(), host))
    }

    #[test]
    fn target_loses_its_address_and_gains_a_host_without_the_default_port() {
        let expect = |target: &str, host: &str| Ok((target.to_owned(), host.to_owned()));
        let base = "https://api.example:443/v2";
        assert_eq!(prepared(base, "https://API.example/v2/a?b=c"), expect("/v2/a?b=c", "api.example"));
        assert_eq!(prepared(base, "https://api.example"), expect("/", "api.example"));
        let local = "http://127.0.0.1:8080/v2";
        assert_eq!(prepared(local, "http://127.0.0.1:8080/v2"), expect("/v2", "127.0.0.1:8080"));
        assert_eq!(prepared("http://[::1]:80/v2", "http://[::1]/v2"), expect("/v2", "[::1]"));
    }

    #[test]
    fn request_for_another_scheme_host_port_or_user_is_refused() {
        for target in [
            "http://api.example/v2",
            "https://api.example:444/v2",
            "https://api.example.evil/v2",
            "https://user@api.example/v2",
            "/v2",
        ] {
            assert_eq!(prepared("https://api.example/v2", target), Err(Unsendable::AnotherHost), "{target}");
        }
    }

    #[test]
    fn caller_keeps_a_host_of_its_own() {
        let address = Address::of(&"https://api.example/v2".parse().unwrap());
        let mut request = Request::get("https://api.example/v2").header("host", "own").body(()).unwrap();
        address.prepare(&mut request).unwrap();
        assert_eq!(request.headers()[header::HOST], "own");
        *request.method_mut() = Method::CONNECT;
        assert_eq!(address.prepare(&mut request), Err(Unsendable::Connect));
    }
}
