//! Every sentence of the specification is traced to the tests that hold it (`traceability.toml`), or says why not.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, reason = "the evidence takes its figures from here")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde::Deserialize;

#[derive(Deserialize)]
struct Table {
    sentence: Vec<Sentence>,
}

/// One sentence of the specification.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sentence {
    id: String,
    section: String,
    text: String,
    #[serde(default)]
    gateway: Vec<String>,
    #[serde(default)]
    client: Vec<String>,
    #[serde(default)]
    note: String,
}

/// Finds sentences that no test holds, and tests that are named but do not exist.
fn gaps(sentences: &[Sentence], tests: &BTreeSet<String>) -> Vec<String> {
    let mut gaps = Vec::new();
    let mut ids = BTreeSet::new();
    let mut absent: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for Sentence { id, section, text, gateway, client, note } in sentences {
        if [id, section, text].iter().any(|text| text.trim().is_empty()) {
            gaps.push(format!("{id}: its id, section or text is empty"));
        }
        for name in gateway.iter().chain(client).filter(|name| !tests.contains(*name)) {
            absent.entry(name).or_default().push(id);
        }
        if gateway.is_empty() && note.trim().is_empty() {
            gaps.push(format!("{id}: neither a gateway test nor a note that says why not"));
        }
        if !ids.insert(id) {
            gaps.push(format!("{id}: the id stands twice"));
        }
    }
    gaps.extend(absent.iter().map(|(name, ids)| format!("no test `{name}`, named by {}", ids.join(", "))));
    gaps
}

/// Adds the names of all functions in the Rust files of a folder.
fn add_functions(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().is_none_or(|name| name != "target") {
            add_functions(&path, names);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            names.extend(text.lines().filter_map(function_name).map(str::to_owned));
        }
    }
}

/// The name of the function that a line of code begins.
fn function_name(line: &str) -> Option<&str> {
    let (before, after) = line.trim_start().split_once("fn ")?;
    let is_code =
        before.split_whitespace().all(|word| matches!(word, "pub" | "pub(crate)" | "async" | "const"));
    after.split(['(', '<']).next().filter(|_| is_code)
}

#[test]
fn every_sentence_is_held_by_a_test_or_says_why_not() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut tests = BTreeSet::new();
    add_functions(crates, &mut tests);
    let Table { sentence: sentences } = toml::from_str(include_str!("../traceability.toml")).unwrap();
    assert_eq!(gaps(&sentences, &tests), [""; 0]);
    let count = |keep: fn(&Sentence) -> bool| sentences.iter().filter(|sentence| keep(sentence)).count();
    println!(
        "figures: sentences={} gateway={} client={} neither={} unexplained={}",
        sentences.len(),
        count(|sentence| !sentence.gateway.is_empty()),
        count(|sentence| !sentence.client.is_empty()),
        count(|sentence| sentence.gateway.is_empty() && sentence.client.is_empty()),
        count(|sentence| {
            (sentence.gateway.is_empty() || sentence.client.is_empty()) && sentence.note.is_empty()
        }),
    );
}

#[test]
fn gaps_are_found() {
    const COVERED: &str = "[[sentence]]\nid = \"4.4-1\"\nsection = \"4.4\"\ntext = \"a\"\n\
        gateway = [\"spec_4_4_counts_per_window\"]\nclient = [\"waits_for_the_window\"]\n";
    const EXPLAINED: &str =
        "[[sentence]]\nid = \"1-1\"\nsection = \"1\"\ntext = \"b\"\nnote = \"states a gap\"\n";
    let tests = ["spec_4_4_counts_per_window", "waits_for_the_window"].map(str::to_owned).into();
    let found = |table: &str| gaps(&toml::from_str::<Table>(table).unwrap().sentence, &tests);
    assert_eq!(found(&format!("{COVERED}{EXPLAINED}")), [""; 0]);
    for (table, gap) in [
        (COVERED.replace("waits_for_the_window", "waits"), "no test `waits`, named by 4.4-1"),
        (EXPLAINED.replace("note =", "client = [\"waits_for_the_window\"] #"), "1-1: neither a gateway test"),
        (format!("{COVERED}{COVERED}"), "4.4-1: the id stands twice"),
        (COVERED.replace("\"a\"", "\" \""), "4.4-1: its id, section or text is empty"),
    ] {
        let found = found(&table);
        assert!(found.len() == 1 && found[0].starts_with(gap), "{gap}: {found:?}");
    }
    assert!(toml::from_str::<Table>(&COVERED.replace("gateway =", "gatway =")).is_err());
}
