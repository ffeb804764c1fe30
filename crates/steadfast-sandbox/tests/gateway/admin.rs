//! The admin API over a real socket: every call, and every way to get one wrong.

use serde_json::{Value, json};
use steadfast_sandbox::Sandbox;

use crate::{
    client::Call,
    wire::{Response, Server},
    world::{LIMIT, MARKET, ORDERS, World},
};

struct Admin {
    world: World,
    server: Server,
}

impl Admin {
    async fn new() -> Self {
        Self::of(World::new()).await
    }

    async fn of(world: World) -> Self {
        let server = Server::admin(&world.sandbox).await;
        Self { world, server }
    }

    async fn raw(&self, method: &str, path: &str, content_type: &str, body: &str) -> Response {
        let (length, address) = (body.len(), self.server.address);
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\n{content_type}content-length: {length}\r\n\r\n"
        );
        self.server.ask(&format!("{head}{body}")).await
    }

    async fn post(&self, path: &str, body: &str) -> (u16, Value) {
        let answer = self.raw("POST", path, "content-type: application/json\r\n", body).await;
        (answer.status, answer.json())
    }

    /// Makes a call that must succeed.
    async fn done(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.post(path, &body.to_string()).await;
        assert_eq!(status, 200, "{path} {body}: {answer}");
        answer
    }

    async fn state(&self) -> Value {
        let answer = self.raw("GET", "/state", "", "").await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
        answer.json()
    }
}

#[tokio::test]
async fn x04_only_programs_that_name_the_api_reach_it() {
    let admin = Admin::new().await;
    let port = admin.server.address.port();
    let get = async |target: &str, headers: &str| {
        admin.server.ask(&format!("GET {target} HTTP/1.1\r\n{headers}\r\n")).await
    };
    for host in ["127.0.0.1", "localhost", "LocalHost", "[::1]"] {
        let answer = get("/state", &format!("host: {host}:{port}\r\n")).await;
        assert_eq!(answer.status, 200, "{host}");
    }
    let own = format!("host: localhost:{port}\r\n");
    let hosts = [
        format!("host: evil.example:{port}\r\n"),
        format!("host: localhost.evil.example:{port}\r\n"),
        format!("host: user@localhost:{port}\r\n"),
        "host: localhost\r\n".to_owned(),
        format!("host: localhost:{}\r\n", port.wrapping_add(1)),
        "host: \r\n".to_owned(),
        String::new(),
        [own.as_str(), own.as_str()].concat(),
    ];
    let origins = ["http://evil.example".to_owned(), "null".to_owned(), format!("http://localhost:{port}")]
        .map(|origin| format!("{own}origin: {origin}\r\n"));
    for headers in hosts.iter().chain(&origins) {
        let answer = get("/state", headers).await;
        assert_eq!(answer.status, 403, "{headers:?}");
        assert!(answer.json()["error"].is_string(), "{headers:?}");
        let token = &admin.world.user.access_token;
        assert!(!String::from_utf8_lossy(&answer.body).contains(token), "{headers:?}");
    }
    assert_eq!(get(&format!("http://evil.example:{port}/state"), &own).await.status, 403);
    assert_eq!(get(&format!("http://localhost:{port}/state"), &own).await.status, 200);

    let length = format!("{own}origin: null\r\ncontent-type: application/json\r\ncontent-length: 0\r\n");
    let reset = admin.server.ask(&format!("POST /reset HTTP/1.1\r\n{length}\r\n")).await;
    assert_eq!(reset.status, 403);
    assert_eq!(admin.world.list().await.status(), 200, "nothing was reset");
}

#[tokio::test]
async fn the_state_tells_who_owns_which_order_and_what_arrived() {
    let admin = Admin::new().await;
    let world = &admin.world;
    let placed = world.place_for("first").await.order_id();
    let other = Call::new(world.sandbox.gateway(), http::Method::POST, "/api/oms/place-order")
        .bearer(&world.other.api_key, &world.other.access_token)
        .form(LIMIT);
    other.send().await;
    world.login_with("000000", "totp").send().await;

    let state = admin.state().await;
    let orders = state["orders"].as_array().expect("a list");
    assert_eq!(orders.len(), 2);
    assert_eq!(orders[0]["order_id"], placed.as_str());
    assert_eq!((&orders[0]["owner"], &orders[0]["intent"]), (&json!("SB0001"), &json!("first")));
    assert_eq!((&orders[1]["owner"], &orders[1]["intent"]), (&json!("SB0002"), &Value::Null));
    assert_eq!((&orders[1]["qty"], &orders[1]["side"]), (&json!("10.50"), &json!("sell")));
    let arrivals = state["arrivals"].as_array().expect("a list");
    let seen: Vec<_> = arrivals.iter().map(|a| (a["path"].as_str().expect("a path"), &a["status"])).collect();
    assert_eq!(
        seen,
        [
            ("/api/oms/place-order", &json!(200)),
            ("/api/oms/place-order", &json!(200)),
            ("/api-gw/oauth/individual-token-v2", &json!(401)),
        ]
    );
    assert_eq!(arrivals[0]["zones"], json!(["place_order"]));
    assert_eq!(arrivals[0]["owner"], "SB0001");
    assert_eq!(state["requests"], 3);
    assert_eq!(state["logins"], json!({"succeeded": 0, "failed": 1, "active_sessions": 2}));
}

