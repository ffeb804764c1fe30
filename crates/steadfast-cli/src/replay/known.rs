use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use steadfast::{
    OrderRequest, Outcome,
    dedup::{
        RecoveredOrder, Settings, TradingDay, Verdict,
        journal::{Entry, FileJournal, Record},
    },
};

use super::row::{Row, Rows};
use crate::{
    exit::{Failed, print_note},
    journal::{beside, read, with_advice, without_refused},
};

/// How many orders a journal remembers by name. With more, the oldest would be placed a second time.
const NAMES: usize = 100_000;

/// The ending of a journal's name, if no other journal is named.
pub(super) const JOURNAL: &str = ".journal";

/// Returns the journal of an orders' file. It stands beside the file itself, also if the given path is a link, or if
/// the journal was begun under another name of the file in the same folder.
pub(super) fn journal_of(file: &Path) -> Result<PathBuf, Failed> {
    let named = beside(file, JOURNAL);
    if let [journal, more @ ..] = &*journals_of_other_names(file) {
        if named.exists() || !more.is_empty() {
            return Err(Failed::usage(format_args!(
                "{} and {} are journals of one file with several names: nothing was sent; say by --journal which of them \
                 tells what was sent",
                more.first().unwrap_or(&named).display(),
                journal.display()
            )));
        }
        return Ok(journal.clone());
    }
    let is_link = fs::symlink_metadata(file).is_ok_and(|named| named.is_symlink());
    // A pipe or the like has no place of its own.
    let itself = fs::canonicalize(file).ok().filter(|itself| is_link && itself.is_file());
    let Some(journal) = itself.map(|itself| beside(&itself, JOURNAL)) else { return Ok(named) };
    if named.exists() && fs::canonicalize(&named).ok() != fs::canonicalize(&journal).ok() {
        return Err(Failed::usage(format_args!(
            "{} stands beside a link, and the journal is {}: nothing was sent; say by --journal which of them tells what \
             was sent",
            named.display(),
            journal.display()
        )));
    }
    Ok(journal)
}

/// Returns the journals in the folder that were begun under another name of this file (a hard link).
fn journals_of_other_names(file: &Path) -> Vec<PathBuf> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let of = |path: &Path| fs::metadata(path).ok().filter(|found| found.is_file());
        let Some(own) = of(file).filter(|own| own.nlink() > 1) else { return Vec::new() };
        let is_own = |name: &Path| of(name).is_some_and(|it| (it.dev(), it.ino()) == (own.dev(), own.ino()));
        let named = beside(file, JOURNAL);
        let journals =
            fs::read_dir(folder_of(file)).into_iter().flatten().flatten().map(|found| found.path());
        journals
            .filter(|journal| journal.extension().is_some_and(|ending| ending == "journal"))
            .filter(|journal| is_own(&journal.with_extension("")) && journal.file_name() != named.file_name())
            .collect()
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        Vec::new()
    }
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Prints what a run continues from, before anything is sent.
pub(super) fn announce(journal: &Path) -> Result<(), Failed> {
    let (new, what) = match holds_rows(journal)? {
        true => ("", "what it holds is not sent again"),
        false => ("new ", "every order is sent"),
    };
    print_note(format_args!("{new}journal {}: {what}", journal.display()));
    Ok(())
}

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
    for other in of_none {
        // An unreadable journal may be of anything.
        let entries = without_refused(FileJournal::read(&other).ok().flatten().unwrap_or_default());
        if tells_of(&entries, &rows, today) {
            let other = other.display();
            return Err(Failed::usage(format_args!(
                "{other} tells of the same rows, and its file is gone: was that renamed? nothing was sent; go on with it by \
                 --journal {other}, or begin a new one by --journal {}",
                journal.display()
            )));
        }
    }
    Ok(())
}

/// Returns the rows that are orders, by line.
pub(super) fn by_line(rows: Rows) -> BTreeMap<u64, Row> {
    rows.flatten().map(|row| (row.line, row)).collect()
}

/// Returns true if one of the rows was sent today.
pub(super) fn tells_of<'a>(
    entries: impl IntoIterator<Item = &'a Entry>,
    rows: &BTreeMap<u64, Row>,
    today: TradingDay,
) -> bool {
    let is_of_row =
        |(line, order): (u64, &OrderRequest)| rows.get(&line).is_some_and(|row| row.order == *order);
    let of_today = |entry: &&Entry| matches!(entry.record, Record::Begun { day, .. } if day == today);
    entries.into_iter().filter(of_today).filter_map(row_of).any(is_of_row)
}

