use std::time::Duration;

use super::{Now, TokenState};
use crate::{login::LoginMode, token::TokenPhase};

/// The state as others see it; nothing here changes it.
impl TokenState {
    /// Returns how many sessions this process has opened, or may have opened, within a day.
    pub(crate) fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Returns the generation of the withdrawn token, with which nothing may be sent.
    pub(crate) fn withdrawn(&self) -> Option<u64> {
        self.held.filter(|h| h.doubted).map(|h| h.generation)
    }

    /// True if the service has accepted the held token.
    pub(crate) fn has_worked(&self) -> bool {
        self.held.is_some_and(|held| held.worked)
    }

    /// True if a token is held.
    pub(crate) fn holds(&self) -> bool {
        self.held.is_some()
    }

    /// Returns until when, by the aging clock, requests need not ask: the token is good and no renewal is due.
    pub(crate) fn carefree_until(&self) -> i64 {
        match self.held {
            Some(held) if !held.doubted && held.denied.is_none() && self.breaker.is_none() => {
                held.expires.map_or(i64::MAX, |e| {
                    self.renewal.advisory_at(held.issued, e, held.generation).saturating_sub(held.ahead)
                })
            }
            _ => i64::MIN,
        }
    }

    /// When the held token was issued, by the service's clock.
    pub(crate) fn issued(&self) -> Option<i64> {
        self.held.map(|h| h.issued)
    }

    /// When the held token ends, by the service's clock.
    pub(crate) fn expires(&self) -> Option<i64> {
        self.held.and_then(|h| h.expires)
    }

    /// Returns how long the held token lives on; zero if there is none.
    pub(crate) fn left(&self, now: Now) -> Duration {
        let left = self.held.and_then(|h| Some(h.expires?.saturating_sub(h.wall(now))));
        left.and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis).unwrap_or_default()
    }

    /// Returns the phase for display.
    pub(crate) fn phase(&self, now: Now) -> TokenPhase {
        let usable = self.held.filter(|h| !h.doubted && !h.is_over(now));
        match (usable, self.held) {
            (Some(_), _) if self.breaker.is_some() || self.is_dead(now) => TokenPhase::Suspect,
            (Some(held), _) if self.is_mandatory(held, now) => TokenPhase::Mandatory,
            (Some(held), _) if self.is_advisory(held, now) => TokenPhase::Advisory,
            (Some(_), _) => TokenPhase::Valid,
            (None, _) if self.policy.is_latched() => TokenPhase::Latched,
            (None, Some(held)) if !held.is_over(now) => TokenPhase::Suspect,
            (None, _) if self.mode == Some(LoginMode::Attended) && !self.flying => TokenPhase::NeedsHuman,
            (None, Some(_)) => TokenPhase::Expired,
            (None, None) => TokenPhase::None,
        }
    }

    /// True if a request that needs a token fails now: the service refuses it, or there is none and no login may start.
    pub(crate) fn is_unusable(&self, now: Now) -> bool {
        match self.held.filter(|h| !h.doubted && !h.is_over(now)) {
            _ if self.flying || self.mode.is_none() => false,
            Some(_) => self.breaker.is_some() || self.is_dead(now),
            None => self.may_start(now).is_err(),
        }
    }

    /// Returns when the next login starts by itself, if requests fail until then; `None` if none will.
    pub(crate) fn next_login(&self, now: Now) -> Option<Duration> {
        let is_held_back = self.is_unusable(now) && self.breaker.is_none();
        if !is_held_back || self.mode != Some(LoginMode::Unattended) || self.policy.is_latched() {
            return None;
        }
        let allowed = self.policy.may_be_asked(now.elapsed).err().and_then(|refusal| refusal.ready);
        let rested = self.suspicions.next(self.has_many_sessions()).filter(|_| self.is_dead(now));
        allowed.max(rested).max(Some(now.elapsed))
    }
}
