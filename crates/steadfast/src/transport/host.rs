mod address;
mod body;
mod connection;
mod connections;
mod exchange;
mod lease;
mod pool;

use std::{
    fmt,
    future::Future,
    num::NonZeroUsize,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, Uri};
use hyper::rt;
use steadfast_call::{BoxError, Call, Class, Failure, Lane, Routes};
use steadfast_spec::BaseUrl;
use tower::ServiceExt as _;
use tower_service::Service;

pub use self::body::HostBody;
use self::{
    address::{Address, Unsendable},
    connection::Connection,
    connections::Connections,
    exchange::exchange,
    lease::Lease,
    pool::{Limits, Need},
};
use super::{
    Line,
    stamped_body::{sent_already, stamped},
};

/// Sends requests to one host, over connections that it keeps.
///
/// [`Transport::to`](crate::Transport::to) makes one with TLS and the timeouts that suit the service; a
/// [`Client`](crate::Client) uses it by itself. It speaks HTTP/1.1 by hyper's connections, without its pool of all hosts:
/// a read costs half as much, and the pool knows what an order needs.
///
/// # Example
///
/// ```
/// use bytes::Bytes;
/// use http::Request;
/// use http_body_util::Full;
/// use steadfast::{BaseUrl, BoxError, Transport, call::{Failure, Fate}};
/// use tower::ServiceExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// // Nobody listens there, so nothing of the order can have left.
/// let vacated = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
/// let base: BaseUrl = format!("http://{vacated}/v2").parse()?;
/// let order = Request::post(format!("{base}/api/oms/place-order")).body(Full::<Bytes>::from("qty=1"))?;
/// let error = Transport::new().to(&base)?.oneshot(order).await.err().ok_or("somebody listens")?;
/// assert_eq!(Failure::find(&*error).map(Failure::fate), Some(Fate::NeverLeft));
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
/// Clones share the connections.
///
/// # Cancellation
///
/// Dropping the future before the answer's head arrives ends its connection, and so does dropping the answer's body
/// before its end. The request's [`SendStamp`](crate::ext::SendStamp) still says whether any of it may have left, and
/// since when nothing more of it can arrive.
///
/// # Connections
///
/// 1. A connection carries one request at a time. It is kept only if the answer was read to its end, its length was
///    given, and nothing followed it.
/// 2. A service may close a connection that was unused for a while, at the moment at which a request leaves. Such a
///    request is in doubt. So an order, or another request that must not be sent twice, takes a connection that was
///    unused for [2 s](crate::Transport::order_idle_timeout) at most, of which the kernel has heard nothing since, or a
///    new one.
/// 3. A request that was handed to a connection which had ended before a byte of it was written goes over another one,
///    with the same permit. It is not in doubt.
/// 4. At [most](crate::Transport::max_connections) 256 connections are made. A request that finds all of them in use
///    waits for one, but a cancel makes one more.
///
/// # Answers that are not believed
///
/// These are errors, as if the answer had been lost: whether the request was executed is not known. Nothing more is sent
/// over their connection.
///
/// - An answer with both `Content-Length` and `Transfer-Encoding`.
/// - A switch to another protocol (101).
/// - An answer that more bytes follow: a second answer, or a body longer than its length. Which request it belongs to is
///   not certain. Empty lines are ignored.
pub struct HostTransport<B: Send + 'static> {
    address: Arc<Address>,
    connections: Arc<Connections<B>>,
}

// Not derived, because that would require `B: Clone`.
impl<B: Send + 'static> Clone for HostTransport<B> {
    fn clone(&self) -> Self {
        Self { address: self.address.clone(), connections: self.connections.clone() }
    }
}

/// Collects the bounds of a [`HostTransport`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds(Limits);

impl Bounds {
    pub(super) fn new(idle: Duration, order_idle: Duration, connections: NonZeroUsize) -> Self {
        Self(Limits { idle, order_idle, connections })
    }
}

impl<B> HostTransport<B>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    /// Sends to the host of `base` over connections of the caller's own, with the default bounds of a
    /// [`Transport`](crate::Transport).
    ///
    /// `connector` gets the address without a path, and has to limit its own time.
    pub fn over<C, S>(base: &BaseUrl, connector: C) -> Self
    where
        C: Service<Uri, Response = Line<S>> + Clone + Send + Sync + 'static,
        C::Future: Send,
        C::Error: Into<BoxError>,
        S: rt::Read + rt::Write + fmt::Debug + Send + Unpin + 'static,
    {
        Self::bounded(base, connector, super::Transport::new().bounds())
    }

    pub(super) fn bounded<C, S>(base: &BaseUrl, connector: C, bounds: Bounds) -> Self
    where
        C: Service<Uri, Response = Line<S>> + Clone + Send + Sync + 'static,
        C::Future: Send,
        C::Error: Into<BoxError>,
        S: rt::Read + rt::Write + fmt::Debug + Send + Unpin + 'static,
    {
        let address = Arc::new(Address::of(base));
        let target = address.uri().clone();
        let connections = Connections::new(
            bounds.0,
            Box::new(move |slot| {
                let line = connector.clone().oneshot(target.clone());
                Box::pin(async move { Connection::open(line.await.map_err(Into::into)?, slot).await })
            }),
        );
        Self { address, connections }
    }

    /// Makes sure that there is a connection which can carry an order.
    ///
    /// # Errors
    ///
    /// Why no connection could be made.
    pub async fn prewarm(&self) -> Result<(), BoxError> {
        let need = Need { is_order: true, is_urgent: false };
        Lease::take(self.connections.clone(), need).await?.give_back();
        Ok(())
    }
}

/// Response future of a [`HostTransport`].
type HostFuture<B> = Pin<Box<dyn Future<Output = Result<Response<HostBody<B>>, BoxError>> + Send>>;

impl<B> Service<Request<B>> for HostTransport<B>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<HostBody<B>>;
    type Error = BoxError;
    type Future = HostFuture<B>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> HostFuture<B> {
        let need = need_of(&request);
        if let Err(error) = self.address.prepare(&mut request) {
            return refused::<B>(error);
        }
        match stamped(request) {
            Some((request, stamp)) => Box::pin(exchange(self.connections.clone(), request, stamp, need)),
            None => Box::pin(async { Err(sent_already()) }),
        }
    }
}

fn refused<B: Send + 'static>(why: Unsendable) -> HostFuture<B> {
    Box::pin(async move { Err(Failure::refused(why).into()) })
}

fn need_of<B>(request: &Request<B>) -> Need {
    let call = Call::of(request.extensions());
    let (is_order, lane) = match call.route() {
        Some(route) => (route.class != Class::Safe, route.lane),
        // Without a stack: a look into the table of routes is not worth its time for what only reads.
        None if request.method().is_safe() => (false, Lane::Normal),
        None => {
            let route = Routes::or_shown(None, request.method(), request.uri());
            (route.class != Class::Safe, route.lane)
        }
    };
    Need { is_order, is_urgent: call.lane().unwrap_or(lane) == Lane::Critical }
}

impl<B: Send + 'static> fmt::Debug for HostTransport<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostTransport").field("address", self.address.uri()).finish_non_exhaustive()
    }
}
