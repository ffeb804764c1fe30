use std::{
    mem,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response, header::AUTHORIZATION};
use steadfast_call::{
    BoxError, Call, Failure, Lane, Routes,
    ext::{Place, TokenGeneration},
};
use steadfast_spec::AuthKind;
use tower_service::Service;

use super::{CallersHeader, future::ResponseFuture, layer::Rules};
use crate::{
    destination::{self, RefusedHeader},
    token::{Token, TokenSource},
};

/// Puts the current token on every request; made by [`AuthHeaderLayer`](crate::AuthHeaderLayer).
#[derive(Clone, Debug)]
pub struct AuthHeader<S> {
    inner: S,
    // Shared, because services are cloned for every call.
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    source: TokenSource,
    rules: Rules,
}

impl<S> AuthHeader<S> {
    pub(super) fn new(inner: S, source: TokenSource, rules: Rules) -> Self {
        Self { inner, shared: Arc::new(Shared { source, rules }) }
    }
}

impl Shared {
    /// Attaches the header that the route needs. Returns the generation of the attached token, if any.
    fn attach<B>(&self, request: &mut Request<B>) -> Result<Option<TokenGeneration>, RefusedHeader> {
        let own = request.headers().contains_key(AUTHORIZATION);
        let call = Call::of(request.extensions());
        let route = Routes::or_shown(call.route(), request.method(), request.uri());
        let (kind, is_cancel) = (route.auth, route.lane == Lane::Critical);
        let kept = self.rules.callers == CallersHeader::Respect || call.has_own_authorization();
        if own && kept {
            self.check_destination(request)?;
            return Ok(None);
        }
        match kind {
            AuthKind::None => {
                request.headers_mut().remove(AUTHORIZATION);
                Ok(None)
            }
            AuthKind::ApiKey => {
                self.check_destination(request)?;
                request.headers_mut().insert(AUTHORIZATION, self.source.api_key_header());
                Ok(None)
            }
            AuthKind::Full => {
                self.check_destination(request)?;
                let token = self.source.peek();
                // A cancel tries a token that is in doubt: its 401 costs nothing, and a login may take long.
                let usable = |token: &&Arc<Token>| is_cancel || !token.is_withdrawn();
                let token = token.as_ref().filter(usable).ok_or(RefusedHeader::NoToken)?;
                request.headers_mut().insert(AUTHORIZATION, token.header());
                Call::of_mut(request.extensions_mut()).set_generation(token.generation());
                Ok(Some(token.generation()))
            }
        }
    }

    fn check_destination<B>(&self, request: &Request<B>) -> Result<(), RefusedHeader> {
        match &self.rules.only_to {
            Some(only) => only.check(request.uri()),
            None => destination::check(request.uri()),
        }
    }
}

impl<S, B, ResBody> Service<Request<B>> for AuthHeader<S>
where
    S: Service<Request<B>, Response = Response<ResBody>> + Clone,
    S::Error: Into<BoxError>,
{
    type Response = Response<ResBody>;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        Place::AuthHeader.pass(request.extensions_mut());
        match self.shared.attach(&mut request) {
            Ok(generation) => {
                let sample = generation.and_then(|_| self.shared.source.sample());
                ResponseFuture::sent(self.inner.call(request), generation, sample)
            }
            Err(refused) => {
                // The service that was polled ready is not called and may hold a reserved slot, so a clone without a
                // slot replaces it.
                let clone = self.inner.clone();
                drop(mem::replace(&mut self.inner, clone));
                ResponseFuture::refused(Failure::refused(refused))
            }
        }
    }
}
