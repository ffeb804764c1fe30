//! `steadfast man`: the manual pages, made of the help of each verb.

use std::{fs, io::Write, path::PathBuf};

use crate::{exit::Failed, stdout::Stdout};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write the pages of all verbs into this folder, instead of the first page to standard output.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let command = crate::config::command();
    if let Some(folder) = &args.out {
        let failed = |error| Failed::error(format!("{}: {error}", folder.display()));
        fs::create_dir_all(folder).map_err(failed)?;
        return clap_mangen::generate_to(command, folder).map_err(failed);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page).map_err(Failed::error)?;
    // A failure is kept and told in the end, as for all data.
    let _ = Stdout.write_all(&page);
    Ok(())
}
