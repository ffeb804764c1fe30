//! A stage over a build in which a bug is planted: what holds of the code must not hold of this.

use std::process::Command;

use anyhow::{Result, bail};

use super::Deep;
use super::what::{self, What};
use crate::metadata::Workspace;
use crate::planted;

/// What the stage runs, with this bug.
pub(super) fn command(stage: &Deep, workspace: &Workspace, bug: &str) -> Result<Command> {
    let mut command = match stage.what {
        What::Simulation(arguments) => what::simulate(planted::simulator(workspace)?, workspace, arguments),
        What::Tests(tests) => {
            let mut command = tests.libtest(workspace, planted::PROFILE);
            planted::in_its_build(&mut command, workspace);
            command
        }
        _ => bail!("stage `{}` runs neither tests nor the simulator: no bug can be planted there", stage.key),
    };
    planted::plant_in(&mut command, bug);
    Ok(command)
}
