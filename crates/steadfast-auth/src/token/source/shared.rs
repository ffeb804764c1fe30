use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, SystemTime},
};

use http::HeaderMap;
use parking_lot::Mutex;
use secrecy::SecretString;
use steadfast_call::{Clocks, Moment, WallClock, ext::TokenGeneration};
use tokio::{sync::oneshot, time::Instant};

use super::{
    Admitted, Ended,
    landing::INTERRUPTED,
    settings::{MayRenew, OnHumanNeeded, Settings},
    single_flight::{Fetched, Holding, SingleFlight, State, Step},
};
use crate::{
    cause::Evidence,
    error::{AuthError, AuthErrorKind},
    login::{AnyLogin, Grant, LoginFailure, LoginMode, OnLoginWait, Refusal, ThrottledLogins, UnknownEnds},
    secret::{ApiKey, InvalidSecret},
    skew::{SkewEstimator, date_ms, unix_ms},
    store::{AccountStore, Identity, MemoryStore},
    token::{
        HumanNeeded, Renewal, Status,
        state::{AfterRefusal, MANY_SESSIONS, Now, Tick, TokenState},
    },
};

/// State shared by all clones of a source.
pub(crate) struct Shared {
    pub(super) api_key: ApiKey,
    pub(super) login: Option<Arc<dyn AnyLogin>>,
    pub(super) renewal: Renewal,
    pub(super) account: AccountStore,
    /// True if other processes use the store too.
    pub(super) shares: bool,
    pub(super) clock: WallClock,
    pub(super) skew: Arc<Mutex<SkewEstimator>>,
    pub(super) flight: Arc<SingleFlight>,
    // When the next sample of the service's time is due, by this machine's clock.
    sample_at: AtomicI64,
    may_renew: MayRenew,
    on_human_needed: OnHumanNeeded,
    pub(super) on_login_wait: OnLoginWait,
    start: Instant,
    clocks: Clocks,
    // The start of the source, if there is a boot clock; otherwise tokens age by the wall clock.
    began: Option<Moment>,
}

impl Shared {
    pub(super) fn new(settings: Settings) -> Self {
        let renewal = settings.renewal.seeded();
        let mode = settings.login.as_ref().map(|login| login.mode());
        let skew = Arc::<Mutex<SkewEstimator>>::default();
        // A given token is never stored; its owner keeps it.
        let store = settings.store.filter(|_| mode != Some(LoginMode::Once));
        let identity = settings.login.as_ref().and_then(|login| login.identity());
        let identity = identity.unwrap_or_else(|| Identity::new("", &settings.api_key, ""));
        let account = AccountStore {
            identity: Arc::new(if settings.is_unnamed { identity.unnamed() } else { identity }),
            clock: settings.clock.clone(),
            store: store.clone().unwrap_or_else(|| Arc::new(MemoryStore::new())),
        };
        let token = TokenState::new(renewal, mode);
        let token = if store.is_some() { token.sharing() } else { token };
        let (start, clocks) = (Instant::now(), Clocks::new(settings.boot, settings.clock.clone()));
        let began = Some(clocks.at(start.into_std())).filter(|began| began.elapsed_by_boot(began).is_some());
        Self {
            api_key: settings.api_key,
            login: settings.login,
            renewal,
            account,
            shares: store.is_some(),
            clock: settings.clock,
            flight: Arc::new(SingleFlight::new(token, renewal.waiting, Arc::clone(&skew), began.is_none())),
            skew,
            sample_at: AtomicI64::new(i64::MIN),
            may_renew: settings.may_renew,
            on_human_needed: settings.on_human_needed,
            on_login_wait: settings.on_login_wait,
            start,
            clocks,
            began,
        }
    }

