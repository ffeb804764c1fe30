//! Decides when an order that is not listed is absent, and what follows.
//!
//! An absence rests on the lists alone: enough valid reads, the last of them begun after the lateness bound of every
//! send in doubt of the key. The content of the lost answer does not matter, with one exception: a success without an
//! id says that the order was taken. Then the list and the service contradict each other, an assumption behind every
//! absence is broken for this key, and nothing is concluded about its later orders. An answer that says `error`, even
//! with a 200, agrees with the list; its order is watched for like that of any other lost send.

use std::time::Duration;

use steadfast_spec::OrderType;

use crate::{
    numbers::{IntentNo, LogicalTime},
    protocol::{
        attempt::{Attempt, AttemptState, Never},
        effect::Effect,
        fidelity::ListFidelity,
        intent::Intent,
        order_event::OrderEvent,
        order_protocol::OrderProtocol,
        phase::{Finding, Phase},
        resolution::Reason,
    },
};

impl OrderProtocol {
    /// True if all evidence says, at this moment, that no order of the intent exists.
    pub(crate) fn is_absent(&self, intent: &Intent) -> bool {
        self.has_looked(intent)
            && !self.is_blocked(intent.key())
            && self.intent_strict(intent).next().is_none()
            && !self.is_vetoed(intent)
            && !self.may_be_a_twins_find(intent)
    }

    /// True if an equal order of ours claimed a listed one, and its own send has no bound on lateness.
    ///
    /// Then that send may still arrive, and the claimed order may be this intent's.
    fn may_be_a_twins_find(&self, intent: &Intent) -> bool {
        if !self.intents.has_endless() {
            return false;
        }
        self.finished_of(intent.key()).any(|(_, twin)| {
            let endless = |attempt: &Attempt| {
                matches!(attempt.state(), AttemptState::Doubt { never: Some(Never::Opaque), .. })
            };
            let Some(Finding::Recovered { order_id, .. }) = twin.finding() else { return false };
            twin.order() == intent.order()
                && twin.day() == self.time.day()
                && twin.attempts().iter().any(endless)
                && self.listed.first_seen(order_id).is_some_and(|seen| intent.could_own(seen))
        })
    }

    /// True if the intent is young enough to be sent again at `at`. Time in suspension counts.
    pub(crate) fn is_young(&self, intent: &Intent, at: Duration) -> bool {
        let limit = self.settings.max_age(intent.order().order_type());
        intent
            .first_sent()
            .is_some_and(|sent| at.saturating_add(self.time.slept()).saturating_sub(sent.aging) <= limit)
    }

    /// True if this is another send of a market order whose first send is too long ago: the price may have moved.
    ///
    /// An order with a limit price may wait for the quota.
    pub(crate) fn is_stale(&self, intent: &Intent) -> bool {
        matches!(intent.order().order_type(), OrderType::Market | OrderType::StopMarket)
            && intent.first_left().is_some_and(|sent| {
                let age = self.time.aging().saturating_sub(sent.aging);
                age > self.settings.max_age(intent.order().order_type())
            })
    }

    /// True if an order waits to be sent once more and has become too old for it.
    pub(crate) fn is_too_old(&self, number: IntentNo) -> bool {
        let intent = self.intents.get(&number);
        intent.is_some_and(|intent| *intent.phase() == Phase::Cleared && self.is_stale(intent))
    }

    // Concludes an absence: the order is sent again if every rule allows it, and reported otherwise.
    pub(crate) fn conclude_absence(&mut self, number: IntentNo, out: &mut Vec<Effect>) {
        let Some(intent) = self.intents.get(&number) else { return };
        if *intent.phase() == Phase::Granted {
            // A grant is judged again at the body poll and lapses there.
            return;
        }
        // Asked first: it needs no look at the listed orders.
        let has_looked = self.has_looked(intent);
        if !has_looked && (!self.has_looked_elsewhere(intent) || self.can_look(intent)) {
            return;
        }
        if self.intent_strict(intent).next().is_some() {
            return;
        }
        if self.may_be_told_apart(intent) || self.may_be_claimed_by_tag(intent) {
            return;
        }
        let verdict = match (has_looked, self.is_vetoed(intent)) {
            (true, true) => Err(Reason::NearMatch),
            (true, false) => self.resend_allowed(intent),
            (false, true) => Err(self.near_reason(intent)),
            (false, false) => Err(Reason::SessionChanged),
        };
        match verdict {
            Ok(()) => {
                let Some(intent) = self.intents.get_mut(&number) else { return };
                intent.grant();
                let absent = OrderEvent::Absent { intent: number, name: intent.name().cloned() };
                out.extend([Effect::Report(absent), Effect::Decided(number)]);
            }
            Err(reason) => self.finish_unresolved(number, reason, out),
        }
    }

