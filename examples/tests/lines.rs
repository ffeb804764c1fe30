//! How many lines a program needs to adopt steadfast, counted in what its readers copy: README and examples.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

use std::{fs, path::Path};

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    fs::read_to_string(root.join(path)).unwrap().replace("\r\n", "\n")
}

/// Returns the lines of `text` that do something: no imports, comments, blanks, or lines that a doc test hides.
fn code(text: &str) -> Vec<&str> {
    let idle = |line: &str| {
        line.is_empty() || line == "#" || ["use ", "//", "# "].iter().any(|start| line.starts_with(start))
    };
    text.lines().map(str::trim).filter(|line| !idle(line)).collect()
}

/// Returns what stands between two texts, the first of them included.
fn part<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let at = text.find(from).expect("begins");
    let part = &text[at..];
    &part[..part.find(to).expect("ends")]
}

#[test]
fn the_limiter_over_a_client_that_is_there_takes_five_lines() {
    let readme = read("README.md");
    let block = part(&readme, "const WEATHER", "```");
    let before: Vec<_> = code(block).into_iter().take_while(|line| !line.contains("all_in")).collect();
    assert!(before.iter().any(|line| line.contains("ZoneLimiter::builder")), "{before:?}");
    // And the call, which the README has in its next sentence.
    assert!(readme.contains("`limiter.send(&client, request, WEATHER).await?`"));
    assert!(before.len() < 5, "{before:?}");
}

#[test]
fn a_full_stack_in_axum_takes_twelve_lines() {
    let program = read("examples/axum_app.rs");
    // Its own words; the rest of the program would be there without steadfast.
    let ours = ["access", "Access", "client", "Client", "ErrorKind", "OrderRequest", "placed"];
    let lines = code(&program).into_iter().filter(|line| ours.iter().any(|word| line.contains(word)));
    let lines: Vec<_> = lines.collect();
    assert!(lines.iter().any(|line| line.contains("with_state")), "{lines:?}");
    assert!((8..=12).contains(&lines.len()), "{lines:#?}");
}

#[test]
fn a_client_that_logs_in_with_a_code_takes_fifteen_lines() {
    let page = read("crates/steadfast/src/lib.rs").replace("//! ", "");
    let block = code(part(&page, "let access = Access::totp", "let order"));
    assert!(block.iter().any(|line| line.contains("Client::builder")), "{block:?}");
    assert!(block.len() <= 15, "{block:#?}");
}

#[test]
fn imports_comments_and_hidden_lines_do_not_count() {
    assert_eq!(code("use a;\n\n// b\n# c\n#\n    let d;\n#[e]\n"), ["let d;", "#[e]"]);
}
