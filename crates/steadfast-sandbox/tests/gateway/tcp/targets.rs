use super::{request, started};
use crate::world::{MARKET, World};

#[tokio::test]
async fn methods_of_no_endpoint_are_refused() {
    let (world, server) = started(World::new()).await;
    for method in ["OPTIONS", "TRACE", "PATCH", "PUT", "POST", "DELETE", "get", "PROPFIND", "X"] {
        let answer = server.ask(&request(&world, method, "/api/oms/orders", "", "")).await;
        assert_eq!(answer.status, 405, "{method}");
        assert_eq!(answer.json(), serde_json::json!({"s": "error", "msg": "Method not allowed"}), "{method}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_head_has_an_answer_without_a_body_and_leaves_the_connection_usable() {
    let (world, server) = started(World::new()).await;
    let mut wire = server.connect().await;
    wire.send(request(&world, "HEAD", "/api/oms/orders", "", "")).await;
    assert_eq!(wire.response_to("HEAD").await.expect("an answer").status, 405);
    wire.send(request(&world, "GET", "/api/oms/orders", "", "")).await;
    assert_eq!(wire.response().await.expect("an answer").status, 200);
    server.stop().await;
}

#[tokio::test]
async fn the_gateway_is_nobodys_proxy() {
    let (world, server) = started(World::new()).await;
    for head in [
        "CONNECT example.com:443 HTTP/1.1\r\nhost: example.com:443\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nhost: sandbox\r\n\r\n",
        "GET http://example.com/ HTTP/1.1\r\nhost: example.com\r\n\r\n",
        "GET http://example.com HTTP/1.1\r\nhost: example.com\r\n\r\n",
    ] {
        let answer = server.ask(head).await;
        assert_eq!(answer.status, 404, "{head}");
        assert_eq!(answer.json(), serde_json::json!({"s": "error", "msg": "Resource not found"}), "{head}");
    }
    assert_eq!(world.orders(), 0);
    server.stop().await;
}

#[tokio::test]
async fn a_target_in_absolute_form_is_read_like_its_path() {
    let (world, server) = started(World::new()).await;
    let absolute = |request: String| request.replacen(" /v2", " http://other.example:1/v2", 1);
    let answer = server.ask(&absolute(request(&world, "POST", "/api/oms/place-order", "", MARKET))).await;
    assert_eq!(answer.status, 200);
    let answer = server.ask(&absolute(request(&world, "GET", "/api/oms/orders?x=1", "", ""))).await;
    assert_eq!(answer.json()["d"].as_array().map(Vec::len), Some(1));
    server.stop().await;
}

#[tokio::test]
async fn paths_are_taken_as_they_are_written() {
    let (world, server) = started(World::new()).await;
    for (path, status) in [
        ("/api/oms/orders", 200),
        ("/api/oms/orders?", 200),
        ("/api/oms/orders?x=%41+b&y", 200),
        ("/api/mkt-data/scrips/symbol-store/NSE%5FEQ", 200),
        // §7, 404: paths are case-sensitive, and no other spelling names the same resource.
        ("/api/oms/%6frders", 404),
        ("/api/oms/Orders", 404),
        ("/api/oms/orders/", 404),
        ("/api//oms/orders", 404),
        ("/api/oms/../oms/orders", 404),
        ("/api/oms/%2e%2e/oms/orders", 404),
        ("/api/oms/./orders", 404),
        ("/../v2/api/oms/orders", 404),
        ("/api/oms/orders;v=1", 404),
        ("/api/mkt-data/scrips/symbol-store/", 404),
        ("/api/mkt-data/scrips/symbol-store/a/b", 404),
        ("", 404),
        ("/", 404),
        // §7, 400: a malformed URL, an unparseable query.
        ("/api/oms/orders%", 400),
        ("/api/oms/%zz", 400),
        ("/api/oms/%z1", 400),
        ("/api/oms/%1z", 400),
        ("/api/oms/%ff", 400),
        ("/api/oms/%00", 400),
        ("/api/oms/orders?%", 400),
        ("/api/oms/orders?x=%f", 400),
        ("/api/oms/orders?x=%ff", 400),
        ("/api/oms/orders?=1", 400),
    ] {
        world.pass(std::time::Duration::from_millis(200));
        let answer = server.ask(&request(&world, "GET", path, "", "")).await;
        assert_eq!(answer.status, status, "{path}");
        assert!(answer.json()["s"].is_string(), "{path}");
    }
    server.stop().await;
}
