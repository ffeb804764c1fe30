//! Mutants: small changes to our own code, one at a time, that its tests have to notice.
//!
//! `cargo xtask mutants` tries a fixed sample, always the same for the same code; `cargo xtask mutants PACKAGE` all of one
//! crate, which takes hours. CI does neither yet. Those that no test can tell from the code are excluded in `.cargo/mutants.toml`, each with its
//! reason.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::console;
use crate::metadata::Workspace;
use crate::process;
use crate::root::cargo;
use crate::runner;
use crate::tally::Tally;

/// Pinned, so that the same code has the same mutants.
const VERSION: &str = "27.1.0";

/// The crates that decide about money.
const PACKAGES: &[&str] = &["steadfast-limit", "steadfast-dedup", "steadfast-auth", "steadfast-retry"];

/// How many of their mutants the sample has.
const SAMPLE: usize = 6;

/// Tries the sample; each mutant is one check.
pub(crate) fn sample(workspace: &Workspace) -> Result<Tally> {
    let tool = Tool::ready(workspace)?;
    let all = tool.count(workspace, PACKAGES)?;
    // The first of so many equal parts holds mutants from all over the crates.
    let shard = format!("0/{}", (all / SAMPLE).max(1));
    tool.run(workspace, PACKAGES, &["--shard", &shard, "--sharding", "round-robin"])
}

/// Tries every mutant of a crate.
pub(crate) fn all_of(workspace: &Workspace, package: &str) -> Result<Tally> {
    ensure!(
        workspace.members.iter().any(|member| member.name == package),
        "`mutants {package}`: no such crate"
    );
    Tool::ready(workspace)?.run(workspace, &[package], &[])
}

/// `cargo-mutants`, wherever it is.
struct Tool(PathBuf);

impl Tool {
    /// Installs it below the target folder if it is not there.
    fn ready(workspace: &Workspace) -> Result<Self> {
        let root = workspace.target.join("tools");
        let program = root.join("bin/cargo-mutants");
        if !program.is_file() {
            let mut install = cargo(&workspace.root);
            install.args(["install", "cargo-mutants", "--version", VERSION, "--locked", "--root"]).arg(&root);
            // Its own build must not meet the flags of ours.
            install.env_remove("RUSTFLAGS").env("CARGO_TARGET_DIR", root.join("target"));
            let report = runner::check(&mut install)?;
            ensure!(report.tally.failed == 0, "cargo-mutants {VERSION} could not be installed");
        }
        Ok(Self(program))
    }

    fn command(&self, workspace: &Workspace, packages: &[&str]) -> Command {
        let mut command = Command::new(&self.0);
        command.current_dir(&workspace.root).arg("mutants");
        for package in packages {
            command.args(["--package", package]);
        }
        command
    }

    fn count(&self, workspace: &Workspace, packages: &[&str]) -> Result<usize> {
        let output = self.command(workspace, packages).arg("--list").output()?;
        ensure!(output.status.success(), "cargo-mutants cannot list the mutants");
        Ok(output.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).count())
    }

    /// Runs mutants, each against the tests of its own crate. Passed are the caught, failed the missed.
    fn run(&self, workspace: &Workspace, packages: &[&str], which: &[&str]) -> Result<Tally> {
        let folder = workspace.target.join("mutants");
        fs::create_dir_all(&folder)?;
        let mut command = self.command(workspace, packages);
        command.args(which).arg("--output").arg(&folder).args(["--colors", "never", "--annotations", "none"]);
        // The copy of the tree has a target folder of its own.
        command.env_remove("CARGO_TARGET_DIR");
        let ending = process::stream(&mut command, None, |_, line| console::say(line))?;
        let found = folder.join("mutants.out");
        let passed = lines(&found, "caught")? + lines(&found, "timeout")?;
        let tally = Tally { passed, failed: lines(&found, "missed")? };
        // Its exit code tells a missed mutant from one that ran into its time limit; the lists do so, too.
        ensure!(tally.total() > 0, "no mutant was tried: {}", ending.failure().unwrap_or_default());
        Ok(tally)
    }
}

fn lines(folder: &Path, list: &str) -> Result<u64> {
    let file = folder.join(list).with_extension("txt");
    let text = fs::read_to_string(&file).with_context(|| format!("{} is missing", file.display()))?;
    Ok(text.lines().count() as u64)
}
