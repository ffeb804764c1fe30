//! Applies the events of a send to the state of its order.

use std::{sync::Arc, time::Duration};

use steadfast_call::{Outcome, Resend, ext};
use steadfast_spec::OrderRequest;

use crate::{
    numbers::{AttemptNo, IntentNo, Session},
    protocol::{
        attempt::{AttemptState, Never, Sent},
        doubt::Doubt,
        effect::Effect,
        event::Answer,
        intent::Intent,
        listed_orders::owning::GivenId,
        order_event::OrderEvent,
        order_protocol::OrderProtocol,
        phase::Finding,
        resolution::Reason,
    },
    settings::policy::VerifyOn,
};

impl OrderProtocol {
    pub(crate) fn open(
        &mut self,
        number: IntentNo,
        order: Arc<OrderRequest>,
        name: Option<ext::IntentId>,
        out: &mut Vec<Effect>,
    ) {
        let intent = Intent::new(order, name.clone(), self.time.day(), self.time.aging());
        self.join_line(intent.key(), number);
        self.intents.open(number, intent);
        if let Some(name) = &name {
            self.hold_repeat(number, name, out);
        }
    }

    pub(crate) fn begin(&mut self, attempt: AttemptNo, session: Session) {
        let begun = self.time.tick();
        let session = self.scoped(session);
        self.sessions.enter(session);
        let list = self.listed.lists.meet(session);
        // A new session has its own list. Until that is known, orders in it may be old.
        if !list.is_asked() {
            list.ask();
            self.reads.want_baseline(begun);
        }
        let Some(intent) = self.intents.get_mut(&attempt.intent) else { return };
        debug_assert_eq!(intent.attempts().len(), attempt.index, "attempts are numbered in order");
        intent.begin(begun, session);
    }

    pub(crate) fn send(&mut self, attempt: AttemptNo, out: &mut Vec<Effect>) {
        let sent = Sent { seq: self.time.tick(), at: self.time.now(), aging: self.time.aging() };
        self.fidelity.note_send(sent.seq);
        self.mark_sent(attempt, sent);
        if let Some(day) = self.time.later_by_date() {
            self.name_undecided_until(day, out);
        }
    }

    fn mark_sent(&mut self, attempt: AttemptNo, sent: Sent) {
        let (day, midnight) = (self.time.day(), self.time.is_midnight_near());
        self.intents.send(attempt.intent);
        let Some(intent) = self.intents.get_mut(&attempt.intent) else { return };
        let first = intent.first_sent().is_none();
        let Some(session) = intent.send(attempt.index, sent, midnight) else { return };
        if first {
            let has_baseline = self.listed.lists.session(session).is_some_and(|list| {
                let fresh = |at| self.settings.is_fresh(at, intent.opened());
                list.has_baseline() && list.complete_at().is_some_and(fresh)
            });
            intent.date(day, has_baseline);
        } else {
            self.tally.resend();
        }
        self.keys.send(intent.key(), attempt.intent, intent.order());
    }

    // The body was polled and nothing left: the attempt is void. A grant is judged again.
    pub(crate) fn withhold(&mut self, attempt: AttemptNo, out: &mut Vec<Effect>) {
        let Some(intent) = self.intents.get_mut(&attempt.intent) else { return };
        // A transport may poll a body long after its answer was given up. That changes nothing.
        if intent.withhold(attempt.index) && intent.judge_again() {
            let key = intent.key().clone();
            self.resolve(&key, out);
        }
    }

