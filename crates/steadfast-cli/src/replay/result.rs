mod counts;
mod sentence;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap},
    io::Write,
};

pub(crate) use self::counts::Counts;
pub(crate) use self::sentence::{is_for_a_person, told};
use self::sentence::{way_out, with_candidates, with_said, with_status, word};
use super::{name, row::BadRow};
use crate::{
    events::{NOT_KNOWN, Seen},
    placement::{Hindrance, Placement},
    readable::{cell, identifier_cell},
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
    /// The rows for whose orders the run has not looked a last time.
    unlooked: Vec<u64>,
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
    /// True if no list could be read that confirms it.
    unconfirmed: bool,
}

impl ToldPlaced {
    fn new(order_id: &str, before: bool) -> Self {
        Self { order_id: order_id.to_owned(), before, unconfirmed: false }
    }
}

/// The columns of the results.
pub(super) const COLUMNS: [&str; 5] = ["line", "status", "orderId", "resolution", "msg"];

/// The status of a line about a row whose order the run has not looked for a last time.
const NOT_LOOKED_FOR: &str = "event: not looked for";

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
        Ok(Self {
            writer,
            counts: Counts::default(),
            is_rehearsal,
            lines: HashMap::new(),
            not_placed: BTreeMap::new(),
            placed: BTreeMap::new(),
            contradicted: BTreeSet::new(),
            unlooked: Vec::new(),
            hindrances: BTreeSet::new(),
        })
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
                self.placed.insert(line, ToldPlaced::new(order_id, was_sent));
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
            Placement::Unresolved { reason, candidates, said, .. } => {
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

    /// Returns the placed rows whose orders no list has confirmed.
    pub(crate) fn unconfirmed(&self) -> impl Iterator<Item = u64> {
        self.placed.iter().filter(|(_, told)| told.unconfirmed).map(|(line, _)| *line)
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

    /// Names the rows that were placed or refused by this run, if it is left before its last look: no list has confirmed
    /// their answers.
    pub(crate) fn leave_unlooked(&mut self) -> std::io::Result<()> {
        let mut rows: BTreeMap<u64, Option<String>> = BTreeMap::new();
        for (line, told) in self.placed.iter().filter(|(_, told)| !told.before && !told.unconfirmed) {
            rows.insert(*line, Some(told.order_id.clone()));
        }
        for (line, _) in self.not_placed.iter().filter(|(_, how)| **how == NotPlaced::Refused) {
            rows.insert(*line, None);
        }
        self.unlooked = rows.keys().copied().collect();
        self.counts.not_looked_for = rows.len();
        for (line, order_id) in &rows {
            let msg = match order_id {
                Some(_) => {
                    "the run was left before its last look: look whether the order list shows this order"
                }
                None => {
                    "the run was left before its last look: look whether this order is placed although it was refused"
                }
            };
            let order_id = order_id.as_deref().unwrap_or_default();
            self.write(&Record {
                line: Some(*line),
                status: NOT_LOOKED_FOR,
                order_id,
                msg,
                ..Record::default()
            })?;
        }
        Ok(())
    }

    /// Returns the rows that [`leave_unlooked`](Self::leave_unlooked) has named.
    pub(crate) fn unlooked(&self) -> &[u64] {
        &self.unlooked
    }

    fn unresolved_after_all(&mut self, line: u64, msg: &str) -> std::io::Result<()> {
        let msg = &match self.placed.get(&line) {
            // No list shows it, but a person may find it by this.
            Some(told) => format!("{msg}; its answer named {}", told.order_id),
            None => msg.to_owned(),
        };
        self.take_back(line);
        self.counts.unresolved += 1;
        self.write(&Record { line: Some(line), status: "unresolved", msg, ..Record::default() })
    }

    /// Removes a row from the count of its reported result. `None` if it was reported as neither placed nor not placed.
    fn take_back(&mut self, line: u64) -> Option<()> {
        let count = if let Some(told) = self.placed.remove(&line) {
            self.counts.placed_before -= usize::from(told.before);
            self.counts.unconfirmed -= usize::from(told.unconfirmed);
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
            "ack_unconfirmed" => {
                if let Some(told) = self.placed.get_mut(&line)
                    && Some(told.order_id.as_str()) == order_id
                {
                    self.counts.unconfirmed += usize::from(!std::mem::replace(&mut told.unconfirmed, true));
                }
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
                self.placed.insert(line, ToldPlaced::new(order_id, before));
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
        let named: Option<u64> = seen.name.as_deref().and_then(name::line_of);
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

#[cfg(test)]
mod tests;
