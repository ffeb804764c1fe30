use std::process::Command;

use anyhow::Result;

use crate::cargo::{CargoTool, known_crate};
use crate::report::Tally;
use crate::runner::{self, echo};
use crate::workspace::Workspace;

const TOOL: CargoTool = CargoTool { name: "cargo-llvm-cov", version: "0.9.1" };

/// The lines that the plain tests run, of each file.
///
/// It is told and never judged: a line that ran may still be wrong, and mutants say more. It needs the compiler's own tools
/// (`rustup component add llvm-tools`), because the files that an instrumented program writes are of one version of LLVM.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// All of `crates` if absent.
    #[arg(value_parser = known_crate)]
    packages: Vec<String>,
}

/// Runs the plain tests of these crates, and prints which lines ran; files of tests do not count.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<Tally> {
    let mut command = Command::new(TOOL.ready(workspace)?);
    command.current_dir(&workspace.root).args([
        "llvm-cov",
        "test",
        "--tests",
        "--no-fail-fast",
        "--summary-only",
    ]);
    match &args.packages[..] {
        [] => command.arg("--workspace"),
        packages => command.args(packages.iter().flat_map(|package| ["--package", package])),
    };
    command.env("CARGO_TARGET_DIR", workspace.target.join("coverage")).env("CARGO_TERM_COLOR", "never");
    Ok(runner::check(&mut command, None, echo)?.tally)
}
