//! A call may be dropped at any point. It leaves nothing behind, or an order that is still looked for.

use steadfast_verify::probes::drop_at_every_poll;

use crate::world::{SECOND, World, script};

/// Drops placements at every poll and returns how many orders exist, and how many placements began.
async fn placements_dropped_at_every_poll(world: &World) -> (usize, usize) {
    let (placed, polls) = drop_at_every_poll(
        || {
            let world = world.clone();
            async move { world.place("a").await }
        },
        |polls| {
            let world = world.clone();
            async move {
                world.stack.known_orders().shutdown().await;
                assert_eq!(world.stack.known_orders().in_doubt(), 0, "dropped after {polls} polls");
                // Twice the longest window: long enough for every stamp and hold to end by itself.
                tokio::time::sleep(130 * SECOND).await;
                let snapshot = world.stack.rate_limits().snapshot();
                assert!(snapshot.zones.is_empty(), "dropped after {polls} polls: {snapshot:?}");
            }
        },
    )
    .await;
    assert!(placed.unwrap().is_some());
    (world.sandbox.state().orders.len(), polls)
}

#[tokio::test(start_paused = true)]
async fn a_placement_dropped_anywhere_leaves_no_permit_no_waiter_and_no_doubt() {
    let world = World::new(script(""));
    let (orders, placements) = placements_dropped_at_every_poll(&world).await;
    assert!((1..=placements).contains(&orders), "{orders} orders of {placements} placements");
}

#[tokio::test(start_paused = true)]
async fn a_placement_dropped_while_it_is_in_doubt_is_never_sent_again() {
    let world =
        World::new(script("[[fault]]\nname = 'placement.504-not-applied'\nattempt = 1\nintent = 'b'"));
    let doubtful = {
        let world = world.clone();
        tokio::spawn(async move { world.place("b").await })
    };
    // The 504 has come, and the search for the order goes on.
    tokio::time::sleep(5 * SECOND).await;
    assert_eq!(world.stack.known_orders().in_doubt(), 1);
    doubtful.abort();
    assert!(doubtful.await.unwrap_err().is_cancelled());
    assert_eq!(world.stack.known_orders().in_doubt(), 1, "its caller is gone, and it is still looked for");
    world.stack.known_orders().shutdown().await;
    assert_eq!(world.sandbox.state().orders.len(), 0, "nobody waits for it, so it is not sent again");
}

#[tokio::test(start_paused = true)]
async fn doubtful_placements_dropped_anywhere_are_placed_at_most_once_each() {
    let world = World::new(script("[[fault]]\nname = 'placement.504-late'\nlate_by_ms = 3000"));
    let (orders, placements) = placements_dropped_at_every_poll(&world).await;
    assert!((1..=placements).contains(&orders), "{orders} orders of {placements} placements");
}
