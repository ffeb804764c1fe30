use std::{
    future::Future,
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
};
use tower_service::Service;

use crate::{PeerIp, admin::Admin, body::ConnectionReset, sandbox::Sandbox};

/// Connections served at once; further ones wait in the listener's backlog.
const MOST_CONNECTIONS: usize = 1_024;
/// How long a client may take to send a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may take from a request's head to its answer's head.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(90);
/// How long open requests may take to end once the server is told to stop.
const DRAIN: Duration = Duration::from_secs(2);

impl Sandbox {
    /// Serves the gateway on `listener` until `shutdown` completes, then ends what is open.
    ///
    /// # Errors
    ///
    /// The listener's, if it fails for good.
    pub async fn serve(&self, listener: TcpListener, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        serve(listener, self.gateway(), shutdown).await
    }

    /// Serves the admin API on `listener` until `shutdown` completes.
    ///
    /// # Errors
    ///
    /// The listener's, if it fails for good.
    pub async fn serve_admin(
        &self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        serve(listener, Admin::new(self.clone()), shutdown).await
    }
}

async fn serve<S, B>(listener: TcpListener, service: S, shutdown: impl Future<Output = ()>) -> io::Result<()>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = ConnectionReset> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::error::Error + Send + Sync,
{
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    // Dropped with this future, and every connection with it.
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let (stream, peer, place) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(ended) = connections.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "connection failed");
                }
                continue;
            }
            accepted = accept(&listener, &places) => accepted?,
        };
        let reset = Arc::new(AtomicBool::new(false));
        let io = TokioIo::new(Resettable { stream, reset: reset.clone() });
        let service = Connection { service: service.clone(), peer, reset };
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_headers(64)
            .max_buf_size(64 * 1024)
            .auto_date_header(false)
            .serve_connection(io, service);
        let connection = graceful.watch(connection);
        connections.spawn(async move {
            // A client that went away, or one that was reset on purpose, is not the server's failure.
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection ended");
            }
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(DRAIN, graceful.shutdown()).await.is_err() {
        tracing::warn!("connections were still open at the end");
    }
    connections.shutdown().await;
    Ok(())
}

type Place = tokio::sync::OwnedSemaphorePermit;

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, Place)> {
    let place = places.clone().acquire_owned().await.map_err(io::Error::other)?;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // It only speeds answers up, and a client that is gone already is no reason to end.
                let _ = stream.set_nodelay(true);
                return Ok((stream, peer, place));
            }
            // The client gave up, or the process is short of descriptors for a moment: neither ends the server.
            Err(error) if is_passing(&error) => {
                tracing::warn!(%error, "connection not accepted");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Err(error) => return Err(error),
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    const EMFILE: i32 = 24;
    const ENFILE: i32 = 23;
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    ) || matches!(error.raw_os_error(), Some(EMFILE | ENFILE))
}

/// One connection's way to the service: knows the peer, and notes when the connection is to be reset.
#[derive(Clone)]
struct Connection<S> {
    service: S,
    peer: SocketAddr,
    reset: Arc<AtomicBool>,
}

impl<S, B> hyper::service::Service<Request<Incoming>> for Connection<S>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = ConnectionReset> + Clone + Send + 'static,
    S::Future: Send,
    B: 'static,
{
    type Response = Response<B>;
    type Error = ConnectionReset;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, ConnectionReset>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(PeerIp(self.peer.ip()));
        let reset = self.reset.clone();
        let answer = self.service.clone().call(request);
        Box::pin(async move {
            let answer = tokio::time::timeout(REQUEST_TIMEOUT, answer).await.unwrap_or(Err(ConnectionReset));
            if answer.is_err() {
                reset.store(true, Ordering::Release);
            }
            answer
        })
    }
}

/// A stream that ends with a TCP reset instead of a regular close once it is told to.
struct Resettable {
    stream: TcpStream,
    reset: Arc<AtomicBool>,
}

impl Drop for Resettable {
    fn drop(&mut self) {
        if self.reset.load(Ordering::Acquire) {
            // A lingering time of zero makes the close a reset. Should it fail, the client sees a close: also lost.
            let _ = socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
        }
    }
}

impl AsyncRead for Resettable {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Resettable {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.reset.load(Ordering::Acquire) {
            // A regular close must not overtake the reset.
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
