use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use http::{HeaderValue, Request};
use steadfast_call::{Outcome, ext};
use steadfast_spec::OrderRequest;
use tokio::sync::broadcast;

use crate::{
    error::OrderRefused,
    journal::Recorder,
    numbers::{AttemptNo, IntentNo, Session, TradingDay},
    protocol::{
        event::{Answer, Event},
        order_event::OrderEvent,
        order_protocol::OrderProtocol,
        resolution::Verdict,
    },
    settings::{Settings, policy::OrdersScope},
    tracker::{
        halt::{Halt, HaltEpoch},
        joined::Refused,
        report::trace,
        shared_protocol::{About, Effects, SharedProtocol, State},
        sync::Mutex,
        timekeeper::Timekeeper,
    },
};

pub(crate) mod checking;
mod inquiry;
mod polled;
mod reads;
pub(crate) mod recording;
mod time;
mod tokens;

/// Starts the account's poller; returns false if there is no runtime to start it on.
pub(crate) type Starter = Arc<dyn Fn(Arc<Account>) -> bool + Send + Sync>;

/// One account's protocol, shared by the layers and the poller.
///
/// The lock spans one step and never an await.
pub(crate) struct Account {
    name: ext::Account,
    pub(crate) settings: Arc<Settings>,
    pub(crate) halt: Arc<Halt>,
    shared: SharedProtocol,
    /// How the poller is started, once a request has shown the path to the list.
    starter: Mutex<Option<Starter>>,
    /// The `Authorization` of the latest order, for stacks without a layer that sets it.
    authorization: Mutex<Option<HeaderValue>>,
    events: broadcast::Sender<OrderEvent>,
    /// Writes the journal, if there is one.
    recorder: Option<Recorder>,
}

/// The kind of a call with an order.
pub(crate) enum Opening {
    /// The first call for this order.
    New(IntentNo),
    /// A repeated call for an order that an earlier one asked for under the same name.
    Attached(IntentNo, Refused),
}

impl Account {
    pub(crate) fn new(
        name: ext::Account,
        settings: Arc<Settings>,
        halt: Arc<Halt>,
        events: broadcast::Sender<OrderEvent>,
    ) -> Self {
        let time = Timekeeper::new(&settings);
        let shared = SharedProtocol::new(OrderProtocol::new(settings.clone(), time.today()), time);
        let (starter, authorization) = (Mutex::new(None), Mutex::new(None));
        Self { name, settings, halt, shared, starter, authorization, events, recorder: None }
    }

    pub(crate) fn name(&self) -> &ext::Account {
        &self.name
    }

    /// Sets how the account's poller is started, unless that is known; false if it stays unknown.
    pub(crate) fn start_with(&self, starter: impl FnOnce() -> Option<Starter>) -> bool {
        let mut known = self.starter.lock();
        if known.is_none() {
            *known = starter();
        }
        if known.is_some() {
            self.shared.look(|state| state.allow_poller());
        }
        known.is_some()
    }

    /// Keeps the token of the latest order for reads: that of the first one expires.
    pub(crate) fn authorize(&self, header: Option<&HeaderValue>) {
        let mut known = self.authorization.lock();
        if header.is_some() && known.as_ref() != header {
            *known = header.cloned();
        }
    }

    pub(crate) fn authorization(&self) -> Option<HeaderValue> {
        self.authorization.lock().clone()
    }

    /// Opens an intent for a call, or finds the one of its name. A call that opened one ends by
    /// [`end_call`](Self::end_call).
    pub(crate) fn open(
        self: &Arc<Self>,
        order: &Arc<OrderRequest>,
        name: Option<ext::IntentId>,
    ) -> Result<Opening, OrderRefused> {
        self.with(|state, now, effects| {
            state.tell_time(&self.settings, now, effects);
            if let Some((number, earlier)) = name.as_ref().and_then(|name| state.protocol.named(name)) {
                let same = earlier == order;
                return if same && state.protocol.can_reopen(number) {
                    // A caller's repeat is sent no sooner than ours: once a list agrees with the refusal.
                    effects.extend(state.protocol.step(now, Event::Reopened(number)));
                    state.calls.open(now);
                    Ok(Opening::New(number))
                } else if same {
                    Ok(Opening::Attached(number, state.joined.join(number)))
                } else {
                    Err(OrderRefused::IntentMismatch)
                };
            }
            let intent = state.new_intent();
            let opened = Event::Opened { intent, order: order.clone(), name };
            effects.extend(state.protocol.step(now, opened));
            state.calls.open(now);
            Ok(Opening::New(intent))
        })
    }

