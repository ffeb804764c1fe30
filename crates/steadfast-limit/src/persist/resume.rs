use crate::{
    core::{decision::ZoneId, key_record::KeyRecord, limiter::Limiter, start::Assumed, time::Nanos},
    persist::journal::{Found, Journal},
};

/// Restores what a journal holds. Returns true if there was none, so that the origin of each token decides.
pub(crate) fn resume(core: &mut Limiter, journal: &Journal, found: Found, now: Nanos) -> bool {
    let path = journal.path().display();
    let record = match found {
        Found::Record(record) => record,
        Found::Nothing => {
            tracing::info!(%path, "no journal yet: windows start empty");
            return true;
        }
        Found::Damaged | Found::Stale => {
            core.assume(Assumed::All, now);
            return false;
        }
    };
    if !record.closed {
        core.assume(Assumed::Unrecorded, now);
    }
    let ago = u64::try_from(journal.ago(&record).as_nanos()).unwrap_or(Nanos::MAX);
    let exported = now.saturating_sub(ago);
    let zones: Vec<_> = core.zones().map(|(zone, _)| zone).collect();
    for entry in record.content.keys {
        // A zone that is no longer configured limits nothing.
        let Some((id, _)) = (0_u8..).zip(&zones).find(|(_, zone)| entry.is_of(zone.as_str())) else {
            continue;
        };
        let kept = KeyRecord {
            zone: ZoneId(id),
            key: entry.key,
            closed_for: entry.closed_for,
            stamps: entry.stamps,
        };
        if core.import_kept(&kept, exported, now).is_err() {
            tracing::warn!(%path, "journal holds more keys than the limiter may: all others are taken for spent");
            core.assume(Assumed::All, now);
            break;
        }
    }
    // The keys on record hold the assumptions of earlier starts already. They concern all other keys.
    for (spent, before) in record.content.starts {
        core.assume(spent, exported.saturating_sub(before));
    }
    false
}
