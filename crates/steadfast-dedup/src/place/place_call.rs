use std::{mem, sync::Arc};

use bytes::Bytes;
use http::{Request, Response, header};
use http_body::Body;
use steadfast_call::{BoxError, Call, Failure, Route, ext};
use tower_service::Service;

use crate::{
    error::OrderWithheld,
    place::{
        answer::{CallResult, attached, joined},
        deadline::{deadline, within},
        open_call::OpenCall,
        order_form::{read_form, read_order},
        place_loop::PlaceLoop,
    },
    protocol::resolution::{Reason, Unresolved, Verdict},
    tracker::{
        account::calls::Opening,
        halt::HaltEpoch,
        poller::{Template, starter},
        ticket::Ticket,
    },
};

/// One call with an order, from its form to its answer.
pub(crate) struct PlaceCall<S, B> {
    /// Also tells the call's future which intent to abandon when it is dropped.
    pub(crate) ticket: Arc<Ticket>,
    pub(crate) service: S,
    pub(crate) request: Request<B>,
    pub(crate) list_route: Option<Arc<Route>>,
}

impl<S, B, RB> PlaceCall<S, B>
where
    S: Service<Request<B>, Response = Response<RB>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + From<Bytes> + Default + Send + 'static,
    B::Error: Into<BoxError>,
    RB: Body<Data = Bytes> + Send + 'static,
    RB::Error: Into<BoxError>,
{
    /// Runs the call, which was made in `epoch`.
    #[expect(
        clippy::manual_async_fn,
        reason = "an async function holds its arguments twice: all services below"
    )]
    pub(crate) fn run(mut self, epoch: HaltEpoch) -> impl Future<Output = CallResult<RB>> + Send {
        async move {
            let account = &self.ticket.account;
            account.authorize(self.request.headers().get(header::AUTHORIZATION));
            let started = account.start_with(|| {
                let template = Template::beside(&self.request, self.list_route.take())?;
                Some(starter::<S, B, RB>(&self.service, template))
            });
            if !started {
                return Err(Failure::refused(OrderWithheld::UnknownPath).into());
            }
            let body = mem::take(self.request.body_mut());
            let form = read_form(body).await.map_err(Failure::refused)?;
            let order = Arc::new(read_order(&form).map_err(Failure::refused)?);
            // An empty name would join the orders of all callers that forgot to set one.
            let named = |name: &&ext::IntentId| !name.as_str().is_empty();
            let name = Call::of(self.request.extensions()).intent().filter(named).cloned();
            if name.as_ref().is_some_and(|name| name.as_str().len() > LONGEST_NAME) {
                return Err(Failure::refused(OrderWithheld::NameTooLong).into());
            }
            if name.is_none() {
                account.orphaned_twin(&order).await.map_err(Failure::refused)?;
            }
            if let Some(name) = &name
                && !account.settle_day(name, deadline(self.request.extensions())).await
            {
                // It may be the order that an earlier call asked for by this name.
                let candidates = account.placed_before(name).into_iter().collect();
                return attached(Verdict::Unresolved(Unresolved::new(Reason::EpochChanged, candidates)));
            }
            loop {
                match account.open(&order, name.clone()).map_err(Failure::refused)? {
                    Opening::New(intent, opener) => {
                        self.ticket.set_intent(intent);
                        let open = OpenCall::new(account, intent, opener);
                        let (ticket, service) = (&self.ticket, &mut self.service);
                        let form = account.form_of(intent, form);
                        return PlaceLoop::new(ticket, service, form, open, epoch).place(self.request).await;
                    }
                    Opening::Attached(number, rejected) => {
                        let deadline = deadline(self.request.extensions());
                        let ended = within(deadline, account.unless_lost(account.ended(number))).await;
                        let lost = || Verdict::Unresolved(Unresolved::new(Reason::OwnerChanged, Vec::new()));
                        match ended.map_or(Verdict::Pending, |ended| ended.unwrap_or_else(lost)) {
                            // All calls with one name get one outcome.
                            Verdict::NotPlaced if rejected.is_certain() => {
                                return Err(Failure::refused(OrderWithheld::IntentRejected).into());
                            }
                            // It placed nothing: this call is the first one now.
                            Verdict::NotPlaced => {}
                            verdict => return joined(account, verdict).await,
                        }
                    }
                }
            }
        }
    }
}

/// Bytes. With it and the longest form a record of the journal stays below what can be read again.
const LONGEST_NAME: usize = 1_024;
