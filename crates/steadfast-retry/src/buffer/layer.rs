use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Request, request};
use http_body::Body;
use pin_project_lite::pin_project;
use steadfast_call::{BoxError, Failure};
use tower_layer::Layer;
use tower_service::Service;

use crate::{buffer::buffered_body::BufferedBody, collect::Collecting};

/// How much of a request's body is held in memory by default: 64 KiB.
const BUFFER_LIMIT: usize = 64 * 1024;

/// Reads the bodies of requests before they are sent, so that they can be sent again.
///
/// A body up to the limit is passed on whole and can be replayed. A longer one is passed on as a stream and sent
/// once. If a body fails while it is read, the request is refused: nothing of it has left.
///
/// # Example
///
/// ```
/// use bytes::Bytes;
/// use http::{Request, Response};
/// use http_body_util::{BodyExt, Full, combinators::BoxBody};
/// use steadfast_retry::{BufferBodyLayer, BufferedBody, RetryPolicy};
/// use steadfast_call::Call;
/// use tower::{BoxError, ServiceBuilder, ServiceExt, service_fn};
///
/// type Upload = BoxBody<Bytes, BoxError>;
///
/// // Fails the first time, and answers with what it was sent the second time.
/// async fn flaky(request: Request<BufferedBody<Upload>>) -> Result<Response<Full<Bytes>>, BoxError> {
///     let status = if Call::of(request.extensions()).repeats() > 0 { 200 } else { 500 };
///     let echo = request.into_body().collect().await?.to_bytes();
///     Ok(Response::builder().status(status).body(Full::from(echo))?)
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), BoxError> {
/// let service = ServiceBuilder::new()
///     .layer(BufferBodyLayer::new()) // a boxed body cannot be cloned; what comes out can be replayed
///     .layer(RetryPolicy::default().layer())
///     .service(service_fn(flaky));
///
/// let upload: Upload = Full::from("symId=x").map_err(BoxError::from).boxed();
/// let margin = Request::post("https://host/v2/api/oms/basket-margin").body(upload)?;
/// let response = service.oneshot(margin).await?;
/// assert_eq!(response.status(), 200);
/// assert_eq!(response.into_body().collect().await?.to_bytes(), "symId=x");
/// # Ok(())
/// # }
/// ```
///
/// # Order
///
/// Outside [`RetryPolicy`](crate::RetryPolicy).
///
/// # Clone
///
/// Clones share nothing. The service is always ready. Each call waits for a clone of the inner service once its body
/// is read, so a slow upload occupies nothing that other calls need.
///
/// # Cancellation
///
/// Dropping the future before the inner service is called drops the request; nothing has been sent.
#[derive(Clone, Copy, Debug)]
pub struct BufferBodyLayer {
    limit: usize,
}

impl BufferBodyLayer {
    /// Makes a layer that holds bodies up to 64 KiB.
    #[must_use]
    pub const fn new() -> Self {
        Self { limit: BUFFER_LIMIT }
    }

    /// Sets the limit in bytes.
    #[must_use]
    pub const fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }
}

impl Default for BufferBodyLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Layer<S> for BufferBodyLayer {
    type Service = BufferBody<S>;

    fn layer(&self, inner: S) -> Self::Service {
        BufferBody { inner, limit: self.limit }
    }
}

/// The service that [`BufferBodyLayer`] builds.
#[derive(Clone, Copy, Debug)]
pub struct BufferBody<S> {
    inner: S,
    limit: usize,
}

impl<S, B> Service<Request<B>> for BufferBody<S>
where
    S: Service<Request<BufferedBody<B>>> + Clone,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S, S::Future, B>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (head, body) = request.into_parts();
        let state = State::Buffering { head: Some(head), body: Some(Collecting::new(body, self.limit)) };
        ResponseFuture { inner: self.inner.clone(), state }
    }
}

pin_project! {
    /// The future of a [`BufferBody`] service.
    pub struct ResponseFuture<S, F, B> {
        inner: S,
        #[pin]
        state: State<F, B>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F, B> {
        Buffering { head: Option<request::Parts>, body: Option<Collecting<B>> },
        Waiting { request: Option<Request<BufferedBody<B>>> },
        Called { #[pin] future: F },
    }
}

impl<S, B> Future for ResponseFuture<S, S::Future, B>
where
    S: Service<Request<BufferedBody<B>>>,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Output = Result<S::Response, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match this.state.as_mut().project() {
                StateProj::Buffering { head, body } => {
                    let Some(collecting) = body else { return Poll::Pending };
                    let end = ready!(collecting.poll(cx));
                    let (Some(head), Some(collected)) = (head.take(), body.take()) else {
                        return Poll::Pending;
                    };
                    // ## Buffering => Refused
                    //
                    // The caller's body failed before anything was sent, and would fail again.
                    let body = BufferedBody::new(collected, end).map_err(Failure::refused)?;
                    let request = Some(Request::from_parts(head, body));
                    this.state.set(State::Waiting { request });
                }
                StateProj::Waiting { request } => {
                    ready!(this.inner.poll_ready(cx)).map_err(Into::into)?;
                    let Some(request) = request.take() else { return Poll::Pending };
                    this.state.set(State::Called { future: this.inner.call(request) });
                }
                StateProj::Called { future } => return future.poll(cx).map_err(Into::into),
            }
        }
    }
}

impl<S, F, B> fmt::Debug for ResponseFuture<S, F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