    /// True if an order would be the first to leave in this session, before its list was asked for.
    ///
    /// Keeps the request's token, to read this session's list when the session is over.
    pub(crate) fn meets<B>(self: &Arc<Self>, session: Session, request: &Request<B>) -> bool {
        self.with(|state, now, effects| {
            let own = state.protocol.scoped(session);
            if self.settings.orders_scope == OrdersScope::Session
                && state.tokens.keep(own, request.headers(), request.extensions())
            {
                effects.extend(state.protocol.step(now, Event::SessionKept(session)));
            }
            let new = state.protocol.is_new(session);
            if new {
                effects.extend(state.protocol.step(now, Event::SessionMet(session)));
            }
            new
        })
    }

    /// Decides, at the first poll of the body, whether an order leaves.
    ///
    /// `in_time`: the caller's deadlines permit it; `run`: the run in which the order was asked for; `written`: the
    /// trading day that its journal entry has. It leaves on that day only: otherwise the next process would take its
    /// name for one of a day that is over, and free.
    pub(crate) fn send(
        self: &Arc<Self>,
        attempt: AttemptNo,
        in_time: bool,
        run: HaltEpoch,
        written: Option<TradingDay>,
    ) -> Result<(), OrderRefused> {
        self.with(|state, now, effects| {
            // Apply the time first: its decisions must precede the question.
            state.tell_time(&self.settings, now, effects);
            let refusal = match (in_time, state.protocol.may_send(attempt)) {
                (_, false) if state.protocol.is_too_old(attempt.intent) => Some(OrderRefused::TooOld),
                (_, false) => Some(OrderRefused::NotWanted),
                (_, true) if !self.halt.permits(run) => Some(OrderRefused::Halted),
                (false, true) => Some(OrderRefused::SendByPassed),
                (true, true) if written.is_some_and(|day| day != state.time.latest_day(&self.settings)) => {
                    Some(OrderRefused::DayTurned)
                }
                (true, true) => None,
            };
            let event = if refusal.is_none() { Event::Sent(attempt) } else { Event::Withheld(attempt) };
            effects.extend(state.protocol.step(now, event));
            refusal.map_or(Ok(()), Err)
        })
    }

    pub(crate) fn close(self: &Arc<Self>, attempt: AttemptNo, outcome: Outcome, answer: Answer) {
        self.with(|state, now, effects| {
            // Refused by its head alone: nothing of the order has left, and no list need confirm that.
            let is_unsent = outcome == Outcome::NotExecuted && !state.protocol.has_left(attempt);
            let outcome = if is_unsent { Outcome::NotSent } else { outcome };
            let closed = self.noted(Event::Closed { attempt, outcome, answer });
            effects.extend(state.protocol.step(now, closed));
        });
    }

    /// Closes an attempt that has no response; true if it had left.
    ///
    /// One step decides both, so no poll of the body falls between: after it, nothing of this attempt leaves.
    pub(crate) fn close_failed(
        self: &Arc<Self>,
        attempt: AttemptNo,
        outcome: Outcome,
        answer: Answer,
    ) -> bool {
        self.with(|state, now, effects| {
            let left = state.protocol.has_left(attempt);
            let outcome = if left { outcome } else { Outcome::NotSent };
            let closed = self.noted(Event::Closed { attempt, outcome, answer });
            effects.extend(state.protocol.step(now, closed));
            left
        })
    }

    /// Notes that a change of an order is about to be sent.
    pub(crate) fn hear_change(self: &Arc<Self>) {
        self.step(Event::Changed);
    }

    /// Ends the call that has opened an intent; one that it has concluded does not change.
    pub(crate) fn end_call(self: &Arc<Self>, intent: IntentNo) {
        self.with(|state, now, effects| {
            state.calls.end();
            effects.extend(state.protocol.step(now, Event::Concluded(intent)));
        });
    }

