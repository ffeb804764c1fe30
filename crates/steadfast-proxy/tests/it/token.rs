//! Orders while the service accepts no token.

use std::time::Duration;

use steadfast_sandbox::Sandbox;

use crate::world::World;

/// Regression: each order was sent, refused, and answered with 504 in doubt.
#[tokio::test]
async fn an_order_that_would_be_refused_is_not_sent_and_leaves_once_a_token_is_accepted_again() {
    let script = "[[fault]]\nname = 'auth.401'\nnth = 2\ntimes = 1000";
    let world = World::new(Sandbox::builder().script(script).unwrap()).await;
    let list = world.request("GET /v2/api/oms/orders HTTP/1.1", &[], "");
    assert_eq!(world.ask(&list).await.status, 200);
    // One 401 may be a mistake.
    assert_eq!(world.ask(&list).await.status, 401);
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    for line in ["POST /v2/api/oms/place-order HTTP/1.1", "PUT /v2/api/oms/modify-order HTTP/1.1"] {
        let kept = world.ask(&world.request(line, &[], crate::world::FORM)).await;
        assert_eq!((kept.status, kept.header("retry-after")), (503, None), "{kept:?}");
        let why = "the order was not sent: the service refuses the token (401); no login starts by itself";
        assert!(kept.header("proxy-status").unwrap().contains(why), "{kept:?}");
    }
    let cancel = world.request("DELETE /v2/api/oms/cancel-order?orderId=1 HTTP/1.1", &[], "");
    assert_eq!(world.ask(&cancel).await.status, 401, "it is tried");
    let tried =
        |path: &str| world.sandbox.state().arrivals.iter().filter(|it| it.path.contains(path)).count();
    assert_eq!((tried("place-order"), tried("modify-order"), tried("cancel-order")), (0, 0, 1));

    world.sandbox.heal();
    let placed = loop {
        let answer = world.ask(&world.order(&["Idempotency-Key: k1"])).await;
        if answer.status == 200 {
            break answer;
        }
        assert!(answer.status == 503 && tried("api/oms/orders") < 5, "{answer:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    let id = world.sandbox.state().orders[0].order_id.clone();
    assert!(placed.body.contains(&id) && world.placed() == 1, "{placed:?}");

    // A repetition is told of the order, whatever the token.
    world.sandbox.revoke(None);
    assert_eq!(world.ask(&list).await.status, 401);
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    assert_eq!(world.ask(&world.order(&["Idempotency-Key: k2"])).await.status, 503);
    let again = world.ask(&world.order(&["Idempotency-Key: k1"])).await;
    assert!(again.status == 200 && again.body.contains(&id), "{again:?}");
}