/// Returns true if the journal shows that a row of a file was sent.
pub(super) fn holds_rows(journal: &Path) -> Result<bool, Failed> {
    Ok(read(journal)?.iter().filter_map(row_of).next().is_some())
}

/// Returns the line and the order of a row that was sent.
fn row_of(entry: &Entry) -> Option<(u64, &OrderRequest)> {
    let Record::Begun { name: Some(name), order, .. } = &entry.record else { return None };
    let line = name.as_str().strip_prefix("line-")?.trim_end_matches("-again").parse().ok()?;
    Some((line, order))
}

/// Refuses a journal that is not the one written last, or not complete. Opening it would refuse it too, but only after
/// the user was asked.
pub(super) fn refuse_unwhole(journal: &Path) -> Result<(), Failed> {
    FileJournal::check(journal).map_err(|error| Failed::usage(with_advice(&error)))
}

/// Refuses a journal whose lock is gone: only the lock shows whether the journal is whole and the latest.
pub(super) fn refuse_without_lock(journal: &Path) -> Result<(), Failed> {
    let lock = beside(journal, ".lock");
    if !matches!(lock.try_exists(), Ok(false)) || !holds_rows(journal)? {
        return Ok(());
    }
    let (journal, lock) = (journal.display(), lock.display());
    Err(Failed::usage(format_args!(
        "{lock} is gone, so that journal {journal} may be cut or an older copy: nothing was sent; compare the service's order \
         list with the rows, and to go on with the journal as it is: install -m 600 /dev/null {lock}"
    )))
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
        "{name} is of another trading day: nothing was sent; see `steadfast orders unresolved --journal {name}`, then move \
         {name}, {name}.lock and {name}.file elsewhere, all of them, with {name}.events if there is one, or name another with \
         --journal"
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

/// Returns the name of the order that is placed for a row whose first one was not found.
pub(super) fn name_of_second(line: u64) -> String {
    format!("line-{line}-again")
}

/// Returns the names of the orders that earlier runs have sent and that may be placed.
pub(super) fn sent_before(journal: Option<&Path>) -> Result<BTreeSet<String>, Failed> {
    Ok(sent(&journal.map(read).transpose()?.unwrap_or_default()))
}

fn sent(entries: &[Entry]) -> BTreeSet<String> {
    let mut sends = BTreeMap::new();
    for entry in entries {
        match &entry.record {
            Record::Begun { name: Some(name), attempt, .. } => {
                sends.insert(*attempt, name.as_str().to_owned());
            }
            Record::Closed { attempt, outcome, .. } if !may_be_placed(outcome) => drop(sends.remove(attempt)),
            _ => {}
        }
    }
    let mut names: BTreeSet<String> = sends.into_values().collect();
    // A second order that was refused (401, 429) may be placed until a list has confirmed the refusal.
    let open = steadfast::dedup::unresolved(entries);
    let seconds = open.iter().filter_map(|order| order.name.as_ref());
    names.extend(seconds.map(|name| name.as_str().to_owned()).filter(|name| name.ends_with("-again")));
    names
}

/// Returns the rows whose second order was sent by an earlier run and may be placed. After "the first one is not
/// there", the user would otherwise place a third.
pub(super) fn seconds(names: &BTreeSet<String>) -> BTreeSet<u64> {
    let line = |name: &String| name.strip_prefix("line-")?.strip_suffix("-again")?.parse().ok();
    names.iter().filter_map(line).collect()
}

/// Returns the orders without an end in a journal, by name. `None` if it cannot be read.
pub(super) fn open_in(journal: &Path) -> Option<BTreeMap<String, Verdict>> {
    let entries = FileJournal::read(journal).ok()??;
    let orders = steadfast::dedup::unresolved(&entries);
    let named =
        |order: &RecoveredOrder| Some((order.name.as_ref()?.as_str().to_owned(), order.verdict.clone()));
    Some(unknown(&orders).filter_map(named).collect())
}

/// Returns the names of the orders that the journal holds a send of, whatever became of it; none if it cannot be read.
pub(super) fn begun_in(journal: Option<&Path>) -> BTreeSet<String> {
    let entries = journal.and_then(|journal| FileJournal::read(journal).ok().flatten()).unwrap_or_default();
    let names = entries.iter().filter_map(|entry| match &entry.record {
        Record::Begun { name: Some(name), .. } => Some(name.as_str().to_owned()),
        _ => None,
    });
    names.collect()
}

/// Returns the order of a name, if it has no end in the journal.
pub(super) fn in_doubt(journal: &Path, name: &str) -> Option<RecoveredOrder> {
    let entries = FileJournal::read(journal).ok()??;
    let mut orders = steadfast::dedup::unresolved(&entries).into_iter();
    orders.find(|order| order.name.as_ref().is_some_and(|its| its.as_str() == name))
}

/// How an order ended, by the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It has no end.
    Open,
    Placed(String),
    /// Every send of it came to nothing.
    NotPlaced,
}

