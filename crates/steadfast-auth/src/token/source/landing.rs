use std::{future::Future, sync::Arc, thread};

use super::single_flight::{Ended, SingleFlight};
use crate::{
    error::{AuthError, AuthErrorKind},
    token::state::Now,
};

/// Tells waiting requests how the login ended, even if its task panics or the runtime goes away.
pub(super) struct Landing<N: Fn() -> Now> {
    flight: Arc<SingleFlight>,
    now: N,
    ended: Option<Ended>,
}

impl<N: Fn() -> Now> Landing<N> {
    /// Creates the landing of a login that the caller was told to launch.
    pub(super) fn new(flight: Arc<SingleFlight>, now: N) -> Self {
        Self { flight, now, ended: None }
    }

    /// Runs `login`. It ends with `Ok` if the waiting requests have been told already.
    pub(super) async fn fly(mut self, login: impl Future<Output = Ended>) {
        self.ended = Some(login.await);
    }

    /// Ends a login that cannot even be tried.
    pub(super) fn cancel(mut self, error: AuthError) {
        self.ended = Some(Err(error));
    }
}

impl<N: Fn() -> Now> Drop for Landing<N> {
    fn drop(&mut self) {
        match self.ended.take() {
            // The waiting requests have got the token already.
            Some(Ok(())) => {}
            Some(Err(error)) => self.flight.land(error),
            // A login that panicked would do so again, so it is not tried again soon.
            None if thread::panicking() => {
                self.flight.lock().token.policy.unanswered((self.now)().elapsed);
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
