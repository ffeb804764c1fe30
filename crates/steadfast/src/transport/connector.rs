use std::{
    error::Error,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use http::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::rt::TokioIo;
use steadfast_spec::BoxError;
use tokio::{
    net::TcpStream,
    time::{Sleep, sleep},
};
use tower_service::Service;

use super::tcp::Tcp;

/// What a [`Transport`](super::Transport) makes connections with.
///
/// The connect timeout covers all of it: the name's address, TCP, a proxy's tunnel, TLS. Whoever accepts a connection and
/// then says nothing would otherwise hold a request, and its permit, for as long as a send may take.
#[derive(Clone)]
pub struct Connector {
    inner: HttpsConnector<Tcp>,
    timeout: Duration,
}

impl Connector {
    pub(super) fn new(inner: HttpsConnector<Tcp>, timeout: Duration) -> Self {
        Self { inner, timeout }
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = BoxError;
    type Future = Connecting;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, target: Uri) -> Connecting {
        Connecting {
            future: self.inner.call(target),
            sleep: Box::pin(sleep(self.timeout)),
            timeout: self.timeout,
        }
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// Connection future of a [`Connector`].
pub struct Connecting {
    future: <HttpsConnector<Tcp> as Service<Uri>>::Future,
    // Boxed, because hyper wants a future that can be moved.
    sleep: Pin<Box<Sleep>>,
    timeout: Duration,
}

impl Future for Connecting {
    type Output = Result<MaybeHttpsStream<TokioIo<TcpStream>>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let Poll::Ready(connection) = Pin::new(&mut this.future).poll(cx) {
            return Poll::Ready(connection);
        }
        ready!(this.sleep.as_mut().poll(cx));
        Poll::Ready(Err(NotConnected(this.timeout).into()))
    }
}

impl fmt::Debug for Connecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connecting").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// No connection stood within the connect timeout.
#[derive(Debug)]
struct NotConnected(Duration);

impl fmt::Display for NotConnected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no connection within {:?}", self.0)
    }
}

impl Error for NotConnected {}
