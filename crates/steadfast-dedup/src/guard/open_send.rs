use std::sync::Arc;

use http::Response;
use steadfast_call::{
    BoxError, Class, Failure, Fate, Moment, Outcome, Resend,
    ext::{self, Sent},
    find_cause, outcome_of_status,
};

use crate::{
    error::OrderWithheld,
    numbers::{AttemptNo, ReadNo, Session},
    protocol::event::Answer,
    tracker::{account::Account, sent_credentials::SentCredentials},
};

/// A physical send without an answer yet. Dropping it ends what it holds: its caller is gone.
#[derive(Default)]
pub(super) struct OpenSend {
    /// The attempt, if it is an order's.
    pub(super) attempt: Option<OpenAttempt>,
    /// The tracker's own read, if it is one.
    pub(super) read: Option<SentRead>,
    /// The session that a caller's own list belongs to.
    pub(super) session: Option<Session>,
    /// The token that asks for a list.
    pub(super) credentials: Option<SentCredentials>,
    /// When a send of the tracker's began, to judge the `Date` of its answer.
    pub(super) asked: Option<Moment>,
}

impl OpenSend {
    /// Takes in the answer, and returns it as outer layers see it.
    pub(super) fn end<RB>(
        mut self,
        answer: Result<Response<RB>, BoxError>,
    ) -> Result<Response<RB>, BoxError> {
        if let (Some(asked), Ok(response)) = (&self.asked, &answer)
            && response.status().is_success()
            && let Some(account) = self.account()
        {
            account.hear_date(asked, response.headers());
        }
        if let Some(mut read) = self.read.take() {
            read.answered = answer.as_ref().is_ok_and(|response| response.status().is_success());
        }
        if let Some(attempt) = self.attempt {
            return attempt.close(answer);
        }
        match answer {
            Ok(mut response) => {
                if let Some(credentials) = self.credentials {
                    response.extensions_mut().insert(credentials);
                }
                if let Some(session) = self.session {
                    response.extensions_mut().insert(session);
                }
                Ok(response)
            }
            // A withheld change must not be repeated, whatever error the transport makes of it.
            Err(error) if is_halted(&error) => Err(Failure::refused(OrderWithheld::Halted).into()),
            Err(error) if let Some(not_owner) = not_owner(&error) => Err(Failure::refused(not_owner).into()),
            Err(error) if is_late(&error) => Err(Failure::refused(OrderWithheld::SendByPassed).into()),
            Err(error) => Err(error),
        }
    }

    fn account(&self) -> Option<&Arc<Account>> {
        let of_read = || self.read.as_ref().map(|read| &read.account);
        self.attempt.as_ref().map(|attempt| &attempt.account).or_else(of_read)
    }
}

/// An attempt that is not closed yet. Dropping it closes it.
pub(super) struct OpenAttempt {
    account: Arc<Account>,
    attempt: AttemptNo,
    /// Knows the connection that it went over.
    stamp: Option<ext::SendStamp>,
    credentials: Option<SentCredentials>,
    closed: bool,
}

impl OpenAttempt {
    pub(super) fn new(
        account: Arc<Account>,
        attempt: AttemptNo,
        stamp: Option<ext::SendStamp>,
        credentials: Option<SentCredentials>,
    ) -> Self {
        Self { account, attempt, stamp, credentials, closed: false }
    }

    fn close<RB>(mut self, answer: Result<Response<RB>, BoxError>) -> Result<Response<RB>, BoxError> {
        self.closed = true;
        match answer {
            Ok(mut response) => {
                let status = response.status();
                let mut outcome = outcome_of_order(&response);
                // Searched for in the list, like any other order without a readable identifier.
                if let (Outcome::Accepted { order_id: Some(id) }, Some(credentials)) =
                    (&outcome, &self.credentials)
                    && credentials.occurs_in(id)
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

/// A send of the tracker's own read. Dropped unanswered, it brought no list.
pub(super) struct SentRead {
    account: Arc<Account>,
    read: ReadNo,
    answered: bool,
}

impl SentRead {
    pub(super) fn new(account: Arc<Account>, read: ReadNo) -> Self {
        Self { account, read, answered: false }
    }
}

impl Drop for SentRead {
    fn drop(&mut self) {
        if !self.answered {
            self.account.turn_away_read(self.read);
        }
    }
}

/// Returns what the answer to an order proves: by its classification or, without one, by its status.
pub(crate) fn outcome_of_order<RB>(response: &Response<RB>) -> Outcome {
    let outcome = Outcome::of(response.extensions()).cloned();
    outcome.unwrap_or_else(|| outcome_of_status(Class::VerifyFirst, response.status()))
}

fn is_late(error: &BoxError) -> bool {
    matches!(find_cause(&**error), Some(OrderWithheld::SendByPassed))
}

fn is_halted(error: &BoxError) -> bool {
    matches!(find_cause(&**error), Some(OrderWithheld::Halted))
}

fn not_owner(error: &BoxError) -> Option<OrderWithheld> {
    match find_cause(&**error) {
        Some(OrderWithheld::NotOwner(not_owner)) => Some(OrderWithheld::NotOwner(not_owner.clone())),
        _ => None,
    }
}

/// Returns the error for a body that was never polled: whatever failed, nothing was sent.
fn not_sent(error: BoxError) -> BoxError {
    match find_cause(&*error) {
        Some(OrderWithheld::SendByPassed) => Failure::refused(OrderWithheld::SendByPassed).into(),
        Some(OrderWithheld::Halted) => Failure::refused(OrderWithheld::Halted).into(),
        Some(OrderWithheld::NotOwner(not_owner)) => {
            Failure::refused(OrderWithheld::NotOwner(not_owner.clone())).into()
        }
        Some(OrderWithheld::TooOld) => Failure::refused(OrderWithheld::TooOld).into(),
        // An outer layer tries again, with an entry of the new day.
        Some(OrderWithheld::DayTurned) => Failure::new(Fate::NeverLeft, OrderWithheld::DayTurned).into(),
        Some(_) => Failure::refused(OrderWithheld::NotWanted).into(),
        None if Failure::outcome_of(&*error) == Outcome::NotSent => error,
        None => Failure::new(Fate::NeverLeft, error).into(),
    }
}