#[tokio::test]
async fn the_state_tells_each_zones_429s_apart_from_injected_ones() {
    // Without any pacing, the eleventh order and the eleventh list within a second are refused.
    let admin = Admin::of(World::of(
        Sandbox::builder()
            .enforcer(steadfast_spec::Zone::PLACE_ORDER, "token-bucket".parse().expect("a kind")),
    ))
    .await;
    let storm = json!({"name": "quota.storm", "nth": 1});
    admin.done("/faults", storm).await;
    assert_eq!(admin.world.list().await.status(), 429);
    for _ in 0..12 {
        admin.world.place(MARKET).await;
        admin.world.list().await;
    }
    let state = admin.state().await;
    assert_eq!(state["refusals"], json!({"place_order": 2, "general": 2}));
    assert_eq!(state["injected_429s"], 1);
    assert_eq!(state["faults"], json!({"quota.storm": 1}));
    let refused = state["arrivals"].as_array().expect("a list").last().expect("an arrival");
    assert_eq!((&refused["zone_refused"], &refused["status"]), (&json!("general"), &json!(429)));
}

#[tokio::test]
async fn faults_are_injected_one_or_many_and_all_or_none() {
    let admin = Admin::new().await;
    admin.done("/faults", json!({"name": "list.504", "nth": 1})).await;
    assert_eq!(admin.world.list().await.status(), 504);
    admin.done("/faults", json!([{"name": "list.504", "nth": 1}, {"name": "list.401", "nth": 1}])).await;
    assert_eq!([admin.world.list().await.status(), admin.world.list().await.status()], [504, 401]);
    admin.done("/faults", json!({"name": "placement.502-applied", "rate": 1})).await;
    assert_eq!(admin.world.place(MARKET).await.status(), 502);
    admin.done("/faults", json!({"name": "placement.502-applied", "rate": 0})).await;
    assert_eq!(admin.world.place(MARKET).await.status(), 200);
    admin.done("/faults", json!([])).await;

    let half = r#"[{"name": "list.504", "nth": 1}, {"name": "list.505"}]"#;
    assert_eq!(admin.post("/faults", half).await.0, 400);
    assert_eq!(admin.world.list().await.status(), 200, "a refused call injects nothing");
}

#[tokio::test]
async fn the_clock_goes_forward_and_tokens_die_by_it() {
    let admin = Admin::new().await;
    let before = admin.state().await["now_ns"].as_u64().expect("a number");
    let answer = admin.done("/clock", json!({"advance_ms": 86_400_000})).await;
    assert!(answer["now_ns"].as_u64().expect("a number") >= before + 86_400_000_000_000);
    assert_eq!(admin.world.list().await.status(), 401);
    // No advance leaves the calendar.
    admin.done("/clock", json!({"advance_ms": u64::MAX})).await;
    admin.done("/clock", json!({"advance_ms": u64::MAX})).await;
    assert_eq!(admin.world.list().await.status(), 401);
}

#[tokio::test]
async fn the_book_is_edited_as_the_market_and_the_users_other_app_do() {
    let admin = Admin::new().await;
    // JSON has numbers; a form has texts.
    let order = json!({"symId": "EQT_TCS_EQ_NSE", "qty": 3, "side": "buy", "type": "limit",
                       "product": "delivery", "validity": "day", "limitPrice": "100.50"});
    let mut ids = Vec::new();
    for _ in 0..3 {
        let answer = admin.done("/orders", json!({"action": "place", "order": order})).await;
        ids.push(answer["orderId"].as_str().expect("an id").to_owned());
    }
    for (action, id) in ["fill", "cancel", "reject"].iter().zip(&ids) {
        admin.done("/orders", json!({"action": action, "orderId": id})).await;
        let (status, answer) =
            admin.post("/orders", &json!({"action": action, "orderId": id}).to_string()).await;
        assert_eq!(status, 400, "an order ends once");
        assert!(answer["error"].as_str().is_some_and(|error| error.contains("orderId")), "{answer}");
    }
    let statuses: Vec<Value> =
        admin.world.records().await.iter().map(|order| order["status"].clone()).collect();
    assert_eq!(
        statuses,
        ["completed", "cancelled", "rejected"],
        "the session of the user's own token shows them"
    );
    assert!(admin.world.truth().orders.iter().all(|order| order.intent.is_none()));
}

