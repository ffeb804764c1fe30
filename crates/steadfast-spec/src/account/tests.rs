use proptest::prelude::*;

use super::*;
use crate::{Code, Decimal, OrderStatus, Product, Side, UnreadableRecord};

fn ok(d: &str) -> Vec<u8> {
    format!(r#"{{"s":"ok","d":{d}}}"#).into_bytes()
}

fn position(record: &str) -> Result<Position, UnreadableRecord> {
    Position::parse_list(&ok(&format!("[{record}]"))).map(|mut list| list.remove(0))
}

const NO_DATA: &[u8] = br#"{"s":"no-data","msg":"no-data"}"#;

#[test]
fn a_position_is_read_by_the_names_of_the_specification_and_of_public_documentation() {
    for (quantity, qty) in [
        (r#""qty":"10""#, Ok(10)),
        (r#""netQty":-10"#, Ok(-10)),
        (r#""netQty":0.0"#, Ok(0)),
        (r#""qty":10,"netQty":"10.0""#, Ok(10)),
        (r#""qty":null,"netQty":7"#, Ok(7)),
        (r#""qty":10,"netQty":-10"#, Err("netQty")),
        (r#""qty":"ten""#, Err("qty")),
        (r#""buyQty":10"#, Err("qty")),
        (r#""qty":1,"qty":1"#, Err("qty")),
    ] {
        let read = position(&format!(r#"{{"symId":"EQT_A_EQ_NSE",{quantity}}}"#));
        let read = read.map(|position| position.qty).map_err(|error| error.field().to_owned());
        assert_eq!(read, qty.map(Decimal::from).map_err(str::to_owned), "{quantity}");
    }
}

#[test]
fn what_is_not_known_is_passed_over_and_what_is_not_there_is_none() {
    let read = position(
        r#"{"symId":" EQT_A_EQ_NSE ","qty":1,"product":"btst","buyQty":"","sellQty":null,"sym":{"lot":"1"},"sym":1}"#,
    );
    let read = read.unwrap();
    assert_eq!(read.sym_id.as_str(), "EQT_A_EQ_NSE");
    assert_eq!(read.product, Some(Code::Other("btst".into())));
    let numbers = [read.buy_qty, read.sell_qty, read.net_avg_price, read.realized_pnl];
    assert_eq!(numbers, [None; 4]);
}

#[test]
fn an_unreadable_record_is_named_by_list_place_and_field() {
    let good = r#"{"symId":"EQT_A_EQ_NSE","qty":1}"#;
    for (bad, field) in [
        (r#"{"qty":1}"#, "symId"),
        (r#"{"symId":"","qty":1}"#, "symId"),
        (r#"{"symId":1,"qty":1}"#, "symId"),
        (r#"{"symId":"EQT_A_EQ_NSE"}"#, "qty"),
        (r#"{"symId":"EQT_A_EQ_NSE","qty":1,"buyAvgPrice":"much"}"#, "buyAvgPrice"),
        (r#"{"symId":"EQT_A_EQ_NSE","qty":1,"product":1}"#, "product"),
        ("null", "record"),
        ("[]", "record"),
    ] {
        let error = Position::parse_list(&ok(&format!("[{good},{good},{bad},{good}]"))).unwrap_err();
        assert_eq!((error.index(), error.field()), (Some(2), field), "{bad}");
        assert_eq!(error.to_string(), format!("list of positions cannot be read: field {field} in d[2]"));
    }
}

#[test]
fn only_a_whole_answer_is_read() {
    type Count = fn(&[u8]) -> Result<usize, UnreadableRecord>;
    let lists: [Count; 4] = [
        |body| Position::parse_list(body).map(|list| list.len()),
        |body| Holding::parse_list(body).map(|list| list.len()),
        |body| Trade::parse_list(body).map(|list| list.len()),
        |body| OrderHistory::parse_list(body).map(|list| list.len()),
    ];
    for read in lists {
        assert_eq!(read(NO_DATA), Ok(0));
        assert_eq!(read(&ok("[]")), Ok(0));
        for (body, field) in [
            (&br#"{"s":"error","msg":"x"}"#[..], "s"),
            (br#"{"s":"ok"}"#, "d"),
            (br#"{"s":"ok","d":"x"}"#, "d"),
            (br#"{"s":"ok","d":[}"#, "s"),
            (b"", "s"),
        ] {
            let error = read(body).unwrap_err();
            assert_eq!((error.index(), error.field()), (None, field));
        }
    }
    let unread = |body: &[u8]| Funds::parse(body).unwrap_err().field().to_owned();
    let bodies = [NO_DATA, &ok("[]"), &ok("7"), &ok("{}"), &ok(r#"{"availMargin":{}}"#)];
    assert_eq!(bodies.map(unread), ["d", "d", "d", "availMargin", "availMargin"]);
}

#[test]
fn holdings_are_a_list_or_stand_in_a_field() {
    let one = r#"{"symId":"EQT_A_EQ_NSE","qty":3,"t1Qty":1}"#;
    for d in [format!("[{one}]"), format!(r#"{{"holdings":[{one}],"hasNonPoaRecord":false}}"#)] {
        let list = Holding::parse_list(&ok(&d)).unwrap();
        assert_eq!((list.len(), list[0].qty, list[0].t1_qty), (1, 3.into(), Some(1.into())));
    }
    for (d, index, field) in [
        ("{}", None, "holdings"),
        (r#"{"holdings":null}"#, None, "holdings"),
        (r#"{"holdings":[{"qty":3}]}"#, Some(0), "symId"),
    ] {
        let error = Holding::parse_list(&ok(d)).unwrap_err();
        assert_eq!((error.index(), error.field()), (index, field), "{d}");
    }
}

#[test]
fn a_trade_without_order_side_quantity_or_price_is_none() {
    let whole = [
        r#""orderId":26"#,
        r#""symId":"EQT_A_EQ_NSE""#,
        r#""side":"sell""#,
        r#""fillQty":"3""#,
        r#""fillPrice":1.5"#,
        r#""type":"limit","time":"26-11-2026 09:15:00","fillId":7,"remarks":9"#,
    ];
    let trade = Trade::parse_list(&ok(&format!("[{{{}}}]", whole.join(",")))).unwrap().remove(0);
    assert_eq!((trade.order_id.as_str(), trade.fill_id.as_deref()), ("26", Some("7")));
    assert!(trade.side.is(Side::Sell));
    assert_eq!((trade.fill_qty, trade.remarks), (3.into(), None));
    for left_out in 0..5 {
        let some: Vec<_> = (0..6).filter(|at| *at != left_out).map(|at| whole[at]).collect();
        let error = Trade::parse_list(&ok(&format!("[{{{}}}]", some.join(",")))).unwrap_err();
        assert!(whole[left_out].starts_with(&format!("\"{}\"", error.field())), "{error}");
    }
}

#[test]
fn a_history_is_of_one_order_or_of_many() {
    let one = r#"{"orderId":"26","status":"rejected","reason":"no margin","history":[{"msg":"sent"},{}]}"#;
    for d in [one.to_owned(), format!("[{one}]")] {
        let list = OrderHistory::parse_list(&ok(&d)).unwrap();
        assert_eq!(list.len(), 1);
        assert!(list[0].status.as_ref().is_some_and(|status| status.is(OrderStatus::Rejected)));
        assert_eq!((list[0].reason.as_deref(), list[0].history.len()), (Some("no margin"), 2));
        assert_eq!(list[0].history[0].msg.as_deref(), Some("sent"));
    }
    let bad = r#"{"orderId":"26","history":[{},{"fillQty":"x"}]}"#;
    let places = [bad.to_owned(), format!("[{one},{bad}]")].map(|d| {
        let error = OrderHistory::parse_list(&ok(&d)).unwrap_err();
        (error.index(), error.field().to_owned())
    });
    assert_eq!(places, [(None, "history".to_owned()), (Some(1), "history".to_owned())]);
}

#[test]
fn records_survive_their_own_texts_with_every_digit() {
    let text = r#"{"symId":"EQT_A_EQ_NSE","qty":"12345678901234567.05","product":"btst"}"#;
    let read: Position = serde_json::from_str(text).unwrap();
    assert_eq!(read.product, Some(Code::Other("btst".into())));
    assert_eq!(serde_json::to_string(&read).unwrap(), text);
    let delivery: Position = serde_json::from_str(&text.replace("btst", "delivery")).unwrap();
    assert_eq!(delivery.product, Some(Code::Known(Product::Delivery)));
    let trade =
        r#"{"orderId":"1","symId":"EQT_A_EQ_NSE","side":"buy","fillQty":"1","fillPrice":"2","type":"limit"}"#;
    assert_eq!(serde_json::to_string(&serde_json::from_str::<Trade>(trade).unwrap()).unwrap(), trade);
    for (whole, cut) in [(text, r#""12345678901234567.05""#), (trade, r#""2""#)] {
        let rounded = whole.replace(cut, "1.5");
        assert!(serde_json::from_str::<Position>(&rounded).is_err(), "a float may be rounded already");
        assert!(serde_json::from_str::<Trade>(&rounded).is_err());
    }
}

proptest! {
    #[test]
    fn no_payload_panics(d in r#"[\{\[]["a-zA-Z:,0-9\[\]\{\}.eE -]{0,60}"#) {
        let body = ok(&d);
        let _ = (Position::parse_list(&body), Holding::parse_list(&body), Funds::parse(&body));
        let _ = (Trade::parse_list(&body), OrderHistory::parse_list(&body));
    }
}
