use std::{error::Error, fmt};

use crate::{Fate, Outcome, Resend};

/// A boxed error, as tower has it.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A call that ended without a response, with what is known of the request.
///
/// The leaf that owns the connection and every layer that refuses a request itself return one, so that layers
/// further out can read the outcome without knowing who failed.
pub struct Failure {
    fate: Fate,
    cause: Cause,
    source: BoxError,
}

/// Who ended the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Transport,
    Patience,
    Refusal,
}

impl Failure {
    /// The transport failed after the request got as far as `fate` says.
    pub fn new(fate: Fate, source: impl Into<BoxError>) -> Self {
        Self { fate, cause: Cause::Transport, source: source.into() }
    }

    /// A layer on this side stopped waiting after the request got as far as `fate` says. The service may still be at
    /// work on it, for as long as it ever works.
    pub fn timed_out(fate: Fate, source: impl Into<BoxError>) -> Self {
        Self { fate, cause: Cause::Patience, source: source.into() }
    }

    /// A layer on this side refused the request before anything was sent: a full queue, a deadline that cannot be
    /// met, a request that breaks a rule. Refusals are returned and never retried.
    pub fn refused(source: impl Into<BoxError>) -> Self {
        Self { fate: Fate::NeverLeft, cause: Cause::Refusal, source: source.into() }
    }

    /// How far the request got.
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
        self.cause == Cause::Patience
    }

    /// What is proved about the request.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self.fate {
            Fate::NeverLeft | Fate::Unprocessed => Outcome::NotSent,
            Fate::Lost { .. } if crate::Planted::LostIsNotSent.is_on() => Outcome::NotSent,
            Fate::Answered | Fate::Lost { .. } => Outcome::Unknown { resend: Resend::AfterAbsence },
        }
    }

    /// The failure in an error's chain of sources, the outermost one first.
    #[must_use]
    pub fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        find_cause(error)
    }

    /// What an error proves about the request: anything that no [`Failure`] vouches for is unknown.
    #[must_use]
    pub fn outcome_of(error: &(dyn Error + 'static)) -> Outcome {
        Self::find(error).map_or(Outcome::Unknown { resend: Resend::AfterAbsence }, Self::outcome)
    }
}

/// An error and its sources, the outermost one first.
pub fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// Errors in one line: each one's text behind that of the one before, control characters spelled out. What says no more
/// than the line does so far is left out.
pub fn one_line<'a>(causes: impl IntoIterator<Item = &'a (dyn Error + 'static)>) -> String {
    let mut line = String::new();
    for cause in causes {
        let text = on_one_line(&cause.to_string());
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

/// A text whose control characters are spelled out: none of it moves a terminal's cursor or begins a line in a log.
#[must_use]
pub fn on_one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
}

/// Lets `Debug` of errors read like `Display`, with all causes behind it in [one line](crate::one_line): `main` shows an error
/// by its `Debug`.
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

/// The first error of type `E` in an error's chain of sources.
#[must_use]
pub fn find_cause<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    causes(error).find_map(<dyn Error>::downcast_ref)
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.cause, self.fate) {
            (Cause::Refusal, _) => "request refused before it was sent",
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
        // What is said already is not said again.
        let outer = Failure::new(Fate::NeverLeft, Failure::new(Fate::NeverLeft, "refused"));
        assert_eq!(format!("{outer:?}"), "request not sent: refused");
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
