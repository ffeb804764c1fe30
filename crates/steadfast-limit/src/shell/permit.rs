use std::{fmt, sync::Arc, task::Waker};

use tokio::time::Instant;

use crate::{
    core::{
        decision::{Answer, Grant, Loss},
        time::Nanos,
    },
    shell::{route_mover::WatchedRoute, shared::Shared, shared_count::SharedSlot},
};

/// The right to send one request, spent in every zone that it falls under.
///
/// It ends in exactly one way. Each way says something else about when the gateway counted the request:
///
/// | what happened | call | its slots |
/// |---|---|---|
/// | the head of the answer is back | [`settle`](Self::settle) | age from now on |
/// | the answer will never be seen | [`lose`](Self::lose), [`lose_ended`](Self::lose_ended) | are held until the gateway cannot count it any longer |
/// | it provably never left | [`refund`](Self::refund) | are free at once |
/// | unknown | dropping it | a refund before [`sent`](Self::sent), a loss after it |
///
/// # Example
///
/// A client without tower: every request takes a permit, and every end of a request is reported.
///
/// ```
/// use std::io;
/// use steadfast_limit::{Account, Answer, Lane, Loss, Zone, ZoneLimiter};
///
/// # async fn exchange() -> io::Result<u16> { Ok(429) }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = ZoneLimiter::preset();
/// let keys = limiter.keys("api.example.com", &Account::new("trader"));
///
/// let mut permit = limiter.acquire(&[Zone::PLACE_ORDER], keys, Lane::Trading).await?;
/// permit.sent();
/// match exchange().await {
///     Ok(429) => permit.settle(Answer::TooManyRequests { retry_after: None }),
///     Ok(_) => permit.settle(Answer::Accepted),
///     Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => permit.refund(),
///     Err(_) => permit.lose(Loss::Reset),
/// }
/// // It was refused, so the zone stops for a second, for all lanes.
/// let zone = limiter.snapshot().zones.remove(0);
/// assert_eq!(zone.paused_for, Some(std::time::Duration::from_secs(1)));
/// # Ok(())
/// # }
/// ```
///
/// # Cancellation
///
/// A permit dropped before [`sent`](Self::sent) gives its slots back. Dropped afterwards, it is
/// [lost](Loss::GivenUp) unless [`ends_when_dropped`](Self::ends_when_dropped) was called: its slots are held as
/// long as the gateway may still count the request, and then free themselves.
#[must_use = "a permit that is dropped gives its slots back"]
pub struct Permit {
    shared: Arc<Shared>,
    grant: Option<Grant>,
    /// The index of the call's owner, which holds the grant once the call has been polled.
    owner: Option<usize>,
    sent: Option<Nanos>,
    ends_when_dropped: bool,
    /// Its slots in the windows of all processes.
    shared_slot: Option<Box<dyn SharedSlot>>,
}

impl Permit {
    pub(crate) fn new(shared: Arc<Shared>, grant: Grant) -> Self {
        shared.touched();
        Self {
            shared,
            grant: Some(grant),
            owner: None,
            sent: None,
            ends_when_dropped: false,
            shared_slot: None,
        }
    }

    /// Adds the slots that the request has in the windows of all processes. False if its own were given away
    /// meanwhile.
    pub(crate) fn share(&mut self, shared_slot: Box<dyn SharedSlot>) -> bool {
        self.grant = self.take();
        self.shared_slot = Some(shared_slot);
        self.grant.is_some()
    }

    /// Marks that the request leaves now, or may. From here on only its answer or proof frees the slots.
    pub fn sent(&mut self) {
        self.sent_at(Instant::now());
    }

    /// Promises that the connection has ended abortively when the permit is dropped, which is then [`Loss::Reset`].
    pub fn ends_when_dropped(&mut self) {
        self.ends_when_dropped = true;
    }