    /// Ends the call through the stack, with the service's refusal or not; returns the intent's verdict.
    pub(crate) fn conclude(self: &Arc<Self>, intent: IntentNo, is_refused: bool) -> Verdict {
        self.with(|state, now, effects| {
            effects.extend(state.protocol.step(now, Event::Concluded(intent)));
            let verdict = state.protocol.verdict(intent);
            if is_refused && verdict == Verdict::NotPlaced {
                state.joined.refuse(intent);
            }
            verdict
        })
    }

    /// Does the same for an acknowledged answer: true if the protocol agrees, so that nothing is left to do.
    pub(crate) fn conclude_acknowledged(self: &Arc<Self>, intent: IntentNo) -> bool {
        self.with(|state, now, effects| {
            effects.extend(state.protocol.step(now, Event::Concluded(intent)));
            state.protocol.is_acknowledged(intent)
        })
    }

    /// Returns the verdict on the listed order whose name an unsent intent repeats, after it had been refused.
    pub(crate) fn displaced(&self, unsent: IntentNo) -> Option<Verdict> {
        self.shared.look(|state| {
            let holder = state.protocol.displaced_by(unsent)?;
            Some(state.protocol.verdict(holder))
        })
    }

    /// True if the intent was refused without having been executed, and its caller is told so.
    pub(crate) fn is_refused(&self, intent: IntentNo) -> bool {
        self.shared.look(|state| state.protocol.is_refused(intent))
    }

    /// Returns the status of the refusal that an intent ended with, and whether a list agrees with it.
    pub(crate) fn refusal(&self, intent: IntentNo) -> Option<(u16, bool)> {
        self.shared.look(|state| state.protocol.refusal(intent))
    }

    pub(crate) fn verdict(&self, intent: IntentNo) -> Verdict {
        self.shared.look(|state| state.protocol.verdict(intent))
    }

    /// Notes that the intent's caller is gone; true if an order of it may exist.
    pub(crate) fn abandon(self: &Arc<Self>, intent: IntentNo) -> bool {
        self.with(|state, now, effects| {
            effects.extend(state.protocol.step(now, Event::Abandoned(intent)));
            state.protocol.is_sent(intent)
        })
    }

    pub(crate) fn candidates(&self, intent: IntentNo) -> Vec<String> {
        self.shared.look(|state| state.protocol.candidates(intent))
    }

    /// Waits until the call that sends an intent has something to do.
    pub(crate) async fn decided(self: &Arc<Self>, intent: IntentNo) -> Verdict {
        self.verdict_when(intent, |verdict| *verdict != Verdict::Pending).await
    }

    /// Waits until an intent that another call sends is decided for good.
    pub(crate) async fn ended(self: &Arc<Self>, intent: IntentNo) -> Verdict {
        self.verdict_when(intent, |verdict| !matches!(verdict, Verdict::Pending | Verdict::Resend)).await
    }

    async fn verdict_when(
        self: &Arc<Self>,
        intent: IntentNo,
        wanted: impl Fn(&Verdict) -> bool + Unpin,
    ) -> Verdict {
        let about = About::Intent(intent);
        self.wait(about, |state| Some(state.protocol.verdict(intent)).filter(&wanted)).await
    }

    /// Waits while an equal order of a gone caller is in doubt, at most for the [twin
    /// hold](crate::Settings::duplicate_hold).
    ///
    /// Such a call is most likely a repetition by hand.
    pub(crate) async fn orphaned_twin(self: &Arc<Self>, order: &OrderRequest) -> Result<(), OrderRefused> {
        let twin = || self.shared.look(|state| state.protocol.orphaned_twin(order));
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
        self.within(self.settings.duplicate_hold, all_ended).await.ok_or(OrderRefused::TwinInDoubt)
    }

    /// Returns the future's result, or `None` if it takes longer than this.
    pub(crate) async fn within<T>(&self, patience: Duration, future: impl Future<Output = T>) -> Option<T> {
        let clock = self.shared.clock();
        clock.until(clock.now().saturating_add(patience), future).await
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.shared.look(|state| state.protocol.in_flight())
    }

    pub(crate) fn in_doubt(&self) -> usize {
        self.shared.look(|state| state.protocol.in_doubt())
    }

