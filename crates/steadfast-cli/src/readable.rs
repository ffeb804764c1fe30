//! Makes foreign texts safe for a terminal, a file or a log.
//!
//! The service's texts may quote a token, move a terminal's cursor, or begin like a spreadsheet formula. Each of them
//! passes [`readable`] where it comes in, and its names of orders pass [`identifier`]. Everything that this command writes
//! passes [`composed`] as well, which leaves its own words alone: one of them may be a password. Cells of a result
//! file pass [`cell`]. The log, whose lines are not taken apart, is masked like a foreign text.

use std::{
    borrow::Cow,
    fmt::{self, Write as _},
    io,
};

use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use steadfast::auth::{TokenSource, secret_places, shows_secret};
use steadfast_spec::changes_display;

/// Replaces a secret.
const MASK: &str = "***";

/// The secrets that this process has read.
static SECRETS: Mutex<Vec<SecretString>> = Mutex::new(Vec::new());
/// The token sources of this process. Their tokens change while it runs.
static SOURCES: Mutex<Vec<TokenSource>> = Mutex::new(Vec::new());

/// Order ids that share a piece with a secret by chance. They are shown all the same.
static IDENTIFIERS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Masks a secret in everything that is written from now on.
pub(crate) fn hide(secret: &SecretString) {
    let mut secrets = SECRETS.lock();
    let text = secret.expose_secret();
    if !text.is_empty() && !secrets.iter().any(|known| known.expose_secret() == text) {
        secrets.push(secret.clone());
    }
}

/// Masks the tokens of a source in everything that is written from now on.
pub(crate) fn hide_tokens_of(source: &TokenSource) {
    SOURCES.lock().push(source.clone());
}

/// Returns a foreign text without secrets, passwords in addresses, and characters that control a terminal.
pub(crate) fn readable(text: &str) -> Cow<'_, str> {
    shown(text, Words::Foreign)
}

/// As [`readable`], for a text of this command that holds foreign ones, which were made readable before. A possible word of
/// its own is not masked.
pub(crate) fn composed(text: &str) -> Cow<'_, str> {
    shown(text, Words::Own)
}

fn shown(text: &str, words: Words) -> Cow<'_, str> {
    let masked = without_passwords(without_secrets(text.into(), words));
    without_control(masked)
}

/// The author of a text's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Words {
    Foreign,
    /// Ours, with foreign texts between them.
    Own,
}

/// From this many letters on, what a secret and a text have in common is no ordinary word.
const LONG: usize = 16;

fn may_be_a_word(text: &str) -> bool {
    let letters = text.chars().filter(|c| !c.is_whitespace());
    text.chars().all(|c| c.is_ascii_alphabetic() || c.is_whitespace()) && letters.count() < LONG
}

/// Returns the service's name for an order, readable. It is masked if it shows a secret. By chance it may share a short
/// piece with one, such as a date, and the user needs it to cancel the order: from then on it is shown in
/// every other text as well.
pub(crate) fn identifier(text: &str) -> Cow<'_, str> {
    let secrets = secrets();
    if secrets.iter().any(|secret| shows_secret(text, secret)) {
        return MASK.into();
    }
    if !secret_places(text, &secrets).is_empty() {
        let mut known = IDENTIFIERS.lock();
        if !known.iter().any(|other| other == text) {
            known.push(text.to_owned());
        }
    }
    without_control(text.into())
}

