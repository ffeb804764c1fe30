use std::{
    future::{Ready, ready},
    io,
    net::Ipv4Addr,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::Uri;
use hyper_util::rt::TokioIo;
use steadfast::{BaseUrl, BoxError, HostTransport, Line as Ended};
use steadfast_sandbox::Sandbox;

use crate::sim::wire::{SimIo, pair};

/// Opens connections to the sandbox's own server, which damages them as configured. Nothing else is between.
#[derive(Clone, Debug)]
pub(crate) struct Line(Sandbox);

impl Line {
    /// Returns the transport of a stack, or of a login, whose connections end at `sandbox`.
    pub(crate) fn transport<B>(sandbox: &Sandbox, base: &BaseUrl) -> HostTransport<B>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        HostTransport::over(base, Self(sandbox.clone()))
    }
}

impl tower::Service<Uri> for Line {
    type Response = Ended<TokioIo<SimIo>>;
    type Error = io::Error;
    type Future = Ready<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let (mut client, server) = pair();
        client.set_zero_linger();
        let sandbox = self.0.clone();
        tokio::spawn(async move { sandbox.serve_line(server, Ipv4Addr::LOCALHOST.into()).await });
        ready(Ok(Ended::over(TokioIo::new(client), true)))
    }
}
