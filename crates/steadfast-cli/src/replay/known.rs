use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

use steadfast::{
    dedup::{
        Epoch, RecoveredOrder, Settings, Verdict,
        journal::{Entry, FileJournal, JournalError, Record},
    },
    limit::Account,
};

use super::row::{Row, Rows};
use crate::exit::Failed;

/// How many orders a journal remembers by name: the oldest of more would be placed a second time.
const NAMES: usize = 100_000;

/// The file that stands beside `file`, with `ending` behind its name.
pub(super) fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(ending);
    name.into()
}

fn read(journal: &Path) -> Result<Vec<Entry>, Failed> {
    Ok(FileJournal::read(journal).map_err(|error| Failed::usage(with_advice(&error)))?.unwrap_or_default())
}

/// Refuses a journal of another day's run: what the rows mean now is for a person to say.
///
/// A name stands for one order within one trading day. On the next, the same rows may be what was placed already, or may
/// be new orders.
pub(super) fn refuse_other_day(journal: &Path, today: Epoch) -> Result<(), Failed> {
    let other = |entry: &Entry| matches!(entry.record, Record::Begun { day, .. } if day != today);
    if !read(journal)?.iter().any(other) {
        return Ok(());
    }
    let name = journal.display();
    Err(Failed::usage(format_args!(
        "{name} is of another trading day: see `steadfast orders unresolved --journal {name}`, then remove it or name \
         another with --journal"
    )))
}

/// Refuses a journal that holds orders of another service: none of them is placed at this one, and none that is in doubt
/// can be found here.
pub(crate) fn refuse_other_account(journal: &Path, account: &Account) -> Result<(), Failed> {
    let entries = read(journal)?;
    let Some(other) = entries.iter().find(|entry| entry.account.as_str() != account.as_str()) else {
        return Ok(());
    };
    let (name, other) = (journal.display(), &other.account);
    let other = if other.as_str().is_empty() { "another program" } else { other.as_str() };
    Err(Failed::usage(format_args!(
        "{name} is of orders at {other}, not at {}: nothing was sent; name another with --journal",
        account.as_str()
    )))
}

/// Refuses a file whose rows are not those that an earlier run has sent.
///
/// A row is known by its line. Where a row was put in or taken out, those behind it stand on other lines, and the last
/// ones would be placed a second time.
pub(super) fn refuse_other_rows(journal: &Path, file: &Path, rows: Rows) -> Result<(), Failed> {
    let entries = read(journal)?;
    let rows: BTreeMap<u64, Row> = rows.flatten().map(|row| (row.line, row)).collect();
    if rows.len() > NAMES {
        return Err(Failed::usage(format_args!(
            "{} has more than {NAMES} orders, and no journal remembers more: nothing was sent; split it",
            file.display()
        )));
    }
    let other = entries.iter().filter_map(|entry| {
        let Record::Begun { name: Some(name), order, .. } = &entry.record else { return None };
        let line = name.as_str().strip_prefix("line-")?.trim_end_matches("-again").parse().ok()?;
        rows.get(&line).is_none_or(|row| row.order != **order).then_some((line, order))
    });
    let Some((line, order)) = other.min_by_key(|(line, _)| *line) else { return Ok(()) };
    let (file, journal) = (file.display(), journal.display());
    Err(Failed::usage(format_args!(
        "line {line} of {file} is not the order that was sent for it, {} {} {}, as {journal} says: nothing was sent; \
         put the rows back as they were and add new ones at the end, or in a file of their own",
        order.side().as_str(),
        order.qty(),
        order.sym_id().as_str()
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

/// What is wrong with a journal, and what is safe to do about it.
pub(crate) fn with_advice(error: &JournalError) -> String {
    let told = with_source(error);
    let advice = match error {
        JournalError::NotAJournal { .. } => {
            "nothing was sent and the file is left as it is; name another file with --journal"
        }
        JournalError::Damaged { .. } | JournalError::Unknown { .. } | JournalError::Version { .. } => {
            "nothing was sent and the file is left as it is; keep it, and compare the service's order list with the rows \
             before any of them is placed under another journal"
        }
        _ => return told,
    };
    format!("{told}: {advice}")
}

/// An error and what is behind it, in one line.
pub(crate) fn with_source(error: &(dyn std::error::Error + 'static)) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
