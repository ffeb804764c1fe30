use std::{error::Error as StdError, fmt, time::Duration};

use http::StatusCode;
use steadfast_auth::{AuthError, AuthErrorKind};
use steadfast_call::{
    BoxError, Failure, Outcome, Resend, RetryAfter, causes, find_cause, on_one_line, one_line,
};
use steadfast_dedup::{InDoubt, NotRepeated, OrderWithheld, Reason, Unresolved, journal::NotOwner};
use steadfast_limit::Refusal;
use steadfast_retry::{AttemptTrail, RetriesEnded};
use steadfast_spec::{BaseUrl, Endpoint};
use tokio::time::Instant;

use crate::transport::{authority_of, why_not_connected};

/// Why a call of the [`Client`](crate::Client) did not succeed.
///
/// Its [`kind`](Self::kind) says what the caller can do, its [`outcome`](Self::outcome) what is known of the request.
/// Neither its message nor its sources hold a credential or a query.
///
/// `Display` is one line: the kind, then the chain of causes, such as the wrong field, the full zone, or the address
/// that does not listen. The service's own text is part of it, with control characters spelled out;
/// [`message`](Self::message) is as the service wrote it. `Debug` reads like `Display`, so that an error returned from
/// `main` is readable.
pub struct Error(Box<Facts>);

struct Facts {
    kind: ErrorKind,
    outcome: Outcome,
    status: Option<StatusCode>,
    message: Option<String>,
    unresolved: Option<Unresolved>,
    trail: Option<AttemptTrail>,
    ready_at: Option<Instant>,
    /// True if executing the request twice does no harm.
    safe: bool,
    /// The request in doubt, if it is no order: the endpoint of a cancel or a change.
    in_doubt: Option<Endpoint>,
    /// The address of the service, if it could not be reached.
    authority: Option<String>,
    source: Option<BoxError>,
}

