use std::{
    error::Error,
    future::{Future, pending},
    io,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::Request;
use http_body::{Frame, SizeHint};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::watch,
    time::timeout,
};

use super::{Answer, Line, Script, patience::HEAD_TIMEOUT, play, play::Rest};
use crate::wire::{
    body::NoAnswer,
    seats::{Busy, Seat},
};

/// How long a client may take from a request's head to its answer's head.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(90);

/// Serves a connection with a service of the caller's own, such as one that puts a network before the gateway.
///
/// Ends with the connection. Requests pipelined after one whose answer is a [`Script`] are lost with it.
pub async fn serve_answers<I, S, F, B>(io: I, service: S)
where
    I: Line,
    S: Fn(Request<Incoming>) -> F + Clone,
    F: Future<Output = Answer<B>>,
    B: http_body::Body<Data = Bytes> + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    serve_patiently(io, HEAD_TIMEOUT, service).await;
}

/// Like [`serve_answers`], for a client that may take `patience`, instead of ten seconds, to send a request's head, and
/// may stay idle as long.
pub async fn serve_patiently<I, S, F, B>(io: I, patience: Duration, service: S)
where
    I: Line,
    S: Fn(Request<Incoming>) -> F + Clone,
    F: Future<Output = Answer<B>>,
    B: http_body::Body<Data = Bytes> + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (_running, stop) = watch::channel(());
    converse(io, service, stop, &Hub::default(), &Seat::patient(patience)).await;
}

/// Reaches every connection of a server.
#[derive(Debug)]
pub(crate) struct Hub {
    resets: watch::Sender<()>,
}

impl Default for Hub {
    fn default() -> Self {
        Self { resets: watch::channel(()).0 }
    }
}

impl Hub {
    pub(crate) fn watch(&self) -> watch::Receiver<()> {
        self.resets.subscribe()
    }
}

/// Serves a connection until it ends, `stop` changes, or all connections are reset. Between requests its seat is idle.
pub(crate) async fn converse<I, S, F, B>(
    mut io: I,
    service: S,
    mut stop: watch::Receiver<()>,
    hub: &Hub,
    seat: &Seat,
) where
    I: Line,
    S: Fn(Request<Incoming>) -> F + Clone,
    F: Future<Output = Answer<B>>,
    B: http_body::Body<Data = Bytes> + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let mut resets = hub.watch();
    seat.idle();
    let mut ahead = Bytes::new();
    loop {
        let slot = Arc::new(Mutex::new(Slot { io: Some(io), ahead, after: None, busy: None }));
        let stopped = exchange(&slot, service.clone(), &mut stop, &mut resets, seat).await;
        let (left, after, _busy) = {
            let mut slot = slot.lock();
            (slot.io.take(), slot.after.take(), slot.busy.take())
        };
        let Some(left) = left else { return };
        match after {
            // It has ended in an orderly way.
            None => return,
            Some(After::Reset) => return left.reset(),
            Some(After::Script(script)) => match play(left, script).await {
                Rest::Kept(kept, read) if !stopped => (io, ahead) = (kept, read),
                Rest::Kept(..) | Rest::Over => return,
                Rest::AllReset => {
                    hub.resets.send_replace(());
                    return;
                }
            },
        }
    }
}

/// Serves HTTP requests until the connection ends or a script takes it over. Returns true if the server was told to
/// stop.
async fn exchange<I, S, F, B>(
    slot: &Arc<Mutex<Slot<I>>>,
    service: S,
    stop: &mut watch::Receiver<()>,
    resets: &mut watch::Receiver<()>,
    seat: &Seat,
) -> bool
where
    I: Line,
    S: Fn(Request<Incoming>) -> F,
    F: Future<Output = Answer<B>>,
    B: http_body::Body<Data = Bytes> + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let answered = slot.clone();
    let service = service_fn(move |request| {
        let busy = seat.busy();
        let (answer, slot) = (busy.is_some().then(|| service(request)), answered.clone());
        async move {
            let (Some(busy), Some(answer)) = (busy, answer) else { return pending().await };
            let after = match timeout(REQUEST_TIMEOUT, answer).await {
                Ok(Answer::Response(response)) => {
                    return Ok(response.map(|body| Answered { body: Box::pin(body), _busy: busy }));
                }
                Ok(Answer::Script(script)) => After::Script(script),
                Ok(Answer::Reset) | Err(_) => After::Reset,
            };
            let mut slot = slot.lock();
            (slot.after, slot.busy) = (Some(after), Some(busy));
            Err(NoAnswer::Reset)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(seat.patience())
        .max_headers(64)
        .max_buf_size(64 * 1024)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(Lent { slot: slot.clone() }), service);
    let mut connection = pin!(connection);
    let (mut stopped, mut watched) = (false, true);
    loop {
        tokio::select! {
            biased;
            changed = resets.changed(), if watched => match changed {
                Ok(()) => {
                    slot.lock().after = Some(After::Reset);
                    return stopped;
                }
                Err(_) => watched = false,
            },
            _ = stop.changed(), if !stopped => {
                stopped = true;
                connection.as_mut().graceful_shutdown();
            }
            ended = connection.as_mut() => {
                // A client that went away, or was reset on purpose, is not the server's failure.
                if let Err(error) = ended {
                    tracing::debug!(%error, "connection ended");
                }
                return stopped;
            }
        }
    }
}

/// A connection, and what happens to it after HTTP.
struct Slot<I> {
    io: Option<I>,
    /// The bytes of the next request that were read already.
    ahead: Bytes,
    after: Option<After>,
    /// Held until the pending action is done.
    busy: Option<Busy>,
}

/// An answer's body; the connection is busy until all of it was read.
struct Answered<B> {
    body: Pin<Box<B>>,
    _busy: Busy,
}

impl<B: http_body::Body> http_body::Body for Answered<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.body.as_mut().poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

enum After {
    Reset,
    Script(Script),
}

/// A connection that is lent to HTTP, and taken back for what HTTP cannot do.
struct Lent<I> {
    slot: Arc<Mutex<Slot<I>>>,
}

impl<I: Line> Lent<I> {
    fn with<T>(&self, poll: impl FnOnce(Pin<&mut I>) -> Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match &mut self.slot.lock().io {
            Some(io) => poll(Pin::new(io)),
            None => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }
}

impl<I: Line> AsyncRead for Lent<I> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        {
            let ahead = &mut self.slot.lock().ahead;
            if !ahead.is_empty() {
                buf.put_slice(&ahead.split_to(ahead.len().min(buf.remaining())));
                return Poll::Ready(Ok(()));
            }
        }
        self.with(|io| io.poll_read(cx, buf))
    }
}

impl<I: Line> AsyncWrite for Lent<I> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.with(|io| io.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.with(|io| io.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        self.slot.lock().io.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|io| io.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.slot.lock().after.is_some() {
            // A regular close must not come before the pending action.
            return Poll::Ready(Ok(()));
        }
        self.with(|io| io.poll_shutdown(cx))
    }
}
