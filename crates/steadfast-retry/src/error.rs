use std::{error::Error, fmt, time::Duration};

use steadfast_call::{BoxError, Failure, Fate, Outcome, causes, find_cause, one_line};

use crate::{rules::StopReason, trail::AttemptTrail};

/// One send did not end within its time.
///
/// It is the source of a [`Failure`](steadfast_call::Failure) that says whether anything had left.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AttemptTimedOut {
    after: Duration,
}

impl AttemptTimedOut {
    pub(crate) const fn new(after: Duration) -> Self {
        Self { after }
    }

    /// Returns the time allowed for the send: the attempt timeout, or less if the call's deadline came first.
    #[must_use]
    pub const fn after(&self) -> Duration {
        self.after
    }
}

impl fmt::Display for AttemptTimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no complete answer within {:?}", self.after)
    }
}

steadfast_call::debug_in_one_line!(AttemptTimedOut);

impl Error for AttemptTimedOut {}

/// The body of an answer paused for longer than the idle timeout.
///
/// It is the source of a [`Failure`](steadfast_call::Failure).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BodyStalled {
    idle: Duration,
}

impl BodyStalled {
    pub(crate) const fn new(idle: Duration) -> Self {
        Self { idle }
    }

    /// Returns the idle timeout.
    #[must_use]
    pub const fn idle(&self) -> Duration {
        self.idle
    }
}

impl fmt::Display for BodyStalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "body paused for {:?}", self.idle)
    }
}

steadfast_call::debug_in_one_line!(BodyStalled);

impl Error for BodyStalled {}

/// A call ended in an error after repeats, or because a repeat was due and was not made.
///
/// Its source is the error of the last send, unchanged. A [`RetryPolicy`](crate::RetryPolicy) further out leaves
/// it alone.
pub struct RetriesEnded {
    stopped: Option<StopReason>,
    trail: AttemptTrail,
    source: BoxError,
}

impl RetriesEnded {
    pub(crate) fn new(stopped: Option<StopReason>, trail: AttemptTrail, source: BoxError) -> Self {
        Self { stopped, trail, source }
    }

    /// Converts into an error that proves no more about the request than all of its sends together.
    ///
    /// ## (Unknown, then NotSent) => Unknown
    ///
    /// The last send alone would prove that nothing happened, but an earlier one may have been executed.
    pub(crate) fn into_error(self) -> BoxError {
        if self.trail.is_in_doubt() && !Failure::outcome_of(&self).is_unknown() {
            return Failure::new(Fate::Lost { ended: None }, self).into();
        }
        self.into()
    }

    /// Returns why a repeat that was due was not made; `None` if the last error was not one to repeat.
    #[must_use]
    pub const fn stopped(&self) -> Option<StopReason> {
        self.stopped
    }

    /// Returns every send of the call, the last one included.
    #[must_use]
    pub const fn trail(&self) -> &AttemptTrail {
        &self.trail
    }

    /// Returns the outermost `RetriesEnded` in an error's chain of sources.
    #[must_use]
    pub fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        find_cause(error)
    }
}

impl fmt::Display for RetriesEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return f.write_str(&one_line(causes(self)));
        }
        let attempts = self.trail.attempts();
        let count = attempts.len();
        match attempts.iter().filter(|attempt| attempt.outcome != Outcome::NotSent).count() {
            // Not "0 sends": a reader of "sends" looks for them at the service.
            0 => write!(f, "failed after {count} {}, none sent", if count == 1 { "try" } else { "tries" })?,
            sent if sent < count => write!(f, "failed after {count} tries, {sent} sent")?,
            sent => write!(f, "failed after {sent} {}", if sent == 1 { "send" } else { "sends" })?,
        }
        self.stopped.map_or(Ok(()), |reason| write!(f, ", not repeated: {reason}"))
    }
}

steadfast_call::debug_in_one_line!(RetriesEnded);

impl Error for RetriesEnded {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

#[cfg(test)]
mod tests {
    use steadfast_call::Resend;

    use super::*;
    use crate::trail::Attempt;

    fn ended(first: Outcome, last: Failure) -> BoxError {
        let trail = vec![Attempt::new(first, None), Attempt::new(last.outcome(), None)];
        RetriesEnded::new(None, trail.into(), last.into()).into_error()
    }

    #[test]
    fn c06_debug_reads_like_display_with_all_causes() {
        let timed_out = Failure::timed_out(Fate::NeverLeft, AttemptTimedOut::new(Duration::from_secs(2)));
        let trail = vec![Attempt::new(timed_out.outcome(), None)];
        let ended = RetriesEnded::new(None, trail.into(), timed_out.into());
        assert_eq!(
            format!("{ended:?}"),
            "failed after 1 try, none sent: request not sent: no complete answer within 2s"
        );
        assert_eq!(ended.to_string(), format!("{ended:?}"));
        assert_eq!(format!("{:?}", BodyStalled::new(Duration::from_secs(9))), "body paused for 9s");
    }

    #[test]
    fn a_refusal_after_a_send_in_doubt_proves_nothing() {
        let doubt = Outcome::Unknown { resend: Resend::AfterAbsence };
        let error = ended(doubt.clone(), Failure::refused("queue full"));
        assert_eq!(Failure::outcome_of(&*error), doubt);
        assert!(!Failure::find(&*error).is_some_and(Failure::is_refusal));
        assert!(RetriesEnded::find(&*error).is_some());
    }

    #[test]
    fn what_is_proved_of_every_send_is_proved_of_the_call() {
        let error = ended(Outcome::NotExecuted, Failure::refused("queue full"));
        assert_eq!(Failure::outcome_of(&*error), Outcome::NotSent);
        let text = "failed after 2 tries, 1 sent: request refused before it was sent: queue full";
        assert_eq!(error.to_string(), text);
    }
}
