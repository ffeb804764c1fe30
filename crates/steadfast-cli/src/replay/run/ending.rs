//! The end of each row.

use std::time::Duration;

use steadfast::{
    auth::TokenPhase,
    dedup::{Resolution, Verdict},
};
use tokio::time::Instant;

use super::{Replay, Stop};
use crate::{
    placement::{Hindrance, Placement},
    replay::{closing::reason_of, known, row::Row},
    row_name,
};

const TOKEN_REFUSED: &str =
    "401 to the token, with which the order list cannot be read; see `steadfast doctor`";

/// As many orders turned away for the token, and none placed in between, end the run.
const ENOUGH: usize = 10;

/// How long the journal may take to contain the results of its orders.
const JOURNAL_LAG: Duration = Duration::from_secs(2);

impl Replay {
    /// Writes the results of rows whose calls were abandoned, by the journal, as `orders unresolved` does.
    ///
    /// Nothing has left since the halt, and nothing leaves before it is in the journal.
    pub(super) fn end_open(&mut self) {
        let open = std::mem::take(&mut self.open);
        let read = || known::ends_in(self.journal.as_deref()?);
        let ends = if open.is_empty() { None } else { read() };
        for (line, name) in open {
            let is_second = row_name::is_second(&name);
            let placement = match ends.as_ref().map(|ends| ends.get(&name)) {
                Some(Some(known::End::Open)) => Placement::unresolved("interrupted", None),
                // The journal was moved or removed.
                None if self.may_be_sent(line) => Placement::unresolved("interrupted", None),
                Some(Some(known::End::Placed(order_id))) => {
                    let (order_id, msg) = (order_id.clone(), "answered before the run was left".to_owned());
                    Placement::Placed { order_id, msg, resolution: None }
                }
                // The journal knows only the first order.
                Some(_) if is_second => Placement::NotObserved { said: None },
                Some(Some(known::End::NotPlaced)) => Placement::NotExecuted {
                    why: Hindrance::Interrupted,
                    msg: "turned away before the run was left".to_owned(),
                },
                Some(Some(known::End::Refused)) if self.sends.hold(&name) => {
                    Placement::Refused { msg: "refused before the run was left".to_owned() }
                }
                None | Some(None | Some(known::End::Refused)) => {
                    self.sent.retain(|sent| *sent != name);
                    self.not_sent()
                }
            };
            self.ended(&name, line, &placement);
        }
    }

    /// Handles the end of an order's call.
    pub(super) fn came_back(&mut self, name: &str, row: &Row, placement: Placement) -> Placement {
        self.open.remove(&row.line);
        self.answered = Some(Instant::now());
        let placement = self.judged(placement);
        if matches!(placement, Placement::NotSent { .. }) {
            self.sent.retain(|sent| *sent != name);
        }
        placement
    }

    /// Ends the run if the result shows that no later order can be placed either. Orders that were held back by that
    /// get its reason.
    pub(super) fn judged(&mut self, placement: Placement) -> Placement {
        let why = placement.hindrance();
        let is_stray = self.is_stray(&placement);
        if self.stop == Stop::Nobody
            && let Some(why) = why.filter(|why| why.is_for_good() && !is_stray)
        {
            self.client.halt();
            self.stop = Stop::Hindered;
            self.ended_by = Some(why);
            self.note(format_args!("{}: nothing more is sent; see `steadfast doctor`", reason_of(why)));
        }
        match placement {
            Placement::NotSent { why: Hindrance::Interrupted, .. } => self.not_sent(),
            Placement::NotExecuted { why: Hindrance::Interrupted, msg } => {
                Placement::NotExecuted { why: self.ended_by.unwrap_or(Hindrance::Interrupted), msg }
            }
            // The verdict does not say why the list could not be read.
            Placement::Unresolved { reason, candidates, why, said: None } => {
                let is_refused = self.client.tokens().status().phase == TokenPhase::Suspect;
                let said = is_refused.then(|| TOKEN_REFUSED.to_owned());
                Placement::Unresolved { reason, candidates, why, said }
            }
            placement => placement,
        }
    }

