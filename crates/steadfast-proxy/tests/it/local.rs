//! The sidecar's own answers: the login of programs that insist on one, and the description of its paths.

use roas::{
    v3_1::spec::Spec,
    validation::{Options, Validate},
};
use serde_json::Value;
use steadfast_proxy::OrdersOf;
use steadfast_sandbox::Sandbox;

use crate::world::{Answer, FORM, READER, TOKEN, World};

const LOGIN: &str = "POST /v2/api-gw/oauth/individual-token-v2 HTTP/1.1";

/// Logs in as a program does that knows the service alone.
async fn login(world: &World, form: &str, lines: &str) -> Answer {
    let length = form.len();
    let host = if lines.contains("Host:") { String::new() } else { format!("Host: {}\r\n", world.address) };
    let request = format!(
        "{LOGIN}\r\n{host}Authorization: Bearer some-api-key\r\n{lines}\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n\r\n{form}"
    );
    world.ask(request.as_bytes()).await
}

#[tokio::test]
async fn a_program_that_insists_on_a_login_gets_one_and_trades_with_it() {
    let world = World::new(Sandbox::builder()).await;
    let before = world.sandbox.state().arrivals.len();
    let given =
        login(&world, &format!("password={TOKEN}&twoFa=123456&twoFaTyp=totp&client_id=SB1"), "").await;
    assert_eq!(given.status, 200, "{given:?}");
    let record: Value = serde_json::from_str(&given.body).unwrap();
    assert!(record["s"].is_null(), "no envelope, as of the service: {record}");
    assert_eq!(
        (record["token_type"].as_str(), record["expires_in"].as_u64()),
        (Some("bearer"), Some(86_400))
    );
    let token = record["access_token"].as_str().unwrap();
    assert_eq!(given.header("cache-control"), Some("no-store"));
    // As the program sends it to the service.
    let order = String::from_utf8(world.order(&[])).unwrap();
    let order = order.replace(&format!("Bearer {TOKEN}"), &format!("Bearer some-api-key:{token}"));
    assert_eq!(world.ask(order.as_bytes()).await.status, 200);
    assert_eq!(world.placed(), 1);
    let arrivals = &world.sandbox.state().arrivals[before..];
    assert!(arrivals.iter().all(|it| !format!("{it:?}").contains("individual")), "{arrivals:?}");
    let reader = login(&world, &format!("password={READER}&twoFaTyp=otp"), "").await;
    assert!(reader.body.contains(READER), "{reader:?}");
}

#[tokio::test]
async fn a_wrong_login_is_the_services_error_and_never_reaches_it() {
    let world = World::new(Sandbox::builder()).await;
    for (form, lines, status, msg) in [
        ("password=wrong-0123456789abcdef&twoFaTyp=totp", "", 401, "Unauthorized"),
        ("password=&twoFaTyp=totp", "", 401, "Unauthorized"),
        ("twoFaTyp=totp", "", 401, "Unauthorized"),
        ("password=trade-0123456789abcdef", "", 400, "Input validation failed"),
        (
            "password=trade-0123456789abcdef&twoFaTyp=totp",
            "Origin: http://evil.example\r\n",
            403,
            "Forbidden",
        ),
        ("password=trade-0123456789abcdef&twoFaTyp=totp", "Host: evil.example\r\n", 403, "Forbidden"),
        ("password=trade-0123456789abcdef&twoFaTyp=totp", "Upgrade: h2c\r\n", 501, ""),
    ] {
        let answer = login(&world, form, lines).await;
        assert_eq!(answer.status, status, "{form} {lines}: {answer:?}");
        let envelope: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(envelope["s"], "error");
        assert!(envelope["msg"].as_str().unwrap().starts_with(msg), "{form}: {answer:?}");
        assert!(!format!("{answer:?}").contains("0123456789abcdef"), "{answer:?}");
    }
    // In another spelling it is no login of this sidecar, and none of the service's either.
    for target in
        ["/v2/api-gw/oauth/individual-token-v2?x=1", "/v2/api-gw/oauth/token", "/v2/API-GW/oauth/token"]
    {
        let request = world.request(&format!("POST {target} HTTP/1.1"), &[], "password=x&twoFaTyp=otp");
        assert_eq!(world.ask(&request).await.status, 404, "{target}");
    }
    assert_eq!(world.arrivals(), 0);
}