#[tokio::test]
async fn tokens_are_revoked_one_or_all() {
    let admin = Admin::new().await;
    let token = admin.world.user.access_token.clone();
    admin.done("/tokens/revoke", json!({"token": "nobody's"})).await;
    assert_eq!(admin.world.list().await.status(), 200);
    admin.done("/tokens/revoke", json!({"token": token})).await;
    assert_eq!(admin.world.list().await.status(), 401);
    assert_eq!(admin.state().await["logins"]["active_sessions"], 1, "the other user's lives on");
    admin.done("/tokens/revoke", json!({})).await;
    assert_eq!(admin.state().await["logins"]["active_sessions"], 0);
}

#[tokio::test]
async fn a_one_time_code_is_sent_and_good_once() {
    let admin = Admin::new().await;
    let answer = admin.done("/otp", json!({"client_id": "SB0001"})).await;
    let code = answer["code"].as_str().expect("a code").to_owned();
    assert!(code.len() == 6 && code.bytes().all(|b| b.is_ascii_digit()), "{code}");
    let statuses = [
        admin.world.login_with(&code, "totp").send().await.status(),
        admin.world.login_with(&code, "otp").send().await.status(),
        admin.world.login_with(&code, "otp").send().await.status(),
    ];
    assert_eq!(statuses, [401, 200, 401]);
}

#[tokio::test]
async fn a_reset_forgets_all_and_says_the_new_token() {
    let admin = Admin::new().await;
    admin.world.place(MARKET).await;
    admin.done("/faults", json!({"name": "list.504"})).await;
    admin.done("/tokens/revoke", json!({})).await;
    let answer = admin.done("/reset", json!({})).await;
    let state = admin.state().await;
    assert_eq!((&state["orders"], &state["requests"]), (&json!([]), &json!(0)));
    let token = answer["access_token"].as_str().expect("a token");
    let list = admin.world.get(ORDERS).bearer(&admin.world.user.api_key, token).send().await;
    assert_eq!(list.status(), 200);
}

