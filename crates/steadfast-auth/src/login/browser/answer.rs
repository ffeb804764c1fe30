use steadfast_spec::Form;

use super::LoginRefused;
use crate::login::OneTimeCode;

/// The meaning of a redirect, genuine or forged.
#[derive(Debug)]
pub(super) enum Answer {
    /// The code of this login.
    Code(OneTimeCode),
    /// The refusal of this login.
    Refused(LoginRefused),
    /// It does not belong to this login; says why.
    Foreign(&'static str),
}

/// A reason is a short word (RFC 6749, 4.1.2.1). Longer ones are not repeated.
const LONGEST_REASON: usize = 40;

impl Answer {
    /// Reads the query of a redirect.
    pub(super) fn of_query(query: &str, state: &str) -> Self {
        // Other parameters of any kind may be present (RFC 6749, 4.1.2). Unreadable ones are ignored.
        let find = |name| query.split('&').find_map(|part| value_of(part, name));
        // Check the state before believing the rest: only the page that was asked for knows it.
        let ours = find("state").is_some_and(|given| is_same(&given, state));
        if !ours {
            return Self::Foreign("another login's state");
        }
        match (find("code"), find("error")) {
            (Some(code), None) if !code.is_empty() => Self::Code(OneTimeCode::new(code)),
            (_, Some(reason)) => {
                let plain = |c: &char| c.is_ascii_lowercase() || *c == '_';
                let reason = reason.chars().take(LONGEST_REASON).take_while(plain).collect();
                Self::Refused(LoginRefused { reason })
            }
            _ => Self::Foreign("no code"),
        }
    }

    /// Reads a text that a person has pasted: the whole address, or only its code.
    pub(super) fn of_pasted(text: &str, state: &str) -> Self {
        let text = text.trim();
        match text.split_once('?') {
            Some((_, query)) => Self::of_query(query.split('#').next().unwrap_or_default(), state),
            None if text.is_empty() || text.contains(['/', ' ', '&', '=']) => Self::Foreign("no code"),
            None => Self::Code(OneTimeCode::new(text)),
        }
    }
}

/// Returns the value of `name` if this part of a query holds it.
fn value_of(part: &str, name: &str) -> Option<String> {
    Form::parse(part.as_bytes()).ok()?.get(name).map(ToOwned::to_owned)
}

/// Compares in constant time: a difference in the first character takes as long as one in the last.
fn is_same(given: &str, state: &str) -> bool {
    given.len() == state.len() && given.bytes().zip(state.bytes()).fold(0, |d, (a, b)| d | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(answer: &Answer) -> &'static str {
        match answer {
            Answer::Code(code) if code.expose() == "c1" => "code",
            Answer::Code(_) => "another code",
            Answer::Refused(_) => "refused",
            Answer::Foreign(_) => "foreign",
        }
    }

    #[test]
    fn only_the_state_that_was_sent_makes_a_query_an_answer() {
        for (query, is) in [
            ("code=c1&state=S", "code"),
            ("state=S&code=c%31", "code"),
            ("code=c1", "foreign"),
            ("code=c1&state=", "foreign"),
            ("code=c1&state=s", "foreign"),
            ("code=c1&state=SS", "foreign"),
            ("state=S", "foreign"),
            ("state=S&code=", "foreign"),
            ("error=access_denied&state=S", "refused"),
            ("error=access_denied", "foreign"),
            ("error=access_denied&code=c1&state=S", "refused"),
            // Other parameters, including some that are not valid form data.
            ("x=%zz&code=c1&y=%&state=S&%ff=%ff", "code"),
            ("&&code=c1&=&state=S&z", "code"),
            ("code=%zz&state=S", "foreign"),
            ("code=c1&state=%zz", "foreign"),
            ("", "foreign"),
        ] {
            assert_eq!(name(&Answer::of_query(query, "S")), is, "{query}");
        }
        let Answer::Refused(refused) = Answer::of_query("error=a_b%0d%0aX&state=S", "S") else { panic!() };
        assert_eq!(refused.reason, "a_b");
    }

    #[test]
    fn an_address_or_a_code_can_be_pasted() {
        for (text, is) in [
            (" http://127.0.0.1:8799/callback?code=c1&state=S\n", "code"),
            ("https://trader.example/?code=c1&state=S#_=_", "code"),
            ("http://127.0.0.1:8799/callback?code=c1&state=T", "foreign"),
            ("c1", "code"),
            ("", "foreign"),
            ("http://127.0.0.1/", "foreign"),
            ("code=c1", "foreign"),
        ] {
            assert_eq!(name(&Answer::of_pasted(text, "S")), is, "{text}");
        }
    }
}
