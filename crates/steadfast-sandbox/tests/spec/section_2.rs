//! §2 Resources and their fields: symbols and order field codes.

use serde_json::Value;

use crate::{
    answer::INVALID_INPUT,
    form::{Form, limit_order, order_of_type},
    world::{EQUITY, World},
};

const SIDES: [&str; 2] = ["buy", "sell"];
const TYPES: [&str; 4] = ["limit", "market", "stoplimit", "stopmarket"];
const PRODUCTS: [&str; 5] = ["delivery", "intraday", "normal", "cover", "bracket"];
const VALIDITIES: [&str; 4] = ["day", "ioc", "eos", "gtc"];
const STATUSES: [&str; 4] = ["open", "completed", "rejected", "cancelled"];
const LEG_TYPES: [&str; 3] = ["main", "stoploss", "target"];

#[tokio::test(start_paused = true)]
async fn spec_2_scrip_master_symbols_have_the_three_shapes() {
    let symbols = World::new().instruments().await.all;
    for symbol in &symbols {
        let parts: Vec<&str> = symbol.split('_').collect();
        assert!(parts.iter().all(|part| !part.is_empty()), "{symbol}");
        match parts.as_slice() {
            ["EQT", _symbol, _series, _exchange] => {}
            ["FUT", _symbol, "FUT", _exchange, expiry] => assert!(is_expiry(expiry), "{symbol}"),
            ["OPT", _symbol, "CE" | "PE", _exchange, expiry, strike] => {
                assert!(is_expiry(expiry), "{symbol}");
                assert!(strike.parse::<f64>().is_ok(), "{symbol}");
            }
            _ => panic!("{symbol} has none of the three shapes"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn spec_2_an_order_takes_each_symbol_shape() {
    let world = World::new();
    let known = world.instruments().await;
    for symbol in [known.equity, known.future, known.option] {
        let id = world.placed(&limit_order(&symbol).with("product", "normal")).await;
        assert_eq!(world.listed(&id).await["symId"], *symbol);
    }
}

#[tokio::test(start_paused = true)]
async fn spec_2_valid_symbols_are_looked_up_in_the_scrip_master() {
    let world = World::new();
    let known = world.instruments().await.all;
    assert!(known.contains(EQUITY), "the fixture's symbol is not listed");
    for symbol in known.iter().step_by(known.len().div_ceil(20)) {
        world.placed(&limit_order(symbol).with("product", "normal")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn spec_2_malformed_symbols_fail_validation() {
    let world = World::new();
    let malformed = [
        "",
        "RELIANCE",
        "EQT",
        "EQT_RELIANCE",
        "EQT_RELIANCE_EQ",
        "EQT_RELIANCE_EQ_",
        "EQT__EQ_NSE",
        "EQT-RELIANCE-EQ-NSE",
        "XYZ_RELIANCE_EQ_NSE",
        "FUT_NIFTY_FUT_NFO",
        "OPT_NIFTY_CE_NFO",
        "OPT_NIFTY_XX_NFO_26-DEC-2026_24000",
    ];
    for symbol in malformed {
        world.place(&limit_order(symbol)).await.assert_error(400, INVALID_INPUT);
    }
    assert_eq!(world.orders_in_the_book(), 0);
}

#[tokio::test(start_paused = true)]
async fn spec_2_every_code_is_accepted() {
    let world = World::new();
    let bse = world.instruments().await.bse_equity;
    for side in SIDES {
        world.placed(&limit_order(EQUITY).with("side", side)).await;
    }
    for price_type in TYPES {
        world.placed(&order_of_type(EQUITY, price_type)).await;
    }
    for product in PRODUCTS {
        world.placed(&limit_order(EQUITY).with("product", product)).await;
    }
    for validity in VALIDITIES {
        let symbol = if validity == "eos" { &bse } else { EQUITY };
        world.placed(&limit_order(symbol).with("validity", validity)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn spec_2_codes_are_lowercase_and_exact() {
    let near_misses: [(&str, &[&str]); 4] = [
        ("side", &["BUY", "SELL", "Buy", "b", "s", "B", "S", "long", "buy ", " sell", "1", ""]),
        (
            "type",
            &[
                "LIMIT",
                "MARKET",
                "Limit",
                "l",
                "lmt",
                "mkt",
                "stop",
                "sl",
                "SL-M",
                "stop-limit",
                "stopLimit",
                "",
            ],
        ),
        ("product", &["cnc", "CNC", "mis", "nrml", "DELIVERY", "Intraday", "margin", "co", "bo", "del", ""]),
        ("validity", &["DAY", "Day", "d", "IOC", "EOS", "GTC", "gtd", "fok", "day ", ""]),
    ];
    let world = World::new();
    for (field, values) in near_misses {
        for value in values {
            // All prices are given, so that only the code can be at fault.
            let order = order_of_type(EQUITY, "stoplimit").with(field, value);
            world.place(&order).await.assert_error(400, INVALID_INPUT);
        }
    }
    assert_eq!(world.orders_in_the_book(), 0);
}

#[tokio::test(start_paused = true)]
async fn spec_2_field_names_are_case_sensitive() {
    let world = World::new();
    let order = limit_order(EQUITY).without("symId").with("symid", EQUITY);
    world.place(&order).await.assert_error(400, INVALID_INPUT);
}

#[tokio::test(start_paused = true)]
async fn spec_2_codes_come_back_as_they_were_sent() {
    let world = World::new();
    let orders = [
        limit_order(EQUITY).with("qty", "7"),
        limit_order(EQUITY).with("side", "sell").with("product", "intraday").with("validity", "ioc"),
        order_of_type(EQUITY, "market").with("product", "normal"),
        order_of_type(EQUITY, "stoplimit").with("validity", "gtc"),
        order_of_type(EQUITY, "stopmarket").with("qty", "1200"),
    ];
    for order in orders {
        let id = world.placed(&order).await;
        let record = world.listed(&id).await;
        for field in ["symId", "side", "type", "product", "validity"] {
            assert_eq!(record[field], *order.get(field), "{field} of {record}");
        }
        assert_eq!(as_text(&record["qty"]), order.get("qty"), "{record}");
        assert!(record["orderId"].is_string(), "{record}");
    }
}

#[tokio::test(start_paused = true)]
async fn spec_2_records_carry_only_listed_codes() {
    let world = World::new();
    for price_type in TYPES {
        world.placed(&order_of_type(EQUITY, price_type)).await;
    }
    let cancelled = world.placed(&limit_order(EQUITY)).await;
    let cancel = world.delete(crate::endpoints::CANCEL_ORDER).query("orderId", &cancelled);
    world.calmly(&cancel).await.payload();
    let bracket = world.placed(&limit_order(EQUITY).with("product", "bracket")).await;
    let cover = world.placed(&limit_order(EQUITY).with("product", "cover")).await;

    for record in world.order_list().await {
        assert_listed(&record, "side", &SIDES);
        assert_listed(&record, "type", &TYPES);
        assert_listed(&record, "product", &PRODUCTS);
        assert_listed(&record, "validity", &VALIDITIES);
        assert_listed(&record, "status", &STATUSES);
        let is_leg = record["orderId"] == *bracket || record["orderId"] == *cover;
        if is_leg || record.get("legType").is_some_and(|leg| !leg.is_null()) {
            assert_listed(&record, "legType", &LEG_TYPES);
        }
    }
}

#[track_caller]
fn assert_listed(record: &Value, field: &str, allowed: &[&str]) {
    assert!(record[field].as_str().is_some_and(|code| allowed.contains(&code)), "{field} of {record}");
}

/// Numbers come back as a JSON number or a string; the specification does not say which.
fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A day, a month's abbreviation and a year, with or without a separator.
fn is_expiry(text: &str) -> bool {
    let plain: String = text.chars().filter(|c| !matches!(c, '-' | ' ')).collect();
    let month = plain.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
    let (day, rest) = plain.split_at(month);
    let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    rest.len() >= 3
        && day.parse::<u8>().is_ok_and(|day| (1..=31).contains(&day))
        && months.contains(&rest[..3].to_ascii_lowercase().as_str())
        && matches!(rest[3..].len(), 2 | 4)
        && rest[3..].parse::<u16>().is_ok()
}

/// Checks that the reader above also rejects.
#[test]
fn expiry_reader_tells_day_month_and_year() {
    for good in ["26-Dec-2024", "26DEC24", "5-JAN-2027"] {
        assert!(is_expiry(good), "{good}");
    }
    for bad in ["2024-12-26", "26-12-2024", "DEC2024", "99DEC2024", "26DEC", ""] {
        assert!(!is_expiry(bad), "{bad}");
    }
    assert_eq!(Form::new([("a", "b c")]).fully_percent_encoded(), "a=%62%20%63");
}
