//! Starts the simulator as a process of its own, so that a fresh clone compiles xtask without it.

use std::path::Path;
use std::process::{Command, ExitCode};

use crate::console;
use crate::root::{self, cargo};

/// Builds and runs the simulator with these words; its exit code is ours.
pub(crate) fn run(words: &[String]) -> ExitCode {
    let root = root::find();
    let mut command = cargo(&root);
    command.args(["run", "--release", "--quiet", "--package", "steadfast-sim", "--"]).args(words);
    // A campaign keeps the sums of each commit apart.
    if let Some(commit) = commit(&root) {
        command.env("STEADFAST_COMMIT", commit);
    }
    match command.status() {
        Ok(status) => {
            status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
        }
        Err(error) => {
            console::complain(format_args!("error: cargo did not start: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// The commit that the working tree stands on, and whether it differs from it; `None` outside a clone.
pub(crate) fn commit(root: &Path) -> Option<String> {
    let describe = ["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"];
    let output = Command::new("git").current_dir(root).args(describe).output().ok()?;
    let name = output.status.success().then(|| String::from_utf8(output.stdout).ok())??;
    Some(name.trim().to_owned())
}
