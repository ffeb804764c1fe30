//! Results that a run has left unfinished.

use std::{
    fs::{self, File},
    path::Path,
};

use super::holds_results_only;
use crate::journal::folder_of;

/// The ending of a file of results that is not whole; the number of its process stands before it.
pub(super) const PART: &str = ".part";

/// Removes what runs that were killed have left beside a file of results. The results of their rows are in it now.
pub(super) fn remove_leftovers(place: &Path) {
    let Some(name) = place.file_name().and_then(|name| name.to_str()) else { return };
    for found in fs::read_dir(folder_of(place)).into_iter().flatten().flatten() {
        let left = found.file_name();
        let number =
            left.to_str().and_then(|left| left.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(PART));
        let is_number = number
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
        let path = found.path();
        let is_begun = fs::metadata(&path).is_ok_and(|left| left.is_file() && left.len() == 0);
        // One that is locked belongs to a run that goes on.
        let is_left = |file: File| file.try_lock().is_ok();
        if is_number && (is_begun || holds_results_only(&path)) && File::open(&path).is_ok_and(is_left) {
            // It does no harm where it stays.
            let _ = fs::remove_file(&path);
        }
    }
}
