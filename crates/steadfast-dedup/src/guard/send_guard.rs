use std::{
    fmt, mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use steadfast_call::{
    BoxError, Call, Class, Clocks, Failure, Fate, Moment, Outcome, Resend,
    ext::{self, Sent},
    find_cause, outcome_of_status,
};
use tokio::time::{Instant, Timeout, error::Elapsed, timeout};
use tower_layer::Layer;
use tower_service::Service;

use crate::{
    error::OrderRefused,
    guard::guarded_body::{CheckedChange, CheckedOrder, GuardedBody, Limits, SendCheck},
    journal::{Durable, JournalError, session_of},
    numbers::{AttemptNo, ReadNo, Session},
    protocol::event::Answer,
    tracker::{
        account::{Account, checking::Checked, recording::Begun},
        asker::Asker,
        halt::Halt,
        order_tracker::OrderTracker,
        ticket::{AnySession, Kind, Ticket, TicketFor},
    },
};

/// How long an order that may leave waits for its journal entry.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long a repeat after a refusal waits, with its permit, for the list that confirms the refusal.
///
/// A renewed token comes at once, and the list is read a second after the refusal.
const CHECK_PATIENCE: Duration = Duration::from_secs(2);

/// Accounts for every physical send of an order and of the reads that search for it.
///
/// The inner half of [`DedupLayer`](crate::DedupLayer), made from the same [`OrderTracker`].
///
/// 1. An attempt is opened before the request goes down, and closed with the [`Outcome`] that comes back up.
/// 2. The first poll of the body is the send. It decides whether the order is still wanted and in time; if not, the
///    body fails and no byte leaves.
/// 3. An error before that poll proves that nothing was sent, whatever the transport reports.
/// 4. An order that would be the first to leave in a new login session is refused once: its list is read first, so
///    that older orders in it are known.
/// 5. If the tracker has a [journal](crate::journal), an order goes down when its attempt is durable. If the journal
///    fails, the order is refused. If it takes longer than a second, the order is left unsent, and an outer layer
///    tries again with a new permit. So it is if the trading day of its entry is over when its body is polled.
/// 6. An order that was answered by 401 or 429 is sent again only when a valid list, read a second after that, does
///    not show it. Until then the repeat waits here, for two seconds at most, after which it is left unsent as in 5.
///    If the list shows it or cannot be read, the order is in doubt, and the repeat is refused.
/// 7. While orders are [halted](OrderTracker::halt), the first poll refuses orders and changes of orders.
/// 8. The [`SendStamp`](ext::SendStamp) in the request's [`Call`] tells the layers below when the body was polled.
///
/// # Example
///
/// ```
/// use bytes::Bytes;
/// use http::{Request, Response};
/// use http_body_util::{BodyExt, Full};
/// use steadfast_dedup::{GuardedBody, OrderTracker, SendGuardLayer, Settings};
/// use steadfast_call::{BoxError, Call};
/// use tower::{ServiceBuilder, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// let tracker = OrderTracker::new(Settings::default());
/// let service = ServiceBuilder::new()
///     .layer(SendGuardLayer::new(&tracker))
///     .service(service_fn(async |request: Request<GuardedBody<Full<Bytes>>>| {
///         let stamp = Call::of(request.extensions()).send().cloned().ok_or("no stamp")?;
///         assert!(stamp.began().is_none(), "nothing has left yet");
///         // A transport polls the body: that is the send.
///         let body = request.into_body().collect().await?.to_bytes();
///         assert!(stamp.began().is_some());
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
/// Below everything that waits or sends again (rate limits, the `Authorization` header), above the layers that
/// classify answers and time them out. A debug build panics at a wrong [order](ext::Place).
///
/// # Clone
///
/// Clones, and the services that they make, share the tracker.
///
/// # Cost
///
/// About 870 instructions and no allocation for other requests (`cargo xtask bench overhead`).
///
/// # Cancellation
///
/// A future dropped before the send closes its attempt as not sent; one dropped after it, as unknown and never to be
/// sent again.
#[derive(Clone, Debug)]
pub struct SendGuardLayer {
    tracker: OrderTracker,
}

impl SendGuardLayer {
    /// Returns a layer that writes to `tracker`.
    #[must_use]
    pub fn new(tracker: &OrderTracker) -> Self {
        Self { tracker: tracker.clone() }
    }
}

impl<S> Layer<S> for SendGuardLayer {
    type Service = SendGuard<S>;

    fn layer(&self, inner: S) -> SendGuard<S> {
        self.tracker.set_guarded();
        SendGuard {
            inner,
            salt: self.tracker.salt(),
            halt: self.tracker.switch(),
            clocks: self.tracker.settings().clocks.clone(),
        }
    }
}

/// The service that [`SendGuardLayer`] makes.
#[derive(Clone, Debug)]
pub struct SendGuard<S> {
    inner: S,
    /// The salt that sessions are hashed with, if the tracker has a journal. The tracker itself would be a cycle: it
    /// keeps the service that reads lists, and that contains this guard.
    salt: Option<[u8; 16]>,
    halt: Arc<Halt>,
    clocks: Clocks,
}

impl<S, B, RB> Service<Request<B>> for SendGuard<S>
where
    S: Service<Request<GuardedBody<B>>, Response = Response<RB>> + Clone,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Response = Response<RB>;
    type Error = BoxError;
    type Future = SendGuardFuture<S, B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        ext::Place::SendGuard.pass(request.extensions_mut());
        match awaited_check(&request) {
            None => self.send(request),
            Some(checked) => {
                let clone = self.clone();
                let guard = mem::replace(self, clone);
                let ready = Some((guard, request));
                SendGuardFuture::new(State::Checking { checked: timeout(CHECK_PATIENCE, checked), ready })
            }
        }
    }
}

