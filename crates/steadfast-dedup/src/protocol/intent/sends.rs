//! The sends of an intent.

use std::{sync::Arc, time::Duration};

use crate::{
    numbers::{LogicalTime, Session},
    protocol::{
        attempt::{Attempt, AttemptState, Never, ORPHANED, Sent},
        intent::Intent,
        phase::Phase,
    },
};

impl Intent {
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

    /// Voids an attempt whose body was polled and withheld; false if it is not open any more.
    pub(crate) fn withhold(&mut self, index: usize) -> bool {
        let open = self.attempts.get_mut(index).filter(|found| matches!(found.state(), AttemptState::Open));
        open.map(|found| found.set_state(AttemptState::Void)).is_some()
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
    ///
    /// The gateway may pass each of them on until `base`.
    pub(crate) fn restart(&mut self, now: Duration, aging: Duration, base: Duration) -> Vec<usize> {
        self.caller_waits = false;
        if let Some(doubt) = &mut self.doubt {
            doubt.base = base;
        }
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

    /// True if, by the lateness bound, an order of a lost send may still appear.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.attempts
            .iter()
            .any(|attempt| matches!(attempt.state(), AttemptState::Doubt { settled: None, .. }))
    }

    /// Returns the last instant at which the gateway may pass on an order of a lost send, if it lost one.
    pub(crate) fn arrives_until(&self) -> Option<Duration> {
        let base = self.doubt()?.base;
        let may_be_held = self.attempts.iter().any(Attempt::may_be_held);
        Some(if may_be_held { base.saturating_add(ORPHANED) } else { base })
    }

    /// True if it is decided, and by the lateness bound an order of a lost send may still appear.
    ///
    /// Where a kernel may hold a request, that is longer than its search takes.
    pub(crate) fn may_appear(&self, now: Duration, lateness: Duration) -> bool {
        let arrives = || self.arrives_until().is_some_and(|at| at.saturating_add(lateness) > now);
        self.is_presumed_dead() && (self.is_unsettled() || arrives())
    }

    /// True if a send of it that may have placed an order left in this session.
    pub(crate) fn was_sent_in(&self, session: Session) -> bool {
        let left = |attempt: &Attempt| attempt.standing().or(attempt.refused()).is_some();
        self.attempts.iter().any(|attempt| left(attempt) && attempt.session() == session)
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

    /// True if a send of it was refused or rejected.
    pub(crate) fn was_refused(&self) -> bool {
        self.attempts().iter().any(|attempt: &Attempt| attempt.refused().is_some())
    }

    /// Returns the session of its last refused send.
    pub(crate) fn last_refused(&self) -> Option<Session> {
        let mut refused =
            self.attempts().iter().rev().filter(|attempt: &&Attempt| attempt.refused().is_some());
        refused.next().map(Attempt::session)
    }
}
