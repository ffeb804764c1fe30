use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::HeaderMap;
use parking_lot::Mutex;
use steadfast_spec::{Planted, WallClock};

use crate::{
    LoginFailure,
    docket::Docket,
    skew::{SkewEstimator, date_ms, unix_ms},
};

/// What an attempt to log in needs of its surroundings: the time, and what is known of the service's time.
#[derive(Clone)]
pub struct Attempt {
    clock: WallClock,
    skew: Arc<Mutex<SkewEstimator>>,
    corrected: bool,
    docket: Option<Arc<Docket>>,
}

impl Attempt {
    /// A first attempt by `clock`, which knows nothing of the service's time yet.
    #[must_use]
    pub fn new(clock: WallClock) -> Self {
        Self { clock, skew: Arc::default(), corrected: false, docket: None }
    }

    pub(crate) fn of_docket(
        clock: WallClock,
        skew: Arc<Mutex<SkewEstimator>>,
        corrected: bool,
        docket: Arc<Docket>,
    ) -> Self {
        Self { clock, skew, corrected, docket: Some(docket) }
    }

    /// Counts the attempt, before its request leaves: one whose process ends before the answer has spent budget.
    /// `step` is the time step whose code it submits, which no process submits again.
    ///
    /// # Errors
    ///
    /// [`LoginFailure::Store`] if it cannot be written down; the request must not be sent then.
    pub async fn about_to_send(&self, step: Option<u64>) -> Result<(), LoginFailure> {
        match &self.docket {
            Some(docket) => docket.count(step).await.map_err(LoginFailure::Store),
            None => Ok(()),
        }
    }

    /// Waits until a request to the OTP zone may leave this machine's address, which other accounts and processes share
    /// (§8). Before the code is made, so that it is fresh.
    pub(crate) async fn queue_for_otp_zone(&self) {
        if let Some(docket) = &self.docket {
            tokio::time::sleep(docket.otp_place().await).await;
        }
    }

    /// The time steps that were submitted for this account, by whichever process.
    pub(crate) fn used_steps(&self) -> Vec<u64> {
        self.docket.as_ref().map(|docket| docket.steps()).unwrap_or_default()
    }

    /// This machine's time.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        self.clock.now()
    }

    /// The time by which codes are made, in milliseconds since the Unix epoch: the service's as far as it is known,
    /// or this machine's where the former has just failed.
    #[must_use]
    pub fn code_time_ms(&self) -> i64 {
        let now = unix_ms(self.clock.now());
        let corrected = self.corrected && !Planted::SkewIgnored.is_on();
        if corrected { now + self.skew.lock().offset().unwrap_or_default() } else { now }
    }

    /// How far [`code_time_ms`](Attempt::code_time_ms) may be off the service's time, in milliseconds; zero where
    /// nothing is known, or the estimate is not used.
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

    /// The longest nap of somebody who waits for a time of the wall clock, which may be set while he sleeps.
    pub(crate) const NAP: Duration = Duration::from_secs(30);
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt").field("corrected", &self.corrected).finish_non_exhaustive()
    }
}
