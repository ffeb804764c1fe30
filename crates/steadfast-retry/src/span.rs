use http::{Request, StatusCode};
use steadfast_spec::{BoxError, Endpoint, Failure, Fate, Outcome};
use tracing::{Span, field::Empty};

use crate::ResendCount;

/// The span of one send, named and filled as OpenTelemetry's conventions for HTTP clients have it.
///
/// Nothing in it is taken from the path, the query, a body or a header: those may hold ids and secrets.
pub(crate) fn of_send<B>(endpoint: Option<Endpoint>, request: &Request<B>) -> Span {
    let span = tracing::info_span!(
        "send",
        otel.kind = "client",
        http.request.method = request.method().as_str(),
        server.address = request.uri().host(),
        steadfast.endpoint = endpoint.map_or("unknown", Endpoint::as_str),
        http.request.resend_count = Empty,
        http.response.status_code = Empty,
        error.type = Empty,
        steadfast.outcome = Empty,
    );
    if let Some(ResendCount(count)) = request.extensions().get() {
        span.record("http.request.resend_count", count);
    }
    span
}

/// Records an answer.
pub(crate) fn record_answer(span: &Span, status: StatusCode, outcome: &Outcome) {
    span.record("http.response.status_code", status.as_u16());
    span.record("steadfast.outcome", tracing::field::display(outcome));
    if !status.is_success() {
        span.record("error.type", status.as_str());
    }
}

/// Records a send that ended without an answer.
pub(crate) fn record_error(span: &Span, error: &BoxError) {
    let kind = match Failure::find(&**error) {
        Some(failure) if failure.is_refusal() => "refused",
        Some(failure) => match failure.fate() {
            Fate::NeverLeft => "never_left",
            Fate::Answered => "answer_unreadable",
            Fate::Lost => "answer_lost",
        },
        None => "_OTHER",
    };
    span.record("error.type", kind);
    span.record("steadfast.outcome", tracing::field::display(Failure::outcome_of(&**error)));
}
