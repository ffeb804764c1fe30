//! Logins with an unknown end. Each may have been a wrong one.

use std::{error::Error, fmt, time::SystemTime};

use steadfast_call::{causes, one_line};

use super::LoginFailure;

/// The longest reason that is kept, in characters.
const LONGEST_REASON: usize = 200;

/// Returns the reason of a failure in one line.
pub(super) fn reason(failure: &LoginFailure) -> String {
    // The cause alone: the caller's text says already that the end is unknown.
    let mut line = failure.source().map_or_else(|| failure.to_string(), |cause| one_line(causes(cause)));
    if let Some((end, _)) = line.char_indices().nth(LONGEST_REASON) {
        line.truncate(end);
    }
    line
}

/// Logins with an unknown end, found as the source of an [`AuthError`](crate::AuthError).
///
/// Its own source, if it has one, is the [`LoginFailure`] of the last of them.
pub struct UnknownEnds {
    pub(crate) count: usize,
    pub(crate) why: Option<String>,
    pub(crate) next: Option<SystemTime>,
    pub(crate) last: Option<LoginFailure>,
}

impl UnknownEnds {
    /// Returns how many there were since the last success.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns when the next login may leave, by this machine's clock. A reset allows it at once.
    #[must_use]
    pub fn next(&self) -> Option<SystemTime> {
        self.next
    }
}

impl fmt::Display for UnknownEnds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return f.write_str(&one_line(causes(self)));
        }
        let logins = if self.count == 1 { "login" } else { "logins" };
        write!(f, "{} {logins} since the last success ended unknown and may have been wrong", self.count)?;
        if let (Some(why), None) = (&self.why, &self.last) {
            write!(f, " (the last: {why})")?;
        }
        match self.next {
            Some(next) => {
                write!(f, "; the next may leave at {}, or after a reset", httpdate::fmt_http_date(next))
            }
            None => Ok(()),
        }
    }
}

steadfast_call::debug_in_one_line!(UnknownEnds);

impl Error for UnknownEnds {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.last.as_ref().map(|last| last as &(dyn Error + 'static))
    }
}
