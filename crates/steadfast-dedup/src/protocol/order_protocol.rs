use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use steadfast_spec::{OrderRequest, ext};

use crate::{
    numbers::{AttemptNo, IntentNo, LogicalTime, ReadNo, Session, TradingDay},
    protocol::{
        attempt::{Attempt, AttemptState},
        bygone::OwnLook,
        event::{Effect, Event, OrderEvent},
        intent::{Check, Doubt, Intent},
        key::Key,
        listed_orders::Book,
        mismatch::Mismatch,
        rejection::Rejection,
        resolution::{Reason, Unresolved},
        rules::Rules,
        tally::Tally,
        trace::Step,
        wake::Purpose,
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
    pub(crate) settings: Arc<Settings>,
    pub(crate) rules: Rules,
    pub(crate) seq: LogicalTime,
    pub(crate) now: Duration,
    /// For how long the machine has been suspended in total.
    pub(crate) slept: Duration,
    pub(crate) epoch: TradingDay,
    /// Whether midnight is so near that the service's clock may already have passed it, or not yet.
    pub(crate) midnight: bool,
    /// When the day began, if an earlier day ended in this process.
    pub(crate) day_began: Option<Duration>,
    pub(crate) intents: BTreeMap<IntentNo, Intent>,
    pub(crate) names: BTreeMap<ext::IntentId, IntentNo>,
    pub(crate) keys: BTreeMap<Key, KeyBook>,
    /// Intents whose order is searched for, or will be again if their resend is not answered conclusively.
    pub(crate) searches: BTreeSet<IntentNo>,
    /// True once a send had no bound on how late it may arrive ([`Never::Opaque`](super::attempt::Never::Opaque)).
    pub(crate) has_endless: bool,
    /// Undecided intents with a send that was refused as not executed (401, 429).
    pub(crate) refused: BTreeSet<IntentNo>,
    /// Intents of which nothing was sent yet.
    pub(crate) unsent: BTreeSet<IntentNo>,
    pub(crate) book: Book,
    /// Attempts in doubt that are not settled, by the instant at which they settle.
    pub(crate) unsettled: BTreeSet<(Duration, AttemptNo)>,
    pub(crate) reads: BTreeMap<ReadNo, Read>,
    pub(crate) pace: Pace,
    pub(crate) watches: BTreeMap<IntentNo, Duration>,
    pub(crate) finished: VecDeque<IntentNo>,
    /// The last intent of earlier processes.
    pub(crate) restored: Option<IntentNo>,
    /// The latest orders that were refused for good, and when the last refusal was.
    pub(crate) rejected: VecDeque<IntentNo>,
    pub(crate) rejected_at: Option<Duration>,
    /// The names of orders that were refused for good, until a list that no such order can lag behind was read.
    pub(crate) rejected_names: BTreeMap<ext::IntentId, Rejection>,
    /// Unsent intents under such a name.
    pub(crate) held: BTreeMap<IntentNo, Rejection>,
    /// For each refusal (401, 429) that was believed or returned early: until when its order could still be listed,
    /// by the lateness bound.
    pub(crate) believed: BTreeSet<Duration>,
    /// Orders whose 429 was returned to the caller and is not confirmed by a list yet.
    pub(crate) unconfirmed: BTreeSet<IntentNo>,
    /// Refusals (401, 429) that a call ended with before a list agreed with them.
    pub(crate) unlisted: BTreeMap<IntentNo, Check>,
    /// When the lists of past sessions were last read.
    pub(crate) own_looks: BTreeMap<Session, OwnLook>,
    pub(crate) session: Option<Session>,
    /// Sessions whose lists can be read even after they are over: their token is kept and accepted.
    pub(crate) readable: BTreeSet<Session>,
    pub(crate) snapshot: Snapshot,
    /// How many reads in a row failed to provide a baseline, and when the last of them ended.
    pub(crate) baseline_failed: (u32, Duration),
    /// Where the latest read that has ended was started, with or without a list.
    pub(crate) tried: LogicalTime,
    /// The last reads of a shutdown, while one is due.
    pub(crate) last_look: Option<LastLook>,
    pub(crate) calibration: Calibration,
    /// Acknowledged orders whose identifier our lists show for another order.
    pub(crate) mismatched: BTreeMap<Arc<str>, Mismatch>,
    /// When a change of an order was last sent.
    pub(crate) changed: LogicalTime,
    /// When the trading day ends, by the wall clock's current reading.
    pub(crate) day_ends: Option<Duration>,
    pub(crate) tally: Tally,
    pub(crate) steps: Option<Vec<Step>>,
}

/// The intents that share a key.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyBook {
    /// In flight, in doubt, or found absent and not sent again yet.
    pub(crate) live: Vec<IntentNo>,
    /// Decided, with a send that may have placed an order.
    pub(crate) finished: BTreeSet<IntentNo>,
    /// The finished ones with a send that was never answered.
    pub(crate) dead: BTreeSet<IntentNo>,
    /// The finished ones whose caller was told of a refusal.
    pub(crate) refused: BTreeSet<IntentNo>,
    pub(crate) unsettled: usize,
    pub(crate) last_settled: LogicalTime,
    /// One of the orders that were sent; `mixed`: an order that differs from it was sent too.
    pub(crate) sample: Option<Arc<OrderRequest>>,
    pub(crate) mixed: bool,
    /// Intents that may be sent, where orders of a key are sent one after the other. The first has its turn.
    pub(crate) line: VecDeque<IntentNo>,
    /// Intents that ended without certainty whether they placed an order, and were not cleared since.
    pub(crate) tainting: BTreeSet<IntentNo>,
    /// When the oldest of them ended. Nothing is concluded about orders sent later.
    pub(crate) tainted: LogicalTime,
}

