use std::{
    borrow::Cow,
    fmt,
    task::{Context, Poll},
};

use http::{Request, request};
use steadfast_call::{
    Routes, Spare,
    ext::{Route, Stamp},
};
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
    pub(crate) fn route(&self) -> Cow<'_, Route> {
        match &self.head {
            Head::Whole(head) => Routes::or_shown(Route::of(&head.extensions), &head.method, &head.uri),
            Head::Spare(spare) => spare.route(),
        }
    }

    /// Returns the head for the repeat.
    pub(crate) fn head(&self) -> request::Parts {
        match &self.head {
            Head::Whole(head) => head.clone(),
            Head::Spare(spare) => spare.clone().with(()).into_parts().0,
        }
    }

    /// Makes the repeat a whole request.
    pub(crate) fn set_head(&mut self, head: request::Parts) {
        self.head = Head::Whole(head);
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
