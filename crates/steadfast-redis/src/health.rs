use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redis::cmd;
use steadfast_call::WallClock;
use tokio::time::Instant;

use crate::{error::StoreError, fitness::Info, store::Store};

/// A store's report of itself; see [`Shared::health`](crate::Shared::health).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// Its host and port.
    pub store: String,
    /// Its name and version.
    pub version: String,
    /// How long a call takes at least, there and back.
    pub round_trip: Duration,
    /// The time of its clock.
    pub time: SystemTime,
    /// How far that differs from this machine's wall clock, in either direction. It matters to no limit.
    pub clock_differs: Duration,
    /// True if what it is told outlives a restart, but for the last second. Otherwise a restart costs a login, and failed
    /// logins are forgotten.
    pub persists: bool,
}

/// How many calls are timed.
const CALLS: u32 = 5;

impl Health {
    pub(crate) async fn of(store: &Store) -> Result<Self, StoreError> {
        let info: String = store.query(&cmd("INFO")).await?;
        let (mut round_trip, mut time, mut clock_differs) = (Duration::MAX, UNIX_EPOCH, Duration::ZERO);
        for _ in 0..CALLS {
            let began = Instant::now();
            let (seconds, micros): (u64, u64) = store.query(&cmd("TIME")).await?;
            let took = began.elapsed();
            // The call of the shortest way says it best.
            if took < round_trip {
                round_trip = took;
                time = UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_micros(micros);
                let here = WallClock::system().now();
                let ahead = time.duration_since(here);
                clock_differs = ahead.unwrap_or_else(|behind| behind.duration().saturating_sub(took));
            }
        }
        let info = Info(&info);
        let (version, persists) = (info.version(), info.persists());
        Ok(Self { store: store.name().to_owned(), version, round_trip, time, clock_differs, persists })
    }
}