/// A read under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    pub(crate) purpose: Purpose,
    pub(crate) epoch: TradingDay,
    pub(crate) started: Option<ReadStart>,
    /// It goes in the slowest lane.
    pub(crate) can_wait: bool,
    /// It has left, and was not refused in a way that makes it wait to be sent again.
    pub(crate) on_wire: bool,
    /// The pace before this read.
    pub(crate) before: Pace,
    /// The part of its list that was taken in, if the list comes in parts.
    pub(crate) taken: Option<Taken>,
}

/// The part of a list that has been taken in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// When the list was complete, before any part was taken in.
    pub(crate) completed: LogicalTime,
    /// Whether any of it was new.
    pub(crate) news: bool,
    /// It names more orders than a day can have.
    pub(crate) too_long: bool,
}

/// When the list was last read. The next read keeps its distance from that.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// By any read.
    pub(crate) last: Option<Duration>,
    /// By a read that may hold orders of any session, which watches rely on.
    pub(crate) shared: Option<Duration>,
    /// The last one of those failed.
    pub(crate) failed: bool,
    /// It brought no list at all, not even one that lacks something.
    pub(crate) listless: bool,
    /// By a read that counts for the spacing between reads.
    pub(crate) spaced: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadStart {
    pub(crate) seq: LogicalTime,
    pub(crate) at: Duration,
    pub(crate) aging: Duration,
    pub(crate) session: Session,
}

/// The last reads of a shutdown: when they began, and when the next one is due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastLook {
    pub(crate) since: Duration,
    pub(crate) due: Duration,
}

/// The read for the baseline, before an order is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Snapshot {
    #[default]
    Unknown,
    /// By a read that starts after this position.
    Wanted(LogicalTime),
    Tried,
}

/// Whether acknowledged orders are recognised in lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Calibration {
    #[default]
    Untested,
    Recognised,
    Failed,
    /// One is listed under another instrument, so any of our orders may be.
    Unlike,
}

