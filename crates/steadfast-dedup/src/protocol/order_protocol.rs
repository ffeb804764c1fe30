use std::{collections::BTreeSet, sync::Arc, time::Duration};

use crate::{
    numbers::{AttemptNo, IntentNo, Session, TradingDay},
    protocol::{
        doubt::Doubt, effect::Effect, event::Event, fidelity::Fidelity, intent::Intent, intents::Intents,
        key::Key, keys::Keys, listed_orders::ListedOrders, order_event::OrderEvent, reads::Reads,
        rejected_names::RejectedNames, rules::Rules, searches::Searches, sessions::Sessions, tags::Tags,
        tally::Tally, timeline::Timeline, trace::Step, watches::Watches,
    },
    settings::{Settings, policy::OrdersScope},
};

/// The pure state machine that holds what is known of one account's orders.
///
/// It takes an [`Event`] and returns [`Effect`]s. It has no clock, no lock and no input or output of its own. Safety
/// rests on positions in its own history (`LogicalTime`). `now`, the time since a fixed start on a monotonic clock, only
/// decides how long to wait. The layers, the model and the simulator drive this same code.
#[derive(Clone, Debug)]
pub struct OrderProtocol {
    pub(super) settings: Arc<Settings>,
    pub(super) rules: Rules,
    pub(super) time: Timeline,
    pub(super) intents: Intents,
    pub(super) searches: Searches,
    pub(super) keys: Keys,
    pub(super) listed: ListedOrders,
    pub(super) reads: Reads,
    pub(super) watches: Watches,
    pub(super) rejected: RejectedNames,
    pub(super) sessions: Sessions,
    pub(super) fidelity: Fidelity,
    pub(super) tags: Tags,
    pub(super) tally: Tally,
    pub(super) steps: Option<Vec<Step>>,
}

impl OrderProtocol {
    /// Returns a protocol that knows nothing yet.
    #[must_use]
    pub fn new(settings: Arc<Settings>, day: TradingDay) -> Self {
        let steps = settings.traced.then(Vec::new);
        Self {
            settings,
            rules: Rules::PROTOCOL,
            time: Timeline::new(day),
            intents: Intents::default(),
            searches: Searches::default(),
            keys: Keys::default(),
            listed: ListedOrders::default(),
            reads: Reads::default(),
            watches: Watches::default(),
            rejected: RejectedNames::default(),
            sessions: Sessions::default(),
            fidelity: Fidelity::default(),
            tags: Tags::default(),
            tally: Tally::default(),
            steps,
        }
    }

    /// Takes in one event and returns its effects.
    pub fn step(&mut self, now: Duration, event: Event) -> Vec<Effect> {
        let mut out = Vec::new();
        let record = self.steps.is_some().then(|| event.clone());
        self.advance(now, &mut out);
        match event {
            Event::Tick => {}
            Event::DayBegan(day) => self.begin_day(day, &mut out),
            Event::DayRenamed(day) => self.rename_day(day, &mut out),
            Event::Dated(day) => self.hear_day(day, &mut out),
            Event::MidnightNear(near) => self.time.set_midnight_near(near),
            Event::Slept(slept) => self.time.sleep(slept),
            Event::ClockStepped { by, forward } => {
                out.push(Effect::Report(OrderEvent::ClockStepped { by, forward }));
            }
            Event::Opened { intent, order, name } => self.open(intent, order, name, &mut out),
            Event::Tagged { intent, tag } => self.tag(intent, tag),
            Event::Untagged(intent) => self.untag(intent),
            Event::Begun { attempt, session } => self.begin(attempt, session),
            Event::Sent(attempt) => self.send(attempt, &mut out),
            Event::Withheld(attempt) => self.withhold(attempt, &mut out),
            Event::Closed { attempt, outcome, answer } => self.close(attempt, outcome, answer, &mut out),
            Event::Reopened(intent) => self.repeat_refused(intent, &mut out),
            Event::Concluded(intent) => self.conclude(intent, &mut out),
            Event::Abandoned(intent) => self.abandon(intent, &mut out),
            Event::BaselineWanted => self.reads.want_baseline(self.time.tick()),
            Event::Ruled { intent, ruling } => self.rule(intent, ruling, &mut out),
            Event::Changed => self.fidelity.note_change(self.time.tick()),
            Event::CallerList { session, records } => self.take_caller_list(session, records, &mut out),
            Event::Known { session, order_ids, complete } => self.know(session, order_ids, complete),
            Event::Found { intent, order_id, status } => {
                self.find(intent, order_id.into(), status, &mut out);
            }
            Event::Confirmed(intent) => self.take_confirmed(intent),
            Event::Disbelieved(intent) => self.disbelieve_again(intent, &mut out),
            Event::NameKept { intent, day, order, name } => self.keep_name(intent, day, order, name),
            Event::NamedUntil { intent, day } => {
                self.intents.name_until(intent, day);
            }
            Event::Restarted => self.restart(&mut out),
            Event::LastLook => self.begin_last_look(),
            Event::ReadOpened { read, purpose } => self.open_read(read, purpose),
            Event::SessionMet(session) => self.meet(session),
            Event::SessionKept(session) => self.sessions.keep(self.scoped(session)),
            Event::SessionLost(session) => self.lose(session, &mut out),
            Event::ReadStarted { read, session } => self.start_read(read, session),
            Event::ReadTurnedAway(read) => self.reads.turn_away(read),
            Event::ReadWithdrawn(read) => self.reads.withdraw(read),
            Event::ReadPart { read, records } => self.take_part(read, records, &mut out),
            Event::ReadEnded { read, list } => self.end_read(read, list, &mut out),
        }
        self.doubt_unconfirmed(&mut out);
        self.note_searches();
        self.tally.take(&out);
        if let (Some(steps), Some(event)) = (&mut self.steps, record) {
            steps.push(Step { now: self.time.now(), event, effects: out.clone() });
        }
        out
    }

