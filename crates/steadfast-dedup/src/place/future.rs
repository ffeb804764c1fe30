use std::{
    fmt,
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
    place::{
        answer::CallResult,
        body::ResponseBody,
        observe::Listener,
        shared_flow::{Flow, SharedFlow},
    },
    tracker::{polled_calls::PolledCall, ticket::Ticket},
};

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
        Withheld { error: Option<BoxError> },
    }
}

impl<S, B, RB> ResponseFuture<S, B, RB>
where
    S: Service<Request<B>>,
{
    pub(crate) fn pass(service: S, request: Request<B>, listener: Option<Box<Listener>>) -> Self {
        Self { state: State::Waiting { service, request: Some(request), listener } }
    }

    pub(crate) fn withheld(error: BoxError) -> Self {
        Self { state: State::Withheld { error: Some(error) } }
    }
}

impl<S, B, RB> ResponseFuture<S, B, RB>
where
    S: Service<Request<B>>,
    RB: Send + 'static,
{
    pub(crate) fn order(ticket: Option<Arc<Ticket>>, flow: Flow<RB>) -> Self {
        Self { state: State::Order { order: Order::new(SharedFlow::new(ticket, flow)) } }
    }
}

impl<S, B, RB> Future for ResponseFuture<S, B, RB>
where
    S: Service<Request<B>, Response = Response<RB>>,
    S::Error: Into<BoxError>,
    RB: Body<Data = Bytes>,
{
    type Output = CallResult<RB>;

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
                            Some(listener) => response.map(|body| ResponseBody::observed(body, listener)),
                            None => response.map(ResponseBody::service),
                        }
                    }));
                }
                StateProj::Order { order } => return order.poll(cx),
                StateProj::Withheld { error } => {
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

/// An order's call, in the hands of its caller.
struct Order<RB> {
    flow: Arc<SharedFlow<RB>>,
    /// The same flow; made where it is known that a task can go on with it.
    call: Arc<dyn PolledCall>,
    /// The call's number among those of its account that wait, once it has opened an intent and waits.
    number: Option<u64>,
}

impl<RB: Send + 'static> Order<RB> {
    fn new(flow: Arc<SharedFlow<RB>>) -> Self {
        Self { call: flow.clone(), flow, number: None }
    }
}

impl<RB> Order<RB> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<CallResult<RB>> {
        let polled = self.flow.poll(cx);
        if polled.is_pending()
            && self.number.is_none()
            && let Some(ticket) = self.flow.ticket()
            && ticket.intent().is_some()
        {
            self.number = Some(ticket.account.add_polled(self.call.clone()));
        }
        polled
    }
}

impl<RB> Drop for Order<RB> {
    fn drop(&mut self) {
        if let (Some(number), Some(ticket)) = (self.number, self.flow.ticket()) {
            ticket.account.remove_polled(number);
        }
        self.call.clone().leave_dropped();
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
        tracker::{account::calls::Opening, order_tracker::OrderTracker},
    };

    const FORM: &[u8] = b"symId=S&qty=1&side=buy&type=limit&limitPrice=5&product=delivery&validity=day";

    /// Returns a sent order whose flow counts its polls, and panics in each if `panics`.
    fn sent(panics: bool) -> (Order<()>, Arc<AtomicUsize>) {
        let account = OrderTracker::default().account(None);
        let order = OrderRequest::from_fields(Form::parse(FORM).unwrap().iter()).unwrap();
        let Ok(Opening::New(intent, _)) = account.open(&Arc::new(order), None) else { panic!("opened anew") };
        let attempt = account.begin(intent, Session::default()).unwrap().attempt;
        let epoch = account.halt.epoch().unwrap();
        account.send(attempt, true, epoch, None).unwrap();
        let ticket = Ticket::for_order(account, epoch);
        ticket.set_intent(intent);
        let polls = Arc::new(AtomicUsize::new(0));
        let count = polls.clone();
        let flow = poll_fn(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            assert!(!panics, "the flow panics");
            Poll::Pending
        });
        (Order::new(SharedFlow::new(Some(ticket), Box::pin(flow))), polls)
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
