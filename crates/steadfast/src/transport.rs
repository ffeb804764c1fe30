mod ambiguous_length;
mod connector;
mod describe;
mod exchange;
mod host;
mod hyper;
mod line;
mod proxy;
mod reach;
#[cfg(feature = "reqwest")]
mod reqwest;
mod resolver;
mod stamped_body;
mod tcp;

use std::{error::Error, fmt, net::IpAddr, num::NonZeroUsize, sync::Arc, time::Duration};

use bytes::Bytes;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};
use steadfast_call::BoxError;
use steadfast_spec::BaseUrl;

pub(crate) use self::reach::{authority_of, why_not_connected};
#[cfg(feature = "reqwest")]
pub use self::reqwest::{ReqwestFuture, ReqwestTransport};
pub use self::{
    connector::{Connecting, Connector},
    host::{HostBody, HostTransport},
    hyper::{HyperFuture, HyperTransport},
    line::Line,
    proxy::{InvalidProxy, Proxy},
    reach::Unreachable,
    stamped_body::StampedBody,
};
use self::{host::Bounds, resolver::Resolver, tcp::Tcp};

/// How long a connection is kept while the other end acknowledges nothing; the gateway itself takes no longer.
const UNHEARD: Duration = Duration::from_secs(30);

const MAX_CONNECTIONS: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// How connections to the service are made.
///
/// HTTP/1.1 over rustls, with the public certificate authorities that Mozilla trusts. Redirects are never followed.
/// HTTP/2 is not offered, because the guarantees for orders do not hold there: see
/// [`HyperTransport`](crate::HyperTransport#http2).
///
/// A [`Client`](crate::Client) sends over [`to`](Self::to) its base address. Below a [`Stack`](crate::Stack) of your own
/// it is `stack.service(transport.to(&base)?)`.
///
/// # Lost answers
///
/// A send that is given up, by a timeout, an error or dropping its future, ends its connection at once and abortively:
/// the socket closes without lingering, so the kernel discards unsent data, and TLS writes nothing more. Therefore
/// nothing of the request arrives later, not even when a network comes back after an outage or when the process is
/// killed. [`Fate::Lost`](crate::call::Fate::Lost) says when that was; without it no order is sent again.
///
/// This cannot be promised, and `ended` is `None`, where another program on our side ends the connection and has its
/// own connection to the service: a [`proxy`](Self::proxy), but also a service mesh on this side, **which no program
/// can see**. With one of those, set [`ResendPolicy::Never`](crate::dedup::ResendPolicy::Never).
///
/// As a second safeguard the kernel gives up a connection whose other end acknowledges nothing for 30 s.
#[derive(Clone, Debug)]
#[must_use]
pub struct Transport {
    connect_timeout: Duration,
    idle_timeout: Duration,
    order_idle_timeout: Duration,
    max_connections: NonZeroUsize,
    local_address: Option<IpAddr>,
    proxy: Option<Proxy>,
    roots: Vec<CertificateDer<'static>>,
}

impl Default for Transport {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(3),
            idle_timeout: Duration::from_secs(60),
            order_idle_timeout: Duration::from_secs(2),
            max_connections: MAX_CONNECTIONS,
            local_address: None,
            proxy: None,
            roots: Vec::new(),
        }
    }
}

impl Transport {
    /// Makes connections within 3 s and keeps them for 60 s.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how long making a connection may take, including a proxy's tunnel and TLS; 3 s by default. Ten seconds are
    /// added where a name has to be looked up.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets how long an unused connection is kept; 60 s by default.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Sets how long a connection may have been unused before it carries an order, or another request that must not be
    /// sent twice; 2 s by default. Then a new one is made: the service may be about to close the old one, and an order
    /// that meets the close is in doubt.
    pub fn order_idle_timeout(mut self, timeout: Duration) -> Self {
        self.order_idle_timeout = timeout;
        self
    }

    /// Sets how many connections may be open at once; 256 by default. Further requests wait for one of them, but a
    /// cancel makes one more.
    pub fn max_connections(mut self, most: NonZeroUsize) -> Self {
        self.max_connections = most;
        self
    }

    /// Sets the local address of requests: the one on the app's whitelist (§5.6).
    pub fn local_address(mut self, address: IpAddr) -> Self {
        self.local_address = Some(address);
        self
    }

