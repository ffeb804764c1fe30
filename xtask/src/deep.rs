//! The deep stages: what searches rather than checks, and takes what time it is given.
//!
//! They repeat nothing of the plain stages. A stage over its time box is ended and has failed: a box is far
//! longer than the stage needs, so what fills it hangs.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::metadata::Workspace;
use crate::report::Report;
use crate::root::cargo;
use crate::summary::Summary;
use crate::test_runner::TestRunner;
use crate::tidy::{Repository, Source};
use crate::{runner, stage};

/// Every deep stage is one row: what runs, and for how long at most.
const TABLE: &[Deep] = &[
    Deep { name: "fuzz corpora", plan: fuzz_corpora, time_box: minutes(5) },
    Deep { name: "long property tests", plan: properties, time_box: minutes(20) },
    Deep { name: "order model", plan: order_model, time_box: minutes(15) },
    Deep { name: "storms of faults", plan: storms, time_box: minutes(15) },
    Deep { name: "a million requests", plan: requests, time_box: minutes(10) },
    Deep { name: "demo and replay", plan: demo, time_box: minutes(10) },
    Deep { name: "sandbox throughput", plan: throughput, time_box: minutes(10) },
];

/// Cases for each property; the plain tests run proptest's own default.
const CASES: &str = "20000";

struct Deep {
    name: &'static str,
    plan: fn(&Workspace) -> Result<Plan>,
    time_box: Duration,
}

enum Plan {
    Run(TestRunner, Command),
    Nothing(&'static str),
}

/// Runs every deep stage in order.
pub(crate) fn run_all(workspace: &Workspace) -> Summary {
    let rows = TABLE.iter().map(|deep| stage::row(deep.name, || deep.run(workspace)));
    Summary { rows: rows.collect() }
}

impl Deep {
    fn run(&self, workspace: &Workspace) -> Result<Report> {
        match (self.plan)(workspace)? {
            Plan::Run(test_runner, mut command) => {
                runner::count(test_runner, &mut command, Some(self.time_box))
            }
            Plan::Nothing(why) => Ok(Report::skipped(why)),
        }
    }
}

const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

// `fuzz` is a workspace of its own, whose tests feed every file of every corpus to its target. That needs
// neither a fuzzer nor a nightly compiler.
fn fuzz_corpora(workspace: &Workspace) -> Result<Plan> {
    if !workspace.root.join("fuzz").join("Cargo.toml").is_file() {
        return Ok(Plan::Nothing("there is no `fuzz` package"));
    }
    let mut command = cargo(&workspace.root);
    command.args(["test", "--manifest-path", "fuzz/Cargo.toml", "--no-fail-fast"]);
    Ok(Plan::Run(TestRunner::Libtest, command))
}

// Only the properties run again: a test without proptest would do the same as before, and be counted twice.
fn properties(workspace: &Workspace) -> Result<Plan> {
    let repository = Repository::read(&workspace.root)?;
    let names: BTreeSet<&str> = repository.rust().flat_map(|(_, source)| property_names(source)).collect();
    if names.is_empty() {
        return Ok(Plan::Nothing("there are no property tests"));
    }
    let test_runner = TestRunner::installed(&workspace.root);
    let mut command = test_runner.command(&workspace.root);
    command.env("PROPTEST_CASES", CASES);
    match test_runner {
        TestRunner::Nextest => {
            let names: Vec<&str> = names.into_iter().collect();
            let filter = format!("test(/(^|::)({})$/)", names.join("|"));
            command.args(["--profile", "deep", "--filterset", &filter]);
        }
        TestRunner::Libtest => {
            command.arg("--").args(names);
        }
    }
    Ok(Plan::Run(test_runner, command))
}

// These tests do a part of their work in a plain run, and all of it when they are told to; `--release` makes it fit.
fn in_depth(workspace: &Workspace, arguments: &[&str]) -> Plan {
    let mut command = cargo(&workspace.root);
    command.env("STEADFAST_DEEP", "1").args(["test", "--release", "--no-fail-fast"]).args(arguments);
    Plan::Run(TestRunner::Libtest, command)
}

fn order_model(workspace: &Workspace) -> Result<Plan> {
    Ok(in_depth(workspace, &["--package", "steadfast-dedup", "--lib", "model::"]))
}

fn storms(workspace: &Workspace) -> Result<Plan> {
    Ok(in_depth(workspace, &["--package", "steadfast", "--test", "it", "storm::", "--", "--nocapture"]))
}

fn requests(workspace: &Workspace) -> Result<Plan> {
    Ok(in_depth(workspace, &["--package", "steadfast-sandbox", "--test", "gateway", "robustness::"]))
}

// The README's main jobs, judged by what the sandboxes have in the end.
fn demo(workspace: &Workspace) -> Result<Plan> {
    let tests = ["demo_keeps_its_promises", "all_rows_are_in_the_ground_truth"];
    Ok(in_depth(workspace, &[&["--package", "steadfast-cli", "--"][..], &tests].concat()))
}

// Its floor is the target only in a release build; one test at a time, because each is to have a core to itself.
fn throughput(workspace: &Workspace) -> Result<Plan> {
    let tests = ["--package", "steadfast-sandbox", "--test", "gateway", "throughput::"];
    Ok(in_depth(workspace, &[&tests[..], &["--", "--nocapture", "--test-threads", "1"]].concat()))
}

/// The functions inside `proptest!` blocks.
fn property_names(source: &Source) -> Vec<&str> {
    let code = source.code();
    let blocks = code.match_indices("proptest!").map(|(at, _)| block(&code[at..]));
    blocks.flat_map(Source::function_names_in).collect()
}

/// The text up to the end of the first pair of braces.
fn block(code: &str) -> &str {
    let mut depth = 0_usize;
    for (at, brace) in code.match_indices(['{', '}']) {
        depth = if brace == "{" { depth + 1 } else { depth.saturating_sub(1) };
        if depth == 0 {
            return &code[..at];
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_functions_inside_a_proptest_block_are_properties() {
        let source = Source::read(
            "fn before() {}
            proptest! {
                #[test]
                fn never_more_than_the_burst(burst in 1u32..9) { if burst > 3 { fails() } }
                #[test]
                fn order_of_zones_does_not_matter(seed: u64) { }
            }
            fn after() { /* proptest! { fn in_a_comment() {} } */ }
            proptest! { #[test] fn last(x: u8) {} }",
        );
        let names = ["never_more_than_the_burst", "order_of_zones_does_not_matter", "last"];
        assert_eq!(property_names(&source), names);
    }

    #[test]
    fn a_workspace_without_a_fuzz_package_says_so() {
        let workspace = Workspace { root: "/nowhere".into(), target: "/target".into(), members: Vec::new() };
        assert!(matches!(fuzz_corpora(&workspace), Ok(Plan::Nothing("there is no `fuzz` package"))));
    }
}
