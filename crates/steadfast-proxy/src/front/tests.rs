use steadfast::spec::Paths;

use super::*;

const TRADER: &str = "trade-0123456789abcdef";
const READER: &str = "read-0123456789abcdef";

fn front() -> Front {
    let hosts = Hosts::of(["127.0.0.1:8080".parse().unwrap()]);
    Front::new(hosts, Tokens::new(TRADER).unwrap().reader(READER).unwrap(), Routes::new(&Paths::public()))
}

/// Returns the head of a request with these lines beside a host and a token.
fn head(line: &str, lines: &[&str]) -> Vec<u8> {
    with_caller(line, &["Host: localhost:8080", &format!("Authorization: Bearer {TRADER}")], lines)
}

fn with_caller(line: &str, caller: &[&str], lines: &[&str]) -> Vec<u8> {
    let lines = [&[line], caller, lines, &[""], &[""]].concat();
    lines.join("\r\n").into_bytes()
}

fn admit(line: &str, lines: &[&str]) -> Result<Admitted, Refusal> {
    front().admit(&head(line, lines))
}

const ORDERS: &str = "GET /v2/api/oms/orders HTTP/1.1";
const ORDER: &str = "POST /v2/api/oms/place-order HTTP/1.1";

#[test]
fn a_request_that_may_pass_is_taken_apart() {
    let order = admit(
        "POST /v2/api/oms/place-order HTTP/1.1",
        &["Content-Length: 7", "Content-Type: application/x-www-form-urlencoded", "Idempotency-Key: \"k 7\""],
    );
    assert_eq!(order.unwrap_err(), Refusal::Key, "a name has no blank");
    let order = admit(
        "POST /v2/api/oms/place-order HTTP/1.1",
        &["content-length:7", "Content-Type:\tapplication/x-www-form-urlencoded ", "Idempotency-Key: \"k7\""],
    )
    .unwrap();
    assert_eq!((order.method, order.endpoint), (Method::POST, Some(Endpoint::PlaceOrder)));
    assert_eq!((order.path.as_str(), order.query.as_deref()), ("/api/oms/place-order", None));
    assert_eq!((order.framing, order.key.as_deref()), (Framing::Length(7), Some("\"k7\"")));
    assert_eq!(order.headers[http::header::CONTENT_TYPE], "application/x-www-form-urlencoded");
    assert!(!order.is_new_order && order.lane.is_none() && order.scope == Scope::Trade);
}

/// Regression: the query was passed on, and no part of what a name stands for.
#[test]
fn an_order_with_a_query_is_refused() {
    let admitted = |line: &str| admit(line, &["content-length:7"]);
    let order = admitted("POST /v2/api/oms/place-order?qty=9&side=sell HTTP/1.1");
    assert_eq!(order.unwrap_err(), Refusal::OrderQuery);
    assert!(admitted("POST /v2/api/oms/place-order? HTTP/1.1").is_ok());
    let list = admit("GET /v2/api/oms/orders?x=1%262 HTTP/1.1", &[]).unwrap();
    assert_eq!(list.query.as_deref(), Some("x=1%262"));
}

