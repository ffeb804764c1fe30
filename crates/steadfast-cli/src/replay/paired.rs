//! Notes that link a journal to its orders' file and a file to its journals.
//!
//! A journal knows rows by their lines. Without the notes, another file with equal rows would count as placed, and the
//! same file under another journal would be placed again.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use steadfast::{
    dedup::{
        TradingDay,
        journal::{FileJournal, JournalError},
    },
    limit::Account,
};
use steadfast_call::file::replace_own;

use super::{known, newest::to_go_on_with, out::is_same, place, row::Rows};
use crate::{
    exit::Failed,
    journal::{FILE, beside, with_advice, without_refused},
};

/// The ending of the note beside an orders' file; it names journals of the file that stand elsewhere.
pub(super) const JOURNALS: &str = ".journals";

/// The name in notes for orders from a pipe or standard input.
const STREAM: &str = "-";

/// Returns the orders' file as notes name it: its real path, with links resolved.
fn itself(file: &Path) -> String {
    let place = fs::canonicalize(file).ok().filter(|place| place.is_file());
    place.map_or_else(|| STREAM.to_owned(), |place| place.to_string_lossy().into_owned())
}

fn told(noted: &str) -> &str {
    if noted == STREAM { "standard input or a pipe" } else { noted }
}

/// Refuses a journal with orders of another file.
///
/// `is_named`: the command line names the journal, so it may continue with a renamed file. The returned text says so.
pub(super) fn refuse_other_file(
    journal: &Path,
    file: &Path,
    is_named: bool,
) -> Result<Option<String>, Failed> {
    let noted = read(&beside(journal, FILE)).map_err(Failed::usage)?;
    let this = itself(file);
    // It may be another name of the same file.
    let is_other = |other: &String| *other != this && !is_same(Path::new(other), file);
    let Some(other) = noted.into_iter().next().filter(is_other) else { return Ok(None) };
    if !known::holds_rows(journal)? {
        return Ok(None);
    }
    let is_gone = other != STREAM && matches!(Path::new(&other).try_exists(), Ok(false));
    let (journal, file, other) = (journal.display(), file.display(), told(&other));
    if is_gone && is_named {
        return Ok(Some(format!("journal {journal} is of {other}, which is gone: {file} is taken for it")));
    }
    // The safe way comes first: a moved file is the usual cause.
    let renamed = if is_gone {
        format!("if that was renamed or moved to {file}, go on with it by --journal {journal}; otherwise ")
    } else {
        String::new()
    };
    Err(Failed::usage(format_args!(
        "journal {journal} holds what was sent of {other}, and not of {file}: nothing was sent; {renamed}name another \
         journal, and every row of {file} is sent, also one that was placed before"
    )))
}

/// Refuses to begin a new journal where a note shows that there was one: all of its rows would be sent again.
pub(super) fn refuse_missing(journal: &Path, file: &Path) -> Result<(), Failed> {
    if !matches!(journal.try_exists(), Ok(false)) {
        return Ok(());
    }
    let (by, this) = (beside(journal, FILE), itself(file));
    let trace = match by.try_exists() {
        Ok(false) => {
            let by = beside(Path::new(&this), JOURNALS);
            let named = read(&by).map_err(Failed::usage)?;
            // A file that is gone has no real path, but its folder has one.
            let folder = journal.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
            let place =
                fs::canonicalize(folder).ok().zip(journal.file_name()).map(|(at, name)| at.join(name));
            named.iter().any(|named| Some(Path::new(named)) == place.as_deref()).then_some(by)
        }
        _ => Some(by),
    };
    let Some(trace) = trace else { return Ok(()) };
    let (journal, trace) = (journal.display(), trace.display());
    Err(Failed::usage(format_args!(
        "journal {journal} is gone, and {trace} shows that there was one: nothing was sent; put it back as it was, or compare \
         the service's order list with the rows and remove {trace} to send every row again"
    )))
}

