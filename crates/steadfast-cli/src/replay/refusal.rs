//! Journals that do not belong to these rows today.

use std::{fs, path::Path};

use steadfast::dedup::{
    TradingDay,
    journal::{Entry, FileJournal, Record},
};

use super::{
    known::{by_line, row_of, tells_of},
    newest::to_go_on_with,
    row::Rows,
};
use crate::{
    exit::Failed,
    journal::{folder_of, read, with_advice, without_refused},
};

/// How many orders a journal remembers by name. With more, the oldest would be placed a second time.
const NAMES: usize = 100_000;

/// Refuses a file whose rows were sent today by another journal of the folder, if that journal's file is gone: it was
/// renamed, and everything would be sent again.
pub(super) fn refuse_other_name(journal: &Path, rows: Rows, today: TradingDay) -> Result<(), Failed> {
    if journal.exists() {
        return Ok(());
    }
    let Ok(others) = fs::read_dir(folder_of(journal)) else { return Ok(()) };
    let others = others.flatten().map(|other| other.path());
    let of_none = others.filter(|other| {
        other.extension().is_some_and(|ending| ending == "journal") && !other.with_extension("").exists()
    });
    let rows = by_line(rows);
    // An unreadable journal may be of anything.
    let entries = |other: &Path| without_refused(FileJournal::read(other).ok().flatten().unwrap_or_default());
    let of_rows: Vec<_> = of_none
        .map(|other| (entries(&other), other))
        .filter(|(entries, _)| tells_of(entries, &rows, today))
        .map(|(entries, other)| (other, entries))
        .collect();
    if of_rows.is_empty() {
        return Ok(());
    }
    let (other, how) = to_go_on_with(&of_rows);
    Err(Failed::usage(format_args!(
        "{other} tells of the same rows, and its file is gone: was that renamed? nothing was sent; {how}, or begin a new one by \
         --journal {}",
        journal.display()
    )))
}

/// Refuses a journal that is not the one written last, or not complete. Opening it would refuse it too, but only after
/// the user was asked.
pub(super) fn refuse_unwhole(journal: &Path) -> Result<(), Failed> {
    FileJournal::check(journal).map_err(|error| Failed::usage(with_advice(&error)))
}

/// Refuses a journal of another day's run, because a person has to decide what the rows mean now.
///
/// A name stands for one order within one trading day. On the next day the same rows may be placed already or may be
/// new orders.
pub(super) fn refuse_other_day(journal: &Path, today: TradingDay) -> Result<(), Failed> {
    let other = |entry: &Entry| matches!(entry.record, Record::Begun { day, .. } if day != today);
    if !read(journal)?.iter().any(other) {
        return Ok(());
    }
    let name = journal.display();
    Err(Failed::usage(format_args!(
        "{name} is of another trading day: nothing was sent; settle its orders first (`steadfast orders unresolved --journal \
         {name}`), and put the rows that are still wanted into a file of their own; only if ALL rows are new orders, because all \
         are sent then, also those that were placed: move {name}, {name}.lock and {name}.file elsewhere, all of them, with \
         {name}.events if there is one, or name another with --journal"
    )))
}

/// Refuses a file whose rows are not those that an earlier run has sent.
///
/// A row is known by its line. If a row was inserted or removed, the following rows have other lines, and the last ones
/// would be placed a second time.
pub(super) fn refuse_other_rows(journal: &Path, file: &Path, rows: Rows) -> Result<(), Failed> {
    let entries = read(journal)?;
    let rows = by_line(rows);
    if rows.len() > NAMES {
        return Err(Failed::usage(format_args!(
            "{} has more than {NAMES} orders, and no journal remembers more: nothing was sent; split it",
            file.display()
        )));
    }
    let other = entries
        .iter()
        .filter_map(row_of)
        .filter(|(line, order)| rows.get(line).is_none_or(|row| row.order != **order));
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
