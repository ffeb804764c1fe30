//! The only place that knows the transport: a hyper client whose errors say how far a request got.
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
//! Dropping the future closes or abandons its connection; the request's [`ext::SendStamp`] still tells whether any of
//! it may have left.
//!
//! # Answers that are not believed
//!
//! An answer with both `Content-Length` and `Transfer-Encoding` is an error, as if it had been lost: whether anything was
//! executed is unknown. A hyper client sends nothing more over that connection.
//!
//! # HTTP/2
//!
//! [`Transport`](crate::Transport) does not speak it, and the service's REST interface does not need it. A client of the
//! caller's own that does, below this leaf or below the stack, is outside of three promises, because the first part of a
//! body is taken from the stack before the stream has room for it:
//!
//! - [`halt`](crate::Client::halt): an order that was let go before it may leave after it has returned;
//! - [`SendBy`](ext::SendBy): so may one that was let go in time, long after that time;
//! - resends: the end of one send is not the end of its connection, so [`Fate::Lost`] says `ended: None`, and what it
//!   leaves in doubt is looked for and never sent again.

#[cfg(feature = "reqwest")]
mod reqwest;

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Request, Response, header};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper_util::client::legacy::{
    self, Client,
    connect::{CaptureConnection, Connect, capture_connection},
};
use pin_project_lite::pin_project;
use steadfast_spec::{
    BoxError, Failure, Fate,
    ext::{self, Stamp},
};
use tokio::time::Instant;
use tower_service::Service;

#[cfg(feature = "reqwest")]
pub use self::reqwest::{ReqwestFuture, ReqwestLeaf};

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
/// use steadfast::{BoxError, leaf::Leaf, spec::{Failure, Fate}};
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

// Derived, it would ask for `B: Clone`, which the client does not need.
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
        // Whoever is further out and wants to know shares the stamp; without one, the leaf keeps its own.
        let shared = || ext::SendStamp::of(request.extensions()).cloned().unwrap_or_default();
        let stamp = (!request.body().is_end_stream()).then(shared);
        let mut request = request.map(|body| StampedBody { body, stamp: stamp.clone() });
        let connection = capture_connection(&mut request);
        let evidence = Evidence { stamp, connection };
        ResponseFuture { future: self.client.request(request), evidence }
    }
}

/// What proves that nothing of a request has left.
#[derive(Debug)]
struct Evidence {
    /// `None` for a body without content: it is never polled, so there the connection is the evidence.
    stamp: Option<ext::SendStamp>,
    connection: CaptureConnection,
}

impl Evidence {
    fn fate(&self) -> Fate {
        let left = match &self.stamp {
            Some(stamp) => stamp.get().is_some(),
            None => self.connection.connection_metadata().is_some(),
        };
        if left { Fate::Lost { ended: None } } else { Fate::NeverLeft }
    }

    /// Lets nothing else be sent over the connection.
    fn discard_connection(&self) {
        if let Some(connected) = self.connection.connection_metadata().as_ref() {
            connected.poison();
        }
    }
}

/// An answer gives its length twice.
///
/// hyper goes by the second header, whoever stands between may go by the first (RFC 9112, 6.3): then the bytes belong
/// to different answers, and neither this one nor any later one on the connection is to be believed.
const AMBIGUOUS_LENGTH: &str = "the answer has both a content-length and a transfer-encoding";

fn has_ambiguous_length<B>(response: &Response<B>) -> bool {
    let headers = response.headers();
    headers.contains_key(header::CONTENT_LENGTH) && headers.contains_key(header::TRANSFER_ENCODING)
}

pin_project! {
    /// Response future of [`Leaf`].
    #[derive(Debug)]
    pub struct ResponseFuture {
        #[pin]
        future: legacy::ResponseFuture,
        evidence: Evidence,
    }
}

impl Future for ResponseFuture {
    type Output = Result<Response<Incoming>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        Poll::Ready(match ready!(this.future.poll(cx)) {
            Ok(response) if has_ambiguous_length(&response) => {
                this.evidence.discard_connection();
                Err(Failure::new(Fate::Lost { ended: None }, AMBIGUOUS_LENGTH).into())
            }
            Ok(response) => Ok(response),
            Err(error)
                if steadfast_spec::Planted::IncompleteIsNotSent.is_on()
                    && steadfast_spec::find_cause(&error)
                        .is_some_and(hyper::Error::is_incomplete_message) =>
            {
                Err(Failure::new(Fate::NeverLeft, error).into())
            }
            Err(error) => Err(Failure::new(this.evidence.fate(), error).into()),
        })
    }
}

pin_project! {
    /// A request's body that stamps its first poll: the send.
    #[derive(Clone, Default)]
    pub struct StampedBody<B> {
        #[pin]
        body: B,
        // None without content: such a body is never polled.
        stamp: Option<ext::SendStamp>,
    }
}

impl<B> StampedBody<B> {
    /// A body with a stamp of its own.
    #[must_use]
    pub fn new(body: B) -> Self {
        Self { body, stamp: Some(ext::SendStamp::new()) }
    }
}

// A form may hold a password, and the bytes of a body would show it.
impl<B> fmt::Debug for StampedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StampedBody").field("stamp", &self.stamp).finish_non_exhaustive()
    }
}

impl<B: http_body::Body> http_body::Body for StampedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = self.project();
        if let Some(stamp) = this.stamp {
            stamp.stamp(Instant::now().into_std());
        }
        this.body.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
