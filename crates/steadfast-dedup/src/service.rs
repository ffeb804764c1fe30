use std::{
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use steadfast_spec::{BoxError, Failure, ext};
use tower_service::Service;

use crate::{
    body::ResponseBody, error::OrderRefused, future::ResponseFuture, ledger::Ledger, placement::Placement,
    ticket::is_place_order,
};

/// The service that [`DedupLayer`](crate::DedupLayer) makes.
#[derive(Clone, Debug)]
pub struct Dedup<S> {
    inner: S,
    ledger: Ledger,
    list_route: Option<ext::Route>,
}

impl<S> Dedup<S> {
    pub(crate) fn new(inner: S, ledger: Ledger, list_route: Option<ext::Route>) -> Self {
        Self { inner, ledger, list_route }
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

    // A call may wait before it sends, and may send more than once; each send asks for readiness itself.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.inner.clone();
        if !is_place_order(&request) {
            return ResponseFuture::pass(service, request);
        }
        if !self.ledger.is_guarded() {
            return ResponseFuture::refused(Failure::refused(OrderRefused::SendGuardMissing).into());
        }
        let account = self.ledger.account(request.extensions().get());
        let intent = Arc::new(OnceLock::new());
        let placement = Placement {
            account: account.clone(),
            service,
            request,
            list_route: self.list_route.clone(),
            intent: intent.clone(),
        };
        ResponseFuture::order(account, intent, Box::pin(placement.run()))
    }
}
