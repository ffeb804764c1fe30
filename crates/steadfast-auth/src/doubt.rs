//! Logins whose end nobody knows: each may have been a wrong one.

use std::{
    error::Error,
    fmt,
    time::{Duration, SystemTime},
};

use steadfast_spec::{causes, one_line};

use crate::{LoginFailure, store::Spent};

/// After the first one, which a restart of the gateway explains.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_secs(30);

const HOUR: Duration = Duration::from_secs(3_600);
/// What is kept of the reason.
const LONGEST_REASON: usize = 200;

/// How long the service is left alone after the last of `unknown` logins of the account, as those with `spent` see it.
///
/// Two with the same credentials leave at once, and three of the account; then the waits grow to a day. None is for ever: a
/// service that was down for a night is asked again in the morning.
pub(crate) fn pause(spent: Spent, unknown: u32) -> Duration {
    let own = spent.own.saturating_add(spent.unknown);
    // Other credentials have one more, as the account has of its budget.
    let account = spent.account.saturating_add(unknown).saturating_sub(1);
    match own.max(account) {
        0 | 1 => FIRST_PAUSE,
        2 => HOUR,
        3 => HOUR * 4,
        4 => HOUR * 8,
        _ => HOUR * 24,
    }
}

/// What came of a login, in one line.
pub(crate) fn reason(failure: &LoginFailure) -> String {
    // The cause alone: that the end is unknown is said already.
    let mut line = failure.source().map_or_else(|| failure.to_string(), |cause| one_line(causes(cause)));
    if let Some((end, _)) = line.char_indices().nth(LONGEST_REASON) {
        line.truncate(end);
    }
    line
}

/// Logins of which nobody knows how they ended, found as the source of an [`AuthError`](crate::AuthError).
///
/// Its own source, if it has one, is the [`LoginFailure`] of the last of them.
pub struct UnknownEnds {
    pub(crate) count: usize,
    pub(crate) why: Option<String>,
    pub(crate) next: Option<SystemTime>,
    pub(crate) last: Option<LoginFailure>,
}

impl UnknownEnds {
    /// How many there were since the last success.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// When the next login may leave, by this machine's clock; a reset allows it at once.
    #[must_use]
    pub fn next(&self) -> Option<SystemTime> {
        self.next
    }
}

impl fmt::Display for UnknownEnds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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

steadfast_spec::debug_in_one_line!(UnknownEnds);

impl Error for UnknownEnds {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.last.as_ref().map(|last| last as &(dyn Error + 'static))
    }
}
