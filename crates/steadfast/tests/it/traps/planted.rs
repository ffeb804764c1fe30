//! Services with a defect planted in them.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use http::{HeaderValue, Request, header::AUTHORIZATION};
use steadfast::BoxError;
use tokio::time::sleep;
use tower::{Service, ServiceExt, service_fn, util::BoxCloneSyncService};

use super::{Answer, Form};
use crate::{order::Boxed, world::SECOND};

/// Calls a clone of the service that was polled ready, which is not ready itself.
#[derive(Clone)]
pub(crate) struct CloneInCall<S>(pub(crate) S);

impl<S: Service<Request<Form>> + Clone> Service<Request<Form>> for CloneInCall<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Form>) -> S::Future {
        self.0.clone().call(request)
    }
}

/// Refuses every request, and keeps the service that was polled ready for it.
#[derive(Clone)]
pub(crate) struct Hoarder<S>(pub(crate) S);

impl<S: Service<Request<Form>, Response = Answer, Error = BoxError>> Service<Request<Form>> for Hoarder<S> {
    type Response = Answer;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, _: Request<Form>) -> Self::Future {
        Box::pin(async { Err("refused".into()) })
    }
}

/// Sends every unsuccessful request again, up to five times, after a pause.
pub(crate) fn naive_retry(inner: Boxed) -> Boxed {
    BoxCloneSyncService::new(service_fn(move |request: Request<Form>| {
        let inner = inner.clone();
        async move {
            let mut answer = inner.clone().oneshot(request.clone()).await;
            for _ in 0..4 {
                if answer.as_ref().is_ok_and(|answer| answer.status().is_success()) {
                    break;
                }
                sleep(SECOND).await;
                answer = inner.clone().oneshot(request.clone()).await;
            }
            answer
        }
    }))
}

/// Sends every request twice.
pub(crate) fn twice(inner: Boxed) -> Boxed {
    BoxCloneSyncService::new(service_fn(move |request: Request<Form>| {
        let inner = inner.clone();
        async move {
            let _ = inner.clone().oneshot(request.clone()).await;
            inner.oneshot(request).await
        }
    }))
}

/// Sends with the first request's header, like a layer that attaches it outside of the repeats.
pub(crate) fn with_the_first_header<S, B>(
    inner: S,
) -> impl Service<Request<B>, Response = S::Response, Error = S::Error, Future: Send> + Clone + Send + Sync
where
    S: Service<Request<B>> + Clone + Send + Sync,
    S::Future: Send,
{
    let first = Arc::<Mutex<Option<HeaderValue>>>::default();
    inner.map_request(move |mut request: Request<B>| {
        let own = request.headers().get(AUTHORIZATION).cloned();
        if let Some(first) = first.lock().unwrap().get_or_insert_with(|| own.unwrap()).clone().into() {
            request.headers_mut().insert(AUTHORIZATION, first);
        }
        request
    })
}
