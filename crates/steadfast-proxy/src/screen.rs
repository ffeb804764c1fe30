//! A connection on which HTTP sees only heads that were admitted.

use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf, Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep, sleep_until},
};

use crate::{
    front::{Framing, HEAD_LIMIT, Head, Refusal},
    orders::Delivery,
};

/// How long a head may take from its first byte to its last.
const HEAD_PATIENCE: Duration = Duration::from_secs(10);
/// How long a connection may stand still while an answer is written.
const WRITE_PATIENCE: Duration = Duration::from_secs(30);
/// How long a closed connection is read for, so that a reset does not overtake the answer.
const LINGER: Duration = Duration::from_secs(1);
/// Stands for a refused head: nothing of that one is parsed again.
const STAND_IN: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

/// The system's knowledge of a caller's end of a connection.
pub(crate) trait Peer {
    /// True if the caller has left with a part of what was written unread, or before it was written. It asks the system
    /// itself, so that nothing that happened is missed, and only once.
    fn is_reset(&self) -> bool;
}

impl Peer for tokio::net::TcpStream {
    fn is_reset(&self) -> bool {
        shows_reset(&self.take_error())
    }
}

#[cfg(unix)]
impl Peer for tokio::net::UnixStream {
    fn is_reset(&self) -> bool {
        shows_reset(&self.take_error())
    }
}

fn shows_reset(error: &io::Result<Option<io::Error>>) -> bool {
    !matches!(error, Ok(None))
}

#[cfg(test)]
impl Peer for tokio::io::Empty {
    fn is_reset(&self) -> bool {
        false
    }
}

/// Decides about a head; the other part of the result is where the body ends.
pub(crate) type Admit<T> = Arc<dyn Fn(&[u8]) -> Result<(T, Framing), Refusal> + Send + Sync>;

/// The state that a connection shares with the service behind it.
pub(crate) struct Talk<T> {
    /// The decisions about the requests to come, in their order.
    verdicts: Mutex<VecDeque<Result<T, Refusal>>>,
    /// An order whose answer is about to be written.
    delivery: Mutex<Option<Delivery>>,
    /// The connection makes room for another one.
    is_retired: AtomicBool,
}

impl<T> Talk<T> {
    /// Returns the decision about the next request. Without one the request was never looked at.
    pub(crate) fn next(&self) -> Result<T, Refusal> {
        self.verdicts.lock().pop_front().unwrap_or(Err(Refusal::Malformed))
    }

    /// The connection ends between two requests, to make room for another one: it does not linger.
    pub(crate) fn retire(&self) {
        self.is_retired.store(true, Ordering::Relaxed);
    }

    pub(crate) fn deliver(&self, delivery: Delivery) {
        *self.delivery.lock() = Some(delivery);
    }
}

/// A connection that passes on admitted heads and their bodies. The first refused one is the last.
///
/// It decides whether the answer to an order was heard. The caller had not left when the answer began to be written, all
/// of it was written, and then one of these is seen first, without a reset of the connection:
///
/// 1. the caller ends its side, or sends more: it has read the answer,
/// 2. an equal order waits for the decision,
/// 3. the connection ends.
///
/// A connection is reset if its caller closes it with a part of the answer unread.
pub(crate) struct Screened<I: Peer, T> {
    io: I,
    admit: Admit<T>,
    talk: Arc<Talk<T>>,
    state: State,
    /// Read, and not looked at.
    raw: BytesMut,
    /// Admitted, and not passed on.
    out: Bytes,
    head_due: Option<Pin<Box<Sleep>>>,
    write_due: Option<Pin<Box<Sleep>>>,
    linger: Option<Pin<Box<Sleep>>>,
    /// An order whose answer is being written.
    leaving: Option<Delivery>,
    /// An order whose answer was written, and of which it is not decided whether it was heard.
    written: Option<Delivery>,
}

#[derive(Clone, Copy)]
enum State {
    Head,
    Body(u64),
    /// Up to the end of the connection, which follows the answer.
    Rest,
    Refused,
}

impl<I: Peer, T> Screened<I, T> {
    pub(crate) fn new(io: I, admit: Admit<T>) -> (Self, Arc<Talk<T>>) {
        let talk = Arc::new(Talk {
            verdicts: Mutex::default(),
            delivery: Mutex::default(),
            is_retired: false.into(),
        });
        let screened = Self {
            io,
            admit,
            talk: talk.clone(),
            state: State::Head,
            raw: BytesMut::new(),
            out: Bytes::new(),
            head_due: None,
            write_due: None,
            linger: None,
            leaving: None,
            written: None,
        };
        (screened, talk)
    }

