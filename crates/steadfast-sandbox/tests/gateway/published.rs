//! The requests of a published client of a service with the same paths, field for field as it writes them.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use steadfast_sandbox::Sandbox;

use crate::world::{LOGIN, ORDERS, PLACE_ORDER, World};

const SYMBOLS: &str = "/api/mkt-data/scrips/symbol-store";
const BASKET: &str = "/api/oms/basket-margin";
const MARGIN: &str = "/api/oms/margin";

/// The orders that it places, with the fields of each kind.
const PLACED: [(&str, &str); 5] = [
    (
        "",
        "symId=EQT_INFY_EQ_NSE&qty=10&side=buy&type=limit&product=delivery&limitPrice=100.05&trigPrice=0&validity=day\
         &discQty=0&amo=False&mktProt=0&remarks=mine",
    ),
    (
        "/gtt",
        "symId=EQT_INFY_EQ_NSE&type=limit&side=buy&product=delivery&trigPricePer=1&trigPrice=99&qty=1&limitPrice=100",
    ),
    (
        "/oco",
        "symId=EQT_INFY_EQ_NSE&side=sell&stopLossType=limit&stopLossProduct=delivery&stopTrigPrice=90&stopQty=1\
         &stopPrice=89&targetType=limit&targetProduct=delivery&targetTrigPrice=110&targetQty=1&targetPrice=111",
    ),
    (
        "/bo",
        "symId=EQT_INFY_EQ_NSE&qty=1&side=buy&type=limit&limitPrice=100&trigPrice=0&mktProt=0&stopTrigPrice=95\
         &targetPrice=110&trailingStopPrice=1&remarks=b",
    ),
    (
        "/co",
        "symId=EQT_INFY_EQ_NSE&qty=1&side=buy&type=limit&limitPrice=100&trigPrice=0&mktProt=0&stopTrigPrice=95&remarks=c",
    ),
];

fn world() -> World {
    World::of(Sandbox::builder().published_client())
}

async fn understood(world: &World, method: Method, path: &str, form: &str) -> Value {
    let call = world.call(method, path);
    let answer = if form.is_empty() { call } else { call.form(form) }.send().await;
    let said = answer.json();
    assert!(
        answer.status() == 200 && matches!(said["s"].as_str(), Some("ok" | "no-data")),
        "{path}: {answer}"
    );
    said["d"].clone()
}

#[tokio::test(start_paused = true)]
async fn its_orders_of_every_kind_are_placed_changed_and_ended() {
    let world = world();
    for (kind, form) in PLACED {
        let id =
            understood(&world, Method::POST, &format!("{PLACE_ORDER}{kind}"), form).await["orderId"].clone();
        let id = id.as_str().expect("an id");
        let change = format!("{form}&orderId={id}");
        understood(&world, Method::PUT, &format!("/api/oms/modify-order{kind}"), &change).await;
        let (method, path, form) = match kind {
            "" => (Method::DELETE, format!("/api/oms/cancel-order?orderId={id}"), String::new()),
            "/gtt" | "/oco" => {
                (Method::DELETE, format!("/api/oms/cancel-order{kind}?orderNo={id}"), String::new())
            }
            _ => (Method::POST, "/api/oms/exit-order".to_owned(), format!("orderId={id}&product=bracket")),
        };
        understood(&world, method, &path, &form).await;
    }
    // A second has room for ten requests.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let bought = "symId=EQT_INFY_EQ_NSE&qty=1&side=buy&type=market&product=intraday&validity=day";
    understood(&world, Method::POST, PLACE_ORDER, bought).await;
    let converted = "symId=EQT_INFY_EQ_NSE&qty=1&fromProduct=intraday&toProduct=delivery&side=buy";
    understood(&world, Method::POST, "/api/oms/convert-position", converted).await;
}

#[tokio::test(start_paused = true)]
async fn its_reads_are_answered() {
    let world = world();
    for path in [
        "/api/oms/orders?symDetails=true",
        "/api/oms/orders/gtt",
        "/api/oms/trades?symDetails=true",
        "/api/oms/positions?symDetails=true",
        "/api/oms/holdings?symDetails=true",
        "/api/oms/history?orderId=260000000001",
        "/api/oms/limits",
        "/api/account/details",
        "/api/mkt-data/chart/interval-data?from=1&to=2&interval=5&id=EQT_INFY_EQ_NSE",
    ] {
        understood(&world, Method::GET, path, "").await;
    }
}

/// Its models read the token at the top of the answer.
#[tokio::test(start_paused = true)]
async fn its_login_names_no_client_and_is_answered_with_the_bare_token() {
    let world = world();
    let form = format!("password={}&twoFa={}&twoFaTyp=totp", world.user.password, world.sandbox.totp_now());
    let answer =
        world.post(LOGIN, form).authorization(&format!("Bearer {}", world.user.api_key)).send().await;
    assert!(answer.json()["access_token"].is_string(), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn it_asks_for_margins_without_a_validity_and_for_a_baskets_in_json() {
    let world = world();
    let order = "symId=EQT_INFY_EQ_NSE&qty=1&side=buy&type=limit&product=delivery&limitPrice=100&trigPrice=0";
    let one = understood(&world, Method::POST, MARGIN, order).await;
    let order = json!({
        "symId": "EQT_INFY_EQ_NSE", "qty": 1, "side": "buy", "type": "limit", "product": "delivery", "limitPrice": 100.0,
        "trigPrice": null,
    });
    let basket = json!({"basketOrders": [order, order]}).to_string();
    let both = world.post(BASKET, "").body("application/json", &*basket).send().await.json()["d"].clone();
    assert_eq!((one["margin"].as_str(), both["margin"].as_str()), (Some("20.0"), Some("40.00")));

    let plain = World::new().post(BASKET, "").body("application/json", basket).send().await;
    assert_eq!(plain.error(), (400, "Bad request".to_owned()), "the specification has forms only");
    for body in ["", "[]", "{}", r#"{"basketOrders":[7]}"#] {
        let refused = world.post(BASKET, "").body("application/json", body).send().await;
        assert_eq!(refused.status(), 400, "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn it_reads_symbols_without_credentials_and_nothing_else() {
    let world = world();
    let groups = world.get(SYMBOLS).without_authorization().send().await.json()["d"]["symbolStore"].clone();
    let group = groups[0]["name"].as_str().expect("a group");
    assert!(
        !world.get(&format!("{SYMBOLS}/{group}")).without_authorization().send().await.records().is_empty()
    );
    assert_eq!(world.get(SYMBOLS).authorization("Bearer wrong:wrong").send().await.status(), 401);
    assert_eq!(world.get(ORDERS).without_authorization().send().await.status(), 401);
    let plain = World::new().get(&format!("{SYMBOLS}/{group}")).without_authorization().send().await;
    assert_eq!(plain.status(), 401);
}

#[tokio::test(start_paused = true)]
async fn it_ends_a_session_without_a_body() {
    let world = world();
    assert_eq!(world.call(Method::POST, "/api/account/logout").send().await.status(), 200);
    assert_eq!(world.list().await.status(), 401);
}
