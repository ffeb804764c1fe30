use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap},
    io::Write,
};

use serde::Serialize;
use steadfast::dedup::Resolution;

use super::{row::BadRow, words::REASONS};
use crate::{
    events::{NOT_KNOWN, Seen},
    placement::{Hindrance, Placement},
    readable::{cell, identifier_cell, readable},
};

/// Writes the result of each row as soon as it is known.
pub(crate) struct Results<W: Write> {
    writer: csv::Writer<W>,
    pub(crate) counts: Counts,
    /// True for a rehearsal. Each row says so, because the file may be read without knowledge of the run.
    is_rehearsal: bool,
    /// The rows of reported orders, for events that contain only an order id.
    lines: HashMap<String, u64>,
    /// The rows reported as not placed.
    not_placed: BTreeMap<u64, NotPlaced>,
    /// The rows reported as placed.
    placed: BTreeMap<u64, ToldPlaced>,
    /// Those of them that the service has contradicted, without a newer result.
    contradicted: BTreeSet<u64>,
    /// Reasons why orders were not looked at.
    pub(crate) hindrances: BTreeSet<Hindrance>,
}

/// How a row was reported as not placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NotPlaced {
    Refused,
    NotExecuted,
    NotSent,
}

/// How a row was reported as placed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ToldPlaced {
    order_id: String,
    /// True if an earlier run has sent its order.
    before: bool,
}

/// The columns of the results.
pub(super) const COLUMNS: [&str; 5] = ["line", "status", "orderId", "resolution", "msg"];

/// The number of rows by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    pub(crate) rows: usize,
    pub(crate) placed: usize,
    /// Placed rows whose orders were sent by an earlier run.
    pub(crate) placed_before: usize,
    pub(crate) refused: usize,
    /// Rows whose requests the service refused without looking at the orders (401, 429).
    pub(crate) not_executed: usize,
    /// Rows that are not orders; nothing was sent for them.
    pub(crate) bad: usize,
    pub(crate) not_observed: usize,
    pub(crate) unresolved: usize,
    /// Rows of which nothing has left.
    pub(crate) not_sent: usize,
}

#[derive(Default)]
struct Record<'a> {
    line: Option<u64>,
    status: &'a str,
    order_id: &'a str,
    resolution: &'a str,
    msg: &'a str,
}

impl<W: Write> Results<W> {
    /// Writes the header at once, so that a file without rows has one too.
    pub(crate) fn new(into: W, is_rehearsal: bool) -> std::io::Result<Self> {
        let mut writer = csv::Writer::from_writer(into);
        writer.write_record(COLUMNS).map_err(std::io::Error::other)?;
        writer.flush()?;
        let counts = Counts::default();
        let (lines, not_placed, placed, contradicted, hindrances) = Default::default();
        Ok(Self { writer, counts, is_rehearsal, lines, not_placed, placed, contradicted, hindrances })
    }

    /// Writes the result of a row that was an order. `was_sent`: an earlier run has sent its order.
    pub(crate) fn ended(&mut self, line: u64, placement: &Placement, was_sent: bool) -> std::io::Result<()> {
        self.counts.rows += 1;
        self.hindrances.extend(placement.hindrance());
        let row = Record { line: Some(line), ..Record::default() };
        let why: String;
        let record = match placement {
            Placement::Placed { order_id, msg, resolution } => {
                self.counts.placed += 1;
                self.counts.placed_before += usize::from(was_sent);
                self.lines.insert(order_id.clone(), line);
                self.placed.insert(line, ToldPlaced { order_id: order_id.clone(), before: was_sent });
                why = resolution.as_ref().and_then(with_status).unwrap_or_else(|| msg.clone());
                let resolution = resolution.as_ref().map_or("", word);
                Record { status: "placed", order_id, resolution, msg: &why, ..row }
            }
            Placement::Refused { msg } => {
                self.counts.refused += 1;
                self.not_placed.insert(line, NotPlaced::Refused);
                Record { status: "refused", msg, ..row }
            }
            Placement::NotExecuted { msg, .. } => {
                self.counts.not_executed += 1;
                self.not_placed.insert(line, NotPlaced::NotExecuted);
                Record { status: "not executed", msg, ..row }
            }
            Placement::NotSent { msg, .. } => {
                self.counts.not_sent += 1;
                self.not_placed.insert(line, NotPlaced::NotSent);
                Record { status: "not sent", msg, ..row }
            }
            Placement::NotObserved { said } => {
                self.counts.not_observed += 1;
                why = with_said("looked for and not there", said.as_deref());
                Record { status: "not observed", msg: &why, ..row }
            }
            Placement::Unresolved { reason, candidates, said } => {
                self.counts.unresolved += 1;
                why = with_said(
                    &(with_candidates(told(reason), candidates) + way_out(reason)),
                    said.as_deref(),
                );
                Record { status: "unresolved", msg: &why, ..row }
            }
        };
        self.write(&record)
    }

