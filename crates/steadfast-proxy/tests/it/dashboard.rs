//! The dashboard as a browser gets it.

use std::time::Duration;

use serde_json::Value;
use steadfast::dedup::Settings;
use steadfast_sandbox::Sandbox;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    time::timeout,
};

use crate::{
    admin::call,
    world::{READER, TOKEN, World},
};

/// A browser that has opened a link.
struct Visitor {
    origin: String,
    cookie: String,
}

impl Visitor {
    async fn by(world: &World, link: &str) -> Self {
        let origin = format!("Origin: http://{}", world.admin);
        let entered = enter(world, &origin, link).await;
        assert_eq!(entered.status, 200, "{entered:?}");
        let cookie = entered.header("set-cookie").unwrap();
        assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
        let cookie = format!("Cookie: {}", cookie.split(';').next().unwrap());
        Self { origin, cookie }
    }

    /// A request of the page.
    fn page(&self) -> Vec<String> {
        vec![self.origin.clone(), "Sec-Fetch-Site: same-origin".to_owned(), self.cookie.clone()]
    }

    /// A request to an address that the user typed.
    fn typed(&self) -> Vec<String> {
        vec!["Sec-Fetch-Site: none".to_owned(), self.cookie.clone()]
    }
}

async fn enter(world: &World, origin: &str, link: &str) -> crate::world::Answer {
    let secret = link.split_once("/#").unwrap().1;
    call(world, "POST /-/enter", &[origin.to_owned(), format!("Authorization: Bearer {secret}")]).await
}

async fn state(world: &World, lines: &[String]) -> Value {
    let answer = call(world, "GET /-/state", lines).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")), "{answer:?}");
    serde_json::from_str(&answer.body).unwrap()
}

#[tokio::test]
async fn a_link_opens_the_page_once_and_its_cookie_halts() {
    let world = World::new(Sandbox::builder()).await;
    let link = world.proxy.dashboard_link(world.admin).unwrap();
    let door = call(&world, "GET /", &[]).await;
    assert_eq!(door.status, 401);
    assert!(door.header("content-security-policy").unwrap().starts_with("default-src 'none'; "));
    assert!(!door.body.contains("doubt"), "the door shows nothing");
    let visitor = Visitor::by(&world, &link).await;
    let origin = format!("Origin: http://{}", world.admin);
    assert_eq!(enter(&world, &origin, &link).await.status, 401, "a link serves once");

    let page = call(&world, "GET /", &visitor.typed()).await;
    assert_eq!(page.status, 200);
    assert!(page.body.contains("Orders in doubt"));
    assert_eq!(page.header("cache-control"), Some("no-store"));
    let shown = state(&world, &visitor.page()).await;
    assert_eq!((&shown["schema_version"], &shown["may_trade"]), (&1.into(), &true.into()));
    assert_eq!(shown["head"]["trading"], "trading");
    assert_eq!(call(&world, "POST /-/halt", &visitor.page()).await.status, 200);
    assert!(world.client.is_halted());
    assert_eq!(call(&world, "POST /-/resume", &visitor.page()).await.status, 200);
    assert!(!world.client.is_halted());
}

#[tokio::test]
async fn only_the_page_itself_uses_the_cookie() {
    let world = World::new(Sandbox::builder()).await;
    let visitor = Visitor::by(&world, &world.proxy.dashboard_link(world.admin).unwrap()).await;
    let cookie = || visitor.cookie.clone();
    let foreign = |line: &str| vec![line.to_owned(), cookie()];
    for (line, status) in [
        ("Origin: http://127.0.0.1:1", 403),
        ("Origin: https://evil.example", 403),
        ("Origin: null", 403),
        ("Sec-Fetch-Site: same-site", 403),
        ("Sec-Fetch-Site: cross-site", 403),
        // A browser says where a post comes from.
        ("Sec-Fetch-Site: none", 401),
        ("Accept: */*", 401),
    ] {
        assert_eq!(call(&world, "POST /-/halt", &foreign(line)).await.status, status, "{line}");
        if status == 403 {
            assert_eq!(call(&world, "GET /-/events", &foreign(line)).await.status, 403, "{line}");
            assert_eq!(call(&world, "GET /", &foreign(line)).await.status, 403, "{line}");
        }
    }
    assert!(!world.client.is_halted());
    // It makes no further link, and a page with a token instead of it is refused.
    assert_eq!(call(&world, "POST /-/link", &visitor.page()).await.status, 405);
    let token = [visitor.origin.clone(), format!("Authorization: Bearer {TOKEN}")];
    assert_eq!(call(&world, "GET /-/state", &token).await.status, 401);
    assert_eq!(call(&world, "GET /-/state", &[]).await.status, 401);
    assert_eq!(call(&world, "GET /-/events", &[]).await.status, 401);
    // It is nothing to the listener for programs.
    let mut line = world.connect().await;
    let host = format!("Host: {}", world.address);
    line.send(format!("GET /v2/api/oms/orders HTTP/1.1\r\n{host}\r\n{}\r\n\r\n", cookie()).as_bytes()).await;
    assert_eq!(line.answer().await.unwrap().status, 401);
    assert_eq!(world.arrivals(), 0);
}

