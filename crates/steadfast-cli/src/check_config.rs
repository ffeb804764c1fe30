//! `steadfast check-config`: whether a config file can be used.

use std::path::PathBuf;

use crate::{
    config::ConfigFile,
    exit::{Failed, print_note},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The file. The files and commands that it names are not looked at.
    file: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let file = ConfigFile::read(&args.file)?;
    let (path, count) = (file.path().display(), file.entries().len());
    let s = if count == 1 { "" } else { "s" };
    print_note(format_args!("{path}: {count} key{s}, and nothing is wrong with them"));
    Ok(())
}
