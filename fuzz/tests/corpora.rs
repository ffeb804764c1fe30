//! Feeds every file of every corpus to its target, so that former findings stay fixed.

use std::{fs, path::Path};

fn replay(name: &str, target: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort_unstable();
    assert!(files.len() >= 10, "{name} has only {} seeds", files.len());
    for file in &files {
        let data = fs::read(file).expect("a readable seed");
        // Shown only if the target panics.
        println!("{}", file.display());
        target(&data);
        // A cut input reaches states that a whole one does not.
        for end in [data.len() / 4, data.len() / 2, data.len().saturating_sub(1)] {
            target(&data[..end]);
        }
    }
    println!("figures: targets=1 inputs={}", 4 * files.len());
}

#[test]
fn envelope_corpus_breaks_no_promise() {
    replay("envelope", steadfast_fuzz::envelope);
}

#[test]
fn form_corpus_breaks_no_promise() {
    replay("form", steadfast_fuzz::form);
}

#[test]
fn sym_id_corpus_breaks_no_promise() {
    replay("sym_id", steadfast_fuzz::sym_id);
}

#[test]
fn gateway_request_corpus_breaks_no_promise() {
    replay("gateway_request", steadfast_fuzz::gateway_request);
}

#[test]
fn raw_answer_corpus_breaks_no_promise() {
    replay("raw_answer", steadfast_fuzz::raw_answer);
}

#[test]
fn host_answer_corpus_breaks_no_promise() {
    replay("host_answer", steadfast_fuzz::host_answer);
}

#[test]
fn header_corpus_breaks_no_promise() {
    replay("header", steadfast_fuzz::header);
}

#[test]
fn journal_corpus_breaks_no_promise() {
    replay("journal", steadfast_fuzz::journal);
}
