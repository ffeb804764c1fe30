use std::{fmt, sync::Arc, time::Duration};

use steadfast_call::Lane;
use steadfast_spec::Scope;
use tokio::time::{Instant, sleep, timeout_at};

use crate::{
    error::{NotGranted, StoreError},
    line::{Lines, Told},
    returns::Return,
    rule::{Micros, Rule},
    share::Shares,
    shared::Inner,
    store::Asked,
    windows::Ask,
};

/// One zone of an account, counted in the store.
///
/// # Clone
///
/// Clones are the same zone.
#[derive(Clone)]
pub struct SharedZone {
    zone: Arc<Zone>,
}

struct Zone {
    shared: Arc<Inner>,
    key: Arc<str>,
    rule: Arc<Rule>,
}

/// How long a request waits for a store that cannot be reached.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a cancel waits for the store if a slot is lent to its process.
const PATIENCE_OF_CANCELS: Duration = Duration::from_millis(250);

/// How soon a store that has failed is asked again.
const ASKS_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// How long after the end of its connection a request may still be counted.
const AFTER_RESET: Duration = Duration::from_secs(1);

impl SharedZone {
    pub(crate) fn new(shared: Arc<Inner>, key: String, rule: Rule) -> Self {
        Self::of(shared, key.into(), rule.into())
    }

    pub(crate) fn of(shared: Arc<Inner>, key: Arc<str>, rule: Arc<Rule>) -> Self {
        Self { zone: Arc::new(Zone { shared, key, rule }) }
    }

    pub(crate) fn shared(&self) -> &Arc<Inner> {
        &self.zone.shared
    }

    pub(crate) fn key(&self) -> &Arc<str> {
        &self.zone.key
    }

    pub(crate) fn rule(&self) -> &Arc<Rule> {
        &self.zone.rule
    }

    /// Waits until the windows of all processes have room for a request of `lane`.
    ///
    /// While the store cannot be reached nothing is granted. A cancel that the store does not let through may leave by the
    /// slot that is [lent](Rule::emergency_share) to this process.
    ///
    /// # Errors
    ///
    /// [`NotGranted`] if that cannot be before `deadline`, or the store is unreachable for 10 s.
    pub async fn acquire(&self, lane: Lane, deadline: Option<Instant>) -> Result<SharedPermit, NotGranted> {
        let shared = &self.zone.shared;
        let mut own = self.unasked();
        let mut unreachable_since = None;
        loop {
            // A cancel waits behind no other request.
            let told = match lane {
                Lane::Critical => self.ask_alone(&mut own, deadline).await,
                _ => self.ask_in_line(lane, deadline).await,
            };
            let (wait, failed) = match told {
                // A reply that took too long is given back.
                Told::Granted(permit) if !permit.is_usable() => continue,
                Told::Granted(permit) => {
                    Shares::ask_for(shared, self);
                    return Ok(permit);
                }
                Told::Refused(wait) => {
                    unreachable_since = None;
                    if let Some(lent) = self.lent(lane, deadline) {
                        return Ok(lent);
                    }
                    (wait, None)
                }
                Told::Failed { error, has_heard } => {
                    if has_heard {
                        unreachable_since = None;
                    }
                    if let Some(lent) = self.lent(lane, deadline) {
                        return Ok(lent);
                    }
                    let now = Instant::now();
                    if now - *unreachable_since.get_or_insert(now) >= PATIENCE {
                        return Err(NotGranted::Store(error));
                    }
                    (ASKS_AGAIN_AFTER, Some(error))
                }
            };
            if let Some(deadline) = deadline
                && Instant::now() + wait >= deadline
            {
                return Err(
                    failed.map_or(NotGranted::WouldMissDeadline { earliest: wait }, NotGranted::Store)
                );
            }
            sleep(wait).await;
        }
    }

    /// Asks for a cancel. `own` keeps its place until it is granted, or may have been without our hearing of it.
    async fn ask_alone(&self, own: &mut SharedPermit, deadline: Option<Instant>) -> Told {
        let until = self.asks_until(deadline);
        let failed = match self.within(until, self.ask([&mut *own], Lane::Critical)).await {
            Ok(Asked { granted: 0, wait }) => return Told::Refused(wait),
            Ok(_) => None,
            Err(error) => Some(Told::Failed { error, has_heard: false }),
        };
        // It may have been granted all the same, so it is given back and asked for as another one.
        let permit = std::mem::replace(own, self.unasked());
        failed.unwrap_or(Told::Granted(permit))
    }

    /// Waits in the line of a lane.
    async fn ask_in_line(&self, lane: Lane, deadline: Option<Instant>) -> Told {
        let mut place = Lines::join(self, lane, deadline, self.unasked());
        // If nothing comes by the deadline the store has not answered: what opens later has been told before. If the task
        // that asks has ended with its runtime, it is as if the store had not answered.
        let told = async { (&mut place.told).await.map_err(|_| self.zone.shared.store.is_silent()) };
        self.within(deadline, told).await.unwrap_or_else(|error| Told::Failed { error, has_heard: false })
    }

