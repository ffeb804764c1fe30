use crate::{
    core::{
        decision::ZoneId,
        key_record::KeyRecord,
        limiter::Limiter,
        start::{Assumed, Start},
        time::Nanos,
    },
    persist::journal::{Found, Journal},
};

/// How much a limiter knows of the time before its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// Nothing: each token's origin decides.
    PerToken,
    /// As much as the journal of an earlier process says.
    FromJournal,
    /// All of it: the configuration says so.
    Configured,
}

/// Restores what a journal holds.
pub(crate) fn resume(core: &mut Limiter, journal: &Journal, found: Found, now: Nanos) -> Beginning {
    let path = journal.path().display();
    let record = match found {
        Found::Record(record) => record,
        Found::Nothing => {
            tracing::info!(%path, "no journal yet: windows start empty");
            return Beginning::PerToken;
        }
        Found::Damaged | Found::Stale => {
            core.assume(Start { spent: Assumed::All, at: now });
            return Beginning::FromJournal;
        }
    };
    if !record.closed {
        core.assume(Start { spent: Assumed::Unrecorded, at: now });
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
            core.assume(Start { spent: Assumed::All, at: now });
            break;
        }
    }
    // What earlier starts assumed is part of the keys on record. It concerns the others.
    for (spent, before) in record.content.starts {
        core.assume(Start { spent, at: exported.saturating_sub(before) });
    }
    Beginning::FromJournal
}
