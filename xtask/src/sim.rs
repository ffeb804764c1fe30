//! Starts the simulator as a process of its own, so that a fresh clone compiles xtask without it.

use std::process::ExitCode;

use crate::console;
use crate::root::{self, cargo};

/// Builds and runs the simulator with these words; its exit code is ours.
pub(crate) fn run(words: &[String]) -> ExitCode {
    let mut command = cargo(&root::find());
    command.args(["run", "--release", "--quiet", "--package", "steadfast-sim", "--"]).args(words);
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
