use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use http::Uri;
use hyper_util::{
    client::legacy::connect::{HttpConnector, proxy::Tunnel},
    rt::TokioIo,
};
use pin_project_lite::pin_project;
use steadfast_spec::BoxError;
use tokio::net::TcpStream;
use tower_service::Service;

/// Makes the connections below TLS: to the service itself, or to a proxy that tunnels to it.
#[derive(Clone, Debug)]
pub(super) struct Tcp(Way);

#[derive(Clone, Debug)]
enum Way {
    Direct(HttpConnector),
    Tunnel(Tunnel<HttpConnector>),
}

impl Tcp {
    pub(super) fn direct(connector: HttpConnector) -> Self {
        Self(Way::Direct(connector))
    }

    pub(super) fn tunnel(tunnel: Tunnel<HttpConnector>) -> Self {
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
        Direct { #[pin] future: <HttpConnector as Service<Uri>>::Future },
        Tunnel { #[pin] future: <Tunnel<HttpConnector> as Service<Uri>>::Future },
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
        match self.project() {
            Project::Direct { future } => future.poll(cx).map_err(Into::into),
            Project::Tunnel { future } => future.poll(cx).map_err(Into::into),
        }
    }
}
