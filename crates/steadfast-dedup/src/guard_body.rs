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

use crate::{account::Account, error::OrderRefused, stamp::AttemptNo};

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
    pub(crate) stamp: ext::SendStamp,
    pub(crate) order: Option<SealedOrder>,
}

pub(crate) struct SealedOrder {
    pub(crate) account: Arc<Account>,
    pub(crate) attempt: AttemptNo,
    pub(crate) send_by: Option<Instant>,
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
            let in_time = order.send_by.is_none_or(|send_by| now <= send_by);
            order.account.send(order.attempt, in_time)?;
        }
        self.stamp.stamp(now.into_std());
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
        // An order's body must be polled, even an empty one: that poll is where it is let go.
        let sealed = self.seal.as_ref().is_some_and(|seal| seal.order.is_some());
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
