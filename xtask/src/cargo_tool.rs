use std::path::PathBuf;

use anyhow::{Result, ensure};

use crate::metadata::Workspace;
use crate::root::cargo;
use crate::runner;

/// A cargo subcommand that we install ourselves, of one version: the same code then has the same mutants.
pub(crate) struct CargoTool {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
}

impl CargoTool {
    /// The program's path. It is installed below the target folder if it is not there.
    pub(crate) fn ready(&self, workspace: &Workspace) -> Result<PathBuf> {
        let Self { name, version } = self;
        let tools = workspace.target.join("tools");
        let root = tools.join(format!("{name}-{version}"));
        let program = root.join("bin").join(name);
        if !program.is_file() {
            let mut install = cargo(&workspace.root);
            // They wait for compilers most of the time; without optimisation they are there in half the time.
            install.args(["install", name, "--version", version, "--locked", "--debug", "--root"]).arg(&root);
            // Its own build must not meet the flags of ours.
            install.env_remove("RUSTFLAGS").env("CARGO_TARGET_DIR", tools.join("target"));
            let report = runner::check(&mut install)?;
            ensure!(report.tally.failed == 0, "{name} {version} could not be installed");
        }
        Ok(program)
    }
}
