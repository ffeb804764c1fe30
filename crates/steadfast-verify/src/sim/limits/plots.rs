//! Plots of the figures, drawn by the run that produced them.

mod refusals;
mod sheet;
mod waits;

use std::{fs, io, path::Path};

use super::campaign::Outcome;

/// Writes every plot into `folder`, which is created if missing.
///
/// # Errors
///
/// The error of the file system.
pub(super) fn write(outcome: &Outcome, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("limits-429s.svg"), refusals::draw(outcome).to_string())?;
    fs::write(folder.join("limits-cancel-wait.svg"), waits::draw(outcome).to_string())
}
