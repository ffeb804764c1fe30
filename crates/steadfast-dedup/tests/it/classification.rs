//! B. Classification.

use std::time::Duration;

use steadfast_call::Fate;
use steadfast_dedup::Settings;
use tokio::time::Instant;

use crate::{
    gateway::{Place, Reply, ack, gw504, http},
    rig::{ORDER, Rig, Told},
};

const VALIDATION: &str =
    "Input validation failed. Kindly check your input contains required fields for the request";
const SERVER_ERRORS: [(u16, &str); 4] = [
    (500, "Internal server error"),
    (502, "Bad gateway"),
    (503, "Service unavailable"),
    (504, "Gateway timedout"),
];
const INTERNAL: &str = "Internal Error occurred. Kindly try again.";

#[tokio::test(start_paused = true)]
async fn s18_400_validation() {
    let rig = Rig::new();
    rig.gateway.will([http(400, VALIDATION)]);
    assert_eq!(rig.place("a", ORDER).await, Told::Answer(400));
    assert_eq!((rig.gateway.posts(), rig.gateway.gets()), (1, 1));
    assert_eq!(rig.tracker.in_doubt(), 0);
}

#[tokio::test(start_paused = true)]
async fn s19_400_internal() {
    for (placed, told) in [(true, Told::Recovered("o1".into())), (false, Told::Resent("o1".into()))] {
        let rig = Rig::new();
        let answer = http(400, INTERNAL);
        rig.gateway.will([if placed { answer.placed() } else { answer }]);
        assert_eq!(rig.place("a", ORDER).await, told);
        rig.audit();
    }
}

