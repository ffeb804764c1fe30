use std::{
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

use hyper_util::client::legacy::connect::{Connected, Connection};
use steadfast_sandbox::wire::Line;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, duplex},
    runtime::Handle,
    time::{Sleep, sleep, timeout},
};

/// The capacity of the kernel's buffers.
const BUFFER: usize = 64 * 1024;

/// One end of a connection in memory, with simulated network faults.
#[derive(Debug)]
pub(crate) struct SimIo {
    /// `None` once the connection is over; the other end then sees its end too.
    inner: Option<DuplexStream>,
    /// True once the other end was reset.
    reset: Arc<AtomicBool>,
    written: Option<Budget>,
    read: Option<Budget>,
    edit: Option<Edit>,
    pace: Option<Pace>,
    /// The number of bytes read so far.
    came: usize,
    /// Until then nothing arrives.
    paused: Option<Pin<Box<Sleep>>>,
    /// From then on the other end sends nothing more.
    ends: Option<Pin<Box<Sleep>>>,
    ended: bool,
    outage: Option<Outage>,
    /// True if closing discards undelivered bytes, as with a socket that lingers for no time.
    zero_linger: bool,
}

/// A time in which nothing comes through. Bytes written during it wait in the kernel, which keeps trying after the
/// connection was closed.
#[derive(Debug)]
pub(super) struct Outage {
    /// It begins with the write that would exceed this many bytes.
    left: usize,
    lasts: Duration,
    /// Its end, once it has begun.
    over: Option<Pin<Box<Sleep>>>,
    held: Vec<u8>,
}

/// How many more bytes a connection carries in one direction, and how it ends at the next one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    left: usize,
    ends: Ends,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    /// By a reset of both directions.
    Reset,
    /// As if the sender had finished; the other direction goes on.
    Regularly,
}

/// How long the far end stays open for late bytes after the near end is gone: a gateway continues with what it has
/// read.
const ORPHANED: Duration = Duration::from_secs(60);

impl Outage {
    pub(super) fn from(bytes: usize, lasts: Duration) -> Self {
        Self { left: bytes, lasts, over: None, held: Vec::new() }
    }

    /// True while nothing comes through; the caller is woken when it is over.
    fn is_on(&mut self, cx: &mut Context<'_>) -> bool {
        self.over.as_mut().is_some_and(|over| over.as_mut().poll(cx).is_pending())
    }
}

/// A byte that arrives changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edit {
    pub(super) at: usize,
    pub(super) to: u8,
}

/// This many bytes at a time, with a pause before each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) bytes: usize,
    pub(super) pause: Duration,
}

impl Budget {
    pub(super) fn reset_after(left: usize) -> Self {
        Self { left, ends: Ends::Reset }
    }

    pub(super) fn end_after(left: usize) -> Self {
        Self { left, ends: Ends::Regularly }
    }
}

/// Creates the client's and the server's end of a new connection.
pub(crate) fn pair() -> (SimIo, SimIo) {
    let (client, server) = duplex(BUFFER);
    let reset = Arc::new(AtomicBool::new(false));
    (SimIo::new(client, reset.clone()), SimIo::new(server, reset))
}

impl SimIo {
    fn new(inner: DuplexStream, reset: Arc<AtomicBool>) -> Self {
        let (written, read, edit, pace) = (None, None, None, None);
        Self {
            inner: Some(inner),
            reset,
            written,
            read,
            edit,
            pace,
            came: 0,
            paused: None,
            ends: None,
            ended: false,
            outage: None,
            zero_linger: false,
        }
    }

    pub(super) fn writes(&mut self, budget: Budget) {
        self.written = Some(budget);
    }

    pub(super) fn reads(&mut self, budget: Budget) {
        self.read = Some(budget);
    }

    pub(super) fn edits(&mut self, edit: Edit) {
        self.edit = Some(edit);
    }

    pub(super) fn paces(&mut self, pace: Pace) {
        self.pace = Some(pace);
    }

    pub(super) fn meets(&mut self, outage: Outage) {
        self.outage = Some(outage);
    }

    /// Makes the end of the connection discard undelivered bytes, and the other end see a reset. A transport calls this
    /// after connecting; without it a connection ends gracefully.
    pub(crate) fn set_zero_linger(&mut self) {
        self.zero_linger = true;
    }

    /// Delivers the bytes held back by an outage that is over.
    fn deliver(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (Some(outage), Some(inner)) = (&mut self.outage, &mut self.inner) else {
            return Poll::Ready(Ok(()));
        };
        if outage.is_on(cx) {
            return Poll::Pending;
        }
        while !outage.held.is_empty() {
            let went = ready!(Pin::new(&mut *inner).poll_write(cx, &outage.held))?;
            outage.held.drain(..went);
        }
        if outage.over.is_some() {
            self.outage = None;
        }
        Poll::Ready(Ok(()))
    }

    /// Makes the other end send nothing more after this time, even if a request is open.
    pub(super) fn ends_after(&mut self, time: Duration) {
        self.ends = Some(Box::pin(sleep(time)));
    }

