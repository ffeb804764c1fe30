use http::StatusCode;
use steadfast_spec::{Endpoint, Envelope, PlacedOrder, is_documented, msg};

use crate::{Class, Outcome, Resend};

/// How much of a response's body is known when its outcome is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peek<'a> {
    /// The whole body, and the transport reported its regular end.
    Whole(&'a [u8]),
    /// The body was cut, failed, or exceeds what may be held in memory.
    Unreadable,
    /// The body was not read.
    NotRead,
}

impl Peek<'_> {
    /// True if the whole body is known and [documented](is_documented).
    fn is_documented(self, status: StatusCode) -> bool {
        matches!(self, Self::Whole(body) if is_documented(status, body))
    }
}

const AFTER_ABSENCE: Outcome = Outcome::Unknown { resend: Resend::AfterAbsence };
const NEVER: Outcome = Outcome::Unknown { resend: Resend::Never };

/// Returns what a response proves about its request.
///
/// The table, first match wins:
///
/// | status | body | outcome |
/// |---|---|---|
/// | 4xx to place-order or a change of an order | not [documented](is_documented), or not read | unknown, never resend |
/// | 429, 401 | any | not executed |
/// | 403, 404, 405, 415 | any | rejected |
/// | 400 | `msg` exactly `Bad request` or the input-validation text | rejected |
/// | 400 | `msg` exactly the internal-error text | unknown, resend after absence |
/// | 5xx to place-order | [documented](is_documented) | unknown, resend after absence |
/// | 5xx to place-order | anything else, or not read | unknown, never resend |
/// | other 5xx | any | unknown, resend after absence |
/// | 200 | place-order: `ok` with an `orderId` | accepted |
/// | 200 | others: `ok` or `no-data`; a token record for the token endpoints | accepted |
/// | anything else | | unknown, never resend |
///
/// To an order or to its change, an error counts as the gateway's own only if it is documented. A balancer that gives
/// up at once does not say how long the gateway behind it may still work on the order, and a firewall may replace the
/// gateway's answer by its page after the order was placed. To other requests, 401, 403 and the like count by status
/// alone. An `orderId` does not count if it is empty, zero, or `null`, `undefined`,
/// `none`, `nil` or `NaN` in any case, or has surrounding blanks or a control character: the service took the order,
/// and its id must be searched for. `endpoint` is `None` for a path that is not in the table; its 200 is judged like
/// that of a read.
#[must_use]
pub fn outcome_of(endpoint: Option<Endpoint>, status: StatusCode, body: Peek<'_>) -> Outcome {
    match status.as_u16() {
        // A page of a proxy says nothing of what happened behind it.
        400..=499 if proves_by_text(endpoint) && !body.is_documented(status) => NEVER,
        429 | 401 => Outcome::NotExecuted,
        403 | 404 | 405 | 415 => Outcome::Rejected,
        400 => bad_request(body),
        500..=599 if endpoint == Some(Endpoint::PlaceOrder) && !body.is_documented(status) => NEVER,
        500..=599 => AFTER_ABSENCE,
        200 => success(endpoint, body),
        _ => NEVER,
    }
}

/// Returns what a status proves to a layer that does not read bodies.
///
/// It errs on the side of doubt: every 400 is unknown. For a class that must be verified, every 200, 4xx and 5xx is
/// unknown and never resent.
#[must_use]
pub fn outcome_of_status(class: Class, status: StatusCode) -> Outcome {
    match (status, class) {
        (StatusCode::OK, Class::VerifyFirst) => NEVER,
        // The body shows whether the answer is the gateway's, and the body is not read here.
        (status, Class::VerifyFirst) if status.is_client_error() || status.is_server_error() => {
            outcome_of(Some(Endpoint::PlaceOrder), status, Peek::NotRead)
        }
        _ => outcome_of(None, status, Peek::NotRead),
    }
}

/// True for requests whose execution cannot be repeated: only the service's own word counts for them.
fn proves_by_text(endpoint: Option<Endpoint>) -> bool {
    endpoint.is_some_and(Endpoint::moves_money)
}

fn bad_request(body: Peek<'_>) -> Outcome {
    let Peek::Whole(bytes) = body else { return NEVER };
    match Envelope::parse(bytes) {
        Ok(Envelope::Error { msg }) if msg == msg::BAD_REQUEST || msg == msg::INPUT_VALIDATION => {
            Outcome::Rejected
        }
        Ok(Envelope::Error { msg }) if msg == msg::INTERNAL_ERROR => AFTER_ABSENCE,
        _ => NEVER,
    }
}

