//! The repository's own rules: what no compiler, linter or formatter checks.
//!
//! Each check is a pure function of the files or of cargo's metadata, in a file of its own, and shown to fail
//! by its own tests.

mod doc_tests;
mod edges;
mod evidence;
mod file_names;
mod finding;
mod lock_file;
mod machine_paths;
mod manifests;
mod markers;
mod repository;
mod root_entries;
mod source;
mod traceability;
mod words;

use std::fmt::Display;

use anyhow::Result;

use crate::console;
use crate::metadata::Workspace;
use crate::planted;
use crate::report::Report;
use crate::tally::Tally;

pub(crate) use finding::Finding;
pub(crate) use repository::Repository;
pub(crate) use source::Source;
pub(crate) use traceability::coverage;

type Check = fn(&Workspace, &Repository) -> Vec<Finding>;

const CHECKS: &[(&str, Check)] = &[
    ("the visible root has only the agreed entries", |_, files| root_entries::check(files.root_entries())),
    ("crates depend on each other only along the agreed edges", |cargo, _| edges::check(&cargo.members)),
    ("manifests inherit from the workspace", |_, files| manifests::check(files)),
    ("files are named after their subject", |_, files| file_names::check(files)),
    ("no ignored test", |_, files| words::ignored_tests(files)),
    ("no ignored doc test", |_, files| doc_tests::check(files)),
    ("nothing is left unwritten", |_, files| words::unwritten(files)),
    ("no marker of unfinished work", |_, files| markers::check(files)),
    ("no real sleep", |_, files| words::real_sleep(files)),
    ("stamps are read as stamps", |_, files| words::stamps_among_extensions(files)),
    ("no unsafe code", |_, files| words::unsafe_code(files)),
    ("no path of a machine, no registry host", |_, files| machine_paths::check(files)),
    ("no abandoned crate in the lock file", |_, files| lock_file::check(files)),
    ("the page of evidence is as the command prints it", |_, files| evidence::check(files)),
    ("every planted bug can be planted, and is looked for", |_, files| planted::faults(files)),
    ("every sentence of the spec is traced to its tests", |_, files| traceability::check(files)),
];

/// Runs every check and prints its findings; each check counts as one.
pub(crate) fn run(workspace: &Workspace) -> Result<Tally> {
    let repository = Repository::read(&workspace.root)?;
    let mut tally = Tally::default();
    for (rule, check) in CHECKS {
        tally += verdict(rule, &check(workspace, &repository));
    }
    if let Some(coverage) = traceability::coverage(&repository) {
        console::say(format_args!("spec: {coverage}"));
    }
    Ok(tally)
}

/// Counts the uses of `unsafe`.
pub(crate) fn unsafe_code(files: &Repository) -> usize {
    words::unsafe_code(files).len()
}

/// Runs every check as one stage of a longer run.
pub(crate) fn stage(workspace: &Workspace) -> Result<Report> {
    Ok(Report::of_tests(run(workspace)?, None))
}

fn verdict(rule: impl Display, findings: &[Finding]) -> Tally {
    if findings.is_empty() {
        console::say(format_args!("ok    {rule}"));
        return Tally::SUCCESS;
    }
    console::say(format_args!("FAIL  {rule}"));
    for finding in findings {
        console::say(format_args!("      {finding}"));
    }
    Tally::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_fails_once_however_much_it_finds() {
        let findings = [Finding::new("a.rs", "one"), Finding::new("a.rs", "two")];
        assert_eq!(verdict("rule", &findings), Tally::FAILURE);
        assert_eq!(verdict("rule", &[]), Tally::SUCCESS);
    }
}
