//! The endpoints: method, path and header of each.

use http::StatusCode;
use steadfast::{Operation, spec::Endpoint};
use steadfast_sandbox::Sandbox;

use crate::{
    wire::ok,
    world::{KEY, TOKEN, World, order_with, sandbox},
};

/// The contents of the `Authorization` header.
#[derive(Clone, Copy)]
enum Header {
    Nothing,
    KeyOnly,
    Full,
}

const ROWS: [(Endpoint, &str, &str, Header); 16] = [
    (Endpoint::Authorize, "GET", "/api-gw/oauth/authorize", Header::Nothing),
    (Endpoint::Token, "POST", "/api-gw/oauth/token", Header::Nothing),
    (Endpoint::IndividualToken, "POST", "/api-gw/oauth/individual-token-v2", Header::KeyOnly),
    (Endpoint::PlaceOrder, "POST", "/api/oms/place-order", Header::Full),
    (Endpoint::Orders, "GET", "/api/oms/orders", Header::Full),
    (Endpoint::History, "GET", "/api/oms/history", Header::Full),
    (Endpoint::CancelOrder, "DELETE", "/api/oms/cancel-order", Header::Full),
    (Endpoint::BasketMargin, "POST", "/api/oms/basket-margin", Header::Full),
    (Endpoint::OrderMargin, "POST", "/api/oms/margin", Header::Full),
    (Endpoint::SymbolStore, "GET", "/api/mkt-data/scrips/symbol-store/NSE_EQ", Header::Full),
    (Endpoint::ScripMaster, "GET", "/api/mkt-data/scrips/master", Header::Full),
    (Endpoint::ModifyOrder, "PUT", "/api/oms/modify-order", Header::Full),
    (Endpoint::Quotes, "GET", "/api/mkt-data/quotes", Header::Full),
    (Endpoint::Positions, "GET", "/api/account/positions", Header::Full),
    (Endpoint::Holdings, "GET", "/api/account/holdings", Header::Full),
    (Endpoint::Funds, "GET", "/api/account/funds", Header::Full),
];

fn call_of(endpoint: Endpoint) -> Operation {
    match endpoint {
        Endpoint::PlaceOrder => Operation::place_order(&order_with(&[])),
        Endpoint::CancelOrder => Operation::cancel_order("42"),
        Endpoint::SymbolStore => Operation::symbols("NSE_EQ"),
        other => Operation::new(other),
    }
}

#[tokio::test(start_paused = true)]
async fn spec_4_1_client_each_endpoint_is_called_by_its_method_path_and_header() {
    assert!(Endpoint::SPECIFIED.iter().all(|endpoint| ROWS.iter().any(|row| row.0 == *endpoint)));
    for (endpoint, method, path, header) in ROWS {
        let world = World::scripted([ok(r#"{"orderId":"1","msg":"x"}"#)]);
        world.send(&call_of(endpoint)).await.unwrap();
        let seen = world.wire.only_to(path);
        assert_eq!(seen.method.as_str(), method, "{path}");
        let full = format!("Bearer {KEY}:{TOKEN}");
        let key_only = format!("Bearer {KEY}");
        let expected = match header {
            Header::Nothing => None,
            Header::KeyOnly => Some(key_only.as_str()),
            Header::Full => Some(full.as_str()),
        };
        assert_eq!(seen.authorization(), expected, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn spec_4_1_client_each_protected_endpoint_is_found_and_admitted_by_the_gateway() {
    let sandbox = sandbox(Sandbox::builder());
    let world = World::at(&sandbox);
    // Far from the market, so that it stays open until it is changed and cancelled.
    let order = order_with(&[("limitPrice", "0.05")]);
    let order_id = sandbox.place_foreign(&order);
    let modified = order.form().with("orderId", order_id.as_str());
    for call in [
        Operation::place_order(&order),
        Operation::orders(),
        Operation::new(Endpoint::History),
        Operation::new(Endpoint::BasketMargin),
        Operation::new(Endpoint::OrderMargin).form(order.form()),
        Operation::new(Endpoint::ModifyOrder).form(modified),
        Operation::cancel_order(&order_id),
        Operation::symbols("NSE_EQ"),
        Operation::new(Endpoint::ScripMaster),
        Operation::new(Endpoint::Quotes).query("symId", "EQT_INFY_EQ_NSE"),
        Operation::new(Endpoint::Positions),
        Operation::new(Endpoint::Holdings),
        Operation::new(Endpoint::Funds),
    ] {
        let response = world.send(&call).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{:?}", call.endpoint());
    }
}

#[tokio::test(start_paused = true)]
async fn spec_4_1_client_a_scrip_group_is_required_and_escaped_as_one_segment() {
    let world = World::scripted([ok("[]")]);
    world.send(&Operation::symbols("NSE/EQ?x")).await.unwrap();
    assert_eq!(world.wire.only().path(), "/api/mkt-data/scrips/symbol-store/NSE%2FEQ%3Fx");
    let error = Operation::symbols("").target(&steadfast::Paths::public()).unwrap_err();
    assert_eq!(error.to_string(), "path parameter of symbol-store is missing");
}

#[tokio::test(start_paused = true)]
async fn spec_4_1_client_reads_a_large_scrip_master_to_its_end() {
    let sandbox = sandbox(Sandbox::builder().large_scrip_master(40_000));
    let world = World::at(&sandbox);
    let response = world.send(&Operation::new(Endpoint::ScripMaster)).await.unwrap();
    let answer: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
    assert_eq!(answer["d"].as_array().unwrap().len(), 40_000);
}
