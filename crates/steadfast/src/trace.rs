//! One span for each call, made by [`tower_http::trace`].
//!
//! The span has the method and the path; the outcome is added when it ends. Query, headers and bodies are never
//! recorded: a query may hold an authorization code.

use std::time::Duration;

use http::{Request, Response};
use steadfast_spec::Outcome;
use tower_http::{
    classify::{NeverClassifyEos, ServerErrorsAsFailures, ServerErrorsFailureClass, SharedClassifier},
    trace::{MakeSpan, OnFailure, OnResponse, ResponseBody, TraceLayer},
};
use tracing::{Span, field};

/// The layer of call spans.
pub type CallSpanLayer =
    TraceLayer<SharedClassifier<ServerErrorsAsFailures>, CallSpan, (), RecordOutcome, (), (), RecordFailure>;

/// A response's body inside the call's span.
pub type TracedBody<B> = ResponseBody<B, NeverClassifyEos<ServerErrorsFailureClass>, (), (), RecordFailure>;

/// A layer that opens a span for each call.
///
/// # Order
///
/// Outermost, so that it sees everything that becomes of a call.
#[must_use]
pub fn call_spans() -> CallSpanLayer {
    TraceLayer::new_for_http()
        .make_span_with(CallSpan)
        .on_request(())
        .on_response(RecordOutcome)
        .on_body_chunk(())
        .on_eos(())
        .on_failure(RecordFailure)
}

/// Makes the span of a call.
#[derive(Clone, Copy, Debug)]
pub struct CallSpan;

impl<B> MakeSpan<B> for CallSpan {
    fn make_span(&mut self, request: &Request<B>) -> Span {
        tracing::info_span!(
            "call",
            otel.kind = "internal",
            http.request.method = %request.method(),
            url.path = request.uri().path(),
            http.response.status_code = field::Empty,
            error.type = field::Empty,
            outcome = field::Empty,
        )
    }
}

/// Adds an answer's status and outcome to the span.
#[derive(Clone, Copy, Debug)]
pub struct RecordOutcome;

impl<B> OnResponse<B> for RecordOutcome {
    fn on_response(self, response: &Response<B>, _: Duration, span: &Span) {
        span.record("http.response.status_code", response.status().as_u16());
        if let Some(outcome) = response.extensions().get::<Outcome>() {
            span.record("outcome", field::display(outcome));
        }
    }
}

/// Adds what failed to the span: the status, or the outermost error without its sources.
#[derive(Clone, Copy, Debug)]
pub struct RecordFailure;

impl OnFailure<ServerErrorsFailureClass> for RecordFailure {
    fn on_failure(&mut self, failure: ServerErrorsFailureClass, _: Duration, span: &Span) {
        span.record("error.type", field::display(failure));
    }
}
