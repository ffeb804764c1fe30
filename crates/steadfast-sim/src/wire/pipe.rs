//! A wire of bytes: a real HTTP client on one end of a pipe in memory, a real HTTP server on the other.

use std::{
    future::{Ready, ready},
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use http::Uri;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::{
    client::legacy::{
        Client,
        connect::{Connected, Connection},
    },
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use steadfast::{RequestBody, leaf::Leaf};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};

use crate::{chooser::Site, wire::Wire};

/// Opens connections to the gateway behind a [`Wire`]; each of them may break at any byte.
#[derive(Clone, Debug)]
pub(crate) struct Pipe {
    wire: Wire,
    opened: Arc<AtomicU64>,
}

/// What can happen to a connection: nothing, no connection at all, a request that breaks off after some bytes, an
/// answer that does.
const FATES: [u32; 4] = [80, 4, 8, 8];
/// Within so many bytes a connection that breaks does so: a few requests, or one long list.
const MOST_BYTES: u32 = 6_000;
/// What the kernel's buffers would hold.
const BUFFER: usize = 64 * 1024;

impl Pipe {
    /// The leaf of a stack whose connections end behind `wire`.
    pub(crate) fn leaf(wire: &Wire) -> Leaf<Self, RequestBody> {
        let pipe = Self { wire: wire.clone(), opened: Arc::default() };
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .build(pipe);
        Leaf::new(client)
    }

    fn open(&self) -> io::Result<TokioIo<SimIo>> {
        let number = self.opened.fetch_add(1, Ordering::Relaxed) + 1;
        let (mut written, mut read) = (None, None);
        if !self.wire.is_healed() {
            let chooser = self.wire.chooser();
            let bytes = || chooser.choose(Site::new("pipe.bytes").of(number), MOST_BYTES) as usize;
            match chooser.weigh(Site::new("pipe.fault").of(number), &FATES) {
                1 => return Err(io::ErrorKind::ConnectionRefused.into()),
                2 => written = Some(bytes()),
                3 => read = Some(bytes()),
                _ => {}
            }
        }
        let (client, server) = duplex(BUFFER);
        let wire = self.wire.clone();
        tokio::spawn(async move {
            let serve = service_fn(move |request| wire.clone().answer(request));
            // However the connection ends, the client sees it.
            let _ = http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(server), serve)
                .await;
        });
        Ok(TokioIo::new(SimIo { inner: Some(client), written, read }))
    }
}

impl tower::Service<Uri> for Pipe {
    type Response = TokioIo<SimIo>;
    type Error = io::Error;
    type Future = Ready<io::Result<TokioIo<SimIo>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        ready(self.open())
    }
}

/// The client's end of a connection, which is reset once its bytes are used up.
#[derive(Debug)]
pub(crate) struct SimIo {
    /// Gone once the connection is reset: the server then sees its end, too.
    inner: Option<DuplexStream>,
    /// How many more bytes the client may write; all that it wants to without a number.
    written: Option<usize>,
    /// How many more bytes it may read.
    read: Option<usize>,
}

impl SimIo {
    fn reset<T>(&mut self) -> Poll<io::Result<T>> {
        self.inner = None;
        Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
    }
}

impl AsyncRead for SimIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let most = this.read.unwrap_or(usize::MAX).min(buf.remaining());
        let Some(inner) = this.inner.as_mut().filter(|_| most > 0) else { return this.reset() };
        let mut limited = ReadBuf::new(buf.initialize_unfilled_to(most));
        let polled = Pin::new(inner).poll_read(cx, &mut limited);
        let came = limited.filled().len();
        buf.advance(came);
        this.read = this.read.map(|left| left - came);
        polled
    }
}

impl AsyncWrite for SimIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let most = this.written.unwrap_or(usize::MAX).min(data.len());
        if most == 0 && !data.is_empty() {
            return this.reset();
        }
        let Some(inner) = this.inner.as_mut() else { return this.reset() };
        let polled = Pin::new(inner).poll_write(cx, &data[..most]);
        if let (Poll::Ready(Ok(went)), Some(left)) = (&polled, &mut this.written) {
            *left -= went;
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.inner {
            Some(inner) => Pin::new(inner).poll_flush(cx),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.inner {
            Some(inner) => Pin::new(inner).poll_shutdown(cx),
            None => Poll::Ready(Ok(())),
        }
    }
}

impl Connection for SimIo {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn ends(written: Option<usize>, read: Option<usize>) -> (SimIo, DuplexStream) {
        let (client, server) = duplex(BUFFER);
        (SimIo { inner: Some(client), written, read }, server)
    }

    #[tokio::test]
    async fn a_write_breaks_off_at_its_byte_and_the_server_sees_the_part_and_the_end() {
        let (mut client, mut server) = ends(Some(5), None);
        let error = client.write_all(b"GET / HTTP/1.1").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        let mut came = Vec::new();
        server.read_to_end(&mut came).await.unwrap();
        assert_eq!(came, b"GET /");
    }

    #[tokio::test]
    async fn an_answer_breaks_off_at_its_byte() {
        let (mut client, mut server) = ends(None, Some(8));
        server.write_all(b"HTTP/1.1 200 OK").await.unwrap();
        let mut came = Vec::new();
        let error = client.read_to_end(&mut came).await.unwrap_err();
        assert_eq!((came.as_slice(), error.kind()), (&b"HTTP/1.1"[..], io::ErrorKind::ConnectionReset));
    }
}
