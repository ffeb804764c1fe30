use std::{error::Error, fmt, str::FromStr};

use http::{
    Uri,
    uri::{Authority, Scheme},
};

use crate::paths::has_dots;

/// The address below which every endpoint lies; it ends with the version segment `/v2` (§1, §9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl {
    uri: Uri,
    // Without a trailing slash, so that an endpoint's path can follow.
    prefix: String,
}

impl BaseUrl {
    /// Reads a base address that ends in `/v2`; a trailing slash is ignored. [`any_version`](Self::any_version) reads others.
    ///
    /// # Errors
    ///
    /// [`InvalidBaseUrl`], which names the mistake. It does not show the address, which may hold credentials.
    pub fn new(text: &str) -> Result<Self, InvalidBaseUrl> {
        let base = Self::any_version(text)?;
        if base.prefix.rsplit('/').next() == Some("v2") { Ok(base) } else { Err(InvalidBaseUrl::Version) }
    }

    /// Reads a base address of any version (§9: other versions are not shown).
    ///
    /// # Errors
    ///
    /// [`InvalidBaseUrl`], which names the mistake.
    pub fn any_version(text: &str) -> Result<Self, InvalidBaseUrl> {
        let uri: Uri = text.parse().map_err(|_| InvalidBaseUrl::Syntax)?;
        match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS => {}
            _ => return Err(InvalidBaseUrl::Scheme),
        }
        let authority = uri.authority().ok_or(InvalidBaseUrl::Syntax)?;
        if authority.as_str().contains('@') {
            return Err(InvalidBaseUrl::Credentials);
        }
        if authority.host().is_empty() {
            return Err(InvalidBaseUrl::Syntax);
        }
        if !has_good_port(authority) {
            return Err(InvalidBaseUrl::Port);
        }
        if uri.query().is_some() || text.contains('#') {
            return Err(InvalidBaseUrl::Query);
        }
        let prefix = uri.path().trim_end_matches('/').to_owned();
        if has_dots(&prefix) {
            return Err(InvalidBaseUrl::Syntax);
        }
        Ok(Self { uri, prefix })
    }

    /// Returns the address of an endpoint: `path_and_query` begins with a slash.
    ///
    /// # Errors
    ///
    /// [`InvalidBaseUrl::Syntax`] if the path cannot stand in an address.
    pub fn join(&self, path_and_query: &str) -> Result<Uri, InvalidBaseUrl> {
        let mut parts = self.uri.clone().into_parts();
        let joined = format!("{}{path_and_query}", self.prefix);
        parts.path_and_query = Some(joined.parse().map_err(|_| InvalidBaseUrl::Syntax)?);
        Uri::from_parts(parts).map_err(|_| InvalidBaseUrl::Syntax)
    }

    /// Returns the path of `uri` below the base address; `None` for another scheme, host, port or path.
    ///
    /// Hosts are compared without case, and the scheme's default port is the same as none.
    #[must_use]
    pub fn strip<'a>(&self, uri: &'a Uri) -> Option<&'a str> {
        let (given, own) = (uri.authority()?.as_str(), self.uri.authority()?.as_str());
        // The usual case: written as the base is.
        let here = given == own || server(uri)?.eq_ignore_ascii_case(server(&self.uri)?);
        if uri.scheme() != self.uri.scheme() || !here {
            return None;
        }
        uri.path().strip_prefix(self.prefix.as_str()).filter(|rest| rest.starts_with('/'))
    }

    /// Returns the address as a URI.
    #[must_use]
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// True if requests travel in clear text.
    #[must_use]
    pub fn is_clear_text(&self) -> bool {
        self.uri.scheme() == Some(&Scheme::HTTP)
    }

    /// True if the host is this machine: `localhost` or a loopback address.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let host = self.uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        host.eq_ignore_ascii_case("localhost")
            || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
    }
}

/// True if there is no port, or one that can be connected to.
fn has_good_port(authority: &Authority) -> bool {
    let port = authority.as_str().strip_prefix(authority.host()).unwrap_or_default();
    let can_be_connected_to = |port: &str| {
        port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port != 0)
    };
    port.is_empty() || port.strip_prefix(':').is_some_and(can_be_connected_to)
}

/// Returns the authority of `uri` without the port that its scheme implies. A user part before an `@` stays.
fn server(uri: &Uri) -> Option<&str> {
    let authority = uri.authority()?.as_str();
    let port = if uri.scheme() == Some(&Scheme::HTTP) { ":80" } else { ":443" };
    Some(authority.strip_suffix(port).unwrap_or(authority))
}

impl FromStr for BaseUrl {
    type Err = InvalidBaseUrl;

    fn from_str(text: &str) -> Result<Self, InvalidBaseUrl> {
        Self::new(text)
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authority = self.uri.authority().map_or("", |a| a.as_str());
        write!(f, "{}://{authority}{}", self.uri.scheme_str().unwrap_or_default(), self.prefix)
    }
}

