use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use toml::{Table, Value};

use super::{Finding, Repository};

/// Where the spec's sentences are listed with the tests that hold each.
const PATH: &str = "crates/steadfast-spec/traceability.toml";
const KEYS: &[&str] = &["id", "section", "text", "gateway", "client", "note"];

/// One sentence of the spec.
struct Sentence {
    id: String,
    gateway: Vec<String>,
    client: Vec<String>,
    note: String,
}

/// Finds sentences that no test holds, and tests that are named but do not exist.
pub(super) fn check(files: &Repository) -> Vec<Finding> {
    let rows = match rows(files) {
        Ok(rows) => rows,
        Err(why) => return vec![Finding::new(PATH, why)],
    };
    let tests: BTreeSet<&str> = files.rust().flat_map(|(_, source)| source.function_names()).collect();
    let mut findings = Vec::new();
    let mut ids = BTreeSet::new();
    let mut absent: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (number, row) in (1..).zip(&rows) {
        let sentence = match Sentence::read(row) {
            Ok(sentence) => sentence,
            Err(why) => {
                findings.push(Finding::new(PATH, format_args!("sentence number {number}: {why}")));
                continue;
            }
        };
        for name in sentence.tests().filter(|name| !tests.contains(name.as_str())) {
            absent.entry(name.clone()).or_default().push(sentence.id.clone());
        }
        if sentence.gateway.is_empty() && sentence.note.is_empty() {
            let what = "neither a gateway test nor a note that says why not";
            findings.push(Finding::new(&sentence.id, what));
        }
        if !ids.insert(sentence.id.clone()) {
            findings.push(Finding::new(&sentence.id, "the id stands twice"));
        }
    }
    findings.extend(absent.iter().map(|(name, ids)| {
        Finding::new(format_args!("there is no test `{name}`"), format_args!("named by {}", ids.join(", ")))
    }));
    findings
}

/// Counts how much of the spec is held by tests, if there is a table.
pub(crate) fn coverage(files: &Repository) -> Option<Coverage> {
    let sentences: Vec<Sentence> =
        rows(files).ok()?.iter().filter_map(|row| Sentence::read(row).ok()).collect();
    let count = |keep: fn(&Sentence) -> bool| sentences.iter().filter(|sentence| keep(sentence)).count();
    Some(Coverage {
        sentences: sentences.len(),
        gateway: count(|sentence| !sentence.gateway.is_empty()),
        client: count(|sentence| !sentence.client.is_empty()),
        neither: count(|sentence| sentence.gateway.is_empty() && sentence.client.is_empty()),
        unexplained: count(|sentence| {
            (sentence.gateway.is_empty() || sentence.client.is_empty()) && sentence.note.is_empty()
        }),
    })
}

/// How many sentences of the spec are held by tests.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Coverage {
    sentences: usize,
    gateway: usize,
    client: usize,
    neither: usize,
    /// Without a gateway or a client test, and without a note that says why.
    unexplained: usize,
}

impl Coverage {
    /// Tells whether every sentence is held by both a gateway test and a client test, or by a note that says why not.
    pub(crate) fn is_complete(&self) -> bool {
        self.unexplained == 0
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sentences, gateway, client, neither, unexplained } = self;
        write!(
            f,
            "{sentences} sentences, {gateway} held by gateway tests, {client} by client tests, {neither} by neither; \
             {unexplained} without a reason"
        )
    }
}

impl Sentence {
    fn read(row: &Table) -> Result<Self, String> {
        if let Some(key) = row.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(format!("`{key}` is not one of its keys"));
        }
        for key in ["section", "text"] {
            text(row, key)?;
        }
        Ok(Self {
            id: text(row, "id")?,
            gateway: names(row, "gateway")?,
            client: names(row, "client")?,
            note: if row.contains_key("note") { text(row, "note")? } else { String::new() },
        })
    }

    fn tests(&self) -> impl Iterator<Item = &String> {
        self.gateway.iter().chain(&self.client)
    }
}