impl OrderProtocol {
    /// Returns a protocol that knows nothing yet.
    #[must_use]
    pub fn new(settings: Arc<Settings>, epoch: TradingDay) -> Self {
        let steps = settings.traced.then(Vec::new);
        Self {
            settings,
            rules: Rules::PROTOCOL,
            seq: LogicalTime::default(),
            now: Duration::ZERO,
            slept: Duration::ZERO,
            epoch,
            midnight: false,
            day_began: None,
            intents: BTreeMap::new(),
            names: BTreeMap::new(),
            keys: BTreeMap::new(),
            searches: BTreeSet::new(),
            has_endless: false,
            refused: BTreeSet::new(),
            unsent: BTreeSet::new(),
            book: Book::default(),
            unsettled: BTreeSet::new(),
            reads: BTreeMap::new(),
            pace: Pace::default(),
            watches: BTreeMap::new(),
            finished: VecDeque::new(),
            restored: None,
            rejected: VecDeque::new(),
            rejected_at: None,
            rejected_names: BTreeMap::new(),
            held: BTreeMap::new(),
            believed: BTreeSet::new(),
            unconfirmed: BTreeSet::new(),
            unlisted: BTreeMap::new(),
            own_looks: BTreeMap::new(),
            session: None,
            readable: BTreeSet::new(),
            snapshot: Snapshot::Unknown,
            baseline_failed: (0, Duration::ZERO),
            tried: LogicalTime::default(),
            last_look: None,
            calibration: Calibration::Untested,
            mismatched: BTreeMap::new(),
            changed: LogicalTime::default(),
            day_ends: None,
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
            Event::EpochBegan(epoch) => self.begin_epoch(epoch, &mut out),
            Event::EpochCorrected(epoch) => self.correct_epoch(epoch),
            Event::MidnightNear(near) => self.midnight = near,
            Event::Slept(slept) => self.slept = self.slept.max(slept),
            Event::ClockStepped { by, forward } => {
                out.push(Effect::Report(OrderEvent::ClockStepped { by, forward }));
            }
            Event::Opened { intent, order, name } => self.open(intent, order, name),
            Event::Begun { attempt, session } => self.begin(attempt, session),
            Event::Sent(attempt) => self.send(attempt),
            Event::Withheld(attempt) => self.withhold(attempt, &mut out),
            Event::Closed { attempt, outcome, answer } => self.close(attempt, outcome, answer, &mut out),
            Event::Reopened(intent) => self.reopen_refused(intent),
            Event::Concluded(intent) => self.conclude(intent, &mut out),
            Event::Abandoned(intent) => self.abandon(intent, &mut out),
            Event::BaselineWanted => self.snapshot = Snapshot::Wanted(self.tick()),
            Event::Ruled { intent, ruling } => self.rule(intent, ruling, &mut out),
            Event::Changed => self.changed = self.tick(),
            Event::Overheard { session, records } => self.overhear(session, records, &mut out),
            Event::Known { session, order_ids, complete } => self.know(session, order_ids, complete),
            Event::Found { intent, order_id, status } => {
                self.find(intent, order_id.into(), status, &mut out);
            }
            Event::Confirmed(intent) => self.take_confirmed(intent),
            Event::Disbelieved(intent) => self.disbelieve_again(intent, &mut out),
            Event::Restarted => self.restart(&mut out),
            Event::LastLook => {
                let is_due = !self.watches.is_empty()
                    || !self.believed.is_empty()
                    || self.awaits_audit()
                    || self.rejections_show().is_some();
                self.last_look = is_due.then_some(LastLook { since: self.now, due: self.now });
                self.want_own_looks();
            }
            Event::ReadOpened { read, purpose } => self.open_read(read, purpose),
            Event::SessionMet(session) => self.meet(session),
            Event::SessionKept(session) => drop(self.readable.insert(self.scoped(session))),
            Event::SessionLost(session) => self.lose(session, &mut out),
            Event::ReadStarted { read, session } => self.start_read(read, session),
            Event::ReadTurnedAway(read) => self.turn_away(read),
            Event::ReadWithdrawn(read) => self.withdraw_read(read),
            Event::ReadPart { read, records } => self.take_part(read, records, &mut out),
            Event::ReadEnded { read, list } => self.end_read(read, list, &mut out),
        }
        self.doubt_unconfirmed(&mut out);
        self.tally.take(&out);
        if let (Some(steps), Some(event)) = (&mut self.steps, record) {
            steps.push(Step { now: self.now, event, effects: out.clone() });
        }
        out
    }

