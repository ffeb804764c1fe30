use std::{
    borrow::Cow,
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, request};
use steadfast_call::{Call, Route, Routes, Spare};
use tower_service::Service;

use crate::buffer::replay::Replay;

/// A request as tower's retry handles it: whole when it is sent, otherwise the parts from which a repeat is made.
///
/// tower copies every request before sending it, and hardly any copy is sent.
pub struct StoredRequest<B> {
    head: Head,
    body: B,
}

enum Head {
    Whole(request::Parts),
    Spare(Spare),
}

impl<B> StoredRequest<B> {
    pub(crate) fn whole(request: Request<B>) -> Self {
        let (head, body) = request.into_parts();
        Self { head: Head::Whole(head), body }
    }

    /// Returns the parts for a repeat, or `None` if the body can be sent only once.
    pub(crate) fn spare(&self) -> Option<Self>
    where
        B: Replay,
    {
        let body = self.body.replay()?;
        let head = Head::Spare(match &self.head {
            Head::Whole(head) => Spare::of_head(head),
            Head::Spare(spare) => spare.clone(),
        });
        Some(Self { head, body })
    }

    /// Returns its route, as [`Routes::of`] finds it.
    pub(crate) fn route(&self) -> Cow<'_, Arc<Route>> {
        match &self.head {
            Head::Whole(head) => {
                Routes::or_shown(Call::of(&head.extensions).route(), &head.method, &head.uri)
            }
            Head::Spare(spare) => spare.route(),
        }
    }

    /// Returns the facts of its call.
    pub(crate) fn call(&self) -> &Call {
        match &self.head {
            Head::Whole(head) => Call::of(&head.extensions),
            Head::Spare(spare) => spare.call(),
        }
    }

    /// Returns the facts of its call, to be changed for the repeat.
    pub(crate) fn call_mut(&mut self) -> &mut Call {
        match &mut self.head {
            Head::Whole(head) => Call::of_mut(&mut head.extensions),
            Head::Spare(spare) => spare.call_mut(),
        }
    }

    fn into_request(self) -> Request<B> {
        match self.head {
            Head::Whole(head) => Request::from_parts(head, self.body),
            Head::Spare(spare) => spare.with(self.body),
        }
    }
}

// The address may contain a code, and a header a secret.
impl<B> fmt::Debug for StoredRequest<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredRequest").finish_non_exhaustive()
    }
}

/// Sends the requests that tower passes down.
#[derive(Clone, Debug)]
pub(crate) struct Sender<S>(pub(crate) S);

impl<S: Service<Request<B>>, B> Service<StoredRequest<B>> for Sender<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, stored: StoredRequest<B>) -> S::Future {
        self.0.call(stored.into_request())
    }
}
