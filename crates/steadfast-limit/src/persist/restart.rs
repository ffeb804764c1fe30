use std::sync::Arc;

use parking_lot::Mutex;
use steadfast_spec::Scope;
use tokio::time::{Duration, Instant};

use crate::{
    core::{
        decision::ZoneId,
        event::Event,
        limiter::{Kept, Limiter},
        start::Start,
        time::Nanos,
        trust::demotion::Demotions,
    },
    error::{InvalidLimiter, Refusal},
    persist::{
        clocks::Clocks,
        cold_start::{ColdStart, TokenOrigin},
        journal::{Found, Journal},
        record::Entry,
        spent::Spent,
    },
    request::keys::ScopeKeys,
    shell::{
        builder::Observer,
        zone_limiter::{Shared, ZoneLimiter},
    },
};

/// How much a limiter knows of the time before its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// Nothing: each token's origin decides.
    Asks,
    /// As much as the journal of an earlier process says.
    CarriesOn,
    /// All of it: the configuration says so.
    Settled,
}

/// State that outlives a process or a token.
impl ZoneLimiter {
    /// Makes a limiter that starts as `cold` says.
    pub(crate) fn start(
        mut core: Limiter,
        observer: Option<Observer>,
        demotions: Option<Demotions>,
        cold: ColdStart,
        clocks: Clocks,
    ) -> Result<Self, InvalidLimiter> {
        let now = Shared::START;
        let mut is_damaged = false;
        let (beginning, journal) = match cold {
            ColdStart::Auto => (Beginning::Asks, None),
            ColdStart::Empty => (Beginning::Settled, None),
            ColdStart::Pessimistic => {
                core.start(Start::Spent(now));
                (Beginning::Settled, None)
            }
            ColdStart::Journal(path) => {
                let (journal, found) = Journal::open(&path, clocks)?;
                is_damaged = matches!(found, Found::Damaged | Found::Stale);
                let beginning = resume(&mut core, &journal, found, now);
                (beginning, Some(journal))
            }
        };
        let mut shared = Shared::new(core);
        shared.observer = observer;
        shared.beginning = beginning;
        shared.demotions = demotions.map(Mutex::new);
        if let Some(journal) = journal {
            shared.seed = journal.seed();
            // Write a record before anything is sent: a process that ends before its next record leaves this one. An
            // unwritable file is also found here.
            journal.write(&journal.record(shared.entries(), false)).map_err(|error| {
                InvalidLimiter::Journal { path: journal.path().to_owned(), kind: error.kind() }
            })?;
            shared.journal = Some(journal);
        }
        let limiter = Self::of(Arc::new(shared));
        if is_damaged {
            limiter.report(&Event::JournalDamaged);
        }
        Ok(limiter)
    }

    /// Forgets what these keys have spent in the zones that count a token: a renewed token has new windows. Requests
    /// on their way stay counted. Without this call a renewed token inherits the old one's spent slots.
    pub fn reset(&self, keys: ScopeKeys) {
        let zones = || (0_u8..).zip(&self.shared.zones).filter(|(_, (_, scope))| *scope == Scope::AuthToken);
        self.with(|core, now| {
            for (id, _) in zones() {
                core.reset(ZoneId(id), keys.of(Scope::AuthToken), now);
            }
        });
        self.touched();
    }

    /// Says where the token behind these keys came from. Call it before the token's first request; the facade's
    /// client does so by itself.
    ///
    /// Only [`ColdStart::Auto`] uses it. A token [minted](TokenOrigin::Minted) by this process has empty windows.
    /// The windows of a [given](TokenOrigin::Given) token also count as empty, and a log line says so. For a token
    /// [stored](TokenOrigin::Stored) by an earlier process, the limiter should continue that process's journal.
    /// Without it, all windows count as spent, except for cancels and verifications.
    pub fn begin(&self, keys: ScopeKeys, origin: TokenOrigin) {
        match (self.shared.beginning, origin) {
            (Beginning::Settled | Beginning::CarriesOn, _) | (_, TokenOrigin::Minted) => {}
            (Beginning::Asks, TokenOrigin::Given) => {
                tracing::info!(
                    "token was handed in: its windows are taken for empty; if another program has just used it, \
                     start pessimistic"
                );
            }
            (Beginning::Asks, TokenOrigin::Stored) => {
                tracing::warn!("token was stored without what it had spent: its windows are taken for spent");
                if let Err(refusal) = self.assume_spent(keys) {
                    tracing::warn!(%refusal, "token's windows could not be taken for spent");
                }
            }
        }
    }

