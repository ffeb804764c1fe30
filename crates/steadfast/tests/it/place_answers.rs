//! Unexpected answers to orders, and how they are handled.

use http::Method;
use steadfast::ErrorKind;

use crate::{
    answers::{Answers, GATEWAY_TIMED_OUT, NO_DATA, list, placed, record, reply},
    world::order,
};

/// Statuses of which neither the specification nor HTTP says that the order was not placed.
const OPAQUE: [u16; 30] = [
    201, 202, 203, 204, 205, 206, 300, 301, 302, 303, 304, 307, 308, 402, 406, 407, 408, 409, 410, 412, 413,
    414, 421, 422, 423, 425, 426, 428, 431, 451,
];

#[tokio::test(start_paused = true)]
async fn an_order_behind_a_status_that_proves_nothing_is_found() {
    for status in OPAQUE.into_iter().chain([418, 499, 500, 501, 505, 507, 511, 520, 529, 599]) {
        let shown = list(&[record("77", &order("EQT_INFY_EQ_NSE"))]);
        let gateway = Answers::to_first_order(
            move || reply(status, GATEWAY_TIMED_OUT),
            move || reply(200, shown.clone()),
        );
        let told = gateway.client().place_order(&order("EQT_INFY_EQ_NSE")).await;
        assert_eq!(told.map(|placed| placed.order_id).ok().as_deref(), Some("77"), "{status}");
        assert_eq!(gateway.orders_sent(), 1, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_behind_a_status_without_a_meaning_is_not_sent_again_though_it_is_absent() {
    for status in OPAQUE {
        // The body does not matter, even with an envelope that would be right for a 200.
        for body in ["", GATEWAY_TIMED_OUT, &placed("9")].map(ToOwned::to_owned) {
            let gateway =
                Answers::to_first_order(move || reply(status, body.clone()), || reply(200, NO_DATA));
            let error = gateway.client().place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap_err();
            assert!(
                matches!(error.kind(), ErrorKind::InDoubt | ErrorKind::NotObserved),
                "{status}: {error:?}"
            );
            assert_eq!(gateway.orders_sent(), 1, "{status}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_200_that_contradicts_itself_is_neither_believed_nor_followed_by_a_second_order() {
    for body in [
        r#"{"s":"ok","d":{"msg":"x","orderId":"77","orderId":"78"}}"#,
        r#"{"s":"error","s":"ok","d":{"msg":"x","orderId":"78"}}"#,
        r#"{"s":"ok","s":"error","d":{"msg":"x","orderId":"78"}}"#,
        r#"{"s":"ok","d":{"msg":"x","orderId":"78"},"d":{"msg":"x","orderId":"79"}}"#,
        r#"{"s":"ok","d":[{"orderId":"78"}]}"#,
        r#"{"s":"ok","d":"78"}"#,
        r#"{"s":"ok","d":{"msg":"x","orderId":7.8}}"#,
        r#"{"s":"ok","d":{"msg":"x","orderId":-78}}"#,
        r#"{"s":"ok","d":{"msg":"x","orderId":7e1}}"#,
        r#"{"s":"ok","d":{"msg":"x","orderId":true}}"#,
        r#"{"s":"ok","d":{"msg":"x","orderId":" "}}"#,
        r#"{"s":"ok","d":{"msg":"x","orderId":"78"}} "trailing""#,
        "\u{feff}{\"s\":\"ok\",\"d\":{\"msg\":\"x\",\"orderId\":\"78\"}}",
    ] {
        let shown = list(&[record("77", &order("EQT_INFY_EQ_NSE"))]);
        for list in [NO_DATA.to_owned(), shown] {
            let exists = list != NO_DATA;
            let gateway = Answers::to_first_order(move || reply(200, body), move || reply(200, list.clone()));
            let told = gateway.client().place_order(&order("EQT_INFY_EQ_NSE")).await;
            assert_eq!(gateway.orders_sent(), 1, "{body}");
            match told {
                Ok(placed) => assert!(exists && placed.order_id == "77", "{body}: {placed:?}"),
                Err(error) => {
                    let kinds = [ErrorKind::InDoubt, ErrorKind::NotObserved];
                    assert!(!exists && kinds.contains(&error.kind()), "{body}: {error:?}");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_400_means_nothing_unless_its_text_is_exactly_one_of_the_specifications() {
    for (body, sent) in [
        (r#"{"s":"error","msg":"Bad request"}"#, 1),
        (r#"{"s":"error","msg":"x","msg":"Bad request"}"#, 1),
        (r#"{"s":"error","msg":["Bad request"]}"#, 1),
        (r#"{"s":"ok","msg":"Bad request"}"#, 1),
        (r#"{"s":"error","msg":"Bad request "}"#, 1),
        (r#"{"s":"error","msg":"Internal Error occurred. Kindly try again."}"#, 2),
        (r#"{"s":"error","msg":"internal error occurred. kindly try again."}"#, 1),
    ] {
        let gateway = Answers::to_first_order(move || reply(400, body), || reply(200, NO_DATA));
        let told = gateway.client().place_order(&order("EQT_INFY_EQ_NSE")).await;
        assert_eq!(gateway.orders_sent(), sent, "{body}");
        let rejected = told.is_err_and(|error| error.kind() == ErrorKind::Rejected);
        assert_eq!(rejected, body == r#"{"s":"error","msg":"Bad request"}"#, "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn whichever_answers_are_lost_a_cancel_is_in_doubt_unless_the_list_says_more() {
    for (status, kind) in [
        ("open", Some(ErrorKind::InDoubt)),
        ("cancelled", None),
        ("completed", Some(ErrorKind::NotOpen)),
        ("rejected", Some(ErrorKind::NotOpen)),
        ("anything else", Some(ErrorKind::InDoubt)),
    ] {
        let shown = list(&[record("1", &order("EQT_INFY_EQ_NSE")).replace("open", status)]);
        let gateway = Answers::with(move |arrival, _| match arrival.method {
            Method::GET => reply(200, shown.clone()),
            _ => None,
        });
        let client = gateway.client();
        assert_eq!(client.cancel("1").await.err().map(|error| error.kind()), kind, "{status}");
        assert_eq!(gateway.count("/cancel-order"), 5, "{status}");
    }
}

/// The gateway places nothing and answers every order with the same id. Each order was reported as placed.
#[tokio::test(start_paused = true)]
async fn o06_an_order_with_the_id_of_another_one_is_not_told_as_placed() {
    let gateway = Answers::with(|arrival, _| match arrival.method {
        Method::POST => reply(200, placed("7")),
        _ => reply(200, NO_DATA),
    });
    let client = gateway.client();
    client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap();
    for instrument in ["EQT_TCS_EQ_NSE", "EQT_SBIN_EQ_NSE"] {
        let error = client.place_order(&order(instrument)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InDoubt, "{error:?}");
        assert!(error.unresolved().is_some() && error.outcome().is_unknown(), "{error:?}");
    }
    client.shutdown().await;
    assert_eq!(gateway.orders_sent(), 3, "none is sent again");
}
