use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use http::HeaderValue;
use parking_lot::Mutex;
use steadfast_spec::{OrderRecord, OrderRequest, Outcome, ext};
use tokio::{
    sync::{Notify, broadcast},
    time::Instant,
};

use crate::{
    error::{OrderRefused, ReadFault},
    event::{Answer, Effect, Event, OrderEvent},
    journal::Recorder,
    registry::{Purpose, Registry, Wake},
    report::trace,
    resolution::Verdict,
    settings::Settings,
    stamp::{AttemptNo, IntentNo, ReadNo, Session},
};

mod inquiry;
mod recording;

/// Starts the account's poller.
pub(crate) type Starter = Arc<dyn Fn(Arc<Account>) + Send + Sync>;

/// One account's registry, shared by the layers and the poller.
///
/// The lock spans one step and never an await.
pub(crate) struct Account {
    name: ext::Account,
    pub(crate) settings: Arc<Settings>,
    start: Instant,
    state: Mutex<State>,
    /// The header of the latest order, for stacks without a layer that sets it.
    authorization: Mutex<Option<HeaderValue>>,
    /// The poller's plan may have changed.
    wake: Notify,
    /// Something was decided, or a read that somebody waits for is over.
    changed: Notify,
    events: broadcast::Sender<OrderEvent>,
    /// Writes down what must outlive the process, if anything must.
    recorder: Option<Recorder>,
}

struct State {
    registry: Registry,
    waiters: BTreeMap<IntentNo, Arc<Notify>>,
    starter: Option<Starter>,
    polling: bool,
    next_intent: u64,
    next_read: u64,
}

/// What a call with an order turned out to be.
pub(crate) enum Opening {
    /// The first call for this order.
    New(IntentNo),
    /// A call for an order that an earlier one has asked for under the same name.
    Attached(IntentNo),
}

impl Account {
    pub(crate) fn new(
        name: ext::Account,
        settings: Arc<Settings>,
        events: broadcast::Sender<OrderEvent>,
    ) -> Self {
        let registry = Registry::new(settings.clone(), settings.epoch());
        let state = State {
            registry,
            waiters: BTreeMap::new(),
            starter: None,
            polling: false,
            next_intent: 0,
            next_read: 0,
        };
        Self {
            name,
            settings,
            start: Instant::now(),
            state: Mutex::new(state),
            authorization: Mutex::default(),
            wake: Notify::new(),
            changed: Notify::new(),
            events,
            recorder: None,
        }
    }

    pub(crate) fn name(&self) -> &ext::Account {
        &self.name
    }

    /// Says how the account's poller is started, unless that is known; false if nobody knows.
    pub(crate) fn start_with(&self, starter: impl FnOnce() -> Option<Starter>) -> bool {
        let mut state = self.state.lock();
        if state.starter.is_none() {
            state.starter = starter();
        }
        state.starter.is_some()
    }

    /// Reads are sent with the token that orders are sent with now; the first one's expires.
    pub(crate) fn authorize(&self, header: Option<&HeaderValue>) {
        let mut known = self.authorization.lock();
        if header.is_some() && known.as_ref() != header {
            *known = header.cloned();
        }
    }

    pub(crate) fn authorization(&self) -> Option<HeaderValue> {
        self.authorization.lock().clone()
    }

    pub(crate) fn open(
        self: &Arc<Self>,
        order: OrderRequest,
        name: Option<ext::IntentId>,
    ) -> Result<Opening, OrderRefused> {
        let epoch = self.settings.epoch();
        self.with(|state, now, effects| {
            effects.extend(state.registry.step(now, Event::EpochBegan(epoch)));
            if let Some((number, earlier)) = name.as_ref().and_then(|name| state.registry.named(name)) {
                let same = **earlier == order;
                return if same { Ok(Opening::Attached(number)) } else { Err(OrderRefused::IntentMismatch) };
            }
            let intent = IntentNo(state.next_intent);
            state.next_intent += 1;
            let opened = Event::Opened { intent, order: Arc::new(order), name };
            effects.extend(state.registry.step(now, opened));
            Ok(Opening::New(intent))
        })
    }

    /// True if an order would be the first to leave in this session, before its list was asked for.
    pub(crate) fn meets(self: &Arc<Self>, session: Session) -> bool {
        self.with(|state, now, effects| {
            let new = state.registry.is_new(session);
            if new {
                effects.extend(state.registry.step(now, Event::SessionMet(session)));
            }
            new
        })
    }

    /// Decides, at the first poll of the body, whether it leaves; `in_time` is the caller's word on that.
    pub(crate) fn send(self: &Arc<Self>, attempt: AttemptNo, in_time: bool) -> Result<(), OrderRefused> {
        let today = Event::EpochBegan(self.settings.epoch());
        self.with(|state, now, effects| {
            // The day first: what time decides is decided before the question is asked.
            effects.extend(state.registry.step(now, today));
            let refusal = match (in_time, state.registry.may_send(attempt)) {
                (true, true) => None,
                (_, false) => Some(OrderRefused::NotWanted),
                (false, true) => Some(OrderRefused::SendByPassed),
            };
            let event = if refusal.is_none() { Event::Sent(attempt) } else { Event::Withheld(attempt) };
            effects.extend(state.registry.step(now, event));
            refusal.map_or(Ok(()), Err)
        })
    }