impl<S> SendGuard<S> {
    /// Sends a request that has nothing left to wait for.
    fn send<B, RB>(&mut self, mut request: Request<B>) -> SendGuardFuture<S, B>
    where
        S: Service<Request<GuardedBody<B>>, Response = Response<RB>> + Clone,
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let (own, kind) = (Ticket::of(request.extensions()).is_some(), Kind::of(&request));
        // A request with nothing to poll and nothing to decide gets no stamp: it would stay blank and prove nothing.
        let polled = own || !request.body().is_end_stream() || kind == Kind::Change;
        let stamp = polled.then(ext::SendStamp::new);
        if let Some(stamp) = &stamp {
            Call::of_mut(request.extensions_mut()).set_send(stamp.clone());
        }
        let session =
            self.salt.filter(|_| !own && kind == Kind::List).map(|salt| session_of(&salt, request.headers()));
        let entered = if own { enter(&request) } else { Ok(Entered::default()) };
        let Entered { order, durable, read } = match entered {
            Ok(entered) => entered,
            Err(refusal) => {
                // The inner service was polled ready and may hold a slot for this call, which is not made. Replace it
                // by a fresh clone.
                let clone = self.inner.clone();
                drop(mem::replace(&mut self.inner, clone));
                return SendGuardFuture::new(State::Refused { refusal: Some(refusal) });
            }
        };
        let open = order.as_ref().map(|order| OpenAttempt {
            account: order.account.clone(),
            attempt: order.attempt,
            stamp: stamp.clone(),
            asker: Asker::of(request.headers()),
            closed: false,
        });
        let asker = (open.is_none() && kind == Kind::List).then(|| Asker::of(request.headers())).flatten();
        // A change without a run from the outer layer belongs to the current one.
        let run = |request: &Request<B>| request.extensions().get().copied().or_else(|| self.halt.run());
        let change =
            (kind == Kind::Change).then(|| CheckedChange { halt: self.halt.clone(), run: run(&request) });
        let checked = order.is_some() || change.is_some();
        let limits = if checked { Limits::of(request.extensions(), &self.clocks) } else { Limits::default() };
        let asked = own.then(|| self.clocks.at(Instant::now().into_std()));
        let request = request.map(|body| GuardedBody::new(body, SendCheck { limits, stamp, order, change }));
        let state = match durable {
            None => State::Sending { response: self.inner.call(request) },
            Some(durable) => {
                let clone = self.inner.clone();
                let service = mem::replace(&mut self.inner, clone);
                State::Writing { durable: timeout(PATIENCE, durable), ready: Some((service, request)) }
            }
        };
        SendGuardFuture { state, open, read, session, asker, asked }
    }
}

