use std::time::Duration;

use super::{DAY_MS, Life, Now};
use crate::policy::Refusal;

/// From this age on, a token that nobody has used may have ended for want of age rather than of a right.
const OLD_MS: i64 = 15 * 60_000;
/// Up to this age, a token that works for its owner may not be known everywhere yet.
const FRESH_MS: i64 = 30_000;

/// A token that another process has fetched; times by the service's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Adopted {
    pub(crate) issued: i64,
    pub(crate) expires: Option<i64>,
    pub(crate) worked: bool,
}

/// What a life shares with those of other processes.
impl Life {
    /// Other processes may store tokens: before a request is refused for want of one, it is looked for.
    pub(crate) fn sharing(self) -> Self {
        Self { shares: true, ..self }
    }

    /// The store holds nothing new. Whether a login follows, or why the flight ends here.
    pub(crate) fn looked(&mut self, now: Now) -> Result<(), Refusal> {
        if std::mem::take(&mut self.looking) {
            self.may_start(now).inspect_err(|_| self.failed())?;
        }
        Ok(())
    }

    /// Whether a stored token is worth taking over: it lives on for a while.
    pub(crate) fn is_worth(&self, issued: i64, expires: Option<i64>, now: Now) -> bool {
        expires.is_none_or(|e| now.wall < self.renewal.mandatory_at(issued, e))
    }

    /// Takes over a token that another process has fetched. Returns its generation.
    pub(crate) fn adopted(&mut self, token: &Adopted, same: bool, now: Now) -> u64 {
        let generation = self.hold(token.issued, token.expires, same, now);
        // An old token that nobody has used yet may have ended over night: its age is a reason for a login.
        let age = now.wall.saturating_sub(token.issued);
        if let Some(held) = &mut self.held {
            held.worked |= token.worked || age > OLD_MS;
            // Clocks differ.
            held.fresh |= !same && age.abs() <= FRESH_MS;
        }
        generation
    }

    /// Takes over what the record of the account says.
    pub(crate) fn restore(&mut self, sessions: &[i64], suspected: Option<Duration>, now: Now) {
        self.sessions = sessions.iter().copied().filter(|&at| now.wall - at < DAY_MS).collect();
        self.suspected = self.suspected.max(suspected);
    }

    /// When a young token was refused last, and a login followed.
    pub(crate) fn suspected(&self) -> Option<Duration> {
        self.suspected
    }

    /// When sessions were opened, of the last day.
    pub(crate) fn session_times(&self) -> Vec<i64> {
        self.sessions.iter().copied().collect()
    }

    /// True while a login is under way.
    pub(crate) fn is_logging_in(&self) -> bool {
        self.flying && !self.looking
    }
}
