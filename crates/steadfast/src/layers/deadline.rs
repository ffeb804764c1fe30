//! Stamps the instants that a call must keep into its extensions.
//!
//! The layer only stamps. Every layer that waits honours the stamps and returns its own typed result. No call is
//! dropped because a deadline passed, since a dropped order could not be followed.
//!
//! The clock stands still while the machine is suspended, as timers do. An order or change that would leave after such
//! a pause is checked again by clocks that went on, and does not leave late.
//!
//! # Order
//!
//! Outside of everything that waits. A debug build panics at a wrong [order](ext::Place).
//!
//! # Clone
//!
//! Clones stamp alike and share nothing else.
//!
//! # Cost
//!
//! About 260 instructions for a successful call, and no allocation beside the entry that all stamps share
//! (`cargo xtask bench overhead`).
//!
//! # Cancellation
//!
//! The layer adds no future of its own.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use http::{Extensions, Request};
use steadfast_call::{Call, ext};
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use crate::description::{LayerDescription, spelled};

/// Builds [`Deadline`].
///
/// # Example
///
/// ```
/// use std::time::Duration;
///
/// use http::{Request, Response};
/// use steadfast::{BoxError, call::Call, deadline::DeadlineLayer};
/// use tower::{ServiceBuilder, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// let service = ServiceBuilder::new()
///     .layer(DeadlineLayer::new(Duration::from_secs(120)).send_by(Duration::from_secs(15)))
///     .service(service_fn(async |request: Request<()>| {
///         let call = Call::of(request.extensions());
///         let deadline = call.deadline().ok_or("no deadline")?;
///         let send_by = call.send_by().ok_or("no send-by")?;
///         Ok::<_, BoxError>(Response::new(deadline - send_by))
///     }));
/// let response = service.oneshot(Request::new(())).await?;
/// assert_eq!(response.into_body(), Duration::from_secs(105));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DeadlineLayer {
    deadline: Duration,
    send_by: Option<Duration>,
}

impl DeadlineLayer {
    /// Wants a call's answer within `deadline` of its start.
    #[must_use]
    pub fn new(deadline: Duration) -> Self {
        Self { deadline, send_by: None }
    }

    /// Does not send a call that has not left within `send_by` of its start. 15 s suits market orders.
    #[must_use]
    pub fn send_by(mut self, send_by: Duration) -> Self {
        self.send_by = Some(send_by);
        self
    }

    /// Returns within what time a call must be answered, and within what time it must have left.
    #[must_use]
    pub fn limits(&self) -> (Duration, Option<Duration>) {
        (self.deadline, self.send_by)
    }

    /// Describes the settings.
    pub(crate) fn described(&self) -> LayerDescription {
        LayerDescription::new(ext::Place::Deadline.as_str())
            .with("answered within", spelled(Some(self.deadline)))
            .with("left within", spelled(self.send_by))
    }

    /// Stamps the instants that the caller has not stamped.
    pub(crate) fn stamp(&self, extensions: &mut Extensions) {
        let now = Instant::now().into_std();
        // A duration beyond the range of an instant sets no deadline.
        let call = Call::of_mut(extensions);
        if call.deadline().is_none()
            && let Some(deadline) = now.checked_add(self.deadline)
        {
            call.set_deadline(deadline);
        }
        if call.send_by().is_none()
            && let Some(send_by) = self.send_by.and_then(|wait| now.checked_add(wait))
        {
            call.set_send_by(send_by);
        }
    }

    /// Stamps both instants, so that an inner layer of the same kind adds none.
    pub(crate) fn stamp_whole(&self, extensions: &mut Extensions) {
        /// Longer than any call, and short enough for an instant.
        const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 3_600);
        let (deadline, send_by) = (self.deadline.min(NEVER), self.send_by.unwrap_or(NEVER).min(NEVER));
        Self { deadline, send_by: Some(send_by) }.stamp(extensions);
    }
}

impl Default for DeadlineLayer {
    /// Wants an answer within 120 s, and sets no bound on when a call leaves.
    fn default() -> Self {
        Self::new(Duration::from_secs(120))
    }
}

impl<S> Layer<S> for DeadlineLayer {
    type Service = Deadline<S>;

    fn layer(&self, inner: S) -> Deadline<S> {
        Deadline { inner, settings: *self }
    }
}

/// Stamps each request. Stamps that the caller has set stay.
#[derive(Clone, Debug)]
pub struct Deadline<S> {
    inner: S,
    settings: DeadlineLayer,
}

impl<S, B> Service<Request<B>> for Deadline<S>
where
    S: Service<Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> S::Future {
        ext::Place::Deadline.pass(request.extensions_mut());
        self.settings.stamp(request.extensions_mut());
        self.inner.call(request)
    }
}

#[cfg(test)]
mod tests {
    use tower::{ServiceExt, service_fn};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_callers_own_deadline_stays() {
        let echo = || service_fn(|request: Request<()>| async { Ok::<_, ()>(request) });
        let layer = DeadlineLayer::new(Duration::from_secs(120)).send_by(Duration::from_secs(15));
        let now = Instant::now().into_std();

        let stamped = layer.layer(echo()).oneshot(Request::new(())).await.unwrap();
        assert_eq!(Call::of(stamped.extensions()).deadline(), Some(now + Duration::from_secs(120)));
        assert_eq!(Call::of(stamped.extensions()).send_by(), Some(now + Duration::from_secs(15)));

        let own = now + Duration::from_secs(1);
        let mut request = Request::new(());
        Call::of_mut(request.extensions_mut()).set_deadline(own);
        let stamped = layer.layer(echo()).oneshot(request).await.unwrap();
        assert_eq!(Call::of(stamped.extensions()).deadline(), Some(own));
    }
}
