//! `steadfast proxy` before the gateway, under the load of programs that know nothing but HTTP.

use std::{
    env, io,
    process::Stdio,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::{Child, ChildStdout, Command},
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, timeout},
};

use crate::{
    client::Sample,
    gauge::{Gateway, Holds},
};

/// One in so many orders is left by its caller.
const LEFT: u64 = 4;

/// The sidecar's process, ended when dropped.
pub(crate) struct Sidecar {
    process: Child,
    programs: Address,
    operators: Address,
    _state: TempDir,
    // Held open, so that the command does not print into a closed pipe.
    _stdout: BufReader<ChildStdout>,
}

#[derive(Clone)]
struct Address {
    authority: String,
    token: String,
}

impl Sidecar {
    pub(crate) async fn start(gateway: &Gateway) -> Self {
        let state = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
        command.args(["proxy", "--port", "0", "--json"]).env_clear();
        command.env("PATH", env::var_os("PATH").unwrap()).env("XDG_STATE_HOME", state.path());
        let facts: Value = serde_json::from_str(&gateway.facts()).unwrap();
        for name in ["base_url", "api_key", "client_id", "password", "totp_secret"] {
            command.env(format!("STEADFAST_{}", name.to_uppercase()), facts[name].as_str().unwrap());
        }
        command.kill_on_drop(true).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).await.unwrap();
        let facts: Value = serde_json::from_str(&line).unwrap();
        let token = std::fs::read_to_string(facts["token_file"].as_str().unwrap()).unwrap();
        let address = |name: &str| Address {
            authority: facts[name].as_str().unwrap().replace("http://", "").replace("/v2", ""),
            token: token.trim().to_owned(),
        };
        let (programs, operators) = (address("base_url"), address("admin_url"));
        Self { process, programs, operators, _state: state, _stdout: stdout }
    }

    /// Loads it, and returns what it holds in each second.
    pub(crate) async fn soak(&self, time: Duration) -> Vec<Sample> {
        let (calls, orders) = (AtomicU64::new(0), AtomicU64::new(0));
        let end = Instant::now() + time;
        // Each waits for its answer, so that no queue grows because of the load alone.
        let read = async |call: &str, period: Duration| {
            let mut ticks = every(period);
            loop {
                ticks.tick().await;
                let answer = self.programs.ask(call, "", "").await;
                let is_read = answer.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"));
                calls.fetch_add(u64::from(is_read), Ordering::Relaxed);
            }
        };
        let reads = read("GET /v2/api/mkt-data/scrips/symbol-store/NSE_EQ", Duration::from_millis(50));
        let polls = read("GET /v2/api/oms/orders", Duration::from_secs(2));
        let placing = async {
            let (mut ticks, mut callers) = (every(Duration::from_secs(1)), JoinSet::new());
            loop {
                ticks.tick().await;
                while callers.try_join_next().is_some() {}
                let (number, programs) = (orders.fetch_add(1, Ordering::Relaxed), self.programs.clone());
                callers.spawn(async move { programs.order(number).await });
            }
        };
        let mut samples = Vec::new();
        let looks = async {
            let mut seconds = every(Duration::from_secs(1));
            while Instant::now() < end {
                seconds.tick().await;
                samples.push(Sample {
                    holds: Holds::of(self.process.id().unwrap()).expect("it runs"),
                    // It does not tell them.
                    tasks: 0.0,
                    in_doubt: self.operators.in_doubt().await,
                    calls: calls.load(Ordering::Relaxed) as f64,
                    orders: orders.load(Ordering::Relaxed) as f64,
                    logins: 0.0,
                    at_rest: false,
                });
            }
        };
        tokio::select! {
            () = reads => {}
            () = polls => {}
            () = placing => {}
            () = looks => {}
        }
        // It may still look for orders.
        let last = *samples.last().unwrap();
        samples.push(Sample { at_rest: true, ..last });
        samples
    }
}

impl Address {
    /// Returns the answer to a request on a connection of its own.
    async fn ask(&self, call: &str, lines: &str, form: &str) -> io::Result<String> {
        let Self { authority, token } = self;
        let mut stream = TcpStream::connect(authority).await?;
        let request = format!(
            "{call} HTTP/1.1\r\nHost: {authority}\r\nAuthorization: Bearer {token}\r\n{lines}Connection: close\r\n\
             Content-Length: {}\r\n\r\n{form}",
            form.len()
        );
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }

    /// Places an order, and cancels it; or goes away in the middle.
    async fn order(&self, number: u64) -> io::Result<()> {
        let form = format!(
            "symId=EQT_INFY_EQ_NSE&qty={}&side=buy&type=limit&limitPrice=1500.05&product=intraday&validity=day",
            number + 1
        );
        // Every second one has a name.
        let name =
            if number.is_multiple_of(2) { format!("Idempotency-Key: {number}\r\n") } else { String::new() };
        let placing = self.ask("POST /v2/api/oms/place-order", &name, &form);
        if number.is_multiple_of(LEFT) {
            drop(timeout(Duration::from_millis(number % 50), placing).await);
            return Ok(());
        }
        let placed = placing.await?;
        let Some((_, rest)) = placed.split_once("\"orderId\":\"") else { return Ok(()) };
        let id = rest.split('"').next().unwrap();
        self.ask(&format!("DELETE /v2/api/oms/cancel-order?orderId={id}"), "", "").await.map(drop)
    }

    async fn in_doubt(&self) -> f64 {
        let page = self.ask("GET /metrics", "", "").await.unwrap();
        let line = page.lines().find_map(|line| line.strip_prefix("steadfast_orders_in_doubt "));
        line.unwrap().trim().parse().unwrap()
    }
}

/// Returns ticks that never catch up, so that no burst of this load follows a storm.
fn every(period: Duration) -> tokio::time::Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
