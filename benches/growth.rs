//! Question: what does a call cost when thousands of others wait?
//!
//! Each row is a call of the limiter beside a number of waiters, an order beside a number of others in doubt, or a part
//! of a list of so many rows. The bench fails if a row costs more with the most of them than it may. It compares times of
//! one run, each the least of many. It also fails if the orders of a day take more memory than they may.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

mod day;
mod windows;

use std::{alloc::System, hint::black_box, num::NonZeroU32, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use steadfast::{
    BoxError, Stack,
    auth::{ApiKey, TokenSource},
    limit::{
        Ask, Decision, Grant, Lane, Limiter, MINUTE, Nanos, Quota, SECOND, Scope, WaiterId, Zone, ZoneId,
        ZoneLimiter,
    },
    spec::zones,
};
use tokio::{
    runtime::Builder,
    task::JoinSet,
    time::{Instant, sleep},
};
use tower::{ServiceExt, service_fn};

use crate::windows::{FOUR_HUNDRED, TEN, ask};

#[global_allocator]
static COUNTED: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// How many others there are.
const OTHERS: [u32; 4] = [30, 300, 3_000, 10_000];
const LAST: usize = OTHERS.len() - 1;
const SAMPLES: usize = 50;
const S: Nanos = SECOND.as_nanos() as Nanos;
const KEY: u64 = 7;
const BASE: &str = "https://api.example/v2";
/// The second zone of some requests: it has room when the first one has none.
const ROOMY: Zone = Zone::new("roomy");

/// A call beside `others` waiters or keys: how it is set up, and how long one takes.
struct Row {
    name: &'static str,
    /// How many times more it may cost with the most others than with the fewest.
    most: f64,
    /// Whether the others ask for a second zone as well.
    zones: usize,
    call: fn(&mut Crowd) -> Result<Duration, BoxError>,
}

const ROWS: [Row; 7] = [
    Row::new("a request behind the others", Crowd::behind),
    Row::new("a cancel ahead of the others", Crowd::ahead),
    Row::new("the last one is polled", Crowd::polled),
    Row::new("one more is refused as late", Crowd::late),
    Row::new("a slot is handed on to the first", Crowd::handed_on),
    // Each of the others is passed in the queue of the roomy zone, because it waits for another one.
    Row::new("a request behind the others, of two zones", Crowd::behind).past_each(),
    Row::new("a request for the roomy zone alone", Crowd::roomy).past_each(),
];

impl Row {
    const fn new(name: &'static str, call: fn(&mut Crowd) -> Result<Duration, BoxError>) -> Self {
        Self { name, most: 4.0, zones: 1, call }
    }

    const fn past_each(self) -> Self {
        // As many times as there are more of them.
        Self { most: (OTHERS[LAST] / OTHERS[0]) as f64, zones: 2, ..self }
    }
}

fn main() -> Result<(), BoxError> {
    // Without cargo's `--bench`, cargo only checks that the program runs.
    let samples = if std::env::args().any(|word| word == "--bench") { SAMPLES } else { 1 };
    let mut failed = Vec::new();
    println!("{:44} {:?} others, µs", "", OTHERS);
    for row in ROWS {
        let mut least = [f64::MAX; OTHERS.len()];
        for (least, others) in least.iter_mut().zip(OTHERS) {
            let mut crowd = Crowd::new(others, row.zones)?;
            for _ in 0..samples {
                let took = (row.call)(&mut crowd)?.as_nanos() as f64 / 1e3;
                *least = least.min(took);
            }
        }
        let grown = least[LAST] / least[0];
        println!("{:44} {least:10.2?} ×{grown:.1}", row.name);
        if samples > 1 && grown > row.most {
            failed.push(format!("{}: ×{grown:.1}, and ×{} is allowed", row.name, row.most));
        }
    }
    println!("{:44} {:?} others in doubt, µs", "", IN_DOUBT);
    let mut least = [f64::MAX; IN_DOUBT.len()];
    for (least, others) in least.iter_mut().zip(IN_DOUBT) {
        *least = order(others, samples)?;
    }
    println!("{:44} {least:10.2?}", "an order that is placed");
    let grown = least[IN_DOUBT.len() - 1] / least[0];
    if samples > 1 && grown > 1.5 {
        failed.push(format!("an order: ×{grown:.1}, and ×1.5 is allowed"));
    }
    println!("{:44} {:?} rows of one instrument, µs", "", LISTED);
    let mut least = [f64::MAX; LISTED.len()];
    for (least, rows) in least.iter_mut().zip(LISTED) {
        *least = day::longest_step(rows, samples.min(10))?;
    }
    let grown = least[LISTED.len() - 1] / least[0];
    println!("{:44} {least:10.2?} ×{grown:.1}", "a list's longest hold of the account's lock");
    if samples > 1 && grown > MOST_LISTED {
        failed.push(format!("a list: ×{grown:.1}, and ×{MOST_LISTED} is allowed"));
    }
    let taken = day::memory(COUNTED)?;
    println!("{:44} {taken:10.2} MB", "10,000 orders of a day");
    if taken > MOST_MB {
        failed.push(format!("10,000 orders take {taken:.1} MB, and {MOST_MB} are allowed"));
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ").into()) }
}

const IN_DOUBT: [u32; 3] = [5, 50, 500];
const LISTED: [u32; 3] = [1_000, 3_000, 10_000];
/// How many times longer one part of a list may take if the list is ten times as long.
const MOST_LISTED: f64 = 4.0;
/// How much memory ten thousand orders may take.
const MOST_MB: f64 = 15.0;

/// Returns the service's zones, with windows so wide that nothing waits.
fn unbounded() -> Result<ZoneLimiter, BoxError> {
    let wide = |quota: Quota| quota.clear_limits().limit(1_000_000, SECOND);
    let builder =
        zones().iter().fold(ZoneLimiter::builder().preset(), |builder, zone| builder.adjust(zone.zone, wide));
    Ok(builder.build()?)
}

/// Loses the answers to orders of quantity 1, and lists nothing yet.
async fn gateway<B: Body<Data = Bytes, Error: Into<BoxError>>>(
    request: Request<B>,
) -> Result<Response<Full<Bytes>>, BoxError> {
    if request.method() == Method::GET {
        return Ok(Response::new(Full::from(r#"{"s":"ok","d":[]}"#)));
    }
    let form = request.into_body().collect().await.map_err(Into::into)?.to_bytes();
    let form = std::str::from_utf8(&form)?;
    if form.contains("qty=1&") {
        return Ok(Response::builder().status(504).body(Full::default())?);
    }
    let number = form.split(['_', '&']).nth(1).unwrap_or_default();
    let answer = format!(r#"{{"s":"ok","d":{{"orderId":"{number}","msg":"placed"}}}}"#);
    Ok(Response::new(Full::from(answer)))
}

fn place(number: u32, qty: u32) -> Result<Request<Full<Bytes>>, BoxError> {
    let form = format!(
        "symId=EQT_{}_EQ_NSE&qty={qty}&side=buy&type=market&product=intraday&validity=day",
        260_000_000 + number
    );
    Ok(Request::post(format!("{BASE}/api/oms/place-order")).body(Full::from(form))?)
}

/// Returns the microseconds of an order, beside so many others in doubt.
fn order(others: u32, samples: usize) -> Result<f64, BoxError> {
    let runtime = Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(async {
        let tokens = TokenSource::fixed(ApiKey::new("key")?, "token")?;
        let service = Stack::new(BASE.parse()?, tokens).limiter(unbounded()?).service(service_fn(gateway));
        let mut tasks = JoinSet::new();
        for number in 0..others {
            tasks.spawn(service.clone().oneshot(place(number, 1)?));
        }
        // All have had their answers then, and wait: an order may be listed late.
        sleep(Duration::from_secs(1)).await;
        let mut least = f64::MAX;
        // Over two seconds: a processor is slow at times, and always after a sleep.
        for number in 0..samples as u32 * 40 {
            if number % 100 == 0 {
                sleep(Duration::from_millis(100)).await;
            }
            let request = place(others + number, 2)?;
            let start = Instant::now();
            service.clone().oneshot(request).await?;
            least = least.min(start.elapsed().as_nanos() as f64 / 1e3);
        }
        assert!(tasks.try_join_next().is_none(), "all are in doubt to the end");
        Ok(least)
    })
}

/// A limiter with its quota spent, and others who wait for it.
struct Crowd {
    core: Limiter,
    zones: Vec<(ZoneId, u64)>,
    now: Nanos,
    granted: Vec<Grant>,
    reserved: Vec<Grant>,
}

impl Crowd {
    fn new(others: u32, zones: usize) -> Result<Self, BoxError> {
        const MANY: NonZeroU32 = NonZeroU32::MIN.saturating_add(99_999);
        let roomy = Quota::new(ROOMY, Scope::Shared).limit(MANY.get(), MINUTE);
        let builder = windows::zones(TEN, FOUR_HUNDRED).zone(roomy).queue_bound(Lane::Normal, u32::MAX);
        let core = builder.build_core()?;
        let roomy = core.zone_id(ROOMY).ok_or("no such zone")?;
        let all = [(windows::general(&core)?, KEY), (roomy, KEY)];
        let mut crowd = Self {
            core,
            zones: all[..zones].to_vec(),
            now: 1_000 * S,
            granted: Vec::new(),
            reserved: Vec::new(),
        };
        // The cancels' own slots are spent last, so that the others get the slots that are given back.
        for lane in [Lane::Normal, Lane::Critical] {
            let first = loop {
                match crowd.ask(lane, None) {
                    Decision::Granted(grant) if lane == Lane::Normal => crowd.granted.push(grant),
                    Decision::Granted(grant) => crowd.reserved.push(grant),
                    Decision::Queued { waiter, .. } => break waiter,
                    Decision::Refused(refusal) => return Err(refusal.to_string().into()),
                }
            };
            crowd.core.cancel(first, crowd.now);
        }
        for _ in 0..others {
            crowd.queued(Lane::Normal)?;
        }
        Ok(crowd)
    }

    fn ask(&mut self, lane: Lane, send_by: Option<Nanos>) -> Decision {
        drop(self.core.take_woken());
        self.now += 1_000;
        self.core.acquire(&Ask { send_by, ..ask(&self.zones, lane) }, self.now)
    }

    fn queued(&mut self, lane: Lane) -> Result<WaiterId, BoxError> {
        match self.ask(lane, None) {
            Decision::Queued { waiter, .. } => Ok(waiter),
            _ => Err("the quota is not spent".into()),
        }
    }

    fn behind(&mut self) -> Result<Duration, BoxError> {
        let start = Instant::now();
        let waiter = self.queued(Lane::Normal)?;
        self.core.cancel(waiter, self.now);
        Ok(start.elapsed())
    }

    fn ahead(&mut self) -> Result<Duration, BoxError> {
        let start = Instant::now();
        let waiter = self.queued(Lane::Critical)?;
        self.core.cancel(waiter, self.now);
        Ok(start.elapsed())
    }

    fn polled(&mut self) -> Result<Duration, BoxError> {
        let waiter = self.queued(Lane::Bulk)?;
        let start = Instant::now();
        black_box(self.core.poll(waiter, self.now));
        let took = start.elapsed();
        self.core.cancel(waiter, self.now);
        Ok(took)
    }

    fn late(&mut self) -> Result<Duration, BoxError> {
        // The estimate is beyond any number of others.
        let soon = self.now + S;
        let start = Instant::now();
        let Decision::Refused(_) = self.ask(Lane::Bulk, Some(soon)) else { return Err("not refused".into()) };
        Ok(start.elapsed())
    }

    /// A slot is given back, and the foremost of the others takes it.
    fn handed_on(&mut self) -> Result<Duration, BoxError> {
        while let Some(grant) = self.reserved.pop() {
            self.core.refund(grant, self.now);
            self.collect();
        }
        let grant = self.granted.pop().ok_or("none was granted")?;
        let start = Instant::now();
        self.core.refund(grant, self.now);
        let took = start.elapsed();
        self.collect();
        self.queued(Lane::Normal)?;
        Ok(took)
    }

    /// The first of the others may have to wait a moment, because its lane is smoothed.
    fn collect(&mut self) {
        for waiter in self.core.take_woken() {
            let mut decision = self.core.poll(waiter, self.now);
            if let Some(Decision::Queued { alarm: Some(alarm), .. }) = decision {
                self.now = self.now.max(alarm);
                decision = self.core.poll(waiter, self.now);
            }
            if let Some(Decision::Granted(grant)) = decision {
                self.granted.push(grant);
            }
        }
    }

    fn roomy(&mut self) -> Result<Duration, BoxError> {
        let both = self.zones.clone();
        self.zones.remove(0);
        let start = Instant::now();
        let decision = self.ask(Lane::Normal, None);
        let took = start.elapsed();
        self.zones = both;
        match decision {
            Decision::Granted(grant) => self.core.refund(grant, self.now),
            Decision::Queued { waiter, .. } => self.core.cancel(waiter, self.now),
            Decision::Refused(refusal) => return Err(refusal.to_string().into()),
        }
        Ok(took)
    }
}
