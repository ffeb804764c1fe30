use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use parking_lot::Mutex;
use pin_project_lite::pin_project;
use steadfast_call::Lane;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::{
    core::{
        decision::{Ask, Decision, WaiterId},
        time::Nanos,
    },
    error::Refusal,
    shell::{permit::Permit, shared::Shared, shared_count::SharedAcquire, zone_keys::ZoneKeys},
};

pin_project! {
    /// Waits for a [`Permit`]; made by [`ZoneLimiter::acquire`](crate::ZoneLimiter::acquire).
    ///
    /// A future that is kept and not polled, such as an idle branch of a `select!`, delays those behind it by a
    /// second at most. A permit not collected within a second, or by `send_by`, goes to the next in line. Polled
    /// again, the future has its old place, at the head of its lane.
    ///
    /// # Errors
    ///
    /// Resolves to a [`Refusal`] if a zone is unknown, the queue is full or it cannot [be sent in time](Self::send_by).
    ///
    /// # Panics
    ///
    /// If it must wait outside of a tokio runtime with its timer enabled, or if it is polled after it has resolved: it
    /// would take a second permit.
    ///
    /// # Cancellation
    ///
    /// Dropping it leaves the queue at once. A permit granted meanwhile goes to the next in line.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct Acquire {
        ticket: Ticket,
        zones: Result<ZoneKeys, Refusal>,
        lane: Lane,
        send_by: Option<Nanos>,
        head_of_lane: bool,
        is_resolved: bool,
        #[pin]
        alarm: Option<Sleep>,
        // Boxed, because most limiters count alone.
        asking: Option<Box<Asking>>,
    }
}

/// A request that its own limiter admits, and that waits for the other processes.
struct Asking {
    permit: Permit,
    /// In a lock that is never taken, because it need not be `Sync`, and the callers' futures are.
    answer: Mutex<SharedAcquire>,
}

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking").field("permit", &self.permit).finish_non_exhaustive()
    }
}

impl Acquire {
    pub(crate) fn new(shared: Arc<Shared>, zones: Result<ZoneKeys, Refusal>, lane: Lane) -> Self {
        let ticket = Ticket { shared, waiter: None };
        Self {
            ticket,
            zones,
            lane,
            send_by: None,
            head_of_lane: false,
            is_resolved: false,
            alarm: None,
            asking: None,
        }
    }

    /// Refuses the request, at once if possible, if it cannot be granted by `send_by`. Of several such
    /// instants the earliest counts.
    pub fn send_by(mut self, send_by: Instant) -> Self {
        let send_by = self.ticket.shared.nanos(send_by);
        self.send_by = Some(self.send_by.map_or(send_by, |earlier| earlier.min(send_by)));
        self
    }

    /// Makes the request wait at the head of its lane: it repeats one that waited before.
    pub fn at_head_of_lane(mut self) -> Self {
        self.head_of_lane = true;
        self
    }
}

impl Future for Acquire {
    type Output = Result<Permit, Refusal>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(!self.is_resolved, "`Acquire` polled after it has resolved");
        let resolved = ready!(self.as_mut().poll_permit(cx));
        *self.project().is_resolved = true;
        Poll::Ready(resolved.map(|(permit, _)| permit))
    }
}

impl Acquire {
    /// Lets the next permit be asked for from the head of the lane: the one before was taken back.
    pub(crate) fn return_to_head(self: Pin<&mut Self>) {
        *self.project().head_of_lane = true;
    }

    /// Returns the permit and the current instant. Polled again after that, it asks for another permit.
    pub(crate) fn poll_permit(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(Permit, Instant), Refusal>> {
        let mut this = self.project();
        let Ticket { shared, waiter: place } = this.ticket;
        let zones = match this.zones {
            Ok(zones) => zones,
            Err(refusal) => return Poll::Ready(Err(refusal.clone())),
        };
        loop {
            if let Some(asking) = this.asking.as_mut() {
                // As for a call on its way: a future that is not polled gives its slot to the next.
                let holds = asking.permit.keep_alive(cx.waker());
                let answer =
                    if holds { Some(ready!(asking.answer.get_mut().as_mut().poll(cx))) } else { None };
                let permit = this.asking.take().map(|asking| asking.permit);
                match (permit, answer) {
                    (Some(mut permit), Some(Ok(slot))) => {
                        if permit.share(slot) {
                            return Poll::Ready(Ok((permit, Instant::now())));
                        }
                    }
                    (_, Some(Err(refusal))) => return Poll::Ready(Err(refusal)),
                    (_, _) => {}
                }
                *this.head_of_lane = true;
            }
            let ask = Ask {
                zones: zones.as_slice(),
                lane: *this.lane,
                send_by: *this.send_by,
                head_of_lane: *this.head_of_lane,
            };
            let now = Instant::now();
            let (decision, wakes_at, events) =
                shared.hand_off().poll(place, &ask, cx.waker(), shared.nanos(now));
            // The permit is owned from here on, whatever an observer does.
            let decision = match decision {
                Decision::Granted(grant) => Ok(Ok(Permit::new(Arc::clone(shared), grant))),
                Decision::Refused(refusal) => Ok(Err(refusal)),
                Decision::Queued { alarm, .. } => Err(alarm.map_or(wakes_at, |alarm| alarm.min(wakes_at))),
            };
            shared.report_all(&events);
            let alarm = match decision {
                // An observer may have taken a while.
                Ok(Ok(permit)) if shared.shared_count().is_some() => {
                    let answer = shared.ask_shared(zones.as_slice(), *this.lane, *this.send_by);
                    *this.asking =
                        answer.map(|answer| Box::new(Asking { permit, answer: Mutex::new(answer) }));
                    continue;
                }
                Ok(granted) => {
                    let now = if events.is_empty() { now } else { Instant::now() };
                    return Poll::Ready(granted.map(|permit| (permit, now)));
                }
                Err(alarm) => alarm,
            };
            let alarm = shared.instant(alarm);
            match this.alarm.as_mut().as_pin_mut() {
                Some(sleep) if sleep.deadline() == alarm => {}
                Some(sleep) => sleep.reset(alarm),
                None => this.alarm.set(Some(sleep_until(alarm))),
            }
            if let Some(sleep) = this.alarm.as_mut().as_pin_mut() {
                ready!(sleep.poll(cx));
            }
            this.alarm.set(None);
        }
    }
}

/// A place in the queues. Dropping it leaves them.
#[derive(Debug)]
struct Ticket {
    shared: Arc<Shared>,
    waiter: Option<WaiterId>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter {
            let now = self.shared.now();
            let events = self.shared.hand_off().leave(waiter, now);
            self.shared.report_all(&events);
        }
    }
}
