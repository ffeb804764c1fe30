//! The transport: a hyper client whose errors say how far a request got. No other module knows hyper's client.
//!
//! # Order
//!
//! Innermost.
//!
//! # Clone
//!
//! Clones share the connection pool.
//!
//! # Cancellation
//!
//! Dropping the future before the answer's head arrives ends its connection. The request's [`ext::SendStamp`] still
//! says whether any of it may have left, and since when nothing more of it can arrive.
//!
//! # The end of a send
//!
//! 1. The leaf stores the connection of each request in its [`ext::SendStamp`], and [`ext::SendStamp::abort`] ends that
//!    connection. After a finished exchange it ends the connection as well, with any other request on it.
//! 2. A send that fails, is dropped, or is answered with an ambiguous length ends its connection, and [`Fate::Lost`]
//!    says when.
//! 3. A request that is given up before hyper has taken its body never leaves.
//! 4. Only connections of a [`Transport`](crate::Transport) can be ended like this, and not [through a
//!    proxy](crate::Transport#lost-answers). Over any other connector `ended` is `None`.
//!
//! # Answers that are not believed
//!
//! An answer with both `Content-Length` and `Transfer-Encoding` is an error, as if it had been lost: it is not known
//! whether the request was executed. Nothing more is sent over that connection.
//!
//! # HTTP/2
//!
//! [`Transport`](crate::Transport) does not speak it, and the service's REST interface does not need it. With an HTTP/2
//! client of the caller's own below this leaf or below the stack, three promises do not hold, because the first part of
//! a body is taken from the stack before the stream has room for it:
//!
//! - [`halt`](crate::Client::halt): an order that was let go before may leave after `halt` has returned;
//! - the [time to send](steadfast_call::Call::send_by): an order that was let go in time may leave long after that time;
//! - resends: the end of a send is not the end of its connection, so [`Fate::Lost`] says `ended: None`, and an order in
//!   doubt is looked for and never sent again.

#[cfg(feature = "reqwest")]
mod reqwest;

use std::{
    error::Error,
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Extensions, Request, Response, header};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper_util::client::legacy::{
    self, Client,
    connect::{CaptureConnection, Connect, capture_connection},
};
use pin_project_lite::pin_project;
use steadfast_call::{
    BoxError, Call, Failure, Fate,
    ext::{self, Connection as _},
};
use tokio::time::Instant;
use tower_service::Service;

#[cfg(feature = "reqwest")]
pub use self::reqwest::{ReqwestFuture, ReqwestLeaf};
use crate::transport::Cutter;

/// Sends requests over a hyper client.
///
/// [`Transport::leaf`](crate::Transport::leaf) makes one with TLS and the timeouts that suit the service.
///
/// # Example
///
/// ```
/// use bytes::Bytes;
/// use http::Request;
/// use http_body_util::Full;
/// use hyper_util::{client::legacy::Client, rt::TokioExecutor};
/// use steadfast::{BoxError, leaf::Leaf, call::{Failure, Fate}};
/// use tower::ServiceExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// let leaf = Leaf::new(Client::builder(TokioExecutor::new()).build_http());
///
/// // Nobody listens there, so nothing of the order can have left.
/// let vacated = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
/// let order = Request::post(format!("http://{vacated}/v2/api/oms/place-order"))
///     .body(Full::<Bytes>::from("symId=EQT_INFY_EQ_NSE"))?;
/// let error = leaf.oneshot(order).await.err().ok_or("somebody listens")?;
/// let fate = Failure::find(&*error).map(Failure::fate);
/// assert_eq!(fate, Some(Fate::NeverLeft));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Leaf<C, B> {
    client: Client<C, StampedBody<B>>,
}

// Not derived, because that would require `B: Clone`, which the client does not need.
impl<C: Clone, B> Clone for Leaf<C, B> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone() }
    }
}

impl<C, B> Leaf<C, B> {
    /// Sends over `client`, which must not follow redirects; hyper's never does.
    #[must_use]
    pub fn new(client: Client<C, StampedBody<B>>) -> Self {
        Self { client }
    }
}

impl<C, B> Service<Request<B>> for Leaf<C, B>
where
    C: Connect + Clone + Send + Sync + 'static,
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Incoming>;
    type Error = BoxError;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> ResponseFuture {
        // Outer layers share the stamp of the request. Without one, the leaf keeps its own.
        let shared = Call::of(request.extensions()).send().cloned();
        let is_polled = !request.body().is_end_stream();
        let stamp = if is_polled { Some(shared.unwrap_or_default()) } else { shared };
        if stamp.as_ref().is_some_and(|stamp| !stamp.take()) {
            return ResponseFuture { sent: None };
        }
        let stamp_of_body = stamp.clone().filter(|_| is_polled);
        let mut request = request.map(|body| StampedBody { body, stamp: stamp_of_body });
        let exchange = Arc::new(Exchange { connection: capture_connection(&mut request) });
        if let Some(stamp) = &stamp {
            stamp.set_connection(exchange.clone());
        }
        let send = Sending { stamp: stamp.filter(|_| is_polled), exchange, is_open: true };
        ResponseFuture { sent: Some(Sent { send, future: self.client.request(request) }) }
    }
}

