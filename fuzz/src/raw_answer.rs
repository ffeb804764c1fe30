use std::{
    future::{Ready, ready},
    io,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use http::Uri;
use hyper_util::{
    client::legacy::Client as HyperClient,
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use steadfast::{
    Access, BaseUrl, Client, ErrorKind, HostTransport, HyperTransport, Line, OrderRequest, OrderType, Product, Side,
    Validity,
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tower::Service;

/// The order list of a gateway that has placed nothing.
const EMPTY_LIST: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 31\r\n\r\n{\"s\":\"no-data\",\"msg\":\"no-data\"}\n";

/// Answers a place-order with the raw bytes of an input, then closes the connection; the order list stays empty.
///
/// The request goes through the whole client, over hyper and a pipe in memory.
///
/// # Panics
///
/// If the client makes up an order, sends one again that may have been accepted, or takes an unreadable answer for an
/// answer.
pub fn raw_answer(data: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        place_one(data, true).await;
        place_one(data, false).await;
    });
}

async fn place_one(answer: &[u8], over_hyper_util: bool) {
    let wire = Wire { answer: Arc::from(answer), posts: Arc::default() };
    let hyper = HyperClient::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .timer(TokioTimer::new())
        .http1_max_headers(100)
        .http1_max_buf_size(128 * 1024)
        .build(wire.clone());
    let access = Access::token("the-api-key", "the-access-token").expect("an access");
    let base: BaseUrl = "http://localhost/v2".parse().expect("a base");
    let builder = Client::builder(base.clone(), access);
    let client = if over_hyper_util {
        builder.build_over(HyperTransport::new(hyper)).expect("a client")
    } else {
        builder.build_over(HostTransport::over(&base, wire.clone())).expect("a client")
    };
    let placed = client.place_order(&order()).await;
    let posts = *wire.posts.lock().expect("nobody panics");
    let status = status(answer);
    match &placed {
        Ok(placed) => {
            assert_eq!(status, Some(200), "a success from {status:?}");
            assert!(appears(answer, &placed.order_id), "an order from nowhere: {}", placed.order_id);
            assert_eq!(posts, 1, "an accepted order was sent again");
        }
        Err(error) => {
            // The gateway has read the whole request, so nothing was "not sent".
            assert_ne!(error.kind(), ErrorKind::Unreachable);
            if error.kind() == ErrorKind::Rejected {
                assert!(matches!(status, Some(400 | 403..=405 | 415)), "a rejection from {status:?}");
            }
        }
    }
    // An answer that hyper cannot read counts as none: the order is looked for and never sent again, because this
    // transport does not say when its connections end.
    match placed.err().and_then(|error| error.status()).map(|status| status.as_u16()).or(status) {
        // The answer says that nothing was executed, or is the gateway's own error: repeated once a list agrees.
        Some(429) => assert!(posts <= 5),
        Some(400 | 401 | 500..) => assert!(posts <= 2),
        _ => assert_eq!(posts, 1, "sent again after {status:?}"),
    }
    assert_eq!(client.in_doubt(), 0, "the list was read to the end");
}

fn order() -> OrderRequest {
    let order = OrderRequest::builder().sym_id("EQT_INFY_EQ_NSE".parse().expect("an instrument")).qty(10);
    let order = order.side(Side::Buy).order_type(OrderType::Limit).limit_price(100);
    order.product(Product::Delivery).validity(Validity::Day).build().expect("an order")
}

/// Returns the status of the first answer that is not informational, if an HTTP/1 reader could accept it.
fn status(mut answer: &[u8]) -> Option<u16> {
    loop {
        let line = answer.strip_prefix(b"HTTP/1.1 ").or_else(|| answer.strip_prefix(b"HTTP/1.0 "))?;
        let digits = line.get(..3).filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
        let status = std::str::from_utf8(digits).ok()?.parse().ok()?;
        if status >= 200 {
            return Some(status);
        }
        let next = line.windows(7).position(|piece| piece == b"HTTP/1.")?;
        answer = &line[next..];
    }
}

fn appears(answer: &[u8], order_id: &str) -> bool {
    // The text of an id with escapes differs from its value.
    order_id.contains(|c: char| !c.is_ascii_alphanumeric())
        || answer.contains(&b'\\')
        || answer.windows(order_id.len()).any(|piece| piece == order_id.as_bytes())
}

/// Makes connections to a gateway in memory.
#[derive(Clone)]
struct Wire {
    answer: Arc<[u8]>,
    posts: Arc<Mutex<usize>>,
}

impl Wire {
    async fn serve(self, stream: DuplexStream) -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        loop {
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let start = head.len();
                if stream.read_line(&mut head).await? == 0 {
                    return Ok(());
                }
                let line = head[start..].to_ascii_lowercase();
                if let Some(value) = line.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap_or_default();
                }
                if line == "\r\n" {
                    break;
                }
            }
            stream.read_exact(&mut vec![0; length]).await?;
            if !head.starts_with("POST") {
                stream.write_all(EMPTY_LIST).await?;
                continue;
            }
            *self.posts.lock().expect("nobody panics") += 1;
            stream.write_all(&self.answer).await?;
            return stream.shutdown().await;
        }
    }
}

impl Service<Uri> for Wire {
    type Response = Line<TokioIo<DuplexStream>>;
    type Error = io::Error;
    type Future = Ready<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let (near, far) = duplex(64 * 1024);
        tokio::spawn(self.clone().serve(far));
        // The end of a connection is not known: an order whose answer is lost is never sent again.
        ready(Ok(Line::over(TokioIo::new(near), false)))
    }
}
