use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use steadfast_spec::{BoxError, Class, Failure, Fate, Outcome, Resend, ext, find_cause, outcome_of_status};
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    account::Account,
    error::OrderRefused,
    event::Answer,
    guard_body::{GuardedBody, Seal, SealedOrder},
    ledger::Ledger,
    stamp::{AttemptNo, Session},
    ticket::{Ticket, TicketFor},
};

/// Accounts for every physical send of an order and of the reads that look for it.
///
/// The inner half of [`DedupLayer`](crate::DedupLayer), made from the same [`Ledger`].
///
/// 1. An attempt is opened before the request goes down, and closed with the
///    [`Outcome`] that comes back up.
/// 2. The first poll of the body is the send. There it is decided whether the order is still wanted and in time;
///    if not, the body errors and no byte leaves.
/// 3. An error before that poll proves that nothing was sent, whatever the transport says of it.
/// 4. An order that would be the first to leave in a new login session is refused once: its list is read first, so
///    that what it holds already is known.
/// 5. [`SendStamp`](ext::SendStamp) in the request's extensions tells the layers below when the body was polled.
///
/// # Example
///
/// ```
/// use bytes::Bytes;
/// use http::{Request, Response};
/// use http_body_util::{BodyExt, Full};
/// use steadfast_dedup::{GuardedBody, Ledger, SendGuardLayer, Settings};
/// use steadfast_spec::{BoxError, ext::SendStamp};
/// use tower::{ServiceBuilder, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// let ledger = Ledger::new(Settings::default());
/// let service = ServiceBuilder::new()
///     .layer(SendGuardLayer::new(&ledger))
///     .service(service_fn(async |request: Request<GuardedBody<Full<Bytes>>>| {
///         let stamp = request.extensions().get::<SendStamp>().cloned().ok_or("no stamp")?;
///         assert!(stamp.get().is_none(), "nothing has left yet");
///         // A transport polls the body: that is the send.
///         let body = request.into_body().collect().await?.to_bytes();
///         assert!(stamp.get().is_some());
///         Ok::<_, BoxError>(Response::new(body))
///     }));
/// let request = Request::post("https://api.example/v2/api/oms/place-order").body(Full::from("qty=10"))?;
/// assert_eq!(service.oneshot(request).await?.into_body(), "qty=10");
/// # Ok(())
/// # }
/// ```
///
/// # Order
///
/// Below everything that waits or sends again (rate limits, the `Authorization` header), above whatever classifies
/// answers and times them out.
///
/// # Clone
///
/// Clones, and the services that they make, share the ledger.
///
/// # Cancellation
///
/// A future dropped before the send closes its attempt as not sent; one dropped after it closes its attempt as
/// unknown, never to be sent again.
#[derive(Clone, Debug)]
pub struct SendGuardLayer {
    ledger: Ledger,
}

impl SendGuardLayer {
    /// A layer that writes to `ledger`.
    #[must_use]
    pub fn new(ledger: &Ledger) -> Self {
        Self { ledger: ledger.clone() }
    }
}

impl<S> Layer<S> for SendGuardLayer {
    type Service = SendGuard<S>;

    fn layer(&self, inner: S) -> SendGuard<S> {
        self.ledger.set_guarded();
        SendGuard { inner }
    }
}

/// The service that [`SendGuardLayer`] makes.
#[derive(Clone, Debug)]
pub struct SendGuard<S> {
    inner: S,
}

impl<S, B, RB> Service<Request<B>> for SendGuard<S>
where
    S: Service<Request<GuardedBody<B>>, Response = Response<RB>>,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Response = Response<RB>;
    type Error = BoxError;
    type Future = SendGuardFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let stamp = ext::SendStamp::new();
        request.extensions_mut().insert(stamp.clone());
        let order = match enter(&request) {
            Ok(order) => order,
            Err(refusal) => return SendGuardFuture::refused(refusal),
        };
        let open = order.as_ref().map(|order| OpenAttempt {
            account: order.account.clone(),
            attempt: order.attempt,
            closed: false,
        });
        let request = request.map(|body| GuardedBody::new(body, Seal { stamp, order }));
        SendGuardFuture { state: State::Sending { response: self.inner.call(request) }, open }
    }
}

