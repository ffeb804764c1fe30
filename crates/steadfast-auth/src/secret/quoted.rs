//! Finds secrets in a foreign text. The service may quote a token in part, encoded or in another case.

use std::{collections::HashSet, ops::Range};

use secrecy::{ExposeSecret, SecretString};
use steadfast_spec::changes_display;

use super::spelled::{Spelled, spelled};

/// This many consecutive characters of a secret identify it, even if the rest is cut off.
const PIECE: usize = 8;
/// From this many characters on, no two texts have a piece in common by chance.
const LONG_PIECE: usize = 12;

/// Returns the places of `text` that show one of the secrets, in no order.
///
/// A secret is shown by eight characters of it, as they are, escaped as in addresses, JSON and pages, or in base64 or hex, in any
/// case and with blanks in them. A shorter one must be a word of its own, because short texts occur everywhere; from five
/// characters on, it is also shown by a text that is exactly its encoding.
#[must_use]
pub fn secret_places(text: &str, secrets: &[SecretString]) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    if secrets.is_empty() {
        return places;
    }
    let (plain, spelled) = (Plain::of(text), spelled(text));
    for secret in secrets.iter().map(ExposeSecret::expose_secret) {
        if secret.len() < PIECE {
            places.extend(words(text, secret));
            let escaped = spelled.iter().filter(|spelled| spelled.is_escaped);
            let is_word = |bytes: &[u8]| words(&String::from_utf8_lossy(bytes), secret).next().is_some();
            places.extend(
                escaped.filter(|spelled| is_word(&spelled.bytes)).map(|spelled| spelled.place.clone()),
            );
            // A few bytes occur in any word by chance.
            if secret.len() > PIECE / 2 {
                let encoded = spelled.iter().filter(|spelled| spelled.bytes == secret.as_bytes());
                places.extend(encoded.map(|spelled| spelled.place.clone()));
            }
            continue;
        }
        let secret = Plain::of(secret).bytes;
        let pieces: HashSet<&[u8]> = secret.windows(PIECE.min(secret.len()).max(1)).collect();
        places.extend(pieces_in(&plain.bytes, &pieces).map(|found| plain.place(found)));
        for Spelled { place, bytes, .. } in &spelled {
            if pieces_in(&without_blanks(bytes), &pieces).next().is_some() {
                places.push(place.clone());
            }
        }
    }
    places
}

/// True if a text that stands for something else, such as an order's identifier, shows so much of a secret that this is
/// no chance, as it is, escaped, or in base64 or hex, in any case and with blanks in it.
///
/// That is its beginning, eight characters or more, or any twelve of its characters. Digits alone must be twelve and
/// sixteen, because an identifier may hold the same date. A shorter piece from the middle, and a secret that is spelled
/// backwards, are not found; one that is shorter itself is if it is all of the text.
#[must_use]
pub fn shows_secret(text: &str, secret: &SecretString) -> bool {
    let secret = Plain::of(secret.expose_secret()).bytes;
    let plain = Plain::of(text).bytes;
    if secret.len() < PIECE {
        return secret.len() > PIECE / 2 && plain == secret;
    }
    let is_digits = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_digit);
    let length = if is_digits(&secret[..PIECE]) { secret.len().min(LONG_PIECE) } else { PIECE };
    let pieces = secret.windows(LONG_PIECE).filter(|piece| !is_digits(piece));
    let telling: HashSet<&[u8]> =
        pieces.chain(secret.windows(2 * PIECE)).chain([&secret[..length]]).collect();
    let shows = |bytes: &[u8]| {
        [length, LONG_PIECE, 2 * PIECE]
            .into_iter()
            .any(|length| bytes.windows(length).any(|piece| telling.contains(piece)))
    };
    shows(&plain) || spelled(text).iter().any(|spelled| shows(&without_blanks(&spelled.bytes)))
}

/// A text as secrets are compared with it: in lower case, without blanks and without characters that are not seen.
struct Plain {
    bytes: Vec<u8>,
    /// Where each byte's character is in the text.
    places: Vec<Range<usize>>,
}

impl Plain {
    fn of(text: &str) -> Self {
        let mut plain =
            Self { bytes: Vec::with_capacity(text.len()), places: Vec::with_capacity(text.len()) };
        for (at, c) in text.char_indices().filter(|(_, c)| !c.is_whitespace() && !changes_display(*c)) {
            let place = at..at + c.len_utf8();
            plain.bytes.extend_from_slice(text[place.clone()].to_ascii_lowercase().as_bytes());
            plain.places.resize(plain.bytes.len(), place);
        }
        plain
    }

    fn place(&self, bytes: Range<usize>) -> Range<usize> {
        self.places[bytes.start].start..self.places[bytes.end - 1].end
    }
}

