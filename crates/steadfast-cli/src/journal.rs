//! Journals of orders, as this command reads them, and the texts about them.

#[cfg(test)]
pub(crate) mod records;
mod sidecar_note;
pub(crate) mod user;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    path::{Path, PathBuf},
};

use steadfast::{
    Outcome,
    call::{causes, one_line},
    dedup::journal::{Entry, FileJournal, JournalError, Record},
    limit::Account,
};

pub(crate) use self::sidecar_note::{Facts, Note, admin_of, path_of, read_own};
use crate::{events::Kept, exit::Failed};

/// The account of a rehearsal is this and the address of its sandbox. No address of a service begins with it.
pub(crate) const REHEARSAL: &str = "rehearsal ";

/// The ending of the note beside a journal of `replay`; it names the orders' file.
pub(crate) const FILE: &str = ".file";

/// Appends `ending` to the name of `file`.
pub(crate) fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(file);
    name.push(ending);
    name.into()
}

/// Returns the folder of a file.
pub(crate) fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the entries of a journal, without the orders that were refused for good; none if there is no journal.
pub(crate) fn read(journal: &Path) -> Result<Vec<Entry>, Failed> {
    let entries = FileJournal::read(journal).map_err(|error| Failed::usage(with_advice(&error)))?;
    Ok(without_refused(entries.unwrap_or_default()))
}

/// Leaves out the orders that were refused for good and that no list has shown: their rows may be changed or removed,
/// and are sent again.
pub(crate) fn without_refused(entries: Vec<Entry>) -> Vec<Entry> {
    let mut standing: BTreeMap<_, BTreeSet<usize>> = BTreeMap::new();
    let mut told = BTreeSet::new();
    for entry in &entries {
        match &entry.record {
            Record::Begun { attempt, .. } => {
                standing.entry((entry.account.clone(), attempt.intent)).or_default().insert(attempt.index);
            }
            Record::Closed { attempt, outcome: Outcome::Rejected, .. } => {
                if let Some(sends) = standing.get_mut(&(entry.account.clone(), attempt.intent)) {
                    sends.remove(&attempt.index);
                }
            }
            Record::Found { intent, .. }
            | Record::Unresolved { intent, .. }
            | Record::Ruled { intent, order_id: Some(_) } => {
                told.insert((entry.account.clone(), *intent));
            }
            _ => {}
        }
    }
    standing.retain(|order, sends| sends.is_empty() && !told.contains(order));
    let intent_of = |record: &Record| match record {
        Record::Begun { attempt, .. } | Record::Closed { attempt, .. } => Some(attempt.intent),
        _ => None,
    };
    let is_refused = |entry: &Entry| {
        let order = intent_of(&entry.record).map(|intent| (entry.account.clone(), intent));
        order.is_some_and(|order| standing.contains_key(&order))
    };
    entries.into_iter().filter(|entry| !is_refused(entry)).collect()
}

/// Refuses a journal whose lock is gone: only the lock shows whether the journal is whole and the latest.
pub(crate) fn refuse_without_lock(journal: &Path) -> Result<(), Failed> {
    let lock = beside(journal, ".lock");
    let is_order = |entry: &Entry| matches!(entry.record, Record::Begun { .. });
    if !matches!(lock.try_exists(), Ok(false)) || !read(journal)?.iter().any(is_order) {
        return Ok(());
    }
    let (journal, lock) = (journal.display(), lock.display());
    Err(Failed::usage(format_args!(
        "{lock} is gone, so that journal {journal} may be cut or an older copy: nothing was sent; compare the service's order \
         list with its orders, and to go on with the journal as it is: install -m 600 /dev/null {lock}"
    )))
}

/// Refuses a journal with orders of another service: they are not placed at this one, and those in doubt cannot be
/// found here.
pub(crate) fn refuse_other_account(journal: &Path, account: &Account) -> Result<(), Failed> {
    let entries = read(journal)?;
    let Some(other) = entries.iter().find(|entry| entry.account.as_str() != account.as_str()) else {
        return Ok(());
    };
    let (name, other) = (journal.display(), &other.account);
    if other.as_str().starts_with(REHEARSAL) {
        return Err(Failed::usage(format_args!(
            "{name} is of a rehearsal's orders, which ended with its sandbox: nothing was sent; name another --journal"
        )));
    }
    if account.as_str().starts_with(REHEARSAL) {
        return Err(Failed::usage(format_args!(
            "{name} is of orders at {other}: nothing was sent; a rehearsal needs a --journal of its own, or none"
        )));
    }
    let other = if other.as_str().is_empty() { "another program" } else { other.as_str() };
    Err(Failed::usage(format_args!(
        "{name} is of orders at {other}, not at {}: nothing was sent; go on with that address; with \
         another --journal every row is sent to this one",
        account.as_str()
    )))
}

/// Describes what is wrong with a journal, and what is safe to do about it.
pub(crate) fn with_advice(error: &JournalError) -> String {
    let told = with_source(error);
    let advice = match error {
        JournalError::InUse { path } => return format!("{}; nothing was sent", in_use(path)),
        JournalError::NotAJournal { .. } => {
            "nothing was sent and the file is left as it is; name another file with --journal"
        }
        JournalError::Damaged { .. }
        | JournalError::Unknown { .. }
        | JournalError::Version { .. }
        | JournalError::Outdated { .. } => {
            "nothing was sent and the file is left as it is; keep it, and compare the service's order list with the rows \
             before any of them is placed under another journal"
        }
        JournalError::Lost { .. } => {
            "nothing was sent; put it back as it was; if it was moved away to begin a new one, move its lock and notes to it"
        }
        _ => "nothing was sent",
    };
    format!("{told}: {advice}")
}

/// Says who has the journal, and what to do instead.
pub(crate) fn in_use(journal: &Path) -> String {
    let instead = match admin_of(journal) {
        Some(admin) => format!(
            "the sidecar at {admin} has it, and looks for its orders by itself: {admin}/-/state and the dashboard tell what it \
             knows, and `steadfast orders rule` passes a ruling to it; for anything else end it first"
        ),
        None => "wait until the run that uses it has ended".to_owned(),
    };
    format!("journal {} is in use: {instead}", journal.display())
}

/// Returns an error with its causes, in one line.
pub(crate) fn with_source(error: &(dyn std::error::Error + 'static)) -> String {
    one_line(causes(error))
}

/// Explains how to clear events.
pub(crate) fn clearing(journal: &Path) -> String {
    format!(
        "look at each event's order in the service's order list, then `steadfast orders events --clear --journal {}`; until \
         then the events stand in {}, and each run ends with exit code 6",
        journal.display(),
        Kept::beside(journal).path().display()
    )
}

/// Explains how to rule on orders in doubt.
pub(crate) fn way_out(journal: &Path) -> String {
    format!(
        "where looking does not settle it, find the order in the service's order list and say what became of it: `steadfast \
         orders rule --journal {} NAME` with --placed ORDER-ID or --not-placed",
        journal.display()
    )
}
