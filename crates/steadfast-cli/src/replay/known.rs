use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use steadfast::dedup::{
    Epoch, RecoveredOrder, Settings, Verdict,
    journal::{Entry, FileJournal, Record},
};

use crate::exit::Failed;

/// Where a run over `file` is written down, unless somebody says otherwise.
pub(super) fn beside(file: &Path) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(".journal");
    name.into()
}

/// Refuses a journal of another day's run: what the rows mean now is for a person to say.
///
/// A name stands for one order within one trading day. On the next, the same rows may be what was placed already, or may
/// be new orders.
pub(super) fn refuse_other_day(journal: &Path, today: Epoch) -> Result<(), Failed> {
    let entries = FileJournal::read(journal).map_err(|error| Failed::usage(with_source(&error)))?;
    let other = |entry: &Entry| matches!(entry.record, Record::Begun { day, .. } if day != today);
    if !entries.unwrap_or_default().iter().any(other) {
        return Ok(());
    }
    let name = journal.display();
    Err(Failed::usage(format_args!(
        "{name} is of another trading day: see `steadfast orders unresolved --journal {name}`, then remove it or name \
         another with --journal"
    )))
}

/// The trading day that a run begins on.
pub(super) fn today() -> Epoch {
    Settings::default().today()
}

/// Those of an earlier run that nobody knows the end of.
pub(super) fn unknown(recovered: &[RecoveredOrder]) -> impl Iterator<Item = &RecoveredOrder> {
    recovered.iter().filter(|order| matches!(order.verdict, Verdict::Pending | Verdict::Unresolved(_)))
}

/// An error and what is behind it, in one line.
pub(crate) fn with_source(error: &(dyn std::error::Error + 'static)) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
