//! The plain stages, cheap ones first: what fails in a second should not wait for a build.

use anyhow::Result;

use crate::metadata::Workspace;
use crate::report::Report;
use crate::root::{cargo, has_subcommand};
use crate::stage::{Role, Stage};
use crate::test_runner::TestRunner;
use crate::{console, examples, runner, tidy};

pub(crate) const STAGES: &[Stage] = &[
    Stage { name: "format", role: Role::Free, run: format },
    Stage { name: "tidy", role: Role::Free, run: tidy::stage },
    Stage { name: "licences and bans", role: Role::Free, run: deny },
    Stage { name: "build", role: Role::Builds, run: build },
    Stage { name: "tests", role: Role::NeedsBuild, run: tests },
    Stage { name: "doc tests", role: Role::NeedsBuild, run: doc_tests },
    Stage { name: "examples", role: Role::NeedsBuild, run: examples::stage },
    Stage { name: "lints", role: Role::NeedsBuild, run: lints },
    Stage { name: "lints without features", role: Role::NeedsBuild, run: featureless_lints },
    Stage { name: "docs", role: Role::NeedsBuild, run: docs },
];

fn format(workspace: &Workspace) -> Result<Report> {
    runner::check(cargo(&workspace.root).args(["fmt", "--all", "--check"]))
}

// Advisories are left out: they need a database that a machine without free network does not have.
fn deny(workspace: &Workspace) -> Result<Report> {
    if !has_subcommand(&workspace.root, "deny") {
        return Ok(Report::skipped("cargo-deny is not installed"));
    }
    runner::check(cargo(&workspace.root).args(["deny", "check", "licenses", "bans", "sources"]))
}

// The examples are built here too, with the same features, so that no later stage compiles anything twice.
fn build(workspace: &Workspace) -> Result<Report> {
    runner::check(cargo(&workspace.root).args(["test", "--workspace", "--no-run"]))
}

fn tests(workspace: &Workspace) -> Result<Report> {
    let test_runner = TestRunner::installed(&workspace.root);
    if test_runner == TestRunner::Libtest {
        console::say("cargo-nextest is not installed: cargo test instead");
    }
    runner::count(test_runner, &mut test_runner.command(&workspace.root), None, |_| {})
}

fn doc_tests(workspace: &Workspace) -> Result<Report> {
    let mut command = cargo(&workspace.root);
    command.args(["test", "--workspace", "--no-fail-fast", "--doc"]);
    runner::count(TestRunner::Libtest, &mut command, None, |_| {})
}

fn lints(workspace: &Workspace) -> Result<Report> {
    let mut command = cargo(&workspace.root);
    runner::check(command.args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

// The workspace builds the facade with all its features; most users take none.
fn featureless_lints(workspace: &Workspace) -> Result<Report> {
    let mut command = cargo(&workspace.root);
    let facade = ["clippy", "--package", "steadfast", "--no-default-features", "--", "-D", "warnings"];
    runner::check(command.args(facade))
}

fn docs(workspace: &Workspace) -> Result<Report> {
    let mut command = cargo(&workspace.root);
    runner::check(command.env("RUSTDOCFLAGS", "-D warnings").args(["doc", "--workspace", "--no-deps"]))
}
