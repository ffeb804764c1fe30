//! Identifiers, codes and records.

use steadfast::{
    Operation, OrderRequest, OrderType, Paths, Product, Side, SymId, Validity,
    spec::{Code, Endpoint, FieldNames, LegType, OrderStatus, SymIdShape, TokenRecord, parse_order_list},
};
use steadfast_sandbox::{BookEdit, ListScope, Sandbox};

use crate::{
    wire::ok,
    world::{World, fields_with, order_with, sandbox},
};

const PLACE: &str = "/api/oms/place-order";

#[tokio::test(start_paused = true)]
async fn spec_2_client_every_listed_instrument_has_one_of_the_three_shapes() {
    let sandbox = sandbox(Sandbox::builder());
    let world = World::at(&sandbox);
    let response = world.send(&Operation::new(Endpoint::ScripMaster)).await.unwrap();
    let answer: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
    let (mut equities, mut futures, mut options) = (0, 0, 0);
    for scrip in answer["d"].as_array().unwrap() {
        let text = scrip["symId"].as_str().unwrap();
        let sym_id: SymId = text.parse().unwrap();
        assert_eq!(sym_id.as_str(), text);
        match sym_id.shape() {
            Some(SymIdShape::Equity { .. }) => equities += 1,
            Some(SymIdShape::Future { .. }) => futures += 1,
            Some(SymIdShape::Option { .. }) => options += 1,
            other => panic!("{text}: {other:?}"),
        }
    }
    assert!(equities > 100 && futures > 100 && options > 100, "{equities} {futures} {options}");
}

#[test]
fn spec_2_client_the_scrip_master_cannot_be_asked_before_its_path_is_set() {
    let lookup = Operation::new(Endpoint::ScripMaster);
    assert!(lookup.target(&Paths::default()).is_err(), "the specification does not show the path");
    assert_eq!(lookup.target(&Paths::public()).unwrap(), "/api/mkt-data/scrips/master");
}

