use std::num::NonZeroU32;

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};
use redis::{aio::MultiplexedConnection, cmd};
use steadfast_limit::{Ceilings, Lane, MINUTE, Profile, Quota, SECOND, Scope, Zone, ZoneLimiter};
use steadfast_redis::{
    Ask, Decision, Micros, Reading, Rule, Script, SharedWindows, acquire_arguments, lend_arguments,
    read_arguments, settle_arguments,
};

use crate::server::Server;

const HOUR: u64 = 3_600_000_000;

/// The script and the pure core, with one history.
struct Pair {
    store: MultiplexedConnection,
    core: SharedWindows,
    rule: Rule,
    key: String,
    dice: ChaCha8Rng,
    run: u64,
    /// The store's time, which may be set.
    time: Micros,
    /// How far a caller's clock allows the key's to come.
    allowed: Micros,
    /// Requests that were granted, and those that were refused.
    granted: Vec<String>,
    refused: Vec<(String, Lane)>,
    next: u64,
    counts: Counts,
}

/// The cases that a history has seen, so that no test is about nothing.
#[derive(Debug, Default)]
struct Counts {
    granted: u32,
    /// Calls that granted several.
    together: u32,
    refused: u32,
    settled: u32,
    lent: u32,
}

impl Pair {
    async fn new(server: &Server, rule: Rule, seed: u64) -> Self {
        Self {
            store: server.connection().await,
            core: SharedWindows::new(rule.clone()),
            rule,
            key: format!("{{sf:history}}:{seed}"),
            dice: ChaCha8Rng::seed_from_u64(seed),
            run: 0,
            time: 1_764_000_000_123_457,
            allowed: 1_764_000_000_123_457,
            granted: Vec::new(),
            refused: Vec::new(),
            next: 0,
            counts: Counts::default(),
        }
    }

    fn below(&mut self, n: u64) -> u64 {
        self.dice.next_u64() % n
    }

    fn any<T>(&mut self, from: &[T]) -> Option<usize> {
        (!from.is_empty()).then(|| self.below(from.len() as u64) as usize)
    }

    /// Does one step of a history on both, and compares.
    async fn step(&mut self) {
        match self.below(1_000) {
            0 => self.run += 1,
            1 => {
                self.core.flush();
                () = cmd("DEL").arg(&self.key).query_async(&mut self.store).await.unwrap();
            }
            // A settled request may be settled again, and one of a store that was emptied too.
            2..20 => {
                let granted = std::mem::take(&mut self.granted);
                if let Some(at) = self.any(&granted) {
                    self.lend(&granted[at]).await;
                }
                self.granted = granted;
            }
            20..350 => {
                let granted = std::mem::take(&mut self.granted);
                if let Some(at) = self.any(&granted) {
                    self.settle(&granted[at]).await;
                }
                self.granted = granted;
                if self.granted.len() > 30 {
                    self.granted.remove(0);
                }
            }
            350..370 => {
                let at = self.below(self.granted.len().max(1) as u64) as usize;
                if at < self.granted.len() {
                    let id = self.granted.swap_remove(at);
                    self.core.refund(&id);
                    () = cmd("ZREM").arg(&self.key).arg(&id).query_async(&mut self.store).await.unwrap();
                }
            }
            370..590 => self.pass(),
            590..600 => {
                let (latest, Reading { shown, .. }) = self.read();
                let read = self.call(Script::READ, &read_arguments(latest)).await;
                assert_eq!(read, (1, shown, 0));
            }
            600..750 if !self.refused.is_empty() => {
                let at = self.below(self.refused.len() as u64) as usize;
                let (id, lane) = self.refused.swap_remove(at);
                self.acquire(id, lane).await;
            }
            _ => {
                self.next += 1;
                let lane = Lane::ALL[self.below(5) as usize];
                let id = format!("p{}:{}", self.below(4), self.next);
                self.acquire(id, lane).await;
            }
        }
    }

    /// Lets time pass. The store's clock is set now and then.
    fn pass(&mut self) {
        let most = [1_000, 30_000, 200_000, 3_000_000][self.below(4) as usize];
        let passed = self.below(most) as Micros;
        self.time += passed;
        self.allowed += passed;
        if self.below(50) == 0 {
            self.time += self.below(2 * HOUR) as Micros - HOUR as Micros;
        }
    }

