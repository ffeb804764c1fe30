use std::{error::Error, fmt, net::IpAddr};

use http::{Uri, uri::Scheme};

/// A request that is not sent because of what it would do to a secret, or for want of one.
///
/// Found as the source of a [`Failure`](steadfast_spec::Failure) that is a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusedHeader {
    /// There is no token, or the one there is must not be used.
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

impl Error for RefusedHeader {}

/// Whether credentials may travel to `uri`.
pub(crate) fn check(uri: &Uri) -> Result<(), RefusedHeader> {
    match (uri.scheme(), uri.host()) {
        (Some(scheme), Some(_)) if *scheme == Scheme::HTTPS => Ok(()),
        (Some(_), Some(host)) if is_loopback(host) => Ok(()),
        (Some(_), Some(_)) => Err(RefusedHeader::ClearText),
        _ => Err(RefusedHeader::NoDestination),
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

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
