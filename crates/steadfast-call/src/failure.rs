use std::{error::Error, fmt};

use crate::{Fate, Outcome, Resend};

/// A boxed error, as in tower.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A call that ended without a response, with what is known of the request.
///
/// The transport and every layer that refuses a request return one, so that layers further out can read the outcome without
/// knowing the failed layer.
pub struct Failure {
    fate: Fate,
    cause: Cause,
    source: BoxError,
}

/// Which side ended the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Transport,
    TimedOut,
    Refusal,
    Unexecuted,
}

impl Failure {
    /// Creates the failure of a transport after the request got as far as `fate`.
    pub fn new(fate: Fate, source: impl Into<BoxError>) -> Self {
        Self { fate, cause: Cause::Transport, source: source.into() }
    }

    /// Creates the failure of a layer on this side that stopped waiting after the request got as far as `fate`. The
    /// service may still be working on the request.
    pub fn timed_out(fate: Fate, source: impl Into<BoxError>) -> Self {
        Self { fate, cause: Cause::TimedOut, source: source.into() }
    }

    /// Creates the failure of a layer on this side that refused the request before anything was sent: a full queue, a
    /// deadline that cannot be met, a broken rule. Refusals are returned and never retried.
    pub fn refused(source: impl Into<BoxError>) -> Self {
        Self { fate: Fate::NeverLeft, cause: Cause::Refusal, source: source.into() }
    }

    /// Creates the failure of a request that the service refused without executing it (401, 429), and that was not
    /// repeated: `source` says why.
    pub fn unexecuted(source: impl Into<BoxError>) -> Self {
        Self { fate: Fate::Answered, cause: Cause::Unexecuted, source: source.into() }
    }

    /// Returns how far the request got.
    #[must_use]
    pub fn fate(&self) -> Fate {
        self.fate
    }

    /// True if a layer on this side refused the request.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        self.cause == Cause::Refusal
    }

    /// True if a layer on this side stopped waiting.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.cause == Cause::TimedOut
    }

    /// Returns what is proved about the request.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self.fate {
            _ if self.cause == Cause::Unexecuted => Outcome::NotExecuted,
            Fate::NeverLeft | Fate::Unprocessed => Outcome::NotSent,
            Fate::Answered | Fate::Lost { .. } => Outcome::Unknown { resend: Resend::AfterAbsence },
        }
    }

    /// Finds the outermost failure in an error's chain of sources.
    #[must_use]
    pub fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        find_cause(error)
    }

    /// Returns what an error proves about the request; without a [`Failure`] that is unknown.
    #[must_use]
    pub fn outcome_of(error: &(dyn Error + 'static)) -> Outcome {
        Self::find(error).map_or(Outcome::Unknown { resend: Resend::AfterAbsence }, Self::outcome)
    }
}

/// Returns an error and its sources, outermost first.
pub fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// Joins the texts of errors in one line, with control characters escaped. A text that adds nothing to the line is left
/// out.
///
/// It takes each error's own text, `{:#}`. The errors of these crates show their causes as well by `{}`, and no text stands
/// twice in the line.
pub fn one_line<'a>(causes: impl IntoIterator<Item = &'a (dyn Error + 'static)>) -> String {
    let mut line = String::new();
    for cause in causes {
        let text = on_one_line(&format!("{cause:#}"));
        if line.contains(&text) {
            continue;
        }
        if !line.is_empty() {
            line.push_str(": ");
        }
        line.push_str(&text);
    }
    line
}

/// Escapes a text's control characters, so that it cannot move a terminal's cursor or begin a new line in a log.
#[must_use]
pub fn on_one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
}

/// Makes `Debug` of errors print their own text and all causes in [one line](crate::one_line), because `main` shows an
/// error through `Debug`. An error with a source does the same in `Display`, unless it is asked for its own text by `{:#}`.
#[macro_export]
macro_rules! debug_in_one_line {
    ($($error:ty),+ $(,)?) => {
        $(impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&$crate::one_line($crate::causes(self)))
            }
        })+
    };
}

/// Finds the first error of type `E` in an error's chain of sources.
#[must_use]
pub fn find_cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    causes(error).find_map(<dyn Error>::downcast_ref)
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return f.write_str(&one_line(causes(self)));
        }
        f.write_str(match (self.cause, self.fate) {
            (Cause::Refusal, _) => "request refused before it was sent",
            (Cause::Unexecuted, _) => "request refused by the service, and not executed",
            (_, Fate::NeverLeft) => "request not sent",
            (_, Fate::Unprocessed) => "request not processed",
            (_, Fate::Answered) => "answer could not be read",
            (_, Fate::Lost { .. }) => "answer lost",
        })
    }
}

crate::debug_in_one_line!(Failure);

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_failure_that_never_left_proves_that_nothing_was_sent() {
        assert_eq!(Failure::new(Fate::NeverLeft, "refused").outcome(), Outcome::NotSent);
        assert_eq!(Failure::refused("queue full").outcome(), Outcome::NotSent);
        assert_eq!(Failure::new(Fate::Unprocessed, "refused stream").outcome(), Outcome::NotSent);
        assert!(Failure::new(Fate::Lost { ended: None }, "reset").outcome().is_unknown());
        assert!(Failure::new(Fate::Answered, "cut").outcome().is_unknown());
        assert!(Failure::outcome_of(&fmt::Error).is_unknown());
    }

    #[test]
    fn c06_debug_reads_like_display_with_all_causes_in_one_line() {
        let failure = Failure::refused("queue\n\x1b[31m full");
        assert_eq!(format!("{failure:?}"), r"request refused before it was sent: queue\n\u{1b}[31m full");
        // Regression: `Display` did not say why.
        assert_eq!(failure.to_string(), format!("{failure:?}"));
        assert_eq!(format!("{failure:#}"), "request refused before it was sent", "its own text");
        // A repeated text is not printed again.
        let outer = Failure::new(Fate::NeverLeft, Failure::new(Fate::NeverLeft, "refused"));
        assert_eq!(format!("{outer:?}"), "request not sent: refused");
        assert_eq!(outer.to_string(), "request not sent: refused");
    }

    #[test]
    fn a_failure_is_found_below_other_errors() {
        let wrapped = Failure::new(Fate::Answered, Failure::refused("x"));
        assert_eq!(Failure::find(&wrapped).map(Failure::fate), Some(Fate::Answered), "the outermost counts");
        #[derive(Debug)]
        struct Outer(Failure);
        impl fmt::Display for Outer {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("outer")
            }
        }
        impl Error for Outer {
            fn source(&self) -> Option<&(dyn Error + 'static)> {
                Some(&self.0)
            }
        }
        assert!(Failure::find(&Outer(Failure::refused("x"))).is_some_and(Failure::is_refusal));
    }
}