/// The kinds of errors, by what the caller can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request breaks a rule that is known on this side. Nothing was sent.
    InvalidRequest,
    /// The request was refused on this side: no time left, a full queue, an order that may not leave any more, a trading
    /// day that is in doubt, or a change while an earlier one may still be made. Nothing was sent.
    Refused,
    /// The order could not be written to the journal, so it was not sent. No other order is sent until the journal is
    /// opened again.
    JournalFailed,
    /// Another process owns the account's orders, or may by now, so this one places and changes none. Nothing was sent.
    /// [`retry_in`](Error::retry_in) says when it could own them, at the earliest.
    NotOwner,
    /// Orders and changes are [halted](crate::Client::halt), or were since this call began. Nothing was sent.
    Halted,
    /// There is no usable token, or the service refused it (401).
    Unauthorized,
    /// The service refused the request for good (400, 403, 404, 405, 415).
    Rejected,
    /// The service's quota is used up (429), in spite of all waiting.
    RateLimited,
    /// The service could not be reached. Nothing was sent.
    Unreachable,
    /// The service failed (5xx), its answer was lost, broke off or came too late, or no login is possible now and
    /// nothing was sent. A request that only reads, or that was not sent, may be repeated.
    Unavailable,
    /// It is not known whether the order was placed, or cancelled. Look for it before placing it again.
    InDoubt,
    /// The order was looked for beyond the lateness bound, was not found, and was not sent again. Placing it again is
    /// as safe as that bound.
    NotObserved,
    /// The order to be cancelled is not open any more; the message is its status.
    NotOpen,
    /// The service's answer is not as specified.
    UnexpectedAnswer,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, outcome: Outcome) -> Self {
        Self(Box::new(Facts {
            kind,
            outcome,
            status: None,
            message: None,
            unresolved: None,
            trail: None,
            ready_at: None,
            safe: false,
            in_doubt: None,
            authority: None,
            source: None,
        }))
    }

    /// Returns the error of a request that cannot be made.
    pub(crate) fn invalid(source: impl Into<BoxError>) -> Self {
        Self::new(ErrorKind::InvalidRequest, Outcome::NotSent).because(source)
    }

    /// Returns the error of an answer that is not as specified.
    pub(crate) fn unexpected(outcome: Outcome, source: impl Into<BoxError>) -> Self {
        Self::new(ErrorKind::UnexpectedAnswer, outcome).because(source)
    }

    pub(crate) fn because(mut self, source: impl Into<BoxError>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Returns the error of an unsuccessful answer, from its status and the stamps of the layers.
    pub(crate) fn of_answer(parts: &http::response::Parts, message: Option<String>) -> Self {
        // Classify accepts long answers by their status. One that turns out to be unsuccessful proves nothing.
        let outcome = match Outcome::of(&parts.extensions) {
            Some(outcome) if parts.status != StatusCode::OK => outcome.clone(),
            _ => Outcome::Unknown { resend: Resend::Never },
        };
        let unresolved = parts.extensions.get::<Unresolved>().cloned();
        let kind = match (&unresolved, parts.status.as_u16()) {
            (Some(unresolved), _) => kind_in_doubt(unresolved),
            (None, 401) => ErrorKind::Unauthorized,
            (None, 429) => ErrorKind::RateLimited,
            (None, 500..=599) => ErrorKind::Unavailable,
            (None, 400) if outcome.is_unknown() => ErrorKind::Unavailable,
            // A 4xx beyond those of §7 does not say what became of the request.
            (None, 400..=499) if outcome.is_unknown() => ErrorKind::UnexpectedAnswer,
            (None, 400..=499) => ErrorKind::Rejected,
            _ => ErrorKind::UnexpectedAnswer,
        };
        let mut error = Self::new(kind, outcome);
        error.0.status = Some(parts.status);
        error.0.message = message;
        error.0.unresolved = unresolved;
        error.0.trail = parts.extensions.get().cloned();
        if parts.status == StatusCode::TOO_MANY_REQUESTS {
            // A delay beyond the range of an instant is left out.
            error.0.ready_at = RetryAfter::parse(&parts.headers)
                .and_then(|RetryAfter(delay)| Instant::now().checked_add(delay));
        }
        error
    }

    /// Returns the error of an answer whose body was lost; only its status is known.
    pub(crate) fn broken_off(parts: &http::response::Parts, source: impl Into<BoxError>) -> Self {
        let mut error = Self::of_answer(parts, None).because(source);
        if error.0.kind == ErrorKind::UnexpectedAnswer {
            error.0.kind = ErrorKind::Unavailable;
        }
        error
    }

    /// Returns the error of a call that ended without an answer.
    pub(crate) fn of_failure(source: BoxError) -> Self {
        let outcome = Failure::outcome_of(&*source);
        let unresolved = Unresolved::find(&*source).cloned();
        let refused = Failure::find(&*source).is_some_and(Failure::is_refusal);
        let kind = if let Some(unresolved) = &unresolved {
            kind_in_doubt(unresolved)
        } else if let Some(error) = find_cause::<AuthError>(&*source) {
            match error.kind() {
                // The service has refused nothing; the next login may succeed.
                AuthErrorKind::Unavailable => ErrorKind::Unavailable,
                _ => ErrorKind::Unauthorized,
            }
        } else if let Some(refused) = find_cause::<NotRepeated>(&*source) {
            if refused.status() == 401 { ErrorKind::Unauthorized } else { ErrorKind::RateLimited }
        } else if find_cause::<crate::route::InvalidRequest>(&*source).is_some() {
            ErrorKind::InvalidRequest
        } else if let Some(refusal) = find_cause::<OrderWithheld>(&*source) {
            match refusal {
                OrderWithheld::TwinInDoubt | OrderWithheld::IntentInDoubt => ErrorKind::InDoubt,
                OrderWithheld::IntentRejected => ErrorKind::Rejected,
                OrderWithheld::SendByPassed
                | OrderWithheld::NotWanted
                | OrderWithheld::TooOld
                | OrderWithheld::NewSession
                | OrderWithheld::KeyBusy
                | OrderWithheld::JournalSlow
                | OrderWithheld::DayTurned
                | OrderWithheld::DayDisputed
                | OrderWithheld::JournalAhead(_)
                | OrderWithheld::RefusalUnchecked => ErrorKind::Refused,
                OrderWithheld::Halted => ErrorKind::Halted,
                OrderWithheld::NotOwner(_) => ErrorKind::NotOwner,
                OrderWithheld::JournalFailed { .. } => ErrorKind::JournalFailed,
                _ => ErrorKind::InvalidRequest,
            }
        } else if refused {
            ErrorKind::Refused
        } else if outcome == Outcome::NotSent {
            ErrorKind::Unreachable
        } else {
            ErrorKind::Unavailable
        };
        let trail = RetriesEnded::find(&*source).map(|ended| ended.trail().clone());
        let refused = find_cause::<NotRepeated>(&*source);
        let status = refused.and_then(|refused| StatusCode::from_u16(refused.status()).ok());
        let mut error = Self::new(kind, outcome).because(source);
        error.0.status = status;
        error.0.unresolved = unresolved;
        error.0.trail = trail;
        error.0.ready_at = match error.refusal() {
            Some(Refusal::WouldMissDeadline { earliest, .. }) => Instant::now().checked_add(*earliest),
            _ => error.not_owner().and_then(|not_owner| Instant::now().checked_add(not_owner.try_in)),
        };
        error
    }

    /// Adds the address of the service if it was not reached.
    pub(crate) fn at(mut self, base: &BaseUrl) -> Self {
        if self.0.kind == ErrorKind::Unreachable {
            self.0.authority = Some(authority_of(base.uri()));
        }
        self
    }

    /// Returns true if an earlier send of the call may have been executed, whatever the last answer says.
    pub(crate) fn was_in_doubt(&self) -> bool {
        self.0.outcome.is_unknown() || self.0.trail.as_ref().is_some_and(AttemptTrail::is_in_doubt)
    }

    /// Turns it into the error of a cancel whose order has ended otherwise.
    pub(crate) fn not_open(mut self, status: String) -> Self {
        self.0.kind = ErrorKind::NotOpen;
        self.0.message = Some(status);
        self
    }

    /// Turns it into the error of a cancel or a change that may have been executed.
    pub(crate) fn in_doubt(mut self, of: Endpoint) -> Self {
        self.0.kind = ErrorKind::InDoubt;
        self.0.in_doubt = Some(of);
        self
    }

    /// Sets from when the same request would not be refused any more.
    pub(crate) fn ready_from(mut self, at: Instant) -> Self {
        self.0.ready_at = Some(at);
        self
    }

    /// Sets whether the request may be executed twice.
    pub(crate) fn safe(mut self, safe: bool) -> Self {
        self.0.safe = safe;
        self
    }

    /// Turns the error of an order with an unknown outcome into [`ErrorKind::InDoubt`].
    pub(crate) fn in_doubt_if_unknown(mut self) -> Self {
        if self.0.outcome.is_unknown() && self.0.kind != ErrorKind::NotObserved {
            self.0.kind = ErrorKind::InDoubt;
        }
        self
    }

    /// Returns the kind, which says what the caller can do.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns what is known of the request.
    #[must_use]
    pub fn outcome(&self) -> &Outcome {
        &self.0.outcome
    }

    /// Returns the answer's status, if there was an answer.
    #[must_use]
    pub fn status(&self) -> Option<StatusCode> {
        self.0.status
    }

    /// Returns the answer's `msg`, if it had one.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.0.message.as_deref()
    }

    /// Returns true if repeating the call can help and cannot execute anything twice: nothing was executed, or the
    /// request only reads or cancels. The meaning of a [`raw`](crate::Client::raw) request is not known, so only the
    /// former counts.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self.0.kind {
            ErrorKind::RateLimited | ErrorKind::Refused | ErrorKind::Unreachable => {
                !self.was_in_doubt() || self.0.safe
            }
            ErrorKind::Unavailable => {
                self.0.safe || (self.0.outcome == Outcome::NotSent && !self.was_in_doubt())
            }
            _ => false,
        }
    }

    /// Returns why an order is in doubt, and which listed orders it may be.
    #[must_use]
    pub fn unresolved(&self) -> Option<&Unresolved> {
        self.0.unresolved.as_ref()
    }

    /// Returns the zone that would not admit the request in time.
    #[must_use]
    pub fn zone(&self) -> Option<steadfast_spec::Zone> {
        self.refusal().and_then(Refusal::zone)
    }

    /// Returns when the zone could admit the request, if that is too late for its deadline; when the service accepts
    /// a repeat, if its 429 said so; or when this process could own the account's orders.
    #[must_use]
    pub fn ready_at(&self) -> Option<Instant> {
        self.0.ready_at
    }

    /// Returns how long that is from now; zero if it has passed.
    #[must_use]
    pub fn retry_in(&self) -> Option<Duration> {
        self.0.ready_at.map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// Returns the sends of the call, if there was more than one.
    #[must_use]
    pub fn trail(&self) -> Option<&AttemptTrail> {
        self.0.trail.as_ref()
    }

    /// Returns who owns the account's orders, if this process does not.
    #[must_use]
    pub fn not_owner(&self) -> Option<&NotOwner> {
        find_cause(&**self.0.source.as_ref()?)
    }

    fn refusal(&self) -> Option<&Refusal> {
        find_cause(&**self.0.source.as_ref()?)
    }
}

