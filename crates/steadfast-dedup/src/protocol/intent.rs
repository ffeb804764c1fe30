use std::{sync::Arc, time::Duration};

use steadfast_call::ext;
use steadfast_spec::{OrderRequest, Tag};

use crate::{
    numbers::{LogicalTime, Session, TradingDay},
    protocol::{
        attempt::{Attempt, AttemptState, Never, Sent},
        doubt::{Block, Doubt, Fault},
        key::Key,
        phase::{Finding, Phase, RefusalCheck},
        resolution::Reason,
    },
};

/// One order that a caller wants, with everything that was tried for it.
#[derive(Clone, Debug)]
pub(crate) struct Intent {
    order: Arc<OrderRequest>,
    key: Key,
    name: Option<ext::IntentId>,
    day: TradingDay,
    /// When its caller asked for it, on the clock of ages.
    opened: Duration,
    /// It was sent so near midnight that it may be listed on either day.
    at_midnight: bool,
    /// If it was lost before midnight: what must happen before it stops blocking later orders.
    block: Option<Block>,
    attempts: Vec<Attempt>,
    phase: Phase,
    caller_waits: bool,
    /// Whether its session's list was known when it was first sent, or has shown none like it since.
    has_baseline: bool,
    /// Whether its last refusal was one of the token (401).
    token_refused: bool,
    /// Whether a resend was rejected. Then the earlier sends are searched for once more and never sent again.
    resend_rejected: bool,
    /// Boxed: few orders are ever in doubt, and all of a day are kept.
    doubt: Option<Box<Doubt>>,
    /// It was reported that the lists behind its resend may have lacked its order.
    suspected: bool,
    /// Orders of it that appeared late, besides the one that its caller was told of.
    late: usize,
    /// The identifier that an answer gave it, true or not.
    answered: Option<Arc<str>>,
    /// The tag that all of its sends carry, to recognise its order by.
    tag: Option<Tag>,
    /// A user ruled on how it ended.
    ruled: bool,
}

impl Intent {
    pub(crate) fn new(
        order: Arc<OrderRequest>,
        name: Option<ext::IntentId>,
        day: TradingDay,
        opened: Duration,
    ) -> Self {
        Self {
            key: Key::of_order(&order),
            order,
            name,
            day,
            opened,
            at_midnight: false,
            block: None,
            attempts: Vec::new(),
            phase: Phase::Idle,
            caller_waits: true,
            has_baseline: false,
            token_refused: false,
            resend_rejected: false,
            doubt: None,
            suspected: false,
            late: 0,
            answered: None,
            tag: None,
            ruled: false,
        }
    }

