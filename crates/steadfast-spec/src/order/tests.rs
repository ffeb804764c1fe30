use proptest::prelude::*;

use super::*;
use crate::OrderChange;

const GOOD: [(&str, &str); 8] = [
    ("symId", "EQT_INFY_EQ_NSE"),
    ("qty", "10"),
    ("side", "buy"),
    ("type", "stoplimit"),
    ("product", "delivery"),
    ("validity", "day"),
    ("limitPrice", "1500.05"),
    ("trigPrice", "1499"),
];

fn with(field: &str, value: &'static str) -> Result<OrderRequest, InvalidOrder> {
    OrderRequest::from_fields(GOOD.map(|(name, good)| (name, if name == field { value } else { good })))
}

#[test]
fn a_good_order_round_trips_through_its_form() {
    let order = OrderRequest::from_fields(GOOD).unwrap();
    assert_eq!(OrderRequest::from_fields(order.form().iter()), Ok(order));
}

#[test]
fn each_wrong_field_is_named() {
    for (field, value, message) in [
        ("symId", "", "symId is required"),
        ("symId", " ", "symId is required"),
        ("qty", "ten", "qty is not a decimal number that can be held exactly"),
        ("qty", "0", "qty must be above zero"),
        ("qty", "-5", "qty must be above zero"),
        ("side", "BUY", "side is not one of buy, sell"),
        ("type", "LIMIT", "type is not one of limit, market, stoplimit, stopmarket"),
        ("product", "cnc", "product is not one of delivery, intraday, normal, cover, bracket"),
        ("validity", "DAY", "validity is not one of day, ioc, eos, gtc"),
        ("limitPrice", "", "limitPrice is required when type is stoplimit"),
        ("limitPrice", "0", "limitPrice must be above zero"),
        ("trigPrice", "", "trigPrice is required when type is stoplimit"),
        ("trigPrice", "1,499", "trigPrice is not a decimal number that can be held exactly"),
    ] {
        let error = with(field, value).unwrap_err();
        assert_eq!((error.field(), error.to_string().as_str()), (field, message), "{field}={value:?}");
    }
}

#[test]
fn each_type_asks_for_its_own_prices() {
    for (order_type, limit, trig) in [
        ("limit", true, false),
        ("market", false, false),
        ("stoplimit", true, true),
        ("stopmarket", false, true),
    ] {
        for (field, needed) in [("limitPrice", limit), ("trigPrice", trig)] {
            let fields = GOOD.map(|(name, good)| match name {
                "type" => (name, order_type),
                _ if name == field => (name, ""),
                _ => (name, good),
            });
            assert_eq!(OrderRequest::from_fields(fields).is_err(), needed, "{order_type} without {field}");
        }
    }
}

#[test]
fn an_extra_field_never_overrides_the_orders_own() {
    let builder = || {
        OrderRequest::builder()
            .sym_id("EQT_INFY_EQ_NSE".parse().unwrap())
            .qty(1)
            .side(Side::Sell)
            .order_type(OrderType::Market)
            .product(Product::Intraday)
            .validity(Validity::Ioc)
    };
    let remarked = builder().extra("remarks", "a").build().unwrap();
    assert!(remarked.form().encode().ends_with("&remarks=a"));
    assert_eq!((remarked.extra("Remarks"), remarked.extra("other")), (Some("a"), None));
    assert_eq!(
        builder().extra("qty", "9").build().unwrap_err().to_string(),
        "qty cannot be given as an extra field"
    );
    for again in ["a", "A", " a "] {
        let twice = builder().extra("a", "1").extra(again, "2").build();
        assert_eq!(twice.unwrap_err().to_string(), format!("{again} is given twice"));
        let twice = OrderRequest::from_fields(GOOD.into_iter().chain([("a", "1"), (again, "")]));
        assert_eq!(twice.unwrap_err().to_string(), format!("{again} is given twice"));
    }
}

/// Regression: the first wrong number stayed wrong, or hid the second.
#[test]
fn a_later_number_replaces_a_wrong_one_of_its_field_alone() {
    let builder = || {
        OrderRequest::builder()
            .sym_id("EQT_INFY_EQ_NSE".parse().unwrap())
            .side(Side::Sell)
            .order_type(OrderType::Market)
            .product(Product::Intraday)
            .validity(Validity::Ioc)
    };
    assert!(builder().qty("ten").qty(10).build().is_ok());
    let other = builder().qty("ten").limit_price("much").qty(10).build();
    assert_eq!(other.unwrap_err().field(), "limitPrice");
    assert!(OrderChange::new().qty("ten").qty(10).check("1").is_ok());
}

/// Regression: zero was said to be too little, which is allowed there.
#[test]
fn a_price_that_no_type_needs_must_not_be_below_zero() {
    let market = |price| {
        let fields = GOOD.map(|(name, good)| match name {
            "type" => (name, "market"),
            "limitPrice" => (name, price),
            _ => (name, good),
        });
        OrderRequest::from_fields(fields)
    };
    assert!(market("0").is_ok());
    assert_eq!(market("-1").unwrap_err().to_string(), "limitPrice must not be below zero");
}

#[test]
fn eos_outside_bse_warns_and_is_refused_on_request() {
    let order = with("validity", "eos").unwrap();
    assert!(order.is_eos_outside_bse());
    let refused = OrderRequest::builder()
        .sym_id(order.sym_id().clone())
        .qty(1)
        .side(Side::Buy)
        .order_type(OrderType::Market)
        .product(Product::Delivery)
        .validity(Validity::Eos)
        .refuse_eos_outside_bse()
        .build();
    assert_eq!(refused.unwrap_err().to_string(), "validity eos is for BSE only");
}

proptest! {
    #[test]
    fn every_order_survives_form_encoding(
        symbol in "[A-Z&]{1,8}", qty in 1_u32.., cents in 1_i64..10_000_000, side in 0_usize..2, kind in 0_usize..4,
        product in 0_usize..5, validity in 0_usize..4, extra in prop::option::of(".{1,10}"),
    ) {
        let mut builder = OrderRequest::builder()
            .sym_id(format!("EQT_{symbol}_EQ_BSE").parse().unwrap())
            .qty(qty)
            .side(Side::ALL[side])
            .order_type(OrderType::ALL[kind])
            .product(Product::ALL[product])
            .validity(Validity::ALL[validity])
            .limit_price(Decimal::new(cents, 2))
            .trig_price(Decimal::new(cents, 2));
        if let Some(extra) = extra { builder = builder.extra("remarks", extra); }
        let order = builder.build().unwrap();
        let read = Form::parse(order.form().encode().as_bytes()).unwrap();
        prop_assert_eq!(OrderRequest::from_fields(read.iter()), Ok(order));
    }

    #[test]
    fn no_fields_panic(fields in prop::collection::vec(("(symId|qty|side|type|limitPrice|x)", "\\PC{0,12}"), 0..8)) {
        let _ = OrderRequest::from_fields(fields.iter().map(|(k, v)| (k.as_str(), v.as_str())));
    }
}
