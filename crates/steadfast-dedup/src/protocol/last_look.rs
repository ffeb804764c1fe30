//! Reads the list a last time, before the process may end.
//!
//! One list shows orders that appeared late, if it is read late enough: after a rejection, beyond the lateness
//! bound. An order that was acknowledged takes longer: lists lag, and an identifier that no list shows is contradicted
//! by two of them only. So the list is read again until it shows or contradicts every acknowledged order. Lists that
//! fail do not end that at once, and do not prolong it beyond a bound: the orders that are neither shown nor
//! contradicted by then are reported.

use std::time::Duration;

use crate::protocol::{
    effect::Effect,
    order_protocol::OrderProtocol,
    reads::{ListWorth, ReadStart},
    schedule,
    watches::LastLook,
};

impl OrderProtocol {
    /// Asks for the last reads of a shutdown, if there is anything to read for.
    pub(crate) fn begin_last_look(&mut self) {
        let is_due = !self.watches.is_empty()
            || self.watches.late_until().is_some()
            || self.awaits_audit()
            || self.rejections_show().is_some();
        let (since, shows) = (self.time.now(), self.refusals_show().max(self.late_orders_show()));
        // An order that one list lacks is reported once a second list lacks it too.
        let second = self.second_audit(self.reads.last_pace().current).unwrap_or_default();
        let due = if self.awaits_audit() { since.max(second) } else { since.max(shows) };
        self.watches.set_last_look(is_due.then_some(LastLook::new(since, due, shows)));
        self.want_own_looks();
    }

    /// Plans the next last look, or ends them, after a read of a list that may hold orders of any session.
    pub(crate) fn go_on_looking(
        &mut self,
        started: Option<ReadStart>,
        worth: ListWorth,
        out: &mut Vec<Effect>,
    ) {
        let Some(mut last) = self.watches.take_last_look() else { return };
        let at = started.map_or(self.time.now(), |start| start.at);
        let listed = started.is_some() && worth.is_list();
        if listed {
            last.note_list();
        }
        if worth.is_current() {
            last.look(at);
        }
        if self.may_still_show(last, at, listed) {
            let again = schedule::next_last_look(last.since(), self.time.now(), listed);
            let due = self.second_audit(Some(at)).unwrap_or(again);
            self.watches.set_last_look(Some(last.due_at(due)));
        } else if let Some(due) = self.next_refuting_look(last, at, listed) {
            self.watches.set_last_look(Some(last.due_at(due)));
        } else {
            // The process may end now, and there is no later chance to report this.
            if !last.has_looked() {
                self.tell_unconfirmed(out);
            }
            // First those with the orders that may be theirs.
            self.tell_held_back(out);
            self.tell_acks_unconfirmed(last, out);
        }
    }

    /// Reports orders acknowledged before the last look that no list has shown or contradicted, each of them once.
    fn tell_acks_unconfirmed(&mut self, last: LastLook, out: &mut Vec<Effect>) {
        if !self.awaits_audit() {
            return;
        }
        for (at, order_id, told_in) in self.listed.awaited.unlisted_before(Duration::MAX) {
            // Lists that can be read do not show another session's orders, and say nothing of them.
            let is_others = last.has_list() && self.sessions.current() != Some(told_in);
            if at > last.since() || is_others {
                continue;
            }
            let Some(number) = self.owner_by_answer(&order_id) else { continue };
            self.tell_ack_unconfirmed(number, &[], out);
        }
        self.close_mismatches(Duration::MAX, out);
    }

    /// True if one more list may show or contradict an acknowledged order after the read at `at`; `listed`: that
    /// brought a list.
    fn may_still_show(&self, last: LastLook, at: Duration, listed: bool) -> bool {
        if !self.awaits_audit() {
            return false;
        }
        let told_by = self.settings.lateness.saturating_add(schedule::ACK_TOLD_WITHIN);
        let young = at.checked_sub(told_by).unwrap_or_default();
        let mut missed = self.listed.missed_before(Duration::MAX).peekable();
        // Without a list, all that is known is that none of them was shown.
        let awaits = !listed
            || missed.peek().is_some()
            || self.listed.awaited.unlisted_from(young).is_some()
            || self.fidelity.first_open().is_some();
        let in_time = at < last.since().saturating_add(told_by);
        // The first list that lacks an order is always followed by another one.
        awaits && (in_time || missed.any(|missed| missed == at))
    }

    /// Returns when to read a list that shows every order refused or rejected before, if the read at `at` was too early.
    ///
    /// After a rejection no other list is read, so that a look that failed is repeated.
    fn next_refuting_look(&self, last: LastLook, at: Duration, listed: bool) -> Option<Duration> {
        if last.has_looked() {
            return None;
        }
        if at < last.shows() {
            return Some(last.shows());
        }
        let in_time = at < last.shows().saturating_add(schedule::ACK_TOLD_WITHIN);
        let again = schedule::next_last_look(last.since(), self.time.now(), listed);
        (in_time && self.rejections_show().is_some()).then_some(again)
    }

    /// Returns when the next last look is due.
    pub(crate) fn next_last_look(&self) -> Option<Duration> {
        self.watches.last_look().map(|last| last.due().max(self.time.now()))
    }

    /// True while a last look for orders that ended without certainty, or are not listed yet, is due.
    #[must_use]
    pub fn awaits_last_look(&self) -> bool {
        self.watches.last_look().is_some() || self.awaits_own_looks()
    }
}
