//! §1 Response envelope.

use http::Method;

use crate::{
    answer::Answer,
    endpoints::{self, CANCEL_ORDER, ORDERS, PLACE_ORDER, TOKEN},
    form::{Form, limit_order},
    world::{EQUITY, World},
};

#[tokio::test(start_paused = true)]
async fn spec_1_every_answer_is_in_the_envelope() {
    let world = World::new();
    let mut kinds = Vec::new();
    let mut check = |answer: Answer| kinds.push(answer.envelope()["s"].as_str().map(str::to_owned));

    for endpoint in endpoints::all() {
        if endpoint.path != endpoints::AUTHORIZE {
            check(world.calmly(&world.call(&endpoint)).await);
        }
        check(world.calmly(&world.call(&endpoint).method(Method::PATCH)).await);
    }
    for endpoint in endpoints::protected() {
        check(world.calmly(&world.call(&endpoint).without_authorization()).await);
    }
    for endpoint in endpoints::with_a_body() {
        check(world.calmly(&world.call(&endpoint).content_type("application/json")).await);
        check(world.calmly(&world.call(&endpoint).form(&Form::default())).await);
    }
    check(world.calmly(&world.get("/api/oms/nothing")).await);
    check(world.calmly(&world.delete(CANCEL_ORDER)).await);
    check(world.calmly(&world.post(TOKEN, &Form::default()).body("code=%zz")).await);
    check(world.place(&limit_order(EQUITY)).await);

    // The loop is valid only if it has met success and error.
    for kind in ["ok", "error"] {
        assert!(kinds.iter().any(|seen| seen.as_deref() == Some(kind)), "no {kind} among {kinds:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn spec_1_no_data_carries_a_message_instead_of_a_payload() {
    let world = World::new();
    let json = world.calmly(&world.get(ORDERS)).await.envelope();
    assert_eq!(json, serde_json::json!({"s": "no-data", "msg": "no-data"}));
}

#[tokio::test(start_paused = true)]
async fn spec_1_no_data_is_not_an_error_status() {
    let world = World::new();
    let answer = world.calmly(&world.get(ORDERS)).await;
    assert_eq!(answer.envelope()["s"], "no-data");
    assert!(answer.status.is_success(), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn spec_1_no_data_ends_with_the_first_record() {
    let world = World::new();
    assert_eq!(world.calmly(&world.get(ORDERS)).await.envelope()["s"], "no-data");
    world.calmly(&world.post(PLACE_ORDER, &limit_order(EQUITY))).await.payload();
    assert_eq!(world.calmly(&world.get(ORDERS)).await.envelope()["s"], "ok");
}
