//! Finds whole secrets in a text that comes in parts, as an answer does.

use std::{collections::BTreeSet, fmt, ops::Range};

use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD, HEXLOWER, HEXUPPER};
use secrecy::{ExposeSecret, SecretString};

use super::escapes::Escapes;

/// A shorter text occurs everywhere by chance, and a masked price is worse.
const SHORTEST: usize = 6;

/// How deep escapes may be nested.
const DEPTH: usize = 3;

/// Finds secrets in each spelling, for a program that masks them in a text that it passes on.
///
/// A spelling is a rule, not a list: each character of a secret may be itself or any escape of addresses, JSON, code and pages
/// (`%3d`, `\u003D`, `\/`, `&#61;`), and the characters of an escape may be escaped in turn, three levels in all. The secret may
/// also be within base64 or hex, with the same escapes. A part of a secret is not found, nor is one of less than six characters,
/// nor characters beyond ASCII that are escaped.
///
/// A text without any is looked at once, two bytes at a time.
pub struct SecretFinder {
    /// The secrets, plain and encoded.
    texts: Vec<Vec<u8>>,
    /// True for the pairs of bytes with which a spelling can begin.
    pairs: Vec<bool>,
}

/// The secrets that [`SecretFinder::find`] found in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// The places of secrets, by their beginning. They may overlap.
    pub secrets: Vec<Range<usize>>,
    /// Where the text begins that is to be looked at again with what follows it. It is empty if the text does not go on.
    pub open: usize,
}

impl SecretFinder {
    /// Looks for these secrets.
    #[must_use]
    pub fn new(secrets: &[SecretString]) -> Self {
        let secrets = secrets.iter().map(ExposeSecret::expose_secret).filter(|text| text.len() >= SHORTEST);
        let mut texts: Vec<_> = secrets.flat_map(encodings).collect();
        texts.sort_unstable();
        texts.dedup();
        let pairs = if texts.is_empty() { Vec::new() } else { pairs_of(&texts) };
        Self { texts, pairs }
    }

    /// Returns the secrets in a text. If it `goes_on`, the last of them may still be incomplete.
    #[must_use]
    pub fn find(&self, text: &[u8], goes_on: bool) -> Found {
        let mut found = Found { secrets: Vec::new(), open: text.len() };
        if self.texts.is_empty() {
            return found;
        }
        let pairs = text.windows(2).enumerate().filter(|(_, pair)| self.pairs[index(pair[0], pair[1])]);
        for at in pairs.map(|(at, _)| at).chain(text.len().checked_sub(1)) {
            let (end, is_cut) = self.find_at(text, at);
            // It may turn out to be longer.
            if goes_on && is_cut {
                found.open = at;
                break;
            }
            found.secrets.extend(end.map(|end| at..end));
        }
        found
    }

    /// Returns the end of the longest secret that begins here, and whether the text ended before all was read.
    fn find_at(&self, text: &[u8], at: usize) -> (Option<usize>, bool) {
        let mut escapes = Escapes::of(text);
        // The rests of secrets that may go on, each with its place. Taken by place, so that none is taken twice.
        let mut open = BTreeSet::new();
        for (character, at) in escapes.read(at, DEPTH) {
            open.extend(self.texts.iter().filter_map(|secret| Some((at, after(secret, character)?))));
        }
        let mut end = None;
        while let Some((at, rest)) = open.pop_first() {
            if rest.is_empty() {
                end = Some(at);
            } else {
                let goes_on = |(character, at)| Some((at, after(rest, character)?));
                open.extend(escapes.read(at, DEPTH).filter_map(goes_on));
            }
        }
        (end, escapes.is_cut())
    }
}

/// Returns what follows this character in a secret that begins with it.
fn after(secret: &[u8], character: char) -> Option<&[u8]> {
    secret.split_first().filter(|&(&first, _)| char::from(first) == character).map(|(_, rest)| rest)
}

impl Default for SecretFinder {
    fn default() -> Self {
        Self::new(&[])
    }
}

impl fmt::Debug for SecretFinder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretFinder").finish_non_exhaustive()
    }
}

/// Returns a secret as it is, in hex, and what base64 makes of it wherever it stands in the encoded bytes.
fn encodings(secret: &str) -> Vec<Vec<u8>> {
    let secret = secret.as_bytes();
    let mut texts = vec![secret.to_vec(), HEXLOWER.encode(secret).into(), HEXUPPER.encode(secret).into()];
    for (before, skipped) in [(0, 0), (1, 2), (2, 3)] {
        let bytes = [&[0; 2][..before], secret].concat();
        // The digits at both ends that also hold bits of other bytes are left out.
        let digits = skipped..bytes.len() * 8 / 6;
        for encoding in [BASE64_NOPAD, BASE64URL_NOPAD] {
            texts.push(encoding.encode(&bytes).as_bytes()[digits.clone()].to_vec());
        }
    }
    texts
}

