//! A full stack over a reqwest client that the application has built already, with its own settings.
//!
//! The gateway resets the connection after it has placed the order. The stack finds it.
//!
//! Prints: order 260000000001, found again
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::future::pending;

use reqwest::redirect::Policy;
use steadfast::{Access, Client, OrderRequest, OrderType, Product, ReqwestTransport, Side, Validity};
use steadfast_sandbox::Sandbox;
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sandbox =
        Sandbox::builder().script("[[fault]]\nname = 'placement.reset-applied'\nnth = 1")?.build()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let facts = sandbox.credentials_at(listener.local_addr()?);
    tokio::spawn(async move { sandbox.serve(listener, pending()).await });

    // The application's own client. What it sends by itself would have no permit, so it must not follow redirects.
    let existing = reqwest::Client::builder().redirect(Policy::none()).user_agent("desk/1").build()?;

    let access = Access::token(facts.api_key, facts.access_token)?;
    let client = Client::builder(facts.base_url.parse()?, access)
        .build_over(ReqwestTransport::over(existing.clone()))?;
    let order = OrderRequest::builder()
        .sym_id("EQT_INFY_EQ_NSE".parse()?)
        .side(Side::Buy)
        .qty(10)
        .order_type(OrderType::Limit)
        .limit_price("1500.05")
        .product(Product::Delivery)
        .validity(Validity::Day)
        .build()?;
    let placed = client.place_order(&order).await?;
    let how = if placed.resolution.is_some() { "found again" } else { "answered" };
    println!("order {}, {how}", placed.order_id);
    client.shutdown().await;
    Ok(())
}
