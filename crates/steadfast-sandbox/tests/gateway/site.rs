//! The paths beside the service's: the sandbox's own pages, its log, and what it lets web pages do.

use std::sync::{Arc, Mutex};

use http::Method;
use serde_json::json;
use steadfast_sandbox::{Origin, Sandbox};

use crate::{
    client::Call,
    wire::{Response, Server},
    world::{LIMIT, MARKET, ORDERS, PLACE_ORDER, World},
};

async fn get(server: &Server, path: &str) -> Response {
    server.ask(&format!("GET {path} HTTP/1.1\r\nhost: sandbox\r\n\r\n")).await
}

fn text(answer: &Response) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

#[tokio::test]
async fn the_index_names_every_path_and_each_of_the_pages_it_names_is_there() {
    let world = World::of(Sandbox::builder().published_client());
    let server = Server::gateway(&world.sandbox).await;
    let index = get(&server, "/").await;
    assert_eq!((index.status, index.header("content-type")), (200, Some("text/plain; charset=utf-8")));
    let index = text(&index);
    for line in ["POST    /v2/api/oms/place-order", "DELETE  /v2/api/oms/cancel-order/{kind}"] {
        assert!(index.contains(line), "{index}");
    }
    for page in index.lines().filter_map(|line| line.strip_prefix("  GET     ")).take(3) {
        let path = page.split(' ').next().expect("a path");
        assert_eq!(get(&server, path).await.status, 200, "{path}");
    }
    assert_eq!(text(&get(&server, "/livez").await), "ok\n");
    server.stop().await;
}

#[tokio::test]
async fn the_pages_are_no_requests_to_the_service() {
    let world = World::with_fault("answer.html", 1.0);
    let server = Server::gateway(&world.sandbox).await;
    for path in ["/", "/livez", "/faults", "/openapi.json"] {
        assert_eq!(get(&server, path).await.status, 200, "{path}");
    }
    assert_eq!((world.truth().requests, world.struck("answer.html")), (0, 0));
    // Only these, and only read.
    for (method, path) in [("POST", "/faults"), ("GET", "/livez/"), ("GET", "/v2/livez"), ("GET", "/Faults")]
    {
        let request = format!("{method} {path} HTTP/1.1\r\nhost: sandbox\r\ncontent-length: 0\r\n\r\n");
        server.ask(&request).await;
    }
    assert_eq!(world.truth().requests, 4);
    server.stop().await;
}