    /// Returns the rows reported as not placed.
    pub(crate) fn not_placed(&self) -> impl Iterator<Item = u64> {
        self.not_placed.keys().copied()
    }

    /// Corrects a row reported as not placed: its outcome is not known. Its second line in the results holds.
    pub(crate) fn in_doubt_after_all(
        &mut self,
        line: u64,
        reason: &str,
        candidates: &[String],
    ) -> std::io::Result<()> {
        if !self.not_placed.contains_key(&line) {
            return Ok(());
        }
        self.unresolved_after_all(line, &(with_candidates(told(reason), candidates) + way_out(reason)))
    }

    /// Marks the contradicted rows as in doubt, if the run does not wait for how they end.
    pub(crate) fn leave_contradicted(&mut self) -> std::io::Result<()> {
        while let Some(line) = self.contradicted.pop_first() {
            self.unresolved_after_all(line, &told("interrupted"))?;
        }
        Ok(())
    }

    fn unresolved_after_all(&mut self, line: u64, msg: &str) -> std::io::Result<()> {
        self.take_back(line);
        self.counts.unresolved += 1;
        self.write(&Record { line: Some(line), status: "unresolved", msg, ..Record::default() })
    }

    /// Removes a row from the count of its reported result. `None` if it was reported as neither placed nor not placed.
    fn take_back(&mut self, line: u64) -> Option<()> {
        let count = if let Some(told) = self.placed.remove(&line) {
            self.counts.placed_before -= usize::from(told.before);
            &mut self.counts.placed
        } else {
            match self.not_placed.remove(&line)? {
                NotPlaced::Refused => &mut self.counts.refused,
                NotPlaced::NotExecuted => &mut self.counts.not_executed,
                NotPlaced::NotSent => &mut self.counts.not_sent,
            }
        };
        *count -= 1;
        Some(())
    }

    /// Writes another line for a row if the event contradicts its result; the last line holds.
    fn agree(&mut self, line: u64, seen: &Seen) -> std::io::Result<()> {
        let order_id = seen.order_id.as_deref();
        let told = self.placed.get(&line).cloned();
        match seen.event.as_str() {
            "conflict" | "ack_not_listed" => {
                let doubted = told.filter(|told| Some(told.order_id.as_str()) == order_id);
                self.contradicted.extend(doubted.map(|_| line));
                Ok(())
            }
            "corrected" => {
                self.contradicted.remove(&line);
                let Some(order_id) = order_id else {
                    // A row reported as in doubt stays so.
                    let was_told = told.is_some() || self.not_placed.contains_key(&line);
                    let why = seen.msg.strip_prefix(NOT_KNOWN).unwrap_or(&seen.msg);
                    let (reason, may_be) = why.split_at(why.find(';').unwrap_or(why.len()));
                    let msg = self::told(reason) + may_be;
                    return if was_told { self.unresolved_after_all(line, &msg) } else { Ok(()) };
                };
                if told.as_ref().is_some_and(|told| told.order_id == order_id)
                    || self.take_back(line).is_none()
                {
                    return Ok(());
                }
                self.counts.placed += 1;
                let before = told.is_some_and(|told| told.before);
                self.counts.placed_before += usize::from(before);
                self.placed.insert(line, ToldPlaced { order_id: order_id.to_owned(), before });
                self.lines.insert(order_id.to_owned(), line);
                let row = Record { line: Some(line), status: "placed", ..Record::default() };
                self.write(&Record { order_id, resolution: "recovered", msg: &seen.msg, ..row })
            }
            _ => Ok(()),
        }
    }