    pub(crate) fn close(
        &mut self,
        attempt: AttemptNo,
        outcome: Outcome,
        answer: Answer,
        out: &mut Vec<Effect>,
    ) {
        let Some(found) =
            self.intents.get(&attempt.intent).and_then(|intent| intent.attempts().get(attempt.index))
        else {
            return;
        };
        let sent = match *found.state() {
            AttemptState::InFlight(sent) => Some(sent),
            AttemptState::Open => None,
            // Already closed.
            AttemptState::Void
            | AttemptState::Refused(_)
            | AttemptState::Acknowledged(_)
            | AttemptState::Doubt { .. } => return,
        };
        // An answer to a body that was never polled: a layer below buffered it. It left after the attempt was begun.
        let assumed = Sent { seq: found.begun(), at: self.time.now(), aging: self.time.aging() };
        match outcome {
            Outcome::NotExecuted if self.rules.refusals_checked => match sent {
                Some(sent) => self.refuse(attempt, sent, answer, out),
                // Refused by its head alone: nothing of the order has left.
                None => self.void(attempt, sent, Voided::Unexecuted, out),
            },
            Outcome::NotSent | Outcome::NotExecuted => self.void(attempt, sent, Voided::Unexecuted, out),
            Outcome::Rejected => self.void(attempt, sent, Voided::Rejected, out),
            Outcome::Accepted { order_id: Some(order_id) } => {
                if sent.is_none() {
                    self.mark_sent(attempt, assumed);
                }
                self.acknowledge(attempt, sent.unwrap_or(assumed), order_id, out);
            }
            outcome => {
                if sent.is_none() {
                    self.mark_sent(attempt, assumed);
                }
                let never = self.forbids_resend(&outcome, answer);
                let base = self.lateness_base(&outcome, answer);
                self.doubt(attempt, sent.unwrap_or(assumed), never, (answer, base), out);
            }
        }
    }

    /// Returns why a send with this end must never be followed by another, if so.
    fn forbids_resend(&self, outcome: &Outcome, answer: Answer) -> Option<Never> {
        let until_absent = matches!(outcome, Outcome::Unknown { resend: Resend::AfterAbsence });
        match answer {
            // A kernel, or a hop that took the request, may deliver it at any later time: no bound holds.
            Answer::None | Answer::Cut => Some(Never::Opaque),
            _ if until_absent => None,
            Answer::Status(200..=299) => Some(Never::Success),
            Answer::Status(400..=599) if self.settings.resend_undocumented => None,
            Answer::Status(_) | Answer::Denied | Answer::Ended => Some(Never::Opaque),
        }
    }

    /// Returns the base of lateness: the last instant at which the gateway may have passed the order on.
    fn lateness_base(&self, outcome: &Outcome, answer: Answer) -> Duration {
        let until_absent = matches!(outcome, Outcome::Unknown { resend: Resend::AfterAbsence });
        let answered = match answer {
            // The gateway's own word. Only errors that it documents count: another may come from a proxy in front,
            // while the gateway still works on the order.
            Answer::Denied | Answer::Status(200..=299) => true,
            Answer::Status(_) => until_absent,
            Answer::Ended | Answer::Cut | Answer::None => false,
        };
        // The connection has ended by now, where the transport reports its end.
        if answered { self.time.now() } else { self.time.now().saturating_add(self.settings.gateway_timeout) }
    }

    fn void(&mut self, attempt: AttemptNo, sent: Option<Sent>, how: Voided, out: &mut Vec<Effect>) {
        let Some(intent) = self.intents.get_mut(&attempt.intent) else { return };
        intent.void(attempt.index);
        // The rejection may be untrue: a list may show the order. If another send of the intent stands, its order is
        // searched for anyway.
        if let (Voided::Rejected, Some(sent), None) = (how, sent, intent.first_sent()) {
            intent.refuse(attempt.index, sent);
        }
        if sent.is_none() && how == Voided::Unexecuted {
            // It never left, so it never barred another order.
            return;
        }
        let key = intent.key().clone();
        match (intent.first_sent(), how) {
            // The sends before it were refused, and that is all that a list has confirmed.
            (None, Voided::Unexecuted) if intent.was_refused() => {
                intent.clear();
                self.intents.refuse(attempt.intent);
            }
            // A list may show its order all the same, already before the call ends.
            (None, Voided::Rejected) => {
                intent.rest();
                self.keys.reject(&key, attempt.intent);
            }
            // Nothing of it stands: as if it had never been sent.
            (None, Voided::Unexecuted) => {
                intent.rest();
                self.keys.retire(&key, attempt.intent);
            }
            // The resend may have been rejected because the first order took the margin.
            (Some(_), Voided::Rejected) => self.search_again(attempt.intent),
            // The grant stands: the layer may try to send once more.
            (Some(_), Voided::Unexecuted) => intent.grant(),
        }
        self.resolve(&key, out);
    }

