//! The state shared by the threads of one schedule, with its requests, logins and service.

use std::{
    future::{Future, poll_fn},
    mem,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use secrecy::SecretString;
use shuttle::{
    future::{block_on, yield_now},
    rand::{Rng, thread_rng},
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    thread,
};
use steadfast_call::ext::TokenGeneration;
use tokio::sync::oneshot::Receiver;

use super::super::{Ended, Fetched, SingleFlight, Step, tell};
use crate::{
    error::{AuthError, AuthErrorKind},
    login::{LoginFailure, LoginMode},
    secret::ApiKey,
    sync::Mutex,
    token::{
        Renewal,
        source::landing::Landing,
        state::{AfterRefusal, Now, TokenState},
    },
};

const DAY: Duration = Duration::from_secs(86_400);

/// How the logins of a schedule end.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Login {
    Succeeds,
    /// With an error that latches: later requests get the same error.
    Fails,
    /// Its task is dropped at some point, as when a runtime goes away.
    Dropped,
}

/// The mistakes of clients that the tests must tell from ours.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Mistake {
    None,
    LoginPerWaiter,
    FailureToldToOne,
    DroppedDriverIsForgotten,
    RefusalOfTheCurrentToken,
    FailedRenewalDisplaces,
}

/// The state shared by the threads of one schedule.
pub(super) struct World {
    flight: Arc<SingleFlight>,
    now: Now,
    login: Login,
    mistake: Mistake,
    logins: AtomicU64,
    /// The service accepts tokens from this generation on.
    pub(super) accepts_from: AtomicU64,
    /// The threads that log in.
    flying: Mutex<Vec<thread::JoinHandle<()>>>,
}

impl World {
    /// Creates a source without a token, at time zero.
    pub(super) fn cold(login: Login, mistake: Mistake) -> Arc<Self> {
        Self::new(login, mistake, None)
    }

    /// Creates a source with token 1, accepted, of that age.
    pub(super) fn working(login: Login, mistake: Mistake, age_ms: i64) -> Arc<Self> {
        Self::new(login, mistake, Some(age_ms))
    }

    fn new(login: Login, mistake: Mistake, age_ms: Option<i64>) -> Arc<Self> {
        let token = TokenState::new(Renewal::new().daily(None).jitter_seed(7), Some(LoginMode::Unattended));
        let flight = Arc::new(SingleFlight::new(token, 100, Arc::default(), true));
        let wall = age_ms.unwrap_or_default();
        let now = Now { elapsed: DAY * 2 + Duration::from_millis(wall.unsigned_abs()), wall, aging: wall };
        if age_ms.is_some() {
            let issue = Now { elapsed: DAY * 2, wall: 0, aging: 0 };
            flight.granted(fetched(1, 0), issue);
            flight.accepted(TokenGeneration(1));
        }
        let (logins, accepts_from) = (AtomicU64::new(u64::from(age_ms.is_some())), AtomicU64::new(1));
        let flying = Mutex::new(Vec::new());
        Arc::new(Self { flight, now, login, mistake, logins, accepts_from, flying })
    }

    /// Runs one request as the layers do. Returns the accepted token, or why there was none.
    fn call(self: &Arc<Self>) -> Result<u64, AuthErrorKind> {
        for _ in 0..4 {
            self.await_token()?;
            // The token may be withdrawn between the admission and the header. Then nothing is sent.
            if let Some(sent) = self.attach() {
                thread::yield_now();
                if self.accepts(sent) {
                    self.flight.accepted(TokenGeneration(sent));
                    return Ok(sent);
                }
                return self.refused(sent);
            }
        }
        Err(AuthErrorKind::Unavailable)
    }

    fn await_token(self: &Arc<Self>) -> Result<(), AuthErrorKind> {
        loop {
            match self.flight.admit(self.now, true) {
                Step::Go { launch } => {
                    self.launch_if(launch);
                    return Ok(());
                }
                Step::Wait { ended, launch } => {
                    self.launch_if(launch);
                    match self.wait(ended) {
                        Err(_) if self.flight.lock().token.is_usable(self.now) => return Ok(()),
                        ended => ended?,
                    }
                }
                Step::Refuse(refusal) | Step::Rest { refusal, .. } => return Err(refusal.kind),
            }
        }
    }

