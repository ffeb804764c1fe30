//! A journal or its lock is moved, removed or replaced while a process places orders: nothing leaves after that, and
//! the next process places nothing twice.

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use steadfast::{Access, Client, OrderRequest, dedup::journal::FileJournal, ext::IntentId};
use tokio::{process::Command, task::JoinSet, time::sleep};

use crate::{World, settings};

/// The variable that gives the child the gateway, the journal and its credentials.
const CHILD: &str = "STEADFAST_DISPLACED_CHILD";
const ORDERS: usize = 12;
const CASES: usize = 50;

#[derive(Clone, Copy, Debug)]
enum Harm {
    Moved,
    Removed,
    Replaced,
    LockRemoved,
}

/// Returns an order with a quantity of its own, so that the gateway's books tell the orders apart.
fn order(number: usize) -> OrderRequest {
    let qty = (number + 1).to_string();
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

async fn place_all(client: &Client) -> usize {
    let mut placed = 0;
    for number in 0..ORDERS {
        let name = IntentId::new(format!("order-{number}"));
        placed += usize::from(client.place_order_as(&order(number), name).await.is_ok());
    }
    placed
}

fn open(facts: &str) -> Result<Client, steadfast::InvalidClient> {
    let facts: Vec<&str> = facts.split('\n').collect();
    let [base, key, token, journal] = facts[..] else { panic!("four facts") };
    let access = Access::token(key, token).unwrap();
    Client::builder(base.parse().unwrap(), access).order_safety(settings()).journal(journal).build()
}

/// The child: places its orders one after the other.
#[tokio::test]
async fn displaced_child() {
    let Ok(facts) = env::var(CHILD) else { return };
    if let Ok(client) = open(&facts) {
        place_all(&client).await;
        client.shutdown().await;
    }
}

async fn run_child(facts: &str) {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "displaced::displaced_child", "--test-threads=1"]).env(CHILD, facts);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    assert!(command.status().await.unwrap().success());
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn harm(how: Harm, journal: &Path) {
    match how {
        Harm::Moved => fs::rename(journal, beside(journal, ".aside")).unwrap(),
        Harm::Removed => fs::remove_file(journal).unwrap(),
        Harm::Replaced => {
            let another = beside(journal, ".another");
            drop(FileJournal::open(&another).unwrap());
            fs::rename(another, journal).unwrap();
        }
        Harm::LockRemoved => fs::remove_file(beside(journal, ".lock")).unwrap(),
    }
}

/// The result of one case.
struct End {
    /// How many orders had left when the harm was done.
    left: usize,
    /// How many came later. One was on its way.
    later: usize,
    /// How many orders are more than one for each name, after the next process.
    twice: usize,
}

/// Runs one case.
async fn case(how: Harm, after: usize, later: Duration) -> End {
    let world = World::new().await;
    let (own, journal) = (world.sandbox.credentials(), world.journal());
    let facts =
        [world.base.as_str(), &own.api_key, &own.access_token, &journal.display().to_string()].join("\n");
    let left = {
        let child = run_child(&facts);
        let harmed = async {
            while world.posts() < after || !journal.exists() {
                sleep(Duration::from_micros(200)).await;
            }
            sleep(later).await;
            harm(how, &journal);
            world.posts()
        };
        tokio::join!(child, harmed).1
    };
    world.drained().await;
    let posts = world.posts();
    assert!(posts <= left + 1, "{how:?}: {posts} sends, {left} before; one was on its way");
    // The next process, with the same names.
    match how {
        Harm::LockRemoved => {
            let client = open(&facts).unwrap();
            // The refused order is in the journal, and is not sent on a guess.
            client.recover().await.unwrap();
            assert!(place_all(&client).await >= ORDERS - 1, "{how:?}: the journal knows all of them");
            client.shutdown().await;
        }
        Harm::Moved | Harm::Removed | Harm::Replaced => {
            let error = open(&facts).unwrap_err();
            let told = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
            let told: Vec<_> = told.map(ToString::to_string).collect();
            let named = told.iter().any(|line| line.contains(&journal.display().to_string()));
            assert!(named, "{how:?}: {told:?}");
        }
    }
    if let Harm::Moved = how {
        // As the error advises.
        fs::rename(beside(&journal, ".aside"), &journal).unwrap();
        fs::remove_file(beside(&journal, ".lock")).unwrap();
        let client = open(&facts).unwrap();
        client.recover().await.unwrap();
        place_all(&client).await;
        client.shutdown().await;
    }
    let orders = world.state().orders;
    let quantities: BTreeSet<_> = orders.iter().map(|order| order.qty.clone()).collect();
    End { left, later: posts - left, twice: orders.len() - quantities.len() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o07_nothing_leaves_without_its_journal_and_nothing_is_placed_twice() {
    let cases = if env::var_os("STEADFAST_DEEP").is_some() { 4 * CASES } else { CASES };
    let mut running = JoinSet::new();
    let mut ends = Vec::new();
    for number in 0..cases {
        let how = [Harm::Moved, Harm::Removed, Harm::Replaced, Harm::LockRemoved][number % 4];
        // No two cases share an instant; the instants cover every part of the run, between and during sends.
        let later = Duration::from_micros((number as u64).wrapping_mul(2_654_435_761) % 40_000);
        running.spawn(case(how, number % (ORDERS - 3), later));
        if running.len() >= 8 {
            ends.push(running.join_next().await.unwrap().unwrap());
        }
    }
    while let Some(ended) = running.join_next().await {
        ends.push(ended.unwrap());
    }
    let (later, twice) =
        ends.iter().fold((0, 0), |(later, twice), end| (later + end.later, twice + end.twice));
    println!("figures: displaced={cases} displaced_on_their_way={later} displaced_twice={twice}");
    assert_eq!(twice, 0, "orders were placed twice");
    let left: BTreeSet<usize> = ends.iter().map(|end| end.left).collect();
    assert!(left.len() > 4, "the harm was done at many points: {left:?}");
}