#[tokio::test]
async fn a_readers_link_shows_everything_and_halts_nothing() {
    let world = World::new(Sandbox::builder()).await;
    let link = call(&world, "POST /-/link", &[format!("Authorization: Bearer {READER}")]).await;
    assert_eq!(link.status, 200);
    let visitor = Visitor::by(&world, link.body.trim_end()).await;
    assert_eq!(state(&world, &visitor.page()).await["may_trade"], false);
    assert_eq!(call(&world, "POST /-/halt", &visitor.page()).await.status, 403);
    assert!(!world.client.is_halted());
    assert_eq!(call(&world, "POST /-/link", &[]).await.status, 401);
}

#[tokio::test]
async fn an_order_behind_a_504_stands_in_the_page_until_it_is_found() {
    let lost = "[[fault]]\nname = 'placement.504-applied'\nnth = 1\n\
        [[fault]]\nname = 'list.504'\nnth = 2\ntimes = 2";
    let world = World::with(Sandbox::builder().script(lost).unwrap(), Settings::default()).await;
    let token = [format!("Authorization: Bearer {READER}")];
    assert_eq!(world.ask(&world.order(&["Idempotency-Key: mine"])).await.status, 200);
    let shown = state(&world, &token).await;
    let order = &shown["resolved"][0];
    assert_eq!(
        (&order["name"], &order["stage"], &order["side"]),
        (&"mine".into(), &"recovered".into(), &"buy".into())
    );
    assert_eq!(order["order_id"], world.sandbox.state().orders[0].order_id.as_str());
    assert_eq!(shown["head"]["in_doubt"], 0);
    let calls = &shown["calls"]["endpoints"][0];
    assert_eq!((&calls["endpoint"], &calls["count"]), (&"place-order".into(), &1.into()));
    assert!(shown["zones"].as_array().unwrap().iter().any(|zone| zone["zone"] == "place_order"));
}

#[tokio::test]
async fn the_stream_begins_with_everything_tells_changes_and_ends_with_its_listener() {
    let world = World::new(Sandbox::builder()).await;
    let operators = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = operators.local_addr().unwrap();
    let (end, ended) = oneshot::channel::<()>();
    let proxy = world.proxy.clone();
    let served = tokio::spawn(async move { proxy.serve_admin(operators, async { drop(ended.await) }).await });

    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("GET /-/events HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {READER}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut text = String::new();
    read_until(&mut stream, &mut text, "\n\n").await;
    assert!(text.contains("content-type: text/event-stream\r\n"), "{text}");
    let (_, first) = text.split_once("event: state\ndata: ").unwrap();
    let first: Value = serde_json::from_str(first.lines().next().unwrap()).unwrap();
    assert_eq!((&first["schema_version"], &first["head"]["trading"]), (&1.into(), &"trading".into()));

    text.clear();
    world.client.halt();
    read_until(&mut stream, &mut text, "\"trading\":\"halted\"").await;
    assert!(text.contains("event: change\n") && !text.contains("event: state\n"), "{text}");

    end.send(()).unwrap();
    timeout(Duration::from_secs(10), served).await.unwrap().unwrap().unwrap();
    let mut rest = Vec::new();
    timeout(Duration::from_secs(10), stream.read_to_end(&mut rest)).await.unwrap().unwrap();
    assert!(rest.ends_with(b"0\r\n\r\n"), "the stream ends whole");
}

async fn read_until(stream: &mut TcpStream, text: &mut String, end: &str) {
    let mut bytes = [0; 4096];
    while !text.contains(end) {
        let length = timeout(Duration::from_secs(20), stream.read(&mut bytes)).await.unwrap().unwrap();
        assert!(length > 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&bytes[..length]));
    }
}
