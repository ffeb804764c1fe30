mod held;
mod now;
mod refusal;
mod sharing;
mod suspicions;
mod view;

use std::{collections::VecDeque, time::Duration};

pub(crate) use self::{now::Now, refusal::AfterRefusal, sharing::Adopted};

use self::{held::Held, suspicions::Suspicions};
use super::Renewal;
use crate::{
    error::AuthErrorKind,
    login::{BETWEEN_LOGINS, LoginMode, LoginPolicy, Refusal},
};

/// With an open breaker, one request passes this often to test whether the service accepts again.
const BETWEEN_PROBES: Duration = Duration::from_secs(30);
/// From this number of sessions in a day on, the last ones of ten (§5) are spent sparingly.
pub(crate) const MANY_SESSIONS: usize = 7;
/// How often a request without a usable token looks for a stored one.
const BETWEEN_LOOKS: Duration = Duration::from_secs(5);
const DAY_MS: i64 = 86_400_000;

/// The state of an account's tokens: which one is held, whether it may be used, and when a login starts.
///
/// Pure: events and [`Now`] in, decisions out.
#[derive(Debug)]
pub(crate) struct TokenState {
    renewal: Renewal,
    mode: Option<LoginMode>,
    pub(crate) policy: LoginPolicy,
    held: Option<Held>,
    generation: u64,
    flying: bool,
    // When the last login was granted, by the clock that tokens age by.
    granted: Option<i64>,
    // The current flight only looks for a token that another process has stored.
    looking: bool,
    // Other processes may store tokens.
    shares: bool,
    look_at: Duration,
    suspicions: Suspicions,
    breaker: Option<Breaker>,
    asked_for: u64,
    sessions: VecDeque<i64>,
}

#[derive(Clone, Copy, Debug)]
struct Breaker {
    probe_at: Duration,
}

/// The step of a request before it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Send it.
    Go,
    /// Send it. The caller also starts a login in the background.
    GoAndRenew,
    /// Wait for the current login; if `start`, the caller starts it.
    Wait { start: bool },
    /// Wait until then, or for an earlier token, and ask again. The login was interrupted; neither the service nor the
    /// credentials caused that.
    Rest { at: Duration, refusal: Refusal },
    /// There is no token, and no login may start.
    Refuse(Refusal),
}

/// The next task of the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tick {
    Idle,
    /// Start a login in the background.
    Renew,
    /// A person will be needed soon. Returned once for each token.
    AskHuman,
}

impl TokenState {
    pub(crate) fn new(renewal: Renewal, mode: Option<LoginMode>) -> Self {
        Self {
            renewal,
            mode,
            policy: LoginPolicy::new(renewal.budget),
            held: None,
            generation: 0,
            flying: false,
            granted: None,
            looking: false,
            shares: false,
            look_at: Duration::ZERO,
            suspicions: Suspicions::default(),
            breaker: None,
            asked_for: 0,
            sessions: VecDeque::new(),
        }
    }

    /// Decides about a request that needs a token. `may_renew` is false while an order is in doubt.
    pub(crate) fn admit(&mut self, now: Now, may_renew: bool) -> Admission {
        let Some(held) = self.held.filter(|h| !h.doubted && !h.is_over(now)) else {
            return self.wait(now);
        };
        if let Some(breaker) = &mut self.breaker {
            if now.elapsed < breaker.probe_at {
                let ready = Some(breaker.probe_at);
                return Admission::Refuse(Refusal { kind: AuthErrorKind::Rejected, ready });
            }
            breaker.probe_at = now.elapsed + BETWEEN_PROBES;
            return Admission::Go;
        }
        // ## Advisory => Mandatory
        //
        // Requests wait for the renewal if it may start or is under way. Otherwise the held token stays in use.
        if self.is_mandatory(held, now) {
            return match self.may_start(now) {
                Ok(()) if self.flying => Admission::Wait { start: false },
                Ok(()) => self.fly(),
                // A login by a person takes longer than the minute that is left.
                Err(_) => Admission::Go,
            };
        }
        // ## Valid => Advisory
        //
        // The renewal may end the session whose order list is needed to resolve an order in doubt, so it waits.
        if self.is_advisory(held, now) && !self.flying && self.may_start(now).is_ok() && may_renew {
            self.flying = true;
            return Admission::GoAndRenew;
        }
        Admission::Go
    }

    /// Returns true if a request may be sent although the login that it waited for has failed.
    pub(crate) fn is_usable(&self, now: Now) -> bool {
        self.breaker.is_none() && self.held.is_some_and(|h| !h.doubted && !h.is_over(now))
    }