    /// Moves what may be passed on from `raw` to `out`. Returns false if more must be read.
    fn advance(&mut self) -> bool {
        match self.state {
            State::Head => {
                let verdict = match Head::end(&self.raw) {
                    Ok(None) => return false,
                    Ok(Some(length)) => {
                        let head = self.raw.split_to(length).freeze();
                        (self.admit)(&head).map(|(admitted, framing)| {
                            self.out = head;
                            self.state = match framing {
                                Framing::Length(0) => State::Head,
                                Framing::Length(length) => State::Body(length),
                                Framing::Chunked => State::Rest,
                            };
                            admitted
                        })
                    }
                    Err(refusal) => Err(refusal),
                };
                self.head_due = None;
                if verdict.is_err() {
                    (self.state, self.out) = (State::Refused, Bytes::from_static(STAND_IN));
                }
                self.talk.verdicts.lock().push_back(verdict);
            }
            State::Body(left) => {
                let length = usize::try_from(left).unwrap_or(usize::MAX).min(self.raw.len());
                self.out = self.raw.split_to(length).freeze();
                let left = left - length as u64;
                self.state = if left == 0 { State::Head } else { State::Body(left) };
            }
            State::Rest => self.out = self.raw.split().freeze(),
            State::Refused => self.raw.clear(),
        }
        !self.out.is_empty()
    }

    /// Decides whether the answer that was written was heard. Dropped, the order stands.
    fn conclude(&mut self) {
        if let Some(delivery) = self.written.take()
            && !self.io.is_reset()
        {
            delivery.heard();
        }
    }
}

impl<I: Peer, T> Drop for Screened<I, T> {
    fn drop(&mut self) {
        self.conclude();
    }
}

impl<I: AsyncRead + Peer + Unpin, T> Screened<I, T> {
    /// Reads once; false at the end.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut space = [0; 8 * 1024];
        let mut space = ReadBuf::new(&mut space);
        match Pin::new(&mut self.io).poll_read(cx, &mut space) {
            Poll::Ready(Ok(())) => self.conclude(),
            Poll::Ready(Err(error)) => {
                self.written = None;
                return Poll::Ready(Err(error));
            }
            Poll::Pending => {
                if self.written.as_ref().is_some_and(Delivery::is_asked) {
                    self.conclude();
                }
                return Poll::Pending;
            }
        }
        self.raw.extend_from_slice(space.filled());
        Poll::Ready(Ok(!space.filled().is_empty()))
    }

    /// True if the caller has closed the connection, so that it hears nothing. HTTP does not look for that while a further
    /// request waits.
    fn is_left(&mut self, cx: &mut Context<'_>) -> bool {
        while self.raw.len() < HEAD_LIMIT {
            match self.poll_fill(cx) {
                // HTTP would wait for bytes that are here already.
                Poll::Ready(Ok(true)) => cx.waker().wake_by_ref(),
                Poll::Ready(Ok(false) | Err(_)) => return true,
                Poll::Pending => return false,
            }
        }
        false
    }

    /// Fails if a head has begun too long ago.
    fn poll_head_due(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if !matches!(self.state, State::Head) || self.raw.is_empty() {
            return Ok(());
        }
        let due = self.head_due.get_or_insert_with(|| Box::pin(sleep(HEAD_PATIENCE)));
        match due.as_mut().poll(cx) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl<I: AsyncRead + Peer + Unpin, T> AsyncRead for Screened<I, T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if !this.out.is_empty() {
                let length = this.out.len().min(buf.remaining());
                buf.put_slice(&this.out[..length]);
                this.out.advance(length);
                return Poll::Ready(Ok(()));
            }
            if !this.raw.is_empty() && this.advance() {
                continue;
            }
            this.poll_head_due(cx)?;
            if !ready!(this.poll_fill(cx))? {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<I: AsyncRead + AsyncWrite + Peer + Unpin, T> Screened<I, T> {
    /// Fails if a write has been pending too long.
    fn hurry<R>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<R>>) -> Poll<io::Result<R>> {
        if let Poll::Ready(result) = &written {
            self.write_due = None;
            if result.is_err() {
                (self.leaving, self.written) = (None, None);
            }
            return written;
        }
        let due = self.write_due.get_or_insert_with(|| Box::pin(sleep(WRITE_PATIENCE)));
        match due.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<I: AsyncRead + AsyncWrite + Peer + Unpin, T> AsyncWrite for Screened<I, T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let delivery = this.talk.delivery.lock().take();
        if let Some(delivery) = delivery
            && !this.is_left(cx)
        {
            this.leaving = Some(delivery);
        }
        let written = Pin::new(&mut this.io).poll_write(cx, buf);
        this.hurry(cx, written)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.io).poll_flush(cx);
        ready!(this.hurry(cx, flushed))?;
        if let Some(delivery) = this.leaving.take() {
            this.conclude();
            let is_asked = delivery.written(cx.waker());
            this.written = Some(delivery);
            if is_asked {
                this.conclude();
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.linger.is_none() {
            ready!(Pin::new(&mut this.io).poll_shutdown(cx))?;
        }
        if this.talk.is_retired.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        let linger = this.linger.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + LINGER)));
        if linger.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        while let Poll::Ready(read) = this.poll_fill(cx) {
            this.raw.clear();
            if !read.unwrap_or(false) {
                return Poll::Ready(Ok(()));
            }
        }
        Poll::Pending
    }
}

impl<I: Peer, T> fmt::Debug for Screened<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Screened").finish_non_exhaustive()
    }
}
