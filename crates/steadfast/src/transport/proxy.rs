use std::{error::Error, fmt, str::FromStr};

use data_encoding::BASE64;
use http::{HeaderValue, Uri, uri::Scheme};
use hyper_util::client::legacy::connect::{HttpConnector, proxy::Tunnel};
use steadfast_spec::BaseUrl;

use super::resolver::Resolver;

/// An HTTP proxy through which connections are tunnelled with `CONNECT`, so that it cannot read what is sent.
///
/// Written `http://host:port`, or `http://user:password@host:port`. Only requests to an `https` address go through it:
/// with clear text it would see the token.
///
/// A proxy ends our connection and has its own to the service. How long it goes on delivering what it has taken is not
/// known: see [`Transport`](super::Transport#lost-answers).
///
/// # Example
///
/// ```
/// use steadfast::Proxy;
///
/// let proxy: Proxy = "http://desk:s3cret@proxy.example:3128".parse()?;
/// assert_eq!(format!("{proxy:?}"), "Proxy(proxy.example:3128)");
/// assert!("socks5://proxy.example:1080".parse::<Proxy>().is_err());
/// # Ok::<(), steadfast::InvalidProxy>(())
/// ```
#[derive(Clone)]
pub struct Proxy {
    address: Uri,
    authorization: Option<HeaderValue>,
}

impl Proxy {
    /// Returns its host and port, without the user.
    pub(super) fn host(&self) -> &str {
        self.address.authority().map_or("", http::uri::Authority::as_str)
    }

    pub(super) fn address(&self) -> &Uri {
        &self.address
    }

    pub(super) fn around(&self, connector: HttpConnector<Resolver>) -> Tunnel<HttpConnector<Resolver>> {
        let tunnel = Tunnel::new(self.address.clone(), connector);
        match &self.authorization {
            Some(authorization) => tunnel.with_auth(authorization.clone()),
            None => tunnel,
        }
    }
}

impl FromStr for Proxy {
    type Err = InvalidProxy;

    fn from_str(text: &str) -> Result<Self, InvalidProxy> {
        let uri: Uri = text.parse().map_err(|_| InvalidProxy::Address)?;
        if uri.scheme() != Some(&Scheme::HTTP) {
            return Err(InvalidProxy::Scheme);
        }
        let authority = uri.authority().ok_or(InvalidProxy::Address)?.as_str();
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        let has_path = uri.path_and_query().is_some_and(|path| path.as_str() != "/");
        if host.is_empty() || has_path {
            return Err(InvalidProxy::Address);
        }
        let authorization = user.map(|user| {
            // Credentials are percent-encoded in an address, but not in a header.
            let user: Vec<u8> = percent_encoding::percent_decode_str(user).collect();
            let value = format!("Basic {}", BASE64.encode(&user));
            let mut value = HeaderValue::try_from(value).map_err(|_| InvalidProxy::Address)?;
            value.set_sensitive(true);
            Ok(value)
        });
        // Host and port have the same form as in a base address.
        let address = BaseUrl::any_version(&format!("http://{host}")).map_err(|_| InvalidProxy::Address)?;
        Ok(Self { address: address.uri().clone(), authorization: authorization.transpose()? })
    }
}

// User and password are not shown.
impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({})", self.host())
    }
}

/// Why a text is not the address of an HTTP proxy. The text is not repeated, because it may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidProxy {
    /// It is not an address of the form `http://host:port`.
    Address,
    /// It does not begin with `http://`.
    Scheme,
}

impl fmt::Display for InvalidProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Address => "proxy address is not of the form http://host:port",
            Self::Scheme => "proxy address does not begin with http://",
        })
    }
}

impl Error for InvalidProxy {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_leave_the_address_and_never_show() {
        let proxy: Proxy = "http://us%40er:p%3Aw@10.0.0.1:3128".parse().unwrap();
        assert_eq!(proxy.address, "http://10.0.0.1:3128/");
        assert_eq!(proxy.authorization.as_ref().unwrap(), &format!("Basic {}", BASE64.encode(b"us@er:p:w")));
        assert!(!format!("{proxy:?}").contains("er"));
        assert!(
            !format!("{:?}", proxy.around(HttpConnector::new_with_resolver(Resolver::default())))
                .contains("Basic")
        );
    }

    #[test]
    fn whatever_is_no_http_proxy_is_refused() {
        for text in [
            "",
            "proxy:3128",
            "http://",
            "http://a@",
            "http://:3128",
            "http://a@:3128",
            "http://p:",
            "http://p:0",
            "http://p:99999",
            "http://p:3128/path",
            "http://p:3128/?q",
            "a b",
        ] {
            assert!(text.parse::<Proxy>().is_err(), "{text}");
        }
        assert_eq!("https://p:1".parse::<Proxy>().unwrap_err(), InvalidProxy::Scheme);
    }
}
