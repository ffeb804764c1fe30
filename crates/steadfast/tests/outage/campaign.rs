//! Whole clients at their defaults, in outages in the middle of an order: how many orders exist in the end, and what
//! the callers were told.
//!
//! A plain test runs two short outages. With `STEADFAST_DEEP=1`, or with `STEADFAST_OUTAGE_CAMPAIGN` (lengths in seconds, and
//! how often: `20,90;5`), it runs outages around the attempt timeout and beyond, over plain TCP and TLS, with processes that
//! survive and processes that are killed in the outage and followed by another one.

use std::{
    collections::BTreeMap, env, future::pending, net::IpAddr, path::Path, process::Stdio, time::Duration,
};

use steadfast::{Access, Client, Error, OrderRequest, Outcome, Placed, Transport, ext::IntentId};
use steadfast_sandbox::{Credentials, Sandbox};
use tokio::{
    io::{
        AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, duplex,
    },
    net::TcpListener,
    process::Command,
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

use crate::{
    gateway::{Way, authority},
    network::{Link, run_inside, unshare, why_not},
};

/// The variable that configures a campaign: the lengths of the outages in seconds, and the number of runs of each;
/// `20,28;5`.
const CAMPAIGN: &str = "STEADFAST_OUTAGE_CAMPAIGN";
/// The outages that `STEADFAST_DEEP=1` runs.
const DEEP: &str = "20,28,33,40,44,49,58,90;5";
/// The variable that describes one cell of it.
const CELL: &str = "STEADFAST_OUTAGE_CELL";
/// The variable that gives the killed process the gateway, its journal and its credentials.
const KILLED: &str = "STEADFAST_OUTAGE_KILLED";
/// How many cells run at once; they wait most of the time.
const AT_ONCE: usize = 40;
/// How much longer than twice the outage a cell waits for late data of the kernel, whose pauses double.
const ALL_TRIED: Duration = Duration::from_secs(10);

/// One outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cell {
    seconds: u64,
    tls: bool,
    killed: bool,
}

impl Cell {
    fn parse(text: &str) -> Self {
        let words: Vec<&str> = text.split(' ').collect();
        let [seconds, way, fate] = words[..] else { panic!("three words") };
        Self { seconds: seconds.parse().unwrap(), tls: way == "tls", killed: fate == "killed" }
    }

    fn name(self) -> String {
        let way = if self.tls { "tls" } else { "plain" };
        let fate = if self.killed { "killed" } else { "lives" };
        format!("{} {way} {fate}", self.seconds)
    }

