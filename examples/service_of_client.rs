//! Raw requests through the layers of a typed client: one set of limits, one token, one memory of orders.
//!
//! Thirty reads at once, as a dashboard would send them, beside an order of the typed client. None is refused.
//!
//! Prints: 30 reads: 30 answered with 200; order 260000000001
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::future::pending;

use futures_util::future::{join, try_join_all};
use http::{Request, StatusCode};
use steadfast::{Access, BoxError, Client, OrderRequest, OrderType, Product, Side, Validity};
use steadfast_sandbox::Sandbox;
use tokio::net::TcpListener;
use tower::ServiceExt as _;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let sandbox = Sandbox::builder().build()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let facts = sandbox.credentials_at(listener.local_addr()?);
    tokio::spawn(async move { sandbox.serve(listener, pending()).await });

    let access = Access::token(facts.api_key, facts.access_token)?;
    let client = Client::builder(facts.base_url.parse()?, access).build()?;
    let order = OrderRequest::builder()
        .sym_id("EQT_INFY_EQ_NSE".parse()?)
        .side(Side::Buy)
        .qty(10)
        .order_type(OrderType::Market)
        .product(Product::Intraday)
        .validity(Validity::Day)
        .build()?;

    let reads = (0..30).map(|_| {
        let request = Request::get(format!("{}/api/oms/orders", facts.base_url)).body(Default::default());
        let service = client.service();
        async move { service.oneshot(request?).await }
    });
    let (answers, placed) = join(try_join_all(reads), client.place_order(&order)).await;
    let (answers, placed) = (answers?, placed?);
    let good = answers.iter().filter(|answer| answer.status() == StatusCode::OK).count();
    println!("{} reads: {good} answered with 200; order {}", answers.len(), placed.order_id);
    client.shutdown().await;
    Ok(())
}