#[tokio::test(start_paused = true)]
async fn s20_400_unknown_text() {
    let rig = Rig::new();
    let text = "timed out, check the order book";
    rig.gateway.will([http(400, text).placed_after(Duration::from_secs(8)), http(400, text)]);
    assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o1".into()));
    assert_eq!(rig.place("b", ORDER).await, Told::Unresolved("not_observed", vec![], 400));
    assert_eq!(rig.gateway.posts(), 2);
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s21_5xx() {
    for (status, msg) in SERVER_ERRORS {
        let rig = Rig::new();
        rig.gateway.will([http(status, msg).placed()]);
        assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o1".into()), "{status}");
        rig.gateway.will([http(status, msg)]);
        assert_eq!(rig.place("b", ORDER).await, Told::Resent("o2".into()), "{status}");
        assert_eq!(rig.gateway.posts(), 3);
        rig.audit();
    }
}

#[tokio::test(start_paused = true)]
async fn s22_502_html() {
    let rig = Rig::new();
    rig.gateway.will([http(502, "<html>Bad gateway</html>").placed()]);
    assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o1".into()));
    rig.gateway.will([http(502, "<html>Bad gateway</html>")]);
    assert_eq!(rig.place("b", ORDER).await, Told::Unresolved("not_observed", vec![], 502));
    assert_eq!(rig.gateway.posts(), 2, "it is not the gateway's own word");
    rig.audit();
}

/// Errors of a hop in front of the gateway, while the gateway works on.
fn foreign_errors() -> impl Iterator<Item = (u16, &'static str)> {
    let bodies =
        ["", "<html><h1>Bad Gateway</h1></html>", "upstream connect error", r#"{"s":"error","msg":"x"}"#];
    [502, 503, 504, 520].into_iter().flat_map(move |status| bodies.map(|body| (status, body)))
}

#[tokio::test(start_paused = true)]
async fn o02_a_foreign_5xx_is_verified_and_never_resent() {
    for (status, body) in foreign_errors() {
        for late in [1, 14, 16, 25, 29] {
            for allowed in [false, true] {
                let rig = Rig::with(Settings::default().resend_after_undocumented_error(allowed));
                let foreign = http(status, "").reply(Reply::Answer(status, body));
                rig.gateway.will([foreign.placed_after(Duration::from_secs(late))]);
                let told = rig.place("a", ORDER).await;
                assert_eq!(told, Told::Recovered("o1".into()), "{status} {body:?} {late} {allowed}");
                assert_eq!(rig.gateway.posts(), 1);
                rig.audit();
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn o02_a_foreign_5xx_is_resent_where_that_is_allowed() {
    for (allowed, posts) in [(false, 1), (true, 2)] {
        let rig = Rig::with(Settings::default().resend_after_undocumented_error(allowed));
        rig.gateway.will([http(502, "<html>")]);
        let start = Instant::now();
        let told = rig.place("a", ORDER).await;
        assert_eq!(rig.gateway.posts(), posts, "{told:?}");
        assert!(start.elapsed() >= Duration::from_secs(45), "T_gw and W after the answer");
        rig.audit();
    }
}

#[tokio::test(start_paused = true)]
async fn o02_the_connection_of_a_foreign_error_is_ended() {
    for (status, msg, ended) in [
        (502, "<html>", 1),
        (502, "Bad gateway", 0),
        (200, "x", 0),
        (400, "<html>", 1),
        (401, "<html>", 1),
        (403, "<html>", 1),
        (404, "<html>", 1),
        (405, "<html>", 1),
        (429, "<html>", 1),
    ] {
        let rig = Rig::new();
        rig.gateway.will([http(status, msg).placed()]);
        assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o1".into()));
        assert_eq!(rig.gateway.aborted(), ended, "{status} {msg}");
    }
}

/// Regression: a firewall's page in the place of the gateway's answer counted as a refusal, and the name was free.
#[tokio::test(start_paused = true)]
async fn o02_the_page_of_a_firewall_refuses_no_order() {
    for status in [401, 403, 404, 405, 429] {
        for body in ["<html>WAF</html>", " ", "{}", r#"{"s":"error","msg":"x"}"#] {
            let page = || http(status, "").reply(Reply::Answer(status, body));
            let rig = Rig::new();
            rig.gateway.will([Place { lag: Duration::from_secs(8), ..page().placed() }]);
            assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o1".into()), "{status} {body}");
            assert_eq!(rig.gateway.posts(), 1);
            rig.audit();
            // Not placed: never sent again by default, and after T_gw + W where the setting allows it.
            let rig = Rig::new();
            rig.gateway.will([page()]);
            let told = rig.place("a", ORDER).await;
            assert!(matches!(told, Told::Unresolved(..)), "{status} {body}: {told:?}");
            assert_eq!(rig.gateway.posts(), 1);
            rig.audit();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn s23_401_on_place() {
    let rig = Rig::new();
    rig.gateway.will([http(401, "Unauthorized")]);
    assert_eq!(rig.place("a", ORDER).await, Told::Placed("o1".into()));
    assert_eq!(
        (rig.gateway.posts(), rig.gateway.gets()),
        (2, 2),
        "two sends, and one look before the second"
    );
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s24_429_on_place() {
    let rig = Rig::new();
    rig.gateway.will([http(429, "Too many requests"), http(429, "Too many requests")]);
    let start = Instant::now();
    assert_eq!(rig.place("a", ORDER).await, Told::Placed("o1".into()));
    assert!(start.elapsed() >= Duration::from_secs(3));
    assert_eq!((rig.gateway.posts(), rig.gateway.gets()), (3, 3), "a look before each repeat");
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn s25_h2_refused_stream() {
    let rig = Rig::new();
    rig.gateway.will([gw504().reply(Reply::Lost(Fate::NeverLeft))]);
    assert_eq!(rig.place("a", ORDER).await, Told::Placed("o1".into()));
    assert_eq!((rig.gateway.posts(), rig.gateway.gets()), (2, 1));
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn a_doubt_after_a_429_is_the_second_sends() {
    let rig = Rig::new();
    rig.gateway.will([http(429, "Too many requests"), gw504().placed()]);
    assert_eq!(rig.place("a", ORDER).await, Told::Recovered("o1".into()));
    assert_eq!(rig.gateway.posts(), 2);
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn a_429_on_the_resend_is_waited_out_and_sent_once_more() {
    let rig = Rig::new();
    rig.gateway.will([gw504(), http(429, "Too many requests"), ack()]);
    assert_eq!(rig.place("a", ORDER).await, Told::Resent("o1".into()));
    rig.audit();

    // Refused for rate until the repeats are spent: absent, and not sent.
    let rig = Rig::new();
    rig.gateway.will([gw504()]);
    rig.gateway.will((0..5).map(|_| http(429, "Too many requests")));
    assert_eq!(rig.place("a", ORDER).await, Told::Unresolved("not_observed", vec![], 504));
    rig.audit();
}

#[tokio::test(start_paused = true)]
async fn a_resend_that_places_nothing_leaves_the_first_answer() {
    for (resend, reason) in [
        (http(403, "Forbidden"), "not_observed"),
        (http(400, VALIDATION), "not_observed"),
        (http(502, "Bad gateway"), "resends_exhausted"),
        (http(502, "x"), "not_observed"),
        (gw504().reply(Reply::Ended), "not_observed"),
    ] {
        let rig = Rig::new();
        rig.gateway.will([gw504(), resend]);
        assert_eq!(rig.place("a", ORDER).await, Told::Unresolved(reason, vec![], 504));
        assert_eq!(rig.gateway.posts(), 2);
        rig.audit();
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_success_as_specified_is_looked_into_and_never_repeated() {
    let ok = r#"{"s":"ok","d":{"orderId":"o1","msg":"placed"}}"#;
    for (status, body) in [
        (201, ok),
        (202, ok),
        (206, ok),
        (302, ok),
        (200, "<html>placed</html>"),
        (200, r#"{"s":"ok","d":{"orderId":""}}"#),
        (200, r#"{"s":"ok","d":{"orderId":null}}"#),
        (200, r#"{"s":"ok","d":[{"orderId":"o1"}]}"#),
        (200, r#"{"s":"ok","d":{"orderId":"o1"},"d":{"orderId":"o2"}}"#),
        (200, r#"{"s":"OK","d":{"orderId":"o1"}}"#),
        (200, r#"{"s":"no-data","msg":"no-data"}"#),
        (200, r#"{"s":"no-data","msg":"no-data","d":{"orderId":"o1"}}"#),
        (400, r#"{"s":"error","msg":"Bad request "}"#),
        (400, r#"{"s":"error","msg":"bad request"}"#),
        (400, r#"{"s":"ok","msg":"Bad request"}"#),
        (400, r#"{"s":"error","msg":"Bad request"} x"#),
        (408, "<html>"),
        (409, "<html>"),
        (422, "<html>"),
        (425, "<html>"),
        (600, "<html>"),
        (999, "<html>"),
    ] {
        for placed in [true, false] {
            let rig = Rig::new();
            let place = http(status, "").reply(Reply::Answer(status, body));
            rig.gateway.will([if placed { place.placed() } else { place }]);
            match rig.place("a", ORDER).await {
                Told::Recovered(id) => assert!(placed && id == "o1", "{status} {body}"),
                Told::Unresolved(_, _, told) => assert!(!placed && told == status, "{status} {body}"),
                told => panic!("{status} {body}: {told:?}"),
            }
            assert_eq!(rig.gateway.posts(), 1, "{status} {body}");
            rig.audit();
        }
    }
}
