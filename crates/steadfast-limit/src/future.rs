use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::{Request, Response, StatusCode};
use pin_project_lite::pin_project;
use steadfast_call::{BoxError, Failure, Fate, RetryAfter};
use tokio::time::Instant;
use tower_service::Service;

use crate::{
    core::decision::{Answer, Loss},
    error::Refusal,
    shell::{acquire::Acquire, permit::Permit, route_mover::WatchedRoute},
};

/// A request for a permit, and what the future needs besides.
pub(crate) struct Asked {
    pub(crate) acquire: Acquire,
    pub(crate) watched: Option<WatchedRoute>,
    /// The instant by which the request must have left.
    pub(crate) send_by: Option<Instant>,
    /// True if the transport ends the connection of a dropped call.
    pub(crate) ends_when_dropped: bool,
}

pin_project! {
    /// Waits for a permit, sends, and settles the permit at the head of the answer; made by
    /// [`RateLimit`](crate::RateLimit).
    ///
    /// # Errors
    ///
    /// Resolves to a refused [`Failure`] with a [`Refusal`] if the request may not be sent, or to the inner service's
    /// error.
    ///
    /// # Panics
    ///
    /// If it must wait outside of a tokio runtime with its timer enabled, or is polled after it has resolved.
    ///
    /// # Cancellation
    ///
    /// As for [`RateLimit`](crate::RateLimit#cancellation).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        send_by: Option<Instant>,
        ends_when_dropped: bool,
        // Dropped before the permit: by then the transport has ended the connection, if it does so at all.
        #[pin]
        state: State<S, B, S::Future>,
        permit: Option<Permit>,
        watched: Option<WatchedRoute>,
    }
}

pin_project! {
    #[project = StateProj]
    #[derive(Debug)]
    enum State<S, B, F> {
        // Passed on when the permit is granted and the service is ready.
        Waiting { #[pin] acquire: Acquire, held: Option<(S, Request<B>)> },
        Sent { #[pin] answer: F },
        Done,
    }
}

impl<S, B> ResponseFuture<S, B>
where
    S: Service<Request<B>>,
{
    pub(crate) fn new(asked: Asked, inner: S, request: Request<B>) -> Self {
        let Asked { acquire, watched, send_by, ends_when_dropped } = asked;
        let state = State::Waiting { acquire, held: Some((inner, request)) };
        Self { send_by, ends_when_dropped, state, permit: None, watched }
    }
}

impl<S, B, R> Future for ResponseFuture<S, B>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Error: Into<BoxError>,
{
    type Output = Result<Response<R>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match this.state.as_mut().project() {
                // ## Waiting => Sent | Done
                //
                // The wait for a permit comes first: a service made ready before it would block others meanwhile.
                StateProj::Waiting { mut acquire, held } => {
                    // A permit taken back is no permit, also if the service is ready now.
                    if this.permit.take_if(|permit| !permit.keep_alive(cx.waker())).is_some() {
                        acquire.as_mut().return_to_head();
                    }
                    let granted = match this.permit {
                        Some(_) => None,
                        None => match ready!(acquire.poll_permit(cx)) {
                            Ok((permit, now)) => {
                                *this.permit = Some(permit);
                                Some(now)
                            }
                            Err(refusal) => {
                                this.state.set(State::Done);
                                return Poll::Ready(Err(Failure::refused(refusal).into()));
                            }
                        },
                    };
                    let ready = match held.as_mut().map(|(inner, _)| inner.poll_ready(cx)) {
                        Some(Poll::Ready(ready)) => ready,
                        Some(Poll::Pending) => {
                            if let Some(permit) = this.permit.as_mut().filter(|_| granted.is_some()) {
                                permit.keep_alive(cx.waker());
                            }
                            return Poll::Pending;
                        }
                        None => Ok(()),
                    };
                    let (Some((mut inner, request)), Some(permit)) = (held.take(), this.permit.as_mut())
                    else {
                        this.state.set(State::Done);
                        continue;
                    };
                    // If the service is ready at once, this is still the instant of the permit.
                    let now = granted.unwrap_or_else(Instant::now);
                    if let Err(error) = ready.map_err(Into::into).and_then(|()| in_time(now, *this.send_by)) {
                        this.permit.take();
                        this.state.set(State::Done);
                        return Poll::Ready(Err(error));
                    }
                    permit.sent_at(now);
                    if *this.ends_when_dropped {
                        permit.ends_when_dropped();
                    }
                    this.state.set(State::Sent { answer: inner.call(request) });
                }
                // ## Sent => Done
                StateProj::Sent { answer } => {
                    let Poll::Ready(answer) = answer.poll(cx).map_err(Into::into) else {
                        if let Some(permit) = this.permit {
                            permit.keep_alive(cx.waker());
                        }
                        return Poll::Pending;
                    };
                    if let Some(permit) = this.permit.take() {
                        settle(permit, *this.watched, &answer);
                    }
                    this.state.set(State::Done);
                    return Poll::Ready(answer);
                }
                StateProj::Done => panic!("polled after it was ready"),
            }
        }
    }
}

/// Refuses a request whose service became ready only after the instant by which it must have left.
fn in_time(now: Instant, send_by: Option<Instant>) -> Result<(), BoxError> {
    if send_by.is_none_or(|send_by| now <= send_by) {
        return Ok(());
    }
    Err(Failure::refused(Refusal::NotReadyInTime).into())
}

/// Ends the permit according to the answer.
fn settle<R>(permit: Permit, watched: Option<WatchedRoute>, answer: &Result<Response<R>, BoxError>) {
    match answer {
        Ok(response) if response.extensions().get() == Some(&Fate::NeverLeft) => permit.refund(),
        Ok(response) if response.status() == StatusCode::TOO_MANY_REQUESTS => {
            let retry_after = RetryAfter::parse(response.headers()).map(|after| after.0);
            permit.settle_watched(Answer::TooManyRequests { retry_after }, watched);
        }
        Ok(_) => permit.settle(Answer::Accepted),
        Err(error) => match Failure::find(&**error).map(Failure::fate) {
            Some(Fate::NeverLeft) => permit.refund(),
            Some(Fate::Answered) => permit.settle(Answer::Accepted),
            // A gateway may have counted it before the service refused it.
            Some(Fate::Unprocessed) => permit.lose(Loss::Reset),
            Some(Fate::Lost { ended: Some(ended) }) => permit.lose_ended(Instant::from_std(ended)),
            Some(Fate::Lost { ended: None }) | None => permit.lose(Loss::GivenUp),
        },
    }
}
