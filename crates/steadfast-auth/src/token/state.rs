mod refusal;
mod sharing;
mod suspicions;

use std::{collections::VecDeque, time::Duration};

pub(crate) use self::{refusal::AfterRefusal, sharing::Adopted};

use self::suspicions::Suspicions;
use super::{Renewal, TokenPhase};
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

/// The instant of an event: monotonic time since some start, and the service's wall clock in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub(crate) elapsed: Duration,
    pub(crate) wall: i64,
    /// The clock that tokens age by, in milliseconds since some start. It is never set and runs on in a suspended
    /// machine. It is the wall clock on machines without such a clock.
    pub(crate) aging: i64,
}

impl Now {
    /// Returns the monotonic instant of a time of the service's wall clock; a future time counts as now.
    pub(crate) fn elapsed_at(self, ms: i64) -> Duration {
        let ago = u64::try_from(self.wall.saturating_sub(ms)).unwrap_or_default();
        self.elapsed.saturating_sub(Duration::from_millis(ago))
    }

    /// Returns the time of the service's wall clock at a monotonic instant.
    pub(crate) fn wall_at(self, elapsed: Duration) -> i64 {
        let ago = self.elapsed.saturating_sub(elapsed).as_millis();
        self.wall.saturating_sub(i64::try_from(ago).unwrap_or(i64::MAX))
    }
}

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
struct Held {
    generation: u64,
    issued: i64,
    // `None`: only the service knows.
    expires: Option<i64>,
    // How far the service's wall clock was ahead of the aging clock when the token came.
    ahead: i64,
    worked: bool,
    // Another process fetched it moments before, and the service has not yet accepted it from this process.
    fresh: bool,
    // When the service first refused it, before accepting it at all or before accepting it from this process.
    refused: Option<Duration>,
    // When the service first refused it after it had worked, if it has not accepted it since.
    denied: Option<Duration>,
    // The store has been told of that.
    denial_told: bool,
    doubted: bool,
    // A person has been told that it is refused.
    called: bool,
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

    /// Returns how many sessions this process has opened, or may have opened, within a day.
    pub(crate) fn sessions(&self) -> usize {
        self.sessions.len()
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

impl Held {
    fn is_over(&self, now: Now) -> bool {
        self.expires.is_some_and(|e| self.wall(now) >= e)
    }

    /// Returns the service's wall clock, carried on from when the token came. Setting the clock does not age the token.
    fn wall(&self, now: Now) -> i64 {
        now.aging.saturating_add(self.ahead)
    }
}

#[cfg(test)]
mod tests;
