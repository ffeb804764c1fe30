use proptest::prelude::*;

use super::*;

#[test]
fn the_three_states_are_told_by_s_alone() {
    assert!(
        matches!(Envelope::parse(br#"{"s":"ok","d":[],"msg":"x","new":1}"#), Ok(Envelope::Ok { d }) if d.get() == "[]")
    );
    assert!(
        matches!(Envelope::parse(br#"{"s":"no-data"}"#), Ok(Envelope::NoData { msg }) if msg == "no-data")
    );
    let escaped = br#"{"s":"\u006f\u006b","d":[]}"#;
    assert!(matches!(Envelope::parse(escaped), Ok(Envelope::Ok { .. })));
    let error = Envelope::parse(br#"{"s":"error","msg":"no-data","d":{}}"#);
    assert!(matches!(error, Ok(Envelope::Error { msg }) if msg == "no-data"));
}

#[test]
fn no_data_may_be_spelled_out() {
    for d in ["null", "[]", "[ \n]", "{}", "{ }", "\"\""] {
        let body = format!(r#"{{"s":"no-data","d":{d}}}"#);
        assert!(matches!(Envelope::parse(body.as_bytes()), Ok(Envelope::NoData { .. })), "{d}");
    }
}

#[test]
fn what_is_not_an_envelope_is_named() {
    for (body, error) in [
        ("", EnvelopeError::NotJson),
        ("<html></html>", EnvelopeError::NotJson),
        ("[]", EnvelopeError::NotJson),
        (r#"["ok",[],null]"#, EnvelopeError::NotJson),
        (r#"{"s":"ok","d":[1"#, EnvelopeError::NotJson),
        (r#"{"s":"ok","d":1} x"#, EnvelopeError::NotJson),
        (r#"{"s":"ok","s":"error","d":1}"#, EnvelopeError::NotJson),
        ("{}", EnvelopeError::MissingS),
        (r#"{"s":null,"d":1}"#, EnvelopeError::MissingS),
        (r#"{"s":"OK","d":1}"#, EnvelopeError::UnknownS),
        (r#"{"s":1,"d":1}"#, EnvelopeError::UnknownS),
        (r#"{"s":"ok"}"#, EnvelopeError::OkWithoutPayload),
        (r#"{"s":"no-data","d":[{"orderId":"1"}]}"#, EnvelopeError::NoDataWithPayload),
        (r#"{"s":"no-data","msg":"no-data","d":{"orderId":"1"}}"#, EnvelopeError::NoDataWithPayload),
        (r#"{"s":"no-data","d":[[]]}"#, EnvelopeError::NoDataWithPayload),
        (r#"{"s":"no-data","d":0}"#, EnvelopeError::NoDataWithPayload),
        (r#"{"s":"error"}"#, EnvelopeError::ErrorWithoutText),
        (r#"{"s":"error","msg":7}"#, EnvelopeError::ErrorWithoutText),
    ] {
        assert_eq!(Envelope::parse(body.as_bytes()).err(), Some(error), "{body}");
    }
}

#[test]
fn deep_nesting_is_an_answer_like_any_other() {
    let deep = format!(r#"{{"s":"ok","d":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    let _ = Envelope::parse(deep.as_bytes());
}

#[test]
fn an_order_id_may_be_a_number_and_may_not_be_empty() {
    let id = |d: &str| PlacedOrder::parse(format!(r#"{{"s":"ok","d":{d}}}"#).as_bytes()).map(|p| p.order_id);
    assert_eq!(id(r#"{"orderId":"007"}"#), Ok("007".into()));
    assert_eq!(id(r#"{"orderId":240101000000123456789}"#), Ok("240101000000123456789".into()));
    for d in [
        r#"{"orderId":""}"#,
        r#"{"orderId":" "}"#,
        r#"{"orderId":null}"#,
        r#"{"orderId":1.5}"#,
        r#"{"orderId":{}}"#,
        "{}",
        "[]",
        r#"["7","placed"]"#,
        "7",
    ] {
        assert_eq!(id(d), Err(EnvelopeError::UnexpectedPayload), "{d}");
    }
}

#[test]
fn c03_an_endless_identifier_names_no_order() {
    assert!(is_identifier(&"7".repeat(256)));
    assert!(!is_identifier(&"7".repeat(257)));
}

proptest! {
    #[test]
    fn no_bytes_panic(body in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = Envelope::parse(&body);
        let _ = PlacedOrder::parse(&body);
    }

    #[test]
    fn every_text_survives(text in ".{0,30}") {
        let body = serde_json::json!({"s": "error", "msg": text}).to_string();
        let read = Envelope::parse(body.as_bytes());
        let same = matches!(read, Ok(Envelope::Error { msg }) if msg == text);
        prop_assert!(same);
    }

    #[test]
    fn a_cut_placement_is_never_taken_for_a_success(id in "[0-9]{1,12}", cut in 0_usize..40) {
        let body = serde_json::json!({"s": "ok", "d": {"orderId": id, "msg": "placed"}}).to_string();
        let cut = cut.min(body.len() - 1);
        prop_assert!(PlacedOrder::parse(&body.as_bytes()[..cut]).is_err());
    }
}
