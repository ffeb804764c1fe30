use serde_json::json;
use steadfast_sandbox::Fault;

use crate::{
    client::Answer,
    world::{MARKET, World},
};

/// Checks the answer to an order under a fault.
type Check = fn(&Answer);

const MIB: usize = 1 << 20;

const TABLE: &[(Fault, &str, u16, Check)] = &[
    (Fault::AnswerEmpty, "answer.empty", 200, |answer| assert!(answer.body().is_empty())),
    (Fault::AnswerHtml, "answer.html", 200, |answer| assert!(answer.body().starts_with(b"<!doctype"))),
    (Fault::AnswerHtml502, "answer.html-502", 502, |answer| assert!(answer.body().starts_with(b"<!doctype"))),
    (Fault::AnswerJsonCut, "answer.json-cut", 200, |answer| {
        assert!(answer.is_whole() && answer.body().starts_with(b"{\"s\"") && !is_json(answer));
    }),
    (Fault::AnswerInvalidUtf8, "answer.invalid-utf8", 200, |answer| {
        assert!(std::str::from_utf8(answer.body()).is_err());
        assert!(String::from_utf8_lossy(answer.body()).contains("orderId"));
    }),
    (Fault::AnswerNotEnvelope, "answer.not-envelope", 200, |answer| {
        assert_eq!(answer.json(), json!({"placed": true}));
    }),
    (Fault::AnswerSMissing, "answer.s-missing", 200, |answer| {
        assert!(answer.json().get("s").is_none() && has_id(answer));
    }),
    (Fault::AnswerSUnknown, "answer.s-unknown", 200, |answer| {
        assert!(s_is(answer, "fine") && has_id(answer))
    }),
    (Fault::AnswerSUpper, "answer.s-upper", 200, |answer| assert!(s_is(answer, "OK") && has_id(answer))),
    (Fault::AnswerNoD, "answer.no-d", 200, |answer| assert_eq!(answer.json(), json!({"s": "ok"}))),
    (Fault::AnswerOrderIdEmpty, "answer.order-id-empty", 200, |answer| {
        assert_eq!(answer.json()["d"]["orderId"], "");
    }),
    (Fault::AnswerOrderIdNumber, "answer.order-id-number", 200, |answer| {
        assert_eq!(answer.json()["d"]["orderId"], 260_000_000_001_u64);
    }),
    (Fault::AnswerOrderIdNull, "answer.order-id-null", 200, |answer| {
        assert!(answer.json()["d"].get("orderId").is_some_and(serde_json::Value::is_null));
    }),
    (Fault::AnswerNoDataWithD, "answer.no-data-with-d", 200, |answer| {
        assert!(s_is(answer, "no-data") && has_id(answer));
    }),
    (Fault::AnswerErrorWithD, "answer.error-with-d", 200, |answer| {
        assert!(s_is(answer, "error") && has_id(answer));
    }),
    (Fault::AnswerDeepNesting, "answer.deep-nesting", 200, |answer| {
        assert_eq!(answer.body().iter().filter(|byte| **byte == b'[').count(), 10_000);
    }),
    (Fault::AnswerHugeNumbers, "answer.huge-numbers", 200, |answer| {
        let text = String::from_utf8_lossy(answer.body());
        assert!(text.contains("1e400") && text.contains(&(1_u128 << 70).to_string()), "{text}");
    }),
    (Fault::AnswerLoneSurrogate, "answer.lone-surrogate", 200, |answer| {
        assert!(!is_json(answer) && String::from_utf8_lossy(answer.body()).contains(r"\ud800"));
    }),
    (Fault::AnswerNulInMsg, "answer.nul-in-msg", 200, |answer| {
        assert!(answer.json()["msg"].as_str().is_some_and(|msg| msg.contains('\0')) && has_id(answer));
    }),
    (Fault::AnswerLongMsg, "answer.long-msg", 200, |answer| {
        assert!(answer.json()["msg"].as_str().is_some_and(|msg| msg.len() == MIB) && has_id(answer));
    }),
    (Fault::Answer50MibError, "answer.50-mib-error", 500, |answer| {
        assert!(answer.body().len() > 50 * MIB && answer.body().ends_with(b"x\"}"));
    }),
    (Fault::AnswerRedirect302, "answer.redirect-302", 302, leads_elsewhere),
    (Fault::AnswerRedirect307, "answer.redirect-307", 307, leads_elsewhere),
    (Fault::AnswerRedirect308, "answer.redirect-308", 308, leads_elsewhere),
    (Fault::AnswerGzipClaim, "answer.gzip-claim", 200, |answer| {
        assert_eq!(answer.header("content-encoding"), Some("gzip"));
        assert!(has_id(answer), "and it is not true");
    }),
    (Fault::AnswerGzipBomb, "answer.gzip-bomb", 200, |answer| {
        assert_eq!(answer.header("content-encoding"), Some("gzip"));
        let body = answer.body();
        assert_eq!(body[..3], [0x1f, 0x8b, 8]);
        // The trailer has the length of the plain text (RFC 1952).
        let plain = u32::from_le_bytes(body[body.len() - 4..].try_into().expect("four bytes")) as usize;
        assert!(plain > 16 * MIB && body.len() < plain / 100, "{} of {plain}", body.len());
    }),
    (Fault::AnswerConnectionClose, "answer.connection-close", 200, |answer| {
        assert_eq!(answer.header("connection"), Some("close"));
        assert!(has_id(answer));
    }),
];

pub(super) fn faults() -> Vec<Fault> {
    let endless = [Fault::AnswerEndless];
    TABLE.iter().map(|(fault, ..)| *fault).chain(endless).collect()
}

fn is_json(answer: &Answer) -> bool {
    serde_json::from_slice::<serde_json::Value>(answer.body()).is_ok()
}

fn s_is(answer: &Answer, s: &str) -> bool {
    answer.json()["s"] == s
}

fn has_id(answer: &Answer) -> bool {
    answer.json()["d"]["orderId"] == "260000000001"
}

fn leads_elsewhere(answer: &Answer) {
    assert_eq!(answer.header("location"), Some("http://192.0.2.1/v2/elsewhere"));
    assert!(answer.body().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_answer_fault_spoils_the_answer_as_its_row_says_and_the_order_exists() {
    for &(fault, name, status, check) in TABLE {
        assert_eq!(fault.as_str(), name);
        let world = World::with_fault(name, 1.0);
        let answer = world.place(MARKET).await;
        assert_eq!(answer.status(), status, "{name}");
        check(&answer);
        assert_eq!((world.orders(), world.struck(name)), (1, 1), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_endless_body_goes_on_as_long_as_somebody_reads() {
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    let world = World::with_fault("answer.endless", 1.0);
    let request = super::transport::order(&world);
    let mut body = world.sandbox.gateway().oneshot(request).await.expect("an answer").into_body();
    let mut read = 0;
    while read < 1_000 * MIB {
        read += body.frame().await.expect("more").expect("no error").into_data().expect("data").len();
    }
}
