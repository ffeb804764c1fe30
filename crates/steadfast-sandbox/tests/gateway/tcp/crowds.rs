//! Many clients at once, and slow ones.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{list, order, started};
use crate::{wire::Wire, world::World};

/// More connections than the server takes at once.
const CROWD: usize = 1_150;

#[tokio::test]
async fn x05_idle_connections_yield_to_new_ones() {
    let (world, server) = started(World::new()).await;
    let mut crowd = Vec::new();
    for _ in 0..CROWD {
        crowd.push(server.connect().await);
    }
    let began = Instant::now();
    let mut last = server.connect().await;
    last.send(order(&world)).await;
    assert_eq!(last.response().await.expect("an answer").status, 200);
    // Idle connections end by themselves after ten seconds.
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(crowd[0].end().await.expect("a regular end"), 0, "the first one was idle longest");
    let newest = crowd.last_mut().expect("a connection");
    newest.send(list(&world)).await;
    assert_eq!(newest.response().await.expect("an answer").status, 200, "the newest one stays");
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn x05_a_slow_body_ends_its_connection_after_ten_seconds() {
    let (world, server) = started(World::new()).await;
    let order = order(&world);
    let (head, body) = order.split_at(order.find("symId").expect("a body"));
    for pause in [None, Some(Duration::from_secs(2))] {
        let mut wire = server.connect().await;
        let began = Instant::now();
        wire.send(head).await;
        if let Some(pause) = pause {
            for byte in body.bytes().take(5) {
                sleep(pause).await;
                wire.send([byte]).await;
            }
        }
        let answer = wire.response().await.expect("an answer");
        assert_eq!((answer.status, &answer.json()["msg"]), (400, &"Bad request".into()), "{pause:?}");
        assert_eq!(wire.end().await.unwrap_or_default(), 0, "the connection ends");
        let waited = began.elapsed();
        assert!((Duration::from_secs(9)..Duration::from_secs(15)).contains(&waited), "{pause:?}: {waited:?}");
    }
    assert_eq!(world.orders(), 0);
    server.stop().await;
}

#[tokio::test]
async fn x05_a_connection_whose_request_is_at_work_stays() {
    let script = "[[fault]]\nname = 'placement.504-applied'\nnth = 1\nanswer_after_ms = 1500";
    let (world, server) = started(World::with_script(script)).await;
    let mut busy = server.connect().await;
    busy.send(order(&world)).await;
    super::until(|| world.truth().requests == 1).await;
    let mut crowd: Vec<Wire> = Vec::new();
    for _ in 0..CROWD {
        crowd.push(server.connect().await);
    }
    assert_eq!(server.ask(&list(&world)).await.status, 200);
    assert_eq!(busy.response().await.expect("an answer").status, 504);
    server.stop().await;
}
