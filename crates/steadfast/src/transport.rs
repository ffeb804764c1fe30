use std::{error::Error, fmt, net::IpAddr, time::Duration};

use bytes::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};

use crate::leaf::Leaf;

/// How connections to the service are made.
///
/// HTTP/1.1 over rustls with the public certificate authorities that Mozilla trusts; redirects are never followed.
#[derive(Clone, Debug)]
#[must_use]
pub struct Transport {
    connect_timeout: Duration,
    idle_timeout: Duration,
    local_address: Option<IpAddr>,
}

/// What a [`Transport`] makes connections with.
pub type Connector = HttpsConnector<HttpConnector>;

impl Default for Transport {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(3),
            idle_timeout: Duration::from_secs(60),
            local_address: None,
        }
    }
}

impl Transport {
    /// Connections that must stand within 3 s and are kept for 60 s.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long a connection may take to be made; 3 s by default.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long an unused connection is kept; 60 s by default.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// The local address that requests leave from: the one on the app's whitelist (§5.6).
    pub fn local_address(mut self, address: IpAddr) -> Self {
        self.local_address = Some(address);
        self
    }

    /// The address that requests leave from, if one is set.
    #[must_use]
    pub fn source(&self) -> Option<IpAddr> {
        self.local_address
    }

    /// A leaf with a connection pool of its own.
    ///
    /// # Errors
    ///
    /// [`TlsUnavailable`] if the machine's cryptography cannot be used.
    pub fn leaf<B>(&self) -> Result<Leaf<Connector, B>, TlsUnavailable>
    where
        B: http_body::Body<Data = Bytes> + Send,
        B::Data: Send,
    {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(self.connect_timeout));
        tcp.set_local_address(self.local_address);
        let connector = HttpsConnectorBuilder::new()
            .with_provider_and_webpki_roots(rustls::crypto::ring::default_provider())
            .map_err(TlsUnavailable)?
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .pool_idle_timeout(self.idle_timeout)
            .http1_max_headers(100)
            .http1_max_buf_size(128 * 1024)
            .build(connector);
        Ok(Leaf::new(client))
    }
}

/// No TLS connection can be made on this machine.
#[derive(Clone, Debug)]
pub struct TlsUnavailable(rustls::Error);

impl fmt::Display for TlsUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tls is unavailable")
    }
}

impl Error for TlsUnavailable {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}
