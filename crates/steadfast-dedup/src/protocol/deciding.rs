//! Ends intents and trading days.

use crate::{
    numbers::{IntentNo, LogicalTime, TradingDay},
    protocol::{
        attempt::ORPHANED,
        effect::Effect,
        intent::Intent,
        keys::{Ended, Overnight},
        order_event::OrderEvent,
        order_protocol::OrderProtocol,
        phase::Finding,
        resolution::{Reason, Unresolved},
    },
};

impl OrderProtocol {
    // Identifiers may be used again and lists start empty, so nothing of yesterday proves anything today. Days never
    // go back: each ends once.
    pub(crate) fn begin_day(&mut self, day: TradingDay, out: &mut Vec<Effect>) {
        if day > self.time.day() {
            self.tell_held_back(out);
        }
        let Some(ended) = self.time.begin_day(day) else { return };
        // Without a midnight the clock was set: for the service the day may have begun before these orders left.
        if !self.time.is_midnight_near() {
            self.name_undecided_until(day, out);
        }
        self.tell_unconfirmed(out);
        self.intents.begin_day(ended);
        for number in self.open_numbers() {
            self.finish_unresolved(number, Reason::EpochChanged, out);
        }
        // A list of today confirms no refusal of yesterday.
        self.reopen_unconfirmed();
        for number in self.intents.refused().clone() {
            self.doubt_refused(number, out);
        }
        self.doubt_yesterdays_rejections(out);
        let intents = &self.intents;
        // An order refused shortly before midnight may be listed today. It bars no others, as it did not on its own
        // day.
        let may_be_listed = |number: IntentNo| {
            let told = self.watches.since(number).unwrap_or_default();
            let is_near = told.saturating_add(self.settings.lateness) > self.time.now();
            let refused = intents.get(&number).filter(|it| it.finding() == Some(&Finding::Refused));
            refused.is_some_and(|intent| intent.at_midnight() || is_near)
        };
        // One found absent may be later than assumed. It bars no others either, unless its request may still arrive.
        let may_be_late = |number: IntentNo| {
            let told = self.watches.since(number).unwrap_or_default();
            let absent = intents.get(&number).is_some_and(Intent::was_told_absent);
            absent && told.saturating_add(ORPHANED) > self.time.now()
        };
        self.listed.begin_day();
        let (now, lateness) = (self.time.now(), self.settings.lateness);
        let may_appear = |number| intents.get(&number).is_some_and(|it| it.may_appear(now, lateness));
        let qty_of = |number| intents.get(&number).map(|it| it.order().qty());
        let Overnight { blockers, told } =
            self.keys.begin_day(may_appear, may_be_listed, may_be_late, qty_of);
        self.watches.begin_day(|number| blockers.contains(&number) || told.contains(&number));
        blockers.iter().for_each(|&number| self.block_over_midnight(number));
        self.sessions.leave();
        self.fidelity.begin_day();
        let intents = &self.intents;
        self.tags.begin_day(|number| intents.get(&number).is_some());
        self.reads.forget_baseline(self.time.now());
    }

    pub(crate) fn finish(&mut self, number: IntentNo, finding: Finding, out: &mut Vec<Effect>) {
        let Some(intent) = self.intents.get_mut(&number) else { return };
        let name = intent.name().cloned();
        // An order that was found absent or given up may still appear.
        let watched = match &finding {
            Finding::Unresolved(_) | Finding::Refused => true,
            Finding::Acknowledged { .. } | Finding::Recovered { .. } => {
                intent.resends() > 0 || intent.was_resend_rejected()
            }
            Finding::Rejected => false,
        };
        let is_rejected = finding == Finding::Rejected;
        match &finding {
            Finding::Acknowledged { .. } | Finding::Refused | Finding::Rejected => {}
            Finding::Recovered { order_id, .. } => {
                let order_id = order_id.to_string();
                out.push(Effect::Report(OrderEvent::Recovered { intent: number, name, order_id }));
            }
            Finding::Unresolved(unresolved) => {
                let unresolved = unresolved.clone();
                out.push(Effect::Report(OrderEvent::Unresolved { intent: number, name, unresolved }));
            }
        }
        intent.finish(finding);
        let key = intent.key().clone();
        let may_appear = intent.may_appear(self.time.now(), self.settings.lateness);
        let ended = Ended::of(intent, self.time.tick(), may_appear);
        let day_over = intent.day() != self.time.day();
        if let Some(tag) = intent.tag() {
            self.tags.prune(tag, |order_id| self.listed.owner(order_id).is_some());
        }
        self.keys.retire(&key, number);
        self.leave_line(number, out);
        self.intents.finish(number);
        self.keys.finish(&key, number, ended);
        if ended.blocks_since.is_some() && day_over {
            self.block_over_midnight(number);
        }
        if watched {
            self.watches.watch(number, self.time.now());
        }
        out.push(Effect::Decided(number));
        if is_rejected {
            return self.keep_rejected(number);
        }
        self.intents.remember(number);
        // Up to eight at a time, which makes up for those that are kept.
        for _ in 0..8 {
            let Some(oldest) = self.intents.take_oldest_beyond(self.rules.remembered) else { break };
            // Keep intents whose order may still appear, those that block their key, and those that keep their name.
            if self.is_still_needed(oldest) {
                self.intents.remember(oldest);
            } else {
                self.drop_finished(oldest);
            }
        }
    }

