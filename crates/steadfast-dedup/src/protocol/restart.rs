//! Restores what an earlier run of the process left behind.
//!
//! The journal is replayed through the same events, with its positions as the clock; this file has the events that
//! only a replay sends. A crash only causes doubt: any send without an answer may have been applied. The time that
//! passed meanwhile counts for nothing, because no clock that outlives the process can be trusted.

use std::sync::Arc;

use steadfast_call::ext;
use steadfast_spec::OrderRequest;

use crate::{
    numbers::{AttemptNo, IntentNo, Session, TradingDay},
    protocol::{
        attempt::{Attempt, AttemptState},
        effect::Effect,
        intent::Intent,
        listed_orders::lists::Source,
        order_protocol::OrderProtocol,
        phase::{Finding, Phase},
        resolution::{Reason, Unresolved},
    },
};

impl OrderProtocol {
    /// Takes in orders that an earlier list held; their records are lost.
    pub(crate) fn know(&mut self, session: Session, order_ids: Vec<String>, complete: bool) {
        let (seen, session, aging) = (self.time.tick(), self.scoped(session), self.time.aging());
        for order_id in order_ids {
            self.listed.know(Source { session, by_poller: complete }, seen, &order_id.into());
        }
        // An order in a list of our own must be in later lists of the session too.
        if complete {
            self.listed.lists.meet(session).restore(aging);
        }
    }

    /// Takes in that an earlier run found the intent's order.
    pub(crate) fn find(
        &mut self,
        number: IntentNo,
        order_id: Arc<str>,
        status: Option<String>,
        out: &mut Vec<Effect>,
    ) {
        let seen = self.time.tick();
        let Some(intent) = self.intents.get(&number) else { return };
        let key = intent.key().clone();
        // The entry that withdrew another intent's answer may be gone, or come later.
        self.dispossess(&order_id, number);
        self.listed.adopt(&order_id, number, seen);
        self.listed.excuse(number);
        self.finish(number, Finding::Recovered { order_id, status }, out);
        self.resolve(&key, out);
    }

    /// Takes in an order of an earlier day that ended without certainty: nothing can be learnt about it today, and its
    /// name is not free.
    pub(crate) fn keep_name(
        &mut self,
        number: IntentNo,
        day: TradingDay,
        order: Arc<OrderRequest>,
        name: ext::IntentId,
    ) {
        if self.intents.holder(&name).is_some() {
            return;
        }
        let mut intent = Intent::new(order, Some(name), day, self.time.aging());
        intent.finish(Finding::Unresolved(Unresolved::new(Reason::EpochChanged, Vec::new())));
        self.intents.open(number, intent);
        self.intents.finish(number);
    }

    /// Puts every send without an answer in doubt again, for the whole time to settle. No caller waits for it.
    pub(crate) fn restart(&mut self, out: &mut Vec<Effect>) {
        self.intents.restore();
        self.reads.end_all();
        self.rejected.release_all();
        self.keys.forget_unsettled();
        self.sessions.leave();
        // Intents with no executed send: their callers are gone, and there is nothing to search for.
        let idle = self.intents.iter().filter(|(_, intent)| {
            let void = |attempt: &Attempt| matches!(attempt.state(), AttemptState::Void);
            intent.finding().is_none() && intent.attempts().iter().all(void)
        });
        // Refused ones need no search either, but are still watched for; those that no list has confirmed wait for one.
        let refused = self.intents.iter().filter(|(_, intent)| {
            let over = |attempt: &Attempt| {
                attempt.standing().is_none() && !matches!(attempt.state(), AttemptState::Open)
            };
            intent.finding().is_none() && intent.was_refused() && intent.attempts().iter().all(over)
        });
        let refused: Vec<_> = refused.map(|(number, _)| number).collect();
        let idle: Vec<_> = idle.map(|(number, _)| number).collect();
        for number in idle {
            self.forget(number, out);
        }
        for number in refused {
            match self.intents.get(&number).map(|intent| intent.phase()) {
                Some(Phase::Idle) => self.end_rejected(number, &mut Vec::new()),
                Some(Phase::Refused(_)) => self.check_again(number),
                _ => self.end_refused(number, &mut Vec::new()),
            }
        }
        let numbers: Vec<_> = self.intents.iter().map(|(number, _)| number).collect();
        for number in numbers {
            self.doubt_again(number, out);
        }
    }