    pub(crate) fn order(&self) -> &Arc<OrderRequest> {
        &self.order
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    pub(crate) fn name(&self) -> Option<&ext::IntentId> {
        self.name.as_ref()
    }

    /// Returns what all of its sends carry, to recognise its order by.
    pub(crate) fn tag(&self) -> Option<Tag> {
        self.tag
    }

    /// Gives it its tag, once.
    pub(crate) fn set_tag(&mut self, tag: Tag) {
        self.tag.get_or_insert(tag);
    }

    /// Takes it away: a send of it leaves without.
    pub(crate) fn drop_tag(&mut self) {
        self.tag = None;
    }

    /// Returns the trading day of its first send or, before that, of its call.
    pub(crate) fn day(&self) -> TradingDay {
        self.day
    }

    /// Returns when its caller asked for it, on the clock of ages.
    pub(crate) fn opened(&self) -> Duration {
        self.opened
    }

    /// True if it was sent so near midnight that it may be listed on either day.
    pub(crate) fn at_midnight(&self) -> bool {
        self.at_midnight
    }

    /// True if it was lost before midnight and may still block later orders.
    pub(crate) fn is_block(&self) -> bool {
        self.block.is_some()
    }

    pub(crate) fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    pub(crate) fn phase(&self) -> &Phase {
        &self.phase
    }

    /// True while its caller waits.
    pub(crate) fn has_caller(&self) -> bool {
        self.caller_waits
    }

    pub(crate) fn has_baseline(&self) -> bool {
        self.has_baseline
    }

    pub(crate) fn token_refused(&self) -> bool {
        self.token_refused
    }

    pub(crate) fn was_resend_rejected(&self) -> bool {
        self.resend_rejected
    }

    pub(crate) fn doubt(&self) -> Option<&Doubt> {
        self.doubt.as_deref()
    }

    /// Returns how many orders of it appeared late.
    #[cfg(test)]
    pub(crate) fn late(&self) -> usize {
        self.late
    }

    /// Adds an attempt whose body is not polled yet.
    pub(crate) fn begin(&mut self, begun: LogicalTime, session: Session) {
        // Nearly every order has one, and all of a day are kept.
        self.attempts.reserve_exact(1);
        self.attempts.push(Attempt::new(begun, session));
    }

    pub(crate) fn attempt(&self, index: usize) -> Option<&Attempt> {
        self.attempts.get(index)
    }

    /// Notes that an attempt leaves; returns its session.
    pub(crate) fn send(&mut self, index: usize, sent: Sent, near_midnight: bool) -> Option<Session> {
        self.at_midnight |= near_midnight;
        let attempt = self.attempts.get_mut(index)?;
        attempt.set_state(AttemptState::InFlight(sent));
        self.phase = Phase::Sending;
        Some(attempt.session())
    }

    /// Notes, at its first send, its trading day and whether its session's list is known.
    pub(crate) fn date(&mut self, day: TradingDay, has_baseline: bool) {
        (self.day, self.has_baseline) = (day, has_baseline);
    }

    /// Notes that a list of its session shows no order that could be its.
    pub(crate) fn give_baseline(&mut self) {
        self.has_baseline = true;
    }

    /// Voids an attempt whose body was polled and withheld; false if it is not open any more.
    pub(crate) fn withhold(&mut self, index: usize) -> bool {
        let open = self.attempts.get_mut(index).filter(|found| matches!(found.state(), AttemptState::Open));
        open.map(|found| found.set_state(AttemptState::Void)).is_some()
    }

    /// Takes back an unused grant; false if it had no permission to send.
    pub(crate) fn judge_again(&mut self) -> bool {
        match self.phase {
            Phase::Granted => self.phase = Phase::Doubt,
            Phase::Cleared => {}
            _ => return false,
        }
        true
    }

    pub(crate) fn void(&mut self, index: usize) {
        self.set_state(index, AttemptState::Void);
    }

    pub(crate) fn acknowledge(&mut self, index: usize, sent: Sent) {
        self.set_state(index, AttemptState::Acknowledged(sent));
    }

    /// Notes that nothing proves what became of an attempt.
    pub(crate) fn lose(&mut self, index: usize, sent: Sent, never: Option<Never>) {
        self.set_state(index, AttemptState::Doubt { sent, settled: None, never });
    }

    /// Notes that an attempt was refused, by the service's word.
    pub(crate) fn refuse(&mut self, index: usize, sent: Sent) {
        self.set_state(index, AttemptState::Refused(sent));
    }

    fn set_state(&mut self, index: usize, state: AttemptState) {
        if let Some(found) = self.attempts.get_mut(index) {
            found.set_state(state);
        }
    }

    /// Notes that, by the lateness bound, no order of an attempt can appear from here on.
    pub(crate) fn settle(&mut self, index: usize, at: LogicalTime) {
        if let Some(found) = self.attempts.get_mut(index)
            && let AttemptState::Doubt { settled, .. } = found.state_mut()
        {
            *settled = Some(at);
        }
    }

    /// Counts settled attempts as unsettled again, because a resend was refused; returns which.
    pub(crate) fn unsettle(&mut self) -> Vec<usize> {
        self.resend_rejected = true;
        let settled = self.attempts.iter_mut().enumerate().filter_map(|(index, attempt)| {
            let AttemptState::Doubt { settled, .. } = attempt.state_mut() else { return None };
            settled.take().map(|_| index)
        });
        settled.collect()
    }

    /// Puts every refused attempt in doubt; returns which.
    pub(crate) fn doubt_refused(&mut self) -> Vec<usize> {
        let refused = self.attempts.iter_mut().enumerate().filter_map(|(index, attempt)| {
            let sent = attempt.refused()?;
            attempt.set_state(AttemptState::Doubt { sent, settled: None, never: Some(Never::Opaque) });
            Some(index)
        });
        refused.collect()
    }

    /// Notes the identifier that an answer gave it.
    pub(crate) fn note_answer(&mut self, order_id: &Arc<str>) {
        self.answered = Some(order_id.clone());
    }

    /// Returns the identifier that an answer gave it, although the answer may be withdrawn by now.
    pub(crate) fn answered(&self) -> Option<&Arc<str>> {
        self.answered.as_ref()
    }

    /// Puts every acknowledged attempt in doubt and forbids another send; returns which, and when each was sent.
    pub(crate) fn disbelieve(&mut self) -> Vec<(usize, Sent)> {
        let mut doubted = Vec::new();
        for (index, attempt) in self.attempts.iter_mut().enumerate() {
            let never = Some(Never::Success);
            match *attempt.state() {
                AttemptState::Acknowledged(sent) => {
                    doubted.push((index, sent));
                    attempt.set_state(AttemptState::Doubt { sent, settled: None, never });
                }
                AttemptState::Doubt { sent, settled, .. } => {
                    attempt.set_state(AttemptState::Doubt { sent, settled, never });
                }
                AttemptState::Open
                | AttemptState::InFlight(_)
                | AttemptState::Refused(_)
                | AttemptState::Void => {}
            }
        }
        doubted
    }

    /// Puts every attempt without an answer in doubt, after a restart; returns which.
    pub(crate) fn restart(&mut self, now: Duration, aging: Duration) -> Vec<usize> {
        self.caller_waits = false;
        let unanswered = self.attempts.iter_mut().enumerate().filter_map(|(index, attempt)| {
            let (sent, never) = match *attempt.state() {
                // It was begun, and nothing can tell any more whether it left.
                AttemptState::Open => (Sent { seq: attempt.begun(), at: now, aging }, Never::Restart),
                AttemptState::InFlight(sent) => (sent, Never::Restart),
                AttemptState::Doubt { sent, never, .. } => (sent, never.unwrap_or(Never::Restart)),
                AttemptState::Void | AttemptState::Refused(_) | AttemptState::Acknowledged(_) => return None,
            };
            attempt.set_state(AttemptState::Doubt { sent, settled: None, never: Some(never) });
            Some(index)
        });
        unanswered.collect()
    }

    /// Notes that no send of it may have placed an order.
    pub(crate) fn rest(&mut self) {
        self.phase = Phase::Idle;
    }

    /// Searches for its order.
    pub(crate) fn search(&mut self, doubt: Doubt) {
        self.phase = Phase::Doubt;
        self.doubt = Some(Box::new(doubt));
    }

    /// Allows another send after an absence.
    pub(crate) fn grant(&mut self) {
        self.phase = Phase::Granted;
    }

    /// Waits for a list that confirms a refusal.
    pub(crate) fn await_check(&mut self, check: RefusalCheck) {
        self.phase = Phase::Refused(check);
    }

    /// Notes whether the latest refusal was one of the token (401).
    pub(crate) fn set_token_refused(&mut self, by_token: bool) {
        self.token_refused = by_token;
    }

    /// Allows another send after a refusal that a list has confirmed.
    pub(crate) fn clear(&mut self) {
        self.phase = Phase::Cleared;
    }

    pub(crate) fn finish(&mut self, finding: Finding) {
        (self.phase, self.ruled) = (Phase::Finished(finding), false);
    }

    /// Notes that a user ruled on how it ended.
    pub(crate) fn note_ruled(&mut self) {
        self.ruled = true;
    }

    pub(crate) fn is_ruled(&self) -> bool {
        self.ruled
    }

    /// Notes that a caller asks for it again.
    pub(crate) fn ask_again(&mut self, now: Duration) {
        (self.caller_waits, self.opened) = (true, now);
    }

    /// Notes that its caller is gone.
    pub(crate) fn abandon(&mut self) {
        self.caller_waits = false;
    }

    /// Takes its name away, so that a caller can use it for another order.
    pub(crate) fn drop_name(&mut self) {
        self.name = None;
    }

    pub(crate) fn rename_day(&mut self, day: TradingDay) {
        self.day = day;
    }

    /// Extends the search by this time; false if that was done before, or nothing is searched for.
    pub(crate) fn prolong(&mut self, by: Duration) -> bool {
        self.doubt.as_mut().is_some_and(|doubt| doubt.prolong(by))
    }

    /// Counts a valid list of this session that was asked for at this position.
    pub(crate) fn count_list(&mut self, session: Session, evidence: LogicalTime) {
        let same = self.session() == Some(session);
        if let Some(doubt) = self.doubt.as_mut() {
            doubt.count_list(same, evidence);
        }
    }

    /// Notes that the latest read was useless.
    pub(crate) fn note_fault(&mut self, fault: Fault) {
        if let Some(doubt) = self.doubt.as_mut() {
            doubt.note_fault(fault);
        }
    }

    /// Blocks later orders until lists that are read from then on show nothing of it.
    pub(crate) fn block_from(&mut self, from: Duration) {
        self.block.get_or_insert(Block::new(from));
    }

    /// Lets those lists count only from this time on, after a restart.
    pub(crate) fn put_off_block(&mut self, from: Duration) {
        if let Some(block) = &mut self.block {
            block.put_off(from);
        }
    }

    /// Counts a list read at this time for its block; true if so many in a row have shown nothing of it.
    pub(crate) fn pass_block(&mut self, at: Duration, session: Session, shown: bool, needed: u8) -> bool {
        self.block.as_mut().is_some_and(|block| block.pass(at, session, shown, needed))
    }

    /// Notes that the lists behind its resend may have lacked its order; true if that is news.
    pub(crate) fn suspect(&mut self) -> bool {
        !std::mem::replace(&mut self.suspected, true)
    }

    /// Counts an order of it that appeared late.
    pub(crate) fn count_late(&mut self) {
        self.late += 1;
    }

    /// Takes back that one did: it may be another intent's.
    pub(crate) fn uncount_late(&mut self) {
        self.late = self.late.saturating_sub(1);
    }

    /// Returns its first send that may have placed an order, without those that were refused or rejected.
    pub(crate) fn first_sent(&self) -> Option<Sent> {
        self.attempts.iter().find_map(Attempt::standing)
    }

    /// Returns its first send that left, also if it was refused or rejected.
    pub(crate) fn first_left(&self) -> Option<Sent> {
        self.attempts.iter().find_map(|attempt| attempt.standing().or(attempt.refused()))
    }

    /// Returns the session of its first send that may have placed an order.
    pub(crate) fn session(&self) -> Option<Session> {
        self.attempts.iter().find(|attempt| attempt.standing().is_some()).map(|attempt| attempt.session())
    }

    pub(crate) fn resends(&self) -> u32 {
        let standing = self.attempts.iter().filter(|attempt| attempt.standing().is_some()).count();
        u32::try_from(standing.saturating_sub(1)).unwrap_or(u32::MAX)
    }

    /// True if an order first seen at this position could be one of its own.
    pub(crate) fn could_own(&self, first_seen: LogicalTime) -> bool {
        self.first_left().is_some_and(|sent| sent.seq < first_seen)
    }

    /// True if it is decided, and one of its sends was lost for good: an order of that send may still appear.
    pub(crate) fn is_presumed_dead(&self) -> bool {
        let Some(finding) = self.finding() else { return false };
        let lost = |attempt: &&Attempt| matches!(attempt.state(), AttemptState::Doubt { .. });
        let told = usize::from(matches!(finding, Finding::Recovered { .. }));
        self.attempts.iter().filter(lost).count() > told + self.late
    }

    /// True if its caller was told that no list shows it.
    pub(crate) fn was_told_absent(&self) -> bool {
        matches!(self.finding(), Some(Finding::Unresolved(it)) if it.reason == Reason::NotObserved)
    }

    /// True if, by the lateness bound, an order of a lost send may still appear.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.attempts
            .iter()
            .any(|attempt| matches!(attempt.state(), AttemptState::Doubt { settled: None, .. }))
    }

