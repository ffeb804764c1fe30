use std::{
    fmt, mem,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll, ready},
};

use http::{Request, Response};
use pin_project_lite::pin_project;
use steadfast_spec::BoxError;
use tower_service::Service;

use crate::{account::Account, body::ResponseBody, placement::Answered, stamp::IntentNo};

/// Boxed, unlike any other future of the stack: when the caller drops it, what is left of it moves to a task, and a
/// pinned future can be moved only in a box.
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
    #[project_replace = StateReplace]
    enum State<S, B, RB, F> {
        /// Any other request, before the inner service is ready.
        Waiting { service: S, request: Option<Request<B>> },
        /// Any other request, sent.
        Called { #[pin] response: F },
        Order { order: Order<RB> },
        Refused { error: Option<BoxError> },
    }
}

impl<S, B, RB> ResponseFuture<S, B, RB>
where
    S: Service<Request<B>>,
{
    pub(crate) fn pass(service: S, request: Request<B>) -> Self {
        Self { state: State::Waiting { service, request: Some(request) } }
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
    pub(crate) fn order(account: Arc<Account>, intent: Arc<OnceLock<IntentNo>>, flow: Flow<RB>) -> Self {
        Self { state: State::Order { order: Order { account, intent, flow: Some(Moved::new(flow)) } } }
    }
}

impl<S, B, RB> Future for ResponseFuture<S, B, RB>
where
    S: Service<Request<B>, Response = Response<RB>>,
    S::Error: Into<BoxError>,
{
    type Output = Answered<RB>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let response = match state.as_mut().project() {
                StateProj::Waiting { service, request } => {
                    ready!(service.poll_ready(cx)).map_err(Into::into)?;
                    match request.take() {
                        Some(request) => service.call(request),
                        None => return Poll::Pending,
                    }
                }
                StateProj::Called { response } => {
                    let answer = ready!(response.poll(cx)).map_err(Into::into);
                    return Poll::Ready(answer.map(|response| response.map(ResponseBody::service)));
                }
                StateProj::Order { order } => return order.poll(cx),
                StateProj::Refused { error } => {
                    return error.take().map_or(Poll::Pending, |error| Poll::Ready(Err(error)));
                }
            };
            drop(state.as_mut().project_replace(State::Called { response }));
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

/// An order under way, polled in place.
struct Order<RB> {
    account: Arc<Account>,
    intent: Arc<OnceLock<IntentNo>>,
    flow: Option<Moved<RB>>,
}

/// A flow with what moves it to a task; made where its type is known to be sendable.
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
    // Without a runtime the flow is dropped here, and what it has sent stays on record as unknown.
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        drop(runtime.spawn(flow));
    }
}

impl<RB> Order<RB> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Answered<RB>> {
        let Some(moved) = &mut self.flow else { return Poll::Pending };
        let answer = ready!(moved.flow.as_mut().poll(cx));
        self.flow = None;
        Poll::Ready(answer)
    }
}

impl<RB> Drop for Order<RB> {
    // The caller is gone. Before the send everything goes with him; after it the answer is still awaited.
    fn drop(&mut self) {
        let Some(moved) = mem::take(&mut self.flow) else { return };
        if let Some(&intent) = self.intent.get()
            && self.account.abandon(intent)
        {
            (moved.to_task)(moved.flow);
        }
    }
}
