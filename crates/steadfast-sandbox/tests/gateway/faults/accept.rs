//! Faults of a connection, seen by a real HTTP client over a pipe in memory.

use std::time::Duration;

use steadfast_sandbox::{Fault, Seen};
use tokio::time::Instant;

use super::transport::{connect, order, seen};
use crate::world::World;

pub(super) fn faults() -> Vec<Fault> {
    vec![
        Fault::ConnectionAcceptReset,
        Fault::ConnectionAcceptClose,
        Fault::ConnectionAcceptSlow,
        Fault::ConnectionBlackHole,
        Fault::ConnectionResetMidRequest,
        Fault::ConnectionEarlyAnswer,
        Fault::ConnectionMaxRequests,
    ]
}

fn world(fault: Fault) -> World {
    World::with_script(&format!("[[fault]]\nname = '{fault}'\nnth = 1"))
}

#[tokio::test(start_paused = true)]
async fn a_struck_connection_carries_nothing_and_the_next_one_everything() {
    for (fault, expected) in [
        (Fault::ConnectionAcceptReset, Seen::Reset),
        (Fault::ConnectionAcceptClose, Seen::Incomplete),
        (Fault::ConnectionBlackHole, Seen::HeadStalls),
        (Fault::ConnectionResetMidRequest, Seen::Reset),
    ] {
        let world = world(fault);
        let mut struck = connect(&world).await;
        let seen_of_it = seen(struck.send_request(order(&world))).await.0;
        // A client that learns of the end before it has written reports a cancelled request.
        assert!(seen_of_it == expected || seen_of_it == Seen::Reset, "{fault}: {seen_of_it:?}");
        assert_eq!(world.orders(), 0, "{fault}");
        assert_eq!(seen(connect(&world).await.send_request(order(&world))).await.0, Seen::Whole, "{fault}");
        assert_eq!((world.orders(), world.struck(fault.as_str())), (1, 1), "{fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_before_the_request_proves_that_the_request_was_not_sent() {
    let world = world(Fault::ConnectionEarlyAnswer);
    let mut struck = connect(&world).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let error = struck.send_request(order(&world)).await.expect_err("an end");
    assert!(error.is_canceled(), "{error:?}");
    assert_eq!((world.orders(), world.truth().requests), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_slow_connection_is_read_from_after_five_seconds() {
    let world = world(Fault::ConnectionAcceptSlow);
    let mut client = connect(&world).await;
    let sent = Instant::now();
    assert_eq!(seen(client.send_request(order(&world))).await.0, Seen::Whole);
    assert_eq!(sent.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_connection_ends_after_its_third_answer_without_saying_so() {
    let world = world(Fault::ConnectionMaxRequests);
    let mut client = connect(&world).await;
    for _ in 0..3 {
        client.ready().await.expect("the connection");
        let answer = client.send_request(order(&world)).await.expect("an answer");
        assert_eq!((answer.status().as_u16(), answer.headers().get("connection")), (200, None));
    }
    assert!(client.ready().await.is_err());
    assert_eq!(world.orders(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_request_is_read_up_to_the_byte_that_a_script_names() {
    for byte in [0, 1, 17, 250] {
        let name = "connection.reset-mid-request";
        let world = World::with_script(&format!("[[fault]]\nname = '{name}'\nnth = 1\nat_byte = {byte}"));
        let mut client = connect(&world).await;
        assert_eq!(seen(client.send_request(order(&world))).await.0, Seen::Reset, "{byte}");
        assert_eq!((world.orders(), world.truth().requests), (0, 0), "{byte}");
    }
}
