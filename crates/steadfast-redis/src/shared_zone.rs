use std::{fmt, sync::Arc, time::Duration};

use steadfast_call::Lane;
use tokio::time::{Instant, sleep, timeout_at};

use crate::{
    error::{NotGranted, StoreError},
    returns::Return,
    rule::{Micros, Rule},
    shared::Inner,
    windows::{Ask, Decision},
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

/// How soon a store that has failed is asked again.
const ASKS_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// How long after the end of its connection a request may still be counted.
const AFTER_RESET: Duration = Duration::from_secs(1);

impl SharedZone {
    pub(crate) fn new(shared: Arc<Inner>, key: String, rule: Rule) -> Self {
        Self { zone: Arc::new(Zone { shared, key: key.into(), rule: rule.into() }) }
    }

    /// Waits until the windows of all processes have room for a request of `lane`.
    ///
    /// While the store cannot be reached nothing is granted.
    ///
    /// # Errors
    ///
    /// [`NotGranted`] if that cannot be before `deadline`, or the store is unreachable for 10 s.
    pub async fn acquire(&self, lane: Lane, deadline: Option<Instant>) -> Result<SharedPermit, NotGranted> {
        let Zone { shared, key, rule } = &*self.zone;
        let mut permit = self.unasked();
        let mut unreachable_since = None;
        loop {
            let asked = shared.store.now();
            permit.usable_until = asked + micros(rule.hold());
            let first_use = rule.is_per_token() && shared.new_token.is_first_use(key);
            let decided = match self.within(deadline, shared.store.connect()).await {
                // It may be asked from here on, so it is given back however that ends.
                Ok(()) => {
                    permit.end = End::Refund;
                    let ask = Ask::new(&permit.id, lane);
                    let ask = if first_use { ask.first_use() } else { ask };
                    self.within(deadline, shared.store.acquire(key, rule, &ask)).await
                }
                Err(error) => Err(error),
            };
            if decided.is_ok() {
                shared.new_token.used(key);
            }
            let (wait, failed) = match decided {
                // A reply that took too long is given back.
                Ok((Decision::Granted, _)) if !permit.is_usable() => {
                    permit = self.unasked();
                    continue;
                }
                Ok((Decision::Granted, _)) => return Ok(permit),
                Ok((Decision::Refused { .. }, wait)) => {
                    unreachable_since = None;
                    (wait, None)
                }
                Err(error) => {
                    // It may have been granted all the same, so it is given back and asked for as another one.
                    permit = self.unasked();
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
    end: End,
}

/// What dropping a permit tells the store.
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
