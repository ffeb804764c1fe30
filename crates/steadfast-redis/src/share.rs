use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use steadfast_call::Lane;
use tokio::{
    runtime::Handle,
    sync::watch,
    time::{Instant, timeout},
};

use crate::{
    rule::{Micros, Rule},
    shared::Inner,
    shared_zone::SharedZone,
    store::Store,
    windows::{Ask, Decision, SharedWindows},
};

/// The slots that the store has lent to this process, by key, for cancels that the store does not let through, or that
/// cannot ask it.
///
/// The store takes a lent slot from the limit for all processes. So the requests of the others and those of this slot
/// stay within the limit together, whatever the store has done meanwhile.
pub(crate) struct Shares {
    lent: Mutex<HashMap<Arc<str>, Share>>,
    /// Closed when the last clone is dropped, so that the slots are given back.
    open: watch::Sender<()>,
}

enum Share {
    /// Being asked for.
    Asked,
    Lent {
        /// When it was lent or renewed last ends, by this process's clock.
        usable_until: Micros,
        windows: SharedWindows,
    },
}

/// How long a slot is lent. A process that died keeps one for that long.
const LENT_FOR: Micros = 1_800_000_000;
/// By how much earlier it is used last: the store's clock may run faster.
const ENDS_EARLIER: Micros = 10_000_000;
/// How often it is renewed, or asked for again. This is shorter than a store without memory counts as full, so such a store
/// says that the slot is gone before it grants anything.
const RENEWED_EVERY: Duration = Duration::from_secs(20);
/// How soon a renewal of which the store did not hear is tried again.
const TRIES_AGAIN_AFTER: Duration = Duration::from_secs(5);
/// How long the store has to lend one.
const LENDS_WITHIN: Duration = Duration::from_secs(2);

impl Default for Shares {
    fn default() -> Self {
        Self { lent: Mutex::default(), open: watch::Sender::new(()) }
    }
}

impl Shares {
    /// Asks the store for the slot of `zone` from now on, unless that is done already.
    pub(crate) fn ask_for(shared: &Arc<Inner>, zone: &SharedZone) {
        if zone.rule().most_lent() == 0 {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        let (key, rule) = (Arc::clone(zone.key()), Arc::clone(zone.rule()));
        // One lock for look and entry: of two callers one asks.
        match shared.shares.lent.lock().entry(Arc::clone(&key)) {
            Entry::Occupied(_) => return,
            Entry::Vacant(vacant) => drop(vacant.insert(Share::Asked)),
        }
        let task = Task { shared: Arc::downgrade(shared), store: Arc::clone(&shared.store), key, rule };
        runtime.spawn(task.run(shared.shares.open.subscribe()));
    }

    /// True if a cancel could take the slot of `key` now.
    pub(crate) fn has_room(&self, key: &str, now: Micros) -> bool {
        match self.lent.lock().get_mut(key) {
            // Taken and given back under one lock: meanwhile no cancel finds the slot taken.
            Some(share) => share.take("", now) && share.give_back(""),
            None => false,
        }
    }

    /// Takes the slot of `key` for a cancel. False if there is none, or its windows have no room now.
    pub(crate) fn take(&self, key: &str, id: &str, now: Micros) -> bool {
        self.lent.lock().get_mut(key).is_some_and(|share| share.take(id, now))
    }

    /// Records how a request with the slot of `key` ended: when it counts as answered, or that it never left.
    pub(crate) fn end(&self, key: &str, id: &str, answered: Option<Micros>) {
        let mut lent = self.lent.lock();
        let Some(Share::Lent { windows, .. }) = lent.get_mut(key) else { return };
        match answered {
            Some(answered) => windows.settle(id, answered),
            None => windows.refund(id),
        }
    }

    /// Notes that the slot was lent or renewed by a call that was sent at `sent`.
    fn lent(&self, key: &Arc<str>, rule: &Rule, sent: Micros) {
        let until = sent + LENT_FOR - ENDS_EARLIER;
        let mut lent = self.lent.lock();
        match lent.get_mut(key) {
            Some(Share::Lent { usable_until, .. }) => *usable_until = until,
            _ => {
                let windows = SharedWindows::new(rule.of_share());
                lent.insert(Arc::clone(key), Share::Lent { usable_until: until, windows });
            }
        }
    }

    /// Notes that the store has not lent the slot, or has forgotten it.
    fn not_lent(&self, key: &Arc<str>) {
        self.lent.lock().insert(Arc::clone(key), Share::Asked);
    }
}

impl Share {
    fn take(&mut self, id: &str, now: Micros) -> bool {
        match self {
            Self::Lent { usable_until, windows } if now < *usable_until => {
                // It waits for all that may still be counted, as no reserve is left behind it.
                let decision = windows.acquire("share", &Ask::new(id, Lane::Trading).first_use(), now);
                if decision != Decision::Granted {
                    windows.refund(id);
                }
                decision == Decision::Granted
            }
            _ => false,
        }
    }

