use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::{Repository, function_name};

/// The list of the spec's sentences, with the tests that hold each.
const PATH: &str = "crates/steadfast-spec/traceability.toml";

#[derive(Deserialize)]
struct Table {
    sentence: Vec<Sentence>,
}

/// One sentence of the spec.
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
pub(super) fn check(files: &Repository) -> Vec<String> {
    let sentences = match read(files) {
        Ok(sentences) => sentences,
        Err(error) => return vec![format!("{error:#}")],
    };
    let tests: BTreeSet<&str> =
        files.rust().flat_map(|file| file.text.lines().filter_map(function_name)).collect();
    let mut findings = Vec::new();
    let mut ids = BTreeSet::new();
    let mut absent: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for Sentence { id, section, text, gateway, client, note } in &sentences {
        if [id, section, text].iter().any(|text| text.trim().is_empty()) {
            findings.push(format!("{id}: its id, section or text is empty"));
        }
        for name in gateway.iter().chain(client).filter(|name| !tests.contains(name.as_str())) {
            absent.entry(name).or_default().push(id);
        }
        if gateway.is_empty() && note.trim().is_empty() {
            findings.push(format!("{id}: neither a gateway test nor a note that says why not"));
        }
        if !ids.insert(id) {
            findings.push(format!("{id}: the id stands twice"));
        }
    }
    let absent = absent.iter().map(|(name, ids)| format!("no test `{name}`, named by {}", ids.join(", ")));
    findings.extend(absent);
    findings
}

/// Counts how much of the spec is held by tests, and what neither they nor a note explain.
pub(super) fn coverage(files: &Repository) -> Result<String> {
    let sentences = read(files)?;
    let count = |keep: fn(&Sentence) -> bool| sentences.iter().filter(|sentence| keep(sentence)).count();
    let gateway = count(|sentence| !sentence.gateway.is_empty());
    let client = count(|sentence| !sentence.client.is_empty());
    let neither = count(|sentence| sentence.gateway.is_empty() && sentence.client.is_empty());
    let unexplained = count(|sentence| {
        (sentence.gateway.is_empty() || sentence.client.is_empty()) && sentence.note.is_empty()
    });
    let all = sentences.len();
    Ok(format!(
        "sentences={all} gateway={gateway} client={client} neither={neither} unexplained={unexplained}"
    ))
}

fn read(files: &Repository) -> Result<Vec<Sentence>> {
    let file = files.file(PATH).with_context(|| format!("{PATH} is missing"))?;
    let table: Table = toml::from_str(&file.text).context(PATH)?;
    Ok(table.sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTS: &str = "fn spec_4_4_counts_per_window() {}\nfn waits_for_the_window() {}\n";
    const COVERED: &str = "[[sentence]]\nid = \"4.4-1\"\nsection = \"4.4\"\ntext = \"a\"\n\
        gateway = [\"spec_4_4_counts_per_window\"]\nclient = [\"waits_for_the_window\"]\n";
    const EXPLAINED: &str =
        "[[sentence]]\nid = \"1-1\"\nsection = \"1\"\ntext = \"b\"\nnote = \"states a gap\"\n";

    fn repository(table: &str) -> Repository {
        Repository::of(&[(PATH, table), ("crates/steadfast-sandbox/tests/it/zones.rs", TESTS)])
    }

    #[test]
    fn sentences_with_tests_or_with_a_reason_are_fine() {
        let files = repository(&format!("{COVERED}{EXPLAINED}"));
        assert_eq!(check(&files), [""; 0]);
        assert_eq!(coverage(&files).unwrap(), "sentences=2 gateway=1 client=1 neither=1 unexplained=0");
    }

    #[test]
    fn what_no_test_holds_is_found() {
        for (table, finding) in [
            (COVERED.replace("waits_for_the_window", "waits"), "no test `waits`, named by 4.4-1"),
            (
                EXPLAINED.replace("note =", "client = [\"waits_for_the_window\"] #"),
                "1-1: neither a gateway test",
            ),
            (format!("{COVERED}{COVERED}"), "4.4-1: the id stands twice"),
            (COVERED.replace("\"a\"", "\" \""), "4.4-1: its id, section or text is empty"),
            (COVERED.replace("gateway =", "gatway ="), PATH),
            (String::new(), PATH),
        ] {
            let found = check(&repository(&table));
            assert!(found.len() == 1 && found[0].starts_with(finding), "{finding}: {found:?}");
        }
        assert!(check(&Repository::of(&[]))[0].ends_with("is missing"));
    }
}