    /// Asks for a request, alone or with others behind it.
    async fn acquire(&mut self, id: String, lane: Lane) {
        let others = [0, 0, 1, 3][self.below(4) as usize];
        let others = (0..others).map(|_| {
            self.next += 1;
            format!("p{}:{}", self.below(4), self.next)
        });
        let mut ids: Vec<String> = [id].into_iter().chain(others.collect::<Vec<_>>()).collect();
        let first_use = self.below(2) == 0;
        let asks = ids.iter().map(|id| {
            let ask = Ask::new(id, lane);
            if first_use { ask.first_use() } else { ask }
        });
        let asks: Vec<_> = asks.collect();
        let (latest, Reading { shown, now }) = self.read();
        let mut expected = (0, 0);
        for ask in &asks {
            if let Decision::Refused { earliest } = self.core.acquire(&format!("run{}", self.run), ask, now) {
                expected.1 = earliest - now;
                break;
            }
            expected.0 += 1;
        }
        let arguments = acquire_arguments(&self.rule, &asks, latest);
        let (granted, its_shown, wait) = self.call(Script::ACQUIRE, &arguments).await;
        assert_eq!(its_shown, shown);
        assert_eq!((granted, wait), expected, "{asks:?} at {now} in {:?}", self.core);
        let refused = ids.split_off(granted as usize);
        self.counts.granted += granted as u32;
        self.counts.together += u32::from(granted > 1);
        self.granted.extend(ids);
        // Those behind it were not asked for.
        if let Some(id) = refused.into_iter().next() {
            self.counts.refused += 1;
            self.refused.push((id, lane));
            if self.refused.len() > 8 {
                let (id, _) = self.refused.remove(0);
                self.core.refund(&id);
                let waits = format!("w{id}");
                () = cmd("ZREM").arg(&self.key).arg(&[id, waits]).query_async(&mut self.store).await.unwrap();
            }
        }
    }

    async fn settle(&mut self, id: &str) {
        let (latest, Reading { now, .. }) = self.read();
        self.core.settle(id, now);
        let arguments = settle_arguments(&self.rule, id, latest);
        self.call(Script::SETTLE, &arguments).await;
        self.counts.settled += 1;
    }

    async fn lend(&mut self, id: &str) {
        let (latest, Reading { now, .. }) = self.read();
        let life = 36_000_000 + self.below(60_000_000) as Micros;
        let expected = self.core.lend(id, life, now);
        let arguments = lend_arguments(&self.rule, id, life, latest);
        let (lent, ..) = self.call(Script::LEND, &arguments).await;
        assert_eq!(lent == 1, expected, "{id} at {now} in {:?}", self.core);
        self.counts.lent += u32::from(expected);
    }

    /// Returns how far a caller allows the clock to come, and what it reads then. Some know nothing, some are late, and
    /// the clock of some is another.
    fn read(&mut self) -> (Option<Micros>, Reading) {
        let latest = match self.below(60) {
            0 => None,
            1 => Some(self.allowed - self.below(2 * HOUR) as Micros),
            2 => Some(self.allowed + self.below(HOUR) as Micros),
            3..12 => Some(self.allowed - self.below(100_000) as Micros),
            _ => Some(self.allowed),
        };
        let reading = self.core.read(self.time, latest);
        self.allowed = self.allowed.min(reading.shown).max(reading.now);
        (latest, reading)
    }

    async fn call(&mut self, script: Script, arguments: &[String]) -> (i64, Micros, Micros) {
        let text = script.text_with_time(&format!("run{}", self.run));
        cmd("EVAL")
            .arg(text)
            .arg(2)
            .arg(&self.key)
            .arg(self.time)
            .arg(arguments)
            .query_async(&mut self.store)
            .await
            .unwrap()
    }
}

fn rules() -> Vec<Rule> {
    let zone = |quota: Quota| {
        let limiter = ZoneLimiter::builder().zone(quota).build().unwrap();
        Rule::new(&limiter.settings()[0])
    };
    let quota = || Quota::new(Zone::GENERAL, Scope::AuthToken).limit(10, SECOND);
    vec![
        zone(quota().limit(40, MINUTE / 10).ceilings(Ceilings::standard())).emergency_share(),
        zone(quota().limit(400, MINUTE).ceilings(Ceilings::standard())),
        zone(quota().profile(Profile::WindowLog)),
        zone(quota().limit(40, MINUTE / 10).profile(Profile::WindowLog).ceilings(Ceilings::standard())),
        zone(Quota::new(Zone::OTP, Scope::ClientIp).limit(3, SECOND).settle(SECOND / 10)),
        zone(quota().profile(Profile::Paced { burst: NonZeroU32::new(3).unwrap() })),
    ]
}

/// Drives every rule with histories until each has been asked `decisions` times.
async fn agree(decisions: u32, seed: u64) {
    let Some(server) = Server::start().await else { return };
    for (number, rule) in (0..).zip(rules()) {
        let mut pair = Pair::new(&server, rule, seed + number).await;
        while pair.counts.granted + pair.counts.refused < decisions {
            pair.step().await;
        }
        println!("{number}: {:?}", pair.counts);
        let Counts { granted, together, refused, settled, lent } = pair.counts;
        assert!(lent > 0 || number > 0, "{:?}", pair.counts);
        assert!(
            granted.min(refused).min(settled) > decisions / 40 && together > decisions / 250,
            "{:?}",
            pair.counts
        );
    }
}

#[tokio::test]
async fn script_and_core_decide_the_same() {
    agree(if std::env::var_os("STEADFAST_DEEP").is_some() { 40_000 } else { 2_500 }, 1).await;
}
