//! Makes the answers of calls whose order was in doubt.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use steadfast_call::{
    BoxError, Failure, Fate, Outcome, Resend,
    ext::{self, Sent},
};

use crate::{
    error::{InDoubt, NotRepeated, OrderWithheld},
    numbers::IntentNo,
    place::body::ResponseBody,
    protocol::resolution::{RESOLUTION_HEADER, Reason, Resolution, Unresolved, Verdict},
    tracker::account::Account,
};

pub(crate) type SendResult<RB> = Result<Response<RB>, BoxError>;
pub(crate) type CallResult<RB> = Result<Response<ResponseBody<RB>>, BoxError>;

/// Answers a call that joined another one, once the found order is durable.
pub(crate) async fn joined<RB>(account: &Account, verdict: Verdict) -> CallResult<RB> {
    if matches!(verdict, Verdict::Recovered { .. }) {
        account.wait_durable().await;
    }
    attached(verdict)
}

/// Answers a call that joined another one.
pub(crate) fn attached<RB>(verdict: Verdict) -> CallResult<RB> {
    let unresolved = match verdict {
        Verdict::Acknowledged { order_id } | Verdict::Recovered { order_id, .. } => {
            return Ok(synthesized(&order_id.clone(), "attached", Resolution::Attached { order_id }));
        }
        Verdict::Unresolved(unresolved) => unresolved,
        Verdict::NotPlaced | Verdict::Pending | Verdict::Resend => {
            Unresolved::new(Reason::Deadline, Vec::new())
        }
    };
    Err(InDoubt::new(unresolved, OrderWithheld::IntentInDoubt.into()).into())
}

/// Returns the original answer with its body, and adds what is known of the order.
pub(crate) fn in_doubt<RB>(answer: SendResult<RB>, unresolved: Unresolved) -> CallResult<RB> {
    match answer {
        Ok(mut response) => {
            let extensions = response.extensions_mut();
            // A definite outcome, such as a lower layer's for its own repeat, proves nothing about earlier sends.
            if !Outcome::of(extensions).is_some_and(Outcome::is_unknown) {
                Sent::of_mut(extensions).set_outcome(Outcome::Unknown { resend: Resend::Never });
            }
            extensions.insert(unresolved);
            extensions.insert(ext::DoNotRetry);
            Ok(response.map(ResponseBody::service))
        }
        // A refused repeat proves nothing about earlier sends.
        Err(error) if !Failure::outcome_of(&*error).is_unknown() => {
            Err(InDoubt::new(unresolved, Failure::new(Fate::Lost { ended: None }, error).into()).into())
        }
        Err(error) => Err(InDoubt::new(unresolved, error).into()),
    }
}

/// Returns the error of a call whose last send did not leave. An earlier send that the service refused did leave.
pub(crate) fn unsent<RB>(
    account: &Arc<Account>,
    intent: IntentNo,
    error: BoxError,
    verdict: Verdict,
) -> CallResult<RB> {
    Err(match (account.refusal(intent), verdict) {
        (_, Verdict::Pending | Verdict::Resend) => {
            account.abandon(intent);
            return in_doubt(Err(error), Unresolved::new(Reason::Deadline, Vec::new()));
        }
        (_, Verdict::Unresolved(unresolved)) => return in_doubt(Err(error), unresolved),
        (Some((_, false)), _) => {
            return in_doubt(Err(error), Unresolved::new(Reason::Deadline, Vec::new()));
        }
        (Some((status, true)), _) => Failure::unexecuted(NotRepeated::new(status, error)).into(),
        (None, _) => error,
    })
}

/// Makes the answer that the service would have given.
pub(crate) fn synthesized<RB>(
    order_id: &str,
    how: &'static str,
    resolution: Resolution,
) -> Response<ResponseBody<RB>> {
    let body = format!(r#"{{"s":"ok","d":{{"orderId":{},"msg":"{how}"}}}}"#, json_string(order_id));
    let mut response = Response::new(ResponseBody::made(Bytes::from(body)));
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(HeaderName::from_static(RESOLUTION_HEADER), HeaderValue::from_static(how));
    let outcome = Outcome::Accepted { order_id: Some(order_id.into()) };
    Sent::of_mut(response.extensions_mut()).set_outcome(outcome);
    response.extensions_mut().insert(resolution);
    response
}

/// Returns an identifier as a JSON string; it came from JSON and may hold any character.
fn json_string(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            c if c.is_control() => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
    json
}

#[cfg(test)]
mod tests {
    use http_body::Body;
    use http_body_util::BodyExt;
    use steadfast_spec::PlacedOrder;

    use super::*;

    #[tokio::test]
    async fn a_made_answer_reads_like_the_services_own() {
        for order_id in ["240101000000001", "a\"b\\c\n\u{7f}"] {
            let resolution = Resolution::Attached { order_id: order_id.to_owned() };
            let response = synthesized::<http_body_util::Empty<Bytes>>(order_id, "recovered", resolution);
            assert!(!response.body().is_end_stream(), "there is a body to read");
            let body = response.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(PlacedOrder::parse(&body).unwrap().order_id, order_id);
        }
    }

    #[test]
    fn an_order_in_doubt_never_carries_a_definite_outcome() {
        let never = Outcome::Unknown { resend: Resend::Never };
        let open = Outcome::Unknown { resend: Resend::AfterAbsence };
        for (found, told) in [
            (Some(Outcome::Rejected), never.clone()),
            (Some(Outcome::NotExecuted), never.clone()),
            (None, never),
            (Some(open.clone()), open),
        ] {
            let mut response = Response::new(http_body_util::Empty::<Bytes>::new());
            if let Some(outcome) = found {
                Sent::of_mut(response.extensions_mut()).set_outcome(outcome);
            }
            let answer = in_doubt(Ok(response), Unresolved::new(Reason::Budget, Vec::new())).unwrap();
            assert_eq!(Outcome::of(answer.extensions()), Some(&told));
        }
    }
}
