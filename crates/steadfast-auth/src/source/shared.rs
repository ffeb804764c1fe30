use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, SystemTime},
};

use arc_swap::ArcSwapOption;
use http::HeaderMap;
use parking_lot::{Mutex, MutexGuard};
use steadfast_spec::{WallClock, ext::TokenGeneration};
use tokio::{sync::oneshot, time::Instant};

use super::{
    Admitted, Ended,
    builder::{MayRenew, OnHumanNeeded, TokenSourceBuilder},
};
use crate::{
    ApiKey, AuthError, AuthErrorKind, Grant, HumanNeeded, Identity, InvalidSecret, LoginMode, MemoryStore,
    Status, Token,
    cause::Evidence,
    docket::Books,
    life::{Admission, AfterRefusal, Life, Now, Tick},
    login::AnyLogin,
    policy::Refusal,
    skew::{SkewEstimator, date_ms, unix_ms},
};

/// What all clones of a source share.
pub(crate) struct Shared {
    pub(super) api_key: ApiKey,
    pub(super) login: Option<Arc<dyn AnyLogin>>,
    pub(super) books: Books,
    /// Others use the store too.
    pub(super) shares: bool,
    pub(super) clock: WallClock,
    pub(super) skew: Arc<Mutex<SkewEstimator>>,
    /// The hot read.
    pub(super) token: ArcSwapOption<Token>,
    // Until then, by this machine's clock, requests pass without asking for the lock.
    carefree_until: AtomicI64,
    // From then on, by this machine's clock, an answer is asked for the service's time.
    sample_at: AtomicI64,
    pub(super) state: Mutex<State>,
    may_renew: MayRenew,
    on_human_needed: OnHumanNeeded,
    start: Instant,
    most_waiting: usize,
}

pub(super) struct State {
    pub(super) life: Life,
    pub(super) waiting: Vec<oneshot::Sender<Ended>>,
    // The last login's end, for those who come while the next may not start yet.
    pub(super) last: Option<AuthError>,
    // Which of the account's logins the held token is of.
    pub(super) serial: u64,
    // How often somebody has reset the failures, and of how many of these the store knows.
    pub(super) resets: u64,
    pub(super) resets_told: u64,
    // The store does not know of the last failure.
    pub(super) unsaved: bool,
}

impl Shared {
    pub(super) fn new(builder: TokenSourceBuilder) -> Self {
        let renewal = builder.renewal.seeded();
        let mode = builder.login.as_ref().map(|login| login.mode());
        let skew = Arc::<Mutex<SkewEstimator>>::default();
        // A given token is somebody else's to keep.
        let store = builder.store.filter(|_| mode != Some(LoginMode::Once));
        let identity = builder.login.as_ref().and_then(|login| login.identity());
        let books = Books {
            identity: Arc::new(identity.unwrap_or_else(|| Identity::new("", &builder.api_key, ""))),
            budget: renewal.budget,
            clock: builder.clock.clone(),
            skew: Arc::clone(&skew),
            store: store.clone().unwrap_or_else(|| Arc::new(MemoryStore::new())),
        };
        let life = Life::new(renewal, mode);
        let life = if store.is_some() { life.sharing() } else { life };
        Self {
            api_key: builder.api_key,
            login: builder.login,
            books,
            shares: store.is_some(),
            clock: builder.clock,
            skew,
            token: ArcSwapOption::empty(),
            carefree_until: AtomicI64::new(i64::MIN),
            sample_at: AtomicI64::new(i64::MIN),
            state: Mutex::new(State {
                life,
                waiting: Vec::new(),
                last: None,
                serial: 0,
                resets: 0,
                resets_told: 0,
                unsaved: false,
            }),
            may_renew: builder.may_renew,
            on_human_needed: builder.on_human_needed,
            start: Instant::now(),
            most_waiting: renewal.waiting,
        }
    }

    pub(super) fn admit(self: &Arc<Self>) -> Admitted {
        if unix_ms(self.clock.now()) < self.carefree_until.load(Ordering::Acquire) {
            return Admitted::Go;
        }
        let now = self.now();
        // Asked without the lock, so that the hook may look at the source.
        let may_renew = (self.may_renew)();
        let mut state = self.state.lock();
        let admission = state.life.admit(now, may_renew);
        match admission {
            Admission::Go => Admitted::Go,
            Admission::GoAndRenew => {
                self.publish(state);
                self.launch();
                Admitted::Go
            }
            Admission::Wait { start } => {
                let ended = state.join(self.most_waiting);
                self.publish(state);
                if start {
                    self.launch();
                }
                ended.map_or_else(Admitted::Refused, Admitted::Wait)
            }
            Admission::Refuse(refusal) => Admitted::Refused(self.explain(refusal, &state)),
        }
    }