/// Returns how the named orders of a journal ended. An order that is missing was never sent, or refused for good.
/// `None` if the journal cannot be read, or is not the one that was written.
pub(super) fn ends_in(journal: &Path) -> Option<BTreeMap<String, End>> {
    FileJournal::check(journal).ok()?;
    let entries = without_refused(FileJournal::read(journal).ok()??);
    let open = steadfast::dedup::unresolved(&entries);
    let open: BTreeSet<&str> = open.iter().filter_map(|order| Some(order.name.as_ref()?.as_str())).collect();
    let (mut names, mut ends) = (BTreeMap::new(), BTreeMap::new());
    for entry in &entries {
        let (intent, order_id) = match &entry.record {
            Record::Begun { attempt, name: Some(name), .. } => {
                names.insert(attempt.intent, name.as_str());
                let end = if open.contains(name.as_str()) { End::Open } else { End::NotPlaced };
                ends.entry(name.as_str().to_owned()).or_insert(end);
                continue;
            }
            Record::Closed { attempt, outcome: Outcome::Accepted { order_id: Some(order_id) }, .. } => {
                (attempt.intent, order_id.to_string())
            }
            Record::Found { intent, order_id, .. } | Record::Ruled { intent, order_id: Some(order_id) } => {
                (*intent, order_id.clone())
            }
            _ => continue,
        };
        if let Some(name) = names.get(&intent).filter(|name| !open.contains(**name)) {
            ends.insert((*name).to_owned(), End::Placed(order_id));
        }
    }
    Some(ends)
}

fn may_be_placed(outcome: &Outcome) -> bool {
    outcome.is_unknown() || matches!(outcome, Outcome::Accepted { .. })
}

/// Returns the trading day on which a run begins.
pub(super) fn today() -> TradingDay {
    Settings::default().today()
}

/// Returns the orders of an earlier run whose end is not known.
pub(super) fn unknown(recovered: &[RecoveredOrder]) -> impl Iterator<Item = &RecoveredOrder> {
    recovered.iter().filter(|order| matches!(order.verdict, Verdict::Pending | Verdict::Unresolved(_)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use steadfast::{
        dedup::{Answer, AttemptNo, IntentNo, Session},
        ext::IntentId,
    };
    use steadfast_call::Resend;

    use super::*;

    fn entry(record: Record) -> Entry {
        Entry { account: steadfast::ext::Account::default(), record }
    }

    fn begun(intent: u64, name: &str) -> Entry {
        let order = OrderRequest::from_fields([
            ("symId", "EQT_INFY_EQ_NSE"),
            ("qty", "1"),
            ("side", "buy"),
            ("type", "market"),
            ("product", "intraday"),
            ("validity", "day"),
        ]);
        entry(Record::Begun {
            attempt: AttemptNo { intent: IntentNo(intent), index: 0 },
            session: Session::default(),
            day: TradingDay(0),
            name: Some(IntentId::new(name)),
            order: Arc::new(order.unwrap()),
        })
    }

    fn closed(intent: u64, outcome: Outcome) -> Entry {
        let attempt = AttemptNo { intent: IntentNo(intent), index: 0 };
        entry(Record::Closed { attempt, outcome, answer: Answer::Status(200) })
    }

    #[test]
    fn a_row_that_an_earlier_run_sent_again_is_followed_unless_that_came_to_nothing() {
        let entries = [
            begun(1, "line-2"),
            begun(2, "line-2-again"),
            closed(2, Outcome::Accepted { order_id: Some("7".into()) }),
            begun(3, "line-3-again"),
            begun(4, "line-4-again"),
            closed(4, Outcome::Unknown { resend: Resend::Never }),
            begun(5, "line-5-again"),
            closed(5, Outcome::Rejected),
            begun(6, "line-6-again"),
            closed(6, Outcome::NotSent),
            begun(7, "line-7"),
        ];
        let names = sent(&entries);
        assert_eq!(seconds(&names), BTreeSet::from([2, 3, 4]));
        assert!(names.contains("line-2") && names.contains("line-7") && !names.contains("line-5-again"));
    }
}