    /// Asks the store for requests of one lane, one after the other until one is refused.
    pub(crate) async fn ask<'a>(
        &self,
        permits: impl IntoIterator<Item = &'a mut SharedPermit>,
        lane: Lane,
    ) -> Result<Asked, StoreError> {
        let Zone { shared, key, rule } = &*self.zone;
        let usable_until = shared.store.now() + micros(rule.hold());
        // Of an address or an API key requests may have been counted before the token was made.
        let first_use = rule.scope() == Scope::AuthToken && shared.new_token.is_first_use(key);
        shared.store.connect().await?;
        let ids = permits.into_iter().map(|permit| {
            // It may be asked from here on, so it is given back however that ends.
            (permit.usable_until, permit.end) = (usable_until, End::Refund);
            &*permit.id
        });
        let asks: Vec<_> = ids
            .map(|id| {
                let ask = Ask::new(id, lane);
                if first_use { ask.first_use() } else { ask }
            })
            .collect();
        let asked = shared.store.acquire(key, rule, &asks).await?;
        shared.new_token.used(key);
        Ok(asked)
    }

    /// Takes the slot that is lent to this process, for a cancel.
    fn lent(&self, lane: Lane, deadline: Option<Instant>) -> Option<SharedPermit> {
        let Zone { shared, key, rule } = &*self.zone;
        if lane != Lane::Critical || deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return None;
        }
        let (mut permit, now) = (self.unasked(), shared.store.now());
        if !shared.shares.take(key, &permit.id, now) {
            return None;
        }
        permit.usable_until = now + micros(rule.hold());
        (permit.end, permit.is_lent) = (End::Refund, true);
        Some(permit)
    }

    /// Returns until when a cancel waits for the store: not for long if it can leave without it.
    fn asks_until(&self, deadline: Option<Instant>) -> Option<Instant> {
        let Zone { shared, key, .. } = &*self.zone;
        if !shared.shares.has_room(key, shared.store.now()) {
            return deadline;
        }
        let now = Instant::now();
        let half = deadline.map(|deadline| deadline.saturating_duration_since(now) / 2);
        Some(now + half.map_or(PATIENCE_OF_CANCELS, |half| half.min(PATIENCE_OF_CANCELS)))
    }

    /// Waits for the store until `deadline`.
    async fn within<T>(
        &self,
        deadline: Option<Instant>,
        answer: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        match deadline {
            Some(deadline) => {
                timeout_at(deadline, answer).await.unwrap_or_else(|_| Err(self.zone.shared.store.is_silent()))
            }
            None => answer.await,
        }
    }

    /// Makes a permit that the store does not know of yet.
    fn unasked(&self) -> SharedPermit {
        SharedPermit {
            id: self.zone.shared.new_id(),
            zone: Arc::clone(&self.zone),
            usable_until: 0,
            is_lent: false,
            end: End::Nothing,
        }
    }
}

impl fmt::Debug for SharedZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedZone").field("key", &self.zone.key).finish_non_exhaustive()
    }
}

/// The right to send one request, spent in the windows of all processes.
///
/// Dropped before [`sent`](Self::sent), it is given back. Dropped after it, its slot is held until the gateway can no
/// longer count the request.
#[must_use = "a permit that is dropped gives its slot back"]
pub struct SharedPermit {
    zone: Arc<Zone>,
    id: String,
    usable_until: Micros,
    /// True if its slot is the one that is lent to this process.
    is_lent: bool,
    end: End,
}

/// The message of a dropped permit to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Refund,
    Settle(Duration),
    Nothing,
}

impl SharedPermit {
    /// True as long as its request may leave. Later it is given back, and another one is asked for.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.zone.shared.store.now() <= self.usable_until
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn zone(&self) -> SharedZone {
        SharedZone { zone: Arc::clone(&self.zone) }
    }

    /// Keeps the slot, which the store has lent.
    pub(crate) fn into_id(mut self) -> String {
        self.end = End::Nothing;
        std::mem::take(&mut self.id)
    }

    /// Marks that the request leaves now, or may.
    pub fn sent(&mut self) {
        self.end = End::Nothing;
    }

    /// Records that the head of the answer is back.
    pub fn settle(mut self) {
        self.end = End::Settle(Duration::ZERO);
    }

    /// Records that the answer will never be seen, and that the connection has ended abortively.
    pub fn lose_ended(mut self) {
        self.end = End::Settle(AFTER_RESET);
    }

    /// Records that the request certainly never left, even if it was marked as sent.
    pub fn refund(mut self) {
        self.end = End::Refund;
    }
}

impl Drop for SharedPermit {
    fn drop(&mut self) {
        let Zone { shared, key, rule } = &*self.zone;
        let after = match self.end {
            End::Nothing => return,
            End::Refund => None,
            End::Settle(after) => Some(after),
        };
        if self.is_lent {
            let answered = after.map(|after| shared.store.now() + micros(after));
            return shared.shares.end(key, &self.id, answered);
        }
        let id = std::mem::take(&mut self.id);
        shared.returns.send(Return::new(Arc::clone(key), Arc::clone(rule), id, after));
    }
}

impl fmt::Debug for SharedPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedPermit").field("end", &self.end).finish_non_exhaustive()
    }
}

fn micros(duration: Duration) -> Micros {
    Micros::try_from(duration.as_micros()).unwrap_or(Micros::MAX / 8)
}
