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
use crate::{bench, runner, stage};

/// Every deep stage is one row: what runs, and for how long at most.
const TABLE: &[Deep] = &[
    Deep { name: "fuzz corpora", what: What::Corpora, time_box: minutes(5) },
    Deep { name: "long property tests", what: What::Properties, time_box: minutes(20) },
    Deep {
        name: "order model",
        what: What::Tests(Tests {
            package: "steadfast-dedup",
            target: Target::Lib,
            name: "model::",
            alone: false,
        }),
        time_box: minutes(15),
    },
    Deep {
        name: "ten thousand identical orders",
        what: What::Tests(Tests {
            package: "steadfast-dedup",
            target: Target::Test("it"),
            name: "k6_",
            alone: false,
        }),
        time_box: minutes(10),
    },
    Deep {
        name: "crash images of the journal",
        what: What::Tests(Tests {
            package: "steadfast-dedup",
            target: Target::Test("journal"),
            name: "",
            alone: false,
        }),
        time_box: minutes(15),
    },
    Deep {
        name: "kills while orders are on their way",
        what: What::Tests(Tests {
            package: "steadfast",
            target: Target::Test("kill"),
            name: "",
            alone: false,
        }),
        time_box: minutes(10),
    },
    Deep {
        name: "storms of faults",
        what: What::Tests(Tests {
            package: "steadfast",
            target: Target::Test("it"),
            name: "storm::",
            alone: false,
        }),
        time_box: minutes(15),
    },
    Deep {
        name: "retry against its oracle",
        what: What::Tests(Tests {
            package: "steadfast-retry",
            target: Target::Test("it"),
            name: "oracle::",
            alone: false,
        }),
        time_box: minutes(5),
    },
    Deep {
        name: "limits, drops and restarts",
        what: What::Tests(Tests {
            package: "steadfast-limit",
            target: Target::Test("it"),
            name: "",
            alone: false,
        }),
        time_box: minutes(15),
    },
    Deep {
        name: "every order of threads in the limiter",
        what: What::Schedules { package: "steadfast-limit", name: "hand_off::schedules" },
        time_box: minutes(10),
    },
    Deep {
        name: "a million requests",
        what: What::Tests(Tests {
            package: "steadfast-sandbox",
            target: Target::Test("gateway"),
            name: "robustness::",
            alone: false,
        }),
        time_box: minutes(10),
    },
    Deep {
        name: "a list of 200 MB",
        what: What::Tests(Tests {
            package: "steadfast",
            target: Target::Test("memory"),
            name: "",
            alone: false,
        }),
        time_box: minutes(5),
    },
    // The README's main jobs, judged by what the sandboxes have in the end; then logins and crashes of real processes.
    Deep {
        name: "demo",
        what: What::Tests(Tests {
            package: "steadfast-cli",
            target: Target::Bin,
            name: "demo_keeps_its_promises",
            alone: false,
        }),
        time_box: minutes(10),
    },
    Deep {
        name: "replay, logins and crashes of the command",
        what: What::Tests(Tests {
            package: "steadfast-cli",
            target: Target::Test("it"),
            name: "",
            alone: false,
        }),
        time_box: minutes(15),
    },
    // Its floor is the target only in an optimised build; alone, because it is to have a core to itself.
    Deep {
        name: "sandbox throughput",
        what: What::Tests(Tests {
            package: "steadfast-sandbox",
            target: Target::Test("gateway"),
            name: "throughput::",
            alone: true,
        }),
        time_box: minutes(10),
    },
    Deep {
        name: "limits beside their peers",
        what: What::Simulation(&["limits", "--sends", "10000000", "--minutes", "3"]),
        time_box: minutes(15),
    },
    Deep {
        name: "orders while answers get lost",
        what: What::Simulation(&["orders", "--orders", "300000", "--seconds", "150"]),
        time_box: minutes(10),
    },
    Deep {
        name: "orders over connections that break anywhere",
        what: What::Simulation(&["orders", "--wire", "pipe", "--orders", "40000", "--seconds", "60"]),
        time_box: minutes(5),
    },
    Deep { name: "instructions and allocations", what: What::Costs, time_box: minutes(15) },
];

/// Cases for each property; the plain tests run proptest's own default.
const CASES: &str = "10000";

struct Deep {
    name: &'static str,
    what: What,
    time_box: Duration,
}

/// What a deep stage runs.
enum What {
    /// Every file of every fuzz corpus.
    Corpora,
    /// Every property test, with more cases.
    Properties,
    /// Tests that do a part of their work in a plain run, and all of it here.
    Tests(Tests),
    /// Tests under the scheduler that tries orders of threads; it needs a build of its own.
    Schedules { package: &'static str, name: &'static str },
    /// The simulator, which judges itself.
    Simulation(&'static [&'static str]),
    /// Counts that no busy machine changes, against their ceilings.
    Costs,
}