    pub(super) fn admit(self: &Arc<Self>) -> Admitted {
        if self.flight.is_carefree(self.aging().unwrap_or_else(|| unix_ms(self.clock.now()))) {
            return Admitted::Go;
        }
        // Called without the lock, so that the hook may use the source.
        let may_renew = (self.may_renew)();
        let (launch, admitted) = match self.flight.admit(self.now(), may_renew) {
            Step::Go { launch } => (launch, Admitted::Go),
            Step::Wait { ended, launch } => (launch, ended.map_or_else(Admitted::Refused, Admitted::Wait)),
            Step::Rest { ended: Ok(ended), at, refusal } => {
                let error = self.error(refusal).with_source(INTERRUPTED);
                (false, Admitted::Rest { until: self.instant(at), ended, error })
            }
            Step::Rest { ended: Err(overloaded), .. } => (false, Admitted::Refused(overloaded)),
            Step::Refuse(refusal) => (false, Admitted::Refused(self.why_not(refusal))),
        };
        if launch {
            self.launch();
        }
        admitted
    }

    pub(super) fn is_usable(&self) -> bool {
        let now = self.now();
        self.flight.lock().token.is_usable(now)
    }

    pub(super) fn has_unexpired(&self) -> bool {
        let now = self.now();
        self.flight.lock().token.has_unexpired(now)
    }

    /// True while the next login is due after an interrupted one.
    pub(super) fn resumes(&self) -> bool {
        let now = self.now();
        self.flight.lock().token.resumes_at(now).is_some()
    }

    /// Starts a login on request.
    pub(super) fn ask(self: &Arc<Self>) -> Result<oneshot::Receiver<Ended>, AuthError> {
        let (ended, launch) = self.flight.ask(self.now()).map_err(|refusal| self.why_not(refusal))?;
        if launch {
            self.launch();
        }
        Ok(ended)
    }

    pub(super) fn accepted(self: &Arc<Self>, generation: TokenGeneration) {
        let serial = self.flight.accepted(generation);
        self.tell_accepted(serial);
    }

    pub(super) fn refused(
        self: &Arc<Self>,
        generation: TokenGeneration,
        resent: bool,
    ) -> (AfterRefusal, Option<oneshot::Receiver<Ended>>, Option<AuthError>) {
        let (decision, ended) = self.flight.refused(generation, resent, self.now());
        tracing::debug!(generation = generation.0, resent, ?decision, "401");
        if let AfterRefusal::Join { start: true } = decision {
            self.launch();
        }
        match ended {
            Some(Ok(ended)) => (decision, Some(ended), None),
            Some(Err(error)) => (decision, None, Some(error)),
            None if decision == AfterRefusal::Surface => (decision, None, Some(self.surfaces(generation))),
            None => (decision, None, None),
        }
    }

    /// Returns why a 401 goes to the caller, and notifies a person if one is needed.
    fn surfaces(self: &Arc<Self>, generation: TokenGeneration) -> AuthError {
        let now = self.now();
        let mut state = self.flight.lock();
        let next = state.token.next_login(now).map(|at| self.instant(at));
        let error = self.why_refused(&state).with_ready_at(next);
        let help = state.token.calls_for_help(generation.0);
        drop(state);
        self.tell_denial();
        if help {
            tracing::warn!("access token is refused and only a person can renew it");
            (self.on_human_needed)(HumanNeeded { within: Duration::ZERO });
        }
        error
    }

    pub(super) fn tick(self: &Arc<Self>) -> Tick {
        let may_renew = (self.may_renew)();
        let tick = self.flight.tick(self.now(), may_renew);
        self.tell_denial();
        tick
    }

    /// Returns the time of this machine's clock at a monotonic instant that is not past.
    fn wall_of(&self, at: Duration, now: Now) -> Option<SystemTime> {
        self.clock.now().checked_add(at.saturating_sub(now.elapsed))
    }

    pub(super) fn ask_human(&self) {
        let within = self.with_token(|token, now| token.left(now));
        tracing::warn!(within_s = within.as_secs(), "access token ends soon and only a person can renew it");
        (self.on_human_needed)(HumanNeeded { within });
    }

