//! The repository's own rules, which no compiler, linter or formatter checks.
//!
//! Each check is a pure function of the files or of cargo's metadata, and shown to fail by a test.

mod edges;

use std::collections::BTreeSet;

use anyhow::Result;
use toml::Table;

use crate::console;
use crate::planted;
use crate::report::Tally;
use crate::repository::{File, Repository, words};
use crate::workspace::Workspace;

/// The entries that a visitor sees first. Dotfiles belong to tools, and are not seen.
const VISIBLE: &[&str] = &[
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "benches",
    "crates",
    "docs",
    "examples",
    "fuzz",
    "packaging",
    "xtask",
];

/// Texts that would tie the repository to one machine or one place of download.
///
/// In pieces, so that this file does not hold them.
const MACHINE: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/fa", "rm/"),
    concat!("/tmp/bash", "_jobs"),
    concat!("index.crates", ".io"),
    concat!("static.crates", ".io"),
    concat!("pypi", ".org"),
    concat!("registry.npmjs", ".org"),
];

/// The pages that name files by their whole paths, in backticks.
const PAGES: &[&str] = &["ARCHITECTURE.md", ".github/CONTRIBUTING.md"];

/// Names that say nothing about the contents, and so gather everything; a module's file is named after the module.
const DRAWERS: &[&str] =
    &["utils.rs", "util.rs", "types.rs", "common.rs", "helpers.rs", "helper.rs", "misc.rs", "mod.rs"];