    fn refused(self: &Arc<Self>, sent: u64) -> Result<u64, AuthErrorKind> {
        let blamed = match self.mistake {
            Mistake::RefusalOfTheCurrentToken => self.generation().unwrap_or(sent),
            _ => sent,
        };
        let (decision, ended) = self.flight.refused(TokenGeneration(blamed), false, self.now);
        match (decision, ended) {
            (AfterRefusal::Resend, _) => {}
            (AfterRefusal::Join { start }, Some(ended)) => {
                self.launch_if(start);
                self.wait(ended)?;
            }
            _ => return Err(AuthErrorKind::Rejected),
        }
        let sent = self.attach().ok_or(AuthErrorKind::Unavailable)?;
        if self.accepts(sent) { Ok(sent) } else { Err(AuthErrorKind::Rejected) }
    }

    fn wait(&self, ended: Result<Receiver<Ended>, AuthError>) -> Result<(), AuthErrorKind> {
        let ended = block_on(ended.map_err(|error| error.kind())?);
        ended.expect("whoever waits is told").map_err(|error| error.kind())
    }

    pub(super) fn attach(&self) -> Option<u64> {
        let token = self.flight.load_full()?;
        (!token.is_withdrawn()).then(|| token.generation().0)
    }

    pub(super) fn generation(&self) -> Option<u64> {
        self.flight.load_full().map(|token| token.generation().0)
    }

    fn accepts(&self, generation: u64) -> bool {
        generation >= self.accepts_from.load(SeqCst)
    }

    fn launch_if(self: &Arc<Self>, launch: bool) {
        if launch || self.mistake == Mistake::LoginPerWaiter {
            let world = Arc::clone(self);
            let thread = thread::spawn(move || world.fly());
            self.flying.lock().push(thread);
        }
    }

    fn fly(self: &Arc<Self>) {
        let now = self.now;
        let landing = Landing::new(Arc::clone(&self.flight), move || now);
        let polls = match self.login {
            Login::Dropped => thread_rng().gen_range(0..4),
            _ => u32::MAX,
        };
        if self.mistake == Mistake::DroppedDriverIsForgotten {
            return mem::forget(landing);
        }
        if self.mistake == Mistake::FailureToldToOne {
            mem::forget(landing);
            let mut state = self.flight.lock();
            state.token.failed();
            let mut waiting = state.disembark();
            waiting.truncate(1);
            return tell(waiting, &Err(AuthError::new(AuthErrorKind::Latched)));
        }
        block_on(polled(landing.fly(Arc::clone(self).log_in()), polls));
    }

    async fn log_in(self: Arc<Self>) -> Ended {
        let login = self.logins.fetch_add(1, SeqCst) + 1;
        for _ in 0..2 {
            yield_now().await;
        }
        match self.login {
            Login::Succeeds | Login::Dropped => {
                self.flight.granted(fetched(login, self.now.wall), self.now);
                Ok(())
            }
            Login::Fails => {
                let failure = LoginFailure::Misconfigured("400".into());
                let mut state = self.flight.lock();
                state.token.policy.failed(&failure, LoginMode::Unattended, self.now.elapsed);
                drop(state);
                if self.mistake == Mistake::FailedRenewalDisplaces {
                    self.flight.token.store(None);
                }
                Err(AuthError::new(AuthErrorKind::Latched))
            }
        }
    }

    /// Runs `threads` threads of `rounds` requests each and returns their results.
    pub(super) fn storm(self: &Arc<Self>, threads: usize, rounds: usize) -> Vec<Result<u64, AuthErrorKind>> {
        let run = |world: Arc<Self>| move || (0..rounds).map(|_| world.call()).collect::<Vec<_>>();
        let running: Vec<_> = (0..threads).map(|_| thread::spawn(run(Arc::clone(self)))).collect();
        let ends = running.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        // A renewal in the background may still be running.
        let flying = mem::take(&mut *self.flying.lock());
        flying.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(self.flight.lock().is_deserted(), "nobody is left waiting");
        ends
    }

    pub(super) fn logins(&self) -> u64 {
        self.logins.load(SeqCst)
    }
}

/// Drops `future` after at most that many polls.
async fn polled(future: impl Future<Output = ()>, most: u32) {
    let (mut future, mut polls) = (Box::pin(future), 0);
    poll_fn(|cx| {
        polls += 1;
        if polls > most { Poll::Ready(()) } else { future.as_mut().poll(cx) }
    })
    .await;
}

fn fetched(login: u64, issued: i64) -> Fetched {
    let secret = SecretString::from(format!("token{login}"));
    let header = ApiKey::new("key").unwrap().header_with(&secret).unwrap();
    Fetched { secret, header, issued, life: Some(DAY), serial: login }
}
