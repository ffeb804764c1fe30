use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use steadfast::{
    OrderRequest, Outcome,
    dedup::{
        RecoveredOrder, Resolution, Settings, TradingDay, Verdict,
        journal::{Entry, FileJournal, Record},
    },
};

use super::row::{Row, Rows};
use crate::{
    exit::{Failed, print_note},
    journal::{read, without_refused},
    placement::Placement,
    row_name,
};

/// Prints what a run continues from, before anything is sent.
pub(super) fn announce(journal: &Path) -> Result<(), Failed> {
    let is_new = begun_in(Some(journal)).is_empty();
    let (new, what) = match (holds_rows(journal)?, is_new) {
        (true, _) => ("", "rows that are placed or in doubt are not sent again; refused rows are"),
        (false, true) => ("new ", "every row is sent"),
        (false, false) => ("", "none of its rows is placed or in doubt, and every row is sent"),
    };
    print_note(format_args!("{new}journal {}: {what}", journal.display()));
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
pub(super) fn row_of(entry: &Entry) -> Option<(u64, &OrderRequest)> {
    let Record::Begun { name: Some(name), order, .. } = &entry.record else { return None };
    let line = row_name::line_of(name.as_str())?;
    Some((line, order))
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
    names.extend(seconds.map(|name| name.as_str().to_owned()).filter(|name| row_name::is_second(name)));
    names
}

/// Returns the rows whose second order was sent by an earlier run and may be placed. After "the first one is not
/// there", the user would otherwise place a third.
pub(super) fn seconds(names: &BTreeSet<String>) -> BTreeSet<u64> {
    names.iter().filter(|name| row_name::is_second(name)).filter_map(|name| row_name::line_of(name)).collect()
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
    names_begun(&entries).map(str::to_owned).collect()
}

pub(super) fn names_begun(entries: &[Entry]) -> impl Iterator<Item = &str> {
    entries.iter().filter_map(|entry| match &entry.record {
        Record::Begun { name: Some(name), .. } => Some(name.as_str()),
        _ => None,
    })
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
    /// It was refused for good, by this run or an earlier one.
    Refused,
}

/// How the named orders of a journal ended, and what is known of those that have no end.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) by_name: BTreeMap<String, End>,
    pub(super) verdicts: BTreeMap<String, Verdict>,
}

impl Ends {
    /// Reads them. `None` if the journal cannot be read, or is not the one that was written.
    pub(super) fn read(journal: &Path) -> Option<Self> {
        Some(Self { by_name: ends_in(journal)?, verdicts: open_in(journal)? })
    }
}

/// Returns what became of a row that an earlier run has sent: of its second order, if there was one. `before` has the names
/// of the orders that may be placed; without `ends` nothing is known of them.
pub(super) fn told_of<'a>(
    line: u64,
    before: &BTreeSet<String>,
    ends: impl FnOnce() -> Option<&'a Ends>,
) -> Option<Placement> {
    let names = [row_name::of_second(line), row_name::of_first(line)];
    let mut sent = names.into_iter().filter(|name| before.contains(name)).peekable();
    sent.peek()?;
    let Some(known) = ends() else { return Some(Placement::unresolved("interrupted", None)) };
    sent.find_map(|name| match known.by_name.get(&name)? {
        End::Placed(order_id) => {
            let resolution = Some(Resolution::Attached { order_id: order_id.clone() });
            Some(Placement::Placed { order_id: order_id.clone(), msg: String::new(), resolution })
        }
        End::Open => Some(match known.verdicts.get(&name) {
            Some(Verdict::Unresolved(unresolved)) => Placement::in_doubt(unresolved, None),
            _ => Placement::unresolved("interrupted", None),
        }),
        End::NotPlaced | End::Refused => None,
    })
}

/// Returns how the named orders of a journal ended. An order that is missing was never sent.
/// `None` if the journal cannot be read, or is not the one that was written.
pub(super) fn ends_in(journal: &Path) -> Option<BTreeMap<String, End>> {
    FileJournal::check(journal).ok()?;
    let entries = FileJournal::read(journal).ok()??;
    let mut ends: BTreeMap<String, End> =
        names_begun(&entries).map(|name| (name.to_owned(), End::Refused)).collect();
    let entries = without_refused(entries);
    let open = steadfast::dedup::unresolved(&entries);
    let open: BTreeSet<&str> = open.iter().filter_map(|order| Some(order.name.as_ref()?.as_str())).collect();
    let mut names = BTreeMap::new();
    for entry in &entries {
        let (intent, order_id) = match &entry.record {
            Record::Begun { attempt, name: Some(name), .. } => {
                names.insert(attempt.intent, name.as_str());
                let end = if open.contains(name.as_str()) { End::Open } else { End::NotPlaced };
                let known = ends.entry(name.as_str().to_owned()).or_insert(End::Refused);
                if *known == End::Refused {
                    *known = end;
                }
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
    use steadfast::dedup::{Answer, journal::Journal};
    use steadfast_call::Resend;

    use super::*;
    use crate::journal::records::{begun, entry, first};

    fn closed(intent: u64, outcome: Outcome) -> Entry {
        entry(Record::Closed { attempt: first(intent), outcome, answer: Answer::Status(200) })
    }

    /// Regression: a row whose call was dropped after its refusal was reported as never sent.
    #[test]
    fn an_order_that_was_refused_for_good_is_not_unsent() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        let journal = FileJournal::open(&path).unwrap();
        for entry in [begun(1, "line-2"), closed(1, Outcome::Rejected), begun(2, "line-3")] {
            journal.append(entry);
        }
        drop(journal);
        let ends = ends_in(&path).unwrap();
        assert_eq!(ends.get("line-2"), Some(&End::Refused));
        assert_eq!((ends.get("line-3"), ends.get("line-4")), (Some(&End::Open), None));
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