/// A change that would leave the order as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NothingToChange;

impl fmt::Display for NothingToChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no field of the order is to be changed")
    }
}

impl StdError for NothingToChange {}

fn kind_in_doubt(unresolved: &Unresolved) -> ErrorKind {
    if unresolved.reason == Reason::NotObserved { ErrorKind::NotObserved } else { ErrorKind::InDoubt }
}

/// Returns an error and its causes in one line. Causes that add nothing are left out.
pub(crate) fn chain_of(error: &(dyn StdError + 'static)) -> String {
    // A `Failure` says how far the request got, and `InDoubt` why an order is in doubt; kind and reason say that already.
    one_line(
        causes(error)
            .filter(|cause| !cause.is::<Failure>() && !cause.is::<InDoubt>() || cause.source().is_none()),
    )
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0.kind {
            ErrorKind::InvalidRequest => "request is invalid",
            ErrorKind::Refused => "request was not sent",
            ErrorKind::Halted => "orders are halted",
            ErrorKind::NotOwner => "orders are another process's",
            ErrorKind::JournalFailed => "journal cannot be written, nothing is sent",
            ErrorKind::Unauthorized => "no token that the service accepts",
            ErrorKind::Rejected => "request rejected",
            ErrorKind::RateLimited => "rate limit exceeded",
            ErrorKind::Unreachable => "service cannot be reached",
            ErrorKind::Unavailable => "service failed",
            ErrorKind::InDoubt => match self.0.in_doubt {
                Some(Endpoint::CancelOrder) => "cancel of the order is in doubt",
                Some(_) => "change of the order is in doubt",
                None => "order is in doubt",
            },
            ErrorKind::NotObserved => "order was not observed",
            ErrorKind::NotOpen => "order is not open",
            ErrorKind::UnexpectedAnswer => "unexpected answer",
        })?;
        if let Some(authority) = &self.0.authority {
            write!(f, " at {authority}")?;
        }
        if let Some(unresolved) = &self.0.unresolved {
            write!(f, " ({})", unresolved.reason)?;
        }
        if let Some(status) = self.0.status {
            write!(f, ": {}", status.as_u16())?;
        } else if self.0.message.is_some() {
            f.write_str(":")?;
        }
        if let Some(message) = &self.0.message {
            write!(f, " {}", on_one_line(message))?;
        }
        if let Some(answered) = self.0.unresolved.as_ref().and_then(|it| it.answered.as_deref()) {
            // No list shows it, or something contradicts it, but a person can look for it.
            write!(f, "; answered with order {} (unconfirmed)", on_one_line(answered))?;
        }
        let Some(source) = self.0.source.as_deref() else { return Ok(()) };
        let connecting =
            || (self.0.kind == ErrorKind::Unreachable).then(|| why_not_connected(source)).flatten();
        match connecting().unwrap_or_else(|| chain_of(source)) {
            // A halt has no cause beside itself.
            chain if chain.is_empty() || chain == "orders are halted" => Ok(()),
            chain => write!(f, ": {chain}"),
        }
    }
}

