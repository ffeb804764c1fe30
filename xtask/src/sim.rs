//! Starts the simulator as a process of its own, so that a fresh clone compiles xtask without it.

use std::path::Path;
use std::process::{Command, ExitCode};

use crate::console;
use crate::root::{self, cargo};

/// Builds and runs the simulator with these words; its exit code is ours.
pub(crate) fn run(words: &[String]) -> ExitCode {
    let root = root::find();
    let mut command = cargo(&root);
    command.args(["run", "--release", "--quiet", "--package", "steadfast-verify", "--"]).args(words);
    // A campaign keeps the sums of each state of the code apart.
    if let Some(crates) = crates(&root) {
        command.env("STEADFAST_COMMIT", crates);
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

/// The committed state of our crates, and whether the working tree differs from it; `None` outside a clone.
///
/// It is the hash of a folder, not of a commit: one that changes only pages tests the same code, with the same seeds.
pub(crate) fn crates(root: &Path) -> Option<String> {
    let committed = git(root, &["rev-parse", "--short=12", "HEAD:crates"])?;
    let changed = git(root, &["status", "--porcelain", "--", "crates"])?;
    Some(if changed.is_empty() { committed } else { format!("{committed}-dirty") })
}

/// The commit that is checked out; `None` outside a clone.
pub(crate) fn commit(root: &Path) -> Option<String> {
    git(root, &["rev-parse", "--short=12", "HEAD"])
}

fn git(root: &Path, words: &[&str]) -> Option<String> {
    let output = Command::new("git").current_dir(root).args(words).output().ok()?;
    let text = output.status.success().then(|| String::from_utf8(output.stdout).ok())??;
    Some(text.trim().to_owned())
}
