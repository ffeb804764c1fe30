use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use http::HeaderValue;
use steadfast_call::ext;
use tokio::sync::broadcast;

use crate::{
    journal::Recorder,
    protocol::{event::Event, order_event::OrderEvent, order_protocol::OrderProtocol},
    settings::Settings,
    tracker::{
        halt::Halt,
        report::trace,
        shared_protocol::{Effects, SharedProtocol, State},
        sync::Mutex,
        timekeeper::Timekeeper,
        waiters::About,
    },
};

pub(crate) mod calls;
pub(crate) mod checking;
mod inquiry;
mod polled;
mod reads;
pub(crate) mod recording;
mod time;
mod tokens;
mod waits;

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

    /// True once a request has shown the path to the list. Before that nothing was sent, and doubts of an earlier
    /// process cannot be resolved.
    fn has_path(&self) -> bool {
        self.starter.lock().is_some()
    }

    /// Notes that the tracker's last handle is gone: the poller ends when nothing is in doubt.
    pub(crate) fn lose_handles(&self) {
        self.shared.lose_handles();
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

    use steadfast_call::{Outcome, ext};
    use steadfast_spec::{Form, OrderRequest};

    use super::{calls::Opening, *};
    use crate::{
        numbers::{AttemptNo, IntentNo, Session},
        place::open_call::OpenCall,
        protocol::{
            effect::Effect,
            event::{Answer, Event},
        },
        tracker::order_tracker::OrderTracker,
    };

    fn order(qty: u32) -> Arc<OrderRequest> {
        let form =
            format!("symId=S&qty={qty}&side=buy&type=limit&limitPrice=5&product=delivery&validity=day");
        OrderRequest::from_fields(Form::parse(form.as_bytes()).unwrap().iter()).unwrap().into()
    }

    #[test]
    fn an_acknowledged_call_ends_with_its_verdict_and_only_once() {
        let account = OrderTracker::default().account(None);
        let open = |qty| match account.open(&order(qty), None).unwrap() {
            Opening::New(intent, opener) => OpenCall::new(&account, intent, opener),
            Opening::Attached(..) => panic!("joins an earlier call"),
        };
        let are_open = || account.shared.look(|state| state.calls.are_open());
        let mut call = open(1);
        let attempt = account.begin(call.intent(), Session::default()).unwrap().attempt;
        account.send(attempt, true, account.halt.epoch().unwrap(), None).unwrap();
        assert!(!call.acknowledged() && are_open(), "nothing is known of it yet");
        account.close(attempt, Outcome::Accepted { order_id: Some("7".into()) }, Answer::Status(200));
        assert!(call.acknowledged() && !are_open());

        let other = open(2);
        drop(call);
        assert!(are_open(), "the other one");
        drop(other);
        assert!(!are_open());
    }

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
    /// Regression: the call that was refused, between its verdict and its return, ended the wait of the one that repeats
    /// it, and that was told of a refusal without having sent anything.
    #[test]
    fn o05_a_refused_call_does_not_end_the_one_that_repeats_it() {
        let account = OrderTracker::default().account(None);
        let open = || match account.open(&order(1), Some(ext::IntentId::new("n"))).unwrap() {
            Opening::New(intent, opener) => (intent, opener),
            Opening::Attached(..) => panic!("joins the earlier call"),
        };
        let (intent, refused) = open();
        let attempt = AttemptNo { intent, index: 0 };
        account.step(Event::Begun { attempt, session: Session::default() });
        account.step(Event::Sent(attempt));
        account.close(attempt, Outcome::NotExecuted, Answer::Status(429));
        account.conclude(intent, false);
        assert!(account.is_refused(intent));

        let (again, repeat) = open();
        assert_eq!((again, account.is_refused(intent)), (intent, false));
        account.end_call(intent, refused);
        assert!(!account.is_refused(intent), "it still waits for the list");
        account.end_call(intent, repeat);
        assert!(account.is_refused(intent));
    }
}
