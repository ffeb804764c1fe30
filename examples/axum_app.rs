//! An axum application that trades: its state holds the typed client, and its handlers know nothing of retries, limits or
//! tokens.
//!
//! The gateway answers the first order with a 504 although it placed it. The application's caller gets a 201.
//!
//! Prints: 201 Created: 1 order at the gateway
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::future::pending;

use axum::{Form, Router, extract::State, http::StatusCode, routing::post};
use http::{Request, header};
use http_body_util::BodyExt;
use steadfast::{Access, BoxError, Client, ErrorKind, OrderRequest};
use steadfast_sandbox::Sandbox;
use tokio::net::TcpListener;
use tower::ServiceExt;

const ORDER: &str =
    "symId=EQT_INFY_EQ_NSE&qty=10&side=buy&type=limit&limitPrice=1500.05&product=delivery&validity=day";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let sandbox = Sandbox::builder().script("[[fault]]\nname = 'placement.504-applied'\nnth = 1")?.build()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let facts = sandbox.credentials_at(listener.local_addr()?);
    let server = sandbox.clone();
    tokio::spawn(async move { server.serve(listener, pending()).await });

    let access = Access::token(facts.api_key, facts.access_token)?;
    let client = Client::builder(facts.base_url.parse()?, access).build()?;
    let app = Router::new().route("/orders", post(place)).with_state(client.clone());

    let request = Request::post("/orders")
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(ORDER.to_owned())?;
    let answer = app.oneshot(request).await?;
    let status = answer.status();
    println!("{}", String::from_utf8_lossy(&answer.into_body().collect().await?.to_bytes()));
    client.shutdown().await;
    println!("{status}: {} order at the gateway", sandbox.state().orders.len());
    Ok(())
}

async fn place(
    State(client): State<Client>,
    Form(form): Form<Vec<(String, String)>>,
) -> (StatusCode, String) {
    let fields = form.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let order = match OrderRequest::from_fields(fields) {
        Ok(order) => order,
        Err(invalid) => return (StatusCode::UNPROCESSABLE_ENTITY, invalid.to_string()),
    };
    match client.place_order(&order).await {
        Ok(placed) => (StatusCode::CREATED, format!("order {}", placed.order_id)),
        // Whether it was placed is unknown, so the caller must not simply ask again.
        Err(error) if matches!(error.kind(), ErrorKind::InDoubt | ErrorKind::NotObserved) => {
            (StatusCode::ACCEPTED, error.to_string())
        }
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()),
    }
}
