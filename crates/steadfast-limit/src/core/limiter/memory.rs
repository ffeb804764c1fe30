use std::{hash::Hasher, time::Duration};

use steadfast_spec::Lane;

use super::{Limiter, dispatch::Waiter};
use crate::{
    core::{
        decision::{LedgerSet, MOST_ZONES, ZoneId},
        key_state::Ledger,
        snapshot::{LaneSnapshot, ZoneSnapshot},
        time::{LATEST, Nanos},
    },
    error::Refusal,
};

/// Creation, lookup and removal of keys.
impl Limiter {
    /// How often idle keys are removed.
    const SWEEP: Nanos = 10_000_000_000;

    /// Moves the clock to `now`, never backwards: callers may get the lock in any order.
    pub(super) fn advance(&mut self, now: Nanos) -> Nanos {
        self.clock = self.clock.max(now.min(LATEST));
        if self.clock >= self.tends_at {
            self.tend(self.clock);
        }
        if self.clock >= self.next_sweep {
            self.sweep(self.clock);
        }
        self.clock
    }

    /// Returns the ledgers of `zones`, created if they are new.
    pub(super) fn open(&mut self, zones: &[(ZoneId, u64)], now: Nanos) -> Result<LedgerSet, Refusal> {
        let mut ledgers = LedgerSet::default();
        // Sweep before opening the first key: a sweep in between would drop it as idle.
        if self.ledgers.len() + zones.len() > self.settings.most_keys {
            self.sweep(now);
        }
        for (zone, key) in zones {
            if !ledgers.insert(self.open_one(*zone, *key)?) {
                return Err(Refusal::TooManyZones { most: MOST_ZONES });
            }
        }
        if zones.is_empty() { Err(Refusal::NoZone) } else { Ok(ledgers) }
    }

    /// Returns the ledgers of `zones` if all of them were used recently. A full limiter sweeps for room only for a
    /// key that is new to it.
    pub(super) fn lately_all(&self, zones: &[(ZoneId, u64)]) -> Option<LedgerSet> {
        let mut ledgers = LedgerSet::default();
        for (zone, key) in zones {
            if !ledgers.insert(self.lately(*zone, *key)?) {
                return None;
            }
        }
        (!zones.is_empty()).then_some(ledgers)
    }

    /// Returns the ledger of a recently used key, without the index.
    fn lately(&self, zone: ZoneId, key: u64) -> Option<u32> {
        let id = self.lately[place_of(zone, key)];
        // Another key may have taken the slot since.
        self.ledgers.get(id as usize).filter(|ledger| ledger.zone == zone && ledger.key == key).map(|_| id)
    }

    fn open_one(&mut self, zone: ZoneId, key: u64) -> Result<u32, Refusal> {
        let id = match self.index.get(&(zone, key)) {
            Some(id) => *id,
            None => self.open_new(zone, key)?,
        };
        self.lately[place_of(zone, key)] = id;
        Ok(id)
    }

    fn open_new(&mut self, zone: ZoneId, key: u64) -> Result<u32, Refusal> {
        if self.ledgers.len() >= self.settings.most_keys {
            return Err(Refusal::TooManyKeys { zone: self.rules[usize::from(zone.0)].zone });
        }
        let ledger = self.new_ledger(zone, key);
        if self.ledgers.len() == self.ledgers.capacity() {
            // Grow by half, so that a limiter of one key does not reserve four.
            self.ledgers.reserve_exact((self.ledgers.len() / 2).max(1));
        }
        let id = self.ledgers.insert(ledger) as u32;
        self.index.insert((zone, key), id);
        Ok(id)
    }

    pub(super) fn new_ledger(&self, zone: ZoneId, key: u64) -> Ledger {
        let rules = &self.rules[usize::from(zone.0)];
        let mut ledger = Ledger::new(zone, key);
        if !self.start.is_over(rules, self.clock) {
            self.start.prepare(&mut ledger, rules);
        }
        ledger
    }

    /// Drops idle keys.
    pub(super) fn sweep(&mut self, now: Nanos) {
        self.next_sweep = now + Self::SWEEP;
        let (rules, index) = (&self.rules, &mut self.index);
        let before = self.ledgers.len();
        // A freed slot may soon belong to another key.
        self.recent = None;
        self.ledgers.retain(|_, ledger| {
            let idle = ledger.is_idle(&rules[usize::from(ledger.zone.0)], now);
            if idle {
                index.remove(&(ledger.zone, ledger.key));
            }
            !idle
        });
        if self.ledgers.len() < before {
            self.ledgers.shrink_to_fit();
            self.index.shrink_to_fit();
        }
        if self.waiters.is_empty() {
            self.waiters.shrink_to_fit();
            self.stirred = Vec::new();
            self.scratch = Vec::new();
        }
    }

    pub(super) fn zone_snapshot(&self, id: usize, now: Nanos) -> (ZoneId, ZoneSnapshot) {
        let ledger = &self.ledgers[id];
        let rules = &self.rules[usize::from(ledger.zone.0)];
        let waiting = ledger.queue.as_ref().map(|queue| queue.waiting()).unwrap_or_default();
        let snapshot = ZoneSnapshot {
            zone: rules.zone,
            key: ledger.key,
            in_flight: ledger.in_flight.len(),
            lost: ledger.lost.counted().len(),
            windows: ledger.uses(rules, now),
            frozen_for: ledger.frozen_until(now).map(|until| Duration::from_nanos(until - now)),
            step: ledger.step(),
            lanes: Lane::ALL.map(|lane| LaneSnapshot {
                lane,
                waiting: waiting[lane as usize],
                next_free: Duration::from_nanos(self.estimate(id, lane, false, now) - now),
            }),
        };
        (ledger.zone, snapshot)
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let inner: usize = self.ledgers.iter().map(|(_, ledger)| ledger.heap_bytes()).sum();
        // A slab's entry is a value and a tag; a map's is a pair and a control byte.
        let ledgers = self.ledgers.capacity() * (size_of::<Ledger>() + size_of::<usize>());
        let index = self.index.capacity() * (size_of::<((ZoneId, u64), u32)>() + 1);
        let waiters = self.waiters.capacity() * (size_of::<Waiter>() + size_of::<usize>());
        inner + ledgers + index + waiters + self.scratch.capacity() * size_of::<Nanos>()
    }
}

/// How many keys are found without the index.
pub(super) const LATELY: usize = 8;

/// Returns the slot of a key among them.
fn place_of(zone: ZoneId, key: u64) -> usize {
    (key as usize).wrapping_add(usize::from(zone.0)) % LATELY
}

/// Spreads keys that are already hashes.
#[derive(Debug, Default)]
pub(super) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u8(*byte);
        }
    }

    fn write_u8(&mut self, n: u8) {
        self.write_u64(n.into());
    }

    fn write_u64(&mut self, n: u64) {
        // The multiplier is 2^64 divided by the golden ratio, which spreads neighbouring numbers.
        self.0 = (self.0.rotate_left(23) ^ n).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