/// A rule about single lines: its name, and whether this line of this file breaks it.
type LineRule = (&'static str, fn(&File, &str) -> bool);

const LINE_RULES: &[LineRule] = &[
    ("no path of a machine, no registry host", |_, line| MACHINE.iter().any(|text| line.contains(text))),
    // The formatter leaves comments alone. A row of a table is as long as it is.
    ("no comment of more than 130 columns", |file, line| {
        let text = line.trim_start();
        file.is_rust() && text.starts_with("//") && !text.contains("| ") && line.chars().count() > 130
    }),
    ("no ignored test", |file, line| {
        let is_attribute = file.is_rust() && line.trim_start().starts_with("#[");
        is_attribute && words(line).any(|word| word == "ignore")
    }),
    // `no_run` and `compile_fail` are allowed: those are compiled. `ignore-windows` and the like are ignored somewhere.
    ("no ignored doc test", |file, line| {
        let text = line.trim_start();
        let is_text = file.path.ends_with(".md") || (file.is_rust() && text.starts_with("//"));
        let text = text.trim_start_matches([' ', '\t', '/', '!', '*', '>']);
        let marks = text.strip_prefix("```").or_else(|| text.strip_prefix("~~~"));
        is_text && marks.is_some_and(|marks| words(marks).any(|word| word == "ignore"))
    }),
];

type Check = fn(&Workspace, &Repository) -> Vec<String>;

const CHECKS: &[(&str, Check)] = &[
    ("the visible root has only the agreed entries", |_, files| stray_entries(files)),
    ("crates depend on each other only along the agreed edges", |cargo, _| edges::check(cargo)),
    ("every crate inherits its version and its lints", |_, files| manifests(files)),
    ("files are named after their subject", |_, files| {
        let drawers = files.rust().filter(|file| DRAWERS.contains(&file.name()));
        drawers.map(|file| file.path.clone()).collect()
    }),
    ("every planted bug can be planted, and is looked for", |_, files| planted::faults(files)),
    ("pages for maintainers name only files that are there", |_, files| missing_files(files)),
];

/// Runs every check and prints its findings; each check counts as one.
pub(crate) fn run(workspace: &Workspace) -> Result<Tally> {
    let repository = Repository::read(&workspace.root)?;
    let checks = CHECKS.iter().map(|(rule, check)| (*rule, check(workspace, &repository)));
    let lines = LINE_RULES.iter().map(|(rule, breaks)| (*rule, broken_lines(&repository, *breaks)));
    Ok(checks.chain(lines).map(|(rule, findings)| verdict(rule, &findings)).sum())
}

fn verdict(rule: &str, findings: &[String]) -> Tally {
    console::say(format_args!("{:5} {rule}", if findings.is_empty() { "ok" } else { "FAIL" }));
    for finding in findings {
        console::say(format_args!("      {finding}"));
    }
    Tally::of(findings.is_empty())
}

fn broken_lines(files: &Repository, breaks: fn(&File, &str) -> bool) -> Vec<String> {
    let mut findings = Vec::new();
    for file in files.files() {
        let lines = (1..).zip(file.text.lines()).filter(|(_, line)| breaks(file, line));
        findings.extend(lines.map(|(number, line)| format!("{}:{number}: {}", file.path, line.trim())));
    }
    findings
}

fn stray_entries(files: &Repository) -> Vec<String> {
    let entries: BTreeSet<&str> = files.files().filter_map(|file| file.path.split('/').next()).collect();
    let is_stray = |name: &&str| !name.starts_with('.') && !VISIBLE.contains(name);
    entries.into_iter().filter(is_stray).map(str::to_owned).collect()
}

fn missing_files(files: &Repository) -> Vec<String> {
    let pages = PAGES.iter().filter_map(|page| files.file(page));
    let named = pages.flat_map(|page| page.text.split('`').skip(1).step_by(2)).map(|name| {
        // `fuzz/run MINUTES` names a file, too.
        name.split(' ').next().unwrap_or_default()
    });
    let is_path = |name: &&str| name.split_once('/').is_some_and(|(top, _)| VISIBLE.contains(&top));
    let is_there = |name: &str| files.files().any(|file| file.path.starts_with(name));
    named.filter(is_path).filter(|name| !is_there(name)).map(str::to_owned).collect()
}

/// Finds manifests that do not inherit the keys that the root decides for all.
fn manifests(files: &Repository) -> Vec<String> {
    // The root is what the others inherit from; `fuzz` is a workspace of its own, for the fuzzer's sake.
    let is_member = |path: &str| path.ends_with("/Cargo.toml") && !path.starts_with("fuzz/");
    let mut findings = Vec::new();
    for file in files.files().filter(|file| is_member(&file.path)) {
        let manifest: Table = file.text.parse().unwrap_or_default();
        let inherits = |value: Option<&toml::Value>| {
            value.and_then(|value| value.get("workspace")).and_then(toml::Value::as_bool) == Some(true)
        };
        if !inherits(manifest.get("lints")) {
            findings.push(format!("{}: `lints` are not inherited", file.path));
        }
        for key in ["version", "edition", "rust-version", "license"] {
            if !inherits(manifest.get("package").and_then(|package| package.get(key))) {
                findings.push(format!("{}: `{key}` is not inherited", file.path));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(rule: &str, path: &str, line: &str) -> bool {
        let (_, breaks) = LINE_RULES.iter().find(|(name, _)| name.contains(rule)).unwrap();
        !broken_lines(&Repository::of(&[(path, line)]), *breaks).is_empty()
    }

    #[test]
    fn lines_that_break_a_rule_are_found() {
        assert!(MACHINE.iter().all(|text| broken("path of a machine", "README.md", text)));
        assert!(!broken("path of a machine", "README.md", "ls network/ framework/"));
        let comment = |length: usize| format!("    //! {}", "ä".repeat(length - 8));
        assert!(
            broken("130 columns", "a.rs", &comment(131)) && !broken("130 columns", "a.rs", &comment(130))
        );
        for (attribute, is_broken) in
            [("#[ignore = \"slow\"]", true), ("#[cfg_attr(windows, ignore)]", true), ("#[test]", false)]
        {
            assert_eq!(broken("no ignored test", "a.rs", attribute), is_broken, "{attribute}");
        }
        for (path, line, is_broken) in [
            ("a.rs", concat!("    /// ```rust,ig", "nore"), true),
            ("a.rs", concat!("//! ```ig", "nore-windows"), true),
            ("a.md", concat!("```rust, ig", "nore"), true),
            ("a.rs", "/// ```no_run", false),
            ("a.rs", "const A: &str = \"```ignore\";", false),
        ] {
            assert_eq!(broken("ignored doc test", path, line), is_broken, "{line}");
        }
    }

    #[test]
    fn a_stray_entry_of_the_root_is_found() {
        let files = Repository::of(&[("crates/a.rs", ""), ("notes.txt", ""), (".github/a.md", "")]);
        assert_eq!(stray_entries(&files), ["notes.txt"]);
    }

    #[test]
    fn a_page_that_names_a_file_that_is_gone_is_found() {
        let page = "`crates/a.rs`, `xtask/`, `fuzz/run MINUTES` and `docs/b.md`, ```text\ncrates/c.rs\n``` `other/d`";
        let files =
            [("ARCHITECTURE.md", page), ("crates/a.rs", ""), ("fuzz/run", ""), ("xtask/src/main.rs", "")];
        assert_eq!(missing_files(&Repository::of(&files)), ["docs/b.md"]);
    }

    #[test]
    fn a_manifest_that_does_not_inherit_is_found() {
        let good = "[package]\nversion.workspace = true\nedition.workspace = true\nrust-version.workspace = true\n\
            license.workspace = true\n[lints]\nworkspace = true";
        let bad =
            good.replace("[lints]", "[other]").replace("edition.workspace = true", "edition = \"2024\"");
        let findings = |one: &str| manifests(&Repository::of(&[("crates/one/Cargo.toml", one)])).len();
        assert_eq!((findings(good), findings(&bad)), (0, 2));
    }
}
