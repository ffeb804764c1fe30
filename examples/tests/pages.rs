//! The Rust blocks of pages are excerpts of the examples, so that a block is never older than the program beside it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

use std::{fs, path::Path};

const PAGES: [&str; 2] = ["docs/adopting.md", "docs/sandbox.md"];

/// Returns the text of each block of `page` that is marked as Rust.
fn blocks(page: &str) -> Vec<&str> {
    page.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

#[test]
fn every_rust_block_of_a_page_is_part_of_an_example() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let sources = paths.filter(|path| path.extension().is_some_and(|it| it == "rs"));
    let sources: Vec<_> =
        sources.map(|path| fs::read_to_string(path).unwrap().replace("\r\n", "\n")).collect();
    for name in PAGES {
        let page = fs::read_to_string(folder.join("..").join(name)).unwrap().replace("\r\n", "\n");
        let blocks = blocks(&page);
        assert!(!blocks.is_empty(), "{name} has no block");
        for block in blocks {
            assert!(sources.iter().any(|source| source.contains(block)), "{name}: in no example:\n{block}");
        }
    }
}

#[test]
fn a_block_ends_at_its_fence() {
    assert_eq!(blocks("a\n```rust\nlet b;\n```\nc\n```text\nd\n```\n```rust\ne\n```\n"), ["let b;\n", "e\n"]);
}
