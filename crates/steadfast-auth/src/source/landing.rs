use std::{future::Future, sync::Arc, thread};

use super::single_flight::{Ended, SingleFlight};
use crate::{AuthError, AuthErrorKind, life::Now};

/// Tells the waiters how the login ended, even when its task panics or the runtime goes away.
pub(super) struct Landing<N: Fn() -> Now> {
    flight: Arc<SingleFlight>,
    now: N,
    ended: Option<Ended>,
}

impl<N: Fn() -> Now> Landing<N> {
    /// For the login that the caller has just been told to launch.
    pub(super) fn new(flight: Arc<SingleFlight>, now: N) -> Self {
        Self { flight, now, ended: None }
    }

    /// Runs `login`, which ends with `Ok` where the waiters have been told already.
    pub(super) async fn fly(mut self, login: impl Future<Output = Ended>) {
        self.ended = Some(login.await);
    }

    /// The login cannot even be tried.
    pub(super) fn cancel(mut self, error: AuthError) {
        self.ended = Some(Err(error));
    }
}

impl<N: Fn() -> Now> Drop for Landing<N> {
    fn drop(&mut self) {
        match self.ended.take() {
            // A success has been told already, with its token.
            Some(Ok(())) => {}
            Some(Err(error)) => self.flight.land(error),
            // A login that panics would do so again.
            None if thread::panicking() => {
                self.flight.lock().life.policy.unanswered((self.now)().elapsed);
                self.flight.land(interrupted());
            }
            None => self.flight.interrupt(interrupted(), (self.now)()),
        }
    }
}

pub(super) const INTERRUPTED: &str = "login interrupted";

pub(super) fn interrupted() -> AuthError {
    AuthError::new(AuthErrorKind::Unavailable).with_source(INTERRUPTED)
}
