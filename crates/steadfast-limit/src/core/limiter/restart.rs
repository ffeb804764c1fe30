use super::Limiter;
use crate::{
    core::{key_record::KeyRecord, start::Start, time::Nanos},
    error::Refusal,
};

/// State that outlives the process, and how the next one starts.
impl Limiter {
    /// Sets how much new keys count as spent from now on.
    pub(crate) fn start(&mut self, start: Start) {
        self.keys.start(start);
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