    /// Writes a row that is not an order.
    pub(crate) fn bad(&mut self, row: &BadRow) -> std::io::Result<()> {
        self.counts.rows += 1;
        self.counts.bad += 1;
        let errors: Vec<String> = row.errors.iter().map(|error| error.reason.to_string()).collect();
        let msg = &errors.join("; ");
        self.write(&Record { line: Some(row.line), status: "bad", msg, ..Record::default() })
    }

    /// Writes an event about an order after its row's result, on a line of its own.
    pub(crate) fn event(&mut self, seen: &Seen) -> std::io::Result<()> {
        let named: Option<u64> = seen
            .name
            .as_deref()
            .and_then(|name| name.strip_prefix("line-")?.trim_end_matches("-again").parse().ok());
        let listed = seen.order_id.as_deref().and_then(|id| self.lines.get(id).copied());
        let line = named.or(listed);
        let status = &format!("event: {}", seen.event.replace('_', " "));
        let order_id = seen.order_id.as_deref().unwrap_or_default();
        self.write(&Record { line, status, order_id, msg: &seen.msg, ..Record::default() })?;
        let other = listed.filter(|_| seen.other);
        for line in named.into_iter().chain(other) {
            self.agree(line, seen)?;
        }
        Ok(())
    }

    fn write(&mut self, record: &Record<'_>) -> std::io::Result<()> {
        let line = record.line.map(|line| line.to_string()).unwrap_or_default();
        let msg: Cow<'_, str> =
            if self.is_rehearsal { format!("REHEARSAL: {}", record.msg).into() } else { record.msg.into() };
        let (order_id, msg) = (identifier_cell(record.order_id), cell(&msg));
        self.writer
            .write_record([&line, record.status, &order_id, record.resolution, &msg])
            .map_err(std::io::Error::other)?;
        // Results are flushed before the next order is placed.
        self.writer.flush()
    }
}

/// Returns the word of a reason, with its meaning.
fn told(reason: &str) -> String {
    let meant = REASONS.iter().find(|(word, _)| *word == reason);
    meant.map_or_else(|| reason.to_owned(), |(word, sentence)| format!("{word}: {sentence}"))
}

/// Returns advice for reasons that no later run or read can resolve on the same day: a person has to rule on the order.
fn way_out(reason: &str) -> &'static str {
    match reason {
        "accepted_unknown_id"
        | "no_baseline"
        | "near_match"
        | "ambiguous_owner"
        | "list_not_monotone"
        | "session_changed"
        | "epoch_changed"
        | "uncalibrated"
        | "resends_exhausted"
        | "tainted" => "; once you have found it or not, say so with `steadfast orders rule`",
        _ => "",
    }
}

/// Appends the orders that it may be.
fn with_candidates(text: String, candidates: &[String]) -> String {
    if candidates.is_empty() { text } else { format!("{text}; it may be {}", candidates.join(", ")) }
}

/// Appends the service's own text.
fn with_said(text: &str, said: Option<&str>) -> String {
    // Made readable by itself: where it quotes a credential, nothing else of the row is withheld.
    said.map_or_else(|| text.to_owned(), |said| format!("{text}; the service said: {}", readable(said)))
}

/// Returns the order's status in the list. A rejected order was processed too, but is no position.
fn with_status(resolution: &Resolution) -> Option<String> {
    match resolution {
        Resolution::Recovered { status: Some(status), .. } => {
            Some(format!("recovered; the list shows it as {status}"))
        }
        _ => None,
    }
}