fn rows(files: &Repository) -> Result<Vec<Table>, String> {
    let file = files.file(PATH).ok_or("is missing")?;
    let table = file.text.parse::<Table>().map_err(|error| error.to_string())?;
    let rows = table.get("sentence").and_then(Value::as_array).ok_or("has no sentence")?;
    rows.iter()
        .map(|row| row.as_table().cloned().ok_or_else(|| "has a sentence without keys".into()))
        .collect()
}

fn text(row: &Table, key: &str) -> Result<String, String> {
    let text = row.get(key).and_then(Value::as_str).map(str::trim).unwrap_or_default();
    if text.is_empty() { Err(format!("`{key}` is missing")) } else { Ok(text.to_owned()) }
}

fn names(row: &Table, key: &str) -> Result<Vec<String>, String> {
    let Some(value) = row.get(key) else { return Ok(Vec::new()) };
    let names = value.as_array().into_iter().flatten().map(|name| name.as_str().map(str::to_owned));
    let names: Option<Vec<String>> = names.collect();
    names.filter(|_| value.is_array()).ok_or_else(|| format!("`{key}` is not a list of test names"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::finding::shown;

    const TESTS: &str = "#[test] fn spec_4_4_counts_per_window() {} #[test] fn waits_for_the_window() {}";
    const COVERED: &str = "[[sentence]]\nid = \"4.4-1\"\nsection = \"4.4\"\ntext = \"a\"\n\
        gateway = [\"spec_4_4_counts_per_window\"]\nclient = [\"waits_for_the_window\"]\n";
    const EXPLAINED: &str =
        "[[sentence]]\nid = \"1-1\"\nsection = \"1\"\ntext = \"b\"\nnote = \"states a gap\"\n";

    fn repository(table: &str) -> Repository {
        Repository::of(&[(PATH, table), ("crates/steadfast-sandbox/tests/it/zones.rs", TESTS)])
    }

    fn found(table: &str) -> Vec<String> {
        shown(check(&repository(table)))
    }

    #[test]
    fn sentences_with_tests_or_with_a_reason_are_fine() {
        let table = format!("{COVERED}{EXPLAINED}");
        assert_eq!(found(&table), [""; 0]);
        assert_eq!(
            coverage(&repository(&table)).unwrap().to_string(),
            "2 sentences, 1 held by gateway tests, 1 by client tests, 1 by neither; 0 without a reason"
        );
    }

    #[test]
    fn a_test_that_does_not_exist_is_found() {
        let table = COVERED.replace("waits_for_the_window", "waits_for_ever");
        assert_eq!(found(&table), ["there is no test `waits_for_ever`: named by 4.4-1"]);
    }

    #[test]
    fn a_sentence_without_a_gateway_test_needs_a_reason() {
        let what = ["1-1: neither a gateway test nor a note that says why not"];
        assert_eq!(found(&EXPLAINED.replace("note = \"states a gap\"", "")), what);
        assert_eq!(found(&EXPLAINED.replace("note = ", "client = [\"waits_for_the_window\"] #")), what);
    }

    #[test]
    fn ids_are_unique() {
        assert_eq!(found(&format!("{COVERED}{COVERED}")), ["4.4-1: the id stands twice"]);
    }

    #[test]
    fn a_sentence_that_is_not_well_formed_is_found() {
        let without_text = COVERED.replace("text = \"a\"", "text = \" \"");
        assert!(found(&without_text)[0].ends_with("sentence number 1: `text` is missing"));
        let misspelt = COVERED.replace("gateway =", "gatway =");
        assert!(found(&misspelt)[0].ends_with("`gatway` is not one of its keys"));
        let not_a_list = COVERED.replace("[\"waits_for_the_window\"]", "\"waits_for_the_window\"");
        assert!(found(&not_a_list)[0].ends_with("`client` is not a list of test names"));
    }

    #[test]
    fn a_missing_or_empty_table_is_found() {
        assert!(shown(check(&Repository::of(&[])))[0].ends_with("is missing"));
        assert!(found("")[0].ends_with("has no sentence"));
    }
}
