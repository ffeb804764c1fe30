//! Requests that hide others, and callers that are none.

use steadfast_sandbox::Sandbox;

use crate::world::{FORM, TOKEN, World};

const ORDER: &str = "POST /v2/api/oms/place-order HTTP/1.1";

#[tokio::test]
async fn nothing_of_a_request_with_two_readings_reaches_the_service() {
    let world = World::new(Sandbox::builder()).await;
    let host = format!("Host: {}", world.address);
    let token = format!("Authorization: Bearer {TOKEN}");
    let hidden = String::from_utf8(world.order(&[])).unwrap();
    let chunk = format!("{:x}\r\n{FORM}\r\n0\r\n\r\n", FORM.len());
    let length = FORM.len();

    let mut cases: Vec<(String, String)> = Vec::new();
    // Two ends of one body.
    for lines in [
        format!("Content-Length: {length}\r\nTransfer-Encoding: chunked"),
        format!("Transfer-Encoding: chunked\r\nContent-Length: {length}"),
        format!("Content-Length: {length}\r\nContent-Length: {length}"),
        format!("Content-Length: {length}\r\nContent-Length: 0"),
        format!("Content-Length: 0\r\nContent-Length: {length}"),
        format!("Content-Length: {length}, {length}"),
        format!("Content-Length: +{length}"),
        format!("Content-Length: 0{length}"),
        format!("Content-Length : {length}"),
        format!(" Content-Length: {length}"),
        format!("X: y\r\n Content-Length: {length}"),
        format!("X: y\nContent-Length: {length}"),
        format!("X: y\rContent-Length: {length}"),
        format!("Content-Length: {length}\r"),
        format!("Content-Length:\u{b}{length}"),
        format!("Content-Length: {length}\0"),
        "Content-Length: -1".to_owned(),
        "Content-Length: 99999999999999999999".to_owned(),
        "Content-Length: 0x10".to_owned(),
        "Content-Length:".to_owned(),
        "Content-Length: ten".to_owned(),
        "Content-Length: 1e2".to_owned(),
        "Content-Length: \u{661}".to_owned(),
        "Content-Length: 300000".to_owned(),
        format!("Content-Length: {length} {length}"),
        format!("Content-Length: {length};x"),
        format!("Content-Length: {length}\u{a0}"),
        format!("Content-Length\t: {length}"),
        format!("Content-Length\0: {length}"),
        format!("Content-Length\r\n: {length}"),
        format!("\tContent-Length: {length}"),
        format!("content-length: {length}\r\nCONTENT-LENGTH: {length}"),
        format!("Content-Length: {length}\r\n\tfolded"),
        format!("X: y\r\n\r\r\nContent-Length: {length}"),
        format!("X\r\nContent-Length: {length}"),
        format!(": x\r\nContent-Length: {length}"),
        format!("Content-Length: {length}\r\nConnection: content-length"),
        format!("Content-Length: {length}\r\nContent-Encoding: gzip"),
        format!("Content-Length: {length}\r\nExpect: 200-ok"),
        format!("Content-Length: {length}\r\nUpgrade: websocket\r\nConnection: upgrade"),
    ] {
        cases.push((lines, FORM.to_owned()));
    }
    for coding in [
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked, gzip",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: \"chunked\"",
        "Transfer-Encoding: chunked;x=y",
        "Transfer-Encoding:\u{b}chunked",
        "Transfer-Encoding : chunked",
        " Transfer-Encoding: chunked",
        "X: y\nTransfer-Encoding: chunked",
        "Transfer-Encoding\0: chunked",
        "Transfer-Encoding:",
        "Transfer-Encoding: chunked,",
        "Transfer-Encoding: ,chunked",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: chunked chunked",
        "Transfer-Encoding: chunke",
        "Transfer-Encoding: 'chunked'",
        "Transfer-Encoding: chunked\0",
        "Transfer-Encoding: chunked\u{a0}",
        "Transfer-Encoding: \u{212a}chunked",
        "Transfer-Encoding: compress",
        "Transfer-Encoding\t: chunked",
        "\tTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nConnection: transfer-encoding",
        "Transfer-Encoding: chunked\r\n\tgzip",
        "X: y\rTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nTRANSFER-ENCODING: chunked",
    ] {
        cases.push((coding.to_owned(), chunk.clone()));
    }
    // Chunks that are none.
    for (size, end) in [
        ("-1", ""),
        ("+5d", ""),
        ("0x5d", ""),
        ("g", ""),
        ("", ""),
        ("ffffffffffffffff5", ""),
        ("5d\n", "bare"),
        ("5d 5d", ""),
        ("5d", "short"),
    ] {
        let end = if end == "short" { "" } else { "\r\n0\r\n\r\n" };
        cases.push((
            "Transfer-Encoding: chunked".to_owned(),
            format!("{size}\r\n{}{end}", &FORM[..93.min(FORM.len())]),
        ));
    }
    let mut raw: Vec<String> = cases
        .into_iter()
        .map(|(lines, body)| format!("{ORDER}\r\n{host}\r\n{token}\r\n{lines}\r\n\r\n{body}{hidden}"))
        .collect();
    // Heads that are none, each before a whole order.
    for line in [
        "GET /v2/api/oms/orders HTTP/1.0",
        "GET /v2/api/oms/orders HTTP/2.0",
        "GET /v2/api/oms/orders",
        "GET  /v2/api/oms/orders HTTP/1.1",
        "GET http://127.0.0.1/v2/api/oms/orders HTTP/1.1",
        "CONNECT api.example:443 HTTP/1.1",
        "TRACE /v2/api/oms/orders HTTP/1.1",
        "GET * HTTP/1.1",
        "GET /v2/api/../api/oms/orders HTTP/1.1",
        "GET /v2/%2e%2e/v2/api/oms/orders HTTP/1.1",
        "GET /v2/api%2foms/orders HTTP/1.1",
        "GET /v2/api\\oms\\orders HTTP/1.1",
        "GET //v2/api/oms/orders HTTP/1.1",
        "GET /v2/api/oms/orders%0d%0aX:y HTTP/1.1",
        "POST /v2/api-gw/oauth/token HTTP/1.1",
        "GET /v1/api/oms/orders HTTP/1.1",
        "PRI * HTTP/2.0",
        "\u{16}\u{3}\u{1}",
        "get /v2/api/oms/orders HTTP/1.1",
        "GET /v2/api/oms/orders HTTP/1.1 HTTP/1.1",
        "GET /v2/api/oms/orders HTTP/01.1",
        "GET /v2/api/oms/orders http/1.1",
        "GET\t/v2/api/oms/orders\tHTTP/1.1",
        " GET /v2/api/oms/orders HTTP/1.1",
        "GET /v2/api/oms/orders\0 HTTP/1.1",
        "GET /v2/api/oms/ord\u{e9}rs HTTP/1.1",
        "GET /v2/api/oms/orders#x HTTP/1.1",
        "GET /v2/./api/oms/orders HTTP/1.1",
        "GET /v2/api//oms/orders HTTP/1.1",
        "GET /v2/api/oms/orders;x=/../ HTTP/1.1",
        "GET /v2/api/oms/%6frders%00 HTTP/1.1",
        "GET /v2/api/oms/orders%5c.. HTTP/1.1",
        "GET /v2/api/oms/orders%3fx HTTP/1.1",
        "GET /v2/api/oms/orders%252f HTTP/1.1",
        "GET /v2/api/oms/orders?x=%0d%0aHost:y HTTP/1.1",
        "GET /v2/api/oms/orders?x=% HTTP/1.1",
        "GET /v2api/oms/orders HTTP/1.1",
        "GET ?/v2/api/oms/orders HTTP/1.1",
        "POST /v2/API-GW/oauth/token HTTP/1.1",
        "OPTIONS /v2/api/oms/orders HTTP/1.1",
        "PRI * HTTP/2.0\r\n\r\nSM",
        "",
    ] {
        raw.push(format!("{line}\r\n{host}\r\n{token}\r\n\r\n{hidden}"));
    }
    raw.push(format!("GET /v2/api/oms/orders HTTP/1.1\n{host}\n{token}\n\n{hidden}"));
    raw.push(format!(
        "GET /v2/api/oms/orders HTTP/1.1\r\n{host}\r\n{token}\r\nContent-Length: 5\r\n\r\nhello{hidden}"
    ));
    raw.push(format!("GET /v2/api/oms/orders HTTP/1.1\r\n{host}\r\n{token}\r\nUpgrade: h2c\r\n\r\n{hidden}"));
    raw.push(format!("{ORDER}\r\n{host}\r\n{token}\r\nX: {}\r\n\r\n{hidden}", "y".repeat(20_000)));
    assert!(raw.len() >= 120, "{}", raw.len());

    for request in &raw {
        let mut line = world.connect().await;
        line.send(request.as_bytes()).await;
        let answer = line.answer().await.unwrap_or_else(|| panic!("no answer: {request:?}"));
        assert!((400..=599).contains(&answer.status), "{request:?}: {answer:?}");
        assert!(
            answer.body.starts_with(r#"{"msg":"#) && answer.header("proxy-status").is_some(),
            "{answer:?}"
        );
        assert!(line.is_over().await, "nothing is read behind it: {request:?}");
    }
    assert_eq!(world.arrivals(), 0);
}

#[tokio::test]
async fn a_request_hidden_behind_a_good_one_does_not_pass() {
    let world = World::new(Sandbox::builder()).await;
    let mut line = world.connect().await;
    let good = world.request("GET /v2/api/oms/orders HTTP/1.1", &[], "");
    let bad = format!("{ORDER}\r\nHost: evil.example\r\nContent-Length: {}\r\n\r\n{FORM}", FORM.len());
    line.send(&[&good[..], bad.as_bytes(), &world.order(&[])[..]].concat()).await;
    assert_eq!(line.answer().await.unwrap().status, 200);
    assert_eq!(line.answer().await.unwrap().status, 403);
    assert!(line.is_over().await);
    assert_eq!((world.arrivals(), world.placed()), (1, 0));

    // Behind chunks nothing is read, because they are not counted on the way.
    let mut line = world.connect().await;
    let head = world.request(ORDER, &["Transfer-Encoding: chunked"], "");
    let chunks = format!("{:x}\r\n{FORM}\r\n0\r\n\r\n", FORM.len());
    line.send(&[&head[..], chunks.as_bytes(), &world.order(&["x-new-order: 1"])[..]].concat()).await;
    let answer = line.answer().await.unwrap();
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")), "{answer:?}");
    assert!(line.is_over().await);
    assert_eq!(world.placed(), 1);
}

#[tokio::test]
async fn strangers_and_web_pages_reach_nothing() {
    let world = World::new(Sandbox::builder()).await;
    let own = format!("Host: {}", world.address);
    let (token, wrong) =
        (format!("Authorization: Bearer {TOKEN}"), "Authorization: Bearer wrong-0123456789abcdef");
    let port = world.address.port();
    for (lines, status) in [
        (vec![own.clone()], 401),
        (vec![own.clone(), wrong.to_owned()], 401),
        (vec![own.clone(), token.clone(), token.clone()], 400),
        (vec![token.clone()], 403),
        (vec![format!("Host: evil.example:{port}"), token.clone()], 403),
        (vec![format!("Host: localhost.evil.example:{port}"), token.clone()], 403),
        (vec!["Host: localhost".to_owned(), token.clone()], 403),
        (vec![own.clone(), own.clone(), token.clone()], 400),
        (vec![own.clone(), token.clone(), "Origin: https://evil.example".to_owned()], 403),
        (vec![own.clone(), token.clone(), "Origin: null".to_owned()], 403),
        (vec![own.clone(), token.clone(), format!("Origin: http://localhost:{port}")], 403),
        (vec![own.clone(), token.clone(), "Sec-Fetch-Site: cross-site".to_owned()], 403),
        (vec![own.clone(), token.clone(), "Sec-Fetch-Site: same-origin".to_owned()], 403),
    ] {
        let head =
            format!("{ORDER}\r\n{}\r\nContent-Length: {}\r\n\r\n{FORM}", lines.join("\r\n"), FORM.len());
        let answer = world.ask(head.as_bytes()).await;
        assert_eq!(answer.status, status, "{lines:?}");
        assert!(!answer.head.to_ascii_lowercase().contains("access-control"), "no page reads it");
    }
    assert_eq!(world.arrivals(), 0);
    let named = format!(
        "{ORDER}\r\nHost: localhost:{port}\r\n{token}\r\nContent-Length: {}\r\n\r\n{FORM}",
        FORM.len()
    );
    assert_eq!(world.ask(named.as_bytes()).await.status, 200);
}

#[tokio::test]
async fn silent_strangers_make_room_and_callers_with_a_token_stay() {
    let world = World::new(Sandbox::builder()).await;
    let poll = world.request("GET /v2/api/oms/history HTTP/1.1", &[], "");
    let mut known = world.connect().await;
    known.send(&poll).await;
    assert_eq!(known.answer().await.unwrap().status, 200);
    let mut silent = world.connect().await;
    let mut others = Vec::new();
    for _ in 0..200 {
        others.push(world.connect().await);
    }
    assert!(silent.is_over().await, "it was there longest");
    known.send(&poll).await;
    assert_eq!(known.answer().await.unwrap().status, 200);
}