/// Some tests of one target.
#[derive(Clone, Copy)]
struct Tests {
    package: &'static str,
    target: Target,
    /// What their names contain.
    name: &'static str,
    /// One at a time.
    alone: bool,
}

#[derive(Clone, Copy)]
enum Target {
    Lib,
    Bin,
    Test(&'static str),
}

/// Runs every deep stage in order.
pub(crate) fn run_all(workspace: &Workspace) -> Summary {
    let rows = TABLE.iter().map(|deep| stage::row(deep.name, || deep.run(workspace)));
    Summary { rows: rows.collect() }
}

impl Deep {
    fn run(&self, workspace: &Workspace) -> Result<Report> {
        match self.what {
            What::Corpora => self.count(TestRunner::Libtest, fuzz_corpora(workspace)),
            What::Properties => {
                let test_runner = TestRunner::installed(&workspace.root);
                self.count(test_runner, properties(workspace, test_runner)?)
            }
            What::Tests(tests) => {
                let test_runner = TestRunner::installed(&workspace.root);
                self.count(test_runner, tests.command(workspace, test_runner))
            }
            What::Schedules { package, name } => {
                self.count(TestRunner::Libtest, schedules(workspace, package, name))
            }
            What::Simulation(arguments) => {
                runner::judge(&mut simulation(workspace, arguments), self.time_box)
            }
            What::Costs => {
                let tally = bench::check_all(workspace)?;
                Ok(Report::of_tests(tally, None))
            }
        }
    }

    fn count(&self, test_runner: TestRunner, mut command: Command) -> Result<Report> {
        runner::count(test_runner, &mut command, Some(self.time_box))
    }
}

const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

// `fuzz` is a workspace of its own, whose tests feed every file of every corpus to its target. That needs
// neither a fuzzer nor a nightly compiler.
fn fuzz_corpora(workspace: &Workspace) -> Command {
    let mut command = cargo(&workspace.root);
    command.args(["test", "--manifest-path", "fuzz/Cargo.toml", "--no-fail-fast"]);
    command
}

// Only the properties run again: a test without proptest would do the same as before, and be counted twice.
fn properties(workspace: &Workspace, test_runner: TestRunner) -> Result<Command> {
    let repository = Repository::read(&workspace.root)?;
    let names: BTreeSet<&str> = repository.rust().flat_map(|(_, source)| property_names(source)).collect();
    let mut command = test_runner.command(&workspace.root);
    command.env("PROPTEST_CASES", CASES);
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
    Ok(command)
}

impl Tests {
    // With nextest all stages share one build of the whole workspace.
    fn command(self, workspace: &Workspace, test_runner: TestRunner) -> Command {
        let Self { package, target, name, alone } = self;
        let mut command = cargo(&workspace.root);
        command.env("STEADFAST_DEEP", "1");
        match test_runner {
            TestRunner::Nextest => {
                let binary = match target {
                    Target::Lib => "kind(lib)".to_owned(),
                    Target::Bin => "kind(bin)".to_owned(),
                    Target::Test(test) => format!("binary(={test})"),
                };
                let tests = if name.is_empty() { "all()".to_owned() } else { format!("test({name})") };
                let filter = format!("package(={package}) & {binary} & {tests}");
                command.args([
                    "nextest",
                    "run",
                    "--workspace",
                    "--no-fail-fast",
                    "--success-output",
                    "final",
                ]);
                command.args(["--cargo-profile", "deep", "--profile", "deep", "--filterset", &filter]);
                if alone {
                    command.args(["--test-threads", "1"]);
                }
            }
            TestRunner::Libtest => {
                command.args(["test", "--profile", "deep", "--no-fail-fast", "--package", package]);
                match target {
                    Target::Lib => command.arg("--lib"),
                    Target::Bin => command.arg("--bins"),
                    Target::Test(test) => command.args(["--test", test]),
                };
                command.args([name, "--", "--nocapture"]);
                if alone {
                    command.args(["--test-threads", "1"]);
                }
            }
        }
        command
    }
}

// Flags of the compiler change every crate, so the other builds are kept.
fn schedules(workspace: &Workspace, package: &str, name: &str) -> Command {
    let mut command = cargo(&workspace.root);
    command.env("RUSTFLAGS", "--cfg shuttle").env("CARGO_TARGET_DIR", workspace.target.join("shuttle"));
    command.args(["test", "--profile", "deep", "--package", package, "--lib", name, "--", "--nocapture"]);
    command
}

fn simulation(workspace: &Workspace, arguments: &[&str]) -> Command {
    let mut command = cargo(&workspace.root);
    command.args(["run", "--profile", "deep", "--quiet", "--package", "steadfast-sim", "--"]).args(arguments);
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