    pub(crate) fn close(self: &Arc<Self>, attempt: AttemptNo, outcome: Outcome, answer: Answer) {
        self.with(|state, now, effects| {
            let closed = self.noted(Event::Closed { attempt, outcome, answer });
            effects.extend(state.registry.step(now, closed));
        });
    }

    /// Closes an attempt that has no response; true if it had left.
    ///
    /// One step decides both, so that no poll of the body falls between: after it, nothing of this attempt leaves.
    pub(crate) fn close_failed(
        self: &Arc<Self>,
        attempt: AttemptNo,
        outcome: Outcome,
        answer: Answer,
    ) -> bool {
        self.with(|state, now, effects| {
            let left = state.registry.has_left(attempt);
            let outcome = if left { outcome } else { Outcome::NotSent };
            let closed = self.noted(Event::Closed { attempt, outcome, answer });
            effects.extend(state.registry.step(now, closed));
            left
        })
    }

    /// Whoever sends for the intent is gone.
    pub(crate) fn forget(self: &Arc<Self>, intent: IntentNo) {
        self.step(Event::Concluded(intent));
    }

    /// The call through the stack is over; says what has become of the intent.
    pub(crate) fn conclude(self: &Arc<Self>, intent: IntentNo) -> Verdict {
        self.step(Event::Concluded(intent));
        self.verdict(intent)
    }

    pub(crate) fn verdict(&self, intent: IntentNo) -> Verdict {
        self.state.lock().registry.verdict(intent)
    }

    /// Nobody waits for the intent any more; true if an order of it may exist.
    pub(crate) fn abandon(self: &Arc<Self>, intent: IntentNo) -> bool {
        self.step(Event::Abandoned(intent));
        self.state.lock().registry.is_sent(intent)
    }

    pub(crate) fn candidates(&self, intent: IntentNo) -> Vec<String> {
        self.state.lock().registry.candidates(intent)
    }

    /// Waits until the call that sends an intent has something to do.
    pub(crate) async fn decided(&self, intent: IntentNo) -> Verdict {
        self.verdict_when(intent, |verdict| *verdict != Verdict::Pending).await
    }

    /// Waits until an intent that another call sends is decided for good.
    pub(crate) async fn ended(&self, intent: IntentNo) -> Verdict {
        self.verdict_when(intent, |verdict| !matches!(verdict, Verdict::Pending | Verdict::Resend)).await
    }

    async fn verdict_when(&self, intent: IntentNo, wanted: impl Fn(&Verdict) -> bool) -> Verdict {
        loop {
            let waiter = {
                let mut state = self.state.lock();
                let verdict = state.registry.verdict(intent);
                if wanted(&verdict) {
                    return verdict;
                }
                state.waiters.entry(intent).or_default().clone()
            };
            let notified = waiter.notified();
            // Looked at again after the wait has begun, so that no decision falls between.
            let verdict = self.verdict(intent);
            if wanted(&verdict) {
                return verdict;
            }
            notified.await;
        }
    }

