//! Compares listed orders with the order that was asked for.
//!
//! There are two predicates, because the two mistakes cost differently. Taking an order for ours needs [`strict`];
//! taking ours for absent needs that nothing is even [`loose`]. Records between the two lead to no action.

use steadfast_spec::{Code, LegType, OrderRecord, OrderRequest, Product, Side, SymId};

use crate::protocol::work;

/// True if the record matches this order in every field that it shows.
///
/// Instrument, side and quantity must be there and equal. Every other field must be equal if the record has it. A
/// price that does not apply to the order's type is ignored: services fill it with zero or the last price.
pub(crate) fn strict(record: &OrderRecord, order: &OrderRequest) -> bool {
    work::count();
    // Asked first: nearly all orders of a crowd differ in it.
    if record.qty != Some(order.qty()) {
        return false;
    }
    let leg = record.leg_type.as_ref().is_none_or(|leg| leg.is(LegType::Main));
    let identity = record.sym_id.as_deref() == Some(order.sym_id().as_str())
        && record.side.as_ref().is_some_and(|side| side.is(order.side()));
    let codes = carried(record.product.as_ref(), order.product())
        && carried(record.order_type.as_ref(), order.order_type())
        && carried(record.validity.as_ref(), order.validity());
    let limit = !order.order_type().needs_limit_price()
        || record.limit_price.is_none()
        || record.limit_price == order.limit_price();
    let trig = !order.order_type().needs_trig_price()
        || record.trig_price.is_none()
        || record.trig_price == order.trig_price();
    leg && identity && codes && limit && trig
}

/// True if the record could show this order after a change by the user or the service.
///
/// A side that is missing or unknown excludes nothing, nor does a missing instrument. Exit legs are made by the
/// service and never match; but only bracket and cover orders have them, whatever a list calls the legs of others.
pub(crate) fn loose(record: &OrderRecord, order: &OrderRequest) -> bool {
    work::count();
    let side = match &record.side {
        Some(Code::Known(side)) => *side == order.side(),
        Some(Code::Other(_)) | None => true,
    };
    let is_leg = is_exit_leg(record) && (has_legs(order) || !is_of_its_product(record, order));
    !is_leg && may_be_its_instrument(record, order) && side
}

/// True if the record of an exit leg could be of this order, or is this order under another name.
pub(crate) fn may_be_its_leg(record: &OrderRecord, order: &OrderRequest) -> bool {
    has_legs(order) || record.product.is_none() || is_of_its_product(record, order)
}

fn has_legs(order: &OrderRequest) -> bool {
    matches!(order.product(), Product::Bracket | Product::Cover)
}

fn is_of_its_product(record: &OrderRecord, order: &OrderRequest) -> bool {
    record.product.as_ref().is_some_and(|product| product.is(order.product()))
}

/// True if the record shows the order's instrument, in any spelling, or none.
pub(crate) fn may_be_its_instrument(record: &OrderRecord, order: &OrderRequest) -> bool {
    let Some(listed) = record.sym_id.as_deref() else { return true };
    let is_folded_alike = |listed: SymId| listed.folded() == order.sym_id().folded();
    listed == order.sym_id().as_str() || listed.parse().is_ok_and(is_folded_alike)
}

/// True if the service made this leg to close the order's position.
pub(crate) fn is_exit_leg(record: &OrderRecord) -> bool {
    matches!(record.leg_type, Some(Code::Known(LegType::StopLoss | LegType::Target)))
}

/// Returns a small number for each leg that one order may be listed as: its direction and its type.
pub(crate) fn leg(record: &OrderRecord) -> u32 {
    let side = match record.side {
        Some(Code::Known(Side::Buy)) => 0,
        Some(Code::Known(Side::Sell)) => 1,
        Some(Code::Other(_)) | None => 2,
    };
    let leg = match record.leg_type {
        None | Some(Code::Known(LegType::Main)) => 0,
        Some(Code::Known(LegType::StopLoss)) => 1,
        Some(Code::Known(LegType::Target)) => 2,
        Some(Code::Other(_)) => 3,
    };
    side * 4 + leg
}

/// True if the record shows every field of the order.
pub(crate) fn is_full(record: &OrderRecord, order: &OrderRequest) -> bool {
    record.product.is_some()
        && record.order_type.is_some()
        && record.validity.is_some()
        && (record.limit_price.is_some() || !order.order_type().needs_limit_price())
        && (record.trig_price.is_some() || !order.order_type().needs_trig_price())
}