/// Returns the wait for the list that confirms a repeated order's refusal, if that is still due.
fn awaited_check<B>(request: &Request<B>) -> Option<Checked> {
    let ticket = Ticket::of(request.extensions())?;
    ticket.account.check(ticket.intent()?)
}

/// The facts about a request before it goes down.
#[derive(Default)]
struct Entered {
    /// The order's part of the check, if it is an order.
    order: Option<CheckedOrder>,
    /// When its journal entry is durable, if there is a journal.
    durable: Option<Durable>,
    /// The tracker's own read, if it is one.
    read: Option<OpenRead>,
}

/// A send of the tracker's own read. Dropped unanswered, it brought no list.
struct OpenRead {
    account: Arc<Account>,
    read: ReadNo,
    answered: bool,
}

impl Drop for OpenRead {
    fn drop(&mut self) {
        if !self.answered {
            self.account.turn_away_read(self.read);
        }
    }
}

/// Records what is about to be sent.
fn enter<B>(request: &Request<B>) -> Result<Entered, OrderRefused> {
    let extensions = request.extensions();
    let Some(ticket) = Ticket::of(extensions) else { return Ok(Entered::default()) };
    let session = ticket.account.session_of(request.headers(), extensions);
    match &ticket.purpose {
        TicketFor::Read(read) => {
            // Transports do not poll empty bodies, so a read starts here: too early is the safe side.
            ticket.account.start_read(*read, session);
            let read = Some(OpenRead { account: ticket.account.clone(), read: *read, answered: false });
            Ok(Entered { read, ..Entered::default() })
        }
        // Checked again at the body poll; here it saves a journal record.
        TicketFor::Order { run, .. } if !ticket.account.halt.permits(*run) => Err(OrderRefused::Halted),
        TicketFor::Order { .. }
            if extensions.get::<AnySession>().is_none() && ticket.account.meets(session, request) =>
        {
            Err(OrderRefused::NewSession)
        }
        TicketFor::Order { intent, run } => {
            // An order without an intent is not sent.
            let intent = *intent.get().ok_or(OrderRefused::NotWanted)?;
            ticket.account.check_day()?;
            let Begun { attempt, durable, written } =
                ticket.account.begin(intent, session).ok_or(OrderRefused::NotWanted)?;
            let order = Some(CheckedOrder { account: ticket.account.clone(), attempt, run: *run, written });
            Ok(Entered { order, durable, read: None })
        }
    }
}

