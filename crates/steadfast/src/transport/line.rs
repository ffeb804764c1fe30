use std::{
    fmt, io, mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use hyper::rt;
use hyper_rustls::MaybeHttpsStream;
use hyper_util::{
    client::legacy::connect::{Connected, Connection},
    rt::TokioIo,
};
use parking_lot::Mutex;
use tokio::{net::TcpStream, time::Instant};

type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// A connection that can be ended at once by somebody else than its owner.
///
/// hyper owns it and reads and writes; the [leaf](crate::leaf) closes its descriptor when a send is given up. It stands
/// outside of TLS, so that nothing is written at its end: neither what TLS still holds nor a `close_notify`.
#[derive(Debug)]
pub struct Line<S = Stream> {
    shared: Arc<Shared<S>>,
    is_vectored: bool,
}

/// Ends a [`Line`].
#[derive(Clone, Debug)]
pub(crate) struct Cutter(Arc<dyn Cut>);

trait Cut: fmt::Debug + Send + Sync {
    fn cut(&self) -> Option<Instant>;
}

#[derive(Debug)]
struct Shared<S> {
    state: Mutex<State<S>>,
    /// True if the kernel drops what it had still to send, and nobody in between has taken it over.
    is_final: bool,
}

#[derive(Debug)]
enum State<S> {
    Open {
        stream: S,
        /// Of hyper's task, which waits for the stream and must hear of its end.
        waiting: Option<Waker>,
    },
    Closed(Instant),
}

impl Line {
    /// A line over `stream`; `is_direct` if nobody in between ends TCP.
    pub(super) fn new(stream: Stream, is_direct: bool) -> Self {
        let lingers = tcp(&stream).linger().is_ok_and(|linger| linger == Some(Duration::ZERO));
        let is_final = (lingers || steadfast_spec::Planted::OrderlyClose.is_on())
            && (is_direct || steadfast_spec::Planted::ProxyEndsWithUs.is_on());
        Self::over(stream, is_final)
    }
}

impl<S> Line<S> {
    /// A line over a stream that a connector of the caller's own has made.
    ///
    /// `is_final`: nothing that was written to the stream reaches the service once it is dropped, as with a socket that
    /// lingers for no time and ends at the service. If that is said of a stream of which it is not true, an order may be
    /// placed twice. Otherwise what is lost over the line is looked for, and never sent again.
    #[must_use]
    pub fn over(stream: S, is_final: bool) -> Self
    where
        S: rt::Write,
    {
        let is_vectored = stream.is_write_vectored();
        let state = Mutex::new(State::Open { stream, waiting: None });
        Self { shared: Arc::new(Shared { state, is_final }), is_vectored }
    }

    /// Polls the stream, if it is still open.
    fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>>
    where
        S: Unpin,
    {
        match &mut *self.shared.state.lock() {
            State::Closed(_) => Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into())),
            State::Open { stream, waiting } => {
                let result = poll(Pin::new(stream), cx);
                if result.is_pending() && !waiting.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                    *waiting = Some(cx.waker().clone());
                }
                result
            }
        }
    }
}

impl<S> Drop for Line<S> {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl Cutter {
    /// Closes the line, if it is not closed, and returns since when nothing more of it reaches the other end; `None` if
    /// that cannot be promised.
    pub(crate) fn cut(&self) -> Option<Instant> {
        self.0.cut()
    }
}

impl<S: fmt::Debug + Send> Cut for Shared<S> {
    fn cut(&self) -> Option<Instant> {
        let closed = match steadfast_spec::Planted::GivenUpStaysOpen.is_on() {
            true => Instant::now(),
            false => self.close(),
        };
        self.is_final.then_some(closed)
    }
}

impl<S> Shared<S> {
    /// The one place that closes the descriptor: whoever asks is told when that was.
    fn close(&self) -> Instant {
        let mut state = self.state.lock();
        if let State::Closed(at) = *state {
            return at;
        }
        // ## Open => Closed
        //
        // The descriptor is closed before the instant is taken, and under the lock: whoever finds it closed finds it
        // so. It takes no time, because a socket that does not linger is reset.
        let waiting = match mem::replace(&mut *state, State::Closed(Instant::now())) {
            State::Open { stream, waiting } => {
                drop(stream);
                waiting
            }
            State::Closed(_) => None,
        };
        let at = Instant::now();
        *state = State::Closed(at);
        drop(state);
        if let Some(waker) = waiting {
            waker.wake();
        }
        at
    }
}

/// The connection itself, below TLS.
fn tcp(stream: &Stream) -> &TcpStream {
    match stream {
        MaybeHttpsStream::Http(tcp) => tcp.inner(),
        MaybeHttpsStream::Https(tls) => tls.inner().get_ref().0.inner().inner(),
    }
}

impl<S: fmt::Debug + Send + 'static> Connection for Line<S> {
    fn connected(&self) -> Connected {
        Connected::new().extra(Cutter(self.shared.clone()))
    }
}

impl<S: rt::Read + Unpin> rt::Read for Line<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll(cx, |stream, cx| stream.poll_read(cx, buf))
    }
}

impl<S: rt::Write + Unpin> rt::Write for Line<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll(cx, |stream, cx| stream.poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(cx, rt::Write::poll_flush)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(cx, rt::Write::poll_shutdown)
    }

    fn is_write_vectored(&self) -> bool {
        self.is_vectored
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll(cx, |stream, cx| stream.poll_write_vectored(cx, bufs))
    }
}
