//! Notes about the waits of a login.

use std::time::{Duration, SystemTime};

use steadfast::auth::LoginWait;

use crate::{clock::wall, exit::print_note};

/// The note about a refused login, before its next try.
pub(super) const REFUSED: &str = "the login was refused (401): the code, the password, the client id or the API key is wrong, or \
                                  this machine's address is not registered";

/// A shorter wait needs no note.
const SHORT: Duration = Duration::from_secs(1);

/// Prints what a login waits for, and until when.
pub(super) fn note(wait: LoginWait) {
    if let Some(text) = text(wait, wall()) {
        print_note(format_args!("steadfast: {text}"));
    }
}

fn text(wait: LoginWait, now: SystemTime) -> Option<String> {
    let left = wait.until.duration_since(now).ok().filter(|left| *left >= SHORT)?;
    let until = format!("{} (in {} s)", httpdate::fmt_http_date(wait.until), left.as_secs());
    Some(match wait.after {
        None => format!("the login waits for the next one-time code, until {until}"),
        Some("refused") => format!(
            "{REFUSED}; it is tried once more with the next code, at {until}; one more refusal stops these logins, and \
             Ctrl-C is safe"
        ),
        Some("rate_limited") => {
            format!("the service answered the login with 429: the next try leaves at {until}")
        }
        Some("not_sent") => format!("the login did not leave this machine: the next try leaves at {until}"),
        Some(_) => format!(
            "the end of the login is unknown, and it may have been a wrong one: the next try leaves at {until}"
        ),
    })
}
