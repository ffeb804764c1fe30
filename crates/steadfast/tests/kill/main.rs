//! Processes that place orders over loopback, killed at every access to their journal.
//!
//! Each case runs this binary as a child under `strace`, which kills it at its n-th write, sync or rename of the
//! journal, or makes that call fail. Then another process continues with the journal. The gateway's own books show
//! whether an order was placed twice, and whether one was lost without a report.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod displaced;
mod stopped;

use std::{
    collections::BTreeSet,
    env,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use steadfast::{
    Access, Client, OrderRequest,
    dedup::{Settings, Verdict, journal::FileJournal},
    ext::IntentId,
};
use steadfast_sandbox::{Sandbox, State};
use steadfast_verify::noon::at_noon;
use tempfile::TempDir;
use tokio::{
    net::{TcpListener, TcpStream},
    process::Command,
    sync::watch,
    task::JoinSet,
};

/// The variable that gives the child the gateway, the journal and its credentials.
const CHILD: &str = "STEADFAST_KILLED_CHILD";
const ORDERS: usize = 6;

/// Short, so that a doubt settles soon; the gateway of these tests applies at once or never.
fn settings() -> Settings {
    at_noon(Settings::default())
        .gateway_timeout(Duration::from_millis(200))
        .lateness(Duration::from_millis(300))
        .verification_budget(Duration::from_secs(20))
}

fn order(number: usize) -> OrderRequest {
    let qty = (number % 3 + 1).to_string();
    let fields = [
        ("symId", "EQT_INFY_EQ_NSE"),
        ("qty", qty.as_str()),
        ("side", "buy"),
        ("type", "market"),
        ("product", "intraday"),
        ("validity", "day"),
    ];
    OrderRequest::from_fields(fields).unwrap()
}

fn client(base: &str, access: Access, journal: &Path) -> Client {
    let builder = Client::builder(base.parse().unwrap(), access).order_safety(settings());
    builder.journal(journal).build().unwrap()
}

/// The child: places its orders, three at a time.
#[tokio::test]
async fn child() {
    let Ok(facts) = env::var(CHILD) else { return };
    let facts: Vec<&str> = facts.split('\n').collect();
    let [base, key, token, journal] = facts[..] else { panic!("four facts") };
    let client = client(base, Access::token(key, token).unwrap(), Path::new(journal));
    for first in (0..ORDERS).step_by(3) {
        let place = |number: usize| {
            let client = client.clone();
            async move {
                let name = IntentId::new(format!("order-{number}"));
                client.place_order_as(&order(number), name).await.is_ok()
            }
        };
        tokio::join!(place(first), place(first + 1), place(first + 2));
    }
    client.shutdown().await;
}

/// A gateway over loopback, and the files that remain between two processes.
struct World {
    sandbox: Sandbox,
    address: SocketAddr,
    lines: watch::Sender<Lines>,
    base: String,
    folder: TempDir,
}

/// The gateway's connections: the client port of each, in order, and how many of them are open.
#[derive(Default)]
struct Lines {
    accepted: Vec<u16>,
    open: usize,
}

impl World {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let sandbox = Sandbox::builder().build().unwrap();
        let (served, lines) = (sandbox.clone(), watch::Sender::default());
        let opened = lines.clone();
        tokio::spawn(async move {
            while let Ok((line, peer)) = listener.accept().await {
                opened.send_modify(|lines: &mut Lines| {
                    lines.accepted.push(peer.port());
                    lines.open += 1;
                });
                let (served, closed) = (served.clone(), opened.clone());
                tokio::spawn(async move {
                    served.serve_line(line, peer.ip()).await;
                    closed.send_modify(|lines| lines.open -= 1);
                });
            }
        });
        let base = format!("http://{address}/v2");
        Self { sandbox, address, lines, base, folder: tempfile::tempdir().unwrap() }
    }

    /// Waits until everything has arrived that an ended process has sent.
    async fn drained(&self) {
        // Connections are accepted in order, so once this one is accepted, all of the process are.
        let last = TcpStream::connect(self.address).await.unwrap();
        let port = last.local_addr().unwrap().port();
        let mut lines = self.lines.subscribe();
        lines.wait_for(|lines| lines.accepted.contains(&port)).await.unwrap();
        drop(last);
        lines.wait_for(|lines| lines.open == 0).await.unwrap();
    }

    fn journal(&self) -> PathBuf {
        self.folder.path().join("orders.journal")
    }

    fn state(&self) -> State {
        self.sandbox.state()
    }

    fn posts(&self) -> usize {
        let arrivals = self.state().arrivals;
        arrivals.iter().filter(|arrival| arrival.path.ends_with("/place-order")).count()
    }

    /// Runs the child under strace with an injection; returns true if it ended by itself.
    async fn run_child(&self, inject: Option<&str>) -> bool {
        let own = self.sandbox.credentials();
        let journal = self.journal();
        let new = format!("{}.new", journal.display());
        let facts =
            [self.base.as_str(), &own.api_key, &own.access_token, &journal.display().to_string()].join("\n");
        let this = env::current_exe().unwrap();
        let mut command = match inject {
            Some(inject) => {
                let mut command = Command::new("strace");
                let log = self.folder.path().join("strace.log");
                command.args(["-f", "-qq", "-o"]).arg(log).args([
                    "-P",
                    &journal.display().to_string(),
                    "-P",
                    &new,
                ]);
                command.args(["-P", &self.folder.path().display().to_string()]);
                command.args(["-e", inject]).arg(this);
                command
            }
            None => Command::new(this),
        };
        command.args(["--exact", "child", "--test-threads=1"]).env(CHILD, facts);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let lived = command.status().await.unwrap().success();
        self.drained().await;
        lived
    }

    /// Continues with the journal, and compares its results with the gateway's books.
    async fn recover(&self, what: &str) -> usize {
        let begun = FileJournal::read(self.journal()).unwrap().unwrap_or_default();
        let in_doubt = steadfast::dedup::unresolved(&begun).len();
        let (posts, orders) = (self.posts(), self.state().orders.len());
        let own = self.sandbox.credentials();
        let client =
            client(&self.base, Access::token(own.api_key, own.access_token).unwrap(), &self.journal());
        let recovered = client.recover().await.unwrap();
        assert_eq!(recovered.len(), in_doubt, "{what}: every order in doubt is reported");
        let mut found = BTreeSet::new();
        for order in &recovered {
            match &order.verdict {
                Verdict::Recovered { order_id, .. } => {
                    let is_there = self.state().orders.iter().any(|listed| listed.order_id == *order_id);
                    assert!(is_there && found.insert(order_id.clone()), "{what}: {order_id}");
                }
                Verdict::Unresolved(_) => {}
                other => panic!("{what}: {other:?}"),
            }
        }
        assert_eq!(self.posts(), posts, "{what}: recovery sends nothing");
        assert_eq!(self.state().orders.len(), orders);
        // Places the whole session again, by name: existing orders attach, missing ones are placed now, and none twice.
        let mut missing = 0;
        for number in 0..ORDERS {
            let name = IntentId::new(format!("order-{number}"));
            if client.place_order_as(&order(number), name).await.is_err() {
                missing += 1;
            }
        }
        client.shutdown().await;
        let orders = self.state().orders.len();
        assert_eq!(orders + missing, ORDERS, "{what}: one order for each name, or word that there is none");
        in_doubt
    }
}