/// As [`Plain`], for decoded bytes, which need not be a text.
fn without_blanks(bytes: &[u8]) -> Vec<u8> {
    let seen = bytes.iter().filter(|byte| !byte.is_ascii() || byte.is_ascii_graphic());
    seen.map(u8::to_ascii_lowercase).collect()
}

/// Returns the places of a text that hold a piece of a secret.
fn pieces_in(text: &[u8], pieces: &HashSet<&[u8]>) -> impl Iterator<Item = Range<usize>> {
    let length = pieces.iter().next().map_or(PIECE, |piece| piece.len());
    let found = text.windows(length).enumerate().filter(|(_, piece)| pieces.contains(piece));
    found.map(move |(at, _)| at..at + length)
}

/// Returns the places where a short secret is a word of its own.
fn words(text: &str, secret: &str) -> impl Iterator<Item = Range<usize>> {
    let is_word = |at: Option<&u8>| at.is_some_and(u8::is_ascii_alphanumeric);
    let (bytes, length) = (text.as_bytes(), secret.len());
    let found = text.match_indices(secret).filter(move |_| length > 0);
    found.map(move |(at, _)| at..at + length).filter(move |place| {
        !is_word(place.start.checked_sub(1).and_then(|at| bytes.get(at))) && !is_word(bytes.get(place.end))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shows(secret: &str, text: &str) -> bool {
        !secret_places(text, &[secret.into()]).is_empty()
    }

    #[test]
    fn x01_a_secret_in_another_spelling_is_found_too() {
        let secret = "token-fedcba9876543210";
        for text in [
            "no access for token%2Dfedcba9876543210",
            "Basic dG9rZW4tZmVkY2JhOTg3NjU0MzIxMA==",
            "746f6b656e2d66656463626139383736353433323130",
            "no access for TOKEN-FEDC",
            "no access for 9876 5432 10",
            "no access for token-\u{200b}fedcba",
            "token-%20fe%0Adcba",
            r"no access for \u0074oken-fe",
        ] {
            assert!(shows(secret, text), "{text}");
        }
        assert!(!shows(secret, "no access for dG9rZW4"));
    }

    #[test]
    fn a_short_secret_is_found_only_as_a_word_or_as_all_of_an_encoded_text() {
        for (secret, text, found) in [
            ("k", "Bad request, kindly check", false),
            ("k", "no access for k:token", true),
            ("token", "tokens end at night", false),
            ("token", "token", true),
            ("token", "für token.", true),
            ("token", "no access for 746f6b656e", true),
            ("token", "see /v2?t=%74oken&x=1", true),
            ("token", r#"{"t":"\u0074oken"}"#, true),
            ("tok", "see /v2?t=%74ok&x=1", true),
            ("tok", "see /v2?t=%74oken&x=1", false),
            ("tok", "no access for dG9rAAAA", false),
            ("a-long-secret", "xa-long-secretx", true),
            ("", "anything", false),
        ] {
            assert_eq!(shows(secret, text), found, "{secret:?} in {text:?}");
        }
    }

    #[test]
    fn the_place_of_a_secret_is_that_of_its_characters_in_the_text() {
        let text = "é for a-secret -of-some b";
        let mut places = secret_places(text, &["a-secret-of-some".into()]);
        places.sort_by_key(|place| (place.start, place.end));
        let (from, to) = (places[0].start, places.iter().map(|place| place.end).max());
        assert_eq!((&text[from..], to), ("a-secret -of-some b", Some(text.len() - 2)));
    }

    #[test]
    fn an_identifier_shares_a_short_piece_with_a_secret_and_no_more() {
        let secret = "a-secret-of-some-length".into();
        assert!(!shows_secret("of-some-7", &secret));
        assert!(!shows_secret("a-secre7", &secret));
        for start in ["a-secret7", "1A-secret-of-some-length", "x A-SEC ret-of"] {
            assert!(shows_secret(start, &secret), "{start}");
        }
        let backwards: String = "a-secret-of-some-length".chars().rev().collect();
        assert!(!shows_secret(&backwards, &secret), "it is not looked for");
        assert!(!shows_secret("pin7", &"pin7".into()));
        for cut in [
            "ecret-of-some-length",
            "26-of-some-lengt",
            "%61-secret",
            "612d7365637265742d6f66",
            "YS1zZWNyZXQtb2Y=",
        ] {
            assert!(shows_secret(cut, &secret), "{cut}");
        }
        assert!(shows_secret("pin77", &"PIN77".into()) && !shows_secret("1pin77", &"pin77".into()));
        let counted = "a-9-202611260001-and-more".into();
        assert!(!shows_secret("2026112600017", &counted), "the same date and number by chance");
        let dated = "20261126-and-more".into();
        assert!(!shows_secret("2026112600017", &dated));
        assert!(shows_secret("20261126-and7", &dated));
        assert!(shows_secret("20261126", &"20261126".into()));
    }
}
