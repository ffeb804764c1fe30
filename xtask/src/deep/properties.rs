//! The property tests, found in the sources.

use std::collections::{BTreeMap, BTreeSet};

use crate::repository::{Repository, function_name};

/// Finds the functions inside `proptest!` blocks, by package and target.
pub(super) fn properties(files: &Repository) -> BTreeMap<(&str, &str), BTreeSet<&str>> {
    let mut found = BTreeMap::<_, BTreeSet<&str>>::new();
    for file in files.rust() {
        let place = match file.path.split('/').collect::<Vec<_>>()[..] {
            // The command has no library.
            ["crates", "steadfast-cli", "src", ..] => ("steadfast-cli", "bin"),
            ["crates", package, "src", ..] => (package, "lib"),
            ["crates", package, "tests", target, ..] => (package, target.trim_end_matches(".rs")),
            _ => continue,
        };
        let names = property_names(&file.text);
        if !names.is_empty() {
            found.entry(place).or_default().extend(names);
        }
    }
    found
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
    fn every_block_of_the_crates_has_a_property() {
        let files = Repository::read(&crate::cargo::root()).unwrap();
        let blocks = files.rust().filter(|file| file.path.starts_with("crates")).map(|file| {
            file.text.lines().filter(|line| line.trim_start().starts_with("proptest! {")).count()
        });
        assert!(properties(&files).values().map(BTreeSet::len).sum::<usize>() >= blocks.sum());
    }
}
