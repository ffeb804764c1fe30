//! Runs every example once. Each states in its module documentation what a reader will see, one line for each text
//! (`//! Prints: placed 1 order`), and stdout has to contain it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

use std::{env, fs, path::Path, process::Command, thread};

/// Returns why an example failed, if it did.
fn failure(source: &Path, programs: &Path) -> Option<String> {
    let name = source.file_stem().unwrap().to_string_lossy();
    let text = fs::read_to_string(source).unwrap();
    let output = Command::new(programs.join(&*name))
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap())
        .output()
        .expect("built examples: `cargo test`, or `cargo build --package examples --examples`");
    let (printed, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    match missing(&text, &printed) {
        _ if !output.status.success() => Some(format!("{name}: {}\n{printed}{said}", output.status)),
        missing => missing.map(|why| format!("{name}: {why}\n{printed}{said}")),
    }
}

fn missing(source: &str, printed: &str) -> Option<String> {
    let mut expected = source.lines().filter_map(|line| line.strip_prefix("//! Prints: ")).peekable();
    if expected.peek().is_none() {
        return Some("its source has no `//! Prints: ` line".to_owned());
    }
    expected.find(|text| !printed.contains(text.trim())).map(|text| format!("stdout has no `{text}`"))
}

#[test]
fn every_example_prints_what_it_promises() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Beside the folder of this program.
    let programs = env::current_exe().unwrap().parent().unwrap().with_file_name("examples");
    let sources = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let sources: Vec<_> = sources.filter(|path| path.extension().is_some_and(|it| it == "rs")).collect();
    assert!(!sources.is_empty());
    let failures: Vec<String> = thread::scope(|scope| {
        let runs: Vec<_> = sources.iter().map(|source| scope.spawn(|| failure(source, &programs))).collect();
        runs.into_iter().filter_map(|run| run.join().unwrap()).collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn an_example_that_does_not_print_its_line_is_found_out() {
    let source = "//! Places an order.\n//!\n//! Prints: placed 1 order\n\nfn main() {}\n";
    assert_eq!(missing(source, "12:00 placed 1 order\n"), None);
    assert_eq!(missing(source, "placed 0 orders\n").unwrap(), "stdout has no `placed 1 order`");
    assert!(missing("fn main() {}", "placed 1 order").is_some());
}
