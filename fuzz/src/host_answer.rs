use std::{
    future::{Ready, ready},
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioIo},
};
use steadfast::{
    BaseUrl, BoxError, HostTransport, HyperTransport, Line,
    call::{Failure, Fate},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex},
    task::yield_now,
    time::timeout,
};
use tower::{Service, ServiceExt};

const BASE: &str = "http://localhost/v2";
const SECOND: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecond";

/// Answers the first request with the raw bytes of an input and all later ones properly, over the transport to one host.
///
/// The first byte of the input says how: whether the peer speaks before the request came, in two pieces, and closes
/// afterwards, and whether the request is an order.
///
/// # Panics
///
/// If a later request is given anything of the raw bytes, if an answer is believed that hyper's client does not
/// believe, or if a request that the peer has read is said not to have left.
pub fn host_answer(data: &[u8]) {
    let Some((mode, answer)) = data.split_first() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let peer = Peer::new(*mode, answer);
        let base: BaseUrl = BASE.parse().expect("a base");
        let host = HostTransport::over(&base, peer.clone());
        let first = whole(host.clone(), peer.first()).await;
        let heard = peer.heard.load(Ordering::Relaxed);
        let second = whole(host, read()).await;
        if let Ok((status, body)) = &second {
            assert_eq!((status.as_u16(), &body[..]), (200, &b"second"[..]), "an answer of the first request");
        }
        match &first {
            Ok((status, _)) => assert!(status.as_u16() >= 200 && heard > 0, "an answer to nothing"),
            Err(error) => match Failure::find(&**error).map(Failure::fate) {
                Some(Fate::NeverLeft) => assert_eq!(heard, 0, "it was read: {error}"),
                Some(Fate::Lost { ended }) => assert!(ended.is_some(), "its end is known: {error}"),
                _ => {}
            },
        }
        // hyper's own client is given the same.
        let peer = Peer::new(*mode, answer);
        let mut builder = Client::builder(TokioExecutor::new());
        builder.http1_max_headers(100).http1_max_buf_size(128 * 1024);
        let hyper = HyperTransport::new(builder.build(peer.clone()));
        if let (Ok(believed), false) = (&first, peer.speaks_first) {
            let known = whole(hyper, peer.first()).await.expect("hyper believes it too");
            assert_eq!(*believed, known);
        }
    });
}

type Answer = Result<(StatusCode, Bytes), BoxError>;

async fn whole<S, B>(service: S, request: Request<Full<Bytes>>) -> Answer
where
    S: Service<Request<Full<Bytes>>, Response = http::Response<B>, Error = BoxError>,
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let answer = async {
        let (head, body) = service.oneshot(request).await?.into_parts();
        Ok((head.status, body.collect().await.map_err(Into::into)?.to_bytes()))
    };
    timeout(Duration::from_secs(60), answer).await.unwrap_or_else(|late| Err(late.into()))
}

fn read() -> Request<Full<Bytes>> {
    Request::get(format!("{BASE}/api/oms/orders")).body(Full::default()).expect("a read")
}

/// Makes connections to a peer in memory. Only the first one gives the raw bytes.
#[derive(Clone)]
struct Peer {
    answer: Arc<[u8]>,
    closes: bool,
    speaks_first: bool,
    in_pieces: bool,
    is_order: bool,
    dialed: Arc<AtomicUsize>,
    /// How many requests were read to their end.
    heard: Arc<AtomicUsize>,
}

impl Peer {
    fn new(mode: u8, answer: &[u8]) -> Self {
        Self {
            answer: answer.into(),
            closes: mode & 1 != 0,
            speaks_first: mode & 2 != 0,
            in_pieces: mode & 4 != 0,
            is_order: mode & 8 != 0,
            dialed: Arc::default(),
            heard: Arc::default(),
        }
    }

    fn first(&self) -> Request<Full<Bytes>> {
        if !self.is_order {
            return read();
        }
        let order = Request::post(format!("{BASE}/api/oms/place-order"));
        order.body(Full::from("qty=1")).expect("an order")
    }

    async fn serve(self, stream: DuplexStream, is_first: bool) -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        if is_first {
            if !self.speaks_first {
                self.hear(&mut stream).await?;
            }
            let half = if self.in_pieces { self.answer.len() / 2 } else { 0 };
            let (one, other) = self.answer.split_at(half);
            for piece in [one, other] {
                stream.write_all(piece).await?;
                yield_now().await;
            }
            if self.closes {
                return stream.shutdown().await;
            }
        }
        loop {
            self.hear(&mut stream).await?;
            stream.write_all(SECOND).await?;
        }
    }

    async fn hear(&self, stream: &mut BufReader<DuplexStream>) -> io::Result<()> {
        let (mut line, mut length) = (String::new(), 0);
        while line != "\r\n" {
            line.clear();
            if stream.read_line(&mut line).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or_default();
            }
        }
        stream.read_exact(&mut vec![0; length]).await?;
        self.heard.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

impl Service<Uri> for Peer {
    type Response = Line<TokioIo<DuplexStream>>;
    type Error = io::Error;
    type Future = Ready<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let (near, far) = duplex(256 * 1024);
        let is_first = self.dialed.fetch_add(1, Ordering::Relaxed) == 0;
        tokio::spawn(self.clone().serve(far, is_first));
        ready(Ok(Line::over(TokioIo::new(near), true)))
    }
}
