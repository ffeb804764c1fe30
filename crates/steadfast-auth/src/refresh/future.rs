use std::{
    fmt,
    future::Future,
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::{Request, Response, StatusCode};
use pin_project_lite::pin_project;
use steadfast_call::{
    BoxError, Failure, Outcome, Spare,
    ext::{DoNotRetry, Sent, TokenGeneration},
};
use tokio::{
    sync::oneshot,
    time::{Instant, Sleep, sleep_until},
};
use tower_service::Service;

use crate::{
    destination::RefusedHeader,
    error::{AuthError, AuthErrorKind, Unrenewed},
    token::{Admitted, Ended, Refused, TokenSource},
};

pin_project! {
    /// The response future of [`Refresh`](crate::Refresh).
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<S, B, ResBody>
    where
        S: Service<Request<B>>,
    {
        #[pin]
        state: State<S::Future>,
        call: Call<S, B, ResBody>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F> {
        Preparing { #[pin] step: Step },
        Calling { #[pin] future: F },
    }
}

pin_project! {
    /// The steps before a send. They are apart from it, because its future is larger than any of these, and each change of
    /// step would move it.
    #[project = StepProj]
    enum Step {
        // The source has not been asked for a token yet.
        Admitting,
        // A login is under way. The request has not been sent, or has been refused.
        Waiting { ended: oneshot::Receiver<Ended>, #[pin] limit: Option<Sleep> },
        // The login was interrupted. The next one may start at `until`, or earlier on request.
        Resting { ended: oneshot::Receiver<Ended>, #[pin] until: Sleep },
        // The token may not be known everywhere yet.
        Pausing { #[pin] pause: Sleep },
        Ready,
    }
}

/// State that stays the same over all sends of the call.
struct Call<S, B, ResBody> {
    inner: S,
    source: TokenSource,
    request: Held<B>,
    needs_token: bool,
    // True for a cancel: it waits for no login while there is a token that it can try.
    tries_held: bool,
    // False for requests that may have been executed in spite of the 401 and appear in no list.
    replays: bool,
    limit: Option<Instant>,
    // The last 401 and the generation of the token it refused, kept while a further send is prepared. Boxed, because it
    // is rare and large.
    refused: Option<Box<(Response<ResBody>, TokenGeneration)>>,
    // The token that the service refused first.
    first: Option<TokenGeneration>,
    // How often the request was sent again after a 401.
    resent: u8,
    // How often the token was withdrawn between this layer and AuthHeader.
    overtaken: u8,
}

/// The facts about a request that decide how it is treated.
pub(super) struct Asked {
    pub(super) needs_token: bool,
    pub(super) tries_held: bool,
    pub(super) replays: bool,
}

/// How often a token may be withdrawn while the request waits for its permit before the caller gets the error.
const MOST_OVERTAKEN: u8 = 3;
/// Once with the token of another login, once more when that is known everywhere, and once with a token that came
/// meanwhile.
const MOST_RESENT: u8 = 3;

impl<S, B, ResBody> ResponseFuture<S, B, ResBody>
where
    S: Service<Request<B>, Response = Response<ResBody>>,
{
    /// `needs_token`: the request waits for a token, until `limit` at most. `tries_held`: it leaves with one that is in doubt
    /// before it waits. `replays`: it may be sent again after a 401.
    pub(super) fn new(
        inner: S,
        source: TokenSource,
        request: Request<B>,
        Asked { needs_token, tries_held, replays }: Asked,
        limit: Option<Instant>,
    ) -> Self {
        let step = if needs_token { Step::Admitting } else { Step::Ready };
        let call = Call {
            inner,
            source,
            request: Held::Whole(request),
            needs_token,
            tries_held,
            replays,
            limit,
            refused: None,
            first: None,
            resent: 0,
            overtaken: 0,
        };
        Self { state: State::Preparing { step }, call }
    }
}

impl<S, B, ResBody> Future for ResponseFuture<S, B, ResBody>
where
    S: Service<Request<B>, Response = Response<ResBody>>,
    S::Error: Into<BoxError>,
    B: Clone,
{
    type Output = Result<Response<ResBody>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let call = this.call;
        loop {
            match this.state.as_mut().project() {
                // ## Preparing => Calling
                //
                // The clone that was polled ready is the one that is called.
                StateProj::Preparing { step } => {
                    if let Err(output) = ready!(call.poll_prepared(step, cx)) {
                        return Poll::Ready(output);
                    }
                    ready!(call.inner.poll_ready(cx)).map_err(Into::into)?;
                    let Held::Whole(request) = mem::replace(&mut call.request, Held::Nothing) else {
                        return Poll::Ready(Err("polled after completion".into()));
                    };
                    // A given token has no successor to send again with.
                    if call.needs_token && call.resent < MOST_RESENT && !call.source.is_given() {
                        call.request =
                            Held::Spare(Second { head: Spare::of(&request), body: request.body().clone() });
                    }
                    this.state.set(State::Calling { future: call.inner.call(request) });
                }
                StateProj::Calling { future } => {
                    let result = ready!(future.poll(cx)).map_err(Into::into);
                    if let Ok(response) = &result
                        && call.passes(response)
                    {
                        return Poll::Ready(result);
                    }
                    match call.answered(result) {
                        Ok(step) => this.state.set(State::Preparing { step }),
                        Err(output) => return Poll::Ready(output),
                    }
                }
            }
        }
    }
}

type Output<ResBody> = Result<Response<ResBody>, BoxError>;

impl<S, B, ResBody> Call<S, B, ResBody> {
    /// Waits until there is a token to send with, or an answer instead.
    fn poll_prepared(
        &mut self,
        mut step: Pin<&mut Step>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Output<ResBody>>> {
        loop {
            let next = match step.as_mut().project() {
                StepProj::Admitting => match self.source.admit() {
                    // The login that it would wait for goes on.
                    _ if self.may_try_held() => Step::Ready,
                    admitted => self.admitted(admitted)?,
                },
                // Poll the login first: a token that is there in time is used.
                StepProj::Waiting { ended, limit } => match Pin::new(ended).poll(cx) {
                    Poll::Ready(ended) => self.after_wait(ended)?,
                    Poll::Pending => {
                        let Some(limit) = limit.as_pin_mut() else { return Poll::Pending };
                        ready!(limit.poll(cx));
                        return Poll::Ready(Err(self.too_late()));
                    }
                },
                // ## Resting => (Admitting | Ready | Waiting | answered)
                StepProj::Resting { ended, until } => match Pin::new(ended).poll(cx) {
                    Poll::Ready(ended) => self.after_wait(ended)?,
                    Poll::Pending => {
                        ready!(until.poll(cx));
                        Step::Admitting
                    }
                },
                // ## Pausing => Ready
                StepProj::Pausing { pause } => {
                    ready!(pause.poll(cx));
                    self.send_again()
                }
                StepProj::Ready => return Poll::Ready(Ok(())),
            };
            step.set(next);
        }
    }

    fn wait_for(&self, ended: oneshot::Receiver<Ended>) -> Step {
        Step::Waiting { ended, limit: self.limit.map(sleep_until) }
    }

    /// True before the first send of a cancel, if there is a token that it can try.
    fn may_try_held(&self) -> bool {
        self.tries_held && self.refused.is_none() && self.overtaken == 0 && self.source.has_unexpired()
    }

    /// ## Admitting => (Ready | Waiting | Resting | refused)
    fn admitted(&mut self, admitted: Admitted) -> Result<Step, Output<ResBody>> {
        match (admitted, self.refused.as_deref()) {
            (Admitted::Go, None) => Ok(Step::Ready),
            // A 401 is repeated only with a token newer than the refused one.
            (Admitted::Go, Some((_, sent))) if self.source.is_newer_than(*sent) => Ok(self.send_again()),
            (Admitted::Go, Some(_)) => Err(self.surface(None)),
            (Admitted::Wait(ended), _) => Ok(self.wait_for(ended)),
            (Admitted::Rest { until, ended, .. }, _) if self.limit.is_none_or(|limit| until < limit) => {
                Ok(Step::Resting { ended, until: sleep_until(until) })
            }
            (Admitted::Rest { error, .. } | Admitted::Refused(error), None) => Err(Err(refusal(error))),
            (Admitted::Rest { error, .. } | Admitted::Refused(error), Some(_)) => {
                Err(self.surface(Some(error)))
            }
        }
    }

    /// ## (Waiting | Resting) => (Admitting | Ready | Waiting | Resting | answered)
    fn after_wait(
        &mut self,
        ended: Result<Ended, oneshot::error::RecvError>,
    ) -> Result<Step, Output<ResBody>> {
        let ended = ended.unwrap_or_else(|_| Err(AuthError::new(AuthErrorKind::Unavailable)));
        if let Some((_, sent)) = self.refused.as_deref() {
            // A 401 is repeated only with a token newer than the refused one.
            if self.source.is_newer_than(*sent) {
                return Ok(self.send_again());
            }
            if ended.is_err() && self.source.resumes() {
                return Ok(Step::Admitting);
            }
            return Err(self.surface(ended.err()));
        }
        let admitted = self.source.after_wait(ended);
        self.admitted(admitted)
    }

    /// ## Calling => answered
    ///
    /// Returns true unless the response refuses a token. A 403 proves that the identity is known (§7). An answer of the
    /// gateway's limiter or of a broken upstream proves nothing about the token.
    fn passes(&self, response: &Response<ResBody>) -> bool {
        let status = response.status();
        if status == StatusCode::UNAUTHORIZED {
            // To an order, the page of a proxy: it says nothing of the token, and the order may have been executed. If
            // the token is over, the read that looks for the order says so.
            if Outcome::of(response.extensions()).is_some_and(Outcome::is_unknown) {
                return true;
            }
            return !self.needs_token || Sent::of(response.extensions()).generation().is_none();
        }
        if self.needs_token
            && (status.is_success() || status == StatusCode::FORBIDDEN)
            && let Some(generation) = Sent::of(response.extensions()).generation()
        {
            self.source.accepted(generation);
        }
        true
    }

    /// ## Calling => (answered | Admitting | Waiting | Pausing | Ready)
    fn answered(&mut self, result: Output<ResBody>) -> Result<Step, Output<ResBody>> {
        let response = match result {
            Ok(response) => response,
            Err(error) => return self.failed(error),
        };
        let Some(generation) = Sent::of(response.extensions()).generation() else {
            return Err(Ok(response));
        };
        let resent = *self.first.get_or_insert(generation) != generation;
        let decision = self.source.refused(generation, resent);
        self.refused = Some(Box::new((response, generation)));
        if !self.replays || self.resent == MOST_RESENT {
            // The token is still renewed, for later requests.
            return Err(self.surface(None));
        }
        match decision {
            Refused::Resend => Ok(self.send_again()),
            Refused::Join(ended) => Ok(self.wait_for(ended)),
            Refused::Ask => Ok(Step::Admitting),
            Refused::ResendAt(at) if self.limit.is_none_or(|limit| at < limit) => {
                Ok(Step::Pausing { pause: sleep_until(at) })
            }
            Refused::ResendAt(_) => Err(self.surface(Some(AuthError::new(AuthErrorKind::TooLate)))),
            Refused::Surface(error) => Err(self.surface(error)),
        }
    }

    /// A token was withdrawn while the request waited for its permit. That is no failure: the request was not sent and
    /// its permit was given back, so it waits for the next token like any other.
    fn failed(&mut self, error: BoxError) -> Result<Step, Output<ResBody>> {
        if !is_no_token(&error) || self.overtaken == MOST_OVERTAKEN {
            return Err(Err(error));
        }
        self.overtaken += 1;
        if self.restore() {
            return Ok(Step::Admitting);
        }
        // A further send found no token. Return the answer to the previous send instead.
        if self.refused.is_some() { Err(self.surface(None)) } else { Err(Err(error)) }
    }

    fn send_again(&mut self) -> Step {
        self.resent += 1;
        self.restore();
        Step::Ready
    }

    /// Makes the request whole for a further send, if it is not. Returns false if no copy is left.
    fn restore(&mut self) -> bool {
        self.request = match mem::replace(&mut self.request, Held::Nothing) {
            Held::Spare(spare) => Held::Whole(spare.at_the_head()),
            held => held,
        };
        matches!(self.request, Held::Whole(_))
    }

    fn too_late(&mut self) -> Output<ResBody> {
        let error = AuthError::new(AuthErrorKind::TooLate);
        if self.refused.is_some() { self.surface(Some(error)) } else { Err(refusal(error)) }
    }

    /// Returns the 401 to the caller, with the reason why no newer token was available.
    fn surface(&mut self, error: Option<AuthError>) -> Output<ResBody> {
        let Some((mut response, _)) = self.refused.take().map(|refused| *refused) else {
            return Err("polled after completion".into());
        };
        response.extensions_mut().insert(DoNotRetry);
        if let Some(error) = error {
            response.extensions_mut().insert(Unrenewed(error));
        }
        Ok(response)
    }
}

impl<S, B, ResBody> fmt::Debug for ResponseFuture<S, B, ResBody>
where
    S: Service<Request<B>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture")
            .field("limit", &self.call.limit)
            .field("resent", &self.call.resent)
            .finish_non_exhaustive()
    }
}

/// The request between its sends.
enum Held<B> {
    /// Before a send.
    Whole(Request<B>),
    /// After one that may be followed by another.
    Spare(Second<B>),
    /// No further send is possible.
    Nothing,
}

/// The parts of a further send.
struct Second<B> {
    head: Spare,
    body: B,
}

impl<B> Second<B> {
    /// Puts the request at the head of its lane, because it has waited for its permits once.
    fn at_the_head(mut self) -> Request<B> {
        self.head.call_mut().put_at_head_of_lane();
        self.head.with(self.body)
    }
}

fn refusal(error: AuthError) -> BoxError {
    Failure::refused(error).into()
}

fn is_no_token(error: &BoxError) -> bool {
    Failure::find(&**error)
        .and_then(std::error::Error::source)
        .and_then(|source| source.downcast_ref())
        .is_some_and(|refused: &RefusedHeader| *refused == RefusedHeader::NoToken)
}