pin_project! {
    /// The future of a [`SendGuard`].
    pub struct SendGuardFuture<S, B>
    where
        S: Service<Request<GuardedBody<B>>>,
    {
        #[pin]
        state: State<S, B, S::Future>,
        open: Option<OpenAttempt>,
        read: Option<OpenRead>,
        // The session that a caller's own list belongs to.
        session: Option<Session>,
        // Which token asked for a list.
        asker: Option<Asker>,
        // When the request was sent, to judge the `Date` of its answer.
        asked: Option<Moment>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S, B, F> {
        Refused { refusal: Option<OrderRefused> },
        // A refused order is sent again, and waits for the list that confirms the refusal.
        Checking { #[pin] checked: Timeout<Checked>, ready: Option<(SendGuard<S>, Request<B>)> },
        // The attempt's journal entry is not durable yet.
        Writing { #[pin] durable: Timeout<Durable>, ready: Option<(S, Request<GuardedBody<B>>)> },
        Sending { #[pin] response: F },
    }
}

impl<S, B> SendGuardFuture<S, B>
where
    S: Service<Request<GuardedBody<B>>>,
{
    fn new(state: State<S, B, S::Future>) -> Self {
        Self { state, open: None, read: None, session: None, asker: None, asked: None }
    }
}

impl<S, B, RB> Future for SendGuardFuture<S, B>
where
    S: Service<Request<GuardedBody<B>>, Response = Response<RB>> + Clone,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Output = Result<Response<RB>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let answer = loop {
            match this.state.as_mut().project() {
                StateProj::Refused { refusal } => {
                    let refusal = refusal.take().unwrap_or(OrderRefused::NotWanted);
                    return Poll::Ready(Err(Failure::refused(refusal).into()));
                }
                StateProj::Checking { checked, ready } => {
                    let checked = ready!(checked.poll(cx));
                    let Some((mut guard, request)) = ready.take().filter(|_| checked.is_ok()) else {
                        // The permit goes back, and another is asked for.
                        let late = Failure::new(Fate::NeverLeft, OrderRefused::RefusalUnchecked);
                        return Poll::Ready(Err(late.into()));
                    };
                    let SendGuardFuture { state, open, read, session, asker, asked } = guard.send(request);
                    (*this.open, *this.read, *this.session) = (open, read, session);
                    (*this.asker, *this.asked) = (asker, asked);
                    this.state.set(state);
                }
                StateProj::Writing { durable, ready } => {
                    let written = ready!(durable.poll(cx));
                    match (written, ready.take()) {
                        (Ok(Ok(())), Some((mut service, request))) => {
                            this.state.set(State::Sending { response: service.call(request) });
                        }
                        // The attempt closes itself: nothing was called, so nothing has left.
                        (written, _) => {
                            drop(this.open.take());
                            return Poll::Ready(Err(unwritten(written)));
                        }
                    }
                }
                StateProj::Sending { response } => break ready!(response.poll(cx)).map_err(Into::into),
            }
        };
        if let (Some(asked), Ok(response)) = (this.asked.take(), &answer)
            && response.status().is_success()
        {
            let account =
                this.open.as_ref().map(|it| &it.account).or(this.read.as_ref().map(|it| &it.account));
            if let Some(account) = account {
                account.hear_date(&asked, response.headers());
            }
        }
        if let Some(mut read) = this.read.take() {
            read.answered = answer.as_ref().is_ok_and(|response| response.status().is_success());
        }
        Poll::Ready(match (this.open.take(), answer) {
            (Some(open), answer) => open.close(answer),
            (None, Ok(mut response)) => {
                if let Some(asker) = this.asker.take() {
                    response.extensions_mut().insert(asker);
                }
                if let Some(session) = this.session.take() {
                    response.extensions_mut().insert(session);
                }
                Ok(response)
            }
            // A withheld change must not be repeated, whatever error the transport makes of it.
            (None, Err(error)) if is_halted(&error) => Err(Failure::refused(OrderRefused::Halted).into()),
            (None, Err(error)) if is_late(&error) => Err(Failure::refused(OrderRefused::SendByPassed).into()),
            (None, Err(error)) => Err(error),
        })
    }
}

/// Returns what the answer to an order proves: by its classification or, without one, by its status.
pub(crate) fn outcome_of_order<RB>(response: &Response<RB>) -> Outcome {
    let outcome = Outcome::of(response.extensions()).cloned();
    outcome.unwrap_or_else(|| outcome_of_status(Class::VerifyFirst, response.status()))
}

/// Returns the error for an order whose journal entry is not durable.
fn unwritten(written: Result<Result<(), JournalError>, Elapsed>) -> BoxError {
    match written {
        Ok(Err(error)) => Failure::refused(OrderRefused::JournalFailed(error)).into(),
        // A slow disk is no error for the caller: the permit goes back, and another is asked for.
        Err(_) => Failure::new(Fate::NeverLeft, OrderRefused::JournalSlow).into(),
        Ok(Ok(())) => Failure::refused(OrderRefused::NotWanted).into(),
    }
}

impl<S, B> fmt::Debug for SendGuardFuture<S, B>
where
    S: Service<Request<GuardedBody<B>>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendGuardFuture").field("open", &self.open.is_some()).finish_non_exhaustive()
    }
}

/// An attempt that is not closed yet. Dropping it closes it.
struct OpenAttempt {
    account: Arc<Account>,
    attempt: AttemptNo,
    /// Knows the connection that it went over.
    stamp: Option<ext::SendStamp>,
    asker: Option<Asker>,
    closed: bool,
}

