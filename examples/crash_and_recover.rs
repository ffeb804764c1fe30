//! A killed process: its order is on the way, and in doubt from then on.
//!
//! With a journal, the next process knows of the order. It looks the order up in the list and never sends it again.
//! The gateway here places the order, but takes a minute to say so; by then the process is dead.
//!
//! Prints: 1 order at the gateway
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::{env, process::Command, time::Duration};

use steadfast::{Access, BoxError, Client, OrderRequest, ext::IntentId};
use steadfast_sandbox::Sandbox;
use tokio::{net::TcpListener, time::sleep};

const SLOW: &str = "[[fault]]\nname = 'placement.504-applied'\nnth = 1\nanswer_after_ms = 60000";

fn order() -> Result<OrderRequest, BoxError> {
    let codes = [("side", "buy"), ("type", "market"), ("product", "intraday"), ("validity", "day")];
    Ok(OrderRequest::from_fields([("symId", "EQT_INFY_EQ_NSE"), ("qty", "10")].into_iter().chain(codes))?)
}

fn client(facts: &[&str]) -> Result<Client, BoxError> {
    let [base, key, token, journal] = *facts else { return Err("four words are needed".into()) };
    Ok(Client::builder(base.parse()?, Access::token(key, token)?).journal(journal).build()?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let words: Vec<String> = env::args().skip(1).collect();
    if !words.is_empty() {
        // The process that is killed before its answer.
        let facts: Vec<&str> = words.iter().map(String::as_str).collect();
        client(&facts)?.place_order_as(&order()?, IntentId::new("breakfast")).await?;
        return Ok(());
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}/v2", listener.local_addr()?);
    let sandbox = Sandbox::builder().script(SLOW)?.build()?;
    let (own, served) = (sandbox.credentials(), sandbox.clone());
    tokio::spawn(async move { served.serve(listener, std::future::pending()).await });
    let journal = env::temp_dir().join(format!("crash_and_recover-{}.journal", std::process::id()));
    let journal = journal.display().to_string();
    let facts = [&base, &own.api_key, &own.access_token, &journal].map(String::as_str);

    let mut trader = Command::new(env::current_exe()?).args(facts).spawn()?;
    while sandbox.state().orders.is_empty() {
        sleep(Duration::from_millis(20)).await;
    }
    trader.kill()?;
    trader.wait()?;
    println!("killed with its order on the way");

    let client = client(&facts)?;
    for order in client.recover().await? {
        println!("{}: {:?}", order.name.as_ref().map_or("", |name| name.as_str()), order.verdict);
    }
    client.shutdown().await;
    println!("{} order at the gateway", sandbox.state().orders.len());
    Ok(())
}