    /// True after enough valid reads, the last begun after every attempt in doubt of the key had settled.
    pub(crate) fn has_looked(&self, intent: &Intent) -> bool {
        let Some(doubt) = intent.doubt() else { return false };
        doubt.here.reads >= self.rules.negatives && self.is_settled(intent, doubt.here.latest)
    }

    /// True if the list of the intent's own session can be read, even if that session is over.
    fn can_look(&self, intent: &Intent) -> bool {
        intent.session().is_some_and(|session| self.sessions.can_read(session))
    }

    /// True if a send now would go in another session than the intent's.
    fn has_changed_session(&self, intent: &Intent) -> bool {
        self.sessions.current().is_some_and(|now| intent.session().is_some_and(|then| then != now))
    }

    fn has_looked_elsewhere(&self, intent: &Intent) -> bool {
        let Some(doubt) = intent.doubt() else { return false };
        doubt.elsewhere.reads >= self.rules.negatives && self.is_settled(intent, doubt.elsewhere.latest)
    }

    fn is_settled(&self, intent: &Intent, evidence: LogicalTime) -> bool {
        if self.rules.cohort {
            return self.keys.get(intent.key()).is_some_and(|key| key.is_settled_before(evidence));
        }
        is_settled_itself(intent, evidence)
    }

    /// Extends a search whose budget is spent, once, if all that it lacks is that others of its key settle.
    ///
    /// Each order that is lost meanwhile keeps it waiting for as long as that one takes to settle. The search gets
    /// that time on top of its budget once only: on a busy key, orders may be lost without end.
    pub(crate) fn prolong(&mut self, number: IntentNo) -> bool {
        let settles = self.settings.gateway_timeout.saturating_add(self.settings.lateness);
        let waits = self.intents.get(&number).is_some_and(|intent| self.waits_for_others(intent));
        waits && self.intents.get_mut(&number).is_some_and(|intent| intent.prolong(settles))
    }

    /// True if an intent would be absent by the lists that were read, had the others of its key settled before.
    fn waits_for_others(&self, intent: &Intent) -> bool {
        let Some(doubt) = intent.doubt() else { return false };
        doubt.fault.is_none()
            && doubt.here.reads >= self.rules.negatives
            && is_settled_itself(intent, doubt.here.latest)
            && !self.is_settled(intent, doubt.here.latest)
            && !self.is_vetoed(intent)
    }

    /// Checks whether our orders would be recognised in a list.
    pub(crate) fn recognises_orders(&self) -> Result<(), Reason> {
        match self.fidelity.of_lists() {
            // If one order of ours is listed under another instrument, the next may be too.
            ListFidelity::Unlike => Err(Reason::Uncalibrated),
            ListFidelity::Failed if self.settings.positive_control => Err(Reason::Uncalibrated),
            ListFidelity::Untested if self.settings.positive_control => Err(Reason::NoPositiveControl),
            ListFidelity::Untested | ListFidelity::Recognised | ListFidelity::Failed => Ok(()),
        }
    }

    pub(crate) fn resend_allowed(&self, intent: &Intent) -> Result<(), Reason> {
        if intent.never() == Some(Never::Success) {
            return Err(Reason::AcceptedUnknownId);
        }
        self.recognises_orders()?;
        let barred = self.is_blocked(intent.key())
            || intent.never().is_some()
            || !intent.has_caller()
            || !self.is_young(intent, self.time.now())
            || intent.was_resend_rejected()
            || intent.at_midnight()
            // By the service's clock the day may be over: its lists are empty then, whatever was placed.
            || self.time.is_midnight_near()
            || self.has_changed_session(intent)
            || self.may_be_a_twins_find(intent);
        if barred || self.settings.max_resends() == 0 {
            return Err(Reason::NotObserved);
        }
        if intent.resends() >= self.settings.max_resends() {
            return Err(Reason::ResendsExhausted);
        }
        Ok(())
    }
}