    fn doubt_again(&mut self, number: IntentNo, out: &mut Vec<Effect>) {
        let (now, aging) = (self.time.now(), self.time.aging());
        let base = now.saturating_add(self.settings.gateway_timeout);
        let settles = base.saturating_add(self.settings.lateness);
        let Some(intent) = self.intents.get_mut(&number) else { return };
        let finished = intent.finding().is_some();
        let doubted = intent.restart(now, aging, base);
        for &index in &doubted {
            self.keys.unsettle(intent.key(), AttemptNo { intent: number, index }, settles);
        }
        let from = self.shows_all_from(number);
        let Some(intent) = self.intents.get_mut(&number) else { return };
        intent.put_off_block(from);
        let stale = intent.day() != self.time.day();
        if !doubted.is_empty() && finished {
            self.keys.presume_dead(intent.key(), number);
        }
        if doubted.is_empty() || finished {
            return;
        }
        self.keys.stand(intent.key(), number);
        self.search(number, base);
        // It left on a day that is over.
        if stale {
            self.finish_unresolved(number, Reason::EpochChanged, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use steadfast_call::Outcome;
    use steadfast_spec::{Form, OrderRequest};

    use super::*;
    use crate::{
        numbers::ReadNo,
        protocol::{
            event::{Answer, Event},
            resolution::Verdict,
            wake::Purpose,
        },
        settings::Settings,
    };

    /// Regression: a compacted journal withdrew the wrong answer last, and took the order from the one that it was
    /// found for. Each later process reported it as one too many.
    #[test]
    fn o06_an_order_stays_with_the_intent_it_was_found_for() {
        for withdrawn_last in [true, false] {
            let mut protocol = OrderProtocol::new(Arc::new(Settings::default()), TradingDay::default());
            let (wrong, right) = (IntentNo(0), IntentNo(1));
            let mut step = |event| drop(protocol.step(Duration::ZERO, event));
            for (intent, qty, id) in [(wrong, 1, "b"), (right, 2, "a")] {
                let form = format!(
                    "symId=S&qty={qty}&side=buy&type=limit&limitPrice=5&product=delivery&validity=day"
                );
                let form = Form::parse(form.as_bytes()).unwrap();
                let order = Arc::new(OrderRequest::from_fields(form.iter()).unwrap());
                let attempt = AttemptNo { intent, index: 0 };
                step(Event::Opened { intent, order, name: None });
                step(Event::Begun { attempt, session: Session::default() });
                step(Event::Sent(attempt));
                let outcome = Outcome::Accepted { order_id: Some(id.into()) };
                step(Event::Closed { attempt, outcome, answer: Answer::Status(200) });
            }
            step(Event::Disbelieved(right));
            step(Event::Found { intent: right, order_id: "b".into(), status: None });
            if withdrawn_last {
                step(Event::Disbelieved(wrong));
            }
            step(Event::Restarted);
            assert_eq!(protocol.listed.owner("b"), Some(right));
            assert_eq!(protocol.verdict(wrong), Verdict::Pending, "its answer proves nothing");
            assert!(
                matches!(protocol.verdict(right), Verdict::Recovered { order_id, .. } if order_id == "b")
            );
        }
    }

    #[test]
    fn o05_an_order_whose_only_send_was_refused_waits_for_one_list_after_a_restart() {
        let mut protocol = OrderProtocol::new(Arc::new(Settings::default()), TradingDay::default());
        let form = b"symId=S&qty=1&side=buy&type=limit&limitPrice=5&product=delivery&validity=day";
        let order = Arc::new(OrderRequest::from_fields(Form::parse(form).unwrap().iter()).unwrap());
        let intent = IntentNo(0);
        let attempt = AttemptNo { intent, index: 0 };
        let refused = Outcome::NotExecuted;
        for event in [
            Event::Opened { intent, order, name: None },
            Event::Begun { attempt, session: Session::default() },
            Event::Sent(attempt),
            Event::Closed { attempt, outcome: refused, answer: Answer::Status(429) },
        ] {
            protocol.step(Duration::ZERO, event);
        }
        assert_eq!(protocol.verdict(intent), Verdict::Pending, "its caller may still send it");
        protocol.step(Duration::ZERO, Event::Restarted);
        assert_eq!(protocol.verdict(intent), Verdict::Pending, "no list has confirmed the refusal");
        assert_eq!((protocol.in_doubt(), protocol.in_flight()), (0, 0));
        let (read, at) = (ReadNo(1), protocol.refusal_lag());
        protocol.step(at, Event::ReadOpened { read, purpose: Purpose::Verification });
        protocol.step(at, Event::ReadStarted { read, session: Session::default() });
        let effects = protocol.step(at, Event::ReadEnded { read, list: Ok(Vec::new()) });
        assert!(effects.contains(&Effect::Confirmed(intent)), "{effects:?}");
        assert_eq!(protocol.verdict(intent), Verdict::NotPlaced, "there is no caller any more");
    }

    /// Regression: it ended as rejected, so that its name was sent again without a look at the list.
    #[test]
    fn o05_a_send_that_never_left_takes_no_refusal_back() {
        let mut protocol = OrderProtocol::new(Arc::new(Settings::default()), TradingDay::default());
        let form = b"symId=S&qty=1&side=buy&type=limit&limitPrice=5&product=delivery&validity=day";
        let order = Arc::new(OrderRequest::from_fields(Form::parse(form).unwrap().iter()).unwrap());
        let intent = IntentNo(0);
        let (first, second) = (AttemptNo { intent, index: 0 }, AttemptNo { intent, index: 1 });
        let session = Session::default();
        for event in [
            Event::Opened { intent, order, name: None },
            Event::Begun { attempt: first, session },
            Event::Sent(first),
            Event::Closed { attempt: first, outcome: Outcome::NotExecuted, answer: Answer::Status(429) },
            Event::Confirmed(intent),
            Event::Begun { attempt: second, session },
            Event::Sent(second),
            Event::Closed { attempt: second, outcome: Outcome::NotSent, answer: Answer::None },
            Event::Restarted,
        ] {
            protocol.step(Duration::ZERO, event);
        }
        assert!(protocol.is_refused(intent));
    }
}
