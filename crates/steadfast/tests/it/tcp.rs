//! Short tests with real sockets and real time, of what only a network shows.

use steadfast::{Access, Client, ErrorKind};
use steadfast_sandbox::Sandbox;
use tokio::net::TcpListener;

use crate::{
    served::{Served, serve, totp},
    world::{order, script},
};

/// Creates a client of the sandbox that logs in with an authenticator's secret.
fn client_that_logs_in(served: &Served) -> Client {
    let facts = served.facts.clone();
    let access = Access::totp(totp(facts)).unwrap();
    served.builder(access).build().unwrap()
}

#[tokio::test]
async fn an_order_is_placed_listed_and_cancelled() {
    let served = serve(Sandbox::builder().build().unwrap()).await;
    let client = served.client();
    assert_eq!(client.orders().await.unwrap(), []);
    let placed = client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap();
    assert_eq!(client.orders().await.unwrap()[0].order_id, placed.order_id);
    client.cancel(&placed.order_id).await.unwrap();
    assert_eq!(served.sandbox.state().orders[0].status, "cancelled");
    assert_eq!(client.cancel(&placed.order_id).await.unwrap_err().kind(), ErrorKind::Rejected);
}

#[tokio::test]
async fn a_connection_reset_after_the_order_was_placed_does_not_lose_it() {
    let served = serve(script("[[fault]]\nname = 'placement.reset-applied'\nnth = 1").build().unwrap()).await;
    let placed = served.client().place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap();
    let orders = served.sandbox.state().orders;
    assert_eq!(orders.iter().map(|order| &order.order_id).collect::<Vec<_>>(), [&placed.order_id]);
    assert!(placed.resolution.is_some());
}

#[tokio::test]
async fn a_200_whose_body_breaks_off_does_not_lose_its_order() {
    let served = serve(script("[[fault]]\nname = 'placement.200-truncated'\nnth = 1").build().unwrap()).await;
    let placed = served.client().place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap();
    assert_eq!(served.sandbox.state().orders.len(), 1);
    assert_eq!(served.sandbox.state().orders[0].order_id, placed.order_id);
}

#[tokio::test]
async fn a_client_logs_in_by_itself_and_renews_a_token_that_died() {
    let served = serve(Sandbox::builder().build().unwrap()).await;
    let client = client_that_logs_in(&served);
    assert_eq!(client.orders().await.unwrap(), []);
    assert_eq!(served.sandbox.state().logins.succeeded, 1);
}

#[tokio::test]
async fn nothing_listens_and_nothing_is_in_doubt() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let access = Access::token("key", "token").unwrap();
    let retry = steadfast::retry::RetryPolicy::default().schedule(steadfast::retry::Schedule::never());
    let base = format!("http://{address}/v2").parse().unwrap();
    let client = Client::builder(base, access).retry(retry).build().unwrap();
    let error = client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unreachable, &steadfast::Outcome::NotSent));
    assert_eq!(client.in_doubt(), 0);
}

#[tokio::test]
async fn clear_text_to_another_machine_is_refused() {
    let access = Access::token("key", "token").unwrap();
    let built = Client::builder("http://api.example/v2".parse().unwrap(), access).build();
    assert_eq!(built.unwrap_err().to_string(), "base url is clear-text http to another machine");
}
