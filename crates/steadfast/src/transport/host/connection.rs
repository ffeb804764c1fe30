use std::{
    fmt,
    future::poll_fn,
    mem,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker, ready},
};

use bytes::Bytes;
use hyper::{
    client::conn::http1::{self, SendRequest},
    rt,
};
use parking_lot::Mutex;
use steadfast_call::{BoxError, ext};

use crate::transport::{Line, StampedBody, line::Cutter};

/// A connection that no exchange, or one exchange, uses.
pub(super) struct Connection<B> {
    pub(super) sender: SendRequest<StampedBody<B>>,
    pub(super) link: Arc<Link>,
}

/// The end of a connection: how it is brought about, and how it came.
#[derive(Debug)]
pub(super) struct Link {
    cutter: Cutter,
    is_aborted: AtomicBool,
    end: Mutex<End>,
}

#[derive(Debug)]
enum End {
    /// It has not ended; this task waits for that.
    Ahead(Option<Waker>),
    Past {
        /// Bytes came that no answer accounts for.
        has_rest: bool,
    },
}

impl<B> Connection<B>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    /// Speaks HTTP/1 over `line`, driven by a task of its own that holds `slot` until the connection has ended.
    pub(super) async fn open<S, P>(line: Line<S>, slot: P) -> Result<Self, BoxError>
    where
        S: rt::Read + rt::Write + fmt::Debug + Send + Unpin + 'static,
        P: Send + 'static,
    {
        let link = Arc::new(Link {
            cutter: line.cutter(),
            is_aborted: AtomicBool::new(false),
            end: Mutex::new(End::Ahead(None)),
        });
        // At most 100 headers. That is hyper's own bound, and if it were set, hyper would fill its room for them at each answer.
        let (sender, connection) = http1::Builder::new().max_buf_size(128 * 1024).handshake(line).await?;
        tokio::spawn(drive(connection, Ending(link.clone()), slot));
        let mut connection = Self { sender, link };
        // Only then has hyper read what the service may have said unasked.
        poll_fn(|cx| connection.sender.poll_ready(cx)).await?;
        Ok(connection)
    }
}

impl<B> Connection<B> {
    /// Returns true if it can carry a request, as far as is known.
    pub(super) fn is_usable(&self) -> bool {
        self.sender.is_ready() && !self.link.is_aborted.load(Ordering::Relaxed)
    }

    /// Returns true if it can carry an order: the kernel, too, has heard nothing of the service since the last answer.
    pub(super) fn is_quiet(&self) -> bool {
        self.is_usable() && !self.link.cutter.has_unread()
    }
}

/// Moves the bytes of a connection until it ends.
async fn drive<S, B, P>(mut connection: http1::Connection<Line<S>, StampedBody<B>>, ending: Ending, slot: P)
where
    S: rt::Read + rt::Write + Unpin,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    // Without hyper's shutdown, which may wait: the line closes at once.
    let _ = poll_fn(|cx| connection.poll_without_shutdown(cx)).await;
    let parts = connection.into_parts();
    // Some services end a body with an empty line.
    let has_rest = parts.read_buf.iter().any(|byte| !matches!(byte, b'\r' | b'\n'));
    drop(parts);
    ending.0.end(has_rest);
    drop(slot);
}

/// Ends a connection's link when its task is dropped, as with its runtime.
struct Ending(Arc<Link>);

impl Drop for Ending {
    fn drop(&mut self) {
        // Nothing is known of the rest then, so nothing is taken for granted.
        self.0.end(true);
    }
}

impl Link {
    /// Notes the end; only the first call counts.
    fn end(&self, has_rest: bool) {
        let mut end = self.end.lock();
        if matches!(*end, End::Past { .. }) {
            return;
        }
        let before = mem::replace(&mut *end, End::Past { has_rest });
        drop(end);
        if let End::Ahead(Some(waker)) = before {
            waker.wake();
        }
    }

    /// Waits for the end. Returns true if bytes came that no answer accounts for.
    fn poll_end(&self, cx: &Context<'_>) -> Poll<bool> {
        match &mut *self.end.lock() {
            End::Past { has_rest } => Poll::Ready(*has_rest),
            End::Ahead(waiting) => {
                *waiting = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl<B> Connection<B> {
    /// Waits until hyper has finished the exchange, and has seen that nothing follows its answer. Returns whether the
    /// connection can carry another request.
    pub(super) fn poll_finished(&mut self, cx: &mut Context<'_>) -> Poll<Finished> {
        if ready!(self.sender.poll_ready(cx)).is_ok() {
            return Poll::Ready(Finished::Reusable);
        }
        let has_rest = ready!(self.link.poll_end(cx));
        Poll::Ready(if has_rest { Finished::WithRest } else { Finished::Closed })
    }
}

/// The state of a connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finished {
    Reusable,
    Closed,
    /// More came than the answer: which request it belongs to is not certain.
    WithRest,
}

#[expect(clippy::disallowed_types, reason = "the trait has the standard library's; this reads no clock")]
impl ext::Connection for Link {
    fn abort(&self) -> Option<std::time::Instant> {
        self.is_aborted.store(true, Ordering::Relaxed);
        self.cutter.cut().map(tokio::time::Instant::into_std)
    }
}
