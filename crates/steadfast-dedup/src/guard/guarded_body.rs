use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::Extensions;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use steadfast_call::{BoxError, Call, Clocks, Moment, ext};
use tokio::time::Instant;

use crate::{
    error::OrderWithheld,
    numbers::{AttemptNo, TradingDay},
    tracker::{
        account::Account,
        halt::{Halt, HaltEpoch},
    },
};

pin_project! {
    /// A request body whose first poll is the send.
    ///
    /// Until the transport polls it nothing has left; if the order is withheld at that poll, nothing ever leaves.
    pub struct GuardedBody<B> {
        #[pin]
        inner: B,
        check: Option<SendCheck>,
    }
}

/// The data for the decision at the first poll.
pub(crate) struct SendCheck {
    pub(crate) limits: TimeLimits,
    pub(crate) stamp: Option<ext::SendStamp>,
    pub(crate) order: Option<CheckedOrder>,
    pub(crate) change: Option<CheckedChange>,
}

pub(crate) struct CheckedOrder {
    pub(crate) account: Arc<Account>,
    pub(crate) attempt: AttemptNo,
    pub(crate) epoch: HaltEpoch,
    /// The trading day that its journal entry has.
    pub(crate) journal_day: Option<TradingDay>,
}

/// Until when a request may leave. Time in suspension counts, so that nothing old leaves after the machine wakes; and so does
/// a wall clock that was set forward, as it is after a virtual machine was paused.
#[derive(Default)]
pub(crate) struct TimeLimits {
    /// When its call began, and the clocks that measure the time since.
    pub(crate) began: Option<(Moment, Clocks)>,
    pub(crate) send_by: Option<Instant>,
    pub(crate) deadline: Option<Instant>,
}

impl TimeLimits {
    /// Returns the limits of an order or a change; other requests are checked by outer layers.
    pub(crate) fn of(extensions: &Extensions, clocks: &Clocks) -> Self {
        let call = Call::of(extensions);
        Self {
            began: call.began().map(|began| (began, clocks.clone())),
            send_by: call.send_by().map(Instant::from_std),
            deadline: call.deadline().map(Instant::from_std),
        }
    }

    fn permit(&self, now: Instant) -> bool {
        let aged = match &self.began {
            Some((began, clocks)) => {
                Instant::from_std(began.monotonic()) + began.aged_at_most(&clocks.at(now.into_std()))
            }
            None => now,
        };
        [self.send_by, self.deadline].into_iter().flatten().all(|by| aged <= by)
    }
}

/// A change of an order. The check only decides whether it may leave.
pub(crate) struct CheckedChange {
    pub(crate) halt: Arc<Halt>,
    /// The epoch it was made in; `None` if orders were halted then.
    pub(crate) epoch: Option<HaltEpoch>,
}

impl<B> GuardedBody<B> {
    pub(crate) fn new(inner: B, check: SendCheck) -> Self {
        Self { inner, check: Some(check) }
    }
}

impl SendCheck {
    /// Lets the body go, or withholds it, with 0 bytes on the wire.
    fn open(self) -> Result<(), OrderWithheld> {
        let now = Instant::now();
        let in_time = self.limits.permit(now);
        if let Some(order) = self.order {
            order.account.send(order.attempt, in_time, order.epoch, order.journal_day)?;
        }
        if let Some(change) = self.change {
            change.halt.check(change.epoch)?;
        }
        if !in_time {
            return Err(OrderWithheld::SendByPassed);
        }
        // Given up by a layer below meanwhile: nothing may leave, although the attempt is recorded as if it had.
        if self.stamp.is_some_and(|stamp| !stamp.begin(now.into_std())) {
            return Err(OrderWithheld::NotWanted);
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
        if let Some(check) = this.check.take()
            && let Err(why) = check.open()
        {
            return Poll::Ready(Some(Err(why.into())));
        }
        this.inner.poll_frame(cx).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        // An order's or a change's body must be polled, even an empty one: that poll decides whether it leaves.
        let checked =
            self.check.as_ref().is_some_and(|check| check.order.is_some() || check.change.is_some());
        !checked && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl<B> fmt::Debug for GuardedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedBody").field("sent", &self.check.is_none()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    #[test]
    fn a_send_that_was_given_up_does_not_leave_at_a_late_poll() {
        let stamp = ext::SendStamp::new();
        let check = SendCheck {
            limits: TimeLimits::default(),
            stamp: Some(stamp.clone()),
            order: None,
            change: None,
        };
        let mut body = GuardedBody::new(Full::new(Bytes::from("qty=10")), check);
        assert!(stamp.give_up(), "nothing has left");
        let polled = Pin::new(&mut body).poll_frame(&mut Context::from_waker(std::task::Waker::noop()));
        assert!(matches!(polled, Poll::Ready(Some(Err(_)))), "{polled:?}");
    }

    #[test]
    fn a_guarded_body_is_as_long_as_what_it_guards() {
        let check = SendCheck { limits: TimeLimits::default(), stamp: None, order: None, change: None };
        let body = GuardedBody::new(Full::new(Bytes::from("qty=10")), check);
        assert_eq!(body.size_hint().exact(), Some(6));
    }
}
