//! A stage over a build in which a bug is planted: what holds of the code must not hold of this.

use std::process::Command;

use anyhow::{Result, bail};

use super::Deep;
use super::what::{self, What};
use crate::metadata::Workspace;
use crate::planted::{self, Tree};

/// What the stage runs, with this bug.
pub(super) fn command(stage: &Deep, workspace: &Workspace, bug: &str) -> Result<Command> {
    let tree = Tree::plant(workspace)?;
    let mut command = match stage.what {
        What::Simulation(arguments) => what::simulate(planted::simulator(&tree)?, workspace, arguments),
        What::Tests(tests) => {
            let mut command = tests.libtest(workspace, planted::PROFILE);
            tree.build_by(&mut command);
            command
        }
        _ => bail!("stage `{}` runs neither tests nor the simulator: no bug can be planted there", stage.key),
    };
    planted::turn_on(&mut command, bug);
    Ok(command)
}
