use proptest::prelude::*;

/// Reads a list as a whole, and in pieces.
fn both(body: &[u8], most: usize) -> [Result<Vec<OrderRecord>, UnreadableRecord>; 2] {
    let names = FieldNames::default();
    let pieces = || {
        let (mut reader, mut records) = (OrderListReader::new(body, &names)?, Vec::new());
        loop {
            let some = reader.read(most)?;
            if some.is_empty() {
                return Ok(records);
            }
            assert!(some.len() <= most, "{} of {most}", some.len());
            records.extend(some);
        }
    };
    [parse_order_list(body, &names), pieces()]
}

#[test]
fn remarks_are_kept_as_a_text_and_never_make_a_list_unreadable() {
    let shown = |value: &str| {
        let body = format!(r#"{{"s":"ok","d":[{{"orderId":"a","remarks":{value}}}]}}"#);
        both(body.as_bytes(), 1).map(|list| list.unwrap().remove(0).remarks)
    };
    let text = || Some("k3v9".to_owned());
    assert_eq!(shown(r#""k3v9""#), [text(), text()]);
    for value in ["null", r#""""#, "7", "{}", "[1]", "true"] {
        assert_eq!(shown(value), [None, None], "{value}");
    }
}

#[test]
fn o08_a_list_in_pieces_is_the_list() {
    let one = r#"{"orderId":"a","qty":1,"x":[{"],":"\"]"}]}"#;
    let two = r#" { "orderId" : 7 } "#;
    for d in [
        String::from("[]"),
        format!("[{one}]"),
        format!("[{one},{two}]"),
        format!(" [ {two} , {one}\n,{one} ] "),
        format!("[{one},null]"),
        format!("[{one},{{}}]"),
        format!("[{one},{{\"orderId\":\"\"}}]"),
        format!("[{one},[{two}]]"),
        format!("[{one}"),
        one.to_owned(),
        String::from("7"),
    ] {
        let body = format!(r#"{{"s":"ok","d":{d}}}"#);
        for most in [1, 2, 3, 10] {
            let [whole, pieces] = both(body.as_bytes(), most);
            // The named field may differ; it is only for people.
            assert_eq!(whole.ok(), pieces.ok(), "{body}");
        }
    }
    for body in [
        r#"{"s":"no-data","msg":"x"}"#,
        r#"{"s":"error","msg":"x"}"#,
        "",
        "\u{c}{\"s\":\"ok\",\"d\":[{\"orderId\":\"a\"}]}",
        "{\"s\":\"ok\",\"d\":[{\"orderId\":\"a\"}]}\u{c}",
        r#"{"s":"ok"}"#,
        &format!(r#" {{ "d" : [{one}] , "x" : [1,{{}}] , "s" : "ok" }} "#),
        &format!(r#"{{"d":[{one}],"s":"ok","s":"ok"}}"#),
        &format!(r#"{{"d":[{one}],"d":[{one}],"s":"ok"}}"#),
        &format!(r#"{{"d":[{one}],"s":"error","msg":"x"}}"#),
        &format!(r#"{{"s":"no-data","d":[{one}]}}"#),
        &format!(r#"{{"\u0073":"ok","d":[{one}]}}"#),
        &format!(r#"{{"s":"ok","d":[{one},]}}"#),
        &format!(r#"{{"s":"ok","d":[{one}{two}]}}"#),
        &format!(r#"{{"s":"ok","d":[{one}],}}"#),
        &format!(r#"{{"s":"ok","d":[{one}]}} x"#),
        &format!(r#"{{"s":"ok","d":[{one}]"#),
        &format!(r#"{{"s":"ok" "d":[{one}]}}"#),
        &format!(r#"{{"s":"ok","msg":"x","d":[{one}]}}"#),
        &format!(r#"{{"s":"ok","d":[{one}],"msg":"x"}}"#),
        &format!(r#"{{"s":"ok","d":[{one}],"msg":"x","msg":"y"}}"#),
        &format!("\u{feff}{{\"s\":\"ok\",\"d\":[{one}]}}"),
    ] {
        let [whole, pieces] = both(body.as_bytes(), 2);
        assert_eq!(whole.ok(), pieces.ok(), "{body}");
    }
}

use super::*;

fn list(body: &str) -> Result<Vec<OrderRecord>, String> {
    parse_order_list(body.as_bytes(), &FieldNames::default()).map_err(|e| e.field().to_owned())
}

fn one(record: &str) -> Result<OrderRecord, String> {
    list(&format!(r#"{{"s":"ok","d":[{record}]}}"#)).map(|mut records| records.remove(0))
}

#[test]
fn numbers_keep_every_digit_in_any_spelling() {
    for qty in ["10", "\"10\"", "10.0", "\"10.00\"", "1e1"] {
        assert_eq!(
            one(&format!(r#"{{"orderId":"1","qty":{qty}}}"#)).unwrap().qty,
            Some(Decimal::TEN),
            "{qty}"
        );
    }
    let exact = one(r#"{"orderId":"1","limitPrice":123456789012345678.0123456789}"#).unwrap();
    assert_eq!(exact.limit_price.unwrap().to_string(), "123456789012345678.0123456789");
}

#[test]
fn unknown_values_and_absent_fields_are_tolerated() {
    let record =
        one(r#"{"orderId":42,"status":"trigger pending","legType":null,"side":"","new":{"a":1}}"#).unwrap();
    assert_eq!(record.order_id, "42");
    assert_eq!(record.status, Some(Code::Other("trigger pending".into())));
    assert_eq!((record.leg_type, record.side, record.qty), (None, None, None));
}

#[test]
fn a_record_that_cannot_be_read_spoils_the_list_and_is_named() {
    for (record, field) in [
        ("7", "record"),
        (r#"{"symId":"x"}"#, "orderId"),
        (r#"{"orderId":"1","qty":"ten"}"#, "qty"),
        (r#"{"orderId":"1","qty":1e400}"#, "qty"),
        (r#"{"orderId":"1","qty":{}}"#, "qty"),
        (r#"{"orderId":"1","side":1}"#, "side"),
        (r#"{"orderId":"1","side":"buy","side":"sell"}"#, "record"),
        (r#"{"orderId":"1","side":"buy","s\u0069de":"sell"}"#, "record"),
    ] {
        assert_eq!(one(record).unwrap_err(), field, "{record}");
    }
}

#[test]
fn only_a_whole_ok_or_no_data_answer_is_a_list() {
    assert_eq!(list(r#"{"s":"no-data","msg":"no-data"}"#), Ok(vec![]));
    assert_eq!(list(r#"{"s":"ok","d":[]}"#), Ok(vec![]));
    for (body, field) in [
        (r#"{"s":"error","msg":"x"}"#, "s"),
        ("", "s"),
        (r#"{"s":"ok"}"#, "d"),
        (r#"{"s":"ok","d":{}}"#, "d"),
        (r#"{"s":"ok","d":"no-data"}"#, "d"),
        (r#"{"s":"no-data","msg":"no-data","d":[{"orderId":"1"}]}"#, "d"),
    ] {
        assert_eq!(list(body), Err(field.to_owned()), "{body}");
    }
}

#[test]
fn field_names_are_a_setting() {
    let names = FieldNames { order_id: "id".into(), qty: "quantity".into(), ..FieldNames::default() };
    let records =
        parse_order_list(br#"{"s":"ok","d":[{"id":"9","quantity":3,"qty":"junk is ignored"}]}"#, &names)
            .unwrap();
    assert_eq!((records[0].order_id.as_str(), records[0].qty), ("9", Some(Decimal::from(3))));
}

proptest! {
    #[test]
    fn no_json_like_text_panics(body in r#"\{"s":"ok","d":\[[\{\}\[\]":,a-z0-9.eE-]{0,40}\]\}"#) {
        let _ = list(&body);
    }
}
