//! The plain stages, cheap ones first: what fails in a second should not wait for a build.

use std::process::Command;
use std::thread;

use anyhow::Result;

use crate::cargo::{cargo, has_subcommand};
use crate::report::{Report, Tally, Verdict};
use crate::runner::{self, echo};
use crate::summary::{Row, Summary};
use crate::workspace::Workspace;
use crate::{console, tidy};

/// One step: its name, whether it would only repeat the compiler's errors if the build failed, and what it does.
type Stage = (&'static str, bool, fn(&Workspace) -> Result<Report>);

const BUILD: &str = "build";

const STAGES: &[Stage] = &[
    ("format", false, |workspace| run(cargo(&workspace.root).args(["fmt", "--all", "--check"]))),
    ("tidy", false, |workspace| Ok(Report::of_tests(tidy::run(workspace)?, None))),
    ("licences and bans", false, deny),
    // The examples are built here too, for the test that runs them.
    (BUILD, false, |workspace| run(cargo(&workspace.root).args(["test", "--workspace", "--no-run"]))),
    ("tests", true, tests),
    ("doc tests", true, doc_tests),
    ("lints", true, |workspace| lint(workspace, &["--workspace", "--all-targets"])),
    // The workspace builds the facade with all its features; most users take none.
    ("lints without features", true, |workspace| {
        lint(workspace, &["--package", "steadfast", "--no-default-features"])
    }),
    ("docs", true, docs),
];

/// Runs every stage in order; a failure stops nothing but what needs a build that failed.
pub(crate) fn run_all(workspace: &Workspace) -> Tally {
    let mut builds = true;
    let mut summary = Summary::default();
    for &(name, needs_build, stage) in STAGES {
        let row = Row::run(name, &mut echo, |_| match needs_build && !builds {
            true => Ok(Report::skipped("the build failed")),
            false => stage(workspace),
        });
        builds &= name != BUILD || row.report.verdict == Verdict::Passed;
        summary.rows.push(row);
    }
    console::say(format_args!("\n{summary}"));
    console::tell(&summary.failures());
    summary.tally()
}

fn run(command: &mut Command) -> Result<Report> {
    runner::check(command, None, echo)
}

// Advisories are left out: they need a database that a machine without free network does not have.
fn deny(workspace: &Workspace) -> Result<Report> {
    if !has_subcommand(&workspace.root, "deny") {
        return Ok(Report::skipped("cargo-deny is not installed"));
    }
    run(cargo(&workspace.root).args(["deny", "check", "licenses", "bans", "sources"]))
}

fn tests(workspace: &Workspace) -> Result<Report> {
    let mut command = cargo(&workspace.root);
    // Examples and benches hold no tests of their own.
    let targets = ["--lib", "--bins", "--tests", "--workspace", "--no-fail-fast"];
    if !has_subcommand(&workspace.root, "nextest") {
        console::say("cargo-nextest is not installed: cargo test instead");
        return runner::count(runner::libtest, command.arg("test").args(targets), None, echo);
    }
    // A test takes one or two of these threads: `.config/nextest.toml` says which.
    let cores = thread::available_parallelism().map_or(1, usize::from);
    command
        .args(["nextest", "run", "--profile", "ci", "--test-threads", &(5 * cores).to_string()])
        .args(targets);
    runner::count(runner::nextest, &mut command, None, echo)
}

fn doc_tests(workspace: &Workspace) -> Result<Report> {
    let mut command = cargo(&workspace.root);
    command.args(["test", "--workspace", "--no-fail-fast", "--doc"]);
    runner::count(runner::libtest, &mut command, None, echo)
}

fn lint(workspace: &Workspace, targets: &[&str]) -> Result<Report> {
    run(cargo(&workspace.root).arg("clippy").args(targets).args(["--", "-D", "warnings"]))
}

fn docs(workspace: &Workspace) -> Result<Report> {
    let mut command = cargo(&workspace.root);
    run(command.env("RUSTDOCFLAGS", "-D warnings").args(["doc", "--workspace", "--no-deps"]))
}
