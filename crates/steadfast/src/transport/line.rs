use std::{
    fmt, io,
    mem::{self, MaybeUninit},
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
use socket2::SockRef;
use tokio::{net::TcpStream, time::Instant};

type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// A connection that can be closed at once without owning it.
///
/// hyper owns it and reads and writes; the [transport](crate::HyperTransport) closes its descriptor when a send is
/// given up. It stands outside of TLS, so that nothing is written at its end: neither pending TLS data nor a
/// `close_notify`.
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
    fn has_unread(&self) -> bool;
}

#[derive(Debug)]
struct Shared<S> {
    state: Mutex<State<S>>,
    kernel: Kernel<S>,
    /// True if closing makes the kernel drop unsent data, and the connection reaches the service without an
    /// intermediary.
    is_final: bool,
}

/// The kernel's part in a line.
#[derive(Clone, Copy, Debug)]
struct Kernel<S> {
    /// Returns true if the kernel holds bytes or the end of the stream.
    has_unread: fn(&S) -> bool,
    /// Lets the next close end the stream and not reset it.
    ends_in_order: fn(&S),
}

#[derive(Debug)]
enum State<S> {
    Open {
        stream: S,
        /// True if what moved last was read, an answer or the end: nothing was written since.
        is_answered: bool,
        /// The waker of hyper's task, which waits for the stream and must learn of its end.
        waiting: Option<Waker>,
    },
    Closed(Instant),
}

impl Line {
    /// Creates a line over `stream`; `is_direct` if no intermediary ends TCP.
    pub(super) fn new(stream: Stream, is_direct: bool) -> Self {
        let lingers = tcp(&stream).linger().is_ok_and(|linger| linger == Some(Duration::ZERO));
        let kernel = Kernel {
            has_unread: |stream| {
                let unread = SockRef::from(tcp(stream)).peek(&mut [MaybeUninit::uninit()]);
                !unread.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
            },
            // Only within the machine, where nothing written can still be on its way. A kernel that closes in order goes on
            // sending for minutes what a network has lost, although this end is said to have sent its last. If it fails, the
            // close is a reset.
            ends_in_order: |stream| {
                if tcp(stream).peer_addr().is_ok_and(|peer| peer.ip().is_loopback()) {
                    drop(SockRef::from(tcp(stream)).set_linger(None));
                }
            },
        };
        Self::watched(stream, lingers && is_direct, kernel)
    }
}

impl<S: fmt::Debug + Send + 'static> Line<S> {
    /// Returns a handle that ends the line.
    pub(super) fn cutter(&self) -> Cutter {
        Cutter(self.shared.clone())
    }
}

impl<S> Line<S> {
    /// Creates a line over a stream of the caller's own connector.
    ///
    /// Set `is_final` only if nothing that was written reaches the service once the stream is dropped, as with a
    /// zero-linger socket that ends at the service. If it is set wrongly, an order may be placed twice. If it is not
    /// set, an order that is lost over the line is looked for and never sent again.
    #[must_use]
    pub fn over(stream: S, is_final: bool) -> Self
    where
        S: rt::Write,
    {
        Self::watched(stream, is_final, Kernel { has_unread: |_| false, ends_in_order: |_| () })
    }

    fn watched(stream: S, is_final: bool, kernel: Kernel<S>) -> Self
    where
        S: rt::Write,
    {
        let is_vectored = stream.is_write_vectored();
        let state = Mutex::new(State::Open { stream, is_answered: false, waiting: None });
        Self { shared: Arc::new(Shared { state, kernel, is_final }), is_vectored }
    }

    /// Polls the stream, if it is still open.
    fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(Pin<&mut S>, &mut bool, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>>
    where
        S: Unpin,
    {
        match &mut *self.shared.state.lock() {
            State::Closed(_) => Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into())),
            State::Open { stream, is_answered, waiting } => {
                let result = poll(Pin::new(stream), is_answered, cx);
                if result.is_pending() && !waiting.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                    *waiting = Some(cx.waker().clone());
                }
                result
            }
        }
    }
}

impl<S> Drop for Line<S> {
    /// hyper has no use for the line any more. Cut, it is closed already.
    fn drop(&mut self) {
        // A reset throws away what the kernel has still to send, and tells the other end that its answer was not read. With the
        // answer read there is nothing to throw away, and a sidecar takes a reset for an answer that was not heard.
        let kernel = &self.shared.kernel;
        if let State::Open { stream, is_answered: true, .. } = &*self.shared.state.lock()
            && !(kernel.has_unread)(stream)
        {
            (kernel.ends_in_order)(stream);
        }
        self.shared.close();
    }
}

