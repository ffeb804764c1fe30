//! Placing an order.

use http::Method;
use steadfast::{OrderRequest, Outcome, call::Failure, spec::Form};
use steadfast_sandbox::Sandbox;

use crate::{
    served::serve,
    world::{World, faulty, fields_with, order_with, sandbox},
};

/// Returns the field for which an order is refused locally.
fn refused_field(changes: &[(&str, &str)]) -> String {
    OrderRequest::from_fields(fields_with(changes)).unwrap_err().field().to_owned()
}

#[test]
fn spec_4_4_client_each_required_field_is_required_by_name() {
    for field in ["symId", "qty", "side", "type", "product", "validity"] {
        assert_eq!(refused_field(&[(field, "")]), field);
    }
}

#[test]
fn spec_4_4_client_limit_and_stoplimit_need_a_limit_price() {
    for kind in ["limit", "stoplimit"] {
        assert_eq!(refused_field(&[("type", kind), ("trigPrice", "99"), ("limitPrice", "")]), "limitPrice");
    }
    for kind in ["market", "stopmarket"] {
        order_with(&[
            ("type", kind),
            ("trigPrice", if kind == "market" { "" } else { "99" }),
            ("limitPrice", ""),
        ]);
    }
}

#[test]
fn spec_4_4_client_stoplimit_and_stopmarket_need_a_trigger_price() {
    for kind in ["stoplimit", "stopmarket"] {
        let price = if kind == "stoplimit" { "100" } else { "" };
        assert_eq!(refused_field(&[("type", kind), ("trigPrice", ""), ("limitPrice", price)]), "trigPrice");
    }
    for kind in ["limit", "market"] {
        order_with(&[("type", kind), ("limitPrice", if kind == "limit" { "100" } else { "" })]);
    }
}

#[test]
fn spec_4_4_client_quantity_and_prices_are_numbers() {
    for field in ["qty", "limitPrice", "trigPrice"] {
        for value in ["ten", "1,5", "NaN", "0x10", " 1"] {
            assert_eq!(refused_field(&[("type", "stoplimit"), ("trigPrice", "99"), (field, value)]), field);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn spec_4_4_client_every_order_that_can_be_built_is_accepted_by_the_gateway() {
    let sandbox = sandbox(Sandbox::builder());
    let world = World::at(&sandbox);
    for product in ["delivery", "intraday", "normal", "cover", "bracket"] {
        for (kind, limit, trigger) in
            [("limit", "100", ""), ("market", "", ""), ("stoplimit", "100", "99"), ("stopmarket", "", "99")]
        {
            for side in ["buy", "sell"] {
                let order = order_with(&[
                    ("product", product),
                    ("type", kind),
                    ("limitPrice", limit),
                    ("trigPrice", trigger),
                    ("side", side),
                ]);
                let placed = world.place(&order).await;
                assert!(placed.is_ok(), "{side} {kind} {product}: {placed:?}");
            }
        }
    }
    assert_eq!(world.wire.to_path("/api/oms/place-order").len(), 40, "each left once");
}

#[tokio::test]
async fn spec_4_4_client_success_is_an_order_id_and_a_message() {
    let served = serve(Sandbox::builder().build().unwrap()).await;
    let placed = served.client().place_order(&order_with(&[])).await.unwrap();
    let orders = served.sandbox.state().orders;
    assert_eq!(orders.len(), 1);
    assert_eq!(placed.order_id, orders[0].order_id);
    assert!(!placed.msg.is_empty());
    assert_eq!(placed.resolution, None, "it was simply answered");
}

#[tokio::test(start_paused = true)]
async fn spec_4_4_client_an_invalid_order_is_not_sent_even_if_its_form_was_written_by_hand() {
    let sandbox = sandbox(Sandbox::builder());
    let world = World::at(&sandbox);
    for change in
        [("side", "BUY"), ("product", "cnc"), ("validity", "DAY"), ("limitPrice", ""), ("qty", "ten")]
    {
        let fields = fields_with(&[change]);
        let form =
            fields.into_iter().fold(Form::new(), |form, (name, value)| form.with(name.to_owned(), value));
        let request = world.request(Method::POST, "/api/oms/place-order", &form.encode());
        let refused = world.call(request).await.unwrap_err();
        assert_eq!(Failure::outcome_of(&*refused), Outcome::NotSent, "{change:?}");
    }
    assert_eq!(world.wire.to_path("/api/oms/place-order").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn spec_4_4_client_after_a_504_the_list_is_read_before_anything_is_sent_again() {
    for (fault, placements) in [("placement.504-applied", 1), ("placement.504-not-applied", 2)] {
        let sandbox = faulty(&format!("[[fault]]\nname = '{fault}'\nnth = 1"));
        let world = World::at(&sandbox);
        let placed = world.place(&order_with(&[])).await.unwrap();
        let lines = world.wire.lines();
        let doubtful = lines.iter().position(|line| line == "POST /api/oms/place-order 504").unwrap();
        assert_eq!(lines[doubtful + 1], "GET /api/oms/orders 200", "{lines:?}");
        let posts = lines.iter().filter(|line| line.starts_with("POST")).count();
        assert_eq!(posts, placements, "{lines:?}");
        let orders = sandbox.state().orders;
        assert_eq!(orders.len(), 1, "no duplicate");
        assert_eq!(orders[0].order_id, placed.order_id);
    }
}

#[tokio::test(start_paused = true)]
async fn spec_4_4_client_an_order_that_comes_late_after_a_504_is_not_placed_again() {
    let sandbox = faulty("[[fault]]\nname = 'placement.504-late'\nnth = 1\nlate_by_ms = 12000");
    let world = World::at(&sandbox);
    let placed = world.place(&order_with(&[])).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(120)).await;
    let orders = sandbox.state().orders;
    assert_eq!(orders.iter().map(|order| &order.order_id).collect::<Vec<_>>(), [&placed.order_id]);
    assert_eq!(world.wire.to_path("/api/oms/place-order").len(), 1);
}
