use super::{Finding, Repository};
use crate::evidence;

/// Rows of the page of evidence that the command does not print, or prints in other words.
pub(super) fn check(files: &Repository) -> Vec<Finding> {
    evidence::faults_of_page(files).into_iter().map(|fault| Finding::new("evidence", fault)).collect()
}