/// True if, by the lateness bound, no order of the intent could appear any more when the evidence began.
fn is_settled_itself(intent: &Intent, evidence: LogicalTime) -> bool {
    intent.attempts().iter().all(|attempt| match *attempt.state() {
        AttemptState::Doubt { settled, .. } => settled.is_some_and(|settled| settled < evidence),
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use steadfast_call::{Outcome, Resend};
    use steadfast_spec::OrderRequest;

    use super::*;
    use crate::{
        numbers::{AttemptNo, ReadNo, Session, TradingDay},
        protocol::{
            event::{Answer, Event},
            resolution::Verdict,
            wake::Purpose,
        },
        settings::Settings,
    };

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    /// Sends an order now and loses its answer a second later.
    fn lose(protocol: &mut OrderProtocol, intent: IntentNo, at: Duration, answer: Answer) {
        let fields = [
            ("symId", "S"),
            ("qty", "1"),
            ("side", "buy"),
            ("type", "limit"),
            ("limitPrice", "5"),
            ("product", "delivery"),
            ("validity", "day"),
        ];
        let order = Arc::new(OrderRequest::from_fields(fields).unwrap());
        let attempt = AttemptNo { intent, index: 0 };
        protocol.step(at, Event::Opened { intent, order, name: None });
        protocol.step(at, Event::Begun { attempt, session: Session::default() });
        protocol.step(at, Event::Sent(attempt));
        let outcome = Outcome::Unknown { resend: Resend::AfterAbsence };
        protocol.step(at + seconds(1), Event::Closed { attempt, outcome, answer });
    }

    /// Reads a list without orders.
    fn read(protocol: &mut OrderProtocol, at: u64) {
        let read = ReadNo(at);
        protocol.step(seconds(at), Event::ReadOpened { read, purpose: Purpose::Verification });
        protocol.step(seconds(at), Event::ReadStarted { read, session: Session::default() });
        protocol.step(seconds(at), Event::ReadEnded { read, list: Ok(Vec::new()) });
    }

    /// Searches for an order for 30 s, while others are lost every 10 s until then.
    fn lost_among_others(until: u64) -> (OrderProtocol, IntentNo) {
        let settings = Settings::default().verification_budget(seconds(30));
        let mut protocol = OrderProtocol::new(Arc::new(settings), TradingDay(0));
        read(&mut protocol, 0);
        lose(&mut protocol, IntentNo(0), seconds(0), Answer::Status(504));
        for (n, at) in (1..).zip((5..until).step_by(10)) {
            // The gateway's own 504: settled after 15 s.
            lose(&mut protocol, IntentNo(n), seconds(at), Answer::Status(504));
            read(&mut protocol, at + 4);
        }
        (protocol, IntentNo(0))
    }

    #[test]
    fn a_search_that_only_waits_for_others_outlives_its_budget() {
        let (mut protocol, first) = lost_among_others(30);
        for at in 35..=40 {
            read(&mut protocol, at);
            assert_eq!(protocol.verdict(first), Verdict::Pending, "the one of 25 s settles at 41 s");
        }
        read(&mut protocol, 42);
        assert_eq!(protocol.verdict(first), Verdict::Resend);
    }

    #[test]
    fn a_search_among_orders_lost_for_ever_ends_all_the_same() {
        let (mut protocol, first) = lost_among_others(70);
        protocol.step(seconds(75), Event::Tick);
        assert_eq!(protocol.verdict(first), Verdict::Pending);
        // A second until it was lost, its budget, and the time in which any order settles.
        protocol.step(seconds(1 + 30 + 45), Event::Tick);
        let Verdict::Unresolved(unresolved) = protocol.verdict(first) else { panic!("still looked for") };
        assert_eq!(unresolved.reason, Reason::Budget);
    }

    #[test]
    fn a_search_that_reads_nothing_ends_with_its_budget() {
        let (mut protocol, first) = lost_among_others(6);
        protocol.step(seconds(1 + 30), Event::Tick);
        let Verdict::Unresolved(unresolved) = protocol.verdict(first) else { panic!("still looked for") };
        assert_eq!(unresolved.reason, Reason::Budget);
    }
}