/// Writes down what is about to be sent; the order's half of the seal, if it is an order.
fn enter<B>(request: &Request<B>) -> Result<Option<SealedOrder>, OrderRefused> {
    let Some(ticket) = request.extensions().get::<Ticket>() else { return Ok(None) };
    let session = Session::new(request.extensions().get().copied());
    match ticket.purpose {
        TicketFor::Read(read) => {
            // Transports do not poll empty bodies, so a read starts here: too early is the safe side.
            ticket.account.start_read(read, session);
            Ok(None)
        }
        TicketFor::Order { any_session: false, .. } if ticket.account.meets(session) => {
            Err(OrderRefused::NewSession)
        }
        TicketFor::Order { intent, .. } => {
            let attempt = ticket.account.begin(intent, session).ok_or(OrderRefused::NotWanted)?;
            let send_by = request.extensions().get::<ext::SendBy>();
            let send_by = send_by.map(|send_by| Instant::from_std(send_by.0));
            Ok(Some(SealedOrder { account: ticket.account.clone(), attempt, send_by }))
        }
    }
}

pin_project! {
    /// The future of a [`SendGuard`].
    pub struct SendGuardFuture<F> {
        #[pin]
        state: State<F>,
        open: Option<OpenAttempt>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F> {
        Refused { refusal: Option<OrderRefused> },
        Sending { #[pin] response: F },
    }
}

impl<F> SendGuardFuture<F> {
    fn refused(refusal: OrderRefused) -> Self {
        Self { state: State::Refused { refusal: Some(refusal) }, open: None }
    }
}

impl<F, RB, E> Future for SendGuardFuture<F>
where
    F: Future<Output = Result<Response<RB>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Response<RB>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = match this.state.project() {
            StateProj::Refused { refusal } => {
                let refusal = refusal.take().unwrap_or(OrderRefused::NotWanted);
                return Poll::Ready(Err(Failure::refused(refusal).into()));
            }
            StateProj::Sending { response } => ready!(response.poll(cx)).map_err(Into::into),
        };
        Poll::Ready(match this.open.take() {
            Some(open) => open.close(answer),
            None => answer,
        })
    }
}

impl<F> fmt::Debug for SendGuardFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendGuardFuture").field("open", &self.open.is_some()).finish_non_exhaustive()
    }
}

/// An attempt that is not closed yet; dropped, it closes itself.
struct OpenAttempt {
    account: Arc<Account>,
    attempt: AttemptNo,
    closed: bool,
}

impl OpenAttempt {
    fn close<RB>(mut self, answer: Result<Response<RB>, BoxError>) -> Result<Response<RB>, BoxError> {
        self.closed = true;
        match answer {
            Ok(response) => {
                let status = response.status();
                let outcome = response.extensions().get::<Outcome>().cloned();
                let outcome = outcome.unwrap_or_else(|| outcome_of_status(Class::VerifyFirst, status));
                self.account.close(self.attempt, outcome, Answer::Status(status.as_u16()));
                Ok(response)
            }
            Err(error) => {
                let answered = Failure::find(&*error).is_some_and(|f| f.fate() == Fate::Answered);
                let answer = if answered { Answer::Cut } else { Answer::None };
                // A timeout may find the body unpolled a moment before another thread lets it go. The ledger has the last
                // word on that; a transport's own proof, such as a refused stream, holds.
                let error = match Failure::find(&*error) {
                    Some(failure) if failure.is_timeout() => Failure::timed_out(Fate::Lost, error).into(),
                    _ => error,
                };
                let left = self.account.close_failed(self.attempt, Failure::outcome_of(&*error), answer);
                Err(if left { error } else { not_sent(error) })
            }
        }
    }
}

impl Drop for OpenAttempt {
    // Whoever waited for the answer is gone: a panic, a runtime that shuts down, a timeout further out.
    fn drop(&mut self) {
        if self.closed {
            return;
        }
        let unknown = Outcome::Unknown { resend: Resend::Never };
        self.account.close_failed(self.attempt, unknown, Answer::None);
    }
}

/// The body was never let go, so whatever failed, nothing was sent.
fn not_sent(error: BoxError) -> BoxError {
    match find_cause(&*error) {
        Some(OrderRefused::SendByPassed) => Failure::refused(OrderRefused::SendByPassed).into(),
        Some(_) => Failure::refused(OrderRefused::NotWanted).into(),
        None if Failure::outcome_of(&*error) == Outcome::NotSent => error,
        None => Failure::new(Fate::NeverLeft, error).into(),
    }
}