impl OpenAttempt {
    fn close<RB>(mut self, answer: Result<Response<RB>, BoxError>) -> Result<Response<RB>, BoxError> {
        self.closed = true;
        match answer {
            Ok(mut response) => {
                let status = response.status();
                let mut outcome = outcome_of_order(&response);
                // Searched for in the list, like any other order without a readable identifier.
                if let (Outcome::Accepted { order_id: Some(id) }, Some(asker)) = (&outcome, &self.asker)
                    && asker.is_quoted_in(id)
                {
                    outcome = Outcome::Accepted { order_id: None };
                    Sent::of_mut(response.extensions_mut()).set_outcome(outcome.clone());
                }
                // Only a 200 has this mark: every other status is judged by itself.
                let denied = response.extensions().get::<ext::ErrorEnvelope>().is_some();
                let answer = if denied { Answer::Denied } else { Answer::Status(status.as_u16()) };
                // Not the gateway's own word: the hop that gave up must not deliver the rest of the request later.
                if !status.is_success() && outcome == (Outcome::Unknown { resend: Resend::Never }) {
                    let _ = self.end_connection();
                }
                self.account.close(self.attempt, outcome, answer);
                Ok(response)
            }
            Err(error) => {
                let fate = match Failure::find(&*error).map(Failure::fate) {
                    Some(fate @ (Fate::Answered | Fate::Lost { ended: Some(_) })) => fate,
                    _ => self.end_connection(),
                };
                let answer = match fate {
                    Fate::Answered => Answer::Cut,
                    Fate::Lost { ended: Some(_) } => Answer::Ended,
                    Fate::Lost { ended: None } | Fate::NeverLeft | Fate::Unprocessed => Answer::None,
                };
                // A timeout may find the body unpolled just before another thread polls it, so the tracker decides
                // that. A transport's own proof, such as a refused stream, holds.
                let error = match Failure::find(&*error) {
                    Some(failure) if failure.is_timeout() => Failure::timed_out(fate, error).into(),
                    _ => error,
                };
                let left = self.account.close_failed(self.attempt, Failure::outcome_of(&*error), answer);
                Err(if left { error } else { not_sent(error) })
            }
        }
    }
}

impl OpenAttempt {
    /// Ends the connection that the order left over. Returns it as lost, with the instant of the end if the transport
    /// reports it.
    fn end_connection(&self) -> Fate {
        let left = self.stamp.as_ref().filter(|stamp| stamp.began().is_some());
        Fate::Lost { ended: left.and_then(ext::SendStamp::abort) }
    }
}

impl Drop for OpenAttempt {
    // Nothing waits for the answer any more: after a panic, a runtime shutdown, or an outer timeout.
    fn drop(&mut self) {
        if self.closed {
            return;
        }
        let unknown = Outcome::Unknown { resend: Resend::Never };
        self.account.close_failed(self.attempt, unknown, Answer::None);
    }
}

fn is_late(error: &BoxError) -> bool {
    matches!(find_cause(&**error), Some(OrderRefused::SendByPassed))
}

fn is_halted(error: &BoxError) -> bool {
    matches!(find_cause(&**error), Some(OrderRefused::Halted))
}

/// Returns the error for a body that was never polled: whatever failed, nothing was sent.
fn not_sent(error: BoxError) -> BoxError {
    match find_cause(&*error) {
        Some(OrderRefused::SendByPassed) => Failure::refused(OrderRefused::SendByPassed).into(),
        Some(OrderRefused::Halted) => Failure::refused(OrderRefused::Halted).into(),
        Some(OrderRefused::TooOld) => Failure::refused(OrderRefused::TooOld).into(),
        // An outer layer tries again, with an entry of the new day.
        Some(OrderRefused::DayTurned) => Failure::new(Fate::NeverLeft, OrderRefused::DayTurned).into(),
        Some(_) => Failure::refused(OrderRefused::NotWanted).into(),
        None if Failure::outcome_of(&*error) == Outcome::NotSent => error,
        None => Failure::new(Fate::NeverLeft, error).into(),
    }
}
