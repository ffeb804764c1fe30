use std::{
    fmt, mem,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use steadfast_call::{BoxError, Failure, Fate};
use tokio::time::error::Elapsed;
use tower_service::Service;

use crate::{
    error::OrderWithheld,
    guard::{
        guarded_body::GuardedBody,
        held::{Held, HeldByJournal},
        open_send::OpenSend,
        send_guard::{Entered, SendGuard},
    },
    journal::JournalError,
    tracker::account::checking::Checked,
};

/// How long a repeat after a refusal waits, with its permit, for the list that confirms the refusal.
///
/// A renewed token comes at once, and the list is read a second after the refusal.
const CHECK_PATIENCE: Duration = Duration::from_secs(2);

pin_project! {
    /// The future of a [`SendGuard`](crate::SendGuard).
    pub struct SendGuardFuture<S, B>
    where
        S: Service<Request<GuardedBody<B>>>,
    {
        #[pin]
        state: State<S, B, S::Future>,
        send: OpenSend,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S, B, F> {
        Withheld { why: Option<OrderWithheld> },
        // The repeat of a refused order waits for the list that confirms the refusal.
        Checking { held: Pin<Box<Held<Checked, (SendGuard<S>, Request<B>)>>> },
        // The attempt's journal entry is not durable yet.
        Writing { held: Pin<Box<HeldByJournal<S, B>>> },
        Sending { #[pin] response: F },
    }
}

impl<S, B> SendGuardFuture<S, B>
where
    S: Service<Request<GuardedBody<B>>>,
{
    pub(super) fn sending((entered, send): (Entered<S, B, S::Future>, OpenSend)) -> Self {
        Self { state: State::of(entered), send }
    }

    pub(super) fn checking(checked: Checked, guard: SendGuard<S>, request: Request<B>) -> Self {
        let held = Held::until(checked, CHECK_PATIENCE, (guard, request));
        Self { state: State::Checking { held }, send: OpenSend::default() }
    }
}

impl<S, B, F> State<S, B, F> {
    fn of(entered: Entered<S, B, F>) -> Self {
        match entered {
            Entered::Withheld(why) => Self::Withheld { why: Some(why) },
            Entered::Writing(held) => Self::Writing { held },
            Entered::Sent(response) => Self::Sending { response },
        }
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
                StateProj::Withheld { why } => {
                    let why = why.take().unwrap_or(OrderWithheld::NotWanted);
                    return Poll::Ready(Err(Failure::refused(why).into()));
                }
                StateProj::Checking { held } => {
                    let checked = ready!(held.as_mut().poll(cx));
                    let Some((mut guard, request)) = held.as_mut().take().filter(|_| checked.is_ok()) else {
                        // The permit goes back, and another is asked for.
                        let late = Failure::new(Fate::NeverLeft, OrderWithheld::RefusalUnchecked);
                        return Poll::Ready(Err(late.into()));
                    };
                    let (entered, send) = guard.enter(request);
                    *this.send = send;
                    this.state.set(State::of(entered));
                }
                StateProj::Writing { held } => {
                    let written = ready!(held.as_mut().poll(cx));
                    match (written, held.as_mut().take()) {
                        (Ok(Ok(())), Some((mut service, request))) => {
                            this.state.set(State::Sending { response: service.call(request) });
                        }
                        // The attempt closes itself: nothing was called, so nothing has left.
                        (written, _) => {
                            drop(mem::take(this.send));
                            return Poll::Ready(Err(unwritten(written)));
                        }
                    }
                }
                StateProj::Sending { response } => break ready!(response.poll(cx)).map_err(Into::into),
            }
        };
        Poll::Ready(mem::take(this.send).end(answer))
    }
}

impl<S, B> fmt::Debug for SendGuardFuture<S, B>
where
    S: Service<Request<GuardedBody<B>>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendGuardFuture").field("open", &self.send.attempt.is_some()).finish_non_exhaustive()
    }
}

/// Returns the error for an order whose journal entry is not durable.
fn unwritten(written: Result<Result<(), JournalError>, Elapsed>) -> BoxError {
    match written {
        Ok(Err(JournalError::NotOwner(not_owner))) => {
            Failure::refused(OrderWithheld::NotOwner(not_owner)).into()
        }
        Ok(Err(error)) => Failure::refused(OrderWithheld::JournalFailed(error)).into(),
        // A slow disk is no error for the caller: the permit goes back, and another is asked for.
        Err(_) => Failure::new(Fate::NeverLeft, OrderWithheld::JournalSlow).into(),
        Ok(Ok(())) => Failure::refused(OrderWithheld::NotWanted).into(),
    }
}
