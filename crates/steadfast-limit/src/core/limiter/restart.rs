use super::Limiter;
use crate::{
    core::{
        decision::ZoneId,
        key_record::KeyRecord,
        key_set::KeySet,
        start::{Assumed, Start},
        time::Nanos,
    },
    error::Refusal,
};

/// State that outlives the process, and how the next one starts.
impl Limiter {
    /// Adds what new keys count as spent, for a limiter that started at `at`.
    pub(crate) fn assume(&mut self, spent: Assumed, at: Nanos) {
        self.keys.assume(Start { spent, at, after_process: self.settings.after_process() });
    }

    /// Returns what new keys count as spent at `now`, each with the time since that start.
    pub(crate) fn assumed(&mut self, now: Nanos) -> Vec<(Assumed, Nanos)> {
        let now = self.advance(now);
        self.sweep(now);
        self.keys.starts().iter().map(|start| (start.spent, now.saturating_sub(start.at))).collect()
    }

    /// Forgets what one key has spent in one zone. For a renewed token, whose windows at the gateway are new.
    /// Requests on their way stay counted.
    ///
    /// # Panics
    ///
    /// If `zone` is not this limiter's.
    pub fn reset(&mut self, zone: ZoneId, key: u64, now: Nanos) {
        let now = self.advance(now);
        self.keys.reset(zone, key, now);
        let Some(id) = self.keys.find(zone, key) else { return };
        self.dispatch(KeySet::from(id as u32), now);
    }

    /// Returns the instants from which the spent slots of one key age, in nanoseconds relative to `now` and ascending.
    /// Requests on their way count as if the gateway counted them at the last possible instant.
    pub fn export(&mut self, zone: ZoneId, key: u64, now: Nanos) -> Vec<i64> {
        let now = self.advance(now);
        let Some(id) = self.keys.find(zone, key) else { return Vec::new() };
        let (state, rules) = self.keys.get(id);
        let latest = now + self.settings.arrives_within + rules.settle;
        let on_their_way = (0..state.on_their_way()).map(|_| latest);
        let mut stamps: Vec<_> = state.spent(rules, now).chain(on_their_way).collect();
        stamps.sort_unstable();
        stamps.into_iter().map(|stamp| stamp as i64 - now as i64).collect()
    }

    /// Adds what one key had spent in one zone at `exported`, in the form that [`export`](Self::export) returned. The
    /// process that exported it has ended by `now`.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooManyKeys`] if there is no room for the key.
    ///
    /// # Panics
    ///
    /// If `zone` is not this limiter's.
    pub fn import(
        &mut self,
        zone: ZoneId,
        key: u64,
        stamps: &[i64],
        exported: Nanos,
        now: Nanos,
    ) -> Result<(), Refusal> {
        let now = self.advance(now);
        let keys = self.keys.open(&[(zone, key)], now)?;
        let after_process = self.settings.after_process();
        for id in keys.iter() {
            let (state, rules) = self.keys.get_mut(id);
            let latest = now + after_process + rules.settle;
            let at = |offset: &i64| exported.saturating_add_signed(*offset).min(latest);
            state.restore(rules, stamps.iter().map(at), now);
        }
        self.dispatch(keys, now);
        Ok(())
    }

    /// Counts all windows of one key in one zone as spent until they have passed, except for cancels and
    /// verifications. For a token shared with a program that has just stopped.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooManyKeys`] if there is no room for the key.
    ///
    /// # Panics
    ///
    /// If `zone` is not this limiter's.
    pub fn assume_spent(&mut self, zone: ZoneId, key: u64, now: Nanos) -> Result<(), Refusal> {
        let now = self.advance(now);
        for id in self.keys.open(&[(zone, key)], now)?.iter() {
            let (state, rules) = self.keys.get_mut(id);
            state.fill(now + rules.longest());
        }
        Ok(())
    }

    /// Returns what every key has spent at `now`.
    pub(crate) fn export_all(&mut self, now: Nanos) -> Vec<KeyRecord> {
        let now = self.advance(now);
        self.sweep(now);
        let each = self.keys.ids().into_iter().map(|id| {
            let (state, _) = self.keys.get(id);
            let (zone, key) = (state.zone(), state.key());
            let closed_for = state.closed_until(now).saturating_sub(now);
            KeyRecord { zone, key, closed_for, stamps: self.export(zone, key, now) }
        });
        each.collect()
    }

    /// Restores what one key had spent at `exported`. A zone closed by a 429 stays closed, except for cancels and
    /// verifications: whether the gateway still refuses is unknown.
    pub(crate) fn import_kept(
        &mut self,
        kept: &KeyRecord,
        exported: Nanos,
        now: Nanos,
    ) -> Result<(), Refusal> {
        self.import(kept.zone, kept.key, &kept.stamps, exported, now)?;
        let closed_until = exported.saturating_add(kept.closed_for);
        if closed_until > now {
            for id in self.keys.open(&[(kept.zone, kept.key)], now)?.iter() {
                self.keys.get_mut(id).0.fill(closed_until);
            }
        }
        Ok(())
    }
}
