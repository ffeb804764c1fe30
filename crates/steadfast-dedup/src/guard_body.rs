use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use steadfast_spec::{BoxError, ext};
use tokio::time::Instant;

use crate::{
    account::Account,
    error::OrderRefused,
    halt::{Halt, Run},
    stamp::AttemptNo,
};

pin_project! {
    /// A request body whose first poll is the send.
    ///
    /// Until the transport polls it nothing has left; if the order is refused at that poll, nothing ever does.
    pub struct GuardedBody<B> {
        #[pin]
        inner: B,
        seal: Option<Seal>,
    }
}

/// What is decided at the first poll.
pub(crate) struct Seal {
    pub(crate) stamp: Option<ext::SendStamp>,
    pub(crate) order: Option<SealedOrder>,
    pub(crate) change: Option<SealedChange>,
}

pub(crate) struct SealedOrder {
    pub(crate) account: Arc<Account>,
    pub(crate) attempt: AttemptNo,
    pub(crate) send_by: Option<Instant>,
    pub(crate) run: Run,
}

/// A change of an order; all that is decided about it is whether it may leave.
pub(crate) struct SealedChange {
    pub(crate) halt: Arc<Halt>,
    /// When it was asked for; `None` if that was while everything was halted.
    pub(crate) run: Option<Run>,
}

impl<B> GuardedBody<B> {
    pub(crate) fn new(inner: B, seal: Seal) -> Self {
        Self { inner, seal: Some(seal) }
    }
}

impl Seal {
    /// Lets the body go, or refuses it with 0 bytes on the wire.
    fn open(self) -> Result<(), OrderRefused> {
        let now = Instant::now();
        if let Some(order) = self.order {
            let in_time = steadfast_spec::Planted::SendByIgnored.is_on()
                || order.send_by.is_none_or(|send_by| now <= send_by);
            order.account.send(order.attempt, in_time, order.run)?;
        }
        if self.change.is_some_and(|change| !change.run.is_some_and(|run| change.halt.permits(run))) {
            return Err(OrderRefused::Halted);
        }
        if let Some(stamp) = self.stamp {
            stamp.stamp(now.into_std());
        }
        Ok(())
    }
}

impl<B> Body for GuardedBody<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.project();
        if let Some(seal) = this.seal.take()
            && let Err(refusal) = seal.open()
        {
            return Poll::Ready(Some(Err(refusal.into())));
        }
        this.inner.poll_frame(cx).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        // An order's or a change's body must be polled, even an empty one: that poll is where it is let go.
        let sealed = self.seal.as_ref().is_some_and(|seal| seal.order.is_some() || seal.change.is_some());
        !sealed && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl<B> fmt::Debug for GuardedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedBody").field("sent", &self.seal.is_none()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    #[test]
    fn a_guarded_body_is_as_long_as_what_it_guards() {
        let seal = Seal { stamp: None, order: None, change: None };
        let body = GuardedBody::new(Full::new(Bytes::from("qty=10")), seal);
        assert_eq!(body.size_hint().exact(), Some(6));
    }
}