    fn break_off<T>(&mut self) -> Poll<io::Result<T>> {
        self.inner = None;
        self.reset.store(true, Ordering::Relaxed);
        Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
    }
}

impl Line for SimIo {
    fn reset(self) {
        self.reset.store(true, Ordering::Relaxed);
    }
}

impl AsyncRead for SimIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let over = |ends: &mut Pin<Box<Sleep>>| ends.as_mut().poll(cx).is_ready();
        this.ended = this.ended || this.ends.as_mut().is_some_and(over);
        if this.ended {
            return Poll::Ready(Ok(()));
        }
        ready!(this.deliver(cx))?;
        if let Some(paused) = &mut this.paused {
            ready!(paused.as_mut().poll(cx));
            this.paused = None;
        }
        let most = this.pace.map_or(usize::MAX, |pace| pace.bytes).min(buf.remaining());
        let most = this.read.map_or(most, |budget| most.min(budget.left.max(1)));
        let Some(inner) = this.inner.as_mut() else { return this.break_off() };
        let mut limited = ReadBuf::new(buf.initialize_unfilled_to(most));
        ready!(Pin::new(inner).poll_read(cx, &mut limited))?;
        let came = limited.filled().len();
        // The byte at which it ends has left the other end: the answer is lost on its way.
        match this.read {
            Some(Budget { left: 0, ends: Ends::Reset }) if came > 0 => return this.break_off(),
            Some(Budget { left: 0, ends: Ends::Regularly }) => {
                this.ended = true;
                return Poll::Ready(Ok(()));
            }
            _ => {}
        }
        if came == 0 && this.reset.load(Ordering::Relaxed) {
            return this.break_off();
        }
        if let Some(edit) = this.edit
            && let Some(byte) = edit.at.checked_sub(this.came).and_then(|at| limited.filled_mut().get_mut(at))
        {
            *byte = edit.to;
        }
        buf.advance(came);
        this.came += came;
        this.paused = this.pace.filter(|_| came > 0).map(|pace| Box::pin(sleep(pace.pause)));
        if let Some(budget) = &mut this.read {
            budget.left -= came;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for SimIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let most = this.written.map_or(usize::MAX, |budget| budget.left).min(data.len());
        if most == 0 && !data.is_empty() {
            return this.break_off();
        }
        if this.inner.is_some()
            && let Some(outage) = &mut this.outage
        {
            if outage.over.is_none() && most > outage.left {
                outage.over = Some(Box::pin(sleep(outage.lasts)));
            }
            if outage.is_on(cx) && outage.held.len() < BUFFER {
                let went = most.min(BUFFER - outage.held.len());
                outage.held.extend_from_slice(&data[..went]);
                return Poll::Ready(Ok(went));
            }
            outage.left = outage.left.saturating_sub(most);
        }
        ready!(this.deliver(cx))?;
        let Some(inner) = this.inner.as_mut() else { return this.break_off() };
        let went = ready!(Pin::new(inner).poll_write(cx, &data[..most]))?;
        if let Some(budget) = &mut this.written {
            budget.left -= went;
        }
        Poll::Ready(Ok(went))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.inner {
            Some(inner) => Pin::new(inner).poll_flush(cx),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.outage.as_ref().is_some_and(|outage| !outage.held.is_empty()) {
            // The end is sent behind the waiting bytes.
            return Poll::Ready(Ok(()));
        }
        match &mut self.inner {
            Some(inner) => Pin::new(inner).poll_shutdown(cx),
            None => Poll::Ready(Ok(())),
        }
    }
}

impl Drop for SimIo {
    fn drop(&mut self) {
        let Some(inner) = self.inner.take() else { return };
        if self.zero_linger {
            self.reset.store(true, Ordering::Relaxed);
            return;
        }
        let Some(Outage { over: Some(over), held, .. }) = self.outage.take() else { return };
        if held.is_empty() {
            return;
        }
        // Without a runtime the simulation is over.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(linger(inner, over, held));
        }
    }
}

/// Acts as a kernel for a closed socket: keeps trying to deliver the written bytes.
async fn linger(mut inner: DuplexStream, over: Pin<Box<Sleep>>, held: Vec<u8>) {
    over.await;
    if inner.write_all(&held).await.is_ok() {
        // The answer has no reader any more.
        drop(timeout(ORPHANED, inner.read_to_end(&mut Vec::new())).await);
    }
}

