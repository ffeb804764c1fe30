//! The content of a token store in words and counts.

use std::time::{Duration, SystemTime};

use steadfast::auth::Summary;

use crate::clock::wall;

/// How many wrong logins with the same credentials latch them; the library's default.
pub(crate) const BUDGET: u32 = 2;
/// How many wrong logins latch the account.
pub(crate) const ACCOUNT_BUDGET: u32 = BUDGET + 1;
/// From this number of sessions on, the next logins end sessions that may be in use (§5).
pub(crate) const MANY_SESSIONS: usize = 7;

/// Describes logins whose end is unknown; `None` if there are none.
pub(crate) fn unknown_ends(summary: &Summary) -> Option<String> {
    let logins = match summary.unknown {
        0 => return None,
        1 => "1 login".to_owned(),
        many => format!("{many} logins"),
    };
    let mut said = format!("{logins} of unknown end, which may have been wrong");
    if let Some(why) = &summary.unknown_why {
        said += &format!(" (the last: {why})");
    }
    if let Some(next) = summary.next_login_at.filter(|next| *next > wall()) {
        said += &format!("; the next may leave at {}, or after `auth reset`", httpdate::fmt_http_date(next));
    }
    Some(said)
}

/// True if the service has refused the token since it accepted it last.
pub(crate) fn is_refused(summary: &Summary) -> bool {
    summary.is_refused || summary.refused_at.is_some()
}

/// Says that the service has refused a token, and when, if that is known.
pub(crate) fn refusal(summary: &Summary) -> String {
    match summary.refused_at {
        Some(at) => format!("401, last at {}", httpdate::fmt_http_date(at)),
        None => "401".to_owned(),
    }
}

/// Describes logins that were answered with 429; `None` if there are none.
pub(crate) fn throttled(summary: &Summary) -> Option<String> {
    let logins = match summary.throttled {
        0 => return None,
        1 => "1 login was".to_owned(),
        many => format!("{many} logins in a row were"),
    };
    let mut said = format!("{logins} answered with 429");
    if let Some(next) = summary.next_login_at.filter(|next| *next > wall()) {
        said += &format!("; the next may leave at {}, or after `auth reset`", httpdate::fmt_http_date(next));
    }
    Some(said)
}

/// Counts sessions opened in the last 24 hours, including those dated ahead of this machine's clock.
pub(crate) fn recent_sessions(summary: &Summary) -> usize {
    let (now, day) = (wall(), Duration::from_secs(86_400));
    let is_recent = |at: &&SystemTime| now.duration_since(**at).map_or(true, |age| age < day);
    summary.sessions.iter().filter(is_recent).count()
}