/// Refuses a file that another journal covers today: under this journal, all of it would be sent again.
pub(super) fn refuse_other_journal(
    journal: &Path,
    file: &Path,
    rows: Rows,
    today: TradingDay,
    accounts: &[Account],
) -> Result<(), Failed> {
    let this = itself(file);
    if this == STREAM {
        return Ok(());
    }
    let noted = read(&beside(Path::new(&this), JOURNALS)).map_err(Failed::usage)?;
    let default = beside(Path::new(&this), place::JOURNAL);
    let others = noted.into_iter().map(PathBuf::from).chain([default]);
    let rows = known::by_line(rows);
    let mut of_rows = Vec::new();
    for other in others.filter(|other| !is_same(other, journal)) {
        let is_of = read(&beside(&other, FILE)).map_err(Failed::usage)?;
        if is_of.first().is_some_and(|is_of| *is_of != this) {
            continue;
        }
        let entries = match FileJournal::read(&other) {
            Ok(entries) => without_refused(entries.unwrap_or_default()),
            // A file with that name is not a journal.
            Err(JournalError::NotAJournal { .. }) => continue,
            Err(error) => return Err(Failed::usage(with_advice(&error))),
        };
        let of_account = entries.iter().filter(|entry| accounts.contains(&entry.account));
        if known::tells_of(of_account, &rows, today) {
            of_rows.push((other, entries));
        }
    }
    if of_rows.is_empty() {
        return Ok(());
    }
    let ((other, how), file, journal) = (to_go_on_with(&of_rows), file.display(), journal.display());
    Err(Failed::usage(format_args!(
        "journal {other} tells what was sent of {file} today, and the journal of this run is {journal}: nothing was sent; \
         {how}, or send all of it once more by --journal {journal}"
    )))
}

/// Writes both notes before anything is sent: which file the journal belongs to, and where the file's journal is.
///
/// # Errors
///
/// Only for the note beside the journal. The note beside the orders' file merely helps users who forget which journal
/// they named.
pub(super) fn note(journal: &Path, file: &Path) -> Result<Option<String>, Failed> {
    let (this, by) = (itself(file), beside(journal, FILE));
    write(&by, std::slice::from_ref(&this)).map_err(|error| {
        Failed::usage(format_args!("{} cannot be written: {error}; nothing was sent", by.display()))
    })?;
    let journal = fs::canonicalize(journal).unwrap_or_else(|_| journal.to_owned());
    if this == STREAM || journal == beside(Path::new(&this), place::JOURNAL) {
        return Ok(None);
    }
    let (name, by) = (journal.to_string_lossy().into_owned(), beside(Path::new(&this), JOURNALS));
    let mut noted = read(&by).unwrap_or_default();
    if noted.contains(&name) {
        return Ok(None);
    }
    noted.retain(|noted| Path::new(noted).exists());
    noted.push(name);
    Ok(write(&by, &noted).err().map(|error| {
        format!(
            "{} cannot be written: {error}; a run without --journal {} would not know of this one",
            by.display(),
            journal.display()
        )
    }))
}

/// Returns the paths in a note, one JSON string a line; none if there is no note.
fn read(note: &Path) -> Result<Vec<String>, String> {
    let text = match fs::read_to_string(note) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.map_err(|error| format!("{}: {error}; nothing was sent", note.display()))?,
    };
    let paths: Result<_, _> = text.lines().map(serde_json::from_str).collect();
    paths.map_err(|_| {
        format!("{} is no note of this command: nothing was sent; move it elsewhere", note.display())
    })
}

/// Writes a note atomically.
fn write(note: &Path, paths: &[String]) -> io::Result<()> {
    let mut text = String::new();
    for path in paths {
        text += &serde_json::to_string(path)?;
        text.push('\n');
    }
    if fs::read_to_string(note).is_ok_and(|kept| kept == text) {
        return Ok(());
    }
    let part = beside(note, &format!(".{}.part", std::process::id()));
    replace_own(note, &part, text.as_bytes())
}