    // Time settles attempts, and ends searches and waits. It decides nothing else.
    fn advance(&mut self, now: Duration, out: &mut Vec<Effect>) {
        self.time.advance(now);
        while let Some(attempt) = self.keys.take_settled(self.time.now()) {
            self.settle(attempt);
        }
        self.note_searches();
        for number in self.searches.ended(self.time.now()) {
            if !self.prolong(number) {
                self.give_up(number, out);
            }
        }
        self.end_holds(out);
    }

    /// Notes the searches that have begun, changed or ended.
    fn note_searches(&mut self) {
        let lateness = self.settings.lateness;
        while let Some(number) = self.intents.take_changed() {
            let searched = if self.intents.is_searched(number) { self.intents.get(&number) } else { None };
            let doubt = searched.filter(|intent| intent.is_open()).and_then(Intent::doubt);
            self.searches.note(number, doubt, lateness);
        }
        self.searches.note_read(self.reads.last_pace().last, lateness);
        debug_assert_eq!(self.searches.len(), self.open_intents().count());
        debug_assert_eq!(self.searches.next_end(), self.doubts().map(|doubt| doubt.until).min());
    }

    /// Marks an attempt as settled: by the lateness bound, no order of it can appear from here on.
    pub(crate) fn settle(&mut self, attempt: AttemptNo) {
        let seq = self.time.tick();
        let Some(intent) = self.intents.get_mut(&attempt.intent) else { return };
        intent.settle(attempt.index, seq);
        self.keys.settle(intent.key(), seq);
    }

    /// Returns the session, or the same one for all where the list holds the whole account's orders.
    pub(crate) fn scoped(&self, session: Session) -> Session {
        match self.settings.orders_scope {
            OrdersScope::Session => session,
            OrdersScope::Account => Session::default(),
        }
    }

    pub(crate) fn live_intents(&self) -> impl Iterator<Item = (IntentNo, &Intent)> {
        let numbers = self.keys.iter().flat_map(|(_, key)| key.live().iter().copied());
        numbers.filter_map(|number| self.intents.get(&number).map(|intent| (number, intent)))
    }

    pub(crate) fn open_intents(&self) -> impl Iterator<Item = (IntentNo, &Intent)> {
        self.intents.searched().filter(|(_, intent)| intent.is_open())
    }

    pub(crate) fn doubts(&self) -> impl Iterator<Item = &Doubt> {
        self.open_intents().filter_map(|(_, intent)| intent.doubt())
    }

    pub(crate) fn open_numbers(&self) -> Vec<IntentNo> {
        self.open_intents().map(|(number, _)| number).collect()
    }

    pub(crate) fn open_keys(&self) -> BTreeSet<Key> {
        let open = self.open_intents().map(|(_, intent)| intent.key().clone());
        open.chain(self.listed.unowned.keys()).collect()
    }
}

#[cfg(test)]
mod tests;
