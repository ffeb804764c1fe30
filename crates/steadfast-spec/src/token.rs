use std::{error::Error, fmt, time::Duration};

use secrecy::SecretString;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::envelope::read_object;

/// The access token record (§2): the answer of a token endpoint.
///
/// Its `Debug` does not show the token.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TokenRecord {
    /// The token.
    pub access_token: SecretString,
    /// `bearer`, if given; other kinds are kept as they are.
    pub token_type: Option<String>,
    /// How long the token is valid from its issue.
    pub expires_in: Duration,
    /// `general`, if given.
    pub scope: Option<String>,
}

/// A token's life if its record does not give one (§2, §5): 24 hours.
const LIFE: Duration = Duration::from_secs(86_400);

impl TokenRecord {
    /// Reads a token record, bare (§4.2) or inside the `d` of an envelope that is `ok`: the answer of the individual
    /// endpoint is not shown (§4.3).
    ///
    /// `expires_in` may be a number or a text. If it is missing, unreadable, less than a second or more than 24 hours,
    /// it counts as 24 hours, which §5 promises; a shorter life is accepted. `token_type` and `scope` are left out if
    /// they are not texts.
    ///
    /// # Errors
    ///
    /// [`InvalidTokenRecord`] if it holds no token. The error does not show the body.
    pub fn parse(body: &[u8]) -> Result<Self, InvalidTokenRecord> {
        #[derive(Deserialize)]
        struct Wire<'a> {
            access_token: Option<String>,
            #[serde(borrow)]
            token_type: Option<&'a RawValue>,
            #[serde(borrow)]
            expires_in: Option<&'a RawValue>,
            #[serde(borrow)]
            scope: Option<&'a RawValue>,
            s: Option<String>,
            #[serde(borrow)]
            d: Option<&'a RawValue>,
        }

        let text = std::str::from_utf8(body).map_err(|_| InvalidTokenRecord)?;
        let mut wire: Wire<'_> = read_object(text).ok_or(InvalidTokenRecord)?;
        if wire.s.as_deref().is_some_and(|s| s != "ok") {
            return Err(InvalidTokenRecord);
        }
        if let (None, Some(d)) = (&wire.access_token, wire.d) {
            wire = read_object(d.get()).ok_or(InvalidTokenRecord)?;
        }
        let token = wire.access_token.filter(|token| is_header_safe(token)).ok_or(InvalidTokenRecord)?;
        let expires_in = wire.expires_in.and_then(life).unwrap_or(LIFE).min(LIFE);
        // An unreadable optional field must not cost the token: each login may be the one that locks the account.
        let text = |raw: Option<&RawValue>| serde_json::from_str(raw?.get()).ok();
        let (token_type, scope) = (text(wire.token_type), text(wire.scope));
        Ok(Self { access_token: token.into(), token_type, expires_in, scope })
    }
}

/// Returns whole seconds from a number, or a text that holds one; `None` if there is none or it is below one.
fn life(raw: &RawValue) -> Option<Duration> {
    let seconds: f64 = raw.get().trim_matches('"').trim().parse().ok()?;
    if seconds < 1.0 {
        return None;
    }
    Duration::try_from_secs_f64(seconds.floor().min(LIFE.as_secs_f64())).ok()
}

/// Returns true if a token can stand in a header unchanged. The header has two parts separated by a colon (§5). With a
/// colon in the token, every request would be refused as malformed.
fn is_header_safe(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|b| b.is_ascii_graphic()) && !token.contains(':')
}

/// A token endpoint's answer without a usable token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidTokenRecord;

impl fmt::Display for InvalidTokenRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("answer holds no usable access_token")
    }
}

impl Error for InvalidTokenRecord {}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    const BARE: &str = r#"{"access_token":"abc","token_type":"bearer","expires_in":86400,"scope":"general"}"#;

    #[test]
    fn a_record_is_read_bare_and_inside_an_envelope() {
        for body in [BARE.to_owned(), format!(r#"{{"s":"ok","d":{BARE}}}"#)] {
            let record = TokenRecord::parse(body.as_bytes()).unwrap();
            assert_eq!(record.access_token.expose_secret(), "abc");
            assert_eq!(record.expires_in, Duration::from_secs(86_400));
            assert_eq!(record.token_type.as_deref(), Some("bearer"));
        }
    }

    #[test]
    fn a_strange_life_is_24_hours_and_a_short_one_is_believed() {
        for (written, seconds) in [
            ("3600", 3_600),
            ("\"3600\"", 3_600),
            ("3600.0", 3_600),
            ("3.6e3", 3_600),
            ("\" 3600.9 \"", 3_600),
            ("0", 86_400),
            ("0.9", 86_400),
            ("\"inf\"", 86_400),
            ("\"nan\"", 86_400),
            ("[3600]", 86_400),
            ("-1", 86_400),
            ("1e9", 86_400),
            ("99999999999", 86_400),
            ("null", 86_400),
        ] {
            let body = format!(r#"{{"access_token":"abc","expires_in":{written}}}"#);
            let record = TokenRecord::parse(body.as_bytes()).unwrap();
            assert_eq!(record.expires_in, Duration::from_secs(seconds), "{written}");
        }
    }

    #[test]
    fn a_field_that_nobody_needs_costs_no_token() {
        for more in [r#""scope":["general"]"#, r#""token_type":1"#, r#""scope":null,"token_type":{"a":[]}"#] {
            let record =
                TokenRecord::parse(format!(r#"{{"access_token":"abc",{more}}}"#).as_bytes()).unwrap();
            assert_eq!((record.scope, record.token_type), (None, None), "{more}");
        }
    }

    #[test]
    fn what_holds_no_usable_token_is_refused_without_being_echoed() {
        for body in [
            "",
            "{}",
            "[]",
            r#"{"access_token":""}"#,
            r#"{"access_token":"a b"}"#,
            r#"{"access_token":"a\nb"}"#,
            r#"{"access_token":"a:b"}"#,
            r#"{"s":"ok","d":"x"}"#,
            r#"{"s":"error","msg":"x","d":{"access_token":"abc"}}"#,
            r#"{"s":"no-data","access_token":"abc"}"#,
        ] {
            let error = TokenRecord::parse(body.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), "answer holds no usable access_token", "{body}");
        }
    }

    #[test]
    fn debug_does_not_show_the_token() {
        let record = TokenRecord::parse(br#"{"access_token":"s3cr3t-token"}"#).unwrap();
        assert!(!format!("{record:?}").contains("s3cr3t"));
    }
}
