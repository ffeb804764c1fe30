use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::HeaderMap;
use parking_lot::Mutex;
use steadfast_call::WallClock;

use super::{LoginFailure, LoginWait, OnLoginWait};
use crate::{
    skew::{SkewEstimator, date_ms, unix_ms},
    store::LoginLease,
};

/// Context of one login attempt: this machine's clock, and the estimate of the service's time.
#[derive(Clone)]
pub struct Attempt {
    clock: WallClock,
    skew: Arc<Mutex<SkewEstimator>>,
    corrected: bool,
    lease: Option<Arc<LoginLease>>,
    after: Option<&'static str>,
    on_wait: Option<OnLoginWait>,
}

impl Attempt {
    /// Creates a first attempt by `clock`, without knowledge of the service's time.
    #[must_use]
    pub fn new(clock: WallClock) -> Self {
        Self { clock, skew: Arc::default(), corrected: false, lease: None, after: None, on_wait: None }
    }

    pub(crate) fn of_lease(
        clock: WallClock,
        skew: Arc<Mutex<SkewEstimator>>,
        corrected: bool,
        lease: Arc<LoginLease>,
    ) -> Self {
        Self { clock, skew, corrected, lease: Some(lease), after: None, on_wait: None }
    }

    /// Sets the name of the failed attempt before it, and the hook for waits.
    pub(crate) fn following(self, after: Option<&'static str>, on_wait: OnLoginWait) -> Self {
        Self { after, on_wait: Some(on_wait), ..self }
    }

    /// Reports a wait that begins now.
    pub(crate) fn note_wait(&self, wait: Duration) {
        if let Some(on_wait) = &self.on_wait {
            on_wait(LoginWait { until: self.now() + wait, after: self.after });
        }
    }

    /// Counts the attempt before its request leaves, so that it spends budget even if the process ends before the
    /// answer. `step` is the time step of the submitted code; no process submits that code again.
    ///
    /// # Errors
    ///
    /// [`LoginFailure::Store`] if it cannot be written down. The request must not be sent then.
    pub async fn about_to_send(&self, step: Option<u64>) -> Result<(), LoginFailure> {
        match &self.lease {
            Some(lease) => lease.count(step).await.map_err(LoginFailure::Store),
            None => Ok(()),
        }
    }

    /// Waits until a request to the OTP zone may leave this machine's address, which other accounts and processes share
    /// (§8). Called before the code is made, so that the code is fresh.
    pub(crate) async fn queue_for_otp_zone(&self) {
        if let Some(lease) = &self.lease {
            tokio::time::sleep(lease.otp_place().await).await;
        }
    }

    /// Returns the time steps that any process has submitted for this account.
    pub(crate) fn used_steps(&self) -> Vec<u64> {
        self.lease.as_ref().map(|lease| lease.steps()).unwrap_or_default()
    }

    /// Returns this machine's time.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        self.clock.now()
    }

    /// Returns the time by which codes are made, in milliseconds since the Unix epoch: the estimated service time, or
    /// this machine's if a code made by the estimate was just refused.
    #[must_use]
    pub fn code_time_ms(&self) -> i64 {
        let now = unix_ms(self.clock.now());
        if self.corrected { now + self.skew.lock().offset().unwrap_or_default() } else { now }
    }

    /// Returns how far [`code_time_ms`](Attempt::code_time_ms) may be off the service's time, in milliseconds; zero if
    /// there is no estimate or it is not used.
    #[must_use]
    pub fn code_time_margin_ms(&self) -> i64 {
        if !self.corrected {
            return 0;
        }
        let now = unix_ms(self.clock.now());
        self.skew.lock().uncertainty(now).unwrap_or_default()
    }

    /// Learns the service's time from an answer to a request that left at `sent` and was answered at `answered`.
    pub fn observe(&self, headers: &HeaderMap, sent: SystemTime, answered: SystemTime) {
        if let Some(date) = date_ms(headers) {
            self.skew.lock().observe(date, unix_ms(sent), unix_ms(answered));
        }
    }

    /// The longest sleep while waiting for a wall-clock time, because the clock may be set meanwhile.
    pub(crate) const NAP: Duration = Duration::from_secs(30);
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt").field("corrected", &self.corrected).finish_non_exhaustive()
    }
}
