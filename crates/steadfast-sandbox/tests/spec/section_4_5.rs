//! §4.5 Other order and market-data endpoints.

use steadfast_sandbox::{ListScope, Sandbox};

use crate::{
    answer::{METHOD_NOT_ALLOWED, NOT_FOUND},
    endpoints::{CANCEL_ORDER, HISTORY, ORDERS, PLACE_ORDER, SCRIP_GROUP, SYMBOL_STORE},
    form::limit_order,
    world::{EQUITY, World},
};

#[tokio::test(start_paused = true)]
async fn spec_4_5_orders_are_an_array_of_records() {
    let world = World::new();
    let first = world.placed(&limit_order(EQUITY)).await;
    let second = world.placed(&limit_order(EQUITY)).await;

    let list = world.order_list().await;
    assert_eq!(list.len(), 2);
    assert!(list.iter().all(serde_json::Value::is_object), "{list:?}");
    for id in [first, second] {
        assert!(list.iter().any(|record| record["orderId"] == *id), "{id} in {list:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn spec_4_5_orders_of_other_users_are_not_listed() {
    let world = World::new();
    let theirs = world.post(PLACE_ORDER, &limit_order(EQUITY)).bearer(&world.other.session);
    world.calmly(&theirs).await.payload();
    assert_eq!(world.calmly(&world.get(ORDERS)).await.envelope()["s"], "no-data");
    assert_eq!(world.calmly(&world.get(HISTORY)).await.envelope()["s"], "no-data");

    let mine = world.placed(&limit_order(EQUITY)).await;
    let list = world.order_list().await;
    assert_eq!(list.len(), 1);
    assert_eq!(list[0]["orderId"], *mine);
}

#[tokio::test(start_paused = true)]
async fn spec_4_5_the_sessions_orders_are_the_logins_or_the_users_by_switch() {
    for (scope, other_login_sees) in [(ListScope::LoginSession, "no-data"), (ListScope::User, "ok")] {
        let sandbox = Sandbox::builder().seed(7).list_scope(scope).build();
        let world = World::of(sandbox.expect("a sandbox"));
        let second = world.log_in().await;
        world.placed(&limit_order(EQUITY)).await;
        assert_eq!(world.order_list().await.len(), 1, "the login that placed it always sees it");
        let list = world.calmly(&world.get(ORDERS).bearer(&second)).await;
        assert_eq!(list.envelope()["s"], other_login_sees, "{scope:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn spec_4_5_an_order_is_cancelled_by_its_id() {
    let world = World::new();
    let kept = world.placed(&limit_order(EQUITY)).await;
    let dropped = world.placed(&limit_order(EQUITY)).await;
    world.calmly(&world.delete(CANCEL_ORDER).query("orderId", &dropped)).await.payload();

    assert_eq!(world.listed(&dropped).await["status"], "cancelled");
    assert_ne!(world.listed(&kept).await["status"], "cancelled");
}

#[tokio::test(start_paused = true)]
async fn spec_4_5_cancel_without_an_order_id_is_not_allowed() {
    let world = World::new();
    let id = world.placed(&limit_order(EQUITY)).await;
    let cancel = world.delete(CANCEL_ORDER);
    for call in [
        cancel.clone(),
        cancel.clone().query("id", &id),
        cancel.clone().query("orderid", &id),
        cancel.query("symId", EQUITY),
    ] {
        world.calmly(&call).await.assert_error(405, METHOD_NOT_ALLOWED);
    }
    assert_ne!(world.listed(&id).await["status"], "cancelled");
}

#[tokio::test(start_paused = true)]
async fn spec_4_5_symbol_store_without_a_group_is_not_found() {
    let world = World::new();
    for path in [SYMBOL_STORE.to_owned(), format!("{SYMBOL_STORE}/")] {
        world.calmly(&world.get(&path)).await.assert_error(404, NOT_FOUND);
    }
    world.calmly(&world.get(SCRIP_GROUP)).await.payload();
}
