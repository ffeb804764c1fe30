//! Processes that are stopped in the middle of an order and continue later with outdated knowledge.

use std::{env, process::Stdio, sync::Arc, time::Duration};

use steadfast::{Access, Client, ErrorKind, deadline::DeadlineLayer, dedup::Settings, ext::IntentId};
use steadfast_sandbox::{FaultEntry, Sandbox};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf},
    process::{Child, Command},
    sync::{Mutex, mpsc, oneshot},
    time::{sleep, timeout},
};

use crate::{order, settings};

/// The variable that gives the stopped child the gateway, its credentials, the number of orders, and by when each must
/// leave.
const CHILD: &str = "STEADFAST_STOPPED_CHILD";
/// Longer than any order below may wait before it leaves, and longer than the maximum age for a resend.
const LONG: Duration = Duration::from_millis(2_500);
const TOO_OLD: Duration = Duration::from_secs(2);

fn old_settings() -> Settings {
    settings().max_resend_age(TOO_OLD).max_resend_age_market(TOO_OLD)
}

/// The child: places its orders one after the other, and prints the result of each.
#[tokio::test]
async fn stopped_child() {
    let Ok(facts) = env::var(CHILD) else { return };
    let facts: Vec<&str> = facts.split('\n').collect();
    let [base, key, token, orders, send_by] = facts[..] else { panic!("five facts") };
    let send_by = Duration::from_millis(send_by.parse().unwrap());
    let client = Client::builder(base.parse().unwrap(), Access::token(key, token).unwrap())
        .order_safety(old_settings())
        .deadline(DeadlineLayer::new(Duration::from_secs(30)).send_by(send_by))
        .build()
        .unwrap();
    for number in 0..orders.parse().unwrap() {
        let told = client.place_order_as(&order(number), IntentId::new(format!("order-{number}"))).await;
        let word = match told {
            Ok(_) => "placed",
            Err(error) if matches!(error.kind(), ErrorKind::InDoubt | ErrorKind::NotObserved) => "in-doubt",
            Err(_) => "not-placed",
        };
        println!("told: {word}");
    }
    client.shutdown().await;
}

/// A request held on its way to the gateway.
struct Held {
    method: &'static str,
    go_on: oneshot::Sender<()>,
}

/// A gateway, and a line to it on which every request is held until the test releases it.
struct World {
    sandbox: Sandbox,
    base: String,
    held: Mutex<mpsc::UnboundedReceiver<Held>>,
}

impl World {
    async fn new() -> Arc<Self> {
        let sandbox = Sandbox::builder().gateway_timeout(Duration::from_millis(100)).build().unwrap();
        let gateway = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let behind = gateway.local_addr().unwrap();
        let served = sandbox.clone();
        tokio::spawn(async move { served.serve(gateway, std::future::pending()).await });
        let line = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/v2", line.local_addr().unwrap());
        let (holds, held) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((client, _)) = line.accept().await {
                let (from, mut to) = client.into_split();
                let (mut back, forth) = TcpStream::connect(behind).await.unwrap().into_split();
                tokio::spawn(carry(from, forth, holds.clone()));
                tokio::spawn(async move { drop(tokio::io::copy(&mut back, &mut to).await) });
            }
        });
        Arc::new(Self { sandbox, base, held: Mutex::new(held) })
    }

    fn will(&self, fault: &str, times: u32) {
        let mut entry = FaultEntry::default();
        (entry.name, entry.times) = (fault.to_owned(), Some(times));
        self.sandbox.inject(entry).unwrap();
    }

    fn start(&self, orders: usize, send_by: Duration) -> Child {
        let own = self.sandbox.credentials();
        let (orders, send_by) = (orders.to_string(), send_by.as_millis().to_string());
        let facts = [&self.base, &own.api_key, &own.access_token, &orders, &send_by].map(String::as_str);
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "stopped::stopped_child", "--test-threads=1", "--nocapture"]);
        command.env(CHILD, facts.join("\n")).stdin(Stdio::null()).stderr(Stdio::null());
        command.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap()
    }

    /// Returns the next request with this method. Requests before it are released at once.
    async fn next(&self, method: &str) -> Held {
        loop {
            let held = self.held.lock().await.recv().await.unwrap();
            if held.method == method {
                return held;
            }
            held.go_on.send(()).unwrap_or_default();
        }
    }

    /// From now on no request is held.
    fn hold_nothing(self: &Arc<Self>) {
        let world = self.clone();
        tokio::spawn(async move {
            while let Some(held) = world.held.lock().await.recv().await {
                held.go_on.send(()).unwrap_or_default();
            }
        });
    }

    fn posts(&self) -> usize {
        let arrivals = self.sandbox.state().arrivals;
        arrivals.iter().filter(|arrival| arrival.path.ends_with("/place-order")).count()
    }
}

