use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::client::legacy::{
    self, Client,
    connect::{Connect, capture_connection},
};
use pin_project_lite::pin_project;
use steadfast_call::{BoxError, Failure, Fate};
use tower_service::Service;

use super::{
    ambiguous_length::{AMBIGUOUS_LENGTH, has_ambiguous_length},
    exchange::{Exchange, Sending},
    stamped_body::{StampedBody, sent_already, stamped},
};

/// Sends requests over a hyper client, with errors that say how far a request got.
///
/// [`Transport::service`](crate::Transport::service) makes one with TLS and the timeouts that suit the service.
///
/// # Example
///
/// ```
/// use bytes::Bytes;
/// use http::Request;
/// use http_body_util::Full;
/// use hyper_util::{client::legacy::Client, rt::TokioExecutor};
/// use steadfast::{BoxError, HyperTransport, call::{Failure, Fate}};
/// use tower::ServiceExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// let transport = HyperTransport::new(Client::builder(TokioExecutor::new()).build_http());
///
/// // Nobody listens there, so nothing of the order can have left.
/// let vacated = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
/// let order = Request::post(format!("http://{vacated}/v2/api/oms/place-order"))
///     .body(Full::<Bytes>::from("symId=EQT_INFY_EQ_NSE"))?;
/// let error = transport.oneshot(order).await.err().ok_or("somebody listens")?;
/// let fate = Failure::find(&*error).map(Failure::fate);
/// assert_eq!(fate, Some(Fate::NeverLeft));
/// # Ok(())
/// # }
/// ```
///
/// # Order
///
/// Innermost.
///
/// # Clone
///
/// Clones share the connection pool.
///
/// # Cancellation
///
/// Dropping the future before the answer's head arrives ends its connection. The request's
/// [`SendStamp`](crate::ext::SendStamp) still says whether any of it may have left, and since when nothing more of it can
/// arrive.
///
/// # The end of a send
///
/// 1. The transport stores the connection of each request in its stamp, and
///    [`SendStamp::abort`](crate::ext::SendStamp::abort) ends that connection. After a finished exchange it ends the
///    connection as well, with any other request on it.
/// 2. A send that fails, is dropped, or is answered with an ambiguous length ends its connection, and [`Fate::Lost`]
///    says when.
/// 3. A request that is given up before hyper has taken its body never leaves.
/// 4. Only connections of a [`Transport`](crate::Transport) can be ended like this, and not [through a
///    proxy](crate::Transport#lost-answers). Over any other connector `ended` is `None`.
///
/// # Answers that are not believed
///
/// An answer with both `Content-Length` and `Transfer-Encoding` is an error, as if it had been lost: it is not known
/// whether the request was executed. Nothing more is sent over that connection.
///
/// # HTTP/2
///
/// [`Transport`](crate::Transport) does not speak it, and the service's REST interface does not need it. With an HTTP/2
/// client of the caller's own below this service or below the stack, three promises do not hold, because the first part
/// of a body is taken from the stack before the stream has room for it:
///
/// - [`halt`](crate::Client::halt): an order that was let go before may leave after `halt` has returned;
/// - the [time to send](steadfast_call::Call::send_by): an order that was let go in time may leave long after that time;
/// - resends: the end of a send is not the end of its connection, so [`Fate::Lost`] says `ended: None`, and an order in
///   doubt is looked for and never sent again.
#[derive(Debug)]
pub struct HyperTransport<C, B> {
    client: Client<C, StampedBody<B>>,
}

// Not derived, because that would require `B: Clone`, which the client does not need.
impl<C: Clone, B> Clone for HyperTransport<C, B> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone() }
    }
}

impl<C, B> HyperTransport<C, B> {
    /// Sends over `client`, which must not follow redirects; hyper's never does.
    #[must_use]
    pub fn new(client: Client<C, StampedBody<B>>) -> Self {
        Self { client }
    }
}

impl<C, B> Service<Request<B>> for HyperTransport<C, B>
where
    C: Connect + Clone + Send + Sync + 'static,
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Incoming>;
    type Error = BoxError;
    type Future = HyperFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> HyperFuture {
        let Some((mut request, stamp)) = stamped(request) else { return HyperFuture { sent: None } };
        let is_polled = !http_body::Body::is_end_stream(request.body());
        let exchange = Arc::new(Exchange::new(capture_connection(&mut request)));
        if let Some(stamp) = &stamp {
            stamp.set_connection(exchange.clone());
        }
        let send = Sending::new(stamp.filter(|_| is_polled), exchange);
        HyperFuture { sent: Some(Sent { send, future: self.client.request(request) }) }
    }
}

pin_project! {
    /// The future of a [`HyperTransport`].
    #[derive(Debug)]
    pub struct HyperFuture {
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

impl Future for HyperFuture {
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
                this.send.answered();
                Ok(response)
            }
            Err(error) => Err(Failure::new(this.send.fail(), error).into()),
        })
    }
}