    /// Takes back a request that never left. True if there was a slot to give back to.
    fn give_back(&mut self, id: &str) -> bool {
        match self {
            Self::Lent { windows, .. } => {
                windows.refund(id);
                true
            }
            Self::Asked => false,
        }
    }
}

/// Lets the next request ask for a slot when the task of this one ends, with its runtime. The store counts the old slot
/// until it has run out.
struct Ended<'a>(&'a Task);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        if let Some(shared) = self.0.shared.upgrade() {
            shared.shares.lent.lock().remove(&self.0.key);
        }
    }
}

/// Keeps one slot lent.
struct Task {
    /// Weak, so that the last clone can be dropped.
    shared: Weak<Inner>,
    store: Arc<Store>,
    key: Arc<str>,
    rule: Arc<Rule>,
}

impl Task {
    async fn run(self, mut open: watch::Receiver<()>) {
        let _ended = Ended(&self);
        let mut id = None;
        loop {
            let pause = self.renew(&mut id).await;
            // It says something only by closing.
            if timeout(pause, open.changed()).await.is_ok() {
                break;
            }
        }
        if let Some(id) = id {
            // As long as a last request may be counted.
            let rest = self.rule.after_share();
            let _ = self.store.lend(&self.key, &self.rule, &id, rest).await;
        }
    }

    /// Asks for the slot, or renews it. Returns when to do so again.
    async fn renew(&self, id: &mut Option<String>) -> Duration {
        let Some(shared) = self.shared.upgrade() else { return Duration::ZERO };
        if let Some(held) = id {
            let sent = shared.store.now();
            return match self.lend(held).await {
                Some(true) => {
                    shared.shares.lent(&self.key, &self.rule, sent);
                    RENEWED_EVERY
                }
                // The store has forgotten: its windows count as full for a while.
                Some(false) => {
                    *id = None;
                    shared.shares.not_lent(&self.key);
                    TRIES_AGAIN_AFTER
                }
                None => TRIES_AGAIN_AFTER,
            };
        }
        // A slot is free at first, so that what was counted before it was lent is within the limit too.
        let zone = SharedZone::of(Arc::clone(&shared), Arc::clone(&self.key), Arc::clone(&self.rule));
        drop(shared);
        let Ok(permit) = zone.acquire(Lane::Normal, Some(Instant::now() + LENDS_WITHIN)).await else {
            return TRIES_AGAIN_AFTER;
        };
        let (shared, sent) = (zone.shared(), zone.shared().store.now());
        if self.lend(permit.id()).await == Some(true) {
            shared.shares.lent(&self.key, &self.rule, sent);
            *id = Some(permit.into_id());
        }
        RENEWED_EVERY
    }

    /// Lends or renews; `None` if the store did not say.
    async fn lend(&self, id: &str) -> Option<bool> {
        self.store.lend(&self.key, &self.rule, id, LENT_FOR + self.rule.after_share()).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use steadfast_limit::{Quota, SECOND, Scope, Zone, ZoneLimiter};

    use super::*;

    /// Regression: the look took the slot, and gave it back under another lock, so that a cancel between the two found none.
    #[test]
    fn a_cancel_finds_the_slot_while_others_only_look() {
        let quota = Quota::new(Zone::GENERAL, Scope::AuthToken).limit(10, SECOND);
        let limiter = ZoneLimiter::builder().zone(quota).build().unwrap();
        let rule = Rule::new(&limiter.settings()[0]).emergency_share();
        let (shares, key) = (Shares::default(), Arc::<str>::from("key"));
        shares.lent(&key, &rule, 0);
        let missed = thread::scope(|scope| {
            let look = || (0..20_000).for_each(|_| _ = shares.has_room(&key, 1));
            scope.spawn(look);
            scope.spawn(look);
            let taken = |id: u32| {
                let (id, now) = (id.to_string(), 1);
                shares.take(&key, &id, now) && {
                    shares.end(&key, &id, None);
                    true
                }
            };
            (0..20_000).filter(|id| !taken(*id)).count()
        });
        assert_eq!(missed, 0);
    }
}
