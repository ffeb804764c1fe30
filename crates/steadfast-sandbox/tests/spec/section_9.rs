//! §9 Versioning: the version is in the base address.

use http::Method;

use crate::{
    answer::NOT_FOUND,
    endpoints::{ORDERS, PLACE_ORDER},
    form::limit_order,
    world::{EQUITY, World},
};

/// Wrong values in place of `/v2`.
const WRONG_BASES: [&str; 8] = ["", "/v1", "/v3", "/V2", "/v2.0", "/v22", "/2", "/api/v2"];

#[tokio::test(start_paused = true)]
async fn spec_9_other_base_addresses_do_not_resolve() {
    let world = World::new();
    let host = world.base_url.strip_suffix("/v2").expect("a base address that ends with /v2");
    for base in WRONG_BASES {
        let list = world.request_to(Method::GET, &format!("{host}{base}{ORDERS}"));
        world.calmly(&list).await.assert_error(404, NOT_FOUND);
        let order = world.request_to(Method::POST, &format!("{host}{base}{PLACE_ORDER}"));
        world.calmly(&order.form(&limit_order(EQUITY))).await.assert_error(404, NOT_FOUND);
    }
    assert_eq!(world.orders_in_the_book(), 0);

    world.placed(&limit_order(EQUITY)).await;
}