    pub(super) fn is_usable(&self) -> bool {
        let now = self.now();
        self.state.lock().life.is_usable(now)
    }

    /// Starts a login because somebody asks for it.
    pub(super) fn ask(self: &Arc<Self>) -> Result<oneshot::Receiver<Ended>, AuthError> {
        let now = self.now();
        let mut state = self.state.lock();
        let start = state.life.ask(now).map_err(|refusal| self.explain(refusal, &state))?;
        let ended = state.join(usize::MAX);
        self.publish(state);
        if start {
            self.launch();
        }
        ended
    }

    pub(super) fn accepted(self: &Arc<Self>, generation: TokenGeneration) {
        let mut state = self.state.lock();
        state.life.accepted(generation.0);
        let serial = state.serial;
        self.publish(state);
        self.tell_accepted(serial);
    }

    pub(super) fn refused(
        self: &Arc<Self>,
        generation: TokenGeneration,
        resent: bool,
    ) -> (AfterRefusal, Option<oneshot::Receiver<Ended>>, Option<AuthError>) {
        let now = self.now();
        let mut state = self.state.lock();
        let decision = state.life.refused(generation.0, resent, now);
        tracing::debug!(generation = generation.0, resent, ?decision, "401");
        match decision {
            AfterRefusal::Join { start } => {
                let ended = state.join(self.most_waiting);
                self.publish(state);
                if start {
                    self.launch();
                }
                match ended {
                    Ok(ended) => (decision, Some(ended), None),
                    Err(error) => (decision, None, Some(error)),
                }
            }
            AfterRefusal::Surface => {
                let error = self.why_refused(&state);
                let help = state.life.calls_for_help(generation.0);
                self.publish(state);
                if help {
                    tracing::warn!("access token is refused and only a person can renew it");
                    (self.on_human_needed)(HumanNeeded { within: Duration::ZERO });
                }
                (decision, None, Some(error))
            }
            AfterRefusal::Resend | AfterRefusal::ResendAt(_) => (decision, None, None),
        }
    }

    pub(super) fn tick(&self) -> Tick {
        let now = self.now();
        let may_renew = (self.may_renew)();
        let mut state = self.state.lock();
        let tick = state.life.tick(now, may_renew);
        self.publish(state);
        tick
    }

    pub(super) fn ask_human(&self) {
        let now = self.now();
        let expires = self.state.lock().life.expires().unwrap_or(now.wall);
        let within = Duration::from_millis(u64::try_from(expires - now.wall).unwrap_or_default());
        tracing::warn!(within_s = within.as_secs(), "access token ends soon and only a person can renew it");
        (self.on_human_needed)(HumanNeeded { within });
    }

    pub(super) fn reset(self: &Arc<Self>) {
        let mut state = self.state.lock();
        state.life.reset();
        state.last = None;
        state.resets += 1;
        self.publish(state);
        self.tell_reset();
    }

    pub(super) fn status(&self) -> Status {
        let now = self.now();
        let offset = self.skew.lock().offset();
        let state = self.state.lock();
        Status {
            state: state.life.state(now),
            generation: self.token.load().as_ref().map(|token| token.generation()),
            expires_at: state.life.expires().and_then(|e| time_at(e - offset.unwrap_or_default())),
            latched: state.life.policy.is_latched(),
            sessions: state.life.sessions(),
            clock_offset_ms: offset,
        }
    }

    pub(super) fn observe_date(&self, headers: &HeaderMap, sent: SystemTime, answered: SystemTime) {
        if let Some(date) = date_ms(headers) {
            self.skew.lock().observe(date, unix_ms(sent), unix_ms(answered));
            self.publish(self.state.lock());
        }
    }

    /// The time, if an answer to a request that leaves now should be asked for the service's.
    pub(super) fn time_to_sample(&self) -> Option<SystemTime> {
        let sent = self.clock.now();
        let (now, due) = (unix_ms(sent), self.sample_at.load(Ordering::Relaxed));
        // A clock that was set back by more than the pause is a reason to look at once.
        let is_due = now >= due || now < due.saturating_sub(BETWEEN_SAMPLES_MS);
        is_due.then(|| self.sample_at.store(now + BETWEEN_SAMPLES_MS, Ordering::Relaxed))?;
        Some(sent)
    }