    /// Waits until no order is in flight or in doubt, or may still leave for a caller that waits. Then lets the list be
    /// read for orders that it does not show yet.
    pub(crate) async fn begin_last_look(self: &Arc<Self>) {
        if self.has_path() {
            self.quiet().await;
            self.step(Event::LastLook);
        }
    }

    /// Waits until those reads are over and all events were sent. Orders that they contradict are searched for, too.
    pub(crate) async fn end_last_look(self: &Arc<Self>) {
        if self.has_path() {
            let is_over = |state: &State| {
                let protocol = &state.protocol;
                state.has_reported() && !protocol.awaits_last_look() && protocol.in_doubt() == 0
            };
            self.wait(About::Change, |state| is_over(state).then_some(())).await;
        }
    }

    /// True once a request has shown the path to the list. Before that nothing was sent, and doubts of an earlier
    /// process cannot be resolved.
    fn has_path(&self) -> bool {
        self.starter.lock().is_some()
    }

    /// Notes that the tracker's last owner is gone: the poller ends when nothing is in doubt.
    pub(crate) fn disown(&self) {
        self.shared.disown();
    }

    async fn until(self: &Arc<Self>, done: impl Fn(&OrderProtocol) -> bool + Unpin) {
        self.wait(About::Change, |state| done(&state.protocol).then_some(())).await;
    }

    /// Waits as [`SharedProtocol::wait`], and goes on with the reads on this runtime if the one that they ran on ends.
    async fn wait<T>(self: &Arc<Self>, about: About, look: impl FnMut(&mut State) -> Option<T> + Unpin) -> T {
        let mut wait = self.shared.wait(about, look);
        std::future::poll_fn(|cx| {
            let found = Pin::new(&mut wait).poll(cx);
            if found.is_pending() && self.shared.lacks_poller() {
                self.step(Event::Tick);
            }
            found
        })
        .await
    }

    fn step(self: &Arc<Self>, event: Event) {
        self.with(|state, now, effects| effects.extend(state.protocol.step(now, event)));
    }

    /// Runs `action` under the lock, then carries out its effects.
    fn with<T>(self: &Arc<Self>, action: impl FnOnce(&mut State, Duration, &mut Effects) -> T) -> T {
        let (result, aftermath) = self.shared.enter(|state, now, effects| {
            let result = action(state, now, effects);
            state.let_go_of_tokens(now, effects);
            self.note_effects(state, effects.as_slice());
            result
        });
        // Outside the lock: a log subscriber may ask the tracker.
        if !aftermath.reports.is_empty() {
            let _reported = Reported(&self.shared);
            for event in aftermath.reports {
                trace(self.name.as_str(), &event);
                // There may be no receiver.
                let _ = self.events.send(event);
            }
        }
        // Outside the lock: on a runtime that shuts down, the new task is dropped at once and locks it.
        if aftermath.starts_poller {
            let starter = self.starter.lock().clone();
            if !starter.is_some_and(|start| start(Arc::clone(self))) {
                self.shared.poller_gone();
            }
        }
        result
    }
}

/// Says that the events of a step were sent, also if a log subscriber panics.
struct Reported<'a>(&'a SharedProtocol);

impl Drop for Reported<'_> {
    fn drop(&mut self) {
        self.0.reported();
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Waker},
    };

    use super::*;
    use crate::{protocol::effect::Effect, tracker::order_tracker::OrderTracker};

    /// Regression: a shutdown ended between a step and its events, and a program that then read them missed some.
    #[tokio::test]
    async fn o06_a_shutdown_waits_for_events_that_are_on_their_way() {
        let account = OrderTracker::default().account(None);
        account.start_with(|| Some(Arc::new(|_| true)));
        let excess = OrderEvent::Excess { intent: IntentNo(1), order_id: "1".to_owned() };
        let (_, aftermath) =
            account.shared.enter(|_, _, effects| effects.extend(vec![Effect::Report(excess)]));
        let mut ended = pin!(account.end_last_look());
        let waits = ended.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending();
        assert_eq!((aftermath.reports.len(), waits), (1, true));
        drop(Reported(&account.shared));
        ended.await;
    }
}
