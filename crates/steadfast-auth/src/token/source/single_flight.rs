#[cfg(all(test, shuttle))]
mod schedules;

use std::{
    mem,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use http::HeaderValue;
use secrecy::SecretString;
use steadfast_call::ext::TokenGeneration;
use tokio::sync::oneshot::Receiver;

use crate::{
    error::{AuthError, AuthErrorKind},
    login::Refusal,
    skew::SkewEstimator,
    sync::{ArcSwapOption, AtomicI64, Guard, Mutex, MutexGuard, Sender, channel},
    token::{
        Token,
        state::{Admission, AfterRefusal, Now, Tick, TokenState},
    },
};

/// How a login ended; the same for all requests that waited for it.
pub(crate) type Ended = Result<(), AuthError>;

/// The life of the tokens behind its one lock, the token for lock-free reads, and the requests that wait for a login.
///
/// A caller that is told to launch a login is the only one until that login has landed. The type has no clock, timer or
/// task: they come in with each call, so that a model checker can run it through every order of threads.
pub(crate) struct SingleFlight {
    state: Mutex<State>,
    // The token, for reads without the lock.
    token: ArcSwapOption<Token>,
    // Until then, by the aging clock, requests pass without taking the lock.
    carefree_until: AtomicI64,
    // True if the aging clock is this machine's wall clock, which differs from the service's.
    by_wall: bool,
    skew: Arc<parking_lot::Mutex<SkewEstimator>>,
    most_waiting: usize,
}

pub(super) struct State {
    pub(super) token: TokenState,
    waiting: Vec<Sender<Ended>>,
    // The end of the last login, for requests that come before the next one may start.
    pub(super) last: Option<AuthError>,
    // The serial of the account's login that brought the held token.
    pub(super) serial: u64,
    // How many resets there were, and of how many of them the store knows.
    pub(super) resets: u64,
    pub(super) resets_told: u64,
    // True if the store does not know of the last failure.
    pub(super) unsaved: bool,
}

/// The step of a request before it is sent.
pub(super) enum Step {
    Go {
        launch: bool,
    },
    Wait {
        ended: Result<Receiver<Ended>, AuthError>,
        launch: bool,
    },
    /// Ask again at that time, or when a login has ended before.
    Rest {
        ended: Result<Receiver<Ended>, AuthError>,
        at: Duration,
        refusal: Refusal,
    },
    Refuse(Refusal),
}

/// A token from a login.
pub(super) struct Fetched {
    pub(super) secret: SecretString,
    pub(super) header: HeaderValue,
    /// By the service's clock.
    pub(super) issued: i64,
    pub(super) life: Option<Duration>,
    /// The serial of the account's login that brought it.
    pub(super) serial: u64,
}

/// The result of holding a token from a login.
pub(super) struct Holding {
    pub(super) generation: TokenGeneration,
    /// The service has returned the held token again.
    pub(super) same: bool,
    pub(super) sessions: usize,
}

impl SingleFlight {
    pub(super) fn new(
        token: TokenState,
        most_waiting: usize,
        skew: Arc<parking_lot::Mutex<SkewEstimator>>,
        by_wall: bool,
    ) -> Self {
        let state = State {
            token,
            waiting: Vec::new(),
            last: None,
            serial: 0,
            resets: 0,
            resets_told: 0,
            unsaved: false,
        };
        Self {
            state: Mutex::new(state),
            token: ArcSwapOption::empty(),
            carefree_until: AtomicI64::new(i64::MIN),
            by_wall,
            skew,
            most_waiting,
        }
    }

    pub(super) fn load(&self) -> Guard<Option<Arc<Token>>> {
        self.token.load()
    }

    pub(super) fn load_full(&self) -> Option<Arc<Token>> {
        self.token.load_full()
    }

    /// True while requests need not ask at `ms` of the aging clock: the token is good and no renewal is due.
    pub(super) fn is_carefree(&self, ms: i64) -> bool {
        ms < self.carefree_until.load(Ordering::Acquire)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Decides about a request that needs a token.
    pub(super) fn admit(&self, now: Now, may_renew: bool) -> Step {
        let mut state = self.lock();
        match state.token.admit(now, may_renew) {
            Admission::Go => Step::Go { launch: false },
            Admission::GoAndRenew => {
                self.publish(state);
                Step::Go { launch: true }
            }
            Admission::Wait { start } => {
                let ended = state.join(self.most_waiting);
                self.publish(state);
                Step::Wait { ended, launch: start }
            }
            Admission::Rest { at, refusal } => {
                Step::Rest { ended: state.join(self.most_waiting), at, refusal }
            }
            Admission::Refuse(refusal) => Step::Refuse(refusal),
        }
    }

    /// Handles an explicit request for a login. Returns the receiver of its end, and whether the caller launches it.
    pub(super) fn ask(&self, now: Now) -> Result<(Receiver<Ended>, bool), Refusal> {
        let mut state = self.lock();
        let launch = state.token.ask(now)?;
        let ended = state.wait();
        self.publish(state);
        Ok((ended, launch))
    }

    /// Handles a 401 to a request that was sent with token `generation`. There is a receiver only with
    /// [`AfterRefusal::Join`].
    pub(super) fn refused(
        &self,
        generation: TokenGeneration,
        resent: bool,
        now: Now,
    ) -> (AfterRefusal, Option<Result<Receiver<Ended>, AuthError>>) {
        let mut state = self.lock();
        let decision = state.token.refused(generation.0, resent, now);
        let joins = matches!(decision, AfterRefusal::Join { .. });
        let ended = joins.then(|| state.join(self.most_waiting));
        self.publish(state);
        (decision, ended)
    }

    /// Notes that the service accepted the token. Returns the serial of the account's login that brought it.
    pub(super) fn accepted(&self, generation: TokenGeneration) -> u64 {
        let mut state = self.lock();
        state.token.accepted(generation.0);
        let serial = state.serial;
        self.publish(state);
        serial
    }

    pub(super) fn tick(&self, now: Now, may_renew: bool) -> Tick {
        let mut state = self.lock();
        let tick = state.token.tick(now, may_renew);
        self.publish(state);
        tick
    }

    pub(super) fn reset(&self) {
        let mut state = self.lock();
        state.token.reset();
        state.last = None;
        state.resets += 1;
        self.publish(state);
    }

    /// Holds the token of our own login and tells all waiting requests.
    pub(super) fn granted(&self, fetched: Fetched, now: Now) -> Holding {
        let mut state = self.lock();
        let same = self.holds(&fetched.secret, &state);
        let generation = TokenGeneration(state.token.granted(fetched.issued, fetched.life, same, now));
        if !same {
            self.hold(Token::new(fetched.secret, fetched.header, generation));
        }
        let sessions = state.token.sessions();
        state.serial = fetched.serial;
        self.landed(state);
        Holding { generation, same, sessions }
    }

    /// Returns true if `secret` is the held token.
    pub(super) fn holds(&self, secret: &SecretString, state: &State) -> bool {
        self.token.load().as_ref().is_some_and(|held| held.is(secret)) && state.token.holds()
    }

    /// Publishes a new token. Called under the lock, so that no older token follows it.
    pub(super) fn hold(&self, token: Token) {
        self.token.store(Some(Arc::new(token)));
    }

    /// Tells all waiting requests that there is a token.
    pub(super) fn landed(&self, mut state: MutexGuard<'_, State>) {
        state.last = None;
        // Under the same lock: later requests find the token and belong to no earlier login.
        let waiting = state.disembark();
        self.publish(state);
        tell(waiting, &Ok(()));
    }

    /// Ends a failed login for all requests that wait for it.
    pub(super) fn land(&self, error: AuthError) {
        self.end(error, TokenState::failed);
    }

    /// Ends a login whose task was dropped. The waiting requests are told, and may wait for the next login.
    pub(super) fn interrupt(&self, error: AuthError, now: Now) {
        self.end(error, |token| token.interrupted(now));
    }

    fn end(&self, error: AuthError, change: impl FnOnce(&mut TokenState)) {
        let mut state = self.lock();
        change(&mut state.token);
        state.last = Some(error.clone());
        let waiting = state.disembark();
        self.publish(state);
        tell(waiting, &Err(error));
    }

    /// Publishes changes for readers without the lock.
    pub(super) fn publish(&self, state: MutexGuard<'_, State>) {
        let offset = self.skew.lock().offset().filter(|_| self.by_wall).unwrap_or_default();
        self.carefree_until.store(state.token.carefree_until().saturating_sub(offset), Ordering::Release);
        if !state.token.holds() {
            self.token.store(None);
        }
        if let Some(token) = &*self.token.load() {
            token.set_withdrawn(state.token.withdrawn() == Some(token.generation().0));
            token.set_denied(state.token.is_denied());
        }
    }
}

impl State {
    /// Joins the waiting requests, unless there are too many.
    fn join(&mut self, most: usize) -> Result<Receiver<Ended>, AuthError> {
        if self.waiting.len() >= most {
            // Dropped waiters make room.
            self.waiting.retain(|waiter| !waiter.is_closed());
            if self.waiting.len() >= most {
                return Err(AuthError::new(AuthErrorKind::Overloaded));
            }
        }
        Ok(self.wait())
    }

    fn wait(&mut self) -> Receiver<Ended> {
        let (waiter, ended) = channel();
        self.waiting.push(waiter);
        ended
    }

    /// Removes and returns the waiting requests of the flight that ends under this lock.
    pub(super) fn disembark(&mut self) -> Vec<Sender<Ended>> {
        mem::take(&mut self.waiting)
    }

    /// True if all requests that waited for the login were dropped.
    #[cfg(all(test, shuttle))]
    pub(super) fn is_deserted(&self) -> bool {
        self.waiting.iter().all(Sender::is_closed)
    }
}

pub(super) fn tell(waiting: Vec<Sender<Ended>>, ended: &Ended) {
    for waiter in waiting {
        // A dropped request need not be told.
        let _ = waiter.send(ended.clone());
    }
}