#[tokio::test]
async fn the_page_of_faults_shows_what_is_planned_and_what_has_struck() {
    let script = "[[fault]]\nname = 'placement.504-late'\nnth = 2\nlate_by_ms = 4000\n[[fault]]\nname = 'list.504'\ntimes = 1";
    let world = World::with_script(script);
    world.strike_always("answer.html");
    let server = Server::gateway(&world.sandbox).await;
    let before = get(&server, "/faults").await.json();
    let late = json!({"name": "placement.504-late", "nth": 2, "times": 1, "late_by_ms": 4000});
    let planned = json!([{"name": "answer.html", "rate": 1.0}, late, {"name": "list.504", "times": 1}]);
    assert_eq!(before, json!({"planned": planned, "struck": {}, "requests": 0}));

    world.list().await;
    world.place(MARKET).await;
    let after = get(&server, "/faults").await.json();
    // The list's fault is used up, and the late order's is due next.
    let late = json!({"name": "placement.504-late", "times": 1, "late_by_ms": 4000});
    assert_eq!(after["planned"], json!([{"name": "answer.html", "rate": 1.0}, late]));
    assert_eq!((&after["struck"]["list.504"], &after["requests"]), (&json!(1), &json!(2)));
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_log_has_a_line_for_each_request_and_no_secret() {
    let lines = Arc::new(Mutex::new(Vec::<String>::new()));
    let kept = lines.clone();
    let builder = Sandbox::builder().seed(7).fault("placement.504-applied", 1.0).expect("a fault");
    let world = World::of(builder.log(move |line| kept.lock().expect("no panic").push(line.to_owned())));

    world.post(PLACE_ORDER, LIMIT).intent("first").send().await;
    world.login().send().await;
    let token = &world.user.access_token;
    world.get(&format!("/api/oms/{token}?{token}={token}&orderId={token}&symId=a%0ab")).send().await;
    world.get(ORDERS).authorization("nonsense").send().await;

    let lines = lines.lock().expect("no panic").clone();
    assert_eq!(
        lines[0],
        "0.000 POST /api/oms/place-order symId=EQT_TCS_EQ_NSE qty=10.50 side=sell type=limit product=delivery \
         validity=day limitPrice=100.10 -> 504 owner=SB0001 intent=first fault=placement.504-applied"
    );
    assert!(
        lines[1].ends_with("client_id=*** password=*** twoFa=*** twoFaTyp=totp -> 200 owner=SB0001"),
        "{lines:?}"
    );
    assert!(lines[2].ends_with("GET /api/oms/*** ***=*** orderId=*** symId=a\u{fffd}b -> 404"), "{lines:?}");
    assert!(lines[3].ends_with("GET /api/oms/orders -> 401"), "{lines:?}");
    assert_eq!(lines.len(), 4);
    for secret in [token, &world.user.password, &world.user.api_key, &world.user.totp_secret] {
        assert!(!lines.concat().contains(secret.as_str()), "{lines:?}");
    }
}

/// Asks as a browser does before it sends a page's request.
async fn preflight(server: &Server, origin: &str) -> Response {
    let request = format!(
        "OPTIONS /v2{PLACE_ORDER} HTTP/1.1\r\nhost: sandbox\r\norigin: {origin}\r\n\
         access-control-request-method: POST\r\naccess-control-request-headers: authorization\r\n\r\n"
    );
    server.ask(&request).await
}

async fn list_for(server: &Server, origin: &str) -> Response {
    server.ask(&format!("GET /v2{ORDERS} HTTP/1.1\r\nhost: sandbox\r\norigin: {origin}\r\n\r\n")).await
}

const ALLOWED: &str = "access-control-allow-origin";

#[tokio::test]
async fn a_web_page_reads_answers_only_if_its_origin_is_allowed() {
    let page = "http://localhost:3000";
    let closed = Server::gateway(&World::new().sandbox).await;
    assert_eq!(preflight(&closed, page).await.status, 405, "as to any other OPTIONS");
    assert_eq!(list_for(&closed, page).await.header(ALLOWED), None);
    closed.stop().await;

    let origin: Origin = page.parse().expect("an origin");
    let world = World::of(Sandbox::builder().allow_origin(origin));
    let open = Server::gateway(&world.sandbox).await;
    let asked = preflight(&open, page).await;
    assert_eq!((asked.status, asked.header(ALLOWED)), (204, Some(page)));
    assert_eq!(asked.header("access-control-allow-headers"), Some("authorization"));
    assert_eq!(world.truth().requests, 0, "a question is no request");
    let refused = list_for(&open, page).await;
    assert_eq!((refused.status, refused.header(ALLOWED)), (401, Some(page)), "an error can be read, too");
    assert_eq!(refused.header("vary"), Some("origin"));
    let own = open.ask(&format!("GET /livez HTTP/1.1\r\nhost: s\r\norigin: {page}\r\n\r\n")).await;
    assert_eq!(own.header(ALLOWED), Some(page));

    for other in
        ["http://localhost:3001", "https://localhost:3000", "null", "http://localhost:3000.evil.example"]
    {
        assert_eq!(preflight(&open, other).await.status, 405, "{other}");
        assert_eq!(list_for(&open, other).await.header(ALLOWED), None, "{other}");
    }
    open.stop().await;
}

#[tokio::test]
async fn any_page_may_be_allowed_but_never_at_the_admin_api() {
    let world = World::of(Sandbox::builder().allow_origin("*".parse().expect("an origin")));
    let (gateway, admin) = (Server::gateway(&world.sandbox).await, Server::admin(&world.sandbox).await);
    assert_eq!(list_for(&gateway, "https://a.example").await.header(ALLOWED), Some("https://a.example"));
    let address = admin.address;
    let request = format!("GET /state HTTP/1.1\r\nhost: {address}\r\norigin: https://a.example\r\n\r\n");
    let refused = admin.ask(&request).await;
    assert_eq!((refused.status, refused.header(ALLOWED)), (403, None));
    gateway.stop().await;
    admin.stop().await;
}

#[tokio::test(start_paused = true)]
async fn in_process_there_is_only_the_service() {
    let world = World::new();
    let answer = Call::new(world.sandbox.gateway(), Method::GET, "/../livez").send().await;
    assert_eq!(answer.status(), 404);
}
