use std::task::{Context, Poll};

use http::{Request, Response};
use steadfast_spec::{
    AuthKind, BoxError, Routes,
    ext::{OwnAuthorization, Place},
};
use tower_service::Service;

use super::future::ResponseFuture;
use crate::TokenSource;

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

    // Readiness is asked of a clone after the wait: a slot reserved here would be held while a login runs.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        Place::Refresh.pass(request.extensions_mut());
        let own = request.extensions().get::<OwnAuthorization>().is_some();
        let needs_token = !own && Routes::of(&request).auth == AuthKind::Full;
        ResponseFuture::new(self.inner.clone(), self.source.clone(), request, needs_token)
    }
}