/// Marks the pairs of bytes with which a spelling of these texts can begin.
fn pairs_of(texts: &[Vec<u8>]) -> Vec<bool> {
    let mut pairs = vec![false; 1 << 16];
    let firsts: Vec<_> = texts.iter().map(|text| char::from(text[0])).collect();
    for lead in Escapes::LEADS {
        for text in texts {
            pairs[index(text[0], text[1])] = true;
            pairs[index(text[0], lead)] = true;
        }
        for second in 0..=u8::MAX {
            pairs[index(lead, second)] |= Escapes::may_begin(lead, second, &firsts);
        }
    }
    pairs
}

fn index(first: u8, second: u8) -> usize {
    usize::from(first) << 8 | usize::from(second)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select};

    use super::*;

    fn finder(secrets: &[&str]) -> SecretFinder {
        SecretFinder::new(&secrets.iter().map(|&secret| secret.into()).collect::<Vec<SecretString>>())
    }

    /// Returns a text with asterisks for the secrets in it.
    fn masked(finder: &SecretFinder, text: &str) -> String {
        let mut masked = text.as_bytes().to_vec();
        finder.find(text.as_bytes(), false).secrets.into_iter().for_each(|place| masked[place].fill(b'*'));
        String::from_utf8(masked).unwrap()
    }

    #[test]
    fn x01_a_secret_is_found_in_each_spelling() {
        let finder = finder(&["t0ken/with+s1gns=", "%41-percent"]);
        for text in [
            "<t0ken/with+s1gns=>",
            "<t0ken%2Fwith%2bs1gns%3d>",
            r"<t0ken\/with\u002Bs1gns\u003d>",
            r"<t0ken\\\/with\\u002bs1gns\\\\u003d>",
            r"<t0ken\x2fwith+s1gns=>",
            "<t0ken&#x2F;with&#43;s1gns&#0061;>",
            "<t0ken&sol;with&plus;s1gns&equals;>",
            "<t0ken&amp;sol;with&amp;#43;s1gns=>",
            "<t0ken%252fwith%25252Bs1gns%3D>",
            "<t0ken%26%2347%3bwith+s1gns=>",
            r"<%74\u0030ken%5C%2fwith+s1gns=>",
            "<74306b656e2f776974682b7331676e733d>",
            "<74306B656E2F776974682B7331676E733D>",
            "<%41-percent>",
            "<%2541-percent>",
            "<%%41%2dpercent>",
        ] {
            let masked = masked(&finder, text);
            let inner = masked.trim_matches(['<', '>']).trim_start_matches('%');
            assert!(inner.bytes().all(|byte| byte == b'*'), "{text}: {masked}");
        }
    }

    #[test]
    fn what_only_resembles_a_secret_stays() {
        let finder = finder(&["t0ken/with+s1gns=", "%41-percent", "short"]);
        for text in [
            "",
            "short",
            "t0ken/with+s1gns",
            "T0KEN/WITH+S1GNS=",
            "t0ken with+s1gns=",
            "t0ken%2Fwith%2bs1gns%3",
            "t0ken%/with+s1gns=",
            "t0ken&solwith+s1gns=",
            r"t0ken\u2fwith+s1gns=",
            r"t0ken\u{2f}with+s1gns=",
            "A-percent",
            r#"{"msg":"100% of t0ken\n &amp; \"with\" 41\u20b9 &nbsp; https:\/\/a.example\/?t=%2F%41","price":41.05}"#,
        ] {
            assert_eq!(masked(&finder, text), text);
        }
        assert_eq!(SecretFinder::default().find(b"t0ken=7", true).open, 7);
    }

    #[test]
    fn x01_key_and_token_are_found_within_base64() {
        let secrets = ["key4711abc", "t0ken/with+s1gns="];
        let finder = finder(&secrets);
        for (before, after) in [("", ""), ("k", "~"), ("Bearer ", "\n"), ("?>~", "~?~ and more")] {
            let bytes = format!("{before}{}{after}", secrets.join(":"));
            for text in [BASE64_NOPAD.encode(bytes.as_bytes()), BASE64URL_NOPAD.encode(bytes.as_bytes())] {
                for text in [text.clone(), text.replace('/', "\\/"), text.replace('+', "%2b")] {
                    let hidden = masked(&finder, &text).bytes().filter(|&byte| byte == b'*').count();
                    // A digit at each end of both also holds bits of a neighbour.
                    assert!(hidden >= (secrets.concat().len() * 8).div_ceil(6) - 4, "{text}");
                }
            }
        }
    }

    #[test]
    fn what_may_begin_a_secret_is_told_while_the_text_goes_on() {
        let finder = finder(&["t0ken=7"]);
        for (text, open) in [
            ("a t0ke", 2),
            ("a t0ken%", 2),
            (r"a \u00", 2),
            ("a t0ken=", 2),
            ("a %", 2),
            ("a &#", 2),
            ("t", 0),
            ("a t0k ", 6),
            ("a %41", 5),
            (r"a \n", 4),
            ("a &b", 4),
            ("", 0),
        ] {
            let found = finder.find(text.as_bytes(), true);
            assert_eq!((found.secrets, found.open), (Vec::new(), open), "{text}");
            assert_eq!(finder.find(text.as_bytes(), false).open, text.len(), "{text}");
        }
    }

    /// Spells a character in one of the ways, and the spelling's characters in turn.
    fn spell(character: u8, ways: &mut dyn Iterator<Item = u8>, depth: usize) -> String {
        let plain = char::from(character).to_string();
        let spelling = match ways.next().filter(|_| depth > 0).unwrap_or_default() {
            1 => format!("%{character:02x}"),
            2 => format!("%{character:02X}"),
            3 => format!("\\u{character:04x}"),
            4 => format!("\\u{character:04X}"),
            5 => format!("\\x{character:02x}"),
            6 => format!("&#{character};"),
            7 => format!("&#x{character:x};"),
            8 if matches!(character, b'/' | b'\\' | b'"' | b'\'') => format!("\\{plain}"),
            9 if character == b'&' => "&amp;".to_owned(),
            _ => return plain,
        };
        spelling.bytes().map(|byte| spell(byte, ways, depth - 1)).collect()
    }

    proptest! {
        /// The rule itself: whatever a secret's characters are escaped as, and whatever stands around it.
        #[test]
        fn x01_a_secret_is_found_however_its_characters_are_spelled(
            secret in "[!-~]{6,24}",
            ways in vec(select(vec![0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), 0..200),
            before in "([ -~]|[%\\\\&]){0,12}",
            after in "([ -~]|[%\\\\&]){0,12}",
        ) {
            let mut ways = ways.into_iter();
            let spelled: String = secret.bytes().map(|byte| spell(byte, &mut ways, DEPTH)).collect();
            let masked = masked(&finder(&[&secret]), &format!("{before}{spelled}{after}"));
            let inner = &masked[before.len()..before.len() + spelled.len()];
            prop_assert!(inner.bytes().all(|byte| byte == b'*'), "{before}{spelled}{after}: {masked}");
        }

        /// Nothing else is found: in a text without escapes, exactly what a plain search finds.
        #[test]
        fn a_text_without_escapes_shows_the_secrets_that_stand_in_it(text in "[ab]{0,80}") {
            let secret = "abbaba";
            let plain: Vec<_> = (0..text.len()).filter(|&at| text[at..].starts_with(secret)).collect();
            let found = finder(&[secret]).find(text.as_bytes(), false);
            prop_assert_eq!(found.secrets, plain.into_iter().map(|at| at..at + 6).collect::<Vec<_>>());
        }

        /// A part shows the same secrets before its open end as the whole text does; and no bytes make it panic.
        #[test]
        fn x01_a_text_in_parts_shows_what_the_whole_shows(
            secret in r"[%&\\#;ux0-2a-c]{6,8}",
            ways in vec(select(vec![0, 0, 1, 3, 6, 8]), 0..60),
            noise in vec(prop_oneof![any::<u8>(), select(br"%\&;#ux0123456789abcdef".to_vec())], 0..80),
            around in any::<prop::sample::Index>(),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut ways = ways.into_iter();
            let spelled: Vec<u8> = secret.bytes().flat_map(|byte| spell(byte, &mut ways, 2).into_bytes()).collect();
            let (before, after) = noise.split_at(around.index(noise.len() + 1));
            let text = [before, &spelled, after].concat();
            let finder = finder(&[&secret, r"\\\\\\", "%%%%%%", "&#&#&#"]);
            let mut whole = finder.find(&text, false).secrets;
            prop_assert!(whole.iter().any(|place| place.start == before.len()));
            let part = finder.find(&text[..cut.index(text.len() + 1)], true);
            whole.retain(|place| place.start < part.open);
            prop_assert_eq!(part.secrets, whole);
        }
    }
}