    fn acknowledge(&mut self, attempt: AttemptNo, sent: Sent, order_id: Arc<str>, out: &mut Vec<Effect>) {
        let seen = self.time.tick();
        let Some(intent) = self.intents.get_mut(&attempt.intent) else { return };
        let Some(session) = intent.attempt(attempt.index).map(|found| found.session()) else { return };
        intent.acknowledge(attempt.index, sent);
        intent.note_answer(&order_id);
        let unheard = (!intent.has_caller()).then(|| intent.name().cloned());
        let key = intent.key().clone();
        let is_todays = intent.day() == self.time.day();
        let is_listed_otherwise = is_todays && self.is_listed_otherwise(&order_id, attempt.intent);
        // Identifiers may be used again: one of yesterday must not hide one of today, nor be taken for it.
        let claimed = if is_todays {
            self.listed.acknowledge(&order_id, attempt.intent, sent.seq, session, seen, self.time.now())
        } else {
            self.listed.yesterday.acknowledge(&order_id, attempt.intent);
            GivenId::Clean
        };
        if claimed == GivenId::Conflict {
            return self.contradict(attempt.intent, &order_id, out);
        }
        if is_listed_otherwise {
            self.listed.await_ours(&order_id);
        }
        if let Some(name) = unheard {
            let order_id = order_id.to_string();
            out.push(Effect::Report(OrderEvent::PlacedUnheard { intent: attempt.intent, name, order_id }));
        }
        self.finish(attempt.intent, Finding::Acknowledged { order_id }, out);
        self.resolve(&key, out);
    }

    fn doubt(
        &mut self,
        attempt: AttemptNo,
        sent: Sent,
        never: Option<Never>,
        (answer, base): (Answer, Duration),
        out: &mut Vec<Effect>,
    ) {
        let settles = base.saturating_add(self.settings.lateness);
        let today = self.time.day();
        self.search(attempt.intent, base);
        if never == Some(Never::Opaque) {
            self.intents.note_endless();
        }
        let Some(intent) = self.intents.get_mut(&attempt.intent) else { return };
        intent.lose(attempt.index, sent, never);
        let (key, stale) = (intent.key().clone(), intent.day() != today);
        self.keys.unsettle(&key, attempt, settles);
        self.tally.lose(answer);
        if stale {
            self.finish_unresolved(attempt.intent, Reason::EpochChanged, out);
        } else if self.settings.verify_on == VerifyOn::SpecMinimal && answer != Answer::Status(504) {
            self.finish_unresolved(attempt.intent, Reason::NotVerified, out);
        }
        self.resolve(&key, out);
    }

    /// Starts the search for an intent's order.
    pub(crate) fn search(&mut self, number: IntentNo, base: Duration) {
        let from = self.time.tick();
        let Some(intent) = self.intents.get_mut(&number) else { return };
        let now = self.time.now();
        let until = now.saturating_add(self.settings.budget());
        intent.search(Doubt::new(now, from, base, until));
        self.intents.search(number);
    }

    /// Searches once more, for the whole lateness bound, for orders that had been taken for absent.
    fn search_again(&mut self, number: IntentNo) {
        self.search(number, self.time.now());
        let settles = self.time.now().saturating_add(self.settings.lateness);
        let Some(intent) = self.intents.get_mut(&number) else { return };
        for index in intent.unsettle() {
            self.keys.unsettle(intent.key(), AttemptNo { intent: number, index }, settles);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Voided {
    /// It was not sent, or not executed (401, 429).
    Unexecuted,
    /// It was rejected for good.
    Rejected,
}
