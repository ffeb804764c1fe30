use std::{
    error::Error,
    fmt,
    future::Future,
    net::IpAddr,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use http::{Uri, uri::Scheme};
use hyper_rustls::HttpsConnector;
use steadfast_call::BoxError;
use tokio::time::{Sleep, sleep};
use tower_service::Service;

use super::{Line, Proxy, tcp::Tcp};

/// Extra time for a name lookup: the first nameserver may be down, and the second is asked after five seconds.
const LOOKUP: Duration = Duration::from_secs(10);

/// Makes connections for a [`Transport`](super::Transport).
///
/// The connect timeout covers TCP, a proxy's tunnel and TLS. Without it a peer that accepts a connection and then stays
/// silent would hold a request and its permit as long as a send may take. A name lookup adds ten seconds.
///
/// Through a [`Proxy`] it makes connections to `https` addresses only.
#[derive(Clone)]
pub struct Connector {
    inner: HttpsConnector<Tcp>,
    timeout: Duration,
    proxy: Option<Proxy>,
}

impl Connector {
    pub(super) fn new(inner: HttpsConnector<Tcp>, timeout: Duration, proxy: Option<Proxy>) -> Self {
        Self { inner, timeout, proxy }
    }

    /// Returns how long making a connection to `target` may take.
    fn limit(&self, target: &Uri) -> Duration {
        let host = self.proxy.as_ref().map_or(target, Proxy::address).host().unwrap_or_default();
        let is_address = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
        if is_address { self.timeout } else { self.timeout.saturating_add(LOOKUP) }
    }
}

impl Service<Uri> for Connector {
    type Response = Line;
    type Error = BoxError;
    type Future = Connecting;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, target: Uri) -> Connecting {
        let limit = self.limit(&target);
        // A tunnel for clear text would show the token to the proxy.
        let is_readable = self.proxy.is_some() && target.scheme() != Some(&Scheme::HTTPS);
        let future = (!is_readable).then(|| self.inner.call(target));
        Connecting { future, sleep: Box::pin(sleep(limit)), limit, is_direct: self.proxy.is_none() }
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// Connection future of a [`Connector`].
pub struct Connecting {
    /// `None` if refused.
    future: Option<<HttpsConnector<Tcp> as Service<Uri>>::Future>,
    // Boxed, because hyper requires a future that is `Unpin`.
    sleep: Pin<Box<Sleep>>,
    limit: Duration,
    is_direct: bool,
}

impl Future for Connecting {
    type Output = Result<Line, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let Some(future) = &mut this.future else { return Poll::Ready(Err(ClearText.into())) };
        if let Poll::Ready(connection) = Pin::new(future).poll(cx) {
            return Poll::Ready(connection.map(|stream| Line::new(stream, this.is_direct)));
        }
        ready!(this.sleep.as_mut().poll(cx));
        Poll::Ready(Err(NotConnected(this.limit).into()))
    }
}

impl fmt::Debug for Connecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connecting").field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// No connection was made in time.
#[derive(Debug)]
pub(super) struct NotConnected(pub(super) Duration);

impl fmt::Display for NotConnected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no connection within {:?}", self.0)
    }
}

impl Error for NotConnected {}

/// A request that would have gone through a proxy in clear text.
#[derive(Debug)]
struct ClearText;

impl fmt::Display for ClearText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("clear-text http does not go through a proxy")
    }
}

impl Error for ClearText {}

#[cfg(test)]
mod tests {
    use crate::Transport;

    #[test]
    fn a_name_may_take_longer_than_an_address() {
        let limit = |transport: Transport, target: &str| {
            let connector = transport.connector().unwrap();
            connector.limit(&target.parse().unwrap()).as_secs()
        };
        let through = |proxy: &str| Transport::new().proxy(proxy.parse().unwrap());
        assert_eq!(limit(Transport::new(), "https://127.0.0.1:443/v2"), 3);
        assert_eq!(limit(Transport::new(), "https://[::1]/v2"), 3);
        assert_eq!(limit(Transport::new(), "https://api.example/v2"), 13);
        assert_eq!(
            limit(through("http://10.0.0.1:3128"), "https://api.example/v2"),
            3,
            "the proxy looks it up"
        );
        assert_eq!(limit(through("http://proxy.example:3128"), "https://127.0.0.1/v2"), 13);
    }
}