fn without_control(masked: Cow<'_, str>) -> Cow<'_, str> {
    if masked.chars().all(|c| c == '\n' || !changes_display(c)) {
        return masked;
    }
    let mut shown = String::with_capacity(masked.len());
    for c in masked.chars() {
        match c {
            '\n' => shown.push('\n'),
            '\t' => shown.push(' '),
            c if changes_display(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown.into()
}

/// Returns a composed text as a table cell: on one line, and not a formula in any spreadsheet.
pub(crate) fn cell(text: &str) -> Cow<'_, str> {
    in_cell(composed(text))
}

/// Returns the service's name for an order as a table cell.
pub(crate) fn identifier_cell(text: &str) -> Cow<'_, str> {
    in_cell(identifier(text))
}

fn in_cell(text: Cow<'_, str>) -> Cow<'_, str> {
    let text = match text {
        text if text.contains('\n') => text.replace('\n', " ").into(),
        text => text,
    };
    if !text.trim_start().starts_with(['=', '+', '-', '@']) {
        return text;
    }
    format!("'{text}").into()
}

/// Returns the secrets that this process knows now, the current tokens among them.
fn secrets() -> Vec<SecretString> {
    let mut secrets = SECRETS.lock().clone();
    for source in SOURCES.lock().iter() {
        secrets.extend(source.secrets());
    }
    secrets
}

fn without_secrets(text: Cow<'_, str>, words: Words) -> Cow<'_, str> {
    let secrets = secrets();
    let mut places = secret_places(&text, &secrets);
    if places.is_empty() {
        return text;
    }
    let known = IDENTIFIERS.lock();
    // A secret may have become known since.
    let shown = known.iter().filter(|id| !secrets.iter().any(|secret| shows_secret(id, secret)));
    let shown: Vec<_> = shown
        .flat_map(|id| text.match_indices(id.as_str()))
        .filter(|(at, id)| {
            // A longer word is no order id, but may be the secret.
            let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '/');
            !text[..*at].ends_with(is_part) && !text[at + id.len()..].starts_with(is_part)
        })
        .collect();
    places.retain(|place| !shown.iter().any(|(at, id)| *at <= place.start && place.end <= at + id.len()));
    drop(shown);
    drop(known);
    let mut hidden = vec![false; text.len()];
    places.into_iter().for_each(|place| hidden[place].fill(true));
    if words == Words::Own {
        show_words(&text, &mut hidden);
    }
    masked(&text, |at| hidden[at]).into()
}

/// Shows the hidden pieces that may be words of our own.
fn show_words(text: &str, hidden: &mut [bool]) {
    let mut from = 0;
    for piece in hidden.to_vec().chunk_by(|one, next| one == next) {
        let place = from..from + piece.len();
        if piece[0] && may_be_a_word(&text[place.clone()]) {
            hidden[place.clone()].fill(false);
        }
        from = place.end;
    }
}

/// Masks possible secrets in an address: user and password between `://` and `@`, and the text after `?` or `#`.
fn without_passwords(text: Cow<'_, str>) -> Cow<'_, str> {
    let mut spans = Vec::new();
    for (found, _) in text.match_indices("://") {
        let from = found + 3;
        let ends_authority =
            |c: char| matches!(c, '/' | '?' | '#' | '\'' | '"' | '<' | '>') || c.is_whitespace();
        let end = text[from..].find(ends_authority).map_or(text.len(), |at| from + at);
        // A password may hold an unescaped slash, so search up to the last `@` before the next blank.
        let word = text[from..].find(char::is_whitespace).map_or(text.len(), |at| from + at);
        let at = text[from..end]
            .rfind('@')
            .or_else(|| text[from..word].rfind('@').filter(|_| text[from..end].contains(':')));
        if let Some(at) = at {
            spans.push(from..from + at);
        }
        // A closing quote or punctuation belongs to the sentence.
        let address = text[from..word].trim_end_matches(['\'', '"', '>', ')', ',', '.', ';', ':']);
        if let Some(at) = address.find(['?', '#']) {
            spans.push(from + at + 1..from + address.len());
        }
    }
    if spans.is_empty() {
        return text;
    }
    masked(&text, |at| spans.iter().any(|span| span.contains(&at))).into()
}

/// Replaces each run of hidden bytes by one mask.
fn masked(text: &str, is_hidden: impl Fn(usize) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut inside = false;
    for (at, c) in text.char_indices() {
        let hidden = is_hidden(at);
        if hidden && !inside {
            shown.push_str(MASK);
        } else if !hidden {
            shown.push(c);
        }
        inside = hidden;
    }
    shown
}

/// Wraps a text of this command, so that it is written as [`composed`] shows it.
pub(crate) struct Readable<T>(pub(crate) T);

impl<T: fmt::Display> fmt::Display for Readable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        write!(text, "{}", self.0)?;
        f.write_str(&composed(&text))
    }
}

/// Standard error for the log; each event is written in one piece.
pub(crate) struct Log;

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        // The log's own colours must work. Foreign texts in it were escaped when they were logged.
        let shown = without_passwords(without_secrets(text, Words::Foreign));
        // A log that cannot be written, as on a full disk, stops nothing: the one who logs would panic.
        let _ = io::stderr().write_all(shown.as_bytes());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x01_what_a_terminal_obeys_is_spelled_out() {
        assert_eq!(readable("a\x1b[2Jb\u{202e}c\td"), "a\\u{1b}[2Jb\\u{202e}c d");
        assert_eq!(readable("two\nlines"), "two\nlines");
        assert_eq!(cell("two\nlines\r"), "two lines\\u{d}");
    }

    #[test]
    fn x01_a_formula_is_quoted_and_a_text_is_not() {
        for formula in ["=1+1", "+cmd", "-2", "@sum", "  =x", "\t=x"] {
            assert!(cell(formula).starts_with('\''), "{formula:?}: {}", cell(formula));
        }
        assert_eq!(cell("Order placed"), "Order placed");
        assert_eq!(cell("260000000001"), "260000000001");
    }

    #[test]
    fn x01_a_piece_of_a_secret_is_masked_and_so_is_a_password() {
        hide(&SecretString::from("a-secret-of-some-length"));
        hide(&SecretString::from("pin7"));
        assert_eq!(readable("<a-secret-of-some-length>, <t-of-some-len>"), "<***>, <***>");
        assert_eq!(readable("pin7, pin77, spin7"), "***, pin77, spin7");
        assert_eq!(
            readable("<A-SECRET-OF-some>, <a-sec\r\nret-of>, <a-se\u{200b}cret>"),
            "<***>, <***>, <***>"
        );
        assert_eq!(readable("a YS1zZWNyZXQtb2Ytc29tZS1sZW5ndGg= b"), "a ***= b");
        assert_eq!(readable("a %61-secret-of-some b, 612d7365637265742d6f66"), "a *** b, ***");
        assert_eq!(readable("institution of a hundred thousands"), "institution of a hundred thousands");
        assert_eq!(readable("order of-some-7, placed"), "order ***7, placed");
        assert_eq!(identifier("of-some-7"), "of-some-7");
        assert_eq!(readable("order of-some-7, placed"), "order of-some-7, placed", "it is an order id");
        assert_eq!(readable("of-some-7, a-secret-of"), "of-some-7, ***", "and no other text");
        assert_eq!(readable("of-some-7-of, 1of-some-7"), "***7-of, 1***7");
        for start in ["1a-secret-of-some-length", "a-secret-of-some", "A-SECRET7"] {
            assert_eq!(identifier(start), "***", "{start} begins as the secret does");
        }
        assert_eq!(identifier("htgnel-emos-fo-terces-a"), "htgnel-emos-fo-terces-a", "backwards it is none");
        assert_eq!(readable("see https://user:pa/ss@host/v2 there"), "see https://***@host/v2 there");
        assert_eq!(readable("'http://u:p@h'"), "'http://***@h'");
        assert_eq!(readable("'https://host/v2?to=a@b' for"), "'https://host/v2?***' for");
        assert_eq!(readable("https://u:p@host/v2#key=a, b"), "https://***@host/v2#***, b");
        assert_eq!(readable("is it http://host/v2?"), "is it http://host/v2?");
    }

    #[test]
    fn x01_a_word_that_is_the_password_stands_in_our_own_texts_and_in_no_foreign_one() {
        hide(&SecretString::from("zebra"));
        hide(&SecretString::from("hippopotamus"));
        hide(&SecretString::from("lettersonlybutlongerthananyword"));
        let own = "a zebra and a hippopotamus, {\"zebra\": 1}";
        assert_eq!(composed(own), own);
        assert_eq!(readable(own), "a *** and a ***, {\"***\": 1}");
        assert_eq!(cell(&format!("the zebra said: {}", readable("zebra"))), "the zebra said: ***");
        assert_eq!(composed("lettersonlybutlongerthananyword"), "***", "it is no word");
        hide(&SecretString::from("giraffe1-and-more"));
        assert_eq!(composed("of giraffe1-and-more"), "of ***");
    }
}
