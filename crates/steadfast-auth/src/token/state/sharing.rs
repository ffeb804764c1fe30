use std::time::Duration;

use super::{DAY_MS, Now, TokenState};
use crate::login::Refusal;

/// From this age on, an unused token may simply have expired.
const OLD_MS: i64 = 15 * 60_000;
/// Up to this age, a token that works for its owner may not be known everywhere yet.
const FRESH_MS: i64 = 30_000;

/// A token that another process has fetched. Times are by the service's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Adopted {
    pub(crate) issued: i64,
    pub(crate) expires: Option<i64>,
    pub(crate) worked: bool,
}

/// State that is shared with other processes.
impl TokenState {
    /// Marks that other processes may store tokens: a request without a token looks there before it is refused.
    pub(crate) fn sharing(self) -> Self {
        Self { shares: true, ..self }
    }

    /// Handles a look that found no new token. `Ok`: a login follows. `Err`: the flight ends for this reason.
    pub(crate) fn looked(&mut self, now: Now) -> Result<(), Refusal> {
        if std::mem::take(&mut self.looking) {
            self.may_start(now).inspect_err(|_| self.failed())?;
        }
        Ok(())
    }

    /// Returns true if a stored token lives long enough to be taken over.
    pub(crate) fn is_worth(&self, issued: i64, expires: Option<i64>, now: Now) -> bool {
        expires.is_none_or(|e| now.wall < self.renewal.mandatory_at(issued, e))
    }

    /// Takes over a token that another process has fetched. Returns its generation.
    pub(crate) fn adopted(&mut self, token: &Adopted, same: bool, now: Now) -> u64 {
        let generation = self.hold(token.issued, token.expires, same, now);
        // An old token without a known use may have ended overnight, so its refusal justifies a login.
        let age = now.wall.saturating_sub(token.issued);
        if let Some(held) = &mut self.held {
            held.worked |= token.worked || age > OLD_MS;
            // The absolute value, because clocks differ.
            held.fresh |= !same && age.abs() <= FRESH_MS;
        }
        generation
    }

    /// Takes over the account's sessions and last suspicion from the record.
    pub(crate) fn restore(&mut self, sessions: &[i64], suspected: Option<Duration>, now: Now) {
        self.sessions = sessions.iter().copied().filter(|&at| now.wall - at < DAY_MS).collect();
        self.suspicions.restore(suspected);
    }

    /// Returns when a refused young token last caused a login.
    pub(crate) fn suspected(&self) -> Option<Duration> {
        self.suspicions.last()
    }

    /// Returns when the sessions of the last day were opened.
    pub(crate) fn session_times(&self) -> Vec<i64> {
        self.sessions.iter().copied().collect()
    }

    /// True while a login is under way.
    pub(crate) fn is_logging_in(&self) -> bool {
        self.flying && !self.looking
    }
}