fn word(resolution: &Resolution) -> &'static str {
    match resolution {
        Resolution::Recovered { .. } => "recovered",
        Resolution::Resent => "resent",
        Resolution::Attached { .. } => "attached",
        _ => "resolved",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_csv_with_the_columns_of_the_contract() {
        let mut text = Vec::new();
        let mut results = Results::new(&mut text, false).unwrap();
        let recovered = Resolution::Recovered { order_id: "7".to_owned(), status: None };
        let placed = Placement::Placed {
            order_id: "7".to_owned(),
            msg: "a, \"b\"".to_owned(),
            resolution: Some(recovered),
        };
        results.ended(2, &placed, false).unwrap();
        results.ended(3, &Placement::unresolved("of a later version", None), false).unwrap();
        let counts = results.counts;
        drop(results);
        let lines = "line,status,orderId,resolution,msg\n2,placed,7,recovered,\"a, \"\"b\"\"\"\n3,unresolved,,,of a later version\n";
        assert_eq!(String::from_utf8(text).unwrap(), lines);
        assert_eq!((counts.rows, counts.placed, counts.unresolved), (2, 1, 1));
    }

    #[test]
    fn x01_what_the_service_says_is_no_formula_and_moves_no_cursor() {
        let mut text = Vec::new();
        let mut results = Results::new(&mut text, false).unwrap();
        let (order_id, msg) = ("=HYPERLINK(1)".to_owned(), "@x\x1b[2J".to_owned());
        results.ended(2, &Placement::Placed { order_id, msg, resolution: None }, false).unwrap();
        drop(results);
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.lines().last(), Some("2,placed,'=HYPERLINK(1),,'@x\\u{1b}[2J"));
    }

    #[test]
    fn c01_each_row_of_a_rehearsal_says_so() {
        let mut text = Vec::new();
        let mut results = Results::new(&mut text, true).unwrap();
        let placed = Placement::Placed { order_id: "7".to_owned(), msg: "ok".to_owned(), resolution: None };
        results.ended(2, &placed, false).unwrap();
        let not_sent = Placement::NotSent { why: Hindrance::Interrupted, msg: String::new() };
        results.ended(3, &not_sent, false).unwrap();
        drop(results);
        let text = String::from_utf8(text).unwrap();
        assert!(text.lines().skip(1).all(|line| line.contains("REHEARSAL: ")), "{text}");
    }

    #[test]
    fn c03_an_event_stands_by_the_row_whose_order_it_names() {
        let mut text = Vec::new();
        let mut results = Results::new(&mut text, false).unwrap();
        let placed = Placement::Placed { order_id: "7".to_owned(), msg: String::new(), resolution: None };
        results.ended(2, &placed, false).unwrap();
        let seen = |name: Option<&str>, id: &str| Seen {
            at: 0,
            event: "late_order".to_owned(),
            name: name.map(str::to_owned),
            intent: None,
            order_id: Some(id.to_owned()),
            msg: "m".to_owned(),
            other: false,
        };
        results.event(&seen(None, "7")).unwrap();
        results.event(&seen(Some("line-9-again"), "8")).unwrap();
        results.event(&seen(None, "9")).unwrap();
        drop(results);
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.ends_with("2,event: late order,7,,m\n9,event: late order,8,,m\n,event: late order,9,,m\n"),
            "{text}"
        );
    }

    #[test]
    fn c03_a_row_agrees_with_the_latest_event_about_it() {
        let mut text = Vec::new();
        let mut results = Results::new(&mut text, false).unwrap();
        let placed = Placement::Placed { order_id: "7".to_owned(), msg: String::new(), resolution: None };
        for line in 2..=4 {
            results.ended(line, &placed, line == 2).unwrap();
        }
        results.ended(5, &Placement::Refused { msg: "403".to_owned() }, false).unwrap();
        let seen = |event: &str, line: u64, id: Option<&str>, other| Seen {
            at: 0,
            event: event.to_owned(),
            name: Some(format!("line-{line}")),
            intent: None,
            order_id: id.map(str::to_owned),
            msg: "m".to_owned(),
            other,
        };
        results.event(&seen("conflict", 3, Some("7"), true)).unwrap();
        results.event(&seen("corrected", 2, None, false)).unwrap();
        results.event(&seen("corrected", 3, Some("8"), false)).unwrap();
        results.event(&seen("corrected", 5, Some("9"), false)).unwrap();
        let counts = results.counts;
        assert_eq!((counts.placed, counts.placed_before, counts.refused, counts.unresolved), (3, 0, 0, 1));
        results.leave_contradicted().unwrap();
        results.leave_contradicted().unwrap();
        let counts = results.counts;
        assert_eq!((counts.rows, counts.placed, counts.unresolved), (4, 2, 2));
        drop(results);
        let text = String::from_utf8(text).unwrap();
        let last = |line: &str| {
            let mut rows = text.lines().filter(|row| row.starts_with(line) && !row.contains(",event: "));
            rows.next_back().unwrap().to_owned()
        };
        assert_eq!(last("2,"), "2,unresolved,,,m");
        assert_eq!(last("3,"), "3,placed,8,recovered,m");
        assert!(last("4,").starts_with("4,unresolved,,,\"interrupted: "), "{text}");
        assert_eq!(last("5,"), "5,placed,9,recovered,m");
    }

    #[test]
    fn c09_every_reason_of_the_library_has_a_sentence() {
        for reason in steadfast::dedup::Reason::ALL {
            assert!(told(reason.as_str()).starts_with(&format!("{reason}: ")), "{reason}");
        }
    }

    #[test]
    fn c03_what_the_service_says_of_an_order_in_doubt_stands_in_its_row() {
        let mut text = Vec::new();
        let mut results = Results::new(&mut text, false).unwrap();
        let said = Some("200 Order queued".to_owned());
        results.ended(2, &Placement::unresolved("budget", said.clone()), false).unwrap();
        results.ended(3, &Placement::NotObserved { said }, false).unwrap();
        drop(results);
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("2,unresolved,,,budget: the time for the search ended first; the service said: 200 Order queued\n"), "{text}");
        assert!(
            text.contains("3,not observed,,,looked for and not there; the service said: 200 Order queued\n"),
            "{text}"
        );
    }

    #[test]
    fn c03_a_row_in_doubt_names_the_orders_that_it_may_be() {
        let mut text = Vec::new();
        let mut results = Results::new(&mut text, false).unwrap();
        let candidates = vec!["260000000001".to_owned(), "260000000002".to_owned()];
        let said = Some("504".to_owned());
        results.ended(2, &Placement::Unresolved { reason: "no_baseline", candidates, said }, false).unwrap();
        drop(results);
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("; it may be 260000000001, 260000000002; once you have found it"), "{text}");
        assert!(text.ends_with("; the service said: 504\"\n"), "{text}");
    }

    #[test]
    fn c03_a_row_that_is_in_doubt_after_all_is_counted_as_such() {
        let mut text = Vec::new();
        let mut results = Results::new(&mut text, false).unwrap();
        results.ended(2, &Placement::Refused { msg: "400".to_owned() }, false).unwrap();
        assert_eq!(results.not_placed().collect::<Vec<_>>(), [2]);
        results.in_doubt_after_all(2, "near_match", &["7".to_owned()]).unwrap();
        results.in_doubt_after_all(2, "near_match", &[]).unwrap();
        assert_eq!((results.counts.rows, results.counts.refused, results.counts.unresolved), (1, 0, 1));
        drop(results);
        assert!(
            String::from_utf8(text)
                .unwrap()
                .lines()
                .last()
                .unwrap()
                .contains("2,unresolved,,,\"near_match: the list holds an order that is like this one, but not equal; it may be 7; ")
        );
    }
}
