use std::{io, time::Duration};

use super::{list, order, started, until};
use crate::world::World;

#[tokio::test]
async fn a_server_that_stops_finishes_what_it_has_begun() {
    // The server is told to stop during the 200 ms before the answer.
    let (world, server) = started(World::with_fault("placement.504-applied", 1.0)).await;
    let address = server.address;
    let (mut idle, mut fresh, mut busy) =
        (server.connect().await, server.connect().await, server.connect().await);
    idle.send(list(&world)).await;
    assert_eq!(idle.response().await.expect("an answer").status, 200);
    busy.send(order(&world)).await;
    until(|| world.truth().requests == 2).await;
    let served = server.begin_to_stop();
    assert_eq!(busy.response().await.expect("an answer").status, 504);
    for wire in [&mut busy, &mut idle, &mut fresh] {
        assert_eq!(wire.end().await.expect("a regular end"), 0);
    }
    served.await.expect("no panic").expect("no error");
    let refused = tokio::net::TcpStream::connect(address).await.expect_err("nobody listens");
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn a_server_that_stops_does_not_wait_for_ever() {
    let script = "[[fault]]\nname = 'placement.504-applied'\nnth = 1\nanswer_after_ms = 60000";
    let (world, server) = started(World::with_script(script)).await;
    let mut wire = server.connect().await;
    wire.send(order(&world)).await;
    until(|| world.truth().requests == 1).await;
    // The socket is silent from here on, so time may be skipped.
    tokio::time::pause();
    let told = tokio::time::Instant::now();
    server.stop().await;
    assert_eq!(told.elapsed().as_secs(), 2);
    tokio::time::resume();
    assert!(!matches!(wire.response().await, Ok(answer) if answer.status > 0), "the connection is gone");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_finish_its_head_is_cut_off() {
    let (world, server) = started(World::new()).await;
    let mut wire = server.connect().await;
    let began = tokio::time::Instant::now();
    wire.send("GET /v2/api/oms/orders HTTP/1.1\r\nhost: sand").await;
    let _ = wire.end().await;
    let waited = began.elapsed();
    assert!((Duration::from_secs(9)..Duration::from_secs(15)).contains(&waited), "{waited:?}");
    assert_eq!(world.truth().requests, 0);
}

#[tokio::test]
async fn a_server_whose_future_is_dropped_leaves_no_connection_behind() {
    let world = World::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let sandbox = world.sandbox.clone();
    let served = tokio::spawn(async move { sandbox.serve(listener, std::future::pending()).await });
    let mut wire =
        crate::wire::Wire::new(tokio::net::TcpStream::connect(address).await.expect("a connection"));
    wire.send(list(&world)).await;
    assert_eq!(wire.response().await.expect("an answer").status, 200);
    served.abort();
    assert!(served.await.is_err());
    assert_eq!(wire.end().await.expect("a regular end"), 0);
}