#[tokio::test]
async fn what_is_wrong_with_a_call_is_named() {
    let admin = Admin::new().await;
    let order = |field: &str, value: Value| {
        let mut order = json!({"symId": "EQT_TCS_EQ_NSE", "qty": "3", "side": "buy", "type": "market",
                               "product": "delivery", "validity": "day"});
        order[field] = value;
        json!({"action": "place", "order": order}).to_string()
    };
    for (path, body, named) in [
        ("/faults", r#"{"rate": 1}"#.into(), "name"),
        ("/faults", r#"{"name": 1}"#.into(), "name"),
        ("/faults", r#"{"name": "list.none"}"#.into(), "list.none"),
        ("/faults", r#"{"name": "list.empty", "rate": 2}"#.into(), "rate"),
        ("/faults", r#"{"name": "list.empty", "rate": "1"}"#.into(), "rate"),
        ("/faults", r#"{"name": "list.empty", "nth": 0}"#.into(), "nth"),
        ("/faults", r#"{"name": "list.empty", "nth": -1}"#.into(), "nth"),
        ("/faults", r#"{"name": "list.empty", "times": 1.5}"#.into(), "times"),
        ("/faults", r#"{"name": "list.empty", "attempt": 0}"#.into(), "attempt"),
        ("/faults", r#"{"name": "list.empty", "endpoint": "x"}"#.into(), "endpoint"),
        ("/faults", r#"{"name": "list.empty", "late_by_ms": 1}"#.into(), "late_by_ms"),
        ("/faults", r#"{"name": "list.empty", "rate": 1, "intent": "a"}"#.into(), "intent"),
        ("/faults", r#"{"name": "list.empty", "rates": 1}"#.into(), "rates"),
        ("/faults", r#"[{"name": "list.empty"}, {"name": "list.empty", "rate": []}]"#.into(), "[1].rate"),
        ("/faults", "[1]".into(), "[0]"),
        ("/clock", "{}".into(), "advance_ms"),
        ("/clock", r#"{"advance_ms": -1}"#.into(), "advance_ms"),
        ("/clock", r#"{"advance_ms": "1"}"#.into(), "advance_ms"),
        ("/clock", r#"{"advance_ms": 1e30}"#.into(), "advance_ms"),
        ("/clock", r#"{"advance_ms": 1, "back": 1}"#.into(), "back"),
        ("/clock", "[5]".into(), "body"),
        ("/orders", "{}".into(), "action"),
        ("/orders", r#"{"action": "amend"}"#.into(), "action"),
        ("/orders", r#"{"action": "place"}"#.into(), "order"),
        ("/orders", r#"{"action": "fill"}"#.into(), "orderId"),
        ("/orders", r#"{"action": "fill", "orderId": 7}"#.into(), "orderId"),
        ("/orders", r#"{"action": "fill", "orderId": "7"}"#.into(), "orderId"),
        ("/orders", r#"{"action": "fill", "orderId": "7", "qty": 1}"#.into(), "qty"),
        ("/orders", order("qty", json!(-1)), "qty"),
        ("/orders", order("qty", json!([1])), "qty"),
        ("/orders", order("side", json!("BUY")), "side"),
        ("/orders", order("type", json!("limit")), "limitPrice"),
        ("/orders", order("symId", json!("")), "symId"),
        ("/tokens/revoke", r#"{"token": 1}"#.into(), "token"),
        ("/tokens/revoke", r#"{"tokens": []}"#.into(), "tokens"),
        ("/otp", "{}".into(), "client_id"),
        ("/otp", r#"{"client_id": "SB9999"}"#.into(), "client_id"),
        ("/clock", r#"{"advance_ms": 1"#.into(), "EOF"),
        ("/clock", r#"{"advance_ms": 1} {}"#.into(), "trailing"),
        ("/clock", "\u{feff}{}".into(), "body"),
    ] as [(&str, String, &str); 40]
    {
        let (status, answer) = admin.post(path, &body).await;
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(status == 400 && error.contains(named), "{path} {body}: {status} {answer}, not {named}");
    }
    let state = admin.state().await;
    assert_eq!((&state["orders"], &state["faults"]), (&json!([]), &json!({})), "and none of it did anything");
}

#[tokio::test]
async fn unknown_paths_methods_and_types_are_refused() {
    let admin = Admin::new().await;
    let json = "content-type: application/json\r\n";
    for (method, path, content_type, status) in [
        ("GET", "/", "", 404),
        ("GET", "/State", "", 404),
        ("GET", "/v2/api/oms/orders", "", 404),
        ("POST", "/faults/list.empty", json, 404),
        ("GET", "/faults", "", 405),
        ("DELETE", "/faults", json, 405),
        ("POST", "/state", json, 405),
        ("PUT", "/clock", json, 405),
        ("GET", "/reset", "", 405),
        ("POST", "/reset", "", 415),
        ("POST", "/reset", "content-type: text/plain\r\n", 415),
        ("POST", "/reset", "content-type: application/x-www-form-urlencoded\r\n", 415),
        ("POST", "/reset", "content-type: application/jsonp\r\n", 415),
    ] {
        let answer = admin.raw(method, path, content_type, "").await;
        assert_eq!(answer.status, status, "{method} {path} {content_type}");
        assert!(answer.json()["error"].as_str().is_some_and(|error| !error.is_empty()));
    }
    for content_type in
        ["application/json; charset=utf-8", "Application/JSON", "application/json ;charset=utf-8"]
    {
        let answer = admin.raw("POST", "/reset", &format!("content-type: {content_type}\r\n"), "{}").await;
        assert_eq!(answer.status, 200, "{content_type}");
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let admin = Admin::new().await;
    let body = format!(r#"{{"advance_ms": {}1}}"#, " ".repeat(300 * 1024));
    let (status, answer) = admin.post("/clock", &body).await;
    assert_eq!((status, answer), (400, json!({"error": "body is too large or broken"})));
}

#[tokio::test]
async fn the_admin_api_is_not_on_the_services_own_port() {
    let world = World::new();
    let server = Server::gateway(&world.sandbox).await;
    for path in ["/state", "/v2/state", "/reset", "/v2/reset"] {
        let answer = server.ask(&format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n")).await;
        assert_eq!(answer.status, 404, "{path}");
    }
    server.stop().await;
}
