use std::{error::Error, fmt, net::IpAddr};

use http::{Uri, uri::Scheme};

/// Why a request was not sent: its header would expose a secret, or there is no usable token.
///
/// Found as the source of a [`Failure`](steadfast_call::Failure) that is a refusal.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusedHeader {
    /// There is no usable token.
    NoToken,
    /// The address begins with `http` and its host is not this machine.
    ClearText,
    /// The address names no scheme and host, so it is not known where the token would go.
    NoDestination,
    /// The address is not the service's.
    ForeignDestination,
}

impl fmt::Display for RefusedHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoToken => "no usable access token",
            Self::ClearText => "credentials are not sent over clear-text http to another machine",
            Self::NoDestination => "request names no scheme and host to send credentials to",
            Self::ForeignDestination => "credentials are not sent to a host that is not the service's",
        })
    }
}

steadfast_call::debug_in_one_line!(RefusedHeader);

impl Error for RefusedHeader {}

/// Returns an error if credentials may not travel to `uri`.
pub(crate) fn check(uri: &Uri) -> Result<(), RefusedHeader> {
    match (uri.scheme(), uri.host()) {
        (Some(scheme), Some(_)) if *scheme == Scheme::HTTPS => Ok(()),
        (Some(_), Some(host)) if is_loopback(host) => Ok(()),
        (Some(_), Some(_)) => Err(RefusedHeader::ClearText),
        _ => Err(RefusedHeader::NoDestination),
    }
}

/// The one place that credentials may travel to.
#[derive(Clone, Debug)]
pub(crate) struct Only {
    base: Uri,
    /// The verdict of [`check`] on `base` itself.
    verdict: Result<(), RefusedHeader>,
}

impl Only {
    pub(crate) fn new(base: Uri) -> Self {
        let verdict = check(&base).and_then(|()| is_at(&base, &base));
        Self { base, verdict }
    }

    /// Returns an error if credentials may not travel to `uri`.
    pub(crate) fn check(&self, uri: &Uri) -> Result<(), RefusedHeader> {
        // The usual case: scheme and authority are written as in the base, so the base's verdict applies.
        if uri.scheme() == self.base.scheme() && written(uri) == written(&self.base) {
            return self.verdict;
        }
        check(uri)?;
        is_at(uri, &self.base)
    }
}

/// Returns an error unless `uri` leads to the host and port of `base`; a missing port is the scheme's default.
fn is_at(uri: &Uri, base: &Uri) -> Result<(), RefusedHeader> {
    // A user name in the authority may change how the address is read, and the token is not meant for it.
    let is_plain = uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
    let port =
        |uri: &Uri| uri.port_u16().or_else(|| (uri.scheme()? == &Scheme::HTTPS).then_some(443)).unwrap_or(80);
    let same_host = match (uri.host(), base.host()) {
        (Some(host), Some(only)) => host.eq_ignore_ascii_case(only),
        _ => false,
    };
    if is_plain && same_host && uri.scheme() == base.scheme() && port(uri) == port(base) {
        Ok(())
    } else {
        Err(RefusedHeader::ForeignDestination)
    }
}

/// Returns the authority (host and port) as written.
fn written(uri: &Uri) -> Option<&str> {
    uri.authority().map(|authority| authority.as_str())
}

pub(crate) fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_why_credentials_are_not_sent() {
        assert_eq!(RefusedHeader::NoToken.to_string(), "no usable access token");
        assert!(RefusedHeader::ClearText.to_string().contains("clear-text"));
    }

    #[test]
    fn a_port_that_is_not_written_is_the_schemes_own() {
        for (uri, base, same) in [
            ("https://a.example/v2", "https://a.example/v2", true),
            ("https://a.example:443/v2", "https://a.example/v2", true),
            ("https://A.example/v2", "https://a.example:443/v2", true),
            ("http://localhost/v2", "http://localhost:80/v2", true),
            ("https://a.example:444/v2", "https://a.example/v2", false),
            ("https://a.example:80/v2", "https://a.example/v2", false),
            ("http://a.example:443/v2", "https://a.example/v2", false),
            ("https://b.example/v2", "https://a.example/v2", false),
            ("https://a.example.b/v2", "https://a.example/v2", false),
            ("https://b@a.example/v2", "https://a.example/v2", false),
        ] {
            let only = Only::new(base.parse().unwrap());
            assert_eq!(only.check(&uri.parse().unwrap()).is_ok(), same, "{uri} {base}");
        }
    }

    #[test]
    fn clear_text_is_for_this_machine_only() {
        for (uri, result) in [
            ("https://api.example/v2", Ok(())),
            ("http://127.0.0.1:8080/v2", Ok(())),
            ("http://localhost/v2", Ok(())),
            ("http://[::1]:1/v2", Ok(())),
            ("http://api.example/v2", Err(RefusedHeader::ClearText)),
            ("http://10.0.0.1/v2", Err(RefusedHeader::ClearText)),
            ("http://127.0.0.1.example/v2", Err(RefusedHeader::ClearText)),
            ("http://localhost.example/v2", Err(RefusedHeader::ClearText)),
            ("ws://api.example/v2", Err(RefusedHeader::ClearText)),
            ("/v2", Err(RefusedHeader::NoDestination)),
            ("api.example:80", Err(RefusedHeader::NoDestination)),
        ] {
            assert_eq!(check(&uri.parse().unwrap()), result, "{uri}");
        }
    }
}
