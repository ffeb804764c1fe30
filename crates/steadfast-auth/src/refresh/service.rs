use std::task::{Context, Poll};

use http::{Request, Response};
use steadfast_call::{
    BoxError, Routes,
    ext::{Deadline, OwnAuthorization, Place, SendBy, Stamped},
};
use steadfast_spec::AuthKind;
use tokio::time::Instant;
use tower_service::Service;

use super::future::ResponseFuture;
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
        let extensions = Stamped::of(request.extensions());
        let own = extensions.beside::<OwnAuthorization>().is_some();
        let route = Routes::or_shown(extensions.stamp(), request.method(), request.uri());
        let needs_token = !own && route.auth == AuthKind::Full;
        let replays = !route.is_unverifiable();
        let limit = if needs_token { limit(extensions) } else { None };
        ResponseFuture::new(self.inner.clone(), self.source.clone(), request, (needs_token, replays), limit)
    }
}

/// Returns until when a request may wait.
fn limit(extensions: Stamped<'_>) -> Option<Instant> {
    let send_by = extensions.stamp::<SendBy>().map(|by| by.0);
    let deadline = extensions.stamp::<Deadline>().map(|by| by.0);
    send_by.into_iter().chain(deadline).min().map(Instant::from_std)
}
