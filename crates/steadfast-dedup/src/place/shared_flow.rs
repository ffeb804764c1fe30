use std::{
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use steadfast_call::Failure;

use crate::{
    error::OrderWithheld,
    numbers::IntentNo,
    place::answer::{CallResult, attached, unsent},
    tracker::{
        polled_calls::{POLLED_WITHIN, PolledCall},
        sync::{Mutex, Tasks},
        ticket::Ticket,
    },
};

/// The boxed future of an order's call: only a boxed future can move to a task after a poll.
pub(crate) type Flow<RB> = Pin<Box<dyn Future<Output = CallResult<RB>> + Send>>;

/// The flow of an order's call. Its caller polls it; once the caller is gone, or keeps it and does not poll, a task does.
pub(crate) struct SharedFlow<RB> {
    /// The call's ticket, if it may send something.
    ticket: Option<Arc<Ticket>>,
    state: Mutex<State<RB>>,
}

struct State<RB> {
    stage: Stage<RB>,
    /// The task of the caller's last poll.
    caller: Option<Waker>,
    /// When the caller was woken to poll, if it has not polled since.
    woken: Option<Duration>,
}

enum Stage<RB> {
    /// The caller polls it.
    WithCaller(Flow<RB>),
    /// The caller polls it just now; for ever if that panics, which drops the flow. Its send stays on record as unknown
    /// then, and is searched for.
    Polled,
    /// A task polls it.
    InTask,
    /// It has ended without the caller.
    Answered(CallResult<RB>),
    /// The caller has its answer, or is gone.
    Over,
}

impl<RB> State<RB> {
    /// Takes the flow from its caller, unless that polls it just now.
    fn take(&mut self, stage: Stage<RB>) -> Option<Flow<RB>> {
        match mem::replace(&mut self.stage, stage) {
            Stage::WithCaller(flow) => Some(flow),
            unchanged => {
                self.stage = unchanged;
                None
            }
        }
    }
}

impl<RB> SharedFlow<RB> {
    pub(crate) fn new(ticket: Option<Arc<Ticket>>, flow: Flow<RB>) -> Arc<Self> {
        let state = State { stage: Stage::WithCaller(flow), caller: None, woken: None };
        Arc::new(Self { ticket, state: Mutex::new(state) })
    }

    pub(crate) fn ticket(&self) -> Option<&Arc<Ticket>> {
        self.ticket.as_ref()
    }

    /// Polls the flow for the caller.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<CallResult<RB>> {
        let mut flow = {
            let mut state = self.state.lock();
            state.woken = None;
            match mem::replace(&mut state.stage, Stage::Polled) {
                Stage::WithCaller(flow) => {
                    // The same task as before costs nothing.
                    state.caller.get_or_insert_with(|| cx.waker().clone()).clone_from(cx.waker());
                    flow
                }
                Stage::Answered(answer) => {
                    state.stage = Stage::Over;
                    return Poll::Ready(answer);
                }
                unchanged => {
                    state.stage = unchanged;
                    state.caller = Some(cx.waker().clone());
                    return Poll::Pending;
                }
            }
        };
        // Without the lock: in this stage nothing else takes the flow.
        let polled = flow.as_mut().poll(cx);
        self.state.lock().stage = match &polled {
            Poll::Pending => Stage::WithCaller(flow),
            Poll::Ready(_) => Stage::Over,
        };
        polled
    }

    /// Answers the caller's next poll.
    fn answer(&self, answer: CallResult<RB>) {
        let caller = {
            let mut state = self.state.lock();
            state.stage = Stage::Answered(answer);
            state.caller.take()
        };
        if let Some(caller) = caller {
            caller.wake();
        }
    }
}

impl<RB: Send + 'static> SharedFlow<RB> {
    /// Goes on without the caller. Before the send everything goes; after it the answer is still awaited.
    fn go_on(self: &Arc<Self>, flow: Flow<RB>) {
        let Some((ticket, intent)) = self.ticket.as_ref().and_then(|it| Some((it, it.intent()?))) else {
            return;
        };
        let may_exist = ticket.account.abandon(intent);
        // Nothing new is begun while a thread unwinds. A send whose flow is dropped stays on record as unknown and is
        // searched for.
        if may_exist
            && !std::thread::panicking()
            && let Some(tasks) = Tasks::current()
        {
            let task = InTask { shared: self.clone(), ticket: ticket.clone(), intent, is_answered: false };
            return tasks.spawn(task.run(flow));
        }
        drop(flow);
        let unwanted = Failure::refused(OrderWithheld::NotWanted).into();
        self.answer(match ticket.account.verdict(intent) {
            verdict if may_exist => attached(verdict),
            verdict => unsent(&ticket.account, intent, unwanted, verdict),
        });
    }
}

impl<RB: Send + 'static> PolledCall for SharedFlow<RB> {
    fn intent(&self) -> Option<IntentNo> {
        self.ticket.as_ref()?.intent()
    }

    fn wake(&self, now: Duration) -> bool {
        let caller = {
            let mut state = self.state.lock();
            if !matches!(state.stage, Stage::WithCaller(_)) {
                return true;
            }
            if let Some(woken) = state.woken {
                return now < woken.saturating_add(POLLED_WITHIN);
            }
            state.woken = Some(now);
            state.caller.clone()
        };
        if let Some(caller) = caller {
            caller.wake();
        }
        true
    }

    fn leave_unpolled(self: Arc<Self>) {
        // It may have been polled since it was found unpolled; not between this look and the take.
        let flow = {
            let mut state = self.state.lock();
            state.woken.is_some().then(|| state.take(Stage::InTask)).flatten()
        };
        if let Some(flow) = flow {
            self.go_on(flow);
        }
    }

    fn leave_dropped(self: Arc<Self>) {
        // The caller is not told anything any more.
        let flow = {
            let mut state = self.state.lock();
            state.caller = None;
            state.take(Stage::Over)
        };
        if let Some(flow) = flow {
            self.go_on(flow);
        }
    }
}

/// A flow in a task. A task that is dropped, with its runtime or by a panic, answers with the state of the order.
struct InTask<RB> {
    shared: Arc<SharedFlow<RB>>,
    ticket: Arc<Ticket>,
    intent: IntentNo,
    is_answered: bool,
}

impl<RB> InTask<RB> {
    async fn run(mut self, flow: Flow<RB>) {
        let answer = flow.await;
        self.is_answered = true;
        self.shared.answer(answer);
    }
}

impl<RB> Drop for InTask<RB> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.shared.answer(attached(self.ticket.account.verdict(self.intent)));
        }
    }
}
