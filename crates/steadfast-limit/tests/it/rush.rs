//! Saturated minutes in virtual time: how much of the quota is used, and how long cancels wait.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use steadfast_limit::{Account, Answer, Lane, Profile, ScopeKeys, Zone, ZoneLimiter};
use tokio::time::{Instant, sleep};

use crate::drive::general;

const GENERAL: Zone = Zone::GENERAL;

fn is_deep() -> bool {
    std::env::var_os("STEADFAST_DEEP").is_some()
}

struct Desk {
    limiter: ZoneLimiter,
    keys: ScopeKeys,
    sent: Arc<Mutex<Vec<Instant>>>,
}

impl Desk {
    fn new(profile: Profile) -> Self {
        let limiter = ZoneLimiter::builder().zone(general().profile(profile)).build().unwrap();
        let keys = limiter.keys("example.com", &Account::default());
        Self { limiter, keys, sent: Arc::default() }
    }

    /// Starts callers that ask again as soon as they are answered.
    fn greedy(&self, lane: Lane, callers: usize, trip: Duration) {
        for _ in 0..callers {
            let (limiter, keys, sent) = (self.limiter.clone(), self.keys, self.sent.clone());
            tokio::spawn(async move {
                loop {
                    let mut permit = limiter.acquire(&[GENERAL], keys, lane).await.unwrap();
                    permit.sent();
                    sent.lock().unwrap().push(Instant::now());
                    sleep(trip).await;
                    permit.settle(Answer::Accepted);
                }
            });
        }
    }

    /// Returns the sends per minute in the second half of six minutes, or of twenty with `STEADFAST_DEEP=1`.
    async fn per_minute(&self) -> f64 {
        let minutes = if is_deep() { 10 } else { 3 };
        let late = Instant::now() + Duration::from_secs(60 * minutes);
        sleep(Duration::from_secs(120 * minutes)).await;
        self.sent.lock().unwrap().iter().filter(|sent| **sent >= late).count() as f64 / minutes as f64
    }
}

#[tokio::test(start_paused = true)]
async fn nearly_all_of_the_minute_is_used() {
    let near = Duration::from_millis(2);
    for (name, profile, lane, least) in [
        ("log", Profile::WindowLog, Lane::Critical, 0.998),
        ("universal", Profile::Universal, Lane::Critical, 0.97),
        ("universal, with reserves and pacing", Profile::Universal, Lane::Normal, 0.90),
    ] {
        let desk = Desk::new(profile);
        desk.greedy(lane, 20, near);
        let per_minute = desk.per_minute().await;
        println!("{name}: {per_minute} per minute of 400");
        assert!(per_minute >= least * 400.0, "{name}: {per_minute}");
        assert!(per_minute <= 400.0, "{name}: {per_minute}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_hardly_waits_behind_polls_and_verifications_that_never_stop() {
    let allowed = Duration::from_millis(50);
    for (name, profile) in [("log", Profile::WindowLog), ("universal", Profile::Universal)] {
        let desk = Desk::new(profile);
        let trip = Duration::from_millis(40);
        desk.greedy(Lane::Bulk, 20, trip);
        desk.greedy(Lane::Verification, 20, trip);
        let waits = Arc::new(Mutex::new(Vec::new()));
        // Twelve a minute on average, with exponential gaps from a fixed generator.
        let mut state = 7_u64;
        for _ in 0..if is_deep() { 400 } else { 100 } {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let uniform = ((state >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
            sleep(Duration::from_secs_f64(-5.0 * uniform.ln())).await;
            let (limiter, keys, waits) = (desk.limiter.clone(), desk.keys, waits.clone());
            tokio::spawn(async move {
                let asked = Instant::now();
                let mut permit = limiter.acquire(&[GENERAL], keys, Lane::Critical).await.unwrap();
                waits.lock().unwrap().push(asked.elapsed());
                permit.sent();
                sleep(trip).await;
                permit.settle(Answer::Accepted);
            });
        }
        sleep(Duration::from_secs(60)).await;
        let mut waits = waits.lock().unwrap().clone();
        waits.sort_unstable();
        let (p50, p99, most) =
            (waits[waits.len() / 2], waits[waits.len() * 99 / 100], waits[waits.len() - 1]);
        println!("{name}: cancels wait p50 {p50:?}, p99 {p99:?}, at most {most:?}, of {}", waits.len());
        assert!(p99 <= allowed, "{name}: {p99:?}");
    }
}