    fn outage(self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    /// Runs the outage; returns how many orders exist in the end and the result.
    async fn run(self) -> (usize, String) {
        let gateway = Gateway::start(if self.tls { Way::Tls } else { Way::Plain }).await;
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("orders.journal");
        let begun = Instant::now();
        let told = if self.killed {
            self.killed_and_followed(&gateway, &journal).await
        } else {
            self.lived_through(&gateway, &journal).await
        };
        sleep_until(begun + 2 * self.outage() + ALL_TRIED).await;
        let orders = gateway.sandbox.state().orders;
        let ids: Vec<&str> = orders
            .iter()
            .filter(|order| order.sym_id == SYMBOL)
            .map(|order| order.order_id.as_str())
            .collect();
        let what = match &told {
            Ok(placed) if ids == [placed.order_id.as_str()] => "right: placed".to_owned(),
            Ok(placed) => format!("WRONG: placed as {}, and there are {ids:?}", placed.order_id),
            Err(error) => {
                // After "nothing was sent" or "refused" the caller may place the order again.
                let is_none = matches!(error.outcome(), Outcome::NotSent | Outcome::Rejected);
                let is_right = ids.is_empty() || ids.len() == 1 && !is_none;
                let word = if is_right { "right" } else { "WRONG" };
                format!("{word}: {:?}, {:?}", error.kind(), error.outcome())
            }
        };
        (ids.len(), what)
    }

    async fn lived_through(self, gateway: &Gateway, journal: &Path) -> Result<Placed, Error> {
        let client = gateway.client(journal);
        client.place_order(&order(EARLIER)).await.unwrap();
        let link = Link::down();
        let placing = {
            let client = client.clone();
            tokio::spawn(async move { client.place_order_as(&order(SYMBOL), name()).await })
        };
        sleep(self.outage()).await;
        link.up();
        let told = placing.await.unwrap();
        client.shutdown().await;
        told
    }

    async fn killed_and_followed(self, gateway: &Gateway, journal: &Path) -> Result<Placed, Error> {
        let facts = [&*gateway.base, &gateway.facts.api_key, &gateway.facts.access_token, &gateway.pem];
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "campaign::killed", "--nocapture"])
            .env(KILLED, format!("{}\n{}", journal.display(), facts.join("\n")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        while lines.next_line().await.unwrap().expect("it places an order") != "placed" {}
        let link = Link::down();
        child.stdin.as_mut().unwrap().write_all(b"go\n").await.unwrap();
        sleep(self.outage() / 2).await;
        child.kill().await.unwrap();
        sleep(self.outage() / 2).await;
        link.up();
        let client = gateway.client(journal);
        client.recover().await.unwrap();
        let told = client.place_order_as(&order(SYMBOL), name()).await;
        client.shutdown().await;
        told
    }
}

/// The process that is killed.
#[tokio::test]
async fn killed() {
    let Ok(facts) = env::var(KILLED) else { return };
    let facts: Vec<&str> = facts.splitn(5, '\n').collect();
    let [journal, base, key, token, pem] = facts[..] else { panic!("five facts") };
    let client = client(base, Access::token(key, token).unwrap(), pem, Path::new(journal));
    client.place_order(&order(EARLIER)).await.unwrap();
    println!("\nplaced");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    let _ = client.place_order_as(&order(SYMBOL), name()).await;
}

/// A sandbox over TCP or TLS.
struct Gateway {
    sandbox: Sandbox,
    facts: Credentials,
    base: String,
    pem: String,
}

impl Gateway {
    async fn start(way: Way) -> Self {
        let (acceptor, pem) = authority();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let scheme = if way == Way::Tls { "https" } else { "http" };
        let sandbox = Sandbox::builder().build().unwrap();
        let served = sandbox.clone();
        tokio::spawn(async move {
            while let Ok((stream, peer)) = listener.accept().await {
                let (served, acceptor) = (served.clone(), acceptor.clone());
                tokio::spawn(async move {
                    if way == Way::Plain {
                        pass_on(stream, &served, peer.ip()).await;
                    } else if let Ok(stream) = acceptor.accept(stream).await {
                        pass_on(stream, &served, peer.ip()).await;
                    }
                });
            }
        });
        let facts = sandbox.credentials();
        Self { sandbox, facts, base: format!("{scheme}://localhost:{port}/v2"), pem }
    }

