//! What a deep stage runs, as a command.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::Result;

use super::sinks::SINKS;
use crate::metadata::Workspace;
use crate::root::cargo;
use crate::sim;
use crate::test_runner::TestRunner;
use crate::tidy::{Repository, Source};

/// Cases for each property; the plain tests run proptest's own default.
const CASES: &str = "10000";

/// What a deep stage runs.
#[derive(Clone, Copy)]
pub(crate) enum What {
    /// Every file of every fuzz corpus.
    Corpora,
    /// Every property test, with more cases.
    Properties,
    /// Tests that do a part of their work in a plain run, and all of it here.
    Tests(Tests),
    /// The tests that search for secrets, each in its sink. They are plain tests, run again to be counted.
    Secrets,
    /// Tests under the scheduler that tries orders of threads; it needs a build of its own.
    Schedules { package: &'static str, names: &'static str },
    /// The simulator, which judges itself.
    Simulation(&'static [&'static str]),
    /// A sample of mutants; what does not fit into the stage's time is left out.
    Mutants,
    /// Every planted bug, in a copy of the sources.
    Planted,
    /// Counts that no busy machine changes, against their ceilings.
    Costs,
}

/// Some tests of one target.
#[derive(Clone, Copy)]
pub(crate) struct Tests {
    pub(crate) package: &'static str,
    pub(crate) target: Target,
    /// What their names contain.
    pub(crate) names: &'static str,
    /// One at a time.
    pub(crate) alone: bool,
}

#[derive(Clone, Copy)]
pub(crate) enum Target {
    Lib,
    Bin,
    Test(&'static str),
}

impl Tests {
    // With nextest all stages share one build of the whole workspace.
    pub(super) fn command(self, workspace: &Workspace, test_runner: TestRunner) -> Command {
        let Self { package, target, names, alone } = self;
        let mut command = cargo(&workspace.root);
        command.env("STEADFAST_DEEP", "1");
        match test_runner {
            TestRunner::Nextest => {
                let binary = match target {
                    Target::Lib => "kind(lib)".to_owned(),
                    Target::Bin => "kind(bin)".to_owned(),
                    Target::Test(test) => format!("binary(={test})"),
                };
                let tests = if names.is_empty() { "all()".to_owned() } else { format!("test({names})") };
                let filter = format!("package(={package}) & {binary} & {tests}");
                command.args([
                    "nextest",
                    "run",
                    "--workspace",
                    // Examples and benches hold no tests.
                    "--lib",
                    "--bins",
                    "--tests",
                    "--no-fail-fast",
                    "--success-output",
                    "final",
                ]);
                command.args(["--cargo-profile", "deep", "--profile", "deep", "--filterset", &filter]);
                if alone {
                    command.args(["--test-threads", "1"]);
                }
            }
            TestRunner::Libtest => return self.libtest(workspace, "deep"),
        }
        command
    }

    /// The same by cargo alone, in a build of this profile.
    pub(super) fn libtest(self, workspace: &Workspace, profile: &str) -> Command {
        let Self { package, target, names, alone } = self;
        let mut command = cargo(&workspace.root);
        command.env("STEADFAST_DEEP", "1");
        command.args(["test", "--profile", profile, "--no-fail-fast", "--package", package]);
        match target {
            Target::Lib => command.arg("--lib"),
            Target::Bin => command.arg("--bins"),
            Target::Test(test) => command.args(["--test", test]),
        };
        command.args([names, "--", "--nocapture"]);
        if alone {
            command.args(["--test-threads", "1"]);
        }
        command
    }
}

// `fuzz` is a workspace of its own, whose tests feed every file of every corpus to its target. That needs
// neither a fuzzer nor a nightly compiler.
pub(super) fn fuzz_corpora(workspace: &Workspace) -> Command {
    let mut command = cargo(&workspace.root);
    command.args(["test", "--manifest-path", "fuzz/Cargo.toml", "--no-fail-fast", "--", "--nocapture"]);
    command
}

/// The tests that search every sink for secrets.
pub(super) fn secrets(workspace: &Workspace, test_runner: TestRunner) -> Command {
    let names: BTreeSet<&str> = SINKS.iter().map(|(_, test)| *test).collect();
    named(workspace, test_runner, names)
}

// Only the properties run again: a test without proptest would do the same as before, and be counted twice.
pub(super) fn properties(workspace: &Workspace, test_runner: TestRunner) -> Result<Command> {
    let repository = Repository::read(&workspace.root)?;
    let names: BTreeSet<&str> = repository.rust().flat_map(|(_, source)| property_names(source)).collect();
    let mut command = named(workspace, test_runner, names);
    command.env("PROPTEST_CASES", CASES);
    Ok(command)
}

/// Tests by their names, wherever they are.
fn named(workspace: &Workspace, test_runner: TestRunner, names: BTreeSet<&str>) -> Command {
    let mut command = test_runner.command(&workspace.root);
    match test_runner {
        TestRunner::Nextest => {
            let names: Vec<&str> = names.into_iter().collect();
            let filter = format!("test(/(^|::)({})$/)", names.join("|"));
            command.args(["--cargo-profile", "deep", "--profile", "deep", "--filterset", &filter]);
        }
        TestRunner::Libtest => {
            command.args(["--profile", "deep", "--"]).args(names);
        }
    }
    command
}

// Flags of the compiler change every crate, so the other builds are kept.
pub(super) fn schedules(workspace: &Workspace, package: &str, names: &str) -> Command {
    let mut command = cargo(&workspace.root);
    command.env("RUSTFLAGS", "--cfg shuttle").env("CARGO_TARGET_DIR", workspace.target.join("shuttle"));
    command.args(["test", "--profile", "deep", "--package", package, "--lib", names, "--", "--nocapture"]);
    command
}

pub(super) fn simulation(workspace: &Workspace, arguments: &[&str]) -> Command {
    let mut command = cargo(&workspace.root);
    command.args(["run", "--profile", "deep", "--quiet", "--package", "steadfast-verify", "--"]);
    simulate(command, workspace, arguments)
}

/// What a simulator is started with.
pub(super) fn simulate(mut command: Command, workspace: &Workspace, arguments: &[&str]) -> Command {
    command.args(arguments);
    // The report names the state of the code that was measured.
    if let Some(crates) = sim::crates(&workspace.root) {
        command.env("STEADFAST_COMMIT", crates);
    }
    command
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
}
