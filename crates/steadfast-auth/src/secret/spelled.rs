//! Escaped texts, and texts in base64 and hex, within other texts. A search for a secret in foreign text must look at these
//! too.

use std::ops::Range;

use super::escapes::Escapes;

/// The shortest run that is decoded; shorter ones reveal no secret.
const LEAST: usize = 8;
/// How deep encodings may be nested: base64 in an address is percent-encoded as well.
const DEPTH: usize = 2;

/// A decoded run of characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spelled {
    /// The range of the run in the text.
    pub(super) place: Range<usize>,
    /// Its content, in one of the possible encodings.
    pub(super) bytes: Vec<u8>,
    /// True if the run holds escapes, so that it was meant as an encoding.
    pub(super) is_escaped: bool,
}

/// Returns everything in a text that can be decoded, in each possible way. Most of it was never meant as an encoding.
pub(super) fn spelled(text: &str) -> Vec<Spelled> {
    let mut found = Vec::new();
    let mut push = |place, bytes, is_escaped| found.push(Spelled { place, bytes, is_escaped });
    spell(text.as_bytes(), &mut push, DEPTH);
    found
}

fn spell(text: &[u8], found: &mut dyn FnMut(Range<usize>, Vec<u8>, bool), depth: usize) {
    let mut take = |place: Range<usize>, bytes: Vec<u8>, is_escaped: bool| {
        if depth > 1 {
            // The content of the nested encoding belongs to the same run.
            spell(
                &bytes,
                &mut |_, inner, is_inner| found(place.clone(), inner, is_escaped && is_inner),
                depth - 1,
            );
        }
        found(place, bytes, is_escaped);
    };
    for place in runs(text, |byte| byte.is_ascii_graphic()) {
        let run = &text[place.clone()];
        for bytes in Escapes::LEADS.iter().filter_map(|&lead| unescaped(run, lead)) {
            take(place.clone(), bytes, true);
        }
    }
    for place in runs(text, |byte| sextet(byte).is_some()) {
        // Other characters may precede the encoded ones, so each of the four offsets is tried.
        for skipped in 0..4 {
            take(place.clone(), base64(&text[place.start + skipped..place.end]), false);
        }
    }
    for place in runs(text, |byte| byte.is_ascii_hexdigit()) {
        for skipped in 0..2 {
            take(place.clone(), hex(&text[place.start + skipped..place.end]), false);
        }
    }
}

/// Returns the longest runs of bytes that are all `of_it`.
fn runs(text: &[u8], of_it: impl Fn(u8) -> bool) -> Vec<Range<usize>> {
    let (mut runs, mut start) = (Vec::new(), 0);
    for at in 0..=text.len() {
        if text.get(at).is_some_and(|&byte| of_it(byte)) {
            continue;
        }
        if at - start >= LEAST {
            runs.push(start..at);
        }
        start = at + 1;
    }
    runs
}

/// Decodes the escapes that begin with this byte. Returns `None` if the run contains none.
fn unescaped(run: &[u8], lead: u8) -> Option<Vec<u8>> {
    let (mut bytes, mut at, mut any) = (Vec::new(), 0, false);
    let mut escapes = Escapes::of(run);
    // The byte itself comes first, and then what it is the beginning of.
    while let Some((character, end)) = escapes.read(at, usize::from(run.get(at) == Some(&lead))).last() {
        let is_escaped = end > at + 1;
        match u8::try_from(character) {
            // An address escapes bytes.
            Ok(byte) if !is_escaped || lead == b'%' => bytes.push(byte),
            _ => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        (at, any) = (end, any || is_escaped);
    }
    any.then_some(bytes)
}

fn base64(run: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(run.len() * 3 / 4);
    let (mut bits, mut count) = (0_u32, 0);
    for value in run.iter().filter_map(|&byte| sextet(byte)) {
        (bits, count) = (bits << 6 | u32::from(value), count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    bytes
}

/// Decodes a digit of either alphabet: `+/` or `-_`.
fn sextet(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}

fn hex(run: &[u8]) -> Vec<u8> {
    let pairs = run.chunks_exact(2);
    pairs.filter_map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spells(text: &str, secret: &str) -> bool {
        let holds = |bytes: &[u8]| bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        spelled(text).iter().any(|spelled| holds(&spelled.bytes))
    }

    #[test]
    fn x01_a_text_is_read_in_each_spelling_of_it() {
        let secret = "t0ken/with+signs=";
        for text in [
            "t0ken%2Fwith%2Bsigns%3D",
            "see ?t=%74%30%6b%65%6E%2f%77%69%74%68%2b%73%69%67%6e%73%3d&x=1",
            "dDBrZW4vd2l0aCtzaWducz0=",
            "Basic a2V5OnQwa2VuL3dpdGgrc2lnbnM9",
            "x-a2V5OnQwa2VuL3dpdGgrc2lnbnM9",
            "dDBrZW4vd2l0aCtzaWducz0%3D",
            "74306b656e2f776974682b7369676e733d",
            "(F74306B656E2F776974682B7369676E733D)",
            r#"{"t":"t0ken\/with\u002bsigns="}"#,
            r"\u0074\u0030\u006B\u0065\u006e\u002F\u0077\u0069\u0074\u0068\u002b\u0073\u0069\u0067\u006e\u0073\u003d",
            r"t0ken\\\/with+signs=",
            r"t0ken\x2fwith\x2Bsigns=",
            "t0ken&#x2F;with&#43;signs=",
            r"t0ken%5C%2fwith+signs=",
            r"dDBrZW4vd2l0aCt\u007aaWducz0=",
        ] {
            assert!(spells(text, secret), "{text}");
        }
        for text in [
            "",
            "%",
            "Order placed",
            "dDBrZW4vd2l0aC",
            "100% of 12345678 is nothing",
            r"t0ken\with+signs=\u00",
        ] {
            assert!(!spells(text, secret), "{text}");
        }
    }
}
