use std::{
    mem,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use steadfast_call::{BoxError, ext};
use tower_service::Service;

use crate::{
    guard::{future::SendGuardFuture, guarded_body::GuardedBody, send_guard::SendGuard},
    tracker::{account::checking::Checked, ticket::Ticket},
};

impl<S, B, RB> Service<Request<B>> for SendGuard<S>
where
    S: Service<Request<GuardedBody<B>>, Response = Response<RB>> + Clone,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Response = Response<RB>;
    type Error = BoxError;
    type Future = SendGuardFuture<S, B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.poll_inner(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        ext::Place::SendGuard.pass(request.extensions_mut());
        match awaited_check(&request) {
            None => SendGuardFuture::sending(self.enter(request)),
            Some(checked) => {
                let clone = self.clone();
                let guard = mem::replace(self, clone);
                SendGuardFuture::checking(checked, guard, request)
            }
        }
    }
}

/// Returns the wait for the list that confirms a repeated order's refusal, if that is still due.
fn awaited_check<B>(request: &Request<B>) -> Option<Checked> {
    let ticket = Ticket::of(request.extensions())?;
    ticket.account.check(ticket.intent()?)
}
