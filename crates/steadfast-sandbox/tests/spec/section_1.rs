//! §1 What the service does: base address, request conventions, pagination.

use http::Method;
use steadfast_sandbox::{JsonBody, Sandbox};

use crate::{
    answer::{BAD_REQUEST, INVALID_INPUT, METHOD_NOT_ALLOWED},
    call::{Call, FORM},
    endpoints::{self, CANCEL_ORDER, MODIFY_ORDER, ORDERS, PLACE_ORDER, QUOTES},
    form::{limit_order, percent_encoded},
    world::{EQUITY, World},
};

/// The content types that §1 rejects: JSON under its two usual spellings, and none at all.
const REJECTED: [Option<&str>; 3] = [Some("application/json"), Some("application/json; charset=utf-8"), None];

#[tokio::test(start_paused = true)]
async fn spec_1_base_address_ends_with_the_version() {
    let world = World::new();
    assert!(world.base_url.ends_with("/v2"), "{}", world.base_url);
    world.placed(&limit_order(EQUITY)).await;

    let url = format!("{}/api/oms/orders", world.base_url);
    world.calmly(&world.request_to(Method::GET, &url)).await.payload();
}

#[tokio::test(start_paused = true)]
async fn spec_1_get_and_delete_need_no_content_type() {
    let world = World::new();
    let id = world.placed(&limit_order(EQUITY)).await;

    world.calmly(&world.get(ORDERS).without_content_type()).await.payload();
    let cancel = world.delete(CANCEL_ORDER).query("orderId", &id).without_content_type();
    world.calmly(&cancel).await.payload();
}

#[tokio::test(start_paused = true)]
async fn spec_1_get_reads_its_parameters_from_the_query() {
    let world = World::new();
    let answer = world.calmly(&world.get(QUOTES).query("symId", EQUITY)).await;
    assert!(answer.payload().to_string().contains(EQUITY), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn spec_1_delete_reads_its_parameters_from_the_query() {
    let world = World::new();
    let id = world.placed(&limit_order(EQUITY)).await;

    let in_the_body = world.delete(CANCEL_ORDER).content_type(FORM).body(format!("orderId={id}"));
    world.calmly(&in_the_body).await.assert_error(405, METHOD_NOT_ALLOWED);
    let in_the_query = world.delete(CANCEL_ORDER).query("orderId", &id);
    world.calmly(&in_the_query).await.payload();
}

#[tokio::test(start_paused = true)]
async fn spec_1_post_and_put_take_a_form() {
    let world = World::new();
    let id = world.placed(&limit_order(EQUITY)).await;

    let change = limit_order(EQUITY).with("orderId", &id).with("limitPrice", "101.25");
    world.calmly(&world.put(MODIFY_ORDER, &change)).await.payload();
}

#[tokio::test(start_paused = true)]
async fn spec_1_post_fields_in_the_query_do_not_count() {
    let world = World::new();
    let order = limit_order(EQUITY).encoded();
    let call = world.request(Method::POST, PLACE_ORDER).raw_query(&order).content_type(FORM);
    world.calmly(&call).await.assert_error(400, INVALID_INPUT);
    assert_eq!(world.orders_in_the_book(), 0);
}

#[tokio::test(start_paused = true)]
async fn spec_1_json_and_untyped_bodies_are_a_bad_request_by_default() {
    let world = World::new();
    for endpoint in endpoints::with_a_body() {
        for content_type in REJECTED {
            let call = with_content_type(world.call(&endpoint), content_type);
            world.calmly(&call).await.assert_error(400, BAD_REQUEST);
        }
    }
    assert_eq!(world.orders_in_the_book(), 0);
    world.placed(&limit_order(EQUITY)).await;
}

#[tokio::test(start_paused = true)]
async fn spec_1_json_and_untyped_bodies_are_an_unsupported_media_type_by_switch() {
    let sandbox = Sandbox::builder().json_body(JsonBody::UnsupportedMediaType).build();
    let world = World::of(sandbox.expect("a sandbox"));
    for endpoint in endpoints::with_a_body() {
        for content_type in REJECTED {
            let call = with_content_type(world.call(&endpoint), content_type);
            world.calmly(&call).await.assert_refused_with(&[415]);
        }
    }
    assert_eq!(world.orders_in_the_book(), 0);
    world.placed(&limit_order(EQUITY)).await;
}

#[tokio::test(start_paused = true)]
async fn spec_1_percent_encoded_query_values_are_decoded() {
    let world = World::new();
    let id = world.placed(&limit_order(EQUITY)).await;

    let cancel = world.delete(CANCEL_ORDER).raw_query(&format!("orderId={}", percent_encoded(&id)));
    world.calmly(&cancel).await.payload();
    assert_eq!(world.listed(&id).await["status"], "cancelled");
}

#[tokio::test(start_paused = true)]
async fn spec_1_percent_encoded_form_values_are_decoded() {
    let world = World::new();
    let order = limit_order(EQUITY);
    let call = world.post(PLACE_ORDER, &order).body(order.fully_percent_encoded());
    world.calmly(&call).await.payload();
    assert_eq!(world.sandbox.state().orders[0].sym_id, EQUITY);
}

#[tokio::test(start_paused = true)]
async fn spec_1_a_list_is_complete_in_one_answer() {
    let world = World::new();
    let mut placed = Vec::new();
    for _ in 0..120 {
        placed.push(world.placed(&limit_order(EQUITY)).await);
    }

    let list = world.order_list().await;
    let mut listed: Vec<&str> = list.iter().filter_map(|record| record["orderId"].as_str()).collect();
    listed.sort_unstable();
    placed.sort_unstable();
    assert_eq!(listed, placed);
}

fn with_content_type(call: Call, content_type: Option<&str>) -> Call {
    match content_type {
        Some(value) => call.content_type(value).body("{}"),
        None => call.without_content_type(),
    }
}
