//! Changes of a row's result after it was reported.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
};

use super::{
    NotPlaced, Results, ToldPlaced,
    sentence::{way_out, with_candidates},
    sheet::Record,
};
use crate::{
    events::{NOT_KNOWN, Seen},
    readable::identifier,
    reason::told,
};

/// The status of a line about a row whose order the run has not looked for a last time.
const NOT_LOOKED_FOR: &str = "event: not looked for";

impl<W: Write> Results<W> {
    /// Corrects a row reported as not placed: its outcome is not known. Its second line in the results holds.
    pub(crate) fn in_doubt_after_all(
        &mut self,
        line: u64,
        reason: &str,
        candidates: &[String],
    ) -> std::io::Result<()> {
        let mut msg = match self.not_placed.get(&line) {
            None => return Ok(()),
            Some(NotPlaced::NotSent(cause)) => format!("{}; {cause}", told(reason)),
            Some(NotPlaced::Refused | NotPlaced::NotExecuted) => told(reason),
        };
        msg = with_candidates(msg, candidates) + way_out(reason);
        self.unresolved_after_all(line, &msg)
    }

    /// Marks the contradicted rows as in doubt, if the run does not wait for how they end.
    pub(crate) fn leave_contradicted(&mut self) -> std::io::Result<()> {
        while let Some(line) = self.contradicted.pop_first() {
            self.unresolved_after_all(line, &told("interrupted"))?;
        }
        Ok(())
    }

    /// Marks the rows whose orders are rejected. Their second lines in the results hold.
    pub(crate) fn reject(&mut self, rejected: &BTreeSet<String>) -> std::io::Result<()> {
        for (line, told) in &mut self.placed {
            if told.rejected || !rejected.contains(&told.order_id) {
                continue;
            }
            told.rejected = true;
            self.counts.placed -= 1;
            self.counts.placed_before -= usize::from(told.before);
            self.counts.unconfirmed -= usize::from(std::mem::take(&mut told.unconfirmed));
            self.counts.rejected += 1;
            self.sheet.end(&Record {
                line: Some(*line),
                status: "rejected",
                order_id: &told.order_id,
                resolution: told.resolution,
                msg: "the order list shows it as rejected",
            })?;
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
            self.sheet.add(&Record {
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
            Some(told) => format!("{msg}; its answer named {}", identifier(&told.order_id)),
            None => msg.to_owned(),
        };
        self.take_back(line);
        self.counts.unresolved += 1;
        self.sheet.end(&Record { line: Some(line), status: "unresolved", msg, ..Record::default() })
    }

    /// Removes a row from the count of its reported result. `None` if it was reported as neither placed nor not placed.
    fn take_back(&mut self, line: u64) -> Option<()> {
        let count = if let Some(told) = self.placed.remove(&line) {
            if told.rejected {
                self.counts.rejected -= 1;
                return Some(());
            }
            self.counts.placed_before -= usize::from(told.before);
            self.counts.unconfirmed -= usize::from(told.unconfirmed);
            &mut self.counts.placed
        } else {
            match self.not_placed.remove(&line)? {
                NotPlaced::Refused => &mut self.counts.refused,
                NotPlaced::NotExecuted => &mut self.counts.not_executed,
                NotPlaced::NotSent(_) => &mut self.counts.not_sent,
            }
        };
        *count -= 1;
        Some(())
    }

    /// Writes another line for a row if the event contradicts its result; the last line holds.
    pub(super) fn agree(&mut self, line: u64, seen: &Seen) -> std::io::Result<()> {
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
                self.placed.insert(line, ToldPlaced::new(order_id, before, "recovered"));
                self.lines.insert(order_id.to_owned(), line);
                let row = Record { line: Some(line), status: "placed", ..Record::default() };
                self.sheet.end(&Record { order_id, resolution: "recovered", msg: &seen.msg, ..row })
            }
            _ => Ok(()),
        }
    }
}
