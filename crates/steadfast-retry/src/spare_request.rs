use std::{borrow::Cow, sync::Arc};

use http::Request;
use steadfast_call::{Call, Route, Spare};

use crate::buffer::replay::Replay;

/// The parts from which a request is sent again. Hardly any is, so it becomes a whole request only then.
pub(crate) struct SpareRequest<B> {
    head: Spare,
    body: B,
}

impl<B: Replay> SpareRequest<B> {
    /// Copies what a repeat of `request` needs, or returns `None` if its body can be sent only once.
    pub(crate) fn of(request: &Request<B>) -> Option<Self> {
        let body = request.body().replay()?;
        Some(Self { head: Spare::of(request), body })
    }

    /// Returns the request, and the parts for one more repeat.
    pub(crate) fn into_request(self) -> (Request<B>, Option<Self>) {
        let next = self.body.replay().map(|body| Self { head: self.head.clone(), body });
        (self.head.with(self.body), next)
    }
}

impl<B> SpareRequest<B> {
    /// Returns its route, as [`Routes::of`](steadfast_call::Routes::of) finds it.
    pub(crate) fn route(&self) -> Cow<'_, Arc<Route>> {
        self.head.route()
    }

    /// Returns the facts of its call.
    pub(crate) fn call(&self) -> &Call {
        self.head.call()
    }

    /// Returns the facts of its call, to be changed for the repeat.
    pub(crate) fn call_mut(&mut self) -> &mut Call {
        self.head.call_mut()
    }
}