    pub(super) fn reset(self: &Arc<Self>) {
        self.flight.reset();
        self.tell_reset();
    }

    pub(super) fn status(&self) -> Status {
        let now = self.now();
        let offset = self.skew.lock().offset();
        let state = self.flight.lock();
        Status {
            phase: state.token.phase(now),
            generation: self.flight.load().as_ref().map(|token| token.generation()),
            expires_at: state.token.expires().and_then(|e| time_at(e - offset.unwrap_or_default())),
            unusable: state.token.is_unusable(now),
            next_login_at: state.token.next_login(now).and_then(|at| self.wall_of(at, now)),
            latched: state.token.policy.is_latched(),
            sessions: state.token.sessions(),
            clock_offset_ms: offset,
        }
    }

    pub(super) fn observe_date(&self, headers: &HeaderMap, sent: SystemTime, answered: SystemTime) {
        if let Some(date) = date_ms(headers) {
            self.skew.lock().observe(date, unix_ms(sent), unix_ms(answered));
            self.flight.publish(self.flight.lock());
        }
    }

    /// Returns the time of sending if the answer to a request that leaves now should be sampled for the service's time.
    pub(super) fn time_to_sample(&self) -> Option<SystemTime> {
        let sent = self.clock.now();
        let (now, due) = (unix_ms(sent), self.sample_at.load(Ordering::Relaxed));
        // A clock that was set back by more than the pause makes a sample due at once.
        let is_due = now >= due || now < due.saturating_sub(BETWEEN_SAMPLES_MS);
        is_due.then(|| self.sample_at.store(now + BETWEEN_SAMPLES_MS, Ordering::Relaxed))?;
        Some(sent)
    }

    /// Holds the token of our own login, the account's login number `serial`, and tells all waiting requests.
    pub(super) fn granted(&self, grant: Grant, serial: u64) -> Result<(), InvalidSecret> {
        let Holding { generation, same, sessions } = self.hold(grant, serial)?;
        tracing::info!(generation = generation.0, same, sessions, "logged in");
        if sessions >= MANY_SESSIONS {
            tracing::warn!(sessions, "logins of the last 24 hours approach the ten sessions a user has");
        }
        Ok(())
    }

    /// Holds a token that a caller gave, which is no login.
    pub(super) fn given(&self, token: SecretString) -> Result<(), InvalidSecret> {
        self.hold(Grant::new(token, self.clock.now()), 0).map(drop)
    }

    fn hold(&self, grant: Grant, serial: u64) -> Result<Holding, InvalidSecret> {
        // A token that cannot stand in a header must not become the current one.
        let header = self.api_key.header_with(&grant.token)?;
        let issued = unix_ms(grant.sent) + self.skew.lock().offset().unwrap_or_default();
        let fetched = Fetched { secret: grant.token, header, issued, life: grant.life, serial };
        Ok(self.flight.granted(fetched, self.now()))
    }

    pub(super) fn with_token<T>(&self, act: impl FnOnce(&mut TokenState, Now) -> T) -> T {
        let now = self.now();
        act(&mut self.flight.lock().token, now)
    }

    pub(super) fn now(&self) -> Now {
        let offset = self.skew.lock().offset().unwrap_or_default();
        let wall = unix_ms(self.clock.now()) + offset;
        Now { elapsed: BEFORE + self.start.elapsed(), wall, aging: self.aging().unwrap_or(wall) }
    }

    /// Returns the age of this source in milliseconds, time in suspension included; `None` without a boot clock.
    pub(super) fn aging(&self) -> Option<i64> {
        let lived = self.began?.elapsed_at_most(&self.clocks.at(Instant::now().into_std()));
        Some(i64::try_from(lived.as_millis()).unwrap_or(i64::MAX))
    }

    pub(super) fn instant(&self, elapsed: Duration) -> Instant {
        self.start + elapsed.saturating_sub(BEFORE)
    }

