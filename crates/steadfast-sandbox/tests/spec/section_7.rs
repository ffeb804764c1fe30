//! §7 Errors: causes. Faults on demand have a module of their own.

use std::time::Duration;

use http::Method;

use crate::{
    answer::{Answer, BAD_REQUEST, FORBIDDEN, INVALID_INPUT, METHOD_NOT_ALLOWED, NOT_FOUND, UNAUTHORIZED},
    endpoints::{
        self, CANCEL_ORDER, MODIFY_ORDER, ORDERS, PLACE_ORDER, QUOTES, SCRIP_GROUP, SYMBOL_STORE, TOKEN,
    },
    form::{Form, limit_order},
    world::{EQUITY, World, ip},
};

#[tokio::test(start_paused = true)]
async fn spec_7_errors_carry_exactly_s_and_msg() {
    let world = World::new();
    let stranger = world.get(ORDERS).without_authorization();
    let errors = [
        (world.post(PLACE_ORDER, &Form::default()), 400, INVALID_INPUT),
        (world.post(PLACE_ORDER, &limit_order(EQUITY)).without_content_type(), 400, BAD_REQUEST),
        (stranger, 401, UNAUTHORIZED),
        (world.get("/api/oms/nothing"), 404, NOT_FOUND),
        (world.get(PLACE_ORDER), 405, METHOD_NOT_ALLOWED),
    ];
    for (call, status, msg) in errors {
        let answer = world.calmly(&call).await;
        assert_eq!(answer.status, status, "{answer}");
        assert_eq!(answer.json(), serde_json::json!({"s": "error", "msg": msg}));
    }
}

#[tokio::test(start_paused = true)]
async fn spec_7_an_unparseable_query_is_a_bad_request() {
    let world = World::new();
    for broken in ["%", "%4", "%zz", "abc%", "%u0041"] {
        let query = format!("orderId={broken}");
        world.calmly(&world.delete(CANCEL_ORDER).raw_query(&query)).await.assert_error(400, BAD_REQUEST);
        let query = format!("symId={broken}");
        world.calmly(&world.get(QUOTES).raw_query(&query)).await.assert_error(400, BAD_REQUEST);
    }
    world.calmly(&world.get(QUOTES).query("symId", EQUITY)).await.payload();
}

#[tokio::test(start_paused = true)]
async fn spec_7_an_unparseable_body_is_a_bad_request() {
    let world = World::new();
    let good = limit_order(EQUITY).encoded();
    let broken: [Vec<u8>; 5] = [
        format!("{good}&remark=%").into_bytes(),
        format!("{good}&remark=%4").into_bytes(),
        format!("{good}&remark=%zz").into_bytes(),
        [good.as_bytes(), b"&remark=\xff\xfe"].concat(),
        good.replace("side=buy", "side=%bu").into_bytes(),
    ];
    for body in broken {
        let call = world.post(PLACE_ORDER, &Form::default()).body(body.clone());
        world.calmly(&call).await.assert_error(400, BAD_REQUEST);
        let call = world.exchange(&Form::default()).body(body);
        world.calmly(&call).await.assert_error(400, BAD_REQUEST);
    }
    assert_eq!(world.orders_in_the_book(), 0);
    world.calmly(&world.post(PLACE_ORDER, &Form::default()).body(good)).await.payload();
}

#[tokio::test(start_paused = true)]
async fn spec_7_a_malformed_url_is_a_bad_request() {
    let world = World::new();
    for broken in ["%zz", "%", "NSE%4"] {
        let call = world.get(&format!("{SYMBOL_STORE}/{broken}"));
        world.calmly(&call).await.assert_error(400, BAD_REQUEST);
    }
    world.calmly(&world.get(SCRIP_GROUP)).await.payload();
}

#[tokio::test(start_paused = true)]
async fn spec_7_every_cause_of_401_reads_the_same() {
    let world = World::new();
    let dying = world.log_in().await;
    world.pass(Duration::from_secs(24 * 60 * 60));
    // The session from the start has ended too; the causes below require a valid one.
    let living = world.log_in().await;
    let old_code = world.login_form();
    world.pass(Duration::from_secs(120));
    let login = || world.login_form();

    let causes = [
        ("wrong client_id", world.individual_token(&login().with("client_id", "wrong"))),
        ("wrong password", world.individual_token(&login().with("password", "wrong"))),
        ("wrong twoFa", world.individual_token(&login().with("twoFa", "000000"))),
        ("twoFaTyp of the other kind", world.individual_token(&login().with("twoFaTyp", "otp"))),
        ("expired code", world.individual_token(&old_code)),
        ("expired token", world.get(ORDERS).bearer(&dying)),
        ("header missing", world.get(ORDERS).without_authorization()),
        ("header malformed", world.get(ORDERS).authorization("Bearer")),
        ("wrong client_secret", world.exchange(&world.exchange_form("any").with("client_secret", "wrong"))),
    ];
    let mut answers: Vec<(&str, Answer)> = Vec::new();
    for (cause, call) in causes {
        answers.push((cause, world.calmly(&call).await));
    }
    assert!(world.is_alive(&living).await);
    world.sandbox.whitelist(&world.user.client_id, Some(vec![ip(1)]));
    answers.push(("IP not whitelisted", world.calmly(&world.get(ORDERS).bearer(&living)).await));

    let first = answers[0].1.body.clone();
    for (cause, answer) in answers {
        answer.assert_error(401, UNAUTHORIZED);
        assert_eq!(answer.body, first, "{cause} can be told apart");
    }
}

