//! Answers that are well-formed HTTP but not as specified.

mod gzip;

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::{
    faults::Fault,
    wire::page::{Content, Hint, Page},
};

/// The target of redirects: an address that is not in use (RFC 5737).
const ELSEWHERE: &str = "http://192.0.2.1/v2/elsewhere";
/// Numbers of fillers of 64 KiB that make 50 MiB and 10 GiB.
const FILLERS: [u64; 2] = [800, 163_840];

/// Returns the answer under a fault of the group `answer`.
pub(crate) fn corrupt(fault: Fault, page: Page) -> Page {
    let redirect = |status, page: Page| {
        let hint = Some(Hint::Location(ELSEWHERE.to_owned()));
        Page { status, hint, ..page.with_body("") }
    };
    let hinting = |hint, page: Page| Page { hint: Some(hint), ..page };
    match fault {
        Fault::AnswerEmpty => page.with_body(""),
        Fault::AnswerHtml => Page { date_skew: page.date_skew, ..Page::html(HTML.to_owned()) },
        Fault::AnswerHtml502 => Page { status: StatusCode::BAD_GATEWAY, ..Page::html(HTML.to_owned()) },
        Fault::AnswerJsonCut => {
            let body = page.content.bytes();
            let half = body.slice(..body.len() / 2);
            page.with_body(half)
        }
        Fault::AnswerInvalidUtf8 => {
            let mut body = page.content.bytes().to_vec();
            let end = body.iter().rposition(|byte| *byte == b'}').unwrap_or(body.len());
            body.splice(end..end, *b",\"x\":\"\xff\xfe\"");
            page.with_body(body)
        }
        Fault::Answer50MibError => {
            let [fillers, _] = FILLERS;
            let content = Content::Filled { head: r#"{"s":"error","msg":""#, fillers, tail: r#""}"# };
            Page { status: StatusCode::INTERNAL_SERVER_ERROR, content, ..page }
        }
        Fault::AnswerEndless => {
            let [_, fillers] = FILLERS;
            let content = Content::Filled { head: r#"{"s":"ok","d":{"msg":""#, fillers, tail: r#""}}"# };
            Page { content, ..page }
        }
        Fault::AnswerRedirect302 => redirect(StatusCode::FOUND, page),
        Fault::AnswerRedirect307 => redirect(StatusCode::TEMPORARY_REDIRECT, page),
        Fault::AnswerRedirect308 => redirect(StatusCode::PERMANENT_REDIRECT, page),
        Fault::AnswerGzipClaim => hinting(Hint::Gzip, page),
        Fault::AnswerGzipBomb => hinting(Hint::Gzip, page.with_body(gzip::bomb())),
        Fault::AnswerConnectionClose => hinting(Hint::Close, page),
        Fault::AnswerDeepNesting => {
            page.with_body(format!(r#"{{"s":"ok","d":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000)))
        }
        Fault::AnswerHugeNumbers => {
            page.with_body(r#"{"s":"ok","d":{"orderId":1e400,"qty":1180591620717411303424}}"#)
        }
        Fault::AnswerLoneSurrogate => page.with_body(r#"{"s":"ok","d":{"orderId":"\ud800","msg":"\udc00"}}"#),
        _ => respell(fault, page),
    }
}

/// Applies the faults that change single fields of the envelope.
fn respell(fault: Fault, page: Page) -> Page {
    let mut fields = match serde_json::from_slice(&page.content.bytes()) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    match fault {
        Fault::AnswerSMissing => drop(fields.remove("s")),
        Fault::AnswerSUnknown => drop(fields.insert("s".into(), "fine".into())),
        Fault::AnswerSUpper => drop(fields.insert("s".into(), "OK".into())),
        Fault::AnswerNoD => drop(fields.remove("d")),
        Fault::AnswerOrderIdEmpty => set_order_id(&mut fields, json!("")),
        Fault::AnswerOrderIdNumber => {
            let id = fields.get("d").and_then(|d| d.get("orderId")).and_then(Value::as_str);
            let id = id.and_then(|id| id.parse::<u64>().ok()).unwrap_or(7);
            set_order_id(&mut fields, json!(id));
        }
        Fault::AnswerOrderIdNull => set_order_id(&mut fields, Value::Null),
        Fault::AnswerNoDataWithD => {
            fields.insert("s".into(), "no-data".into());
            fields.insert("msg".into(), steadfast_spec::msg::NO_DATA.into());
        }
        Fault::AnswerErrorWithD => {
            fields.insert("s".into(), "error".into());
            fields.insert("msg".into(), "Something went wrong".into());
        }
        Fault::AnswerNulInMsg => drop(fields.insert("msg".into(), "placed\0".into())),
        Fault::AnswerLongMsg => drop(fields.insert("msg".into(), "x".repeat(1 << 20).into())),
        _ => fields = Map::from_iter([("placed".to_owned(), Value::Bool(true))]),
    }
    page.with_body(Value::Object(fields).to_string())
}

fn set_order_id(fields: &mut Map<String, Value>, id: Value) {
    if let Some(Value::Object(d)) = fields.get_mut("d") {
        d.insert("orderId".into(), id);
    }
}

const HTML: &str =
    "<!doctype html><html><head><title>502 Bad Gateway</title></head><body>Try again.</body></html>";
