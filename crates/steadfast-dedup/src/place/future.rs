use std::{
    fmt, mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use steadfast_call::BoxError;
use tower_service::Service;

use crate::{
    place::{answer::Answered, body::ResponseBody, observe::Listener},
    tracker::{sync::Tasks, ticket::Ticket},
};

/// The boxed future of an order's call. When the caller drops it, the rest moves to a task, and only a boxed future
/// can be moved after a poll.
type Flow<RB> = Pin<Box<dyn Future<Output = Answered<RB>> + Send>>;

pin_project! {
    /// The future of a [`Dedup`](crate::Dedup).
    pub struct ResponseFuture<S, B, RB>
    where
        S: Service<Request<B>>,
    {
        #[pin]
        state: State<S, B, RB, S::Future>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S, B, RB, F> {
        /// Any other request, before the inner service is ready.
        Waiting { service: S, request: Option<Request<B>>, listener: Option<Box<Listener>> },
        /// Any other request, sent.
        Called { #[pin] response: F, listener: Option<Box<Listener>> },
        Order { order: Order<RB> },
        Refused { error: Option<BoxError> },
    }
}

impl<S, B, RB> ResponseFuture<S, B, RB>
where
    S: Service<Request<B>>,
{
    pub(crate) fn pass(service: S, request: Request<B>, listener: Option<Box<Listener>>) -> Self {
        Self { state: State::Waiting { service, request: Some(request), listener } }
    }

    pub(crate) fn refused(error: BoxError) -> Self {
        Self { state: State::Refused { error: Some(error) } }
    }
}

impl<S, B, RB> ResponseFuture<S, B, RB>
where
    S: Service<Request<B>>,
    RB: Send + 'static,
{
    pub(crate) fn order(ticket: Option<Arc<Ticket>>, flow: Flow<RB>) -> Self {
        Self { state: State::Order { order: Order { ticket, flow: Some(Moved::new(flow)), polled: false } } }
    }
}

impl<S, B, RB> Future for ResponseFuture<S, B, RB>
where
    S: Service<Request<B>, Response = Response<RB>>,
    S::Error: Into<BoxError>,
    RB: Body<Data = Bytes>,
{
    type Output = Answered<RB>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            match state.as_mut().project() {
                StateProj::Waiting { service, request, listener } => {
                    ready!(service.poll_ready(cx)).map_err(Into::into)?;
                    let Some(request) = request.take() else { return Poll::Pending };
                    let (response, listener) = (service.call(request), listener.take());
                    state.set(State::Called { response, listener });
                }
                StateProj::Called { response, listener } => {
                    let answer = ready!(response.poll(cx)).map_err(Into::into);
                    let listener = listener.take();
                    return Poll::Ready(answer.map(|response| {
                        match listener.and_then(|listener| listener.hears(&response)) {
                            Some(listener) => response.map(|body| ResponseBody::overheard(body, listener)),
                            None => response.map(ResponseBody::service),
                        }
                    }));
                }
                StateProj::Order { order } => return order.poll(cx),
                StateProj::Refused { error } => {
                    return error.take().map_or(Poll::Pending, |error| Poll::Ready(Err(error)));
                }
            }
        }
    }
}

impl<S, B, RB> fmt::Debug for ResponseFuture<S, B, RB>
where
    S: Service<Request<B>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

/// An order's call, polled in place.
struct Order<RB> {
    /// The call's ticket, if it may send something.
    ticket: Option<Arc<Ticket>>,
    flow: Option<Moved<RB>>,
    /// True while the flow is polled, and for ever if that panics.
    polled: bool,
}

/// A flow with the function that moves it to a task; made where the flow is known to be `Send`.
struct Moved<RB> {
    flow: Flow<RB>,
    to_task: fn(Flow<RB>),
}

impl<RB: Send + 'static> Moved<RB> {
    fn new(flow: Flow<RB>) -> Self {
        Self { flow, to_task: spawn }
    }
}

fn spawn<RB: Send + 'static>(flow: Flow<RB>) {
    // Without a runtime the flow is dropped here, and its send stays on record as unknown.
    if let Some(tasks) = Tasks::current() {
        tasks.spawn(async { drop(flow.await) });
    }
}

