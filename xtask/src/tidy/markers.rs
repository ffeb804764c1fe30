use super::source::words;
use super::{Finding, Repository};

/// Words that mark unfinished work.
const MARKERS: &[&str] = &["FIXME", "XXX", "HACK"]; // what the check looks for

/// Endings of other texts that people write; a lock file or a corpus may hold any word.
const WRITTEN: &[&str] = &[".md", ".toml", ".yml", ".sh", "/run"];

/// Finds markers of unfinished work in comments and in texts, and to-do notes that name no issue.
pub(super) fn check(files: &Repository) -> Vec<Finding> {
    let comments = files.rust().map(|(file, source)| (file, source.comments()));
    let texts = files
        .files()
        .filter(|file| WRITTEN.iter().any(|ending| file.path.ends_with(ending)))
        .map(|file| (file, file.text.as_str()));
    let mut findings = Vec::new();
    for (file, text) in comments.chain(texts) {
        for (line, word) in words(text).filter(|(_, word)| MARKERS.contains(word)) {
            findings.push(Finding::at(&file.path, line, format_args!("`{word}`")));
        }
        for (line, text) in (1..).zip(text.lines()) {
            let note = text.split("TODO").nth(1);
            if note.is_some_and(|note| !note.starts_with("(#")) {
                findings.push(Finding::at(&file.path, line, "a to-do note without an issue"));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::finding::shown;

    #[test]
    fn markers_are_found_in_comments_and_in_texts() {
        let files = Repository::of(&[
            ("crates/one/src/lib.rs", "fn a() {}\n// FIXME: wrong\n"), // fixture: is found
            (".github/CONTRIBUTING.md", "XXX\n"),                      // fixture: is found
            (".ci/run", "# HACK\n"),
        ]);
        assert_eq!(
            shown(check(&files)),
            ["crates/one/src/lib.rs:2: `FIXME`", ".github/CONTRIBUTING.md:1: `XXX`", ".ci/run:1: `HACK`"] // what was found
        );
    }

    #[test]
    fn a_to_do_note_needs_an_issue() {
        let files = Repository::of(&[("src/a.rs", "// TODO: later\n// TODO(#12): later\n")]);
        assert_eq!(shown(check(&files)), ["src/a.rs:1: a to-do note without an issue"]);
    }

    #[test]
    fn longer_words_strings_and_lock_files_are_no_markers() {
        let files = Repository::of(&[
            ("src/a.rs", "const A: &str = \"XXX\"; // 5XXX and HACKED"), // fixture: passes
            ("Cargo.lock", "XXX"),                                       // fixture: passes
        ]);
        assert!(check(&files).is_empty());
    }
}
