use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::Uri;
use hyper_util::{
    client::legacy::connect::{HttpConnector, proxy::Tunnel},
    rt::TokioIo,
};
use pin_project_lite::pin_project;
use steadfast_call::BoxError;
use tokio::net::TcpStream;
use tower_service::Service;

use super::resolver::Resolver;

/// Makes the connections below TLS, to the service or to a tunnelling proxy. They end abortively, but for one within the
/// machine whose last request was answered.
#[derive(Clone, Debug)]
pub(super) struct Tcp(Way);

#[derive(Clone, Debug)]
enum Way {
    Direct(HttpConnector<Resolver>),
    Tunnel(Tunnel<HttpConnector<Resolver>>),
}

impl Tcp {
    pub(super) fn direct(connector: HttpConnector<Resolver>) -> Self {
        Self(Way::Direct(connector))
    }

    pub(super) fn tunnel(tunnel: Tunnel<HttpConnector<Resolver>>) -> Self {
        Self(Way::Tunnel(tunnel))
    }
}

impl Service<Uri> for Tcp {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = Dialing;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match &mut self.0 {
            Way::Direct(connector) => connector.poll_ready(cx).map_err(Into::into),
            Way::Tunnel(tunnel) => tunnel.poll_ready(cx).map_err(Into::into),
        }
    }

    fn call(&mut self, target: Uri) -> Dialing {
        match &mut self.0 {
            Way::Direct(connector) => Dialing::Direct { future: connector.call(target) },
            Way::Tunnel(tunnel) => Dialing::Tunnel { future: tunnel.call(target) },
        }
    }
}

pin_project! {
    /// Connection future of [`Tcp`].
    #[project = Project]
    pub(super) enum Dialing {
        Direct { #[pin] future: <HttpConnector<Resolver> as Service<Uri>>::Future },
        Tunnel { #[pin] future: <Tunnel<HttpConnector<Resolver>> as Service<Uri>>::Future },
    }
}

impl std::fmt::Debug for Dialing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Dialing")
    }
}

impl Future for Dialing {
    type Output = Result<TokioIo<TcpStream>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let stream: TokioIo<TcpStream> = match self.project() {
            Project::Direct { future } => ready!(future.poll(cx)).map_err(Into::<BoxError>::into)?,
            Project::Tunnel { future } => ready!(future.poll(cx)).map_err(Into::<BoxError>::into)?,
        };
        // Set for the socket's whole life, because a killed process closes it too, and the kernel must not send the
        // rest then; a line takes it back as it ends with its last request answered. A socket that refuses is used all the
        // same, but nothing is promised of its end.
        let _ = stream.inner().set_zero_linger();
        Poll::Ready(Ok(stream))
    }
}
