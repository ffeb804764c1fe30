//! When "not in the list" counts, and how an order may be spelled in a list.

use http::{HeaderMap, header::AGE};
use steadfast::{ErrorKind, dedup::Settings};
use steadfast_verify::noon::at_noon;

use crate::{
    answers::{Answers, GATEWAY_TIMED_OUT, NO_DATA, list, placed, record, reply, reply_with},
    world::order,
};

const FUTURE: &str = "FUT_NIFTY_FUT_NFO_05Dec2026";
const OPTION: &str = "OPT_NIFTY_CE_NFO_28Nov2026_24500";

/// Places an order whose 504 is followed by lists that are always the same.
async fn after_a_504(
    sym_id: &str,
    answer: impl Fn() -> crate::answers::Reply + Send + Sync + 'static,
) -> (Answers, Option<ErrorKind>) {
    let gateway = Answers::to_first_order(|| reply(504, GATEWAY_TIMED_OUT), answer);
    let told = gateway.client().place_order(&order(sym_id)).await;
    (gateway, told.err().map(|error| error.kind()))
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_not_whole_fresh_and_understood_shows_no_absence() {
    let bodies = [
        (206, r#"{"s":"ok","d":[]}"#),
        (203, NO_DATA),
        (204, ""),
        (304, ""),
        (404, NO_DATA),
        (200, r#"{"s":"error","msg":"try later"}"#),
        (200, r#"{"s":"ok","s":"error","d":[]}"#),
        (200, r#"{"s":"error","s":"ok","d":[]}"#),
        (200, r#"{"s":"ok","d":[{"orderId":"9"}],"d":[]}"#),
        (200, r#"{"s":"no-data","msg":"no-data","d":[1]}"#),
        (200, r#"{"s":"ok","d":null}"#),
        (200, r#"{"s":"ok","d":{}}"#),
        (200, r#"{"s":"ok","d":"no-data"}"#),
        (200, r#"{"s":"ok","d":[[]]}"#),
        (200, r#"{"s":"ok","d":[null]}"#),
        (200, r#"{"s":"ok","d":[{}]}"#),
        (200, r#"{"s":"ok","d":{"orders":[]}}"#),
        (200, r#"{"s":"ok","d":[]}]"#),
        (200, r#"{"s":"ok","d":[]}{"s":"ok","d":[]}"#),
        (200, "\u{feff}{\"s\":\"ok\",\"d\":[]}"),
        (200, r#"{"s":"ok","d":[{"orderId":"  ","symId":"EQT_TCS_EQ_NSE"}]}"#),
    ];
    for (status, body) in bodies {
        let (gateway, told) = after_a_504("EQT_INFY_EQ_NSE", move || reply(status, body)).await;
        assert_eq!((gateway.orders_sent(), told), (1, Some(ErrorKind::InDoubt)), "{status} {body}");
    }
    // The control: the same with a list that meets all conditions.
    let (gateway, told) = after_a_504("EQT_INFY_EQ_NSE", || reply(200, NO_DATA)).await;
    assert_eq!((gateway.orders_sent(), told), (2, None));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_any_cache_calls_old_shows_no_absence() {
    for ages in [&["30"][..], &["0", "30"], &["30", "0"], &["soon"]] {
        let (gateway, told) = after_a_504("EQT_INFY_EQ_NSE", move || {
            let headers: HeaderMap = ages.iter().map(|age| (AGE, age.parse().unwrap())).collect();
            reply_with(200, headers, NO_DATA)
        })
        .await;
        assert_eq!((gateway.orders_sent(), told), (1, Some(ErrorKind::InDoubt)), "{ages:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_whose_instrument_is_listed_in_another_spelling_is_not_sent_again() {
    for (ordered, listed) in [
        ("EQT_Infy_EQ_NSE", "EQT_INFY_EQ_NSE"),
        ("EQT_INFY_EQ_NSE", "eqt_infy_eq_nse"),
        (FUTURE, "FUT_NIFTY_FUT_NFO_05DEC2026"),
        (FUTURE, "FUT_NIFTY_FUT_NFO_5Dec26"),
        (OPTION, "OPT_NIFTY_CE_NFO_28NOV26_24500.00"),
    ] {
        let (gateway, told) = after_a_504(ordered, || reply(200, list(&[record("7", &order(listed))]))).await;
        assert_eq!((gateway.orders_sent(), told), (1, Some(ErrorKind::InDoubt)), "{ordered} as {listed}");
    }
    // Another expiry is another instrument. But this account is exclusive, and no list has shown yet how it spells this
    // one.
    let other = || reply(200, list(&[record("7", &order("FUT_NIFTY_FUT_NFO_12Dec2026"))]));
    let (gateway, told) = after_a_504(FUTURE, other).await;
    assert_eq!((gateway.orders_sent(), told), (1, Some(ErrorKind::InDoubt)));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_again_once_an_acknowledged_order_is_listed_under_another_instrument() {
    for settings in [Settings::default(), Settings::conservative()] {
        let gateway = Answers::with(|arrival, number| match (arrival.method.as_str(), number) {
            ("POST", 2) => reply(504, GATEWAY_TIMED_OUT),
            ("POST", _) => reply(200, placed(number)),
            (_, 1) => reply(200, NO_DATA),
            _ => reply(200, list(&["1", "2"].map(|id| record(id, &order("INFY-EQ"))))),
        });
        let client = gateway.builder().order_safety(at_noon(settings)).build_over(gateway.clone()).unwrap();
        assert_eq!(client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap().order_id, "1");
        let error = client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap_err();
        assert_eq!((gateway.orders_sent(), error.kind()), (2, ErrorKind::InDoubt), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_shows_the_newest_orders_only_shows_no_absence_once_one_has_gone() {
    for before in [1, 5] {
        let gateway = Answers::with(move |arrival, number| match (arrival.method.as_str(), number) {
            ("POST", number) if number == before + 1 => reply(504, GATEWAY_TIMED_OUT),
            ("POST", _) => reply(200, placed(number)),
            _ => {
                // At most the two newest.
                let newest = arrival.at.as_secs() as usize / 30;
                let ids = newest.saturating_sub(1)..=newest;
                let shown = ids.filter(|id| *id > 0 && *id <= before);
                reply(
                    200,
                    list(
                        &shown
                            .map(|id| record(&id.to_string(), &order("EQT_TCS_EQ_NSE")))
                            .collect::<Vec<_>>(),
                    ),
                )
            }
        });
        let client = gateway.client();
        for _ in 0..before {
            client.place_order(&order("EQT_TCS_EQ_NSE")).await.unwrap();
            tokio::time::sleep(30 * crate::world::SECOND).await;
            client.orders().await.unwrap();
        }
        let told = client.place_order(&order("EQT_INFY_EQ_NSE")).await;
        let (sent, kind) = if before == 1 { (3, None) } else { (6, Some(ErrorKind::InDoubt)) };
        assert_eq!((gateway.orders_sent(), told.err().map(|error| error.kind())), (sent, kind), "{before}");
    }
}

/// One of two equal orders is acknowledged, the other one is lost. The listed order is the acknowledged one, however
/// its id is spelled there.
#[tokio::test(start_paused = true)]
async fn an_acknowledged_order_is_never_told_to_a_second_caller_under_another_spelling_of_its_identifier() {
    for (acknowledged, listed) in [
        ("0077", "77"),
        ("77", r#""0077""#),
        ("77", r#"" 77 ""#),
        ("ab-1", r#""AB-1""#),
        ("aB-1", r#""Ab-1""#),
    ] {
        let gateway = Answers::with(move |arrival, number| match (arrival.method.as_str(), number) {
            ("POST", 1) => reply(200, placed(acknowledged)),
            ("POST", _) => reply(504, GATEWAY_TIMED_OUT),
            (_, 1) => reply(200, NO_DATA),
            _ => reply(200, list(&[record("ID", &order("EQT_INFY_EQ_NSE")).replace(r#""ID""#, listed)])),
        });
        let client = gateway.client();
        assert_eq!(client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap().order_id, acknowledged);
        let told = client.place_order(&order("EQT_INFY_EQ_NSE")).await;
        let told = told.map(|placed| placed.order_id).map_err(|error| error.kind());
        assert_eq!(
            (told, gateway.orders_sent()),
            (Err(ErrorKind::InDoubt), 2),
            "{acknowledged:?} as {listed}"
        );
    }
}