/// Forwards requests. Each is one piece, because it is small and follows the previous answer.
async fn carry(
    mut from: OwnedReadHalf,
    mut forth: tokio::net::tcp::OwnedWriteHalf,
    holds: mpsc::UnboundedSender<Held>,
) {
    let mut piece = [0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut piece).await {
        let method = match &piece[..4] {
            b"POST" => "POST",
            b"GET " => "GET",
            _ => "",
        };
        let (go_on, wait) = oneshot::channel();
        holds.send(Held { method, go_on }).unwrap_or_default();
        wait.await.unwrap_or_default();
        if forth.write_all(&piece[..length]).await.is_err() {
            return;
        }
    }
}

/// Stops a process, or lets it continue; returns true if the signal was sent.
async fn signal(child: &Child, name: &str) -> bool {
    let Some(pid) = child.id() else { return false };
    let sent = Command::new("sh").args(["-c", &format!("kill -{name} {pid}")]).stderr(Stdio::null()).status();
    sent.await.unwrap().success()
}

async fn stop(child: &Child) {
    assert!(signal(child, "STOP").await);
    let stat = format!("/proc/{}/stat", child.id().unwrap());
    let is_stopped = || std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") T "));
    while !is_stopped() {
        tokio::task::yield_now().await;
    }
}

/// Returns the result of each order, in order, after the child has ended.
async fn told(mut child: Child) -> Vec<String> {
    let mut text = String::new();
    let mut output = child.stdout.take().unwrap();
    timeout(Duration::from_secs(60), output.read_to_string(&mut text)).await.unwrap().unwrap();
    assert!(child.wait().await.unwrap().success());
    // The test harness begins its own line before the first word.
    text.lines().filter_map(|line| Some(line.split_once("told: ")?.1.to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_whose_process_was_stopped_beyond_its_last_instant_does_not_leave() {
    let world = World::new().await;
    let child = world.start(1, TOO_OLD);
    // It reads the list before its order, and is stopped there.
    let list = world.next("GET").await;
    stop(&child).await;
    sleep(LONG).await;
    list.go_on.send(()).unwrap();
    world.hold_nothing();
    assert!(signal(&child, "CONT").await);
    assert_eq!((told(child).await, world.posts()), (vec!["not-placed".to_owned()], 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_that_went_into_doubt_while_its_process_was_stopped_is_found_or_too_old() {
    for (fault, word, orders) in
        [("placement.504-applied", "placed", 1), ("placement.504-not-applied", "in-doubt", 0)]
    {
        let world = World::new().await;
        world.will(fault, 1);
        let child = world.start(1, Duration::from_secs(20));
        let post = world.next("POST").await;
        stop(&child).await;
        post.go_on.send(()).unwrap();
        sleep(LONG).await;
        world.hold_nothing();
        assert!(signal(&child, "CONT").await);
        assert_eq!(told(child).await, [word], "{fault}");
        assert_eq!((world.posts(), world.sandbox.state().orders.len()), (1, orders), "{fault}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wherever_a_process_is_stopped_it_places_no_order_twice_and_calls_none_placed_that_is_not() {
    let deep = env::var("STEADFAST_DEEP").is_ok_and(|value| value == "1");
    let (rounds, orders) = if deep { (12, 12) } else { (1, 6) };
    let mut stops = 0;
    for round in 0..rounds {
        let world = World::new().await;
        world.will("placement.504-applied", 2);
        world.will("placement.504-not-applied", 2);
        world.hold_nothing();
        let child = world.start(orders, Duration::from_secs(20));
        // Every pause has a different length, and so has every stretch between two.
        let mut at = 7 * round;
        while signal(&child, "STOP").await && !is_over(&child) {
            at = (at * 31 + 17) % 101;
            sleep(Duration::from_millis(20 + 4 * at)).await;
            signal(&child, "CONT").await;
            sleep(Duration::from_millis(5 + at)).await;
            stops += 1;
        }
        let told = told(child).await;
        let state = world.sandbox.state();
        assert_eq!(told.len(), orders);
        let placed = told.iter().filter(|word| *word == "placed").count();
        let in_doubt = told.iter().filter(|word| *word == "in-doubt").count();
        assert!(
            placed <= state.orders.len() && state.orders.len() <= placed + in_doubt,
            "{told:?} {state:?}"
        );
        let resent = world.posts() - orders;
        assert!(resent <= 2, "only what was not applied may be sent again: {told:?}");
    }
    println!("figures: stops={stops}");
    assert!(stops > 3);
}

/// Returns true once a child has ended, even if it was not waited for.
fn is_over(child: &Child) -> bool {
    let Some(pid) = child.id() else { return true };
    std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}