impl<RB> Order<RB> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Answered<RB>> {
        let Some(moved) = &mut self.flow else { return Poll::Pending };
        self.polled = true;
        let polled = moved.flow.as_mut().poll(cx);
        self.polled = false;
        let answer = ready!(polled);
        self.flow = None;
        Poll::Ready(answer)
    }
}

impl<RB> Drop for Order<RB> {
    // The caller is gone. Before the send everything goes; after it the answer is still awaited.
    fn drop(&mut self) {
        let Some(moved) = mem::take(&mut self.flow) else { return };
        if let Some(ticket) = &self.ticket
            && let Some(intent) = ticket.intent()
            && ticket.account.abandon(intent)
            // A flow that panicked cannot go on, and nothing new is begun while a thread unwinds. Dropped here, its
            // send stays on record as unknown and is searched for.
            && !self.polled
            && !std::thread::panicking()
        {
            (moved.to_task)(moved.flow);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::poll_fn,
        panic::{AssertUnwindSafe, catch_unwind},
        sync::atomic::{AtomicUsize, Ordering},
        task::Waker,
    };

    use steadfast_spec::{Form, OrderRequest};

    use super::*;
    use crate::{
        numbers::Session,
        tracker::{account::Opening, order_tracker::OrderTracker},
    };

    const FORM: &[u8] = b"symId=S&qty=1&side=buy&type=limit&limitPrice=5&product=delivery&validity=day";

    /// Returns a sent order whose flow counts its polls, and panics in each if `panics`.
    fn sent(panics: bool) -> (Order<()>, Arc<AtomicUsize>) {
        let account = OrderTracker::default().account(None);
        let order = OrderRequest::from_fields(Form::parse(FORM).unwrap().iter()).unwrap();
        let Ok(Opening::New(intent)) = account.open(&Arc::new(order), None) else { panic!("opened anew") };
        let attempt = account.begin(intent, Session::default()).unwrap().0;
        let run = account.halt.run().unwrap();
        account.send(attempt, true, run).unwrap();
        let ticket = Ticket::for_order(account, run);
        ticket.set_intent(intent);
        let polls = Arc::new(AtomicUsize::new(0));
        let count = polls.clone();
        let flow = poll_fn(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            assert!(!panics, "the flow panics");
            Poll::Pending
        });
        (Order { ticket: Some(ticket), flow: Some(Moved::new(Box::pin(flow))), polled: false }, polls)
    }

    async fn polls_after_all(polls: &AtomicUsize) -> usize {
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
        polls.load(Ordering::Relaxed)
    }

    #[tokio::test]
    async fn what_is_left_of_a_dropped_call_goes_on_in_a_task() {
        let (mut order, polls) = sent(false);
        assert!(order.poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(order);
        assert_eq!(polls_after_all(&polls).await, 2);
    }

    #[tokio::test]
    async fn a_flow_that_panicked_is_not_polled_again() {
        // Dropped by the unwinding itself, as by a task.
        let (mut order, polls) = sent(true);
        let unwound = catch_unwind(AssertUnwindSafe(move || {
            let _ = order.poll(&mut Context::from_waker(Waker::noop()));
        }));
        assert!(unwound.is_err());
        assert_eq!(polls_after_all(&polls).await, 1);

        // Dropped after it, by a caller that caught the panic.
        let (mut order, polls) = sent(true);
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            let _ = order.poll(&mut Context::from_waker(Waker::noop()));
        }));
        assert!(unwound.is_err());
        drop(order);
        assert_eq!(polls_after_all(&polls).await, 1);
    }

    #[tokio::test]
    async fn a_call_dropped_by_somebody_elses_panic_starts_no_task() {
        let (order, polls) = sent(false);
        let unwound = catch_unwind(AssertUnwindSafe(move || {
            let _order = order;
            panic!("its caller panics");
        }));
        assert!(unwound.is_err());
        assert_eq!(polls_after_all(&polls).await, 0);
    }
}
