//! `steadfast completions`: what a shell needs to complete the command.

use std::io::Write;

use clap_complete::Shell;

use crate::{exit::Failed, stdout::Stdout};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The shell.
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let mut script = Vec::new();
    let mut command = crate::config::command();
    clap_complete::generate(args.shell, &mut command, "steadfast", &mut script);
    // A failure is kept and told in the end, as for all data.
    let _ = Stdout.write_all(&script);
    Ok(())
}