    /// Waits, for at most five seconds, while the same order of a caller that is gone is in doubt.
    ///
    /// Such a call is most likely a repetition by hand. Never longer: one lost answer must not block an order all
    /// day.
    pub(crate) async fn orphaned_twin(&self, order: &OrderRequest) -> Result<(), OrderRefused> {
        let twin = || self.state.lock().registry.orphaned_twin(order);
        let Some(mut found) = twin() else { return Ok(()) };
        let all_ended = async {
            loop {
                self.ended(found).await;
                match twin() {
                    Some(another) => found = another,
                    None => return,
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(5), all_ended).await.map_err(|_| OrderRefused::TwinInDoubt)
    }

    /// Waits, for at most a second, until the list is known before the first order of a day or session.
    pub(crate) async fn baseline(self: &Arc<Self>) {
        let wanted = self.with(|state, now, effects| {
            if state.registry.needs_baseline(now) {
                effects.extend(state.registry.step(now, Event::BaselineWanted));
            }
            state.registry.baseline_wanted()
        });
        if let Some(since) = wanted {
            let tried = self.until(|registry| registry.has_tried(since));
            if tokio::time::timeout(Duration::from_secs(1), tried).await.is_err() {
                tracing::warn!(account = self.name.as_str(), "order list not known before the first order");
            }
        }
    }

    pub(crate) fn in_doubt(&self) -> usize {
        self.state.lock().registry.in_doubt()
    }

    /// Waits until nothing is in flight or in doubt, then looks once more for what may have appeared late.
    pub(crate) async fn drain(self: &Arc<Self>) {
        // As long as nobody has shown the way to the list, nothing was sent, and what an earlier process left in doubt
        // cannot be looked for.
        if self.state.lock().starter.is_none() {
            return;
        }
        self.until(|registry| registry.in_doubt() == 0 && registry.in_flight() == 0).await;
        self.step(Event::LastLook);
        self.until(|registry| !registry.awaits_last_look()).await;
    }

    /// What the poller does next; `None` ends it.
    pub(crate) fn plan(&self) -> Option<Wake> {
        let mut state = self.state.lock();
        if state.registry.is_watching() {
            // Asked anew each time: a wall clock may be set.
            let now = self.now();
            let ends = now.saturating_add(self.settings.epoch_left());
            state.registry.end_day_at(ends);
        }
        let wake = state.registry.next_wake();
        state.polling = wake.is_some();
        wake
    }

    pub(crate) fn stop_polling(&self) {
        self.state.lock().polling = false;
    }

    pub(crate) fn open_read(self: &Arc<Self>, purpose: Purpose) -> ReadNo {
        let epoch = self.settings.epoch();
        self.with(|state, now, effects| {
            effects.extend(state.registry.step(now, Event::EpochBegan(epoch)));
            let read = ReadNo(state.next_read);
            state.next_read += 1;
            effects.extend(state.registry.step(now, Event::ReadOpened { read, purpose }));
            read
        })
    }

    pub(crate) fn start_read(self: &Arc<Self>, read: ReadNo, session: Session) {
        self.step(Event::ReadStarted { read, session });
    }

    pub(crate) fn end_read(
        self: &Arc<Self>,
        read: ReadNo,
        purpose: Purpose,
        list: Result<Vec<OrderRecord>, ReadFault>,
    ) {
        match &list {
            Ok(records) => tracing::debug!(?purpose, records = records.len(), "order list read"),
            Err(fault) => tracing::debug!(?purpose, ?fault, "order list not read"),
        }
        let today = Event::EpochBegan(self.settings.epoch());
        self.with(|state, now, effects| {
            // A list that was asked for on the day before may be that day's, or start anew: it must be known as such.
            effects.extend(state.registry.step(now, today));
            effects.extend(state.registry.step(now, Event::ReadEnded { read, list }));
        });
    }

    pub(crate) fn tick(self: &Arc<Self>) {
        self.step(Event::Tick);
    }

    /// Sleeps until `at`, or until the plan may have changed.
    pub(crate) async fn sleep_until(&self, at: Duration) {
        // Either way the plan is made anew. What no clock ever reaches needs no timer.
        match self.start.checked_add(at) {
            Some(at) => drop(tokio::time::timeout_at(at, self.wake.notified()).await),
            None => self.wake.notified().await,
        }
    }

    pub(crate) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    async fn until(&self, done: impl Fn(&Registry) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Enabled before the look, so that no change falls between the two.
            changed.as_mut().enable();
            if done(&self.state.lock().registry) {
                return;
            }
            changed.await;
        }
    }

    fn step(self: &Arc<Self>, event: Event) {
        self.with(|state, now, effects| effects.extend(state.registry.step(now, event)));
    }

    /// Runs `action` on the locked state, carries out the effects, and lets the poller see what has changed.
    fn with<T>(self: &Arc<Self>, action: impl FnOnce(&mut State, Duration, &mut Vec<Effect>) -> T) -> T {
        let (mut effects, mut reports) = (Vec::new(), Vec::new());
        let mut state = self.state.lock();
        // Read under the lock, so that instants enter the registry in order.
        let now = self.now();
        let result = action(&mut state, now, &mut effects);
        self.note_effects(&state.registry, &effects);
        for effect in effects {
            match effect {
                Effect::Decided(intent) => {
                    if let Some(waiter) = state.waiters.remove(&intent) {
                        waiter.notify_waiters();
                    }
                }
                Effect::Report(event) => reports.push(event),
                Effect::Seen { .. } => {}
            }
        }
        let start = match (state.registry.next_wake().is_some(), state.polling) {
            (true, false) => state.starter.clone().inspect(|_| state.polling = true),
            (_, true) => {
                self.wake.notify_one();
                None
            }
            (false, false) => None,
        };
        drop(state);
        self.changed.notify_waiters();
        // Outside the lock: whoever listens to the log may ask the ledger.
        for event in reports {
            trace(self.name.as_str(), &event);
            // Nobody has to listen.
            let _ = self.events.send(event);
        }
        // Outside the lock: on a runtime that is shutting down the new task is dropped at once and locks it.
        if let Some(start) = start {
            start(Arc::clone(self));
        }
        result
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_wait_beyond_the_clock_ends_with_the_next_change() {
        let (events, _) = broadcast::channel(1);
        let account = Account::new(ext::Account::default(), Arc::default(), events);
        let mut sleep = std::pin::pin!(account.sleep_until(Duration::MAX));
        let waited = tokio::time::timeout(Duration::from_secs(86_400), sleep.as_mut()).await;
        assert!(waited.is_err());
        account.wake.notify_one();
        sleep.await;
    }
}