/// A request and its current connection. hyper takes another one if the first was closed before anything was sent.
#[derive(Debug)]
struct Exchange {
    connection: CaptureConnection,
}

impl Exchange {
    fn is_connected(&self) -> bool {
        self.connection.connection_metadata().is_some()
    }
}

#[expect(clippy::disallowed_types, reason = "the trait has the standard library's; this reads no clock")]
impl ext::Connection for Exchange {
    fn abort(&self) -> Option<std::time::Instant> {
        let mut extras = Extensions::new();
        {
            let connection = self.connection.connection_metadata();
            let connected = connection.as_ref()?;
            connected.poison();
            connected.get_extras(&mut extras);
        }
        Some(extras.get::<Cutter>()?.cut()?.into_std())
    }
}

/// A send until its answer's head arrives. Dropped before that, it ends its connection.
#[derive(Debug)]
struct Sending {
    /// `None` for a body without content, which is never polled; the connection is the evidence then.
    stamp: Option<ext::SendStamp>,
    exchange: Arc<Exchange>,
    is_open: bool,
}

impl Sending {
    /// Ends the connection, and returns how far the request got.
    fn fail(&mut self) -> Fate {
        self.is_open = false;
        // Given up before the connection ends: its body is polled on this connection or never.
        let left = match &self.stamp {
            Some(stamp) => !stamp.give_up(),
            None => self.exchange.is_connected(),
        };
        let ended = self.exchange.abort();
        if left { Fate::Lost { ended } } else { Fate::NeverLeft }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if self.is_open {
            self.fail();
        }
    }
}

/// An answer gives its length twice.
///
/// hyper goes by the second header, an intermediary may go by the first (RFC 9112, 6.3). Then bytes are assigned to the
/// wrong answers, and neither this answer nor any later one on the connection can be trusted.
const AMBIGUOUS_LENGTH: &str = "the answer has both a content-length and a transfer-encoding";

fn has_ambiguous_length<B>(response: &Response<B>) -> bool {
    let headers = response.headers();
    headers.contains_key(header::CONTENT_LENGTH) && headers.contains_key(header::TRANSFER_ENCODING)
}

pin_project! {
    /// Response future of [`Leaf`].
    #[derive(Debug)]
    pub struct ResponseFuture {
        // `None` if another send has taken the stamp.
        #[pin]
        sent: Option<Sent>,
    }
}

pin_project! {
    #[derive(Debug)]
    struct Sent {
        // Dropped first, so that the connection has ended when hyper hears of it and is not reused.
        send: Sending,
        #[pin]
        future: legacy::ResponseFuture,
    }
}

impl Future for ResponseFuture {
    type Output = Result<Response<Incoming>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(sent) = self.project().sent.as_pin_mut() else {
            return Poll::Ready(Err(sent_already()));
        };
        let this = sent.project();
        Poll::Ready(match ready!(this.future.poll(cx)) {
            Ok(response) if has_ambiguous_length(&response) => {
                // There was an answer, so something has left.
                let ended = match this.send.fail() {
                    Fate::Lost { ended } => ended,
                    _ => None,
                };
                Err(Failure::new(Fate::Lost { ended }, AMBIGUOUS_LENGTH).into())
            }
            Ok(response) => {
                this.send.is_open = false;
                Ok(response)
            }
            Err(error) => Err(Failure::new(this.send.fail(), error).into()),
        })
    }
}

pin_project! {
    /// A request's body that stamps its first poll: the send.
    #[derive(Clone, Default)]
    pub struct StampedBody<B> {
        #[pin]
        body: B,
        // `None` without content: such a body is never polled.
        stamp: Option<ext::SendStamp>,
    }
}

impl<B> StampedBody<B> {
    /// Wraps a body with a stamp of its own.
    #[must_use]
    pub fn new(body: B) -> Self {
        Self { body, stamp: Some(ext::SendStamp::new()) }
    }
}

// The body may hold a password, for instance in a form.
impl<B> fmt::Debug for StampedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StampedBody").field("stamp", &self.stamp).finish_non_exhaustive()
    }
}

impl<B> http_body::Body for StampedBody<B>
where
    B: http_body::Body,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = self.project();
        if this.stamp.as_ref().is_some_and(|stamp| !stamp.begin(Instant::now().into_std())) {
            return Poll::Ready(Some(Err(GivenUp.into())));
        }
        this.body.poll_frame(cx).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Returns the failure of a request whose stamp another send has taken: a clone, by a layer between the stack and the
/// transport that sends again. Nothing of this one was sent, but the stamp speaks for both, so it counts as lost.
fn sent_already() -> BoxError {
    Failure::new(Fate::Lost { ended: None }, SentAlready).into()
}

#[derive(Debug)]
struct SentAlready;

impl fmt::Display for SentAlready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("request was sent already: a layer below the stack sends again")
    }
}

impl Error for SentAlready {}

/// The request was given up before its body was taken.
#[derive(Debug)]
struct GivenUp;

impl fmt::Display for GivenUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("request was given up before it was sent")
    }
}

impl Error for GivenUp {}