#[test]
fn a_head_with_two_readings_is_refused() {
    use Refusal::{BodyTooLong, Framing, Malformed, Method, NotAPath, UnexpectedBody, Version};
    for (text, refusal) in [
        // Lengths.
        (&["Content-Length: 5", "Content-Length: 5"][..], Framing),
        (&["Content-Length: 5", "Content-Length: 6"], Framing),
        (&["Content-Length: 5, 5"], Framing),
        (&["Content-Length: +5"], Framing),
        (&["Content-Length: -5"], Framing),
        (&["Content-Length: 05"], Framing),
        (&["Content-Length: 0x5"], Framing),
        (&["Content-Length: 5 5"], Framing),
        (&["Content-Length:"], Framing),
        (&["Content-Length: 5.0"], Framing),
        (&["Content-Length: 262145"], BodyTooLong),
        (&["Content-Length: 99999999999999999999999"], BodyTooLong),
        // Transfer encodings.
        (&["Content-Length: 5", "Transfer-Encoding: chunked"], Framing),
        (&["Transfer-Encoding: chunked", "Content-Length: 5"], Framing),
        (&["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], Framing),
        (&["Transfer-Encoding: chunked", "Transfer-Encoding: identity"], Framing),
        (&["Transfer-Encoding: gzip, chunked"], Framing),
        (&["Transfer-Encoding: chunked, identity"], Framing),
        (&["Transfer-Encoding: xchunked"], Framing),
        (&["Transfer-Encoding: chunked;q=1"], Framing),
        (&["Transfer-Encoding: \"chunked\""], Framing),
        (&["Transfer-Encoding:"], Framing),
        (&["Transfer-Encoding: \u{b}chunked"], Malformed),
        // Lines.
        (&["Content-Length : 5"], Malformed),
        (&[" Content-Length: 5"], Malformed),
        (&["X: y", " Content-Length: 5"], Malformed),
        (&["X: y", "\tContent-Length: 5"], Malformed),
        (&["Content-Length: 5\r"], Malformed),
        (&["X: y\nContent-Length: 5"], Malformed),
        (&["X: y\rContent-Length: 5"], Malformed),
        (&["X: y\0"], Malformed),
        (&["X: \u{7f}"], Malformed),
        (&["X"], Malformed),
        (&[": y"], Malformed),
        (&["X Y: z"], Malformed),
        (&["Content-Length\u{0}: 5"], Malformed),
        (&["Transfer-Encoding\u{b}: chunked"], Malformed),
        (&["Content(Length: 5"], Malformed),
    ] {
        assert_eq!(admit(ORDER, text).unwrap_err(), refusal, "{text:?}");
    }
    for (line, refusal) in [
        ("POST  /v2/api/oms/place-order HTTP/1.1", Malformed),
        (" POST /v2/api/oms/place-order HTTP/1.1", Malformed),
        ("POST /v2/api/oms/place-order HTTP/1.1 ", Malformed),
        ("POST\t/v2/api/oms/place-order\tHTTP/1.1", Malformed),
        ("POST /v2/api/oms/place-order", Malformed),
        ("POST /v2/api/oms/place-order XTTP/1.1", Malformed),
        ("POST /v2/api oms/place-order HTTP/1.1", Malformed),
        ("POST /v2/\u{e4} HTTP/1.1", Malformed),
        ("POST /v2/\u{7f} HTTP/1.1", Malformed),
        ("", Malformed),
        ("\r\nPOST /v2/api/oms/place-order HTTP/1.1", Malformed),
        ("\u{16}\u{3}\u{1}", Malformed),
        ("POST /v2/api/oms/place-order HTTP/1.0", Version),
        ("POST /v2/api/oms/place-order HTTP/0.9", Version),
        ("POST /v2/api/oms/place-order HTTP/2.0", Version),
        ("POST /v2/api/oms/place-order HTTP/1.10", Version),
        ("PRI * HTTP/2.0", Version),
        ("CONNECT api.example:443 HTTP/1.1", Method),
        ("TRACE /v2/api/oms/orders HTTP/1.1", Method),
        ("OPTIONS * HTTP/1.1", Method),
        ("HEAD /v2/api/oms/orders HTTP/1.1", Method),
        ("GET http://localhost:8080/v2/api/oms/orders HTTP/1.1", NotAPath),
        ("GET https://evil.example/v2/api/oms/orders HTTP/1.1", NotAPath),
        ("GET api.example:443 HTTP/1.1", NotAPath),
        ("GET * HTTP/1.1", NotAPath),
        ("GET v2/api/oms/orders HTTP/1.1", NotAPath),
    ] {
        assert_eq!(admit(line, &[]).unwrap_err(), refusal, "{line:?}");
    }
    for method in ["GET", "DELETE"] {
        let line = format!("{method} /v2/api/oms/orders HTTP/1.1");
        assert_eq!(admit(&line, &["Content-Length: 1"]).unwrap_err(), UnexpectedBody);
        assert_eq!(admit(&line, &["Transfer-Encoding: chunked"]).unwrap_err(), UnexpectedBody);
    }
    assert_eq!(admit(ORDERS, &["Content-Length: 0"]).unwrap().framing, super::Framing::Length(0));
    assert_eq!(admit(ORDER, &["Transfer-Encoding: Chunked"]).unwrap().framing, super::Framing::Chunked);
}

#[test]
fn the_end_of_a_head_is_found_as_soon_as_it_arrives() {
    let whole = head(ORDERS, &[]);
    for at in 0..whole.len() {
        assert_eq!(Head::end(&whole[..at]), Ok(None), "{at}");
    }
    assert_eq!(Head::end(&whole), Ok(Some(whole.len())));
    assert_eq!(Head::end(&[&whole[..], b"GET"].concat()), Ok(Some(whole.len())));
    for wrong in [&b"\x16\x03\x01"[..], b"\r", b"get", b"GET / HTTP/1.1\n", b"GET / HTTP/1.1\r\nX: y\n"] {
        assert_eq!(Head::end(wrong), Err(Refusal::Malformed), "{wrong:?}");
    }
    let endless = format!("GET / HTTP/1.1\r\nX: {}", "y".repeat(HEAD_LIMIT));
    assert_eq!(Head::end(endless.as_bytes()), Err(Refusal::HeadTooLong));
    let lines = vec!["X: y"; 63];
    assert_eq!(
        admit(ORDERS, &lines).unwrap_err(),
        Refusal::HeadTooLong,
        "with host and token it is 65 lines"
    );
    assert!(admit(ORDERS, &lines[1..]).is_ok());
    let long = format!("GET /v2/{} HTTP/1.1", "x".repeat(4 * 1024));
    assert_eq!(admit(&long, &[]).unwrap_err(), Refusal::HeadTooLong);
}

#[test]
fn only_the_listeners_own_names_are_a_host() {
    let with_host = |lines: &[&str]| {
        front().admit(&with_caller(ORDERS, lines, &[&format!("Authorization: Bearer {TRADER}")])).map(drop)
    };
    for host in ["127.0.0.1:8080", "localhost:8080", "LocalHost:8080", "[::1]:8080"] {
        assert_eq!(with_host(&[&format!("Host: {host}")]), Ok(()), "{host}");
    }
    for host in [
        "",
        "localhost",
        "localhost:80",
        "localhost:8081",
        "localhost:08080",
        "localhost.:8080",
        "127.0.0.1",
        "127.1:8080",
        "127.0.0.1.:8080",
        "2130706433:8080",
        "0x7f.1:8080",
        "0.0.0.0:8080",
        "[::ffff:127.0.0.1]:8080",
        "[0:0:0:0:0:0:0:1]:8080",
        "evil.example",
        "evil.example:8080",
        "localhost.evil.example:8080",
        "user@localhost:8080",
        "localhost:8080@evil.example",
        "localhost:8080/",
        "localhost:8080#evil.example",
        "localhost:8080, evil.example",
        "http://localhost:8080",
    ] {
        assert_eq!(with_host(&[&format!("Host: {host}")]), Err(Refusal::Host), "{host}");
    }
    assert_eq!(with_host(&[]), Err(Refusal::Host));
    assert_eq!(with_host(&["Host: localhost:8080", "Host: evil.example"]), Err(Refusal::Repeated));
    assert_eq!(with_host(&["Host: localhost:8080", "Host: localhost:8080"]), Err(Refusal::Repeated));
    assert_eq!(with_host(&["X-Forwarded-Host: localhost:8080"]), Err(Refusal::Host));

    let plain = Hosts::of(["10.0.0.1:80".parse().unwrap()]);
    for host in ["10.0.0.1", "10.0.0.1:80", "localhost", "[::1]:80"] {
        let bytes = with_caller(ORDERS, &[&format!("Host: {host}")], &[]);
        assert_eq!(plain.check(&Head::parse(&bytes).unwrap()), Ok(()), "{host}");
    }
}

#[test]
fn web_pages_are_refused_before_the_token_is_read() {
    for line in [
        "Origin: https://evil.example",
        "Origin: null",
        "Origin: http://localhost:8080",
        "Origin:",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
        "Sec-Fetch-Site: same-origin",
        "Sec-Fetch-Site:",
    ] {
        assert_eq!(admit(ORDER, &[line]).unwrap_err(), Refusal::Page, "{line}");
        let stranger = with_caller(ORDER, &["Host: localhost:8080"], &[line]);
        assert_eq!(front().admit(&stranger).unwrap_err(), Refusal::Page, "{line}");
    }
    assert!(admit(ORDERS, &["Sec-Fetch-Site: none"]).is_ok());
    let both = ["Sec-Fetch-Site: none", "Sec-Fetch-Site: cross-site"];
    assert_eq!(admit(ORDERS, &both).unwrap_err(), Refusal::Page);
}

#[test]
fn a_token_is_known_alone_or_behind_another_name() {
    let with_token = |lines: &[&str]| {
        let bytes = with_caller(ORDERS, &["Host: localhost:8080"], lines);
        front().admit(&bytes).map(|admitted| admitted.scope)
    };
    for given in [
        format!("Bearer {TRADER}"),
        format!("bearer {TRADER}"),
        format!("Bearer  {TRADER}"),
        format!("Bearer any-key:{TRADER}"),
        format!("Bearer :{TRADER}"),
        format!("Bearer a:b:{TRADER}"),
    ] {
        assert_eq!(with_token(&[&format!("Authorization: {given}")]), Ok(Scope::Trade), "{given}");
    }
    assert_eq!(with_token(&[&format!("Authorization: Bearer key:{READER}")]), Ok(Scope::Read));
    for given in [
        String::new(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        "Bearer :".to_owned(),
        TRADER.to_owned(),
        format!("Bearer{TRADER}"),
        format!("Basic {TRADER}"),
        format!("Bearer {TRADER}:"),
        format!("Bearer {TRADER}:any"),
        format!("Bearer {TRADER}x"),
        format!("Bearer x{TRADER}"),
        format!("Bearer {}", &TRADER[1..]),
        format!("Bearer {TRADER}, Bearer {TRADER}"),
        format!("Bearer {}", TRADER.to_uppercase()),
    ] {
        assert_eq!(with_token(&[&format!("Authorization: {given}")]), Err(Refusal::Token), "{given}");
    }
    assert_eq!(with_token(&[]), Err(Refusal::Token));
    assert_eq!(with_token(&[&format!("Cookie: token={TRADER}")]), Err(Refusal::Token));
    let twice = format!("Authorization: Bearer {TRADER}");
    assert_eq!(with_token(&[&twice, &twice]), Err(Refusal::Repeated));

    assert_eq!(Tokens::new(TRADER).unwrap().reader(TRADER).unwrap_err(), InvalidToken::TradesToo);
    for bad in ["short", "has:a-colon-in-it", "has a blank in it", ""] {
        assert!(Tokens::new(bad).is_err(), "{bad}");
    }
    assert!(!format!("{:?}", front()).contains("0123456789abcdef"));
}

#[test]
fn a_path_of_the_service_has_its_own_methods() {
    let routes = Routes::new(&Paths::public());
    let mut refused = 0;
    for (_, path, _) in routes.iter().filter(|(_, path, _)| !path.starts_with("/api-gw/")) {
        let allowed: Methods = routes.methods(path).collect();
        for method in ["GET", "POST", "PUT", "DELETE", "PATCH"] {
            let path = path.replace("{scripGroup}", "NSE");
            let is_its_own = routes.methods(&path).any(|known| known == method);
            for query in ["", "?orderId=7"] {
                let admitted = admit(&format!("{method} /v2{path}{query} HTTP/1.1"), &[]).map(|_| ());
                // The path of cancels is not shown in §4.5: any other may be it, but for that of orders.
                let may_cancel = method == "DELETE" && !query.is_empty() && path != "/api/oms/place-order";
                let expected = match is_its_own {
                    true if path == "/api/oms/cancel-order" && query.is_empty() => Err(Refusal::NoOrderId),
                    true if path == "/api/oms/place-order" && !query.is_empty() => Err(Refusal::OrderQuery),
                    is_its_own if is_its_own || may_cancel => Ok(()),
                    _ => Err(Refusal::WrongMethod(allowed)),
                };
                assert_eq!(admitted, expected, "{method} {path}{query}");
                refused += usize::from(admitted.is_err());
            }
        }
    }
    assert!(refused > 80, "{refused}");
    let place = admit("DELETE /v2/api/oms/place-order?orderId=7 HTTP/1.1", &[]).unwrap_err();
    assert_eq!(place.allowed().unwrap().to_string(), "POST");
}

#[test]
fn a_cancel_names_its_order() {
    for query in ["", "?", "?orderId", "?orderId=", "?orderid=7", "?xorderId=7", "?a=orderId=7"] {
        let line = format!("DELETE /v2/api/oms/cancel-order{query} HTTP/1.1");
        let refusal = admit(&line, &[]).unwrap_err();
        assert_eq!(
            (refusal, refusal.allowed().unwrap().to_string()),
            (Refusal::NoOrderId, "DELETE".to_owned())
        );
    }
    for line in [
        "DELETE /v2/api/oms/cancel-order?a=b&orderId=7 HTTP/1.1",
        "DELETE /v2/api/never/heard/of HTTP/1.1",
        "PUT /v2/api/never/heard/of HTTP/1.1",
    ] {
        assert!(admit(line, &[]).is_ok(), "{line}");
    }
}

#[test]
fn a_path_has_one_spelling_or_is_refused() {
    for path in [
        "/v2/api/oms/../oms/orders",
        "/v2/../v2/api/oms/orders",
        "/v2/api/oms/./orders",
        "/v2/api/oms/orders/..",
        "/v2/api/oms/orders/.",
        "/v2/api/oms/%2e%2e/orders",
        "/v2/api/oms/%2E./orders",
        "/v2/api/oms/.%2e/orders",
        "/v2/api/oms%2forders",
        "/v2/api/oms%2Forders",
        "/v2/api/oms%5corders",
        "/v2/api/oms\\orders",
        "/v2/api/oms/orders%00",
        "/v2/api/oms/orders%0d%0aX:y",
        "/v2/api/oms/orders%7f",
        "/v2/api/oms/orders%",
        "/v2/api/oms/orders%2",
        "/v2/api/oms/orders%zz",
        "/v2/api/oms/%252e%252e/orders",
        "/v2/api/oms/orders%25",
        "/v2/api/oms/orders;x=1",
        "/v2/api/oms/orders%3bx=1",
        "/v2/api/oms/orders%3fx=1",
        "/v2/api/oms/orders%23",
        "/v2/api/oms/orders#x",
        "/v2//api/oms/orders",
        "//v2/api/oms/orders",
        "/v2/api/oms/orders/",
        "/v2/api/oms/orders//",
        "/v2/",
        "/v2/api/oms/\"orders",
        "/v2/api/oms/<orders>",
        "/v2/api/oms/{orders}",
        "/v2/api/oms/orders|x",
        "/v2/api/oms/orders^",
        "/v2/api/oms/orders`",
        "/v2/api/oms/orders?x=%",
        "/v2/api/oms/orders?x=%0d%0a",
        "/v2/api/oms/orders?x=\\",
        "/v2/api/oms/orders?x#y",
    ] {
        assert_eq!(admit(&format!("GET {path} HTTP/1.1"), &[]).unwrap_err(), Refusal::Path, "{path}");
    }
    for path in [
        "/",
        "/?x=1",
        "/v2",
        "/v1/api/oms/orders",
        "/V2/api/oms/orders",
        "/v2x/api/oms/orders",
        "/api/oms/orders",
        "/x",
    ] {
        let refused = admit(&format!("GET {path} HTTP/1.1"), &[]).unwrap_err();
        assert_eq!(refused, Refusal::OutsideBase, "{path}");
    }
    for path in
        ["/v2/api-gw/oauth/individual-token-v2x", "/v2/api-gw/x", "/v2/api-gw", "/v2/API-GW/oauth/token"]
    {
        assert_eq!(admit(&format!("POST {path} HTTP/1.1"), &[]).unwrap_err(), Refusal::Login, "{path}");
    }
    for path in ["/v2/%61pi-gw/oauth/authorize", "/v2/api%2Dgw/x"] {
        assert_eq!(admit(&format!("GET {path} HTTP/1.1"), &[]).unwrap_err(), Refusal::Path, "{path}");
    }
    for path in [
        "/v2/api/mkt-data/scrips/symbol-store/NSE%20EQ",
        "/v2/api/oms/orders?a=%2F..&b=c+d",
        "/v2/a/...",
        "/v2/M&M",
    ] {
        assert!(admit(&format!("GET {path} HTTP/1.1"), &[]).is_ok(), "{path}");
    }
}

#[test]
fn a_reader_reads_and_does_nothing_else() {
    let reader = ["Host: localhost:8080", &format!("Authorization: Bearer {READER}")];
    let admit = |line: &str, lines: &[&str]| front().admit(&with_caller(line, &reader, lines)).map(drop);
    for line in [
        "GET /v2/api/oms/orders",
        "GET /v2/api/oms/history",
        "POST /v2/api/oms/basket-margin",
        "POST /v2/api/oms/margin",
        "GET /v2/api/mkt-data/scrips/symbol-store/NSE",
        "GET /v2/api/never/heard/of",
    ] {
        assert_eq!(admit(&format!("{line} HTTP/1.1"), &[]), Ok(()), "{line}");
    }
    for line in [
        "POST /v2/api/oms/place-order",
        "PUT /v2/api/oms/modify-order",
        "DELETE /v2/api/oms/cancel-order?orderId=1",
        "POST /v2/api/never/heard/of",
        "PUT /v2/api/never/heard/of",
        "DELETE /v2/api/never/heard/of",
        "PATCH /v2/api/oms/orders",
        "POST /v2/api/oms/orders",
    ] {
        assert_eq!(admit(&format!("{line} HTTP/1.1"), &[]), Err(Refusal::Scope), "{line}");
    }
    let margin = "POST /v2/api/oms/basket-margin HTTP/1.1";
    assert_eq!(admit(margin, &["x-lane: critical"]), Err(Refusal::Scope));
    assert_eq!(admit(margin, &["x-lane: normal"]), Ok(()));
}

#[test]
fn headers_steer_the_proxy_or_are_refused() {
    for (lines, refusal) in [
        (&["Upgrade: websocket"][..], Refusal::Upgrade),
        (&["Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings"], Refusal::Upgrade),
        (&["Expect: 200-ok"], Refusal::Expectation),
        (&["Content-Encoding: gzip"], Refusal::Encoded),
        (&["Connection: close, Idempotency-Key", "Idempotency-Key: k"], Refusal::Dropped),
        (&["Connection: authorization"], Refusal::Dropped),
        (&["Connection: x-new-order"], Refusal::Dropped),
        (&["Connection: Content-Length"], Refusal::Dropped),
        (&["x-lane: verification"], Refusal::Lane),
        (&["x-lane: Critical"], Refusal::Lane),
        (&["x-lane: bulk", "x-lane: bulk"], Refusal::Repeated),
        (&["Idempotency-Key:"], Refusal::Key),
        (&["Idempotency-Key: a", "Idempotency-Key: b"], Refusal::Repeated),
        (&["x-new-order: true"], Refusal::NewOrder),
        (&["Content-Type: a/b", "Content-Type: c/d"], Refusal::Repeated),
    ] {
        assert_eq!(admit(ORDER, lines).unwrap_err(), refusal, "{lines:?}");
    }
    // A caller that repeats a request by its name must not be left alone with it.
    for line in
        ["PUT /v2/api/oms/modify-order", "POST /v2/api/oms/place-order/bo", "POST /v2/api/never/heard/of"]
    {
        let kept = admit(&format!("{line} HTTP/1.1"), &["Idempotency-Key: k"]);
        assert_eq!(kept.unwrap_err(), Refusal::KeyElsewhere, "{line}");
    }
    for line in
        ["GET /v2/api/oms/orders", "DELETE /v2/api/oms/cancel-order?orderId=1", "POST /v2/api/oms/margin"]
    {
        assert!(admit(&format!("{line} HTTP/1.1"), &["Idempotency-Key: k"]).is_ok(), "{line}");
    }
    let long = format!("Idempotency-Key: {}", "k".repeat(129));
    assert_eq!(admit(ORDER, &[&long]).unwrap_err(), Refusal::Key);
    assert!(
        admit(ORDER, &[&long[..long.len() - 1], "Expect: 100-Continue", "Content-Encoding: identity"])
            .is_ok()
    );
    let order = admit(ORDER, &["x-lane: critical", "x-new-order: 1", "X-Request-Id: 7"]).unwrap();
    assert_eq!((order.lane, order.is_new_order), (Some(Lane::Critical), true));
    assert_eq!(order.request_id.as_deref(), Some("7"));
    let poll = admit(ORDERS, &["x-lane: critical"]).unwrap();
    assert_eq!(poll.lane, Some(Lane::Normal), "a poll holds up no cancel");
    assert_eq!(admit(ORDERS, &["x-lane: bulk"]).unwrap().lane, Some(Lane::Bulk));
}

#[test]
fn only_a_few_headers_are_passed_on() {
    let lines = [
        "Accept: application/json",
        "User-Agent: test",
        "Cookie: a=b",
        "X-Forwarded-For: 10.0.0.1",
        "X-Forwarded-Host: evil.example",
        "Forwarded: for=10.0.0.1",
        "Via: 1.1 x",
        "X-Original-URL: /v2/api/oms/place-order",
        "X-HTTP-Method-Override: DELETE",
        "Accept-Encoding: gzip",
        "TE: trailers",
        "Trailer: X",
        "Keep-Alive: timeout=5",
        "Proxy-Authorization: Basic x",
        "Proxy-Connection: keep-alive",
        "Range: bytes=0-1",
        "Content_Length: 5",
        "x-test-intent: 1",
        "Connection: keep-alive, Accept",
    ];
    let admitted = admit(ORDERS, &lines).unwrap();
    let names: Vec<_> = admitted.headers.keys().map(http::HeaderName::as_str).collect();
    assert_eq!(names, ["user-agent"], "what Connection names is not passed on");
    let admitted = admit(ORDERS, &lines[..2]).unwrap();
    assert_eq!(admitted.headers.len(), 2);
}

#[test]
fn every_refusal_has_a_status_and_words_of_its_own() {
    use Refusal::*;
    let all = [
        Malformed,
        HeadTooLong,
        Version,
        Method,
        WrongMethod(Methods::default()),
        NoOrderId,
        OrderQuery,
        NotAPath,
        Framing,
        UnexpectedBody,
        BodyTooLong,
        Repeated,
        Host,
        Page,
        Token,
        Scope,
        ReadOnly,
        Path,
        OutsideBase,
        Login,
        Upgrade,
        Expectation,
        Dropped,
        Encoded,
        Lane,
        Key,
        KeyElsewhere,
        NewOrder,
    ];
    let mut words = std::collections::HashSet::new();
    for refusal in all {
        assert!(refusal.status().is_client_error() || refusal.status().is_server_error());
        assert!(words.insert(refusal.details()), "{refusal:?}");
        // A quoted string of a structured field (RFC 8941) without escapes.
        assert!(
            refusal.details().bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' || byte == b' ')
        );
        // A client of this stack must take it for a request that was not executed.
        let body = format!(r#"{{"s":"error","msg":"{}"}}"#, refusal.msg());
        let documented = steadfast::spec::is_documented(refusal.status(), body.as_bytes());
        let rows = steadfast::spec::ERRORS.iter().any(|row| row.status == refusal.status());
        assert_eq!(documented, rows, "{refusal:?}");
    }
}

#[test]
fn the_operators_listener_tells_its_own_page_from_others() {
    let visitor = |lines: &[&str]| {
        let bytes = with_caller("GET / HTTP/1.1", &["Host: localhost:8080"], lines);
        front().visitor(&Head::parse(&bytes).unwrap())
    };
    for lines in [&[][..], &["Sec-Fetch-Site: none"]] {
        assert_eq!(visitor(lines), Ok(Visitor::Program), "{lines:?}");
    }
    let own = "Origin: http://localhost:8080";
    for lines in [&[own][..], &["Sec-Fetch-Site: same-origin"], &[own, "Sec-Fetch-Site: same-origin"]] {
        assert_eq!(visitor(lines), Ok(Visitor::OwnPage), "{lines:?}");
    }
    for lines in [
        // Another port of this machine is the same site, and gets the same cookies.
        &["Sec-Fetch-Site: same-site"][..],
        &["Sec-Fetch-Site: cross-site"],
        &["Sec-Fetch-Site: Same-Origin"],
        &["Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: cross-site"],
        &["Origin: http://localhost:8081"],
        &["Origin: http://127.0.0.1:8080"],
        &["Origin: https://localhost:8080"],
        &["Origin: null"],
        &["Origin: http://evil.example", "Sec-Fetch-Site: same-origin"],
        &[own, "Sec-Fetch-Site: same-site"],
    ] {
        assert_eq!(visitor(lines), Err(Refusal::Page), "{lines:?}");
    }
    assert_eq!(visitor(&[own, own]), Err(Refusal::Repeated));
    let rebound =
        with_caller("GET / HTTP/1.1", &["Host: evil.example:8080"], &["Origin: http://evil.example:8080"]);
    assert_eq!(front().visitor(&Head::parse(&rebound).unwrap()), Err(Refusal::Host));
}