    /// True if a send of it that may have placed an order left in this session.
    pub(crate) fn was_sent_in(&self, session: Session) -> bool {
        let left = |attempt: &Attempt| attempt.standing().or(attempt.refused()).is_some();
        self.attempts.iter().any(|attempt| left(attempt) && attempt.session() == session)
    }

    /// True while its order is searched for, or was found absent and not sent again yet.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Doubt | Phase::Granted)
    }

    pub(crate) fn finding(&self) -> Option<&Finding> {
        match &self.phase {
            Phase::Finished(finding) => Some(finding),
            _ => None,
        }
    }

    /// True if its name stands for it on later days, too: it is not decided, or only without certainty.
    pub(crate) fn keeps_name(&self) -> bool {
        match self.finding() {
            Some(Finding::Unresolved(unresolved)) => self.name.is_some() && !unresolved.reason.is_absence(),
            finding => finding.is_none(),
        }
    }

    /// Returns the order id that its caller was told.
    pub(crate) fn order_id(&self) -> Option<&Arc<str>> {
        match self.finding()? {
            Finding::Acknowledged { order_id } | Finding::Recovered { order_id, .. } => Some(order_id),
            Finding::Unresolved(_) | Finding::Refused | Finding::Rejected => None,
        }
    }

    /// True if its caller was told that it may be this order.
    pub(crate) fn was_told_of(&self, order_id: &str) -> bool {
        self.told_candidates().iter().any(|candidate| candidate == order_id)
    }

    /// Returns the orders that its caller was told it may be.
    pub(crate) fn told_candidates(&self) -> &[String] {
        match self.finding() {
            Some(Finding::Unresolved(unresolved)) => &unresolved.candidates,
            _ => &[],
        }
    }

    /// True if a user has ruled that it is not this order, by ruling that it was not placed.
    pub(crate) fn is_ruled_out(&self, order_id: &str) -> bool {
        self.was_told_absent() && self.was_told_of(order_id)
    }

    /// Returns why it must never be sent again, the gravest reason first.
    pub(crate) fn never(&self) -> Option<Never> {
        let reasons = || {
            self.attempts.iter().filter_map(|attempt| match *attempt.state() {
                AttemptState::Doubt { never, .. } => never,
                _ => None,
            })
        };
        reasons().find(|never| *never == Never::Success).or_else(|| reasons().next())
    }
}
