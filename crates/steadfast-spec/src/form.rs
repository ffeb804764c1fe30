use std::{borrow::Cow, error::Error, fmt};

use http::HeaderValue;
use percent_encoding::percent_decode;

/// Key-value pairs of a form body or a query, in order (§1).
///
/// Its `Debug` shows the keys only: forms carry passwords and one-time codes.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Form {
    pairs: Vec<(Cow<'static, str>, String)>,
}

impl Form {
    /// Creates a form without fields.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a field.
    #[must_use]
    pub fn with(mut self, key: impl Into<Cow<'static, str>>, value: impl Into<String>) -> Self {
        self.pairs.push((key.into(), value.into()));
        self
    }

    /// Returns the value of the first field named `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().find_map(|(k, v)| (k == key).then_some(v))
    }

    /// True if there is a field named `key`.
    #[must_use]
    pub fn contains(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Returns the fields, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(k, v)| (k.as_ref(), v.as_str()))
    }

    /// True if there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The content type of a form (§1).
    pub const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

    /// Returns the fields as `application/x-www-form-urlencoded` text.
    #[must_use]
    pub fn encode(&self) -> String {
        form_urlencoded::Serializer::new(String::new()).extend_pairs(self.iter()).finish()
    }

    /// Reads `application/x-www-form-urlencoded` text strictly.
    ///
    /// # Errors
    ///
    /// [`MalformedForm`] where a browser would guess: a `%` without two hex digits, text that is not UTF-8, a control
    /// character, or a field without a name.
    pub fn parse(text: &[u8]) -> Result<Self, MalformedForm> {
        for (position, &byte) in text.iter().enumerate() {
            let hex = |offset: usize| text.get(position + offset).is_some_and(u8::is_ascii_hexdigit);
            if !(byte.is_ascii_graphic() || byte >= 0x80) || (byte == b'%' && !(hex(1) && hex(2))) {
                return Err(MalformedForm { position });
            }
        }
        let mut form = Self::new();
        let mut position = 0;
        for pair in text.split(|&b| b == b'&') {
            if !pair.is_empty() {
                let mut halves = pair.splitn(2, |&b| b == b'=');
                let key = decode(halves.next().unwrap_or_default()).ok_or(MalformedForm { position })?;
                let value = decode(halves.next().unwrap_or_default()).ok_or(MalformedForm { position })?;
                if key.is_empty() {
                    return Err(MalformedForm { position });
                }
                form.pairs.push((Cow::Owned(key), value));
            }
            position += pair.len() + 1;
        }
        Ok(form)
    }
}

fn decode(text: &[u8]) -> Option<String> {
    let spaced: Vec<u8> = text.iter().map(|&b| if b == b'+' { b' ' } else { b }).collect();
    percent_decode(&spaced).decode_utf8().ok().map(Cow::into_owned)
}

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.pairs.iter().map(|(k, _)| k)).finish()
    }
}

/// A form body or query that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedForm {
    position: usize,
}

impl MalformedForm {
    /// Returns the position of the byte, or of the start of the field, at which reading failed.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }
}

impl fmt::Display for MalformedForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed form at byte {}", self.position)
    }
}

impl Error for MalformedForm {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn special_characters_are_percent_encoded() {
        let form =
            Form::new().with("symId", "EQT_M&M_EQ_NSE").with("redirect_uri", "https://a.example/cb?x=1 2");
        assert_eq!(
            form.encode(),
            "symId=EQT_M%26M_EQ_NSE&redirect_uri=https%3A%2F%2Fa.example%2Fcb%3Fx%3D1+2"
        );
        assert_eq!(Form::parse(form.encode().as_bytes()), Ok(form));
    }

    #[test]
    fn what_a_browser_would_guess_is_malformed() {
        for (text, position) in [
            ("a=%", 2),
            ("a=%4", 2),
            ("a=%zz", 2),
            ("a=1&=2", 4),
            ("a=%ff", 0),
            ("a=1\n", 3),
            ("a b=1", 1),
            ("x=1&a=\u{0}", 6),
        ] {
            assert_eq!(Form::parse(text.as_bytes()), Err(MalformedForm { position }), "{text:?}");
        }
    }

    #[test]
    fn debug_shows_keys_and_never_values() {
        let shown = format!("{:?}", Form::new().with("password", "hunter2"));
        assert_eq!(shown, r#"["password"]"#);
    }

    proptest! {
        #[test]
        fn every_form_survives_its_own_encoding(pairs in prop::collection::vec((".{1,12}", ".{0,12}"), 0..6)) {
            let form = pairs.into_iter().fold(Form::new(), |form, (k, v)| form.with(k, v));
            prop_assert_eq!(Form::parse(form.encode().as_bytes()), Ok(form));
        }

        #[test]
        fn no_bytes_panic(text in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = Form::parse(&text);
        }
    }
}
