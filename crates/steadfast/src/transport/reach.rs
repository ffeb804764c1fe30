use std::{error::Error, fmt, io, time::Duration};

use http::Uri;
use steadfast_call::BoxError;
use steadfast_spec::BaseUrl;
use tower::{Service, ServiceExt};

use super::{Transport, connector::NotConnected};

/// No connection could be made to the service; names its address and the cause.
pub struct Unreachable {
    authority: String,
    source: BoxError,
}

impl Transport {
    /// Makes one connection to the service at `base`, with a proxy's tunnel and TLS, and sends nothing over it.
    ///
    /// A program can use it at its start to report why the service cannot be reached, before requests are repeated for
    /// seconds.
    ///
    /// # Errors
    ///
    /// [`Unreachable`] naming the address and the cause.
    pub async fn reach(&self, base: &BaseUrl) -> Result<(), Unreachable> {
        let unreachable = |source| Unreachable { authority: authority_of(base.uri()), source };
        let mut connector = self.connector().map_err(|error| unreachable(error.into()))?;
        let connection = connector.ready().await.map_err(unreachable)?.call(base.uri().clone());
        connection.await.map(drop).map_err(unreachable)
    }
}

/// Returns the host and port of an address, with the default port of its scheme.
pub(crate) fn authority_of(uri: &Uri) -> String {
    let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("http") { 80 } else { 443 });
    format!("{}:{port}", uri.host().unwrap_or_default())
}

/// Returns in words why a connection could not be made; `None` if the error has another origin.
pub(crate) fn why_not_connected(error: &(dyn Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    let mut looks_up = false;
    while let Some(cause) = next {
        if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
            return Some(format!("TLS failed: {tls}"));
        }
        if let Some(NotConnected(limit)) = cause.downcast_ref() {
            return Some(no_answer(*limit));
        }
        looks_up |= cause.to_string() == "dns error";
        if let Some(error) = cause.downcast_ref::<io::Error>() {
            if let Some(tls) = tls_inside(error) {
                return Some(format!("TLS failed: {tls}"));
            }
            return Some(match error.kind() {
                _ if looks_up => format!("its name cannot be looked up: {error}"),
                io::ErrorKind::ConnectionRefused => {
                    "the connection is refused: nothing listens there".to_owned()
                }
                io::ErrorKind::TimedOut => "it does not answer: no connection in time".to_owned(),
                _ => format!("no connection: {error}"),
            });
        }
        next = cause.source();
    }
    None
}

/// Returns the TLS error inside an I/O error, which exposes it only by `get_ref` and may nest another one.
fn tls_inside(error: &io::Error) -> Option<&rustls::Error> {
    let mut error = error;
    loop {
        let inner = error.get_ref()?;
        if let Some(tls) = inner.downcast_ref() {
            return Some(tls);
        }
        error = inner.downcast_ref()?;
    }
}

fn no_answer(limit: Duration) -> String {
    format!("it does not answer: no connection within {limit:?}")
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = why_not_connected(&*self.source).unwrap_or_else(|| crate::error::chain_of(&*self.source));
        write!(f, "service cannot be reached at {}: {why}", self.authority)
    }
}

reads_like_display!(Unreachable);

impl Error for Unreachable {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}
