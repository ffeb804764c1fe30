use std::{
    future::{Ready, ready},
    io,
    net::Ipv4Addr,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::Uri;
use hyper_util::{
    client::legacy::{
        Client,
        connect::{Connected, Connection},
    },
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use steadfast::{BoxError, leaf::Leaf};
use steadfast_sandbox::Sandbox;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};

/// Opens connections to the sandbox's own server, which spoils them as it was told to: nothing else is between.
#[derive(Clone, Debug)]
pub(crate) struct Line(Sandbox);

/// What the kernel's buffers would hold.
const BUFFER: usize = 64 * 1024;

impl Line {
    /// The leaf of a stack, or of a login, whose connections end at `sandbox`. Its limits are those of `Transport`.
    pub(crate) fn leaf<B>(sandbox: &Sandbox) -> Leaf<Self, B>
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
        Leaf::new(client)
    }
}

impl tower::Service<Uri> for Line {
    type Response = TokioIo<End>;
    type Error = io::Error;
    type Future = Ready<io::Result<TokioIo<End>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let (client, server) = duplex(BUFFER);
        let sandbox = self.0.clone();
        tokio::spawn(async move { sandbox.serve_line(server, Ipv4Addr::LOCALHOST.into()).await });
        ready(Ok(TokioIo::new(End(client))))
    }
}

/// The client's end of a connection.
#[derive(Debug)]
pub(crate) struct End(DuplexStream);

impl AsyncRead for End {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for End {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

impl Connection for End {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}
