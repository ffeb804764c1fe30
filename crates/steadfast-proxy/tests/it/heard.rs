//! Whether a caller has heard the answer to its order, by what its end of the connection does.

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    time::Duration,
};

use steadfast_sandbox::Sandbox;

use crate::world::{FORM, PLACE, World};

/// Orders in quick succession, each over a connection of its own.
const ROUNDS: usize = 20;

fn form(qty: usize) -> String {
    FORM.replace("qty=10", &format!("qty={qty}"))
}

/// A caller outside of the sidecar's runtime, as a program in another process is one.
trait Caller: Read + Write + Sized {
    fn send(mut self, request: &[u8]) -> Self {
        self.write_all(request).unwrap();
        self
    }

    /// Reads one whole answer, and returns its status.
    fn status(&mut self) -> String {
        let mut read = Vec::new();
        let mut byte = [0];
        while !read.ends_with(b"\r\n\r\n") {
            self.read_exact(&mut byte).unwrap();
            read.push(byte[0]);
        }
        let head = String::from_utf8(read).unwrap().to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        self.read_exact(&mut vec![0; length.parse().unwrap()]).unwrap();
        head[9..12].to_owned()
    }
}

impl Caller for TcpStream {}

#[cfg(unix)]
impl Caller for std::os::unix::net::UnixStream {}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

async fn apart<R: Send + 'static>(caller: impl FnOnce() -> R + Send + 'static) -> R {
    tokio::task::spawn_blocking(caller).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_equal_order_after_an_answer_that_was_read_is_placed_at_once() {
    let world = World::new(Sandbox::builder()).await;
    let (address, order) = (world.address, world.order(&[]));
    let closing = world.order(&["Connection: close"]);
    let statuses = apart(move || {
        let mut open = Vec::new();
        let mut statuses = Vec::new();
        for round in 0..ROUNDS {
            let mut caller = connect(address).send(if round % 4 == 3 { &closing } else { &order });
            statuses.push(caller.status());
            match round % 4 {
                0 => drop(caller),
                1 => caller.shutdown(Shutdown::Write).unwrap(),
                _ => open.push(caller),
            }
        }
        statuses
    })
    .await;
    assert_eq!(statuses, vec!["200"; ROUNDS]);
    assert_eq!(world.placed(), ROUNDS);
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn so_it_is_on_a_unix_socket() {
    let world = World::new(Sandbox::builder()).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let socket = tokio::net::UnixListener::bind(&path).unwrap();
    let proxy = world.proxy.clone();
    tokio::spawn(async move { proxy.serve_unix(socket, std::future::pending()).await });
    let order = world.order(&[]);
    let order =
        String::from_utf8(order).unwrap().replace(&world.address.to_string(), "localhost").into_bytes();
    let statuses = apart(move || {
        let connect = || std::os::unix::net::UnixStream::connect(&path).unwrap();
        let mut open = Vec::new();
        let mut statuses = Vec::new();
        for round in 0..ROUNDS {
            let mut caller = connect().send(&order);
            statuses.push(caller.status());
            if round % 2 == 0 {
                drop(caller);
            } else {
                open.push(caller);
            }
        }
        // An answer of which a part is left is not heard.
        let mut caller = connect().send(&order);
        caller.read_exact(&mut [0; 20]).unwrap();
        drop(caller);
        statuses.push(connect().send(&order).status());
        statuses
    })
    .await;
    assert_eq!(statuses[..ROUNDS], vec!["200"; ROUNDS]);
    assert_eq!((statuses[ROUNDS].as_str(), world.placed()), ("409", ROUNDS + 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_answer_that_was_left_half_read_was_not_heard() {
    let world = World::new(Sandbox::builder()).await;
    let address = world.address;
    let orders: Vec<_> = (1..=ROUNDS).map(|qty| world.request(PLACE, &[], &form(qty))).collect();
    let statuses = apart(move || {
        let again = |order: &Vec<u8>| {
            let mut caller = connect(address).send(order);
            caller.read_exact(&mut [0; 20]).unwrap();
            drop(caller);
            connect(address).send(order).status()
        };
        orders.iter().map(again).collect::<Vec<_>>()
    })
    .await;
    assert_eq!(statuses, vec!["409"; ROUNDS]);
    assert_eq!(world.placed(), ROUNDS);
}

/// A reset looks the same whether the answer was read or not, so it is taken for one that was not.
#[tokio::test]
async fn a_caller_that_resets_its_connection_counts_as_one_that_has_not_read() {
    let world = World::new(Sandbox::builder()).await;
    let mut caller = world.connect().await;
    caller.send(&world.order(&[])).await;
    let answer = caller.answer().await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    caller.0.set_zero_linger().unwrap();
    drop(caller);
    let again = world.ask(&world.order(&[])).await;
    let id = world.sandbox.state().orders[0].order_id.clone();
    assert_eq!((again.status, again.header("x-steadfast-order-id")), (409, Some(&*id)), "{again:?}");
    assert_eq!(world.placed(), 1);
}