    pub(super) fn error(&self, refusal: Refusal) -> AuthError {
        AuthError::new(refusal.kind).with_ready_at(refusal.ready.map(|at| self.instant(at)))
    }

    /// Returns the error for a login that ended with `failure`.
    pub(super) fn failed(&self, refusal: Refusal, failure: LoginFailure) -> AuthError {
        let error = self.error(refusal);
        match self.unknown_ends(refusal, &self.flight.lock()) {
            Some(ends) => error.with_source(UnknownEnds { last: Some(failure), ..ends }),
            None => error.with_source(failure),
        }
    }

    /// Returns the logins with an unknown end if the next login waits because of them; `None` otherwise.
    fn unknown_ends(&self, refusal: Refusal, state: &State) -> Option<UnknownEnds> {
        let ready = refusal.ready.filter(|at| state.token.policy.doubted_until() <= Some(*at))?;
        let count = state.token.policy.unknown().count();
        let wait = ready.saturating_sub(self.now().elapsed);
        (count > 0).then(|| UnknownEnds {
            count,
            why: state.token.policy.why().map(str::to_owned),
            next: self.clock.now().checked_add(wait),
            last: None,
        })
    }

    /// Returns the logins that were answered with 429 if the next login waits because of them; `None` otherwise.
    fn throttled(&self, refusal: Refusal, state: &State) -> Option<ThrottledLogins> {
        let throttled = state.token.policy.throttled();
        let ready = refusal.ready.filter(|at| throttled.count > 0 && *at == throttled.until())?;
        let wait = ready.saturating_sub(self.now().elapsed);
        Some(ThrottledLogins { count: throttled.count, next: self.clock.now().checked_add(wait) })
    }

    /// Returns the error for a request that gets neither a token nor a login.
    fn why_not(&self, refusal: Refusal) -> AuthError {
        self.explain(refusal, &self.flight.lock())
    }

    /// As [`why_not`](Self::why_not), under the lock: the error of the last login, if that is the reason.
    pub(super) fn explain(&self, refusal: Refusal, state: &State) -> AuthError {
        let error = self.error(refusal);
        match &state.last {
            Some(last) if last.kind() == refusal.kind => last.clone(),
            // Still held back by the denial, so the denial is the reason.
            Some(last) if last.kind() == AuthErrorKind::Rejected && last.ready_at() == error.ready_at() => {
                last.clone()
            }
            _ if refusal.kind == AuthErrorKind::Rejected => error.with_causes(self.evidence(state).rank()),
            _ => match (self.throttled(refusal, state), self.unknown_ends(refusal, state)) {
                (Some(throttled), _) => error.with_source(throttled),
                (None, Some(ends)) => error.with_source(ends),
                (None, None) => error,
            },
        }
    }

    fn why_refused(&self, state: &State) -> AuthError {
        if let Some(last) = state.last.as_ref().filter(|_| state.token.policy.is_latched()) {
            return last.clone();
        }
        AuthError::new(AuthErrorKind::Rejected).with_causes(self.evidence(state).rank())
    }

    pub(super) fn is_given(&self) -> bool {
        self.login.as_ref().is_some_and(|login| login.mode() == LoginMode::Once)
    }

    fn evidence(&self, state: &State) -> Evidence {
        Evidence {
            given: self.is_given(),
            worked: state.token.has_worked(),
            sessions: state.token.sessions(),
            offset_ms: self.skew.lock().offset(),
        }
    }
}

/// A source's monotonic time begins here, so that the events of the last days in a store lie after zero.
const BEFORE: Duration = Duration::from_secs(2 * 86_400);
/// The pause between samples. Clocks drift by milliseconds in this time.
const BETWEEN_SAMPLES_MS: i64 = 60_000;

pub(super) fn time_at(ms: i64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(u64::try_from(ms).ok()?))
}