impl Cutter {
    /// Closes the line, if it is open, and returns since when nothing more of it reaches the other end; `None` if that
    /// cannot be promised.
    pub(crate) fn cut(&self) -> Option<Instant> {
        self.0.cut()
    }

    /// Returns true if the line is closed, or the kernel holds something that was not read: bytes, or the other end's
    /// close. Asks the kernel, because the runtime hears of both only when it looks next.
    pub(crate) fn has_unread(&self) -> bool {
        self.0.has_unread()
    }
}

impl<S: fmt::Debug + Send> Cut for Shared<S> {
    fn cut(&self) -> Option<Instant> {
        let closed = self.close();
        self.is_final.then_some(closed)
    }

    fn has_unread(&self) -> bool {
        match &*self.state.lock() {
            State::Open { stream, .. } => (self.kernel.has_unread)(stream),
            State::Closed(_) => true,
        }
    }
}

impl<S> Shared<S> {
    /// Closes the descriptor, if it is open, and returns when that was. No other code closes it.
    fn close(&self) -> Instant {
        let mut state = self.state.lock();
        if let State::Closed(at) = *state {
            return at;
        }
        // ## Open => Closed
        //
        // The descriptor is closed under the lock and before the instant is taken, so a reader of `Closed` can rely on
        // it. This does not block: a zero-linger socket is reset, and any other is closed in the background.
        let waiting = match mem::replace(&mut *state, State::Closed(Instant::now())) {
            State::Open { stream, waiting, .. } => {
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

/// Returns the TCP connection below TLS.
fn tcp(stream: &Stream) -> &TcpStream {
    match stream {
        MaybeHttpsStream::Http(tcp) => tcp.inner(),
        MaybeHttpsStream::Https(tls) => tls.inner().get_ref().0.inner().inner(),
    }
}

impl<S: fmt::Debug + Send + 'static> Connection for Line<S> {
    fn connected(&self) -> Connected {
        Connected::new().extra(self.cutter())
    }
}

impl<S: rt::Read + Unpin> rt::Read for Line<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll(cx, |stream, is_answered, cx| {
            let read = stream.poll_read(cx, buf);
            *is_answered |= matches!(read, Poll::Ready(Ok(())));
            read
        })
    }
}

impl<S: rt::Write + Unpin> rt::Write for Line<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll(cx, |stream, is_answered, cx| {
            *is_answered = false;
            stream.poll_write(cx, buf)
        })
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(cx, |stream, _, cx| stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(cx, |stream, _, cx| stream.poll_shutdown(cx))
    }

    fn is_write_vectored(&self) -> bool {
        self.is_vectored
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll(cx, |stream, is_answered, cx| {
            *is_answered = false;
            stream.poll_write_vectored(cx, bufs)
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    /// Regression: a sidecar took the reset at the end of each connection for a caller that had not heard its last answer, and
    /// refused an equal order of the next run.
    #[tokio::test]
    async fn a_line_ends_in_order_once_its_request_is_answered_and_by_a_reset_before() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        for (answer, more, is_reset) in [("", "", true), ("answer", "", false), ("answer", "more", true)] {
            let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            stream.set_zero_linger().unwrap();
            let (mut service, _) = listener.accept().await.unwrap();
            let line = Line::new(MaybeHttpsStream::Http(TokioIo::new(stream)), true);
            let cutter = line.cutter();
            let mut caller = TokioIo::new(line);
            caller.write_all(b"request").await.unwrap();
            service.read_exact(&mut [0; 7]).await.unwrap();
            service.write_all(answer.as_bytes()).await.unwrap();
            caller.read_exact(&mut vec![0; answer.len()]).await.unwrap();
            service.write_all(more.as_bytes()).await.unwrap();
            while !more.is_empty() && !cutter.has_unread() {
                tokio::task::yield_now().await;
            }
            drop(caller);
            let ended = service.read(&mut [0]).await;
            assert_eq!(ended.is_err(), is_reset, "{answer} {more}: {ended:?}");
        }
    }

    #[tokio::test]
    async fn a_line_that_is_cut_is_reset_whatever_was_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        stream.set_zero_linger().unwrap();
        let (mut service, _) = listener.accept().await.unwrap();
        let line = Line::new(MaybeHttpsStream::Http(TokioIo::new(stream)), true);
        let cutter = line.cutter();
        let mut caller = TokioIo::new(line);
        service.write_all(b"answer").await.unwrap();
        caller.read_exact(&mut [0; 6]).await.unwrap();
        assert!(cutter.cut().is_some());
        drop(caller);
        assert!(service.read(&mut [0]).await.is_err());
    }
}
