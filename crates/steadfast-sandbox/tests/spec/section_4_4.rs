//! §4.4 POST /api/oms/place-order.

use std::{collections::BTreeSet, time::Duration};

use crate::{
    answer::{GATEWAY_TIMED_OUT, INVALID_INPUT},
    endpoints::{ORDERS, PLACE_ORDER},
    form::{Form, limit_order, order_of_type},
    world::{EQUITY, World},
};

#[tokio::test(start_paused = true)]
async fn spec_4_4_success_carries_an_order_id_and_a_message() {
    let world = World::new();
    let answer = world.place(&limit_order(EQUITY)).await;
    let payload = answer.payload();
    assert!(payload.is_object(), "{answer}");
    assert!(payload["msg"].is_string(), "{answer}");
    let id = payload["orderId"].as_str().expect("orderId is a string");
    assert!(!id.is_empty());

    let book = world.sandbox.state().orders;
    assert_eq!(book.len(), 1);
    assert_eq!(book[0].order_id, id);
    assert_eq!(book[0].owner, world.user.client_id);
}

#[tokio::test(start_paused = true)]
async fn spec_4_4_each_order_gets_its_own_id() {
    let world = World::new();
    let mut ids = BTreeSet::new();
    for _ in 0..20 {
        ids.insert(world.placed(&limit_order(EQUITY)).await);
    }
    assert_eq!(ids.len(), 20, "identical orders are different orders");
    assert_eq!(world.orders_in_the_book(), 20);
}

#[tokio::test(start_paused = true)]
async fn spec_4_4_each_required_field_is_required() {
    let world = World::new();
    for field in ["symId", "qty", "side", "type", "product", "validity"] {
        let order = limit_order(EQUITY);
        world.place(&order.clone().without(field)).await.assert_error(400, INVALID_INPUT);
        world.place(&order.with(field, "")).await.assert_error(400, INVALID_INPUT);
    }
    world.place(&Form::default()).await.assert_error(400, INVALID_INPUT);
}

#[tokio::test(start_paused = true)]
async fn spec_4_4_limit_price_is_required_for_limit_orders() {
    let world = World::new();
    for price_type in ["limit", "stoplimit"] {
        let order = order_of_type(EQUITY, price_type).without("limitPrice");
        world.place(&order).await.assert_error(400, INVALID_INPUT);
        world.place(&order.with("limitPrice", "")).await.assert_error(400, INVALID_INPUT);
    }
}

#[tokio::test(start_paused = true)]
async fn spec_4_4_limit_price_is_not_required_otherwise() {
    let world = World::new();
    for price_type in ["market", "stopmarket"] {
        world.placed(&order_of_type(EQUITY, price_type).without("limitPrice")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn spec_4_4_trigger_price_is_required_for_stop_orders() {
    let world = World::new();
    for price_type in ["stoplimit", "stopmarket"] {
        let order = order_of_type(EQUITY, price_type).without("trigPrice");
        world.place(&order).await.assert_error(400, INVALID_INPUT);
        world.place(&order.with("trigPrice", "")).await.assert_error(400, INVALID_INPUT);
    }
}

#[tokio::test(start_paused = true)]
async fn spec_4_4_trigger_price_is_not_required_otherwise() {
    let world = World::new();
    for price_type in ["limit", "market"] {
        world.placed(&order_of_type(EQUITY, price_type).without("trigPrice")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn spec_4_4_numbers_must_be_numbers() {
    let world = World::new();
    for field in ["qty", "limitPrice", "trigPrice"] {
        for value in ["ten", "1O", "1,5", "0x10", "10 units", "--1", "."] {
            let order = order_of_type(EQUITY, "stoplimit").with(field, value);
            world.place(&order).await.assert_error(400, INVALID_INPUT);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn spec_4_4_an_invalid_order_is_not_placed() {
    let world = World::new();
    let invalid = limit_order(EQUITY).with("side", "BUY");
    world.place(&invalid).await.assert_error(400, INVALID_INPUT);
    assert_eq!(world.orders_in_the_book(), 0);
    assert_eq!(world.calmly(&world.get(ORDERS)).await.envelope()["s"], "no-data");
}

#[tokio::test(start_paused = true)]
async fn spec_4_4_a_504_may_have_placed_the_order() {
    let world = World::with_fault("placement.504-applied");
    world.place(&limit_order(EQUITY)).await.assert_error(504, GATEWAY_TIMED_OUT);

    assert_eq!(world.orders_in_the_book(), 1);
    let list = world.order_list().await;
    assert_eq!(list.len(), 1, "the list tells that the order was placed");
    assert_eq!(list[0]["symId"], EQUITY);
}

#[tokio::test(start_paused = true)]
async fn spec_4_4_a_504_may_have_placed_nothing() {
    let world = World::with_fault("placement.504-not-applied");
    world.place(&limit_order(EQUITY)).await.assert_error(504, GATEWAY_TIMED_OUT);

    world.pass(Duration::from_secs(600));
    assert_eq!(world.orders_in_the_book(), 0);
    assert_eq!(world.calmly(&world.get(ORDERS)).await.envelope()["s"], "no-data");
}

#[tokio::test(start_paused = true)]
async fn spec_4_4_a_504_may_place_the_order_later() {
    let world = World::with_fault("placement.504-late");
    world.post(PLACE_ORDER, &limit_order(EQUITY)).send().await.assert_error(504, GATEWAY_TIMED_OUT);
    assert_eq!(world.get(ORDERS).send().await.envelope()["s"], "no-data", "not yet");

    world.pass(Duration::from_secs(600));
    assert_eq!(world.order_list().await.len(), 1);
    assert_eq!(world.orders_in_the_book(), 1);
}
