use std::io::ErrorKind;

use steadfast_spec::Scope;
use tokio::time::Duration;

use crate::{
    core::{
        event::{Event, NextStart},
        limiter::Limiter,
        start::Assumed,
    },
    error::{InvalidLimiter, Refusal},
    persist::{
        cold_start::{ColdStart, TokenOrigin},
        journal::{Found, Journal},
        journal_clocks::JournalClocks,
        record::Content,
        resume::resume,
        spent::Spent,
    },
    request::keys::ScopeKeys,
    shell::{
        route_mover::RouteMover,
        shared::{Observer, Shared},
        zone_limiter::ZoneLimiter,
    },
};

/// State that outlives a process or a token.
impl ZoneLimiter {
    /// Makes a limiter that starts as `cold` says.
    pub(crate) fn open(
        mut core: Limiter,
        observer: Option<Observer>,
        route_mover: Option<RouteMover>,
        cold: ColdStart,
        clocks: JournalClocks,
    ) -> Result<Self, InvalidLimiter> {
        let now = Shared::START;
        let (mut is_damaged, mut unwritten) = (false, None);
        let (decides_by_token, journal) = match cold {
            ColdStart::Auto => (true, None),
            ColdStart::Empty => (false, None),
            ColdStart::Pessimistic => {
                core.assume(Assumed::All, now);
                (false, None)
            }
            ColdStart::Journal(path) => {
                let (journal, found) = Journal::open(&path, clocks)?;
                is_damaged = matches!(found, Found::Damaged | Found::Stale);
                let is_first = resume(&mut core, &journal, found, now);
                (is_first, Some(journal))
            }
        };
        if let Some(journal) = &journal {
            // Write a record before anything is sent: a process that ends before its next record leaves this one. An
            // unwritable file is also found here. On a full disk the mark of the old record serves as well, as it does
            // later: cancels of a process that starts must get out.
            if let Err(error) = journal.write(false, || Content::of(&mut core, now)) {
                let kind = error.kind();
                let is_full = matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
                if !is_full || journal.mark_stale() != NextStart::Pessimistic {
                    return Err(InvalidLimiter::Journal { path: journal.path().to_owned(), kind });
                }
                journal.pending().note();
                unwritten = Some(Event::JournalFailed { kind, next: NextStart::Pessimistic });
            }
        }
        let shared = Shared::new(core, decides_by_token, journal).observed(observer, route_mover);
        if is_damaged {
            shared.report(&Event::JournalDamaged);
        }
        unwritten.iter().for_each(|unwritten| shared.report(unwritten));
        Ok(Self::new(shared))
    }

    /// Forgets what these keys have spent in the zones that count a token: a renewed token has new windows. Requests
    /// on their way stay counted. Without this call a renewed token inherits the old one's spent slots.
    pub fn reset(&self, keys: ScopeKeys) {
        self.shared.with(|core, now| {
            for (id, ..) in self.shared.zones().filter(|(.., scope)| *scope == Scope::AuthToken) {
                core.reset(id, keys.of(Scope::AuthToken), now);
            }
        });
        self.shared.touched();
    }

    /// Says where the token behind these keys came from. Call it before the token's first request; the facade's
    /// client does so by itself.
    ///
    /// Only [`ColdStart::Auto`] uses it, and [`ColdStart::Journal`] at its first start. A token
    /// [minted](TokenOrigin::Minted) by this process has empty windows. The windows of a [given](TokenOrigin::Given)
    /// token also count as empty, and a log line says so. For a token [stored](TokenOrigin::Stored) by an earlier
    /// process, the limiter should continue that process's journal. Without it, all windows count as spent, except for
    /// cancels and verifications.
    pub fn token_is(&self, keys: ScopeKeys, origin: TokenOrigin) {
        if origin == TokenOrigin::Minted {
            self.shared.tell_new_token(keys);
        }
        if !self.shared.decides_by_token() {
            return;
        }
        match origin {
            TokenOrigin::Minted => {}
            TokenOrigin::Given => {
                tracing::info!(
                    "token was handed in: its windows are taken for empty; if another program has just used it, \
                     start pessimistic"
                );
            }
            TokenOrigin::Stored => {
                tracing::warn!("token was stored without what it had spent: its windows are taken for spent");
                if let Err(refusal) = self.assume_spent(keys) {
                    tracing::warn!(%refusal, "token's windows could not be taken for spent");
                }
            }
        }
    }

    /// Returns what these keys have spent in every zone, for the next start, in nanoseconds from now. It is valid at the
    /// instant of the call: store the wall clock's time beside it.
    #[must_use]
    pub fn export(&self, keys: ScopeKeys) -> Vec<Spent> {
        self.shared.with(|core, now| {
            self.shared
                .zones()
                .map(|(id, zone, scope)| Spent::new(zone.as_str(), core.export(id, keys.of(scope), now)))
                .filter(|spent| !spent.stamps.is_empty())
                .collect()
        })
    }

    /// Restores what an earlier process exported `ago`, before its end. Zones that this limiter does not have are
    /// skipped.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooManyKeys`] if there is no room for a key.
    pub fn import(&self, keys: ScopeKeys, spent: &[Spent], ago: Duration) -> Result<(), Refusal> {
        let ago = u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX);
        self.shared
            .with(|core, now| {
                for (id, zone, scope) in self.shared.zones() {
                    for spent in spent.iter().filter(|spent| spent.zone == zone.as_str()) {
                        let exported = now.saturating_sub(ago);
                        core.import(id, keys.of(scope), &spent.stamps, exported, now)?;
                    }
                }
                Ok(())
            })
            .inspect(|()| self.shared.touched())
    }

    /// Counts all windows of these keys as spent until they have passed, except for cancels and verifications. For a
    /// token shared with a program that has just stopped, if there is nothing to import.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooManyKeys`] if there is no room for a key.
    pub fn assume_spent(&self, keys: ScopeKeys) -> Result<(), Refusal> {
        let mut zones = self.shared.zones();
        self.shared
            .with(|core, now| zones.try_for_each(|(id, _, scope)| core.assume_spent(id, keys.of(scope), now)))
            .inspect(|()| self.shared.touched())
    }
}
