use steadfast::auth::{Status, TokenPhase};

/// Returns why requests that need a token fail now, and when the next login starts by itself; `None` if they do not.
pub(crate) fn trouble(status: &Status) -> Option<String> {
    if !status.unusable {
        return None;
    }
    let why = match status.phase {
        TokenPhase::Suspect => "the service refuses the token (401)",
        TokenPhase::Latched => "there is no token, and logins have stopped until a reset",
        TokenPhase::NeedsHuman => "there is no token, and only a person can log in",
        _ => "there is no usable token",
    };
    let next = match status.next_login_at {
        Some(at) => format!("the next login starts at {}", httpdate::fmt_http_date(at)),
        None => "no login starts by itself".to_owned(),
    };
    Some(format!("{why}; {next}"))
}
