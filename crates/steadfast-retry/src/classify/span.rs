use std::{error::Error, sync::LazyLock};

use http::{Request, StatusCode, Uri, uri::Scheme};
use steadfast_call::{BoxError, Call, Failure, Fate, Outcome, Routes, ext::Sends};
use steadfast_spec::Endpoint;
use tracing::{
    Span,
    field::{Empty, display},
};

/// Makes the span of one send, with the names and fields of OpenTelemetry's conventions for HTTP clients.
///
/// No field comes from the path, the query, a body or a header, because those may contain ids and secrets. For the
/// same reason there is no `url.full`, which the conventions ask for.
pub(crate) fn of_send<B>(endpoint: Option<Endpoint>, request: &Request<B>) -> Span {
    let (method, uri) = (request.method().as_str(), request.uri());
    let call = Call::of(request.extensions());
    let sends = call.sends();
    // Evaluated only if the span is enabled.
    let template = || sends.map_or_else(|| shown_template(uri), Sends::template);
    let span = tracing::info_span!(
        "send",
        otel.name = format_args!("{method} {}", template()),
        otel.kind = "client",
        otel.status_code = Empty,
        http.request.method = method,
        url.template = template(),
        server.address = uri.host(),
        server.port = port(uri),
        steadfast.endpoint = endpoint.map_or("unknown", Endpoint::as_str),
        http.request.resend_count = Empty,
        http.response.status_code = Empty,
        error.type = Empty,
        steadfast.outcome = Empty,
    );
    // Counted even if this span is disabled, because a later one may be enabled.
    let earlier = match sends {
        Some(sends) => sends.begin(),
        None => call.repeats(),
    };
    if earlier > 0 {
        span.record("http.request.resend_count", earlier);
    }
    span
}

/// Records an answer.
pub(crate) fn record_answer(span: &Span, status: StatusCode, outcome: &Outcome) {
    if span.is_disabled() {
        return;
    }
    span.record("http.response.status_code", status.as_u16());
    span.record("steadfast.outcome", display(outcome));
    if !status.is_success() {
        span.record("error.type", status.as_str());
        span.record("otel.status_code", "error");
    }
}

/// Records a send that ended without an answer.
pub(crate) fn record_error(span: &Span, error: &BoxError) {
    span.record("error.type", error_type(&**error));
    span.record("otel.status_code", "error");
    span.record("steadfast.outcome", display(Failure::outcome_of(&**error)));
}

/// Returns the kind of failure for `error.type` on a span: one of a closed set, without any text of the error.
///
/// `refused` before it was sent, `timeout`, `never_left`, `not_processed`, `answer_unreadable`, `answer_lost`, and
/// `_OTHER` for an error that says nothing about the send.
#[must_use]
pub fn error_type(error: &(dyn Error + 'static)) -> &'static str {
    match Failure::find(error) {
        Some(failure) if failure.is_refusal() => "refused",
        Some(failure) if failure.is_timeout() => "timeout",
        Some(failure) => match failure.fate() {
            Fate::NeverLeft => "never_left",
            Fate::Unprocessed => "not_processed",
            Fate::Answered => "answer_unreadable",
            Fate::Lost { .. } => "answer_lost",
        },
        None => "_OTHER",
    }
}

/// Returns the template of a path in the specification, below any base address.
fn shown_template(uri: &Uri) -> &'static str {
    static SHOWN: LazyLock<Routes> = LazyLock::new(Routes::default);
    let path = uri.path();
    path.match_indices('/').find_map(|(start, _)| SHOWN.template(&path[start..])).unwrap_or("unknown")
}

fn port(uri: &Uri) -> Option<u16> {
    uri.port_u16().or_else(|| match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTPS => Some(443),
        Some(scheme) if *scheme == Scheme::HTTP => Some(80),
        _ => None,
    })
}
