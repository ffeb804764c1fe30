//! Compiles programs with the usual mistakes and compares what the compiler says with the texts beside them.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test that cannot go on fails, and says so")]

use std::{env, process::Command};

/// The version whose messages are compared: `rust-version`, on which CI runs.
const VERSION: &str = env!("CARGO_PKG_RUST_VERSION");

/// Returns the version of the compiler that `cargo` uses.
fn compiler() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = Command::new(rustc).arg("--version").output().unwrap();
    String::from_utf8(said.stdout).unwrap().split(' ').nth(1).unwrap_or_default().to_owned()
}

fn is(version: &str, compiler: &str) -> bool {
    compiler.strip_prefix(version).is_some_and(|patch| patch.is_empty() || patch.starts_with('.'))
}

#[test]
fn the_usual_mistakes_are_answered_with_what_to_do() {
    let compiler = compiler();
    if !is(VERSION, &compiler) {
        let why = format!("not run: the messages are those of rustc {VERSION}, and this is {compiler}");
        // In CI, where it is set, this is the toolchain on which they are compared.
        assert!(env::var_os("STEADFAST_MUST_RUN").is_none(), "{why}");
        eprintln!("{why}");
        return;
    }
    let programs = trybuild::TestCases::new();
    programs.pass("tests/allowed/*.rs");
    programs.compile_fail("tests/mistakes/*.rs");
}

#[test]
fn a_version_is_compared_whole() {
    assert!(is("1.95", "1.95.0") && is("1.95.1", "1.95.1"));
    assert!(!is("1.95", "1.950.0") && !is("1.95", "1.96.0-nightly") && !is("1.95", ""));
}
