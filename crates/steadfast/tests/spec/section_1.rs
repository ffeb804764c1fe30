//! Request conventions.

use http::{HeaderValue, Method, StatusCode, header::CONTENT_TYPE};
use steadfast::{
    Access, Client, Operation, Outcome, Paths,
    call::Failure,
    route::InvalidRequest,
    spec::{Endpoint, Form},
};
use steadfast_sandbox::{JsonBody, Sandbox};

use crate::{
    wire::{Wire, ok},
    world::{World, order_with, sandbox},
};

const FORM: &str = "application/x-www-form-urlencoded";

fn client() -> Client {
    let base = "https://api.example/tradeapi/v2".parse().unwrap();
    Client::builder(base, Access::token("key", "token").unwrap()).paths(Paths::public()).build().unwrap()
}

/// Returns the typed refusal in an error's chain.
fn refusal(error: &steadfast::BoxError) -> InvalidRequest {
    assert_eq!(Failure::outcome_of(&**error), Outcome::NotSent);
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(&**error);
    loop {
        let error = next.expect("a refusal");
        if let Some(refusal) = error.downcast_ref() {
            return *refusal;
        }
        next = error.source();
    }
}

#[tokio::test(start_paused = true)]
async fn spec_1_client_every_path_follows_a_base_address_that_ends_in_v2() {
    let world = World::below("https://api.example/tradeapi/v2", Wire::scripted([ok("[]")]));
    let target = Operation::orders().target(&Paths::public()).unwrap();
    assert_eq!(target, "/api/oms/orders");
    world.call(world.request(Method::GET, &target, "")).await.unwrap();
    assert_eq!(world.wire.only().uri, "https://api.example/tradeapi/v2/api/oms/orders");
    assert!("https://api.example/tradeapi".parse::<steadfast::BaseUrl>().is_err());
}

#[tokio::test]
async fn spec_1_client_get_and_delete_carry_no_content_type_and_no_body() {
    for (operation, target) in [
        (Operation::new(Endpoint::Quotes).query("symId", "EQT_INFY_EQ_NSE"), "/quotes?symId=EQT_INFY_EQ_NSE"),
        (Operation::cancel_order("42"), "/cancel-order?orderId=42"),
    ] {
        let request = client().request(&operation).unwrap();
        assert!(request.uri().to_string().ends_with(target), "{}", request.uri());
        assert_eq!(request.headers().get(CONTENT_TYPE), None);
        assert!(http_body::Body::is_end_stream(request.body()));
        let world = World::scripted([ok("{}")]);
        world.send(&operation).await.unwrap();
        let seen = world.wire.only();
        assert_eq!((seen.header("content-type"), seen.body.as_str()), (None, ""));
    }
}

#[tokio::test]
async fn spec_1_client_post_and_put_are_forms_whatever_they_hold() {
    for operation in [
        Operation::place_order(&order_with(&[])),
        Operation::new(Endpoint::BasketMargin),
        Operation::new(Endpoint::OrderMargin).form(Form::new().with("qty", "1")),
        Operation::new(Endpoint::ModifyOrder).form(Form::new().with("orderId", "42")),
    ] {
        let request = client().request(&operation).unwrap();
        assert_eq!(request.headers()[CONTENT_TYPE], FORM, "{:?}", operation.endpoint());
        assert_eq!(request.uri().query(), None, "{:?}", operation.endpoint());
    }
}

#[tokio::test(start_paused = true)]
async fn spec_1_client_a_post_or_put_without_content_type_leaves_as_a_form() {
    for (method, path) in [(Method::POST, "/api/oms/basket-margin"), (Method::PUT, "/api/oms/modify-order")] {
        let world = World::scripted([ok("{}")]);
        world.call(world.request(method, path, "a=1&b=x%26y")).await.unwrap();
        let seen = world.wire.only();
        assert_eq!((seen.header("content-type"), seen.body.as_str()), (Some(FORM), "a=1&b=x%26y"));
    }
}

#[tokio::test(start_paused = true)]
async fn spec_1_client_form_fields_are_key_value_pairs_that_arrive_as_they_were_given() {
    let world = World::scripted([ok("{}")]);
    let form = Form::new().with("list", "a=1&b=2").with("text", "50% of +5 é");
    world.send(&Operation::new(Endpoint::BasketMargin).form(form.clone())).await.unwrap();
    let seen = world.wire.only();
    assert_eq!(seen.form(), form);
    let (pairs, separators) = (seen.body.split('&').count(), seen.body.matches('=').count());
    assert_eq!((pairs, separators), (2, 2), "{}", seen.body);
}

#[tokio::test(start_paused = true)]
async fn spec_1_client_json_is_refused_before_it_is_sent_and_costs_no_quota() {
    for (method, path) in [(Method::POST, "/api/oms/place-order"), (Method::PUT, "/api/oms/modify-order")] {
        let world = World::scripted([ok("{}")]);
        let mut request = world.request(method, path, r#"{"qty":1}"#);
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let error = world.call(request).await.unwrap_err();
        assert_eq!(refusal(&error), InvalidRequest::Json);
        assert_eq!(world.wire.seen().len(), 0);
        assert!(world.stack.rate_limits().snapshot().zones.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn spec_1_client_json_that_is_passed_on_is_refused_for_good_by_either_status() {
    for (refusal, status) in [
        (JsonBody::BadRequest, StatusCode::BAD_REQUEST),
        (JsonBody::UnsupportedMediaType, StatusCode::UNSUPPORTED_MEDIA_TYPE),
    ] {
        let sandbox = sandbox(Sandbox::builder().json_body(refusal));
        let world = World::at_with(&sandbox, |stack| stack.pass_json());
        let mut request = world.request(Method::POST, "/api/oms/basket-margin", "[]");
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let response = world.call(request).await.unwrap();
        assert_eq!(response.status(), status);
        assert_eq!(Outcome::of(response.extensions()), Some(&Outcome::Rejected));
        assert_eq!(world.wire.seen().len(), 1, "it is not repeated");
    }
}

#[tokio::test(start_paused = true)]
async fn spec_1_client_query_values_are_percent_encoded_and_arrive_as_they_were_given() {
    let sandbox = sandbox(Sandbox::builder());
    let world = World::at(&sandbox);
    let quote = Operation::new(Endpoint::Quotes).query("symId", "EQT_M&M_EQ_NSE");
    let response = world.send(&quote).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(world.wire.only().uri.query(), Some("symId=EQT_M%26M_EQ_NSE"));
    let body = String::from_utf8(response.body().to_vec()).unwrap();
    assert!(body.contains("EQT_M&M_EQ_NSE"), "{body}");
}

#[tokio::test(start_paused = true)]
async fn spec_1_client_a_query_that_is_not_percent_encoded_is_refused_before_it_is_sent() {
    let world = World::scripted([ok("{}")]);
    let request = world.request(Method::GET, "/api/mkt-data/quotes?symId=100%", "");
    assert_eq!(refusal(&world.call(request).await.unwrap_err()), InvalidRequest::Query);
    assert_eq!(world.wire.seen().len(), 0);
}
