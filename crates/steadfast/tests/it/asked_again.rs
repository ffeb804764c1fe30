//! Callers that go away at any moment, and call again under the same name.

use std::time::Duration;

use steadfast::{ErrorKind, ext::IntentId};
use tokio::time::timeout;

use crate::{
    answers::{Answers, GATEWAY_TIMED_OUT, NO_DATA, Reply, list, placed, record, reply},
    world::order,
};

#[tokio::test(start_paused = true)]
async fn whoever_asks_again_is_told_of_the_one_order_or_that_there_is_none() {
    let lost: fn() -> Reply = || None;
    let timed_out: fn() -> Reply = || reply(504, GATEWAY_TIMED_OUT);
    let cut: fn() -> Reply = || reply(200, placed("1")[..20].to_owned());
    let acknowledged: fn() -> Reply = || reply(200, placed("1"));
    for (first, exists) in [
        (acknowledged, true),
        (timed_out, true),
        (timed_out, false),
        (lost, true),
        (lost, false),
        (cut, true),
        (cut, false),
    ] {
        // Before the baseline, while it is read, during the send, between reads, around the bound, after it.
        for leaves_after in [0, 10, 25, 39, 41, 50, 530, 600, 3_000, 14_999, 15_030, 15_070, 16_000, 46_000] {
            let gateway = Answers::to_first_order(first, move || {
                let shown = list(&[record("1", &order("EQT_INFY_EQ_NSE"))]);
                reply(200, if exists { shown } else { NO_DATA.to_owned() })
            });
            let client = gateway.client();
            let order = order("EQT_INFY_EQ_NSE");
            let call = || client.place_order_as(&order, IntentId::new("a"));
            let first_told = timeout(Duration::from_millis(leaves_after), call()).await;
            let told = call().await.map(|placed| placed.order_id).map_err(|error| error.kind());
            let sent = gateway.orders_sent();
            let seen = format!("left after {leaves_after} ms, exists: {exists}, sent {sent}: {told:?}");
            if exists {
                assert_eq!((sent, told.as_deref()), (1, Ok("1")), "{seen}");
            } else {
                let none = matches!(told, Err(ErrorKind::NotObserved | ErrorKind::InDoubt));
                assert!(sent == 1 && none || sent == 2 && told.as_deref() == Ok("2"), "{seen}");
            }
            if let Ok(first_told) = first_told {
                assert_eq!(
                    first_told.map(|placed| placed.order_id).map_err(|error| error.kind()),
                    told,
                    "{seen}"
                );
            }
        }
    }
}
