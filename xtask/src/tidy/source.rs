/// Rust source taken apart, so that a rule about code is not broken by a word in a string or a comment.
///
/// Both parts keep the length and the lines of the original; what belongs to neither part is blank.
#[derive(Debug)]
pub(crate) struct Source {
    code: String,
    comments: String,
}

impl Source {
    pub(crate) fn read(text: &str) -> Self {
        let mut source = Self { code: String::new(), comments: String::new() };
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            let (part, length) = if let Some(length) = comment(rest) {
                (Part::Comment, length)
            } else if let Some(length) = literal(rest, source.code.chars().next_back()) {
                (Part::Literal, length)
            } else {
                (Part::Code, next.len_utf8())
            };
            let (piece, after) = rest.split_at(length);
            source.push(&part, piece);
            rest = after;
        }
        source
    }

    /// The code, with comments and the contents of literals blanked.
    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    /// The comments, with their slashes.
    pub(crate) fn comments(&self) -> &str {
        &self.comments
    }

    /// The names of all functions.
    pub(crate) fn function_names(&self) -> Vec<&str> {
        Self::function_names_in(&self.code)
    }

    /// The names of all functions in a piece of code.
    pub(crate) fn function_names_in(code: &str) -> Vec<&str> {
        let mut words = words(code);
        let mut names = Vec::new();
        while let Some((_, word)) = words.next() {
            if word == "fn" {
                names.extend(words.next().map(|(_, name)| name));
            }
        }
        names
    }

    fn push(&mut self, part: &Part, piece: &str) {
        for letter in piece.chars() {
            let blank = if letter == '\n' { '\n' } else { ' ' };
            self.code.push(if matches!(part, Part::Code) { letter } else { blank });
            self.comments.push(if matches!(part, Part::Comment) { letter } else { blank });
        }
    }
}

enum Part {
    Code,
    Comment,
    Literal,
}

/// Iterates over the words of a text with the line, counted from 1, that each stands on.
pub(crate) fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let outside = |letter: char| !(letter.is_alphanumeric() || letter == '_');
    (1..).zip(text.lines()).flat_map(move |(number, line)| {
        line.split(outside).filter(|word| !word.is_empty()).map(move |word| (number, word))
    })
}

fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if !text.starts_with("/*") {
        return None;
    }
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        // Byte-wise: no byte inside a longer character equals a slash or a star.
        match &text.as_bytes()[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return Some(at);
        }
    }
    Some(text.len())
}

fn literal(text: &str, before: Option<char>) -> Option<usize> {
    if let Some(after) = text.strip_prefix('"') {
        return Some(1 + quoted(after, '"'));
    }
    if let Some(after) = text.strip_prefix('\'') {
        let mut letters = after.chars();
        let escaped = letters.next()? == '\\';
        // `'a'` is a character, `'a` a lifetime.
        return (escaped || letters.next() == Some('\'')).then(|| 1 + quoted(after, '\''));
    }
    // `r`, `br` and `cr` begin a raw string only where no longer word ends with them; the letter before is
    // already read, and `b` or `c` stay in the code.
    let word_before = before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    if word_before && !matches!(before, Some('b' | 'c')) {
        return None;
    }
    let after = text.strip_prefix('r')?;
    let body = after.trim_start_matches('#');
    let hashes = &after[..after.len() - body.len()];
    let body = body.strip_prefix('"')?;
    let opening = text.len() - body.len();
    let end = format!("\"{hashes}");
    Some(body.find(&end).map_or(text.len(), |at| opening + at + end.len()))
}

/// The length up to and with the closing quote.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if letter == quote => return at + letter.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_code(text: &str, code: &str) {
        let source = Source::read(text);
        let words: Vec<&str> = source.code().split_whitespace().collect();
        assert_eq!(words.join(" "), code);
        assert_eq!(source.code().lines().count(), text.lines().count());
    }

    #[test]
    fn comments_are_not_code() {
        assert_code("a // b\nc", "a c");
        assert_code("a /* b /* c */ d */ e", "a e");
        assert_code("a /// \"b\nc", "a c");
        assert_eq!(Source::read("a // b\nc").comments().trim(), "// b");
    }

    #[test]
    fn the_contents_of_literals_are_neither_code_nor_comment() {
        assert_code(r#"a("b \" c", d)"#, "a( , d)");
        assert_code("a(\"// b\", c)", "a( , c)");
        assert_code(r###"a(r#"b " c"#, br"d", e)"###, "a( , b , e)");
        assert_code("a(\"b\nc\", d)", "a( , d)");
        assert!(Source::read("a(\"// b\")").comments().trim().is_empty());
    }

    #[test]
    fn a_character_is_a_literal_and_a_lifetime_is_not() {
        assert_code(r#"a('"', b, '\'', c)"#, "a( , b, , c)");
        assert_code("fn a<'b>(c: &'b str) {}", "fn a<'b>(c: &'b str) {}");
    }

    #[test]
    fn a_word_that_ends_with_r_begins_no_raw_string() {
        assert_code("for \"a\" in r#type", "for in r#type");
        assert_code("bar\"a\" b", "bar b");
    }

    #[test]
    fn function_names_come_from_code_only() {
        let source =
            Source::read("fn one() {}\n// fn two()\nconst A: &str = \"fn three\";\nasync fn four<T>() {}");
        assert_eq!(source.function_names(), ["one", "four"]);
    }
}
