//! §3 States and transitions: order statuses and the life of a token.

use std::time::Duration;

use steadfast_sandbox::BookEdit;

use crate::{
    endpoints::{CANCEL_ORDER, ORDERS},
    form::limit_order,
    world::{EQUITY, World},
};

const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);
const A_SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn spec_3_a_cancelled_order_is_listed_as_cancelled() {
    let world = World::new();
    let id = world.placed(&limit_order(EQUITY)).await;
    world.calmly(&world.delete(CANCEL_ORDER).query("orderId", &id)).await.payload();
    assert_eq!(world.listed(&id).await["status"], "cancelled");
}

#[tokio::test(start_paused = true)]
async fn spec_3_each_status_is_listed_by_its_name() {
    let world = World::new();
    let edits = [
        (None, "open"),
        (Some(BookEdit::Fill), "completed"),
        (Some(BookEdit::Reject), "rejected"),
        (Some(BookEdit::Cancel), "cancelled"),
    ];
    for (edit, status) in edits {
        let id = world.placed(&limit_order(EQUITY)).await;
        if let Some(edit) = edit {
            world.sandbox.edit_order(&id, edit).expect("an open order");
        }
        assert_eq!(world.listed(&id).await["status"], status);
    }
}

#[tokio::test(start_paused = true)]
async fn spec_3_a_token_is_valid_for_24_hours_from_issue() {
    let world = World::new();
    let session = world.log_in().await;
    let call = world.get(ORDERS).bearer(&session);

    world.pass(A_DAY - A_SECOND);
    assert!(call.send().await.status.is_success(), "valid at 23:59:59");
    world.pass(A_SECOND);
    call.send().await.assert_error(401, "Unauthorized");
    world.pass(A_DAY);
    call.send().await.assert_error(401, "Unauthorized");
}

#[tokio::test(start_paused = true)]
async fn spec_3_an_oauth_token_is_valid_for_24_hours_from_issue() {
    let world = World::new();
    let session = world.log_in_by_oauth().await;
    let call = world.get(ORDERS).bearer(&session);

    world.pass(A_DAY - A_SECOND);
    assert!(call.send().await.status.is_success(), "valid at 23:59:59");
    world.pass(A_SECOND);
    call.send().await.assert_error(401, "Unauthorized");
}

#[tokio::test(start_paused = true)]
async fn spec_3_use_does_not_prolong_a_token() {
    let world = World::new();
    let session = world.log_in().await;
    let call = world.get(ORDERS).bearer(&session);
    for _ in 0..23 {
        world.pass(A_DAY / 24);
        assert!(call.send().await.status.is_success());
    }
    world.pass(A_DAY / 24);
    call.send().await.assert_error(401, "Unauthorized");
}

#[tokio::test(start_paused = true)]
async fn spec_3_an_expired_token_is_refused_without_detail() {
    let world = World::new();
    let session = world.log_in().await;
    world.pass(A_DAY);

    let expired = world.get(ORDERS).bearer(&session).send().await;
    let unknown =
        world.get(ORDERS).authorization(&format!("Bearer {}:nonsense", session.api_key)).send().await;
    expired.assert_error(401, "Unauthorized");
    assert_eq!(expired.body, unknown.body, "an expired token must look like an unknown one");
    let names = |answer: &crate::answer::Answer| answer.headers.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&expired), names(&unknown));
}