    /// Returns what these keys have spent in every zone, for the next start. It is valid at the instant of the call:
    /// store the wall clock's time beside it.
    #[must_use]
    pub fn export(&self, keys: ScopeKeys) -> Vec<Spent> {
        let zones = || (0_u8..).zip(&self.shared.zones);
        self.with(|core, now| {
            zones()
                .map(|(id, (zone, scope))| {
                    Spent::new(zone.as_str(), core.export(ZoneId(id), keys.of(*scope), now))
                })
                .filter(|spent| !spent.stamps.is_empty())
                .collect()
        })
    }

    /// Restores what an earlier process exported `ago`. Zones that this limiter does not have are skipped.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooManyKeys`] if there is no room for a key.
    pub fn import(&self, keys: ScopeKeys, spent: &[Spent], ago: Duration) -> Result<(), Refusal> {
        let ago = u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX);
        let zones = || (0_u8..).zip(&self.shared.zones);
        self.with(|core, now| {
            for (id, (zone, scope)) in zones() {
                for spent in spent.iter().filter(|spent| spent.zone == zone.as_str()) {
                    let exported = now.saturating_sub(ago);
                    core.import(ZoneId(id), keys.of(*scope), &spent.stamps, exported, now)?;
                }
            }
            Ok(())
        })
        .inspect(|()| self.touched())
    }

    /// Counts all windows of these keys as spent until they have passed, except for cancels and verifications. For a
    /// token shared with a program that has just stopped, if there is nothing to import.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooManyKeys`] if there is no room for a key.
    pub fn assume_spent(&self, keys: ScopeKeys) -> Result<(), Refusal> {
        let mut zones = (0_u8..).zip(&self.shared.zones);
        self.with(|core, now| {
            zones.try_for_each(|(id, (_, scope))| core.assume_spent(ZoneId(id), keys.of(*scope), now))
        })
        .inspect(|()| self.touched())
    }
}

impl Shared {
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let now = self.nanos(Instant::now());
        let (kept, _) = self.hand_off.with(|core| core.export_all(now));
        let entry = |kept: Kept| Entry {
            zone: self.zones[usize::from(kept.zone.0)].0.as_str().to_owned(),
            key: kept.key,
            closed_for: kept.closed_for,
            stamps: kept.stamps,
        };
        kept.into_iter().map(entry).collect()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(journal) = self.journal.take() {
            journal.close(self.entries());
        }
    }
}

/// Restores what a journal holds.
fn resume(core: &mut Limiter, journal: &Journal, found: Found, now: Nanos) -> Beginning {
    let path = journal.path().display();
    let record = match found {
        Found::Record(record) => record,
        Found::Nothing => {
            tracing::info!(%path, "no journal yet: windows start empty");
            return Beginning::Asks;
        }
        Found::Damaged | Found::Stale => {
            core.start(Start::Spent(now));
            return Beginning::CarriesOn;
        }
    };
    if !record.closed {
        core.start(Start::Unrecorded(now));
    }
    let ago = u64::try_from(journal.ago(&record).as_nanos()).unwrap_or(Nanos::MAX);
    let zones: Vec<_> = core.zones().map(|(zone, _)| zone).collect();
    for entry in record.keys {
        // A zone that is no longer configured limits nothing.
        let Some((id, _)) = (0_u8..).zip(&zones).find(|(_, zone)| entry.is_of(zone.as_str())) else {
            continue;
        };
        let kept =
            Kept { zone: ZoneId(id), key: entry.key, closed_for: entry.closed_for, stamps: entry.stamps };
        if core.import_kept(&kept, now.saturating_sub(ago), now).is_err() {
            tracing::warn!(%path, "journal holds more keys than the limiter may: all others are taken for spent");
            core.start(Start::Spent(now));
            break;
        }
    }
    Beginning::CarriesOn
}
