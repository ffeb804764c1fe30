//! Lists and cancels.

use http::{Method, StatusCode};
use steadfast::{
    ErrorKind, Operation, Paths,
    call::Failure,
    spec::{Code, Endpoint, FieldNames, Form, OrderStatus, parse_order_list},
};
use steadfast_sandbox::Sandbox;

use crate::{
    served::serve,
    wire::ok,
    world::{World, order_with, sandbox},
};

#[tokio::test(start_paused = true)]
async fn spec_4_5_client_orders_are_records_with_their_fields() {
    let sandbox = sandbox(Sandbox::builder());
    let world = World::at(&sandbox);
    let order = order_with(&[("qty", "7")]);
    let placed = world.place(&order).await.unwrap();
    let listed = parse_order_list(world.orders().await.body(), &FieldNames::default()).unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].order_id, placed.order_id);
    assert_eq!(listed[0].sym_id.as_deref(), Some("EQT_INFY_EQ_NSE"));
    assert_eq!(listed[0].qty, Some(order.qty()));
    assert_eq!(listed[0].limit_price, order.limit_price());
}

#[tokio::test(start_paused = true)]
async fn spec_4_5_client_a_cancel_is_a_delete_with_the_order_id_in_its_query() {
    let sandbox = sandbox(Sandbox::builder());
    let world = World::at(&sandbox);
    // Far from the market, so that it stays open.
    let placed = world.place(&order_with(&[("limitPrice", "0.05")])).await.unwrap();
    let answer = world.send(&Operation::cancel_order(&placed.order_id)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let cancel = world.wire.seen().pop().unwrap();
    assert_eq!(cancel.method, Method::DELETE);
    assert_eq!(cancel.uri.query(), Some(format!("orderId={}", placed.order_id).as_str()));
    let listed = parse_order_list(world.orders().await.body(), &FieldNames::default()).unwrap();
    assert_eq!(listed[0].status, Some(Code::Known(OrderStatus::Cancelled)));
}

#[tokio::test(start_paused = true)]
async fn spec_4_5_client_a_cancel_without_an_order_id_is_refused_before_it_is_sent() {
    let world = World::scripted([ok("{}")]);
    for target in
        ["/api/oms/cancel-order", "/api/oms/cancel-order?orderId=", "/api/oms/cancel-order?orderid=1"]
    {
        let refused = world.call(world.request(Method::DELETE, target, "")).await.unwrap_err();
        assert!(Failure::find(&*refused).is_some_and(Failure::is_refusal), "{target}");
    }
    assert_eq!(world.wire.seen().len(), 0);
}

#[tokio::test]
async fn spec_4_5_client_what_the_specification_does_not_show_is_asked_for_only_once_its_path_is_set() {
    let served = serve(Sandbox::builder().build().unwrap()).await;
    let access = || {
        let facts = served.facts.clone();
        steadfast::Access::token(facts.api_key, facts.access_token).unwrap()
    };
    let unset = served.builder(access()).paths(Paths::default()).build().unwrap();
    let set = served.client();
    for endpoint in [
        Endpoint::ScripMaster,
        Endpoint::Quotes,
        Endpoint::Positions,
        Endpoint::Holdings,
        Endpoint::Funds,
        Endpoint::OrderMargin,
        Endpoint::ModifyOrder,
    ] {
        let call = Operation::new(endpoint);
        assert_eq!(unset.call(&call).await.unwrap_err().kind(), ErrorKind::InvalidRequest, "{endpoint:?}");
        assert_eq!(set.request(&call).unwrap().method(), call.method());
    }
    assert_eq!(unset.cancel("1").await.unwrap_err().kind(), ErrorKind::InvalidRequest);
    assert_eq!(served.sandbox.state().requests, 0);
    for endpoint in [Endpoint::Positions, Endpoint::Holdings, Endpoint::Funds, Endpoint::History] {
        set.call(&Operation::new(endpoint)).await.unwrap();
    }
    assert!(set.call(&Operation::symbols("NSE_EQ")).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn spec_4_5_client_margins_are_forms_of_whatever_fields_the_caller_names() {
    for endpoint in [Endpoint::BasketMargin, Endpoint::OrderMargin] {
        let world = World::scripted([ok("{}")]);
        let form = Form::new().with("orders", "[1]").with("x", "y");
        world.send(&Operation::new(endpoint).form(form.clone())).await.unwrap();
        let seen = world.wire.only();
        assert_eq!((seen.method.as_str(), seen.form()), ("POST", form));
    }
}
