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
    ApiKey, AuthError, AuthErrorKind, Grant, HumanNeeded, InvalidSecret, LoginMode, Status, Token,
    cause::Evidence,
    life::{Admission, AfterRefusal, Life, Now, Tick},
    login::AnyLogin,
    policy::Refusal,
    skew::{SkewEstimator, date_ms, unix_ms},
};

/// What all clones of a source share.
pub(crate) struct Shared {
    pub(super) api_key: ApiKey,
    pub(super) login: Option<Arc<dyn AnyLogin>>,
    pub(super) clock: WallClock,
    pub(super) skew: Arc<Mutex<SkewEstimator>>,
    /// The hot read.
    pub(super) token: ArcSwapOption<Token>,
    // Until then, by this machine's clock, requests pass without asking for the lock.
    carefree_until: AtomicI64,
    state: Mutex<State>,
    may_renew: MayRenew,
    on_human_needed: OnHumanNeeded,
    start: Instant,
    most_waiting: usize,
}

pub(super) struct State {
    pub(super) life: Life,
    waiting: Vec<oneshot::Sender<Ended>>,
    // The last login's end, for those who come while the next may not start yet.
    last: Option<AuthError>,
}

impl Shared {
    pub(super) fn new(builder: TokenSourceBuilder) -> Self {
        let renewal = builder.renewal.seeded();
        let mode = builder.login.as_ref().map(|login| login.mode());
        Self {
            api_key: builder.api_key,
            login: builder.login,
            clock: builder.clock,
            skew: Arc::default(),
            token: ArcSwapOption::empty(),
            carefree_until: AtomicI64::new(i64::MIN),
            state: Mutex::new(State { life: Life::new(renewal, mode), waiting: Vec::new(), last: None }),
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

    pub(super) fn accepted(&self, generation: TokenGeneration) {
        let mut state = self.state.lock();
        state.life.accepted(generation.0);
        self.publish(state);
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

    pub(super) fn reset(&self) {
        let mut state = self.state.lock();
        state.life.reset();
        state.last = None;
        self.publish(state);
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

    /// Stores a token and tells everybody who waits for it.
    pub(super) fn granted(&self, grant: Grant) -> Result<(), InvalidSecret> {
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
        state.last = None;
        // Under the same lock: whoever comes now finds the token, and belongs to no earlier login.
        let waiting = std::mem::take(&mut state.waiting);
        self.publish(state);
        tell(waiting, &Ok(()));
        tracing::info!(generation = generation.0, same, sessions, "logged in");
        if sessions >= MANY_SESSIONS {
            tracing::warn!(sessions, "logins of the last 24 hours approach the ten sessions a user has");
        }
        Ok(())
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
        Now { elapsed: self.start.elapsed(), wall: unix_ms(self.clock.now()) + offset }
    }

    pub(super) fn instant(&self, elapsed: Duration) -> Instant {
        self.start + elapsed
    }

    pub(super) fn error(&self, refusal: Refusal) -> AuthError {
        AuthError::new(refusal.kind).with_ready_at(refusal.ready.map(|at| self.instant(at)))
    }

    /// Shows what has changed to those who read without the lock.
    fn publish(&self, state: MutexGuard<'_, State>) {
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
    fn explain(&self, refusal: Refusal, state: &State) -> AuthError {
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

    fn evidence(&self, state: &State) -> Evidence {
        let given = self.login.as_ref().is_some_and(|login| login.mode() == LoginMode::Once);
        Evidence { given, sessions: state.life.sessions(), offset_ms: self.skew.lock().offset() }
    }
}

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

fn tell(waiting: Vec<oneshot::Sender<Ended>>, ended: &Ended) {
    for waiter in waiting {
        // Whoever has gone need not be told.
        let _ = waiter.send(ended.clone());
    }
}

fn time_at(ms: i64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(u64::try_from(ms).ok()?))
}
