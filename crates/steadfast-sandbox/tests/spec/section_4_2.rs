//! §4.2 POST /api-gw/oauth/token.

use std::time::Duration;

use serde_json::json;

use crate::{
    answer::{INTERNAL_SERVER_ERROR, INVALID_INPUT, UNAUTHORIZED},
    form::Form,
    login::LOGIN_FAULT,
    world::World,
};

#[tokio::test(start_paused = true)]
async fn spec_4_2_token_record_has_exactly_the_four_fields() {
    let world = World::new();
    let code = world.authorization_code().await;
    let answer = world.calmly(&world.exchange(&world.exchange_form(&code))).await;

    assert_eq!(answer.status, 200, "{answer}");
    let mut record = answer.json();
    let token = record["access_token"].take();
    assert!(token.as_str().is_some_and(|token| !token.is_empty()), "access_token {token}");
    let expected =
        json!({"access_token": null, "token_type": "bearer", "expires_in": 86400, "scope": "general"});
    assert_eq!(record, expected);
    assert!(record["expires_in"].is_u64(), "an integer");
}

#[tokio::test(start_paused = true)]
async fn spec_4_2_token_record_is_not_in_the_envelope() {
    let world = World::new();
    let code = world.authorization_code().await;
    let record = world.calmly(&world.exchange(&world.exchange_form(&code))).await.json();
    for name in ["s", "d", "msg"] {
        assert!(record.get(name).is_none(), "{name} in a token record");
    }
    assert!(record["access_token"].is_string());
}

#[tokio::test(start_paused = true)]
async fn spec_4_2_redirect_uri_is_read_percent_encoded() {
    let world = World::new();
    let form = world.exchange_form(&world.authorization_code().await);
    assert!(
        form.encoded().contains("redirect_uri=http%3A%2F%2F") || form.encoded().contains("https%3A%2F%2F")
    );
    let call = world.exchange(&form).body(form.fully_percent_encoded());
    let answer = world.calmly(&call).await;
    assert!(answer.json()["access_token"].is_string(), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn spec_4_2_a_code_buys_one_token_only() {
    let world = World::new();
    let call = world.exchange(&world.exchange_form(&world.authorization_code().await));
    let first = world.calmly(&call).await;
    assert!(first.json()["access_token"].is_string(), "{first}");
    world.calmly(&call).await.assert_error(401, UNAUTHORIZED);
}

#[tokio::test(start_paused = true)]
async fn spec_4_2_wrong_credentials_are_unauthorized() {
    let world = World::new();
    for (field, wrong) in [
        ("code", "no-such-code"),
        ("client_id", "nosuchkey"),
        ("client_id", world.other.api_key.as_str()),
        ("client_secret", "wrong"),
        ("client_secret", world.other.client_secret.as_str()),
    ] {
        let form = world.exchange_form(&world.authorization_code().await).with(field, wrong);
        world.calmly(&world.exchange(&form)).await.assert_error(401, UNAUTHORIZED);
    }
}

#[tokio::test(start_paused = true)]
async fn spec_4_2_another_grant_type_buys_no_token() {
    let world = World::new();
    for wrong in ["client_credentials", "AUTHORIZATION_CODE", "password"] {
        let form = world.exchange_form(&world.authorization_code().await).with("grant_type", wrong);
        world.calmly(&world.exchange(&form)).await.assert_refused_with(&[400, 401]);
    }
}

#[tokio::test(start_paused = true)]
async fn spec_4_2_an_empty_form_fails_validation() {
    let world = World::new();
    world.calmly(&world.exchange(&Form::default())).await.assert_error(400, INVALID_INPUT);
}

#[tokio::test(start_paused = true)]
async fn spec_4_2_a_fault_is_an_internal_server_error() {
    let world = World::with_fault(LOGIN_FAULT);
    let form = world.exchange_form(&world.authorization_code().await);
    world.calmly(&world.exchange(&form)).await.assert_error(500, INTERNAL_SERVER_ERROR);
}

#[tokio::test(start_paused = true)]
async fn spec_4_2_reauthentication_repeats_the_full_flow() {
    let world = World::new();
    let spent = world.exchange_form(&world.authorization_code().await);
    world.calmly(&world.exchange(&spent)).await.json();
    let first = world.log_in_by_oauth().await;
    world.pass(Duration::from_secs(24 * 60 * 60));

    assert!(!world.is_alive(&first).await, "the token has expired");
    world.calmly(&world.exchange(&spent)).await.assert_error(401, UNAUTHORIZED);
    let second = world.log_in_by_oauth().await;
    assert_ne!(first.token, second.token);
    assert!(world.is_alive(&second).await, "the flow was repeated");
}
