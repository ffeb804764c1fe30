mod corrections;
mod counts;
mod sentence;
mod sheet;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io::Write,
};

pub(crate) use self::{
    counts::Counts,
    sheet::{COLUMNS, RowEnd},
};
use self::{
    sentence::{found_out, is_rejected, way_out, with_candidates, with_said, word},
    sheet::{Record, Sheet},
};
use super::row::BadRow;
use crate::{
    events::Seen,
    placement::{Hindrance, Placement},
    reason::told,
    row_name,
};

/// Writes the result of each row as soon as it is known.
pub(crate) struct Results<W: Write> {
    sheet: Sheet<W>,
    pub(crate) counts: Counts,
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
#[derive(Clone, Debug, PartialEq, Eq)]
enum NotPlaced {
    Refused,
    NotExecuted,
    /// With what kept it from being sent.
    NotSent(String),
}

/// How a row was reported as placed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ToldPlaced {
    order_id: String,
    /// True if an earlier run has sent its order.
    before: bool,
    /// True if no list could be read that confirms it.
    unconfirmed: bool,
    /// True if the order list shows it as rejected.
    rejected: bool,
    /// How that was found out.
    resolution: &'static str,
}

impl ToldPlaced {
    fn new(order_id: &str, before: bool, resolution: &'static str) -> Self {
        let (unconfirmed, rejected) = (false, false);
        Self { order_id: order_id.to_owned(), before, unconfirmed, rejected, resolution }
    }
}

impl<W: Write> Results<W> {
    /// Begins the results with their header.
    pub(crate) fn new(into: W, is_rehearsal: bool) -> std::io::Result<Self> {
        Ok(Self {
            sheet: Sheet::new(into, is_rehearsal)?,
            counts: Counts::default(),
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
                let rejected = resolution.as_ref().is_some_and(is_rejected);
                if rejected {
                    self.counts.rejected += 1;
                } else {
                    self.counts.placed += 1;
                    self.counts.placed_before += usize::from(was_sent);
                }
                self.lines.insert(order_id.clone(), line);
                why = resolution.as_ref().and_then(found_out).unwrap_or_else(|| msg.clone());
                let resolution = resolution.as_ref().map_or("", word);
                let told = ToldPlaced { rejected, ..ToldPlaced::new(order_id, was_sent, resolution) };
                self.placed.insert(line, told);
                let status = if rejected { "rejected" } else { "placed" };
                Record { status, order_id, resolution, msg: &why, ..row }
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
                self.not_placed.insert(line, NotPlaced::NotSent(msg.clone()));
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
        self.sheet.end(&record)
    }

    /// Returns the rows reported as not placed.
    pub(crate) fn not_placed(&self) -> impl Iterator<Item = u64> {
        self.not_placed.keys().copied()
    }

    /// Returns true if this run has reported that it has sent nothing of the row.
    pub(crate) fn was_unsent(&self, line: u64) -> bool {
        matches!(self.not_placed.get(&line), Some(NotPlaced::NotSent(_)))
    }

    /// Returns true if a row was reported as placed, and not as unconfirmed since.
    pub(crate) fn hold_confirmed(&self) -> bool {
        self.placed.values().any(|told| !told.unconfirmed)
    }

    /// Returns the placed rows whose orders no list has confirmed.
    pub(crate) fn unconfirmed(&self) -> impl Iterator<Item = u64> {
        self.placed.iter().filter(|(_, told)| told.unconfirmed).map(|(line, _)| *line)
    }

    /// Writes a row that is not an order.
    pub(crate) fn bad(&mut self, row: &BadRow) -> std::io::Result<()> {
        self.counts.rows += 1;
        self.counts.bad += 1;
        let errors: Vec<String> = row.errors.iter().map(|error| error.reason.to_string()).collect();
        let msg = &errors.join("; ");
        self.sheet.end(&Record { line: Some(row.line), status: "bad", msg, ..Record::default() })
    }

    /// Writes an event about an order after its row's result, on a line of its own.
    pub(crate) fn event(&mut self, seen: &Seen) -> std::io::Result<()> {
        let (named, listed) = self.rows_of(seen);
        let line = named.or(listed);
        let status = &format!("event: {}", seen.event.replace('_', " "));
        let order_id = seen.order_id.as_deref().unwrap_or_default();
        self.sheet.add(&Record { line, status, order_id, msg: &seen.msg, ..Record::default() })?;
        self.follow(seen)
    }

    /// Corrects the rows that an event contradicts.
    pub(crate) fn follow(&mut self, seen: &Seen) -> std::io::Result<()> {
        let (named, listed) = self.rows_of(seen);
        let other = listed.filter(|_| seen.other);
        for line in named.into_iter().chain(other) {
            self.agree(line, seen)?;
        }
        Ok(())
    }

    /// Returns the row that the event names, and the one whose order id it holds.
    fn rows_of(&self, seen: &Seen) -> (Option<u64>, Option<u64>) {
        let named = seen.name.as_deref().and_then(row_name::line_of);
        (named, seen.order_id.as_deref().and_then(|id| self.lines.get(id).copied()))
    }

    /// Returns each row's end so far, by line.
    pub(crate) fn ends(&self) -> impl Iterator<Item = &RowEnd> {
        self.sheet.ends()
    }
}

#[cfg(test)]
mod tests;
