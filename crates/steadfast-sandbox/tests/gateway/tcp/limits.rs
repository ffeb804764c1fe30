use super::{list, order, request, started};
use crate::{
    wire::Server,
    world::{SCRIP_MASTER, World},
};

/// Checks that the next client is served after a misbehaving one.
async fn assert_alive(world: &World, server: &Server) {
    world.pass(std::time::Duration::from_secs(1));
    assert_eq!(server.ask(&list(world)).await.status, 200);
}

#[tokio::test]
async fn a_head_beyond_the_limits_is_refused_and_its_connection_closed() {
    let (world, server) = started(World::new()).await;
    let many: String = (0..100).map(|i| format!("x-{i}: 1\r\n")).collect();
    // Reading stops at 64 KiB; bytes of the last read beyond that are still accepted.
    let long = format!("x: {}\r\n", "a".repeat(1024 * 1024));
    let target = format!("/api/oms/orders?x={}", "a".repeat(1024 * 1024));
    for (case, head, statuses) in [
        ("many headers", request(&world, "GET", "/api/oms/orders", &many, ""), [431, 431]),
        ("a long header", request(&world, "GET", "/api/oms/orders", &long, ""), [431, 431]),
        ("a long target", request(&world, "GET", &target, "", ""), [414, 431]),
        ("a long method", format!("{} /v2 HTTP/1.1\r\n\r\n", "G".repeat(1024 * 1024)), [400, 431]),
    ] {
        let mut wire = server.connect().await;
        wire.send(head).await;
        // The answer may be lost with the connection if bytes were in flight, but it must not be a success.
        if let Ok(answer) = wire.response().await {
            assert!(statuses.contains(&answer.status), "{case}: {}", answer.head);
        }
        let _ = wire.end().await;
        assert_alive(&world, &server).await;
    }
    assert!(world.truth().arrivals.iter().all(|arrival| arrival.status == 200), "none of it arrived");
    server.stop().await;
}

#[tokio::test]
async fn as_many_headers_as_are_allowed_are_allowed() {
    let (world, server) = started(World::new()).await;
    let many: String = (0..60).map(|i| format!("x-{i}: {}\r\n", "b".repeat(500))).collect();
    assert_eq!(server.ask(&request(&world, "GET", "/api/oms/orders", &many, "")).await.status, 200);
    server.stop().await;
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_a_bad_request() {
    let (world, server) = started(World::new()).await;
    for kibibytes in [65, 500, 4_000] {
        let body = format!("symId={}", "a".repeat(kibibytes * 1024));
        let answer = server.ask(&request(&world, "POST", "/api/oms/place-order", "", &body)).await;
        assert_eq!(answer.status, 400, "{kibibytes} KiB");
        assert_eq!(answer.json(), serde_json::json!({"s": "error", "msg": "Bad request"}));
    }
    assert_eq!(world.orders(), 0);
    assert_alive(&world, &server).await;
    server.stop().await;
}

#[tokio::test]
async fn what_is_not_http_is_refused_and_its_connection_closed() {
    let (world, server) = started(World::new()).await;
    let authorized = list(&world);
    let with = |line: &str| authorized.replacen("host: sandbox", line, 1);
    for (case, bytes) in [
        ("no request line", b"\x00\x01\x02\x03\r\n\r\n".to_vec()),
        ("a tls hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n".to_vec()),
        ("an http/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
        ("no version", b"GET /v2/api/oms/orders\r\n\r\n".to_vec()),
        ("an unknown version", b"GET /v2/api/oms/orders HTTP/9.9\r\n\r\n".to_vec()),
        ("a space in the target", b"GET /v2/api oms HTTP/1.1\r\n\r\n".to_vec()),
        ("a nul in a header", with("host: sand\0box").into_bytes()),
        ("a space before the colon", with("host : sandbox").into_bytes()),
        ("a header without a name", with(": sandbox").into_bytes()),
        ("a header without a colon", with("sandbox").into_bytes()),
        ("two lengths", with("content-length: 5").into_bytes()),
        ("a negative length", authorized.replacen("content-length: 0", "content-length: -1", 1).into_bytes()),
        (
            "an overflowing length",
            authorized.replacen("length: 0", "length: 99999999999999999999", 1).into_bytes(),
        ),
        ("chunked but not last", with("transfer-encoding: chunked, gzip").into_bytes()),
    ] {
        let mut wire = server.connect().await;
        wire.send(&bytes).await;
        match wire.response().await {
            Ok(answer) => assert_eq!(answer.status, 400, "{case}: {}", answer.head),
            Err(error) => assert_ne!(error.kind(), std::io::ErrorKind::TimedOut, "{case}"),
        }
        let _ = wire.end().await;
        assert_alive(&world, &server).await;
    }
    assert!(world.truth().arrivals.iter().all(|arrival| arrival.status == 200), "none of it arrived");
    server.stop().await;
}

#[tokio::test]
async fn a_body_that_is_no_chunks_is_a_bad_request() {
    let (world, server) = started(World::new()).await;
    let head = order(&world);
    let (head, body) = head.split_once("\r\n\r\n").expect("a head");
    let head = head.replace(&format!("content-length: {}", body.len()), "transfer-encoding: chunked");
    for chunks in
        ["zz\r\nabc\r\n0\r\n\r\n", "-1\r\n\r\n", "fffffffffffffffff\r\n", "5\r\nabcdefgh\r\n0\r\n\r\n"]
    {
        let answer = server.ask(&format!("{head}\r\n\r\n{chunks}")).await;
        assert_eq!(answer.status, 400, "{chunks:?}");
    }
    assert_eq!(world.orders(), 0);
    server.stop().await;
}

#[tokio::test]
async fn a_large_scrip_master_is_streamed_in_small_pieces() {
    let world = World::of(steadfast_sandbox::Sandbox::builder().large_scrip_master(700_000));
    let (world, server) = started(world).await;
    let answer = server.ask(&request(&world, "GET", SCRIP_MASTER, "", "")).await;
    assert!(answer.status == 200 && answer.whole);
    assert!(answer.body.len() > 50 * 1024 * 1024, "{} bytes", answer.body.len());
    assert!(answer.body.starts_with(br#"{"s":"ok","d":[{"#) && answer.body.ends_with(b"}]}"));
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_reads_slowly_is_not_sent_more_than_it_takes() {
    use http_body::Body as _;
    let world = World::of(steadfast_sandbox::Sandbox::builder().large_scrip_master(u64::MAX));
    let request = http::Request::get("http://sandbox.local/v2/api/mkt-data/scrips/master")
        .header("authorization", format!("Bearer {}:{}", world.user.api_key, world.user.access_token))
        .body(http_body_util::Empty::new())
        .expect("a request");
    let answer = tower::ServiceExt::oneshot(world.sandbox.gateway(), request).await.expect("an answer");
    assert_eq!(answer.body().size_hint().exact(), None);
    let mut body = answer.into_body();
    for _ in 0..50 {
        let frame = http_body_util::BodyExt::frame(&mut body).await.expect("a frame").expect("no error");
        let piece = frame.into_data().expect("data");
        assert!((1..=128 * 1024).contains(&piece.len()), "{}", piece.len());
    }
}
