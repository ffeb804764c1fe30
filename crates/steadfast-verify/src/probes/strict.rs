use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use tower_service::Service;

/// A service that enforces tower's contract: a call is allowed only after this very value was polled ready.
///
/// The first poll after each call, and the first poll of each clone, is pending. This exposes layers that take
/// readiness for granted.
pub struct Strict<S> {
    inner: S,
    readiness: Readiness,
    uses: Arc<Uses>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Readiness {
    Unpolled,
    Woken,
    Ready,
}

/// How a [`Strict`] service and its clones were used.
#[derive(Debug, Default)]
pub struct Uses {
    calls: AtomicUsize,
    running: AtomicUsize,
}

impl Uses {
    /// How many calls there were.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    /// How many response futures are alive.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }
}

impl<S> Strict<S> {
    /// Wraps a service that is always ready.
    pub fn new(inner: S) -> Self {
        Self { inner, readiness: Readiness::Unpolled, uses: Arc::default() }
    }

    /// Returns how this service and its clones were used.
    pub fn uses(&self) -> Arc<Uses> {
        self.uses.clone()
    }
}

impl<S: Clone> Clone for Strict<S> {
    fn clone(&self) -> Self {
        // Readiness is never cloned: this catches layers that assume it is.
        Self { inner: self.inner.clone(), readiness: Readiness::Unpolled, uses: self.uses.clone() }
    }
}

impl<S, R> Service<R> for Strict<S>
where
    S: Service<R>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Running<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        if self.readiness == Readiness::Unpolled {
            self.readiness = Readiness::Woken;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let poll = self.inner.poll_ready(cx);
        if matches!(poll, Poll::Ready(Ok(()))) {
            self.readiness = Readiness::Ready;
        }
        poll
    }

    fn call(&mut self, request: R) -> Self::Future {
        assert!(self.readiness == Readiness::Ready, "called without being polled ready");
        self.readiness = Readiness::Unpolled;
        self.uses.calls.fetch_add(1, Ordering::SeqCst);
        self.uses.running.fetch_add(1, Ordering::SeqCst);
        Running { future: Box::pin(self.inner.call(request)), uses: self.uses.clone() }
    }
}

impl<S> fmt::Debug for Strict<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Strict").field("uses", &self.uses).finish_non_exhaustive()
    }
}

/// Response future of [`Strict`]; counts as running until it is dropped.
pub struct Running<F> {
    future: Pin<Box<F>>,
    uses: Arc<Uses>,
}

impl<F: Future> Future for Running<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.future.as_mut().poll(cx)
    }
}

impl<F> Drop for Running<F> {
    fn drop(&mut self) {
        self.uses.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<F> fmt::Debug for Running<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tower::{ServiceExt, service_fn};

    use super::*;

    fn strict() -> Strict<impl Service<u8, Response = u8, Error = (), Future: Send> + Clone> {
        Strict::new(service_fn(|n: u8| async move { Ok(n) }))
    }

    #[tokio::test]
    async fn a_service_that_was_polled_ready_may_be_called_once() {
        let mut service = strict();
        let uses = service.uses();
        assert_eq!(service.ready().await.unwrap().call(3).await, Ok(3));
        assert_eq!((uses.calls(), uses.running()), (1, 0));
    }

    #[tokio::test]
    #[should_panic(expected = "called without being polled ready")]
    async fn readiness_does_not_pass_to_a_clone() {
        let mut service = strict();
        let _ = service.ready().await;
        let _ = service.clone().call(3).await;
    }

    #[tokio::test]
    #[should_panic(expected = "called without being polled ready")]
    async fn readiness_is_used_up_by_a_call() {
        let mut service = strict();
        let _ = service.ready().await.unwrap().call(3).await;
        let _ = service.call(4).await;
    }
}