reads_like_display!(Error);

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_too_late_is_no_invalid_request() {
        for refusal in [
            OrderWithheld::SendByPassed,
            OrderWithheld::KeyBusy,
            OrderWithheld::JournalSlow,
            OrderWithheld::DayTurned,
        ] {
            let error = Error::of_failure(Failure::refused(refusal).into());
            assert_eq!((error.kind(), error.outcome()), (ErrorKind::Refused, &Outcome::NotSent));
            assert!(error.is_retryable());
        }
    }

    #[test]
    fn nothing_is_called_rejected_of_which_nobody_knows_whether_it_was_executed() {
        let kind = |status: u16| {
            let status = StatusCode::from_u16(status).unwrap();
            let outcome = steadfast_call::outcome_of(None, status, steadfast_call::Peek::NotRead);
            let mut answer = http::Response::builder().status(status).body(()).unwrap();
            steadfast_call::ext::Sent::of_mut(answer.extensions_mut()).set_outcome(outcome);
            Error::of_answer(&answer.into_parts().0, None).kind()
        };
        for status in [402, 408, 409, 418, 425] {
            assert_eq!(kind(status), ErrorKind::UnexpectedAnswer, "{status}");
        }
        for status in [403, 404, 405, 415] {
            assert_eq!(kind(status), ErrorKind::Rejected, "{status}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_429_says_when_to_ask_again_if_the_service_did() {
        let ready_at = |status: u16| {
            let answer =
                http::Response::builder().status(status).header("retry-after", "7").body(()).unwrap();
            Error::of_answer(&answer.into_parts().0, None).ready_at()
        };
        assert_eq!(ready_at(429), Some(Instant::now() + std::time::Duration::from_secs(7)));
        assert_eq!(ready_at(403), None);
    }
}
