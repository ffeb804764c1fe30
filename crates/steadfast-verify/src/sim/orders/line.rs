use std::{
    future::{Ready, ready},
    io,
    net::Ipv4Addr,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::Uri;
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use steadfast::{BoxError, HyperTransport, Line as Ended};
use steadfast_sandbox::Sandbox;

use crate::sim::wire::{SimIo, pair};

/// Opens connections to the sandbox's own server, which damages them as configured. Nothing else is between.
#[derive(Clone, Debug)]
pub(crate) struct Line(Sandbox);

impl Line {
    /// Returns the transport of a stack, or of a login, whose connections end at `sandbox`. Its limits are those of
    /// `Transport`.
    pub(crate) fn transport<B>(sandbox: &Sandbox) -> HyperTransport<Self, B>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .http1_max_headers(100)
            .http1_max_buf_size(128 * 1024)
            .build(Self(sandbox.clone()));
        HyperTransport::new(client)
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
