use std::{sync::Arc, time::SystemTime};

use tokio::{runtime::Handle, time::Instant};

use super::{
    landing::Landing,
    shared::{Shared, time_at},
    single_flight::Ended,
    stored::{Charge, unusable},
};
use crate::{
    error::{AuthError, AuthErrorKind},
    login::{AnyLogin, Attempt, Grant, LoginFailure, LoginWait, Next},
    skew::unix_ms,
};

impl Shared {
    /// Runs the login in a task of its own. The caller has just marked it as under way.
    pub(super) fn launch(self: &Arc<Self>) {
        let clock = Arc::clone(self);
        let landing = Landing::new(Arc::clone(&self.flight), move || clock.now());
        let shared = Arc::clone(self);
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(landing.fly(async move { shared.log_in().await }))),
            Err(error) => {
                landing.cancel(AuthError::new(AuthErrorKind::Unavailable).with_source(error));
            }
        }
    }

    /// Logs in. Returns `Ok` if the waiting requests have been told already.
    async fn log_in(&self) -> Ended {
        let Some(login) = self.login.clone() else {
            return Err(AuthError::new(AuthErrorKind::NotConfigured));
        };
        if self.found_or_told().await? {
            return Ok(());
        }
        let lease = Arc::new(self.account.open(self.damaged()).await.map_err(unusable)?);
        // Another process that held the lease before may have logged in, or used up the budget.
        if self.begin(&lease).await? {
            return Ok(());
        }
        let before = lease.record().serial();
        let mut corrected = self.skew.lock().offset().is_some();
        let mut after = None;
        loop {
            let attempt =
                Attempt::of_lease(self.clock.clone(), Arc::clone(&self.skew), corrected, Arc::clone(&lease))
                    .following(after, Arc::clone(&self.on_login_wait));
            let by = self.correction(corrected);
            tracing::debug!(corrected, "logging in");
            let began = (self.clock.now(), self.aging());
            let failure = match login.attempt(&attempt).await {
                Ok(grant) => match self.keep(&lease, self.redated(grant, began), before).await {
                    Ok(()) => return Ok(()),
                    // The same login would yield the same kind of token again.
                    Err(invalid) => LoginFailure::Misconfigured(invalid.into()),
                },
                Err(failure) => failure,
            };
            let (next, charge) = self.judge(&failure, &*login);
            self.write_down(&lease, &failure, charge).await;
            tracing::warn!(failure = failure.as_str(), ?next, "login attempt failed");
            match next {
                Next::Again { at, other_clock } => {
                    if other_clock {
                        corrected = self.other_clock(corrected, by);
                    }
                    after = Some(failure.as_str());
                    let at = self.instant(at);
                    let pause = at.saturating_duration_since(Instant::now());
                    if !pause.is_zero() {
                        (self.on_login_wait)(LoginWait { until: self.clock.now() + pause, after });
                    }
                    tokio::time::sleep_until(at).await;
                }
                Next::GiveUp(refusal) => return Err(self.failed(refusal, failure)),
            }
        }
    }

    /// Redates the grant by the current wall clock: a clock that was set during the attempt would make the token older
    /// or younger by as much. Of the two possible ages the smaller is the true one, unless it is negative.
    fn redated(&self, grant: Grant, (wall, aging): (SystemTime, Option<i64>)) -> Grant {
        let (Some(then), Some(now)) = (aging, self.aging()) else { return grant };
        let (sent, wall_now) = (unix_ms(grant.sent), unix_ms(self.clock.now()));
        let set = (wall_now - unix_ms(wall)) - (now - then);
        let (age, other) = (wall_now - sent, wall_now - sent - set);
        if set.abs() <= CLOCK_SET_MS || other < 0 || (0..=other).contains(&age) {
            return grant;
        }
        Grant { sent: time_at(sent + set).unwrap_or(grant.sent), ..grant }
    }

    /// Returns what is added to this machine's clock to make codes, in milliseconds.
    fn correction(&self, corrected: bool) -> i64 {
        if corrected { self.skew.lock().offset().unwrap_or_default() } else { 0 }
    }

    /// Decides whether the next code is made by the corrected clock, after a code made with correction `by` was
    /// refused. The refusal may have brought the first sample of the service's time, or shown that a clock has been
    /// set.
    fn other_clock(&self, corrected: bool, by: i64) -> bool {
        let was_set = (self.correction(true) - by).abs() > CLOCK_SET_MS;
        was_set || !corrected
    }

    /// Returns what follows the failure, and which budgets it has spent.
    fn judge(&self, failure: &LoginFailure, login: &dyn AnyLogin) -> (Next, Charge) {
        self.with_token(|token, now| {
            if let LoginFailure::Unknown(_) = failure {
                token.note_session(now.wall);
            }
            let before = token.policy.spent();
            let next = token.policy.failed(failure, login.mode(), now.elapsed);
            let spent = token.policy.spent();
            (next, Charge { own: spent.own > before.own, account: spent.account > before.account })
        })
    }
}

/// Two estimates of the same offset differ by less, as do two clocks over the time of a login.
const CLOCK_SET_MS: i64 = 2_000;