#[tokio::test(start_paused = true)]
async fn spec_7_another_users_order_is_forbidden() {
    let world = World::new();
    let theirs = world.post(PLACE_ORDER, &limit_order(EQUITY)).bearer(&world.other.session);
    let id = world.calmly(&theirs).await.payload()["orderId"].as_str().expect("an id").to_owned();

    let cancel = world.delete(CANCEL_ORDER).query("orderId", &id);
    world.calmly(&cancel).await.assert_error(403, FORBIDDEN);
    let change = world.put(MODIFY_ORDER, &limit_order(EQUITY).with("orderId", &id));
    world.calmly(&change).await.assert_error(403, FORBIDDEN);
    world.calmly(&cancel.bearer(&world.other.session)).await.payload();
}

#[tokio::test(start_paused = true)]
async fn spec_7_an_unauthorised_segment_is_forbidden() {
    let world = World::new();
    let known = world.instruments().await;
    for symbol in [&known.future, &known.option] {
        let order = limit_order(symbol).with("product", "normal");
        let theirs = world.post(PLACE_ORDER, &order).bearer(&world.other.session);
        world.calmly(&theirs).await.assert_error(403, FORBIDDEN);
        world.placed(&order).await;
    }
    assert_eq!(world.orders_in_the_book(), 2, "the first user's two orders, and none of the other's");
}

#[tokio::test(start_paused = true)]
async fn spec_7_an_unknown_identity_is_never_forbidden() {
    let world = World::new();
    let known = world.instruments().await;
    let order = limit_order(&known.future).with("product", "normal");
    let header = format!("Bearer {}:nonsense", world.other.api_key);
    let call = world.post(PLACE_ORDER, &order).authorization(&header);
    world.calmly(&call).await.assert_error(401, UNAUTHORIZED);
}

#[tokio::test(start_paused = true)]
async fn spec_7_wrong_paths_are_not_found() {
    let world = World::new();
    let wrong = [
        "/",
        "/api",
        "/api/oms",
        "/api/oms/order",
        "/api/oms/place_order",
        "/api/oms/placeorder",
        "/oms/orders",
        "/api/orders",
        "/api/oms/orders/extra",
        "/api/api-gw/oauth/token",
        "/api-gw/oauth/individual-token",
        "/api-gw/oauth/individual-token-v3",
        "/api/mkt-data/scrips",
        "/v2/api/oms/orders",
    ];
    for path in wrong {
        for method in [Method::GET, Method::POST, Method::PUT, Method::DELETE] {
            let call = world.request(method, path).form(&limit_order(EQUITY)).query("orderId", "any");
            world.calmly(&call).await.assert_error(404, NOT_FOUND);
        }
    }
    assert_ne!(world.calmly(&world.get(ORDERS)).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn spec_7_paths_are_case_sensitive() {
    let world = World::new();
    for endpoint in endpoints::all() {
        let upper = endpoint.path.to_ascii_uppercase();
        let capital = endpoint.path.replacen("/api", "/Api", 1);
        let (head, tail) = endpoint.path.rsplit_once('/').expect("a path");
        // The last segment of the symbol store is a parameter, whose values are not shown.
        let last = if endpoint.path.starts_with(SYMBOL_STORE) {
            format!("{}/{tail}", head.to_ascii_uppercase())
        } else {
            format!("{head}/{}{}", tail[..1].to_ascii_uppercase(), &tail[1..])
        };
        for path in [upper, capital, last] {
            let call = world.request(endpoint.method.clone(), &path).form(&limit_order(EQUITY));
            world.calmly(&call.query("orderId", "any")).await.assert_error(404, NOT_FOUND);
        }
        assert_ne!(world.calmly(&world.call(&endpoint)).await.status, 404, "{endpoint:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn spec_7_broken_encoding_is_no_missing_field() {
    let world = World::new();
    let broken = world.post(TOKEN, &Form::default()).body("code=%zz").without_authorization();
    world.calmly(&broken).await.assert_error(400, BAD_REQUEST);
    let missing = world.post(TOKEN, &Form::default()).without_authorization();
    world.calmly(&missing).await.assert_error(400, INVALID_INPUT);
}
