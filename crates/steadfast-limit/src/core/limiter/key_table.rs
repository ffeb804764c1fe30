use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasherDefault, Hasher},
};

use slab::Slab;

use crate::{
    core::{
        decision::ZoneId,
        key_set::{KeySet, MOST_ZONES},
        key_state::KeyState,
        queue::Queue,
        rules::Rules,
        start::Start,
        time::Nanos,
    },
    error::Refusal,
};

/// The keys in use, each with the rules of its zone.
#[derive(Debug)]
pub(super) struct KeyTable {
    rules: Box<[Rules]>,
    /// The slots that new keys count as spent: those of this start, and of earlier ones whose windows have not passed.
    starts: Vec<Start>,
    /// Keys whose tokens were renewed, which no start concerns.
    renewed: HashSet<(ZoneId, u64), BuildHasherDefault<KeyHasher>>,
    most_keys: usize,
    states: Slab<KeyState>,
    index: HashMap<(ZoneId, u64), u32, BuildHasherDefault<KeyHasher>>,
}

impl KeyTable {
    pub(super) fn new(rules: Box<[Rules]>, most_keys: usize) -> Self {
        let (states, index, renewed) = (Slab::new(), HashMap::default(), HashSet::default());
        Self { rules, starts: Vec::new(), renewed, most_keys, states, index }
    }

    /// Adds what new keys count as spent from now on.
    pub(super) fn assume(&mut self, start: Start) {
        self.starts.push(start);
    }

    /// Returns what new keys count as spent.
    pub(super) fn starts(&self) -> &[Start] {
        &self.starts
    }

    /// Forgets what a key has spent, also if it is new to the limiter.
    pub(super) fn reset(&mut self, zone: ZoneId, key: u64, now: Nanos) {
        if self.starts.iter().any(|start| !start.is_over(self.rules_of(zone), now)) {
            self.renewed.insert((zone, key));
        }
        if let Some(id) = self.find(zone, key) {
            self.states[id].reset();
        }
    }

    /// Returns the rules of all zones, in the order of their configuration.
    pub(super) fn rules(&self) -> &[Rules] {
        &self.rules
    }

    pub(super) fn rules_of(&self, zone: ZoneId) -> &Rules {
        &self.rules[usize::from(zone.0)]
    }

    /// Returns the place of a key, if it is in use.
    pub(super) fn find(&self, zone: ZoneId, key: u64) -> Option<usize> {
        self.index.get(&(zone, key)).map(|id| *id as usize)
    }

    pub(super) fn get(&self, id: usize) -> (&KeyState, &Rules) {
        let state = &self.states[id];
        (state, self.rules_of(state.zone()))
    }

    pub(super) fn get_mut(&mut self, id: usize) -> (&mut KeyState, &Rules) {
        let state = &mut self.states[id];
        let zone = state.zone();
        (state, &self.rules[usize::from(zone.0)])
    }

    /// Returns the queue of a key, if requests wait for it.
    pub(super) fn queue(&self, id: usize) -> Option<&Queue> {
        self.states.get(id).and_then(KeyState::queue)
    }

    pub(super) fn queue_mut(&mut self, id: usize) -> Option<&mut Queue> {
        self.states.get_mut(id).and_then(KeyState::queue_mut)
    }

    /// Returns the places of all keys in use.
    pub(super) fn ids(&self) -> Vec<usize> {
        self.states.iter().map(|(id, _)| id).collect()
    }

    /// Returns the keys of `zones`, created if they are new.
    pub(super) fn open(&mut self, zones: &[(ZoneId, u64)], now: Nanos) -> Result<KeySet, Refusal> {
        let mut keys = KeySet::default();
        let mut known = zones.iter().map(|(zone, key)| self.find(*zone, *key));
        if !known.all(|id| id.is_some_and(|id| keys.insert(id as u32))) {
            keys = self.open_new(zones, now)?;
        }
        if zones.is_empty() { Err(Refusal::NoZone) } else { Ok(keys) }
    }

    fn open_new(&mut self, zones: &[(ZoneId, u64)], now: Nanos) -> Result<KeySet, Refusal> {
        // Sweep before opening the first key: a sweep in between would drop it as idle.
        if self.states.len() + zones.len() > self.most_keys {
            self.sweep(now);
        }
        let mut keys = KeySet::default();
        for (zone, key) in zones {
            let id = match self.find(*zone, *key) {
                Some(id) => id as u32,
                None => self.add(*zone, *key, now)?,
            };
            if !keys.insert(id) {
                return Err(Refusal::TooManyZones { most: MOST_ZONES });
            }
        }
        Ok(keys)
    }

    fn add(&mut self, zone: ZoneId, key: u64, now: Nanos) -> Result<u32, Refusal> {
        if self.states.len() >= self.most_keys {
            return Err(Refusal::TooManyKeys { zone: self.rules_of(zone).zone });
        }
        let state = self.new_state(zone, key, now);
        if self.states.len() == self.states.capacity() {
            // Grow by half, so that a limiter of one key does not reserve four.
            self.states.reserve_exact((self.states.len() / 2).max(1));
        }
        let id = self.states.insert(state) as u32;
        self.index.insert((zone, key), id);
        Ok(id)
    }

    /// Returns the state of a key that is not in use.
    pub(super) fn new_state(&self, zone: ZoneId, key: u64, now: Nanos) -> KeyState {
        let rules = self.rules_of(zone);
        let mut state = KeyState::new(zone, key);
        if !self.starts.is_empty() && !self.renewed.contains(&(zone, key)) {
            let open = self.starts.iter().filter(|start| !start.is_over(rules, now));
            open.for_each(|start| start.prepare(&mut state, rules));
        }
        state
    }

    /// Drops idle keys, and starts whose windows have passed.
    pub(super) fn sweep(&mut self, now: Nanos) {
        let (rules, index) = (&self.rules, &mut self.index);
        self.starts.retain(|start| rules.iter().any(|rules| !start.is_over(rules, now)));
        if self.starts.is_empty() {
            self.renewed = HashSet::default();
        }
        let before = self.states.len();
        self.states.retain(|_, state| {
            let idle = state.is_idle(&rules[usize::from(state.zone().0)], now);
            if idle {
                index.remove(&(state.zone(), state.key()));
            }
            !idle
        });
        if self.states.len() < before {
            self.states.shrink_to_fit();
            self.index.shrink_to_fit();
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let inner: usize = self.states.iter().map(|(_, state)| state.heap_bytes()).sum();
        // A slab's entry is a value and a tag; a map's is a pair and a control byte.
        let states = self.states.capacity() * (size_of::<KeyState>() + size_of::<usize>());
        let index = self.index.capacity() * (size_of::<((ZoneId, u64), u32)>() + 1);
        let renewed = self.renewed.capacity() * (size_of::<(ZoneId, u64)>() + 1);
        inner + states + index + renewed
    }
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
