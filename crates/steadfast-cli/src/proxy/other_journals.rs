//! The journals beside one that is begun.

use std::{
    fs,
    path::{Path, PathBuf},
};

use steadfast::{
    BaseUrl,
    dedup::{
        TradingDay,
        journal::{Entry, FileJournal, Record},
    },
};

use crate::journal::{FILE, REHEARSAL, beside};

/// Returns a warning for each journal in these folders that tells of orders of today, if `journal` is new.
///
/// A journal without `--journal` has its place by the store, or by address, API key and user. After a change of one of these,
/// nothing is known of the orders before.
pub(super) fn warnings(
    journal: &Path,
    base: &BaseUrl,
    folders: [&Path; 2],
    today: TradingDay,
) -> Vec<String> {
    if !matches!(journal.try_exists(), Ok(false)) {
        return Vec::new();
    }
    let mut folders: Vec<PathBuf> =
        folders.into_iter().filter_map(|folder| fs::canonicalize(folder).ok()).collect();
    folders.sort();
    folders.dedup();
    let found = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let mut others: Vec<PathBuf> =
        found.map(|found| found.path()).filter(|path| is_of_sidecar(path)).collect();
    others.sort();
    others.iter().filter_map(|other| warning(journal, other, base, today)).collect()
}

/// Returns true for a journal that is not of `replay`.
fn is_of_sidecar(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "journal") && !beside(path, FILE).exists()
}

fn warning(journal: &Path, other: &Path, base: &BaseUrl, today: TradingDay) -> Option<String> {
    // One that cannot be read may be of anything.
    let entries = FileJournal::read(other).ok()??;
    let is_of_today = |entry: &&Entry| matches!(entry.record, Record::Begun { day, .. } if day == today);
    let account = entries.iter().find(is_of_today)?.account.as_str();
    if account.starts_with(REHEARSAL) {
        return None;
    }
    let (journal, other) = (journal.display(), other.display());
    let there =
        if account == base.to_string() { String::new() } else { format!(" and the address {account}") };
    Some(format!(
        "steadfast: WARNING: journal {journal} is new, and {other} tells of orders of today: their names do not count here, and \
         what is in doubt there is not looked for; to go on with it, end this sidecar and start it with --journal {other}{there}"
    ))
}

#[cfg(test)]
mod tests {
    use steadfast::{dedup::journal::Journal, ext::Account};

    use super::*;
    use crate::journal::records::begun;

    const BASE: &str = "https://api.example/v2";

    #[test]
    fn a_new_journal_is_warned_of_where_another_one_is_of_today() {
        let folder = tempfile::tempdir().unwrap();
        let (folder, own) = (folder.path(), folder.path().join("own.journal"));
        let base = BASE.parse().unwrap();
        let warnings_on = |day| warnings(&own, &base, [folder, &folder.join(".")], TradingDay(day));
        let write = |name: &str, account: &str| {
            let journal = FileJournal::open(folder.join(name)).unwrap();
            journal.append(Entry { account: Account::new(account), ..begun(1, "a") });
        };
        fs::write(folder.join("none.journal"), "no journal").unwrap();
        write("rehearsed.journal", &format!("{REHEARSAL}{BASE}"));
        write("orders.csv.journal", BASE);
        fs::write(folder.join("orders.csv.journal.file"), "").unwrap();
        assert_eq!(warnings_on(0), Vec::<String>::new());

        write("same.journal", &base.to_string());
        write("other.journal", "https://other.example/v2");
        let [other, same] = &*warnings_on(0) else { panic!("{:?}", warnings_on(0)) };
        let told =
            |warning: &str, ending: &str| warning.contains("own.journal is new") && warning.ends_with(ending);
        assert!(told(other, "other.journal and the address https://other.example/v2"), "{other}");
        assert!(told(same, "same.journal"), "{same}");
        assert_eq!(warnings_on(1), Vec::<String>::new(), "their orders are of the day before");

        write("own.journal", BASE);
        assert_eq!(warnings_on(0), Vec::<String>::new(), "it is not new");
    }
}