    /// Returns true for an order that was turned away for the token (401), while the order list could be read with it:
    /// one such answer does not show that the token is dead.
    fn is_stray(&mut self, placement: &Placement) -> bool {
        match placement {
            Placement::Placed { resolution, .. }
                if !matches!(resolution, Some(Resolution::Attached { .. })) =>
            {
                self.turned_away = 0;
            }
            Placement::NotExecuted { why: Hindrance::Login, .. } => {
                self.turned_away += 1;
                return self.turned_away < ENOUGH;
            }
            _ => {}
        }
        false
    }

    /// Returns the result of a row whose turn did not come.
    pub(super) fn not_sent(&self) -> Placement {
        let why = self.ended_by.unwrap_or(Hindrance::Interrupted);
        Placement::NotSent { why, msg: reason_of(why).to_owned() }
    }

    /// Corrects rows reported as not placed whose orders have no end in the journal: they are in doubt, and the next
    /// run treats them so.
    pub(super) async fn agree_with_journal(&mut self) {
        let Some(journal) = self.journal.clone() else { return };
        let end = Instant::now() + JOURNAL_LAG;
        let doubtful = loop {
            let open = known::open_in(&journal);
            let not_placed = self.results.not_placed();
            let doubtful: Vec<(u64, Option<Verdict>)> = match &open {
                Some(open) => not_placed
                    .filter_map(|line| {
                        let verdict =
                            open.get(&row_name::of_first(line)).or(open.get(&row_name::of_second(line)));
                        Some((line, Some(verdict?.clone())))
                    })
                    .collect(),
                // The journal was moved or removed, and may hold a send that is not known to have failed.
                None => not_placed.filter(|line| self.may_be_sent(*line)).map(|line| (line, None)).collect(),
            };
            // The last records may still be on their way to the disk.
            if doubtful.is_empty() || self.stop == Stop::Left || Instant::now() >= end {
                break doubtful;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        for (line, verdict) in doubtful {
            self.note(format_args!("line {line}: the journal holds no end of its order, which is in doubt"));
            let (reason, candidates) = match &verdict {
                None => ("journal_open", &[][..]),
                Some(Verdict::Unresolved(it)) => (it.reason.as_str(), &*it.candidates),
                Some(_) if self.stop != Stop::Nobody => ("interrupted", &[][..]),
                Some(_) if self.results.was_unsent(line) => ("unwritten", &[][..]),
                Some(_) => ("refusal_unconfirmed", &[][..]),
            };
            let written = self.results.in_doubt_after_all(line, reason, candidates);
            self.note_unwritten(written);
        }
    }

    /// Returns false if no send of the row has begun, neither in this run nor in an earlier one, whatever became of the journal.
    fn may_be_sent(&self, line: u64) -> bool {
        let has_begun = |name: String| self.begun.contains(&name) || self.sends.hold(&name);
        // Without a journal no send is noted.
        self.journal.is_none()
            || [row_name::of_first(line), row_name::of_second(line)].into_iter().any(has_begun)
    }

    /// Returns what became of a row that an earlier run has sent, by the journal, if its turn did not come: of its second
    /// order, if there was one.
    fn told_by_journal(&self, line: u64) -> Option<Placement> {
        known::told_of(line, &self.before, || {
            self.ends.get_or_init(|| known::Ends::read(self.journal.as_deref()?)).as_ref()
        })
    }

    pub(super) fn ended(&mut self, name: &str, line: u64, placement: &Placement) {
        self.bar.inc(1);
        let told = match placement {
            Placement::NotSent { .. } => self.told_by_journal(line),
            _ => None,
        };
        let placement = told.as_ref().unwrap_or(placement);
        let was_sent = self.was_sent_before(name, placement);
        let written = self.results.ended(line, placement, was_sent);
        self.note_unwritten(written);
    }

    /// Returns true if an earlier run has sent the order, and this one has sent nothing for it.
    pub(super) fn was_sent_before(&self, name: &str, placement: &Placement) -> bool {
        match placement {
            // Within one run each name is asked for once.
            Placement::Placed { resolution: Some(Resolution::Attached { .. }), .. } => true,
            // It had been refused before, and was found now: by its send of an earlier run, or by one of this run.
            Placement::Placed { resolution: Some(Resolution::Recovered { .. }), .. } => {
                self.before.contains(name) || (self.begun.contains(name) && !self.sends.hold(name))
            }
            _ => self.before.contains(name),
        }
    }
}
