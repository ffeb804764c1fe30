//! Orders, changes and cancels that cannot be meant: the error names the field, and nothing is
//! sent.

use steadfast::{ErrorKind, OrderChange, OrderRequest};

use crate::answers::{Answers, reply};

const GOOD: [(&str, &str); 8] = [
    ("symId", "EQT_INFY_EQ_NSE"),
    ("qty", "10"),
    ("side", "buy"),
    ("type", "stoplimit"),
    ("limitPrice", "100.05"),
    ("trigPrice", "99"),
    ("product", "delivery"),
    ("validity", "day"),
];

fn with(field: &str, value: &str) -> Result<OrderRequest, steadfast::spec::InvalidOrder> {
    OrderRequest::from_fields(GOOD.map(|(name, good)| (name, if name == field { value } else { good })))
}

#[test]
fn each_field_that_holds_what_it_cannot_is_named() {
    let controls = ["\0", "1\x000", "10\n0", "buy\rsell", "\u{7f}", "EQT_INFY_EQ_NSE\r\nqty: 9", "1\u{85}0"];
    for value in controls {
        for (field, _) in GOOD {
            // Space around an instrument is not part of it.
            let Err(error) = with(field, value) else { panic!("{field}={value:?} was taken") };
            assert_eq!(error.field(), field, "{value:?}");
            assert!(!error.to_string().contains(char::is_control), "{error:?}");
        }
    }
    let numbers = [
        "-1",
        "-0",
        "0",
        "0.000",
        "NaN",
        "nan",
        "inf",
        "-Infinity",
        "1E400",
        "1e-400",
        "1_000",
        "1,000",
        "0x10",
        "10.",
        "٣",
        "１０",
        "1 0",
        "--1",
        "1e",
        "79228162514264337593543950336",
        "0.00000000000000000000000000001",
    ];
    for value in numbers {
        for field in ["qty", "limitPrice", "trigPrice"] {
            assert_eq!(
                with(field, value).err().map(|error| error.field().to_owned()).as_deref(),
                Some(field),
                "{value}"
            );
        }
    }
    for value in ["BUY", "Buy", " buy", "buy ", "b", "market,limit", "limıt", "day;gtc", "cnc", "Day"] {
        for field in ["side", "type", "product", "validity"] {
            assert_eq!(
                with(field, value).err().map(|error| error.field().to_owned()).as_deref(),
                Some(field),
                "{value}"
            );
        }
    }
}

#[test]
fn a_number_is_sent_with_the_value_that_was_written_or_not_at_all() {
    for (written, sent) in [("+10", "10"), ("007", "7"), ("1e3", "1000"), ("10.500", "10.500"), (".5", "0.5")]
    {
        let Ok(order) = with("qty", written) else { continue };
        assert_eq!(order.form().get("qty"), Some(sent), "{written}");
    }
    // All digits that can be held are kept; one more is refused, and never rounded.
    let longest = "0.1234567890123456789012345678";
    assert_eq!(with("limitPrice", longest).unwrap().form().get("limitPrice"), Some(longest));
    assert_eq!(with("limitPrice", &format!("{longest}9")).unwrap_err().field(), "limitPrice");
}

#[test]
fn no_extra_field_can_pass_for_one_of_the_orders_own() {
    for (name, value, field) in [
        ("Qty", "5", "Qty"),
        ("QTY", "5", "QTY"),
        ("qty ", "5", "qty "),
        ("symid", "EQT_TCS_EQ_NSE", "symid"),
        ("LimitPrice", "1", "LimitPrice"),
        ("re\nmarks", "a", "extra"),
    ] {
        let error = OrderRequest::from_fields(GOOD.into_iter().chain([(name, value)])).unwrap_err();
        assert_eq!(error.field(), field, "{name:?}: {error}");
        let change = OrderChange::new().qty(5).extra(name, value);
        if name != "symid" {
            assert_eq!(change.check("1").unwrap_err().field(), field, "{name:?}");
        }
    }
    assert!(OrderRequest::from_fields(GOOD.into_iter().chain([("remarks", "a & b = c")])).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_change_or_cancel_of_no_order_is_refused_and_one_of_any_name_stays_one_parameter() {
    let gateway = Answers::with(|_, _| reply(200, r#"{"s":"ok","d":{"msg":"done"}}"#));
    let client = gateway.client();
    for id in ["", " ", "\t"] {
        assert_eq!(client.cancel(id).await.unwrap_err().kind(), ErrorKind::InvalidRequest, "{id:?}");
        let change = OrderChange::new().qty(5);
        assert_eq!(client.modify(id, &change).await.unwrap_err().kind(), ErrorKind::InvalidRequest, "{id:?}");
    }
    assert!(gateway.arrivals().is_empty());
    for id in ["1&qty=9", "1#", "../1", "%31", "1;orderId=2", "é"] {
        client.modify(id, &OrderChange::new().qty(5)).await.unwrap();
        let body = gateway.arrivals().pop().unwrap().body;
        assert_eq!((body.matches('&').count(), body.matches('=').count()), (1, 2), "{id}: {body}");
    }
}