    /// Does the same at the instant `now`.
    pub(crate) fn sent_at(&mut self, now: Instant) {
        if self.sent.is_none() {
            self.sent = Some(self.shared.nanos(now));
            if let Some(slot) = &mut self.shared_slot {
                slot.sent();
            }
        }
    }

    /// Records that the call was polled and is pending. A call that is not polled for a while is woken by `waker`, and
    /// loses its slots if it is still not polled. False if the call must ask for another permit.
    pub(crate) fn keep_alive(&mut self, waker: &Waker) -> bool {
        // The other processes may count it as lost by now.
        if self.sent.is_none() && self.shared_slot.as_ref().is_some_and(|slot| !slot.is_usable()) {
            return false;
        }
        let now = self.shared.now();
        let Self { shared, grant, owner, sent, .. } = self;
        shared.hand_off().keep_alive(owner, grant, *sent, waker, now)
    }

    fn take(&mut self) -> Option<Grant> {
        match self.owner.take() {
            Some(owner) => self.shared.hand_off().end_call(owner),
            None => self.grant.take(),
        }
    }

    /// Records that the head of the answer is back. The slots age from now on, so call it before the body is read.
    pub fn settle(self, answer: Answer) {
        self.settle_watched(answer, None);
    }

    /// Does the same for a request of the route `watched`.
    pub(crate) fn settle_watched(mut self, answer: Answer, watched: Option<WatchedRoute>) {
        if let Some(slot) = self.shared_slot.take() {
            slot.settle();
        }
        if matches!(answer, Answer::TooManyRequests { .. }) && self.owner.is_some() {
            // If the call was presumed counted, it counts once more. Otherwise its zones would not hear of the 429.
            self.keep_alive(Waker::noop());
        }
        let Some(grant) = self.take() else { return };
        let watched = watched.filter(|_| matches!(answer, Answer::TooManyRequests { .. }));
        let mismatched = self.shared.with(|core, now| {
            core.settle(grant, answer, now);
            watched.filter(|watched| core.is_mismatched(watched.zone()))
        });
        if let (Some(mover), Some(watched)) = (self.shared.route_mover(), mismatched) {
            self.shared.report_all(mover.mismatch(watched, self.shared.now()).as_slice());
        }
        self.shared.touched();
    }

    /// Records that the answer will never be seen.
    pub fn lose(mut self, loss: Loss) {
        self.end(Some(loss));
    }

    /// Records that the answer will never be seen. Since `ended`, when the connection was closed abortively, nothing
    /// more of the request could reach the service.
    pub fn lose_ended(mut self, ended: Instant) {
        if let Some(slot) = self.shared_slot.take() {
            slot.lose_ended();
        }
        let Some(grant) = self.take() else { return };
        let (sent, ended) = (self.sent, self.shared.nanos(ended));
        self.shared.with(|core, now| core.lose_ended(grant, sent.unwrap_or(now), Some(ended), now));
        self.shared.touched();
    }

    /// Records that the request certainly never left, even if it was marked as sent. The slots are free again.
    pub fn refund(mut self) {
        self.end(None);
    }

    fn end(&mut self, loss: Option<Loss>) {
        if let Some(slot) = self.shared_slot.take() {
            match loss {
                None => slot.refund(),
                Some(Loss::Reset) => slot.lose_ended(),
                // Held until the request cannot be counted any longer.
                Some(Loss::GivenUp) => drop(slot),
            }
        }
        let Some(grant) = self.take() else { return };
        let sent = self.sent;
        self.shared.with(|core, now| match loss {
            Some(loss) => core.lose(grant, sent.unwrap_or(now), loss, now),
            None => core.refund(grant, now),
        });
        self.shared.touched();
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let loss = if self.ends_when_dropped { Loss::Reset } else { Loss::GivenUp };
        self.end(self.sent.map(|_| loss));
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("sent", &self.sent.is_some()).finish_non_exhaustive()
    }
}