/// The system calls that reach the disk, and how they fail.
const INJECTIONS: [&str; 9] = [
    "inject=write:signal=KILL",
    "inject=fdatasync:signal=KILL",
    "inject=rename:signal=KILL",
    "inject=fsync:signal=KILL",
    "inject=write:error=ENOSPC",
    "inject=write:error=EIO",
    "inject=fdatasync:error=EIO",
    "inject=rename:error=ENOSPC",
    "inject=fsync:error=EIO",
];

/// Every injection at each of the first accesses. Opening the journal has only one rename and one sync of its folder.
fn round() -> impl Iterator<Item = String> {
    let every = |at: usize| {
        let once = |inject: &str| inject.contains("rename") || inject.contains("fsync:");
        let injections = INJECTIONS.into_iter().filter(move |inject| at == 1 || !once(inject));
        injections.map(move |inject| format!("{inject}:when={at}"))
    };
    (1..=14).flat_map(every)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_killed_at_any_touch_of_its_journal_places_nothing_twice() {
    let deep = env::var("STEADFAST_DEEP").is_ok_and(|value| value == "1");
    let is_plain = |inject: &String| inject.contains("KILL") || inject.ends_with("when=4");
    let mut waiting: Box<dyn Iterator<Item = String> + Send> = match deep {
        // Threads interleave differently in each round.
        true => Box::new(std::iter::repeat_with(round).flatten()),
        false => Box::new(round().skip(9).filter(is_plain).take(16)),
    };
    let (mut cases, mut killed, mut in_doubt) = (0, 0, 0);
    let mut running = JoinSet::new();
    loop {
        while running.len() < 8
            && (!deep || killed < 300)
            && let Some(inject) = waiting.next()
        {
            running.spawn(async move {
                let world = World::new().await;
                let lived = world.run_child(Some(&inject)).await;
                (lived, world.recover(&inject).await)
            });
        }
        let Some(ended) = running.join_next().await else { break };
        let (lived, doubts) = ended.unwrap();
        cases += 1;
        killed += usize::from(!lived);
        in_doubt += doubts;
    }
    println!("figures: cases={cases} killed={killed} in_doubt={in_doubt}");
    assert!(killed > 4 && in_doubt > 0, "some died in the middle of a send");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_lives_leaves_nothing_in_doubt() {
    let world = World::new().await;
    assert!(world.run_child(None).await);
    assert_eq!((world.posts(), world.recover("whole").await), (ORDERS, 0));
}