    /// Returns true if there is a token whose time is not over, in doubt or not.
    pub(crate) fn has_unexpired(&self, now: Now) -> bool {
        self.held.is_some_and(|held| !held.is_over(now))
    }

    /// The service accepted token `generation`.
    pub(crate) fn accepted(&mut self, generation: u64) {
        if let Some(held) = self.held.as_mut().filter(|h| h.generation == generation) {
            (held.worked, held.fresh) = (true, false);
            (held.denied, held.denial_told) = (None, false);
            self.breaker = None;
        }
    }

    /// Returns true if a person has to be told that a token that worked is refused and must be fetched by hand. True
    /// once for each token.
    pub(crate) fn calls_for_help(&mut self, generation: u64) -> bool {
        let attended = self.mode == Some(LoginMode::Attended) && !self.flying;
        match &mut self.held {
            Some(held) if attended && held.generation == generation && held.worked && !held.called => {
                held.called = true;
                true
            }
            _ => false,
        }
    }

    /// Handles an explicit request for a login. `Ok(true)`: the caller starts it. `Ok(false)`: one is under way.
    pub(crate) fn ask(&mut self, now: Now) -> Result<bool, Refusal> {
        if self.mode.is_none() {
            return Err(Refusal { kind: AuthErrorKind::NotConfigured, ready: None });
        }
        if self.flying {
            // An explicit request for a login is not satisfied by a mere look at the store.
            self.looking = false;
            return Ok(false);
        }
        self.policy.may_be_asked(now.elapsed)?;
        self.flying = true;
        Ok(true)
    }

    /// Returns what the background has to do. Called every 30 s, because tokens also age in a suspended machine, whose
    /// timers stand still.
    pub(crate) fn tick(&mut self, now: Now, may_renew: bool) -> Tick {
        let Some(held) = self.held.filter(|_| !self.flying) else { return Tick::Idle };
        // ## Suspect => waiting
        //
        // Callers may have stopped because of the refusals, so no further 401 would start the login.
        if self.is_dead(now) && self.may_suspect(now) {
            self.suspicions.begin(now.elapsed);
            self.join(true);
            return Tick::Renew;
        }
        if !self.is_advisory(held, now) {
            return Tick::Idle;
        }
        if self.mode == Some(LoginMode::Unattended) {
            let urgent = self.is_mandatory(held, now);
            if self.may_start(now).is_ok() && self.breaker.is_none() && (urgent || may_renew) {
                self.flying = true;
                return Tick::Renew;
            }
        } else if self.asked_for < held.generation {
            self.asked_for = held.generation;
            return Tick::AskHuman;
        }
        Tick::Idle
    }

    /// Takes in the token of a successful login and returns its generation; an unchanged token keeps its generation.
    pub(crate) fn granted(&mut self, issued: i64, life: Option<Duration>, same: bool, now: Now) -> u64 {
        self.policy.granted(now.elapsed);
        self.suspicions.granted();
        self.granted = Some(now.aging);
        let expires = life.map(|l| issued.saturating_add(i64::try_from(l.as_millis()).unwrap_or(i64::MAX)));
        // A given token belongs to a session that was opened elsewhere.
        if !same && self.mode != Some(LoginMode::Once) {
            self.note_session(now.wall);
        }
        self.hold(issued, expires, same, now)
    }

    fn hold(&mut self, issued: i64, expires: Option<i64>, same: bool, now: Now) -> u64 {
        self.land();
        let ahead = now.wall.saturating_sub(now.aging);
        match &mut self.held {
            // The service has returned the session's token again. That does not improve it, so its history stays.
            Some(held) if same => {
                held.issued = issued;
                held.expires = expires;
                held.ahead = ahead;
                held.doubted = false;
            }
            _ => {
                self.generation += 1;
                self.breaker = None;
                let generation = self.generation;
                self.held = Some(Held {
                    generation,
                    issued,
                    expires,
                    ahead,
                    worked: false,
                    fresh: false,
                    refused: None,
                    denied: None,
                    denial_told: false,
                    doubted: false,
                    called: false,
                });
            }
        }
        self.generation
    }

    /// Ends a login that failed for good. The current token stays as usable as it was.
    pub(crate) fn failed(&mut self) {
        self.land();
        if let Some(held) = &mut self.held {
            held.doubted = false;
        }
    }

    /// Ends a login whose runtime went away. A token that the service has refused stays withdrawn while the next login
    /// is due.
    pub(crate) fn interrupted(&mut self, now: Now) {
        self.policy.interrupted(now.elapsed);
        if self.resumes_at(now).is_none() {
            return self.failed();
        }
        self.land();
    }