impl Connection for SimIo {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test]
    async fn a_write_breaks_off_at_its_byte() {
        let (mut client, mut server) = pair();
        client.writes(Budget::reset_after(5));
        let error = client.write_all(b"GET / HTTP/1.1").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        let mut came = Vec::new();
        let error = server.read_to_end(&mut came).await.unwrap_err();
        assert_eq!((came.as_slice(), error.kind()), (&b"GET /"[..], io::ErrorKind::ConnectionReset));
    }

    #[tokio::test]
    async fn an_answer_breaks_off_at_its_byte_in_a_reset_or_an_end() {
        for (budget, error) in
            [(Budget::reset_after(8), Some(io::ErrorKind::ConnectionReset)), (Budget::end_after(8), None)]
        {
            let (mut client, mut server) = pair();
            client.reads(budget);
            server.write_all(b"HTTP/1.1 200 OK").await.unwrap();
            let mut came = Vec::new();
            let ended = client.read_to_end(&mut came).await;
            assert_eq!((came.as_slice(), ended.err().map(|error| error.kind())), (&b"HTTP/1.1"[..], error));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_written_in_an_outage_arrives_when_it_is_over() {
        let (mut client, mut server) = pair();
        client.meets(Outage::from(4, Duration::from_secs(30)));
        let start = Instant::now();
        for piece in [&b"GET"[..], b" / ", b"HTTP"] {
            client.write_all(piece).await.unwrap();
        }
        let mut came = [0; 3];
        server.read_exact(&mut came).await.unwrap();
        assert_eq!((&came, start.elapsed()), (b"GET", Duration::ZERO));
        server.write_all(b"100").await.unwrap();
        let (mut rest, mut answer) = ([0; 7], [0; 3]);
        let (sent, answered) = tokio::join!(server.read_exact(&mut rest), client.read_exact(&mut answer));
        assert_eq!((sent.unwrap(), &rest), (7, b" / HTTP"));
        assert_eq!((answered.unwrap(), &answer), (3, b"100"));
        assert_eq!(start.elapsed(), Duration::from_secs(30));
    }

    #[tokio::test(start_paused = true)]
    async fn o01_bytes_left_behind_arrive_only_after_an_orderly_end() {
        for (zero_linger, arrives) in [(false, &b"GET"[..]), (true, b"")] {
            let (mut client, mut server) = pair();
            client.meets(Outage::from(0, Duration::from_secs(40)));
            if zero_linger {
                client.set_zero_linger();
            }
            client.write_all(b"GET").await.unwrap();
            drop(client);
            let start = Instant::now();
            let mut came = Vec::new();
            let ended = server.read_to_end(&mut came).await;
            assert_eq!(came, arrives);
            assert_eq!(ended.is_err(), zero_linger, "a reset");
            assert_eq!(start.elapsed() >= Duration::from_secs(40), !zero_linger);
        }
    }

    #[tokio::test]
    async fn a_half_that_ended_leaves_the_other_one() {
        let (mut client, mut server) = pair();
        client.reads(Budget::end_after(0));
        server.write_all(b"HTTP").await.unwrap();
        assert_eq!(client.read(&mut [0; 4]).await.unwrap(), 0);
        client.write_all(b"GET").await.unwrap();
        let mut came = [0; 3];
        server.read_exact(&mut came).await.unwrap();
        assert_eq!(&came, b"GET");
    }

    #[tokio::test(start_paused = true)]
    async fn a_timed_end_discards_the_bytes_not_read_yet() {
        let (mut client, mut server) = pair();
        client.ends_after(Duration::from_secs(3));
        let start = Instant::now();
        assert_eq!(client.read(&mut [0; 4]).await.unwrap(), 0);
        assert_eq!(start.elapsed(), Duration::from_secs(3));
        server.write_all(b"HTTP").await.unwrap();
        assert_eq!(client.read(&mut [0; 4]).await.unwrap(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_not_lost_before_it_is_there() {
        let (mut client, mut server) = pair();
        client.reads(Budget::reset_after(0));
        let mut piece = [0; 4];
        let waited = tokio::time::timeout(Duration::from_secs(9), client.read(&mut piece)).await;
        assert!(waited.is_err(), "nothing was sent yet");
        server.write_all(b"HTTP").await.unwrap();
        assert_eq!(client.read(&mut piece).await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    }

    #[tokio::test]
    async fn a_byte_arrives_as_another_one_and_the_rest_as_it_is() {
        let (mut client, mut server) = pair();
        client.edits(Edit { at: 3, to: b'#' });
        for piece in [&b"HT"[..], b"TP/1.1"] {
            server.write_all(piece).await.unwrap();
        }
        let mut came = [0; 8];
        client.read_exact(&mut came).await.unwrap();
        assert_eq!(&came, b"HTT#/1.1");
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_come_in_pieces_with_pauses_between_them() {
        let (mut client, mut server) = pair();
        client.paces(Pace { bytes: 2, pause: Duration::from_millis(20) });
        server.write_all(b"HTTP/1.1").await.unwrap();
        let start = Instant::now();
        let mut came = [0; 8];
        client.read_exact(&mut came).await.unwrap();
        assert_eq!((&came, start.elapsed()), (b"HTTP/1.1", Duration::from_millis(60)));
    }

    #[tokio::test]
    async fn a_server_that_resets_is_told_from_one_that_ends() {
        for resets in [true, false] {
            let (mut client, server) = pair();
            if resets {
                server.reset();
            } else {
                drop(server);
            }
            let read = client.read(&mut [0; 4]).await;
            assert_eq!(read.is_err(), resets);
        }
    }
}