#[tokio::test]
async fn a_stranger_is_told_of_a_sandbox_and_of_no_account() {
    for (whose, is_for_strangers) in
        [(OrdersOf::Account("a1".to_owned()), false), (OrdersOf::Sandbox("s1".to_owned()), true)]
    {
        let told = whose.clone();
        let world = World::that(Sandbox::builder(), |proxy| proxy.orders_of(told)).await;
        let ask = async |token: &str, lines: &[&str]| {
            let request = String::from_utf8(world.request("GET /openapi.json HTTP/1.1", lines, "")).unwrap();
            let answer = world.ask(request.replace(TOKEN, token).as_bytes()).await;
            (answer.status, answer.header("x-steadfast-orders-of").map(str::to_owned))
        };
        let value = match &whose {
            OrdersOf::Sandbox(name) => format!("sandbox {name}"),
            _ => "account a1".to_owned(),
        };
        assert_eq!(ask(READER, &[]).await, (200, Some(value.clone())));
        let stranger = ask("wrong-0123456789abcdef", &[]).await;
        assert_eq!(stranger, (401, is_for_strangers.then_some(value)));
        assert_eq!(ask(TOKEN, &["Origin: http://evil.example"]).await, (403, None), "a web page");
        assert_eq!(world.arrivals(), 0);
    }
}

#[tokio::test]
async fn the_description_is_valid_and_says_what_is_different_here() {
    let world = World::new(Sandbox::builder()).await;
    let ask = async |token: &str| {
        let request = String::from_utf8(world.request("GET /openapi.json HTTP/1.1", &[], "")).unwrap();
        world.ask(request.replace(TOKEN, token).as_bytes()).await
    };
    assert_eq!(ask("wrong-0123456789abcdef").await.status, 401, "a stranger learns nothing");
    let answer = ask(READER).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    let document: Value = serde_json::from_str(&answer.body).unwrap();
    let spec: Spec = serde_json::from_value(document.clone()).unwrap();
    spec.validate(Options::new(), None).unwrap_or_else(|error| panic!("{error}"));

    let paths = document["paths"].as_object().unwrap();
    let place = &paths["/api/oms/place-order"]["post"];
    let headers = |operation: &Value| -> Vec<String> {
        let all = operation["parameters"].as_array().cloned().unwrap_or_default();
        let all =
            all.iter().filter(|it| it["in"] == "header").map(|it| it["name"].as_str().unwrap().to_owned());
        all.collect()
    };
    assert_eq!(headers(place), ["idempotency-key", "x-new-order", "x-lane", "x-request-id"]);
    for status in ["200", "401", "403", "409", "422", "502", "503", "504"] {
        assert!(place["responses"][status].is_object(), "{status}");
    }
    let list = &paths["/api/oms/orders"]["get"];
    assert_eq!(headers(list), ["x-lane", "x-request-id"]);
    assert!(list["responses"]["409"].is_null());
    let scheme = &document["components"]["securitySchemes"]["token"];
    assert!(scheme["bearerFormat"].as_str().unwrap().contains("local token"), "{scheme}");
    // Each path that it describes is one of the sidecar's, and no other login is.
    for (path, item) in paths {
        let is_login = path.contains("/api-gw/");
        assert!(!is_login || path.ends_with("individual-token-v2"), "{path}");
        for method in item.as_object().unwrap().keys() {
            let target = path.replace("{scripGroup}", "NSE_EQ");
            let line = format!("{} /v2{target} HTTP/1.1", method.to_uppercase());
            let status = world.ask(&world.request(&line, &[], "")).await.status;
            assert!(![404, 501].contains(&status) || !is_login, "{line}: {status}");
            assert_ne!(status, 403, "{line}");
        }
    }
}

#[tokio::test]
async fn the_ground_truth_of_tests_passes_to_a_sandbox_alone() {
    for is_sandbox in [false, true] {
        let world =
            World::that(Sandbox::builder(), |it| if is_sandbox { it.pass_test_intent() } else { it }).await;
        let order = world.request("POST /v2/api/oms/place-order HTTP/1.1", &["x-test-intent: one"], FORM);
        assert_eq!(world.ask(&order).await.status, 200);
        let known = world.sandbox.state().orders.iter().any(|order| format!("{order:?}").contains("\"one\""));
        assert_eq!(known, is_sandbox);
    }
}
