//! Tests that run by their names, wherever they are.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};

use crate::repository::{Repository, function_name};

/// Where a secret could get to, and the test that searches it there.
pub(super) const SINKS: &[(&str, &str)] = &[
    ("logs of every crate at TRACE", "a_trace_of_everything_holds_no_secret"),
    ("labels of metrics", "a_trace_of_everything_holds_no_secret"),
    ("fields of spans", "no_secret_and_no_id_is_in_a_span"),
    ("Debug and Display", "no_piece_of_any_secret_is_shown_anywhere"),
    ("chains of errors", "no_piece_of_any_secret_is_shown_anywhere"),
    ("panics", "no_piece_of_any_secret_is_shown_anywhere"),
    ("a client's description of itself", "a_client_describes_what_it_was_set_to_and_no_secret"),
    ("journals of orders and limits", "the_journals_hold_no_piece_of_a_secret"),
    ("the token's file, but for the token", "the_record_holds_the_token_and_no_other_secret"),
    ("stdout and --json of the command", "no_piece_of_a_secret_is_printed_logged_or_handed_to_a_child"),
    ("arguments and environment of children", "no_piece_of_a_secret_is_printed_logged_or_handed_to_a_child"),
    ("the log of an interrupted demo", "an_interruption_drains_what_is_in_doubt_and_no_secret_is_logged"),
    ("results of replay", "results_go_to_a_file_and_nothing_secret_goes_to_the_log"),
    (
        "the service's words, in results, output and journals",
        "x01_a_vile_answer_reaches_no_output_file_or_journal",
    ),
    ("errors of the command line", "x01_what_is_wrong_with_the_command_line_quotes_no_password"),
    ("the demo's report", "the_report_needs_nothing_else_and_tells_no_secret"),
    ("the sandbox's admin API", "the_admin_api_shows_no_secret_in_its_state"),
    ("the sandbox's ground truth", "the_ground_truth_holds_no_secret"),
];

/// Names of tests, by package and target.
#[derive(Debug, Default)]
pub(super) struct Named(BTreeMap<(String, String), BTreeSet<String>>);

impl Named {
    /// Finds the functions inside `proptest!` blocks.
    pub(super) fn properties(files: &Repository) -> Self {
        let mut named = Self::default();
        for file in files.rust() {
            named.add(&file.path, property_names(&file.text));
        }
        named
    }

    /// Finds the tests with these names, each of which must be somewhere.
    pub(super) fn find<'a>(files: &Repository, names: impl Iterator<Item = &'a str>) -> Result<Self> {
        let mut named = Self::default();
        let mut missing: BTreeSet<&str> = names.collect();
        let wanted = missing.clone();
        for file in files.rust() {
            let found: Vec<&str> = file.text.lines().filter_map(function_name).collect();
            let found: Vec<&str> = found.into_iter().filter(|name| wanted.contains(name)).collect();
            missing.retain(|name| !found.contains(name));
            named.add(&file.path, found);
        }
        ensure!(missing.is_empty(), "there is no test {missing:?}");
        Ok(named)
    }

    pub(super) fn places(&self) -> impl Iterator<Item = (&(String, String), &BTreeSet<String>)> {
        self.0.iter()
    }

    fn add(&mut self, path: &str, names: Vec<&str>) {
        let parts: Vec<&str> = path.split('/').collect();
        let (package, target) = match parts[..] {
            // The command has no library.
            ["crates", "steadfast-cli", "src", ..] => ("steadfast-cli", "bin"),
            ["crates", package, "src", ..] => (package, "lib"),
            ["crates", package, "tests", target, ..] => (package, target.trim_end_matches(".rs")),
            _ => return,
        };
        if !names.is_empty() {
            let place = self.0.entry((package.to_owned(), target.to_owned())).or_default();
            place.extend(names.into_iter().map(str::to_owned));
        }
    }
}

/// The names of functions inside `proptest!` blocks, which end with a brace as far in as they begin.
fn property_names(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut end = None;
    for line in text.lines() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        match end {
            None if code.starts_with("proptest! {") || code.starts_with("proptest::proptest! {") => {
                end = Some(indent);
            }
            Some(begun) if begun == indent && code.starts_with('}') => end = None,
            // A function inside of a test is deeper.
            Some(begun) if indent == begun + 4 => names.extend(function_name(line)),
            _ => {}
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_functions_inside_a_proptest_block_are_properties() {
        let source = "\
fn before() {}
mod tests {
    proptest! {
        #[test]
        fn never_more_than_the_burst(burst in 1u32..9) {
            fn inside() {}
        }

        #[test]
        fn order_of_zones_does_not_matter(seed: u64) { }
    }
    fn after() {}
}
";
        assert_eq!(property_names(source), ["never_more_than_the_burst", "order_of_zones_does_not_matter"]);
    }

    #[test]
    fn every_sink_has_its_test_and_properties_are_found() {
        let files = Repository::read(&crate::cargo::root()).unwrap();
        assert!(Named::find(&files, SINKS.iter().map(|sink| sink.1)).is_ok());
        assert!(Named::find(&files, ["there_is_no_such_test"].into_iter()).is_err());
        let blocks = files.rust().filter(|file| file.path.starts_with("crates")).map(|file| {
            file.text.lines().filter(|line| line.trim_start().starts_with("proptest! {")).count()
        });
        assert!(Named::properties(&files).0.values().map(BTreeSet::len).sum::<usize>() >= blocks.sum());
    }
}
