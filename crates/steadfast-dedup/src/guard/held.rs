use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use http::Request;
use pin_project_lite::pin_project;
use tokio::time::{Timeout, error::Elapsed, timeout};

use crate::{guard::guarded_body::GuardedBody, journal::Durable};

pin_project! {
    /// A send that waits. Boxed, because most sends wait for nothing, and the future of every call has room for it.
    pub(super) struct Held<T, R> {
        #[pin]
        wait: Timeout<T>,
        ready: Option<R>,
    }
}

/// A send that waits for its attempt's journal entry.
pub(super) type HeldByJournal<S, B> = Held<Durable, (S, Request<GuardedBody<B>>)>;

impl<T: Future, R> Held<T, R> {
    pub(super) fn until(wait: T, patience: Duration, ready: R) -> Pin<Box<Self>> {
        Box::pin(Self { wait: timeout(patience, wait), ready: Some(ready) })
    }

    pub(super) fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T::Output, Elapsed>> {
        self.project().wait.poll(cx)
    }

    pub(super) fn take(self: Pin<&mut Self>) -> Option<R> {
        self.project().ready.take()
    }
}
