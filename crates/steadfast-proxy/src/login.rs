//! The login of programs that insist on one. It is answered here, and nothing of it reaches the service.
//!
//! The password is a local token, and so is the access token of the answer: the program sends it back behind its API key,
//! as it would send the service's own.

use http::{HeaderValue, Response, StatusCode, header};
use serde_json::json;
use steadfast::spec::{Form, msg};

use crate::{
    answer::{AnswerBody, Own},
    front::Shared,
};

/// How long the service's tokens live (§2). A local token lives until it is replaced.
const LIFE: u32 = 86_400;

/// Answers a login with this form (§4.3).
pub(crate) fn answer(admission: &Shared, body: &[u8]) -> Response<AnswerBody> {
    let Ok(form) = Form::parse(body) else { return invalid("form cannot be read") };
    if form.get("twoFaTyp").is_none_or(str::is_empty) {
        return invalid("twoFaTyp is missing");
    }
    let Some(password) = form.get("password").filter(|password| admission.knows(password)) else {
        let own = Own::new(StatusCode::UNAUTHORIZED, "http_request_denied", "password is no local token");
        return own.into_response();
    };
    let record = json!({
        "access_token": password,
        "token_type": "bearer",
        "expires_in": LIFE,
        "scope": "general",
    });
    let mut answer = Response::new(AnswerBody::own(record.to_string()));
    for (name, value) in [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")] {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

fn invalid(details: &str) -> Response<AnswerBody> {
    Own::new(StatusCode::BAD_REQUEST, "http_request_error", details)
        .saying(msg::INPUT_VALIDATION)
        .into_response()
}
