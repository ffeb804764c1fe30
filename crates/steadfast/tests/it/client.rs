//! The typed client over the in-process gateway.

use steadfast::{Access, Client, ErrorKind, Paths};
use steadfast_sandbox::{BookEdit, Sandbox, SandboxBuilder};

use crate::world::{order, script};

fn client(sandbox: SandboxBuilder) -> (Client, Sandbox) {
    let sandbox = sandbox.build().unwrap();
    let facts = sandbox.credentials();
    let access = Access::token(facts.api_key, facts.access_token).unwrap();
    let builder = Client::builder(facts.base_url.parse().unwrap(), access).paths(Paths::public());
    (builder.build_over(sandbox.gateway()).unwrap(), sandbox)
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_worked_is_never_called_failed() {
    let (client, sandbox) =
        client(script("[[fault]]\nname = 'connection.reset-after'\nendpoint = 'cancel-order'\nnth = 1"));
    let placed = client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap();
    // The first cancel is executed and its answer lost; the second is refused, because the order is not open.
    client.cancel(&placed.order_id).await.unwrap();
    assert_eq!(sandbox.state().orders[0].status, "cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_came_too_late_says_what_became_of_the_order() {
    let (client, sandbox) =
        client(script("[[fault]]\nname = 'connection.reset-before'\nendpoint = 'cancel-order'\nnth = 1"));
    let placed = client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap();
    sandbox.edit_order(&placed.order_id, BookEdit::Fill).unwrap();
    let error = client.cancel(&placed.order_id).await.unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::NotOpen, Some("completed")));
}

#[tokio::test(start_paused = true)]
async fn an_order_that_nobody_can_verify_is_in_doubt_and_names_why() {
    let (client, _sandbox) = client(
        Sandbox::builder().fault("placement.504-applied", 1.0).unwrap().fault("list.504", 1.0).unwrap(),
    );
    let error = client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InDoubt);
    assert!(!error.is_retryable());
    assert!(error.to_string().starts_with("order is in doubt ("), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_told_with_the_services_own_words() {
    let (client, _sandbox) = client(Sandbox::builder());
    let error = client.cancel("nobody's").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Rejected);
    assert_eq!(error.message(), Some(steadfast::spec::msg::INPUT_VALIDATION));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_whose_answer_breaks_off_is_looked_up() {
    let (client, sandbox) =
        client(script("[[fault]]\nname = 'connection.reset-mid-body'\nendpoint = 'cancel-order'\nnth = 1"));
    let placed = client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap();
    client.cancel(&placed.order_id).await.unwrap();
    assert_eq!(sandbox.state().orders[0].status, "cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_breaks_off_proves_nothing() {
    let (client, _sandbox) = client(Sandbox::builder().fault("list.truncated", 1.0).unwrap());
    client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap();
    let error = client.orders().await.unwrap_err();
    assert!(error.outcome().is_unknown(), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn every_call_can_be_spawned() {
    let (client, _sandbox) = client(Sandbox::builder());
    let call = client.clone();
    let placed = tokio::spawn(async move { call.place_order(&order("EQT_INFY_EQ_NSE")).await })
        .await
        .unwrap()
        .unwrap();
    let call = client.clone();
    assert_eq!(tokio::spawn(async move { call.orders().await }).await.unwrap().unwrap().len(), 1);
    tokio::spawn(async move { client.cancel(&placed.order_id).await }).await.unwrap().unwrap();
}