    /// Holds the token of an own login, the account's login number `serial`, and tells everybody who waits for it.
    pub(super) fn granted(&self, grant: Grant, serial: u64) -> Result<(), InvalidSecret> {
        let offset = self.skew.lock().offset().unwrap_or_default();
        let now = self.now();
        let issued = unix_ms(grant.sent) + offset;
        let mut state = self.state.lock();
        let same = self.token.load().as_ref().is_some_and(|held| held.is(&grant.token)) && state.life.holds();
        // What cannot stand in a header must not become the current token.
        let header = self.api_key.header_with(&grant.token)?;
        let generation = TokenGeneration(state.life.granted(issued, grant.life, same, now));
        if !same {
            self.token.store(Some(Arc::new(Token::new(grant.token, header, generation))));
        }
        let sessions = state.life.sessions();
        state.serial = serial;
        self.landed(state);
        tracing::info!(generation = generation.0, same, sessions, "logged in");
        if sessions >= MANY_SESSIONS {
            tracing::warn!(sessions, "logins of the last 24 hours approach the ten sessions a user has");
        }
        Ok(())
    }

    /// Tells everybody who waits that there is a token.
    pub(super) fn landed(&self, mut state: MutexGuard<'_, State>) {
        state.last = None;
        // Under the same lock: whoever comes now finds the token, and belongs to no earlier login.
        let waiting = std::mem::take(&mut state.waiting);
        self.publish(state);
        tell(waiting, &Ok(()));
    }

    /// Ends a failed login for everybody who waits for it.
    pub(super) fn land(&self, error: AuthError) {
        let mut state = self.state.lock();
        state.life.failed();
        state.last = Some(error.clone());
        let waiting = std::mem::take(&mut state.waiting);
        self.publish(state);
        tell(waiting, &Err(error));
    }

    pub(super) fn with_life<T>(&self, act: impl FnOnce(&mut Life, Now) -> T) -> T {
        let now = self.now();
        act(&mut self.state.lock().life, now)
    }

    pub(super) fn now(&self) -> Now {
        let offset = self.skew.lock().offset().unwrap_or_default();
        Now { elapsed: BEFORE + self.start.elapsed(), wall: unix_ms(self.clock.now()) + offset }
    }

    pub(super) fn instant(&self, elapsed: Duration) -> Instant {
        self.start + elapsed.saturating_sub(BEFORE)
    }

    pub(super) fn error(&self, refusal: Refusal) -> AuthError {
        AuthError::new(refusal.kind).with_ready_at(refusal.ready.map(|at| self.instant(at)))
    }

    /// Shows what has changed to those who read without the lock.
    pub(super) fn publish(&self, state: MutexGuard<'_, State>) {
        let life = &state.life;
        let offset = self.skew.lock().offset().unwrap_or_default();
        self.carefree_until.store(life.carefree_until().saturating_sub(offset), Ordering::Release);
        if !life.holds() {
            self.token.store(None);
        }
        if let Some(token) = &*self.token.load() {
            token.set_withdrawn(life.withdrawn() == Some(token.generation().0));
        }
    }

    /// The error for a request that gets neither a token nor a login: that of the last login, if it is the reason.
    pub(super) fn explain(&self, refusal: Refusal, state: &State) -> AuthError {
        let error = self.error(refusal);
        match &state.last {
            Some(last) if last.kind() == refusal.kind => last.clone(),
            _ if refusal.kind == AuthErrorKind::Rejected => error.with_causes(self.evidence(state).rank()),
            _ => error,
        }
    }

    /// Why a 401 is handed to the caller.
    fn why_refused(&self, state: &State) -> AuthError {
        if let Some(last) = state.last.as_ref().filter(|_| state.life.policy.is_latched()) {
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
            sessions: state.life.sessions(),
            offset_ms: self.skew.lock().offset(),
        }
    }
}

/// The monotonic time of a source begins here, so that what a store remembers of the last days lies after zero.
const BEFORE: Duration = Duration::from_secs(2 * 86_400);
/// Clocks drift by milliseconds in this time.
const BETWEEN_SAMPLES_MS: i64 = 60_000;
/// From here on the log warns.
const MANY_SESSIONS: usize = 7;

impl State {
    fn join(&mut self, most: usize) -> Result<oneshot::Receiver<Ended>, AuthError> {
        if self.waiting.len() >= most {
            // Those who were dropped make room.
            self.waiting.retain(|waiter| !waiter.is_closed());
            if self.waiting.len() >= most {
                return Err(AuthError::new(AuthErrorKind::Overloaded));
            }
        }
        let (waiter, ended) = oneshot::channel();
        self.waiting.push(waiter);
        Ok(ended)
    }
}

pub(super) fn tell(waiting: Vec<oneshot::Sender<Ended>>, ended: &Ended) {
    for waiter in waiting {
        // Whoever has gone need not be told.
        let _ = waiter.send(ended.clone());
    }
}

fn time_at(ms: i64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(u64::try_from(ms).ok()?))
}