fn success(endpoint: Option<Endpoint>, body: Peek<'_>) -> Outcome {
    let accepted = Outcome::Accepted { order_id: None };
    match endpoint {
        Some(Endpoint::PlaceOrder) => {
            let Peek::Whole(bytes) = body else { return NEVER };
            match PlacedOrder::id_of(bytes) {
                Some(order_id) => Outcome::Accepted { order_id: Some(order_id) },
                None => NEVER,
            }
        }
        // Their success is not an envelope but a login page, or a token record that the login reads itself.
        Some(Endpoint::Authorize | Endpoint::Token | Endpoint::IndividualToken) => match body {
            Peek::Unreadable => NEVER,
            Peek::Whole(_) | Peek::NotRead => accepted,
        },
        // Lists and downloads may be far larger than the part that is read here. Their readers judge them.
        _ => match body {
            Peek::NotRead => accepted,
            Peek::Unreadable => NEVER,
            Peek::Whole(bytes) => match Envelope::parse(bytes) {
                Ok(Envelope::Ok { .. } | Envelope::NoData { .. }) => accepted,
                _ => NEVER,
            },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Option<Endpoint> = Some(Endpoint::PlaceOrder);
    const LIST: Option<Endpoint> = Some(Endpoint::Orders);

    fn at(endpoint: Option<Endpoint>, status: u16, body: &str) -> Outcome {
        outcome_of(endpoint, StatusCode::from_u16(status).unwrap(), Peek::Whole(body.as_bytes()))
    }

    fn error(msg: &str) -> String {
        serde_json::json!({"s": "error", "msg": msg}).to_string()
    }

    #[test]
    fn statuses_that_prove_non_execution_of_a_read_need_no_body() {
        for html in ["", "<html>", "{}"] {
            for endpoint in [LIST, Some(Endpoint::CancelOrder), Some(Endpoint::Token), None] {
                assert_eq!(at(endpoint, 429, html), Outcome::NotExecuted);
                assert_eq!(at(endpoint, 401, html), Outcome::NotExecuted);
                for status in [403, 404, 405, 415] {
                    assert_eq!(at(endpoint, status, html), Outcome::Rejected);
                }
            }
        }
    }

    #[test]
    fn o02_a_4xx_to_an_order_counts_only_with_its_documented_text() {
        let rows =
            steadfast_spec::ERRORS.iter().filter(|row| row.status.is_client_error() && row.status != 400);
        let texts = [msg::UNAUTHORIZED, msg::FORBIDDEN, msg::NOT_FOUND, msg::METHOD_NOT_ALLOWED];
        for row in rows {
            let (status, proves) = match row.status.as_u16() {
                status @ (401 | 429) => (status, Outcome::NotExecuted),
                status => (status, Outcome::Rejected),
            };
            for endpoint in [PLACE, Some(Endpoint::ModifyOrder)] {
                assert_eq!(at(endpoint, status, &error(row.msg.unwrap_or("any"))), proves, "{status}");
                for other in texts.into_iter().filter(|text| row.msg.is_some_and(|own| own != *text)) {
                    assert_eq!(at(endpoint, status, &error(other)), NEVER, "{status} {other}");
                }
                for page in ["", "{}", "<html>Forbidden</html>", r#"{"s":"ok","d":{"orderId":"7"}}"#] {
                    assert_eq!(at(endpoint, status, page), NEVER, "{status} {page}");
                }
                assert_eq!(outcome_of(endpoint, row.status, Peek::Unreadable), NEVER);
                assert_eq!(outcome_of(endpoint, row.status, Peek::NotRead), NEVER);
            }
            assert_eq!(outcome_of_status(Class::VerifyFirst, row.status), NEVER);
            assert_eq!(outcome_of_status(Class::Safe, row.status), proves);
        }
    }

    #[test]
    fn of_400_only_the_exact_texts_are_definite() {
        assert_eq!(at(PLACE, 400, &error(msg::BAD_REQUEST)), Outcome::Rejected);
        assert_eq!(at(PLACE, 400, &error(msg::INPUT_VALIDATION)), Outcome::Rejected);
        assert_eq!(at(PLACE, 400, &error(msg::INTERNAL_ERROR)), AFTER_ABSENCE);
        for text in ["Bad request ", "bad request", "timed out, check the order book", ""] {
            assert_eq!(at(PLACE, 400, &error(text)), NEVER, "{text:?}");
        }
        assert_eq!(at(PLACE, 400, "<html>Bad request</html>"), NEVER);
        assert_eq!(outcome_of(PLACE, StatusCode::BAD_REQUEST, Peek::Unreadable), NEVER);
    }

    #[test]
    fn a_5xx_leaves_the_order_in_doubt_and_other_odd_statuses_forbid_a_resend() {
        for status in 500..=599 {
            assert!(at(PLACE, status, &error("x")).is_unknown());
            assert_eq!(at(LIST, status, &error("x")), AFTER_ABSENCE);
            assert_eq!(at(None, status, "<html>"), AFTER_ABSENCE);
        }
        for status in [101, 201, 202, 204, 206, 301, 302, 304, 402, 408, 409, 418, 425, 600, 999] {
            assert_eq!(at(PLACE, status, &error("x")), NEVER, "{status}");
        }
    }

    #[test]
    fn o02_only_a_documented_5xx_is_the_gateways_own_word() {
        let rows = steadfast_spec::ERRORS.iter().filter(|row| row.status.is_server_error());
        let rows: Vec<_> = rows.map(|row| (row.status.as_u16(), row.msg.unwrap())).collect();
        assert_eq!(rows.len(), 4);
        for (status, msg) in &rows {
            assert_eq!(at(PLACE, *status, &error(msg)), AFTER_ABSENCE, "{status}");
            for (other, text) in &rows {
                let expected = if status == other { AFTER_ABSENCE } else { NEVER };
                assert_eq!(at(PLACE, *status, &error(text)), expected, "{status} {text}");
            }
            let ok = format!(r#"{{"s":"ok","msg":"{msg}"}}"#);
            for body in ["", "<html>", *msg, &ok, &error(&format!("{msg} ")), &error(&msg.to_lowercase())] {
                assert_eq!(at(PLACE, *status, body), NEVER, "{status} {body}");
            }
            let status = StatusCode::from_u16(*status).unwrap();
            assert_eq!(outcome_of(PLACE, status, Peek::Unreadable), NEVER);
            assert_eq!(outcome_of(PLACE, status, Peek::NotRead), NEVER);
            assert_eq!(outcome_of_status(Class::VerifyFirst, status), NEVER);
            assert_eq!(outcome_of_status(Class::Safe, status), AFTER_ABSENCE);
        }
        assert_eq!(at(PLACE, 520, &error(msg::BAD_GATEWAY)), NEVER);
    }

    #[test]
    fn a_200_counts_only_with_an_order_id_that_can_be_read() {
        let ok = r#"{"s":"ok","d":{"orderId":"7","msg":"placed"}}"#;
        assert_eq!(at(PLACE, 200, ok), Outcome::Accepted { order_id: Some("7".into()) });
        for cut in 0..ok.len() {
            assert_eq!(at(PLACE, 200, &ok[..cut]), NEVER, "cut after {cut} bytes");
        }
        for body in [
            r#"{"s":"ok","d":{"orderId":"","msg":"placed"}}"#,
            r#"{"s":"ok","d":{"orderId":null}}"#,
            r#"{"s":"ok","d":{}}"#,
            r#"{"s":"ok"}"#,
            r#"{"s":"error","msg":"x"}"#,
            r#"{"s":"no-data","msg":"no-data"}"#,
            r#"{"s":"OK","d":{"orderId":"7"}}"#,
            "<html></html>",
        ] {
            assert_eq!(at(PLACE, 200, body), NEVER, "{body}");
        }
        assert_eq!(outcome_of(PLACE, StatusCode::OK, Peek::NotRead), NEVER);
    }

    #[test]
    fn o06_a_text_that_stands_for_no_identifier_is_none() {
        let id = |id: &str| at(PLACE, 200, &serde_json::json!({"s": "ok", "d": {"orderId": id}}).to_string());
        for none in ["", " ", "0", "000", "null", "NULL", "undefined", "None", "nil", "NaN"] {
            assert_eq!(id(none), NEVER, "{none:?}");
        }
        for torn in [" 26", "26 ", "\t26", "26\n", "2\u{0}6", "2\u{1b}[2J6", "26\u{85}", "\u{a0}26"] {
            assert_eq!(id(torn), NEVER, "{torn:?}");
        }
        assert_eq!(at(PLACE, 200, r#"{"s":"ok","d":{"orderId":0}}"#), NEVER);
        for one in ["260", "007", "0x1", "nil-7", "a b", "Ä1"] {
            assert_eq!(id(one), Outcome::Accepted { order_id: Some(one.into()) });
        }
    }

    #[test]
    fn an_empty_list_is_a_normal_answer() {
        assert_eq!(at(LIST, 200, r#"{"s":"no-data","msg":"no-data"}"#), Outcome::Accepted { order_id: None });
        assert_eq!(at(LIST, 200, r#"{"s":"error","msg":"no-data"}"#), NEVER);
    }

    #[test]
    fn status_alone_never_accepts_an_order() {
        assert_eq!(outcome_of_status(Class::VerifyFirst, StatusCode::OK), NEVER);
        assert_eq!(outcome_of_status(Class::Safe, StatusCode::OK), Outcome::Accepted { order_id: None });
        assert_eq!(outcome_of_status(Class::Safe, StatusCode::BAD_REQUEST), NEVER);
    }
}
