//! Cargo commands, cargo's own tools, and the state of the clone.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Finds the workspace root: the folder above this crate.
///
/// Cargo says where the crate is at run time; the place it was compiled in serves a binary started by hand.
pub(crate) fn root() -> PathBuf {
    let crate_dir =
        env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    crate_dir.parent().map_or_else(|| crate_dir.clone(), Path::to_path_buf)
}

/// Where proptest takes its seed from.
const DRAWS: &str = "PROPTEST_RNG_SEED";

/// Starts to describe a cargo command at the workspace root.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root).env("CARGO_TERM_COLOR", "never");
    // `cargo run` describes xtask itself in these variables. Build scripts that watch them would run again
    // whenever a plain `cargo` follows an xtask, and rebuild half of the tree.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    fix_draws(&mut command);
    command
}

/// Properties draw the same everywhere, so a run fails only because of a change. Others are drawn with the variable.
pub(crate) fn fix_draws(command: &mut Command) {
    if env::var_os(DRAWS).is_none() {
        command.env(DRAWS, "1");
    }
}

/// Tells whether cargo has a subcommand such as `nextest`.
pub(crate) fn has_subcommand(root: &Path, name: &str) -> bool {
    let mut probe = cargo(root);
    probe.args([name, "--version"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

/// The committed state of our crates, and whether the working tree differs from it; `None` outside a clone.
///
/// It is the hash of a folder, not of a commit: a commit that changes only pages tests the same code.
pub(crate) fn state(root: &Path) -> Option<String> {
    let committed = git(root, &["rev-parse", "--short=12", "HEAD:crates"])?;
    let changed = git(root, &["status", "--porcelain", "--", "crates"])?;
    Some(if changed.is_empty() { committed } else { format!("{committed}-dirty") })
}

/// The number of commits up to this one; `None` outside a clone.
pub(crate) fn commits(root: &Path) -> Option<usize> {
    git(root, &["rev-list", "--count", "HEAD"])?.parse().ok()
}

/// Tells a simulator the state of the code: its report names it, and a campaign keeps the sums of each state apart.
pub(crate) fn name_state(command: &mut Command, root: &Path) {
    if let Some(state) = state(root) {
        command.env("STEADFAST_COMMIT", state);
    }
}

/// The answer of git, if it has one.
pub(crate) fn git(root: &Path, words: &[&str]) -> Option<String> {
    let output = Command::new("git").current_dir(root).args(words).output().ok()?;
    let text = output.status.success().then(|| String::from_utf8(output.stdout).ok())??;
    Some(text.trim().to_owned())
}
