//! The next process settles the orders of its journal by itself.

use std::time::Duration;

use futures_util::StreamExt;
use http::{Method, Response};
use steadfast::{
    Client,
    dedup::{OrderEvent, Settings},
};
use tokio::{runtime, time::timeout};

use crate::{
    answering::{Answering, builder, whole},
    world::order,
};

/// Regression: with nothing in doubt, the journal of a killed process led to no read, and an id of another order was told again
/// under the name until the first new order.
#[test]
fn o12_an_acknowledged_order_that_no_list_shows_is_told_after_a_restart_without_a_call() {
    let transport = Answering::with(|request| {
        let placed = r#"{"s":"ok","d":{"orderId":"7","msg":"placed"}}"#;
        let none = r#"{"s":"no-data","msg":"no-data"}"#;
        Response::new(whole(if *request.method() == Method::POST { placed } else { none }))
    });
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings::default().lateness(Duration::from_secs(2));
    let client = || -> Client {
        let client = builder().order_safety(settings.clone()).journal(folder.path().join("orders.journal"));
        client.build_over(transport.clone()).unwrap()
    };
    // Its tasks end with its runtime, as with a killed process.
    let process = || runtime::Builder::new_current_thread().enable_all().build().unwrap();
    process().block_on(async { client().place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap() });
    process().block_on(async {
        let client = client();
        let mut events = client.events();
        assert!(client.recover().await.unwrap().is_empty(), "nothing is in doubt");
        let event = timeout(Duration::from_secs(2 + 5), events.next()).await.unwrap().unwrap();
        assert!(
            matches!(&event, Ok(OrderEvent::AckNotListed { order_id, .. }) if &**order_id == "7"),
            "{event:?}"
        );
    });
}