    // Time only settles attempts and ends searches.
    fn advance(&mut self, now: Duration, out: &mut Vec<Effect>) {
        self.now = self.now.max(now);
        while let Some(&(at, attempt)) = self.unsettled.first() {
            if at > self.now {
                break;
            }
            self.unsettled.pop_first();
            self.settle(attempt);
        }
        let over = |intent: &Intent| intent.doubt.as_ref().is_some_and(|doubt| doubt.until <= self.now);
        let ended: Vec<_> =
            self.open_intents().filter(|(_, intent)| over(intent)).map(|(number, _)| number).collect();
        for number in ended {
            if !self.prolong(number) {
                self.give_up(number, out);
            }
        }
    }

    /// Returns the time that ages are measured on: it includes the time that the machine was suspended.
    pub(crate) fn aging(&self) -> Duration {
        self.now.saturating_add(self.slept)
    }

    /// Marks an attempt as settled: by the lateness bound, no order of it can appear from here on.
    pub(crate) fn settle(&mut self, attempt: AttemptNo) {
        let seq = self.tick();
        let Some(intent) = self.intents.get_mut(&attempt.intent) else { return };
        if let Some(Attempt { state: AttemptState::Doubt { settled, .. }, .. }) =
            intent.attempts.get_mut(attempt.index)
        {
            *settled = Some(seq);
        }
        let key = self.keys.entry(intent.key.clone()).or_default();
        key.unsettled = key.unsettled.saturating_sub(1);
        key.last_settled = seq;
    }

    /// Returns the session, or the same one for all where the list holds the whole account's orders.
    pub(crate) fn scoped(&self, session: Session) -> Session {
        match self.settings.orders_scope {
            OrdersScope::Session => session,
            OrdersScope::Account => Session::default(),
        }
    }

    pub(crate) fn tick(&mut self) -> LogicalTime {
        self.seq.0 += 1;
        self.seq
    }

    pub(crate) fn live_intents(&self) -> impl Iterator<Item = (IntentNo, &Intent)> {
        let numbers = self.keys.values().flat_map(|key| key.live.iter().copied());
        numbers.filter_map(|number| self.intents.get(&number).map(|intent| (number, intent)))
    }

    pub(crate) fn open_intents(&self) -> impl Iterator<Item = (IntentNo, &Intent)> {
        let searched = self.searches.iter().filter_map(|&number| Some((number, self.intents.get(&number)?)));
        searched.filter(|(_, intent)| intent.is_open())
    }

    pub(crate) fn doubts(&self) -> impl Iterator<Item = &Doubt> {
        self.open_intents().filter_map(|(_, intent)| intent.doubt.as_ref())
    }

    pub(crate) fn open_numbers(&self) -> Vec<IntentNo> {
        self.open_intents().map(|(number, _)| number).collect()
    }

    pub(crate) fn open_keys(&self) -> BTreeSet<Key> {
        let open = self.open_intents().map(|(_, intent)| intent.key.clone());
        open.chain(self.book.fresh_keys()).collect()
    }
}

impl Unresolved {
    pub(crate) fn of(reason: Reason, protocol: &OrderProtocol, intent: &Intent) -> Self {
        Self::new(reason, protocol.candidates_of(intent))
    }
}

#[cfg(test)]
mod tests;
