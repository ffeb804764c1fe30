use std::{
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body::Body;
use steadfast_call::{BoxError, Call, Failure, Route, ext};
use tower_service::Service;

use crate::{
    error::OrderWithheld,
    place::{
        answer::CallResult, body::ResponseBody, future::ResponseFuture, observe::Listener,
        place_call::PlaceCall,
    },
    tracker::{
        account::Account,
        halt::HaltEpoch,
        order_tracker::OrderTracker,
        poller::{Template, starter},
        recovery::Recover,
        ticket::{Kind, Ticket},
    },
};

/// The service that [`DedupLayer`](crate::DedupLayer) makes.
#[derive(Clone, Debug)]
pub struct Dedup<S> {
    inner: S,
    tracker: OrderTracker,
    list_route: Option<Arc<Route>>,
}

impl<S> Dedup<S> {
    pub(crate) fn new(inner: S, tracker: OrderTracker, list_route: Option<Arc<Route>>) -> Self {
        Self { inner, tracker, list_route }
    }

    /// True if a call repeats, under its name, an order that may have left.
    fn joins<B>(&self, request: &Request<B>) -> bool {
        let call = Call::of(request.extensions());
        let account = || self.tracker.known_account(call.account());
        call.intent().is_some_and(|name| account().is_some_and(|account| account.has_sent(name)))
    }
}

impl<S, B, RB> Service<Request<B>> for Dedup<S>
where
    S: Service<Request<B>, Response = Response<RB>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + From<Bytes> + Default + Send + 'static,
    B::Error: Into<BoxError>,
    RB: Body<Data = Bytes> + Send + 'static,
    RB::Error: Into<BoxError>,
{
    type Response = Response<ResponseBody<RB>>;
    type Error = BoxError;
    type Future = ResponseFuture<S, B, RB>;

    // A call may wait before it sends, and may send more than once; each send checks readiness itself.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        ext::Place::Dedup.pass(request.extensions_mut());
        let service = self.inner.clone();
        if request.extensions().get::<Recover>().is_some() {
            let account = self.tracker.account(Call::of(request.extensions()).account());
            account.authorize(request.headers().get(header::AUTHORIZATION));
            let template = Template::beside(&request, self.list_route.clone());
            let recovery = recover(self.tracker.clone(), account, service, template);
            return ResponseFuture::order(None, Box::pin(recovery));
        }
        let kind = Kind::of(&request);
        if matches!(kind, Kind::Order | Kind::Change) {
            Call::of_mut(request.extensions_mut()).set_began(self.tracker.settings().moment());
        }
        if matches!(kind, Kind::Order | Kind::Change)
            && let Err(not_owner) = self.tracker.owned()
        {
            return ResponseFuture::withheld(Failure::refused(OrderWithheld::NotOwner(not_owner)).into());
        }
        if kind == Kind::Change {
            if let Some(account) = self.tracker.known_account(Call::of(request.extensions()).account()) {
                account.hear_change();
            }
            match self.tracker.epoch() {
                Some(epoch) => drop(request.extensions_mut().insert(epoch)),
                None => return ResponseFuture::withheld(Failure::refused(OrderWithheld::Halted).into()),
            }
        }
        if kind != Kind::Order {
            let listener = (kind == Kind::List)
                .then(|| self.tracker.known_account(Call::of(request.extensions()).account()))
                .flatten()
                .map(Listener::new);
            return ResponseFuture::pass(service, request, listener);
        }
        if !self.tracker.is_guarded() {
            return ResponseFuture::withheld(Failure::refused(OrderWithheld::SendGuardMissing).into());
        }
        let epoch = match self.tracker.epoch() {
            Some(epoch) => epoch,
            // It is told what became of the order that left before the halt. Nothing leaves for it.
            None if self.joins(&request) => HaltEpoch::HALTED,
            None => return ResponseFuture::withheld(Failure::refused(OrderWithheld::Halted).into()),
        };
        let ticket = Ticket::for_order(self.tracker.account(Call::of(request.extensions()).account()), epoch);
        let list_route = self.list_route.clone();
        let call = PlaceCall { ticket: ticket.clone(), service, request, list_route };
        ResponseFuture::order(Some(ticket), Box::pin(call.run(epoch)))
    }
}

/// Reads the list until every order that earlier processes left in doubt is decided.
async fn recover<S, B, RB>(
    tracker: OrderTracker,
    account: Arc<Account>,
    service: S,
    template: Option<Template>,
) -> CallResult<RB>
where
    S: Service<Request<B>, Response = Response<RB>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Default + Send + 'static,
    RB: Body<Data = Bytes> + Send + 'static,
    RB::Error: Into<BoxError>,
{
    if !account.resume(|| Some(starter::<S, B, RB>(&service, template?))) {
        return Err(Failure::refused(OrderWithheld::UnknownPath).into());
    }
    tracker.recovered_of(&account).await;
    let mut response = Response::new(ResponseBody::made(Bytes::new()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}