    fn client(&self, journal: &Path) -> Client {
        let access = Access::token(self.facts.api_key.clone(), self.facts.access_token.clone()).unwrap();
        client(&self.base, access, &self.pem, journal)
    }
}

/// Forwards what arrives, as long as the client keeps its connection.
///
/// The sandbox closes a connection after ten seconds without a request. Data that the kernel delivers later would be
/// lost, but a more patient gateway would read it.
async fn pass_on(mut client: impl AsyncRead + AsyncWrite + Unpin, sandbox: &Sandbox, peer: IpAddr) {
    let (mut asked, mut answered) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
    let mut behind: Option<DuplexStream> = None;
    loop {
        let answer = async {
            match &mut behind {
                Some(behind) => behind.read(&mut answered).await,
                None => pending().await,
            }
        };
        tokio::select! {
            read = client.read(&mut asked) => {
                let Ok(read @ 1..) = read else { return };
                let line = behind.get_or_insert_with(|| {
                    let (near, far) = duplex(64 * 1024);
                    let sandbox = sandbox.clone();
                    tokio::spawn(async move { sandbox.serve_line(far, peer).await });
                    near
                });
                line.write_all(&asked[..read]).await.unwrap();
            }
            read = answer => match read {
                Ok(read @ 1..) => {
                    if client.write_all(&answered[..read]).await.is_err() || client.flush().await.is_err() {
                        return;
                    }
                }
                _ => behind = None,
            },
        }
    }
}

/// Creates a client with defaults, except for the journal, which the process after a killed one needs.
fn client(base: &str, access: Access, pem: &str, journal: &Path) -> Client {
    let transport = Transport::new().root_certificates(pem.as_bytes()).unwrap();
    Client::builder(base.parse().unwrap(), access).transport(transport).journal(journal).build().unwrap()
}

/// The instrument of the order in the outage.
const SYMBOL: &str = "EQT_INFY_EQ_NSE";
/// The instrument of the order before it, which opens a connection and fills the account's list.
const EARLIER: &str = "EQT_TCS_EQ_NSE";

fn order(symbol: &str) -> OrderRequest {
    let fields = [
        ("symId", symbol),
        ("qty", "10"),
        ("side", "buy"),
        ("type", "limit"),
        ("limitPrice", "1"),
        ("product", "delivery"),
        ("validity", "day"),
    ];
    OrderRequest::from_fields(fields).unwrap()
}

fn name() -> IntentId {
    IntentId::new("the-order")
}

/// Runs a cell, in its own network and process.
#[test]
fn cell() {
    let Ok(text) = env::var(CELL) else { return };
    run_inside("campaign::cell", async || {
        let (orders, what) = Cell::parse(&text).run().await;
        println!("\ncell: {orders} {what}");
    });
}

/// Runs a cell as a process; returns how many orders exist in the end, and the result.
async fn start(cell: Cell) -> (Cell, String) {
    let mut command = Command::from(unshare(&env::current_exe().unwrap().display().to_string()));
    command.args(["--exact", "campaign::cell", "--nocapture"]).env(CELL, cell.name());
    let output = command.env("STEADFAST_OUTAGE_INSIDE", "1").kill_on_drop(true).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let told = said.lines().find_map(|line| line.strip_prefix("cell: ")).map(str::to_owned);
    (cell, told.unwrap_or_else(|| format!("? WRONG: {said}{}", String::from_utf8_lossy(&output.stderr))))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o01_an_order_in_an_outage_is_placed_once_or_told_to_be_in_doubt() {
    if let Some(why) = why_not() {
        assert!(env::var_os("STEADFAST_MUST_RUN").is_none(), "not run: {why}");
        return println!("NOT RUN: {why}");
    }
    let deep = || env::var_os("STEADFAST_DEEP").map(|_| DEEP.to_owned());
    let asked = env::var(CAMPAIGN).ok().or_else(deep);
    let (lengths, times) = asked.as_deref().and_then(|asked| asked.split_once(';')).unwrap_or(("3", "1"));
    // A killed process is followed by a search that takes minutes.
    let fates = if asked.is_some() { &[false, true][..] } else { &[false] };
    let mut cells = Vec::new();
    for _ in 0..times.parse().unwrap() {
        for seconds in lengths.split(',').map(|seconds| seconds.parse().unwrap()) {
            for &killed in fates {
                cells.extend([false, true].map(|tls| Cell { seconds, tls, killed }));
            }
        }
    }
    let (mut waiting, mut running) = (cells.into_iter(), JoinSet::new());
    let mut table = BTreeMap::<Cell, BTreeMap<String, usize>>::new();
    loop {
        while running.len() < AT_ONCE
            && let Some(cell) = waiting.next()
        {
            running.spawn(start(cell));
        }
        let Some(ended) = running.join_next().await else { break };
        let (cell, told) = ended.unwrap();
        *table.entry(cell).or_default().entry(told).or_default() += 1;
    }
    println!("\n{:<20} {:>5}  orders in the end, and what was told", "outage, s", "times");
    let mut wrong = 0;
    for (cell, tallies) in &table {
        for (told, times) in tallies {
            println!("{:<20} {times:>5}  {told}", cell.name());
            wrong += if told.contains("WRONG") { *times } else { 0 };
        }
    }
    let count = |is: &dyn Fn(&str) -> bool| -> usize {
        table.values().flatten().filter(|(told, _)| is(told)).map(|(_, times)| times).sum()
    };
    println!(
        "figures: outages={} outages_one={} outages_none={} outages_wrong={wrong}",
        count(&|_| true),
        count(&|told| told.starts_with("1 ")),
        count(&|told| told.starts_with("0 "))
    );
    assert_eq!(wrong, 0, "orders placed twice, or told wrong");
}
