//! The client's process: reads, orders, cancels, and calls that are dropped.

use std::{
    env, io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http_body_util::BodyExt;
use serde_json::Value;
use steadfast::{
    Access, Client, Operation, OrderRequest, Paths, TotpCredentials, auth::Token, dedup::Settings, spec::Form,
};
use tokio::{
    runtime::Handle,
    time::{Instant, MissedTickBehavior, interval, sleep_until, timeout},
};

/// The variable that gives the child the gateway and its credentials.
pub(crate) const FACTS: &str = "STEADFAST_SOAK_FACTS";
/// The variable for how long it trades.
pub(crate) const SECONDS: &str = "STEADFAST_SOAK_SECONDS";
/// Set if it keeps every body.
pub(crate) const LEAKS: &str = "STEADFAST_SOAK_CHILD_LEAKS";
/// The prefix of its lines.
pub(crate) const TELLS: &str = "client: ";

/// One in so many orders is dropped by its caller.
const DROPPED: u64 = 4;

#[derive(Default)]
struct Counts {
    calls: AtomicU64,
    orders: AtomicU64,
    /// The number of tokens so far, and the latest.
    tokens: Mutex<(u64, Option<Arc<Token>>)>,
}

struct Load {
    client: Client,
    counts: Counts,
    /// Every body, if the client leaks.
    kept: Option<Mutex<Vec<Vec<u8>>>>,
    end: Instant,
}

/// Trades until the time is over, waits until nothing is in doubt, and reports its state every second.
pub(crate) async fn run_if_asked() {
    let Ok(facts) = env::var(FACTS) else { return };
    let seconds: u64 = env::var(SECONDS).unwrap().parse().unwrap();
    let load = Load {
        client: client(&serde_json::from_str(&facts).unwrap()),
        counts: Counts::default(),
        kept: env::var_os(LEAKS).map(|_| Mutex::default()),
        end: Instant::now() + Duration::from_secs(seconds),
    };
    let tells = async {
        let mut seconds = every(Duration::from_secs(1));
        while load.is_open() {
            seconds.tick().await;
            load.tell(false);
        }
    };
    tokio::join!(load.reads(), load.polls(), load.orders(), tells);
    load.client.shutdown().await;
    // Renewals and verifications end by themselves; their tasks need a moment to end.
    sleep_until(Instant::now() + Duration::from_secs(2)).await;
    load.tell(true);
    // It is measured while it still runs; it ends when its input ends.
    io::copy(&mut io::stdin(), &mut io::sink()).unwrap();
}

fn client(facts: &Value) -> Client {
    let fact = |name: &str| facts[name].as_str().unwrap();
    let access = Access::totp(TotpCredentials {
        api_key: fact("api_key").into(),
        client_id: fact("client_id").into(),
        password: fact("password").into(),
        totp_secret: fact("totp_secret").into(),
    })
    .unwrap();
    // Short, so that doubts come and go; this gateway applies at once or never.
    let settings = Settings::default()
        .gateway_timeout(Duration::from_secs(1))
        .lateness(Duration::from_secs(1))
        .verification_budget(Duration::from_secs(20));
    let builder = Client::builder(fact("base_url").parse().unwrap(), access).paths(Paths::public());
    builder.order_safety(settings).build().unwrap()
}

impl Load {
    fn is_open(&self) -> bool {
        Instant::now() < self.end
    }

    #[expect(clippy::print_stdout, reason = "the test reads what its child prints")]
    fn tell(&self, at_rest: bool) {
        let logins = {
            let mut tokens = self.counts.tokens.lock().unwrap();
            let now = self.client.tokens().token();
            if now.as_ref().map(Arc::as_ptr) != tokens.1.as_ref().map(Arc::as_ptr) {
                *tokens = (tokens.0 + u64::from(now.is_some()), now);
            }
            tokens.0
        };
        println!(
            "\n{TELLS}tasks={} in_doubt={} calls={} orders={} logins={logins} at_rest={}",
            Handle::current().metrics().num_alive_tasks(),
            self.client.in_doubt(),
            self.counts.calls.load(Ordering::Relaxed),
            self.counts.orders.load(Ordering::Relaxed),
            u8::from(at_rest),
        );
    }

    /// Reads many large answers.
    async fn reads(&self) {
        let mut ticks = every(Duration::from_millis(50));
        while self.is_open() {
            ticks.tick().await;
            self.read(&Operation::symbols("NSE_EQ")).await;
        }
    }

    async fn polls(&self) {
        let mut ticks = every(Duration::from_secs(2));
        while self.is_open() {
            ticks.tick().await;
            self.read(&Operation::orders()).await;
        }
    }

    async fn read(&self, operation: &Operation) {
        self.counts.calls.fetch_add(1, Ordering::Relaxed);
        let request = self.client.request(operation).unwrap();
        let Ok(answer) = self.client.raw(request).await else { return };
        let Ok(body) = answer.into_body().collect().await else { return };
        if let Some(kept) = &self.kept {
            // Four times, so that the growth shows within seconds on a slow machine too.
            kept.lock().unwrap().push(body.to_bytes().repeat(4));
        }
    }

    /// Places one order a second: most are cancelled, and some are dropped by their callers.
    async fn orders(&self) {
        let mut ticks = every(Duration::from_secs(1));
        while self.is_open() {
            ticks.tick().await;
            let number = self.counts.orders.fetch_add(1, Ordering::Relaxed);
            let client = self.client.clone();
            tokio::spawn(async move {
                let order = order(number);
                let placing = client.place_order(&order);
                if number.is_multiple_of(DROPPED) {
                    drop(timeout(Duration::from_millis(number % 50), placing).await);
                } else if let Ok(placed) = placing.await {
                    drop(client.cancel(&placed.order_id).await);
                }
            });
        }
    }
}

/// Returns orders that differ in their quantity.
fn order(number: u64) -> OrderRequest {
    const REST: &str =
        "symId=EQT_INFY_EQ_NSE&side=buy&type=limit&limitPrice=1500.05&product=intraday&validity=day";
    let form = Form::parse(format!("{REST}&qty={}", number + 1).as_bytes()).unwrap();
    OrderRequest::from_fields(form.iter()).unwrap()
}

/// Returns ticks that never catch up, so that no burst of this load follows a storm.
fn every(period: Duration) -> tokio::time::Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