#[tokio::test(start_paused = true)]
async fn spec_2_client_each_symbol_shape_goes_into_an_order_as_it_is() {
    for sym_id in ["EQT_M&M_EQ_BSE", "FUT_NIFTY_FUT_NFO_26Nov2026", "OPT_BANKNIFTY_PE_NFO_26Nov2026_45000"] {
        let world = World::scripted([ok(r#"{"orderId":"1","msg":"x"}"#)]);
        world.place(&order_with(&[("symId", sym_id)])).await.unwrap();
        assert_eq!(world.wire.only_to(PLACE).form().get("symId"), Some(sym_id));
    }
}

#[tokio::test(start_paused = true)]
async fn spec_2_client_codes_come_back_as_they_were_sent() {
    let sandbox = sandbox(Sandbox::builder().list_scope(ListScope::User));
    let world = World::at(&sandbox);
    let mut sent = Vec::new();
    for &side in Side::ALL {
        for &kind in OrderType::ALL {
            for &product in Product::ALL {
                for &validity in Validity::ALL {
                    let order = order_with(&[
                        ("symId", "EQT_INFY_EQ_BSE"),
                        ("side", side.as_str()),
                        ("type", kind.as_str()),
                        ("product", product.as_str()),
                        ("validity", validity.as_str()),
                        ("limitPrice", if kind.needs_limit_price() { "100.05" } else { "" }),
                        ("trigPrice", if kind.needs_trig_price() { "99.5" } else { "" }),
                    ]);
                    sent.push((sandbox.place_foreign(&order), order));
                }
            }
        }
    }
    assert_eq!(sent.len(), 2 * 4 * 5 * 4);
    let listed = parse_order_list(world.orders().await.body(), &FieldNames::default()).unwrap();
    for (order_id, order) in sent {
        let record = listed
            .iter()
            .find(|record| {
                record.order_id == order_id
                    && record.leg_type.as_ref().is_none_or(|leg| leg.is(LegType::Main))
            })
            .unwrap();
        assert_eq!(record.side, Some(Code::Known(order.side())));
        assert_eq!(record.order_type, Some(Code::Known(order.order_type())));
        assert_eq!(record.product, Some(Code::Known(order.product())));
        assert_eq!(record.validity, Some(Code::Known(order.validity())));
        assert_eq!(record.qty, Some(order.qty()));
        assert_eq!(record.sym_id.as_deref(), Some(order.sym_id().as_str()));
    }
}

#[tokio::test(start_paused = true)]
async fn spec_2_client_each_status_and_leg_of_the_order_book_is_understood() {
    let records: Vec<String> = OrderStatus::ALL
        .iter()
        .map(|status| format!(r#"{{"orderId":"{status}","status":"{status}"}}"#))
        .chain(LegType::ALL.iter().map(|leg| format!(r#"{{"orderId":"{leg}","legType":"{leg}"}}"#)))
        .collect();
    let world = World::scripted([ok(&format!("[{}]", records.join(",")))]);
    let listed = parse_order_list(world.orders().await.body(), &FieldNames::default()).unwrap();
    let statuses: Vec<_> = listed.iter().filter_map(|record| record.status.clone()).collect();
    assert_eq!(statuses, OrderStatus::ALL.iter().map(|&status| Code::Known(status)).collect::<Vec<_>>());
    let legs: Vec<_> = listed.iter().filter_map(|record| record.leg_type.clone()).collect();
    assert_eq!(legs, LegType::ALL.iter().map(|&leg| Code::Known(leg)).collect::<Vec<_>>());
    assert_eq!(
        ["open", "completed", "rejected", "cancelled", "main", "stoploss", "target"].as_slice(),
        listed.iter().map(|record| record.order_id.as_str()).collect::<Vec<_>>()
    );
}

#[tokio::test(start_paused = true)]
async fn spec_2_client_follows_an_order_through_the_statuses_of_the_book() {
    let sandbox = sandbox(Sandbox::builder());
    let world = World::at(&sandbox);
    for (edit, status) in [
        (BookEdit::Fill, OrderStatus::Completed),
        (BookEdit::Reject, OrderStatus::Rejected),
        (BookEdit::Cancel, OrderStatus::Cancelled),
    ] {
        // Far from the market, so that only the edit ends it.
        let order_id = sandbox.place_foreign(&order_with(&[("limitPrice", "0.05")]));
        sandbox.edit_order(&order_id, edit).unwrap();
        let listed = parse_order_list(world.orders().await.body(), &FieldNames::default()).unwrap();
        let record = listed.iter().find(|record| record.order_id == order_id).unwrap();
        assert_eq!(record.status, Some(Code::Known(status)));
    }
}

#[tokio::test(start_paused = true)]
async fn spec_2_client_fields_leave_under_the_names_of_the_specification() {
    let world = World::scripted([ok(r#"{"orderId":"1","msg":"x"}"#)]);
    world.place(&order_with(&[("type", "stoplimit"), ("trigPrice", "99.50")])).await.unwrap();
    let mut fields = world.wire.only_to(PLACE).fields();
    fields.sort();
    let named = ["limitPrice", "product", "qty", "side", "symId", "trigPrice", "type", "validity"];
    assert_eq!(fields, named);
}

#[test]
fn spec_2_client_codes_of_another_spelling_are_no_codes() {
    for (field, value) in [
        ("side", "BUY"),
        ("side", "b"),
        ("type", "Limit"),
        ("type", "sl"),
        ("product", "cnc"),
        ("product", "Delivery"),
        ("validity", "DAY"),
        ("validity", "gtd"),
    ] {
        let error = OrderRequest::from_fields(fields_with(&[(field, value)])).unwrap_err();
        assert_eq!(error.field(), field, "{value}");
    }
}

#[test]
fn spec_2_client_the_token_record_has_the_four_fields() {
    let record = TokenRecord::parse(
        br#"{"access_token":"abc","token_type":"bearer","expires_in":86400,"scope":"general"}"#,
    )
    .unwrap();
    assert_eq!(record.token_type.as_deref(), Some("bearer"));
    assert_eq!(record.scope.as_deref(), Some("general"));
    assert_eq!(record.expires_in.as_secs(), 86_400);
    let silent = TokenRecord::parse(br#"{"access_token":"abc"}"#).unwrap();
    assert_eq!(
        silent.expires_in.as_secs(),
        86_400,
        "a record that does not say is taken at the service's word"
    );
}

#[tokio::test(start_paused = true)]
async fn spec_2_client_an_order_id_is_kept_as_the_text_it_is() {
    let world = World::scripted([ok(r#"{"orderId":"0007é/&","msg":"x"}"#)]);
    let placed = world.place(&order_with(&[])).await.unwrap();
    assert_eq!(placed.order_id, "0007é/&");
    world.send(&Operation::cancel_order(&placed.order_id)).await.unwrap();
    assert_eq!(world.wire.only_to("/api/oms/cancel-order").uri.query(), Some("orderId=0007%C3%A9%2F%26"));
}