    /// Tunnels every connection through an HTTP proxy; none by default, and no environment variable is read.
    ///
    /// Only `https` goes through it. An order whose answer is lost is looked for and never sent again: see
    /// [above](Self#lost-answers).
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.proxy = Some(proxy);
        self
    }

    /// Trusts the certificate authorities of a PEM file as well as the public ones, such as that of an inspecting
    /// proxy.
    ///
    /// # Errors
    ///
    /// [`InvalidCertificates`] if the text holds none, or one that cannot be read.
    pub fn root_certificates(mut self, pem: &[u8]) -> Result<Self, InvalidCertificates> {
        let mut store = RootCertStore::empty();
        let roots: Vec<_> = CertificateDer::pem_slice_iter(pem)
            .collect::<Result<_, _>>()
            .map_err(|_| InvalidCertificates::NotPem)?;
        if roots.is_empty() {
            return Err(InvalidCertificates::None);
        }
        for root in &roots {
            store.add(root.clone()).map_err(|_| InvalidCertificates::NotCertificate)?;
        }
        self.roots.extend(roots);
        Ok(self)
    }

    /// Returns the local address of requests, if one is set.
    #[must_use]
    pub fn source(&self) -> Option<IpAddr> {
        self.local_address
    }

    /// Returns true if a proxy stands between. Its connection to the service goes on when ours has ended.
    pub(crate) fn is_proxied(&self) -> bool {
        self.proxy.is_some()
    }

    /// Returns the service that sends requests to the host of `base`, with connections of its own.
    ///
    /// # Errors
    ///
    /// [`TlsUnavailable`] if the machine's cryptography cannot be used.
    pub fn to<B>(&self, base: &BaseUrl) -> Result<HostTransport<B>, TlsUnavailable>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Ok(HostTransport::bounded(base, self.connector()?, self.bounds()))
    }

    fn bounds(&self) -> Bounds {
        Bounds::new(self.idle_timeout, self.order_idle_timeout, self.max_connections)
    }

    /// Returns a service that sends requests to any host, over hyper-util's client with a connection pool of its own.
    ///
    /// [`to`](Self::to) costs less, and never sends an order over a connection that has been unused for long.
    ///
    /// # Errors
    ///
    /// [`TlsUnavailable`] if the machine's cryptography cannot be used.
    pub fn service<B>(&self) -> Result<HyperTransport<Connector, B>, TlsUnavailable>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        let connector = self.connector()?;
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .pool_idle_timeout(self.idle_timeout)
            .http1_max_buf_size(128 * 1024)
            .build(connector);
        Ok(HyperTransport::new(client))
    }

    fn connector(&self) -> Result<Connector, TlsUnavailable> {
        let mut tcp = HttpConnector::new_with_resolver(Resolver::default());
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        // A second safeguard: a connection whose other end is silent is given up.
        tcp.set_keepalive(Some(UNHEARD / 2));
        tcp.set_keepalive_interval(Some(UNHEARD / 6));
        tcp.set_keepalive_retries(Some(3));
        #[cfg(any(target_os = "android", target_os = "linux"))]
        tcp.set_tcp_user_timeout(Some(UNHEARD));
        tcp.set_connect_timeout(Some(self.connect_timeout));
        tcp.set_local_address(self.local_address);
        let tcp = match &self.proxy {
            Some(proxy) => Tcp::tunnel(proxy.around(tcp)),
            None => Tcp::direct(tcp),
        };
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(self.tls()?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        Ok(Connector::new(connector, self.connect_timeout, self.proxy.clone()))
    }

    fn tls(&self) -> Result<ClientConfig, TlsUnavailable> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        // Proof: each was added to a store before.
        roots.add_parsable_certificates(self.roots.iter().cloned());
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(TlsUnavailable)?;
        Ok(config.with_root_certificates(roots).with_no_client_auth())
    }
}

/// Why a text is not usable as certificate authorities.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidCertificates {
    /// It has no section that is a certificate.
    None,
    /// A section of it is cut or not base64.
    NotPem,
    /// A section of it is no X.509 certificate.
    NotCertificate,
}

impl fmt::Display for InvalidCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "there is no certificate in the pem text",
            Self::NotPem => "pem text cannot be read",
            Self::NotCertificate => "pem text holds something that is not a certificate",
        })
    }
}

reads_like_display!(InvalidCertificates, TlsUnavailable);

impl Error for InvalidCertificates {}

/// No TLS connection can be made on this machine.
#[derive(Clone)]
pub struct TlsUnavailable(rustls::Error);

impl fmt::Display for TlsUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tls is unavailable: {}", self.0)
    }
}

impl Error for TlsUnavailable {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}
