use super::{Finding, Repository};

/// Finds doc tests that are not even compiled. `no_run` and `compile_fail` are allowed: those are.
pub(super) fn check(files: &Repository) -> Vec<Finding> {
    let comments = files.rust().map(|(file, source)| (file, source.comments()));
    let markdown =
        files.files().filter(|file| file.path.ends_with(".md")).map(|file| (file, file.text.as_str()));
    let mut findings = Vec::new();
    for (file, text) in comments.chain(markdown) {
        for (number, line) in (1..).zip(text.lines()) {
            if is_ignored(line) {
                findings.push(Finding::at(&file.path, number, "a doc test that is ignored"));
            }
        }
    }
    findings
}

fn is_ignored(line: &str) -> bool {
    let line = line.trim_start_matches([' ', '\t', '/', '!', '*', '>']);
    let Some(words) = line.strip_prefix("```").or_else(|| line.strip_prefix("~~~")) else {
        return false;
    };
    let mut words = words.split([',', ' ', '{', '}', '.']);
    // `ignore-windows` and the like are ignored somewhere.
    words.any(|word| word == "ignore" || word.starts_with("ignore-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::finding::shown;

    #[test]
    fn an_ignored_doc_test_is_found_in_comments_and_in_markdown() {
        let files = Repository::of(&[
            ("src/a.rs", "//! ```ignore\n//! a();\n//! ```\n"), // fixture: is found
            ("src/b.rs", "/// ```rust,ignore\n/// ```\n/// ```ignore-windows\n/// ```\n"), // fixture: is found
            ("README.md", "text\n```rust, ignore\n```\n"),
        ]);
        let what = "a doc test that is ignored";
        let places = ["src/a.rs:1", "src/b.rs:1", "src/b.rs:3", "README.md:2"];
        assert_eq!(shown(check(&files)), places.map(|place| format!("{place}: {what}")));
    }

    #[test]
    fn doc_tests_that_are_compiled_are_allowed() {
        let files = Repository::of(&[
            ("src/a.rs", "/// ```no_run\n/// ```\n/// ```compile_fail\n/// ```\n"),
            ("src/b.rs", "const A: &str = \"```ignore\"; // ignore"), // fixture: passes
            ("README.md", "```text\nignore\n```\n"),
        ]);
        assert!(check(&files).is_empty());
    }
}