/// A base address that cannot be used. `Debug` prints the `Display` text, because `main` shows an error through it.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidBaseUrl {
    /// Not an absolute address.
    Syntax,
    /// Its port cannot be connected to; 1 to 65535 can.
    Port,
    /// Neither `http` nor `https`.
    Scheme,
    /// It holds a user name or password.
    Credentials,
    /// It holds a query or fragment.
    Query,
    /// It does not end in `/v2`.
    Version,
}

impl fmt::Display for InvalidBaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Syntax => "base url is not an absolute address",
            Self::Port => "base url's port is not a number from 1 to 65535",
            Self::Scheme => "base url's scheme is neither http nor https",
            Self::Credentials => "base url holds credentials",
            Self::Query => "base url holds a query or fragment",
            Self::Version => "base url does not end in /v2",
        })
    }
}

impl fmt::Debug for InvalidBaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for InvalidBaseUrl {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_lie_below_the_version_segment() {
        for text in ["https://api.example/tradeapi/v2", "https://api.example/tradeapi/v2/"] {
            let base = BaseUrl::new(text).unwrap();
            let uri = base.join("/api/oms/orders?x=1").unwrap();
            assert_eq!(uri.to_string(), "https://api.example/tradeapi/v2/api/oms/orders?x=1");
            assert_eq!(base.strip(&uri), Some("/api/oms/orders"));
            assert_eq!(base.to_string(), "https://api.example/tradeapi/v2");
        }
        let base = BaseUrl::new("https://api.example/v2").unwrap();
        for elsewhere in [
            "https://api.example/v2x/api",
            "https://evil.example/v2/api",
            "http://api.example/v2/api",
            "https://api.example:444/v2/api",
            "/v2/api",
        ] {
            assert_eq!(base.strip(&elsewhere.parse().unwrap()), None, "{elsewhere}");
        }
    }

    #[test]
    fn the_port_of_the_scheme_is_the_same_as_none_and_hosts_have_no_case() {
        for (base, uri, below) in [
            ("https://api.example/v2", "https://api.example:443/v2/x", true),
            ("https://api.example:443/v2", "https://api.example/v2/x", true),
            ("https://API.Example:443/v2", "https://api.example:443/v2/x", true),
            ("https://API.Example/v2", "https://api.example:443/v2/x", true),
            ("http://api.example/v2", "http://api.example:80/v2/x", true),
            ("http://[::1]:80/v2", "http://[::1]/v2/x", true),
            ("https://api.example/v2", "https://api.example:80/v2/x", false),
            ("https://api.example:80/v2", "https://api.example/v2/x", false),
            ("http://api.example/v2", "http://api.example:443/v2/x", false),
            ("https://api.example/v2", "http://api.example:443/v2/x", false),
            ("https://api.example:8443/v2", "https://api.example/v2/x", false),
            ("https://api.example/v2", "https://api.example:4430/v2/x", false),
            ("https://api.example/v2", "https://api.example@evil.example:443/v2/x", false),
            ("https://api.example/v2", "https://user@api.example:443/v2/x", false),
        ] {
            let base = BaseUrl::new(base).unwrap();
            assert_eq!(base.strip(&uri.parse().unwrap()), below.then_some("/x"), "{base} {uri}");
        }
    }

    #[test]
    fn what_cannot_be_a_base_address_is_named() {
        for (text, error) in [
            ("", InvalidBaseUrl::Syntax),
            ("/v2", InvalidBaseUrl::Scheme),
            ("ftp://a.example/v2", InvalidBaseUrl::Scheme),
            ("https://user:pw@a.example/v2", InvalidBaseUrl::Credentials),
            ("https://a.example/v2?x", InvalidBaseUrl::Query),
            ("https://a.example/v2#x", InvalidBaseUrl::Query),
            ("https://a.example/../v2", InvalidBaseUrl::Syntax),
            ("https://a.example/%2E%2e/v2", InvalidBaseUrl::Syntax),
            ("https://:443/v2", InvalidBaseUrl::Syntax),
            ("https://a.example:/v2", InvalidBaseUrl::Port),
            ("https://a.example:0/v2", InvalidBaseUrl::Port),
            ("https://a.example:65536/v2", InvalidBaseUrl::Port),
            ("https://[::1]:99999/v2", InvalidBaseUrl::Port),
            ("https://a.example", InvalidBaseUrl::Version),
            ("https://a.example/v1", InvalidBaseUrl::Version),
            ("https://a.example/V2", InvalidBaseUrl::Version),
        ] {
            assert_eq!(BaseUrl::new(text), Err(error), "{text}");
        }
        assert!(BaseUrl::any_version("https://a.example/v3").is_ok());
    }

    #[test]
    fn loopback_is_told_from_hosts_that_only_look_like_it() {
        for (text, loopback) in [
            ("http://127.0.0.1:8080/v2", true),
            ("http://127.9.9.9/v2", true),
            ("http://localhost/v2", true),
            ("http://LocalHost:8080/v2", true),
            ("http://[::1]:80/v2", true),
            ("http://127.0.0.1.evil.example/v2", false),
            ("http://localhost.example/v2", false),
            ("http://10.0.0.1/v2", false),
        ] {
            assert_eq!(BaseUrl::new(text).unwrap().is_loopback(), loopback, "{text}");
        }
    }
}