    fn land(&mut self) {
        self.flying = false;
        self.looking = false;
        self.suspicions.end();
    }

    /// Notes a session that an attempt may have opened.
    pub(crate) fn note_session(&mut self, wall: i64) {
        self.sessions.retain(|&at| wall - at < DAY_MS);
        self.sessions.push_back(wall);
    }

    fn has_many_sessions(&self) -> bool {
        self.sessions.len() >= MANY_SESSIONS
    }

    /// Forgets everything that holds back logins, and the token if the breaker is open.
    pub(crate) fn reset(&mut self) {
        self.policy.reset();
        self.suspicions = Suspicions::default();
        if self.breaker.take().is_some() {
            self.held = None;
        }
    }

    /// Returns true if the store has to be told that the service refuses the held token, once for each denial.
    pub(crate) fn tells_denial(&mut self, now: Now) -> bool {
        let is_news = !self.flying && (self.is_dead(now) || self.breaker.is_some());
        match &mut self.held {
            Some(held) if is_news && !held.denial_told => {
                held.denial_told = true;
                true
            }
            _ => false,
        }
    }

    /// ## (None | Expired | Suspect) => waiting, or refused with the reason
    fn wait(&mut self, now: Now) -> Admission {
        if self.flying {
            return Admission::Wait { start: false };
        }
        match self.may_start(now) {
            Ok(()) => {
                // Requests that were admitted before the token ended must not be sent with it either.
                if let Some(held) = &mut self.held {
                    held.doubted = true;
                }
                self.fly()
            }
            // ## (NeedsHuman | Expired | Latched) => looking
            //
            // A person may have logged in elsewhere, or reset the latch.
            Err(_) if self.shares && now.elapsed >= self.look_at => {
                self.look_at = now.elapsed + BETWEEN_LOOKS;
                self.looking = true;
                self.fly()
            }
            Err(refusal) => match self.resumes_at(now) {
                Some(at) => Admission::Rest { at, refusal },
                None => Admission::Refuse(refusal),
            },
        }
    }

    /// Returns when the next login starts by itself after an interrupted one.
    pub(crate) fn resumes_at(&self, now: Now) -> Option<Duration> {
        let unattended = self.mode == Some(LoginMode::Unattended);
        self.policy.resumes_at(now.elapsed).filter(|_| unattended)
    }

    fn fly(&mut self) -> Admission {
        self.flying = true;
        Admission::Wait { start: true }
    }

    /// Returns an error unless a login may start by itself.
    fn may_start(&self, now: Now) -> Result<(), Refusal> {
        let refuse = |kind| Err(Refusal { kind, ready: None });
        match (self.mode, self.held) {
            (None, _) => refuse(AuthErrorKind::NotConfigured),
            (Some(LoginMode::Unattended), _) | (Some(LoginMode::Once), None) if self.has_rested(now) => {
                self.policy.may_be_asked(now.elapsed)
            }
            (Some(LoginMode::Unattended), _) | (Some(LoginMode::Once), None) => {
                self.policy.may_start(now.elapsed)
            }
            (Some(LoginMode::Attended), None) => {
                self.policy.may_be_asked(now.elapsed)?;
                refuse(AuthErrorKind::NeverLoggedIn)
            }
            (Some(LoginMode::Attended | LoginMode::Once), Some(_)) => {
                self.policy.may_be_asked(now.elapsed)?;
                refuse(AuthErrorKind::Expired)
            }
        }
    }

    /// Returns true if the last successful login is long enough ago, time in suspension included; its token may have
    /// ended since.
    fn has_rested(&self, now: Now) -> bool {
        let rest = i64::try_from(BETWEEN_LOGINS.as_millis()).unwrap_or(i64::MAX);
        self.granted.is_some_and(|at| now.aging.saturating_sub(at) >= rest)
    }

    fn is_advisory(&self, held: Held, now: Now) -> bool {
        held.expires
            .is_some_and(|e| held.wall(now) >= self.renewal.advisory_at(held.issued, e, held.generation))
    }

    fn is_mandatory(&self, held: Held, now: Now) -> bool {
        held.expires.is_some_and(|e| held.wall(now) >= self.renewal.mandatory_at(held.issued, e))
    }

    /// Returns true if the token's age explains its refusal. After a full stop of the machine (not just a suspension)
    /// only the wall clock has counted the time, so it counts as well. If it was set ahead, that costs one login at
    /// most.
    fn is_too_old(&self, held: Held, now: Now) -> bool {
        let by_wall = Held { ahead: now.wall.saturating_sub(now.aging), ..held };
        self.is_mandatory(held, now) || self.is_mandatory(by_wall, now)
    }
}

#[cfg(test)]
mod tests;