fn carried<T: PartialEq>(field: Option<&Code<T>>, wanted: T) -> bool {
    field.is_none_or(|code| code.is(wanted))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use steadfast_spec::{FieldNames, parse_order_list};

    use super::*;

    fn order(kind: &str) -> OrderRequest {
        OrderRequest::from_fields([
            ("symId", "EQT_INFY_EQ_NSE"),
            ("qty", "10"),
            ("side", "buy"),
            ("type", kind),
            ("product", "delivery"),
            ("validity", "day"),
            ("limitPrice", if matches!(kind, "limit" | "stoplimit") { "100" } else { "" }),
            ("trigPrice", if kind.starts_with("stop") { "99" } else { "" }),
        ])
        .unwrap()
    }

    fn record(fields: &str) -> OrderRecord {
        let body = format!(r#"{{"s":"ok","d":[{{"orderId":"1",{fields}}}]}}"#);
        parse_order_list(body.as_bytes(), &FieldNames::default()).unwrap().remove(0)
    }

    const SAME: &str = r#""symId":"EQT_INFY_EQ_NSE","side":"buy","qty":10"#;

    fn judged(fields: &str, kind: &str) -> (bool, bool) {
        let record = record(fields);
        (strict(&record, &order(kind)), loose(&record, &order(kind)))
    }

    #[test]
    fn s50_price_format_numbers_are_compared_as_decimals() {
        for extra in [r#""limitPrice":100"#, r#""limitPrice":"100.00""#, r#""limitPrice":1e2"#] {
            assert_eq!(judged(&format!("{SAME},{extra}"), "limit"), (true, true), "{extra}");
        }
        let spelled = SAME.replace(":10", r#":"10.0""#);
        assert_eq!(judged(&spelled, "limit"), (true, true));
    }

    #[test]
    fn a_trigger_price_that_differs_is_another_order() {
        for (price, same) in [("99", true), ("99.0", true), ("98", false)] {
            let listed = format!(r#"{SAME},"limitPrice":100,"trigPrice":{price}"#);
            assert_eq!(judged(&listed, "stoplimit"), (same, true), "{price}");
        }
    }

    #[test]
    fn s51_market_price_noise_is_ignored() {
        for extra in
            [r#""limitPrice":0"#, r#""limitPrice":1534.2"#, r#""trigPrice":0"#, r#""limitPrice":null"#]
        {
            assert_eq!(
                judged(&format!("{SAME},{extra},\"type\":\"market\""), "market"),
                (true, true),
                "{extra}"
            );
        }
        assert_eq!(judged(&format!("{SAME},\"trigPrice\":98"), "limit"), (true, true));
    }

    #[test]
    fn s53_to_s55_what_was_changed_is_near_and_not_ours() {
        for changed in [
            SAME.replace("10", "20"),
            SAME.replace(",\"qty\":10", ""),
            format!("{SAME},\"limitPrice\":100.05"),
            format!("{SAME},\"limitPrice\":0"),
            format!("{SAME},\"type\":\"market\""),
            format!("{SAME},\"type\":\"LMT\""),
            format!("{SAME},\"product\":\"intraday\""),
            format!("{SAME},\"validity\":\"ioc\""),
            format!("{SAME},\"legType\":\"something\""),
            SAME.replace("buy", "BUY"),
            SAME.replace("\"side\":\"buy\",", ""),
            SAME.replace("\"symId\":\"EQT_INFY_EQ_NSE\",", ""),
        ] {
            assert_eq!(judged(&changed, "limit"), (false, true), "{changed}");
        }
    }

    #[test]
    fn s48_bracket_legs_only_the_main_leg_counts() {
        assert_eq!(judged(&format!("{SAME},\"legType\":\"main\""), "limit"), (true, true));
        for leg in ["stoploss", "target"] {
            assert_eq!(judged(&format!("{SAME},\"legType\":\"{leg}\""), "limit"), (false, false));
        }
    }

    #[test]
    fn another_instrument_or_side_is_neither() {
        assert_eq!(judged(&SAME.replace("INFY", "TCS"), "limit"), (false, false));
        assert_eq!(judged(&SAME.replace("buy", "sell"), "limit"), (false, false));
    }

    proptest! {
        #[test]
        fn what_is_strict_is_loose(
            sym in prop::option::of("EQT_(INFY|TCS)_EQ_NSE"), side in prop::option::of("buy|sell|BUY"),
            qty in prop::option::of(9_u32..12), leg in prop::option::of("main|target|stoploss|x"),
            kind in prop::option::of("limit|market|x"), price in prop::option::of(99_u32..102),
        ) {
            let mut fields = vec![r#""status":"open""#.to_owned()];
            let mut text = |name: &str, value: Option<String>| {
                if let Some(value) = value { fields.push(format!("\"{name}\":\"{value}\"")) }
            };
            text("symId", sym);
            text("side", side);
            text("qty", qty.map(|q| q.to_string()));
            text("legType", leg);
            text("type", kind);
            text("limitPrice", price.map(|p| p.to_string()));
            let (strict, loose) = judged(&fields.join(","), "limit");
            prop_assert!(!strict || loose);
        }
    }
}
