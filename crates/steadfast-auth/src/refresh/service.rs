use std::task::{Context, Poll};

use http::{Request, Response};
use steadfast_call::{BoxError, Call, Lane, Routes, ext::Place};
use steadfast_spec::AuthKind;
use tokio::time::Instant;
use tower_service::Service;

use super::future::{Asked, ResponseFuture};
use crate::token::TokenSource;

/// Keeps a usable token under every request; made by [`RefreshLayer`](crate::RefreshLayer).
#[derive(Clone, Debug)]
pub struct Refresh<S> {
    inner: S,
    source: TokenSource,
}

impl<S> Refresh<S> {
    pub(super) fn new(inner: S, source: TokenSource) -> Self {
        Self { inner, source }
    }
}

impl<S, B, ResBody> Service<Request<B>> for Refresh<S>
where
    S: Service<Request<B>, Response = Response<ResBody>> + Clone,
    S::Error: Into<BoxError>,
    B: Clone,
{
    type Response = Response<ResBody>;
    type Error = BoxError;
    type Future = ResponseFuture<S, B, ResBody>;

    // Always ready; a clone is polled after the wait. A slot reserved here would be held while a login runs.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        Place::Refresh.pass(request.extensions_mut());
        let call = Call::of(request.extensions());
        let route = Routes::or_shown(call.route(), request.method(), request.uri());
        let needs_token = !call.has_own_authorization() && route.auth == AuthKind::Full;
        let asked = Asked {
            needs_token,
            tries_held: needs_token && route.lane == Lane::Critical,
            replays: !route.is_unverifiable(),
        };
        let limit = if needs_token { limit(call) } else { None };
        ResponseFuture::new(self.inner.clone(), self.source.clone(), request, asked, limit)
    }
}

/// Returns until when a request may wait.
fn limit(call: &Call) -> Option<Instant> {
    call.send_by().into_iter().chain(call.deadline()).min().map(Instant::from_std)
}
