use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderName, Request, Response, response};
use http_body::Body;
use pin_project_lite::pin_project;
use steadfast_call::{
    BoxError, Outcome, Peek, Resend, Routes,
    ext::{self, Sent},
    outcome_of,
};
use steadfast_spec::Endpoint;
use tower_layer::Layer;
use tower_service::Service;
use tracing::Span;

use crate::{
    classify::{
        peek::{PEEK_LIMIT, decides_by_body, judge},
        peeked_body::PeekedBody,
        span,
    },
    collect::Collecting,
};

/// Writes what every answer proves into its extensions.
///
/// The [`Outcome`] of an answer depends on its body in these cases alone:
///
/// - a 400, whose text says whether it is definite;
/// - the 200 of a place-order, which counts only with a readable order id;
/// - another 4xx to a request that [moves money](steadfast_spec::Endpoint::moves_money) (an order, a change, a special
///   order, an exit, a conversion), which is the gateway's own word only with the text that §7 documents;
/// - a 5xx of a place-order, for the same reason.
///
/// Then up to [`PEEK_LIMIT`](crate::PEEK_LIMIT) bytes are read. The body is passed on as it came, as a [`PeekedBody`].
/// If a body is cut, fails or is longer, the outcome is unknown for good.
///
/// It is also unknown for good if the answer is no success and has the header `retry-safe: false`. A sidecar sends it
/// when it has searched for the order itself, so that its own 504 is not taken for the gateway's.
///
/// Errors pass unchanged. Their outcome is [`Failure::outcome_of`](steadfast_call::Failure::outcome_of).
///
/// Each send has a span of its own, `send`. Its fields are those of OpenTelemetry's conventions for an HTTP client,
/// and `steadfast.endpoint` and `steadfast.outcome`. It contains no path, query, header or body. The path's template
/// and the count of sends come from the call's [`Sends`](crate::Sends).
///
/// # Example
///
/// ```
/// use http_body_util::{BodyExt, Full};
/// use steadfast_retry::ClassifyLayer;
/// use steadfast_call::Outcome;
/// use tower::{BoxError, ServiceBuilder, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// let transport = service_fn(|_: http::Request<Full<bytes::Bytes>>| async {
///     let body = r#"{"s":"ok","d":{"orderId":"7","msg":"placed"}}"#;
///     Ok::<_, BoxError>(http::Response::new(Full::from(body)))
/// });
/// let service = ServiceBuilder::new().layer(ClassifyLayer::new()).service(transport);
///
/// let order = http::Request::post("https://host/v2/api/oms/place-order").body(Full::default())?;
/// let response = service.oneshot(order).await?;
/// assert_eq!(Outcome::of(response.extensions()), Some(&Outcome::Accepted { order_id: Some("7".into()) }));
/// // The caller still reads the whole body.
/// assert!(response.into_body().collect().await?.to_bytes().ends_with(b"}}"));
/// # Ok(())
/// # }
/// ```
///
/// # Order
///
/// Outside [`AttemptTimeout`](crate::AttemptTimeout), which bounds the time for reading. Without it, a stalled body
/// blocks the call. Inside every layer that acts on an outcome, so that each send has its own. A debug build panics
/// at a wrong [order](ext::Place).
///
/// # Clone
///
/// Clones share nothing.
///
/// # Cost
///
/// About 1,400 instructions and three allocations for a call that succeeds (`cargo xtask bench overhead`). All three
/// are for the answer's stamps.
///
/// # Cancellation
///
/// Dropping the future drops the request or the half-read answer with it; nothing is left behind.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ClassifyLayer {}

impl ClassifyLayer {
    /// Makes a layer that classifies by the service's table.
    #[must_use]
    pub const fn new() -> Self {
        Self {}
    }
}

impl<S> Layer<S> for ClassifyLayer {
    type Service = Classify<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Classify::new(inner)
    }
}

/// The service that [`ClassifyLayer`] builds.
#[derive(Clone, Copy, Debug)]
pub struct Classify<S> {
    inner: S,
}

impl<S> Classify<S> {
    /// Classifies the answers of `inner`.
    pub const fn new(inner: S) -> Self {
        Self { inner }
    }
}

impl<S, B, R> Service<Request<B>> for Classify<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Error: Into<BoxError>,
    R: Body<Data = Bytes> + Unpin,
{
    type Response = Response<PeekedBody<R>>;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        ext::Place::Classify.pass(request.extensions_mut());
        let endpoint = Routes::of(&request).endpoint;
        let span = span::of_send(endpoint, &request);
        let inner = span.in_scope(|| self.inner.call(request));
        ResponseFuture { state: State::Sending { inner }, endpoint, span }
    }
}

pin_project! {
    /// The future of a [`Classify`] service.
    pub struct ResponseFuture<F, R> {
        #[pin]
        state: State<F, R>,
        endpoint: Option<Endpoint>,
        span: Span,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F, R> {
        Sending { #[pin] inner: F },
        // The answer's body decides; `None` once it has.
        Peeking { answer: Option<(response::Parts, Collecting<R>)> },
    }
}

impl<F, R, E> Future for ResponseFuture<F, R>
where
    F: Future<Output = Result<Response<R>, E>>,
    E: Into<BoxError>,
    R: Body<Data = Bytes> + Unpin,
{
    type Output = Result<Response<PeekedBody<R>>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let _entered = this.span.enter();
        if let StateProj::Sending { inner } = this.state.as_mut().project() {
            let response = ready!(inner.poll(cx)).map_err(Into::into);
            let (head, body) =
                response.inspect_err(|error| span::record_error(this.span, error))?.into_parts();
            if !decides_by_body(*this.endpoint, head.status) {
                let outcome = outcome_of(*this.endpoint, head.status, Peek::NotRead);
                return Poll::Ready(Ok(answer(this.span, head, outcome, PeekedBody::new(body))));
            }
            this.state.set(State::Peeking { answer: Some((head, Collecting::new(body, PEEK_LIMIT))) });
        }
        let StateProj::Peeking { answer: peeked } = this.state.project() else { return Poll::Pending };
        let Some((_, peeking)) = peeked else { return Poll::Pending };
        let end = ready!(peeking.poll(cx));
        let Some((mut head, collected)) = peeked.take() else { return Poll::Pending };
        let (outcome, denied, body) = judge(*this.endpoint, head.status, collected, end);
        if denied {
            head.extensions.insert(ext::ErrorEnvelope);
        }
        Poll::Ready(Ok(answer(this.span, head, outcome, body)))
    }
}

/// The header by which a sidecar forbids to send a request again.
const RETRY_SAFE: HeaderName = HeaderName::from_static("retry-safe");

fn answer<R>(span: &Span, mut head: response::Parts, outcome: Outcome, body: R) -> Response<R> {
    let is_forbidden = || head.headers.get(RETRY_SAFE).is_some_and(|safe| safe == "false");
    let outcome = match outcome {
        Outcome::Accepted { .. } => outcome,
        _ if is_forbidden() => Outcome::Unknown { resend: Resend::Never },
        outcome => outcome,
    };
    span::record_answer(span, head.status, &outcome);
    Sent::of_mut(&mut head.extensions).set_outcome(outcome);
    Response::from_parts(head, body)
}

impl<F, R> fmt::Debug for ResponseFuture<F, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}