    /// Keeps an order that was rejected, and drops the oldest ones if there are too many.
    fn keep_rejected(&mut self, number: IntentNo) {
        self.intents.keep_rejected(number);
        // Two at a time, which makes up for those that are kept.
        for _ in 0..2 {
            let Some(oldest) = self.intents.take_oldest_rejected() else { break };
            if self.intents.get(&oldest).and_then(Intent::finding) != Some(&Finding::Rejected) {
                continue;
            }
            // A repeat of its name still waits, or would wait, for a list that shows it.
            if self.rejected.is_unconfirmed(oldest, self.intents.get(&oldest)) {
                self.intents.keep_rejected(oldest);
            } else {
                self.drop_finished(oldest);
            }
        }
    }

    fn is_still_needed(&self, number: IntentNo) -> bool {
        let Some(intent) = self.intents.get(&number) else { return false };
        let blocks = self.keys.get(intent.key()).is_some_and(|key| key.blockers().contains(&number));
        blocks || intent.keeps_name() || self.keys.settles_at(number).is_some()
    }

    fn drop_finished(&mut self, number: IntentNo) {
        let Some(intent) = self.intents.forget(number) else { return };
        self.watches.unwatch(number);
        self.keys.forget(intent.key(), number);
    }
}

impl Ended {
    /// Returns how an intent that ended at this position counts; `may_appear`: an order of a lost send may still appear.
    pub(crate) fn of(intent: &Intent, at: LogicalTime, may_appear: bool) -> Self {
        let blocks = match intent.finding() {
            // Of yesterday's orders, only a late one can be listed today.
            Some(Finding::Unresolved(Unresolved { reason: Reason::EpochChanged, .. })) => may_appear,
            Some(Finding::Unresolved(unresolved)) => !unresolved.reason.is_absence(),
            _ => false,
        };
        let (is_dead, is_refused) = (intent.is_presumed_dead(), intent.was_told_not_placed());
        Self { qty: intent.order().qty(), is_dead, is_refused, blocks_since: blocks.then_some(at) }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use steadfast_call::{Outcome, ext};
    use steadfast_spec::OrderRequest;

    use super::*;
    use crate::{
        numbers::Session,
        protocol::{
            event::{Answer, Event},
            key::Key,
        },
        settings::Settings,
    };

    fn place(protocol: &mut OrderProtocol, intent: IntentNo, name: Option<&str>) {
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
        let mut step = |event| drop(protocol.step(Duration::ZERO, event));
        step(Event::Opened { intent, order, name: name.map(ext::IntentId::new) });
        let attempt = protocol.next_attempt(intent, Session::default()).unwrap();
        let mut step = |event| drop(protocol.step(Duration::ZERO, event));
        step(Event::Begun { attempt, session: Session::default() });
        step(Event::Sent(attempt));
        let outcome = Outcome::Accepted { order_id: Some(format!("o{}", intent.0).into()) };
        step(Event::Closed { attempt, outcome, answer: Answer::Status(200) });
    }

    #[test]
    fn a_name_used_again_outlives_the_intent_that_had_it_the_day_before() {
        let mut protocol = OrderProtocol::new(Arc::new(Settings::default()), TradingDay(0));
        protocol.rules.remembered = 64;
        let name = ext::IntentId::new("n");
        let (yesterday, today) = (IntentNo(0), IntentNo(1));
        place(&mut protocol, yesterday, Some("n"));
        protocol.step(Duration::ZERO, Event::DayBegan(TradingDay(1)));
        assert!(protocol.named(&name).is_none() && protocol.intents.get(&yesterday).is_some());
        place(&mut protocol, today, Some("n"));

        let mut next = 2;
        while protocol.intents.get(&yesterday).is_some() {
            place(&mut protocol, IntentNo(next), None);
            next += 1;
        }
        assert_eq!(protocol.named(&name).map(|(number, _)| number), Some(today));

        // Its own name goes with it.
        while protocol.intents.get(&today).is_some() {
            place(&mut protocol, IntentNo(next), None);
            next += 1;
        }
        assert!(!protocol.intents.has_names());
    }

    #[test]
    fn a_hundred_thousand_decided_intents_are_remembered() {
        let mut protocol = OrderProtocol::new(Arc::new(Settings::default()), TradingDay(0));
        assert_eq!(protocol.rules.remembered, 100_000);
        protocol.rules.remembered = 1_000;
        let names = |n: u64| ext::IntentId::new(format!("n{n}"));
        for n in 0..=1_000 {
            place(&mut protocol, IntentNo(n), Some(names(n).as_str()));
        }
        assert!(protocol.named(&names(0)).is_none(), "the oldest goes");
        assert!((1..=1_000).all(|n| protocol.named(&names(n)).is_some()));
    }

    #[test]
    fn what_bars_others_from_being_reasoned_about_is_never_forgotten() {
        let settings = Settings::default().verify_on(crate::settings::policy::VerifyOn::SpecMinimal);
        let mut protocol = OrderProtocol::new(Arc::new(settings), TradingDay(0));
        protocol.rules.remembered = 8;
        place(&mut protocol, IntentNo(0), None);
        let lost = IntentNo(1);
        let order = protocol.intents.get(&IntentNo(0)).unwrap().order().clone();
        let key = Key::of_order(&order);
        let attempt = crate::numbers::AttemptNo { intent: lost, index: 0 };
        for event in [
            Event::Opened { intent: lost, order, name: None },
            Event::Begun { attempt, session: Session::default() },
            Event::Sent(attempt),
            Event::Closed {
                attempt,
                outcome: Outcome::Unknown { resend: steadfast_call::Resend::AfterAbsence },
                answer: Answer::Status(500),
            },
        ] {
            protocol.step(Duration::ZERO, event);
        }
        // Long after its lateness bound.
        protocol.step(Duration::from_secs(600), Event::Tick);
        for n in 2..100 {
            place(&mut protocol, IntentNo(n), None);
        }
        assert!(protocol.intents.get(&lost).is_some() && protocol.is_blocked(&key));
        assert!(protocol.intents.len() <= 10, "the others are");
    }

    /// Regression: from midnight on such an order blocks no others, and was forgotten with them, so that its name was free.
    #[test]
    fn a_name_without_certainty_outlives_all_orders_of_later_days() {
        let settings = Settings::default().verify_on(crate::settings::policy::VerifyOn::SpecMinimal);
        let mut protocol = OrderProtocol::new(Arc::new(settings), TradingDay(0));
        protocol.rules.remembered = 8;
        let (lost, name) = (IntentNo(0), ext::IntentId::new("n"));
        place(&mut protocol, IntentNo(1), None);
        let order = protocol.intents.get(&IntentNo(1)).unwrap().order().clone();
        let attempt = crate::numbers::AttemptNo { intent: lost, index: 0 };
        let resend = steadfast_call::Resend::AfterAbsence;
        for event in [
            Event::Opened { intent: lost, order, name: Some(name.clone()) },
            Event::Begun { attempt, session: Session::default() },
            Event::Sent(attempt),
            Event::Closed { attempt, outcome: Outcome::Unknown { resend }, answer: Answer::Status(500) },
        ] {
            protocol.step(Duration::ZERO, event);
        }
        // Long after its lateness bound.
        protocol.step(Duration::from_secs(600), Event::Tick);
        protocol.step(Duration::from_secs(600), Event::DayBegan(TradingDay(1)));
        for n in 2..100 {
            place(&mut protocol, IntentNo(n), None);
        }
        assert_eq!(protocol.named(&name).map(|(number, _)| number), Some(lost));
        assert!(protocol.intents.len() <= 11, "the others are forgotten");
    }

    #[test]
    fn an_answer_of_yesterday_hides_no_order_of_today() {
        let mut protocol = OrderProtocol::new(Arc::new(Settings::default()), TradingDay(0));
        place(&mut protocol, IntentNo(0), None);
        // Sent before midnight, answered after it.
        let late = IntentNo(1);
        let opened = protocol.intents.get(&IntentNo(0)).unwrap().order().clone();
        let mut step = |event| protocol.step(Duration::ZERO, event);
        step(Event::Opened { intent: late, order: opened, name: None });
        let attempt = crate::numbers::AttemptNo { intent: late, index: 0 };
        step(Event::Begun { attempt, session: Session::default() });
        step(Event::Sent(attempt));
        step(Event::DayBegan(TradingDay(1)));
        let outcome = Outcome::Accepted { order_id: Some("o7".into()) };
        step(Event::Closed { attempt, outcome, answer: Answer::Status(200) });
        assert!(protocol.listed.owner("o7").is_none(), "the new day may use the identifier again");
        assert_eq!(
            protocol.intents.get(&late).unwrap().order_id().map(|id| &**id),
            Some("o7"),
            "its caller is told"
        );
    }
}
