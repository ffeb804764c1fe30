//! One span for each call, made by [`tower_http::trace`].
//!
//! The span has the method and the template of the path; the outcome is added when it ends. Raw paths, queries,
//! headers and bodies are never recorded: a query may hold an authorization code, and a path anything at all.

use std::{sync::Arc, time::Duration};

use http::{Request, Response, Uri};
use steadfast_spec::{BaseUrl, Outcome, Routes};
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

/// A layer that opens a span for each call below `base`, named after its path's template in `routes`.
///
/// The span stands outside of whatever routes the call, so it asks the table itself. `url.template` is the template
/// below the base address, and `unknown` for a path that is not in the table or lies elsewhere: what is recorded
/// comes from a closed set.
///
/// # Example
///
/// ```
/// use http::{Request, Response};
/// use steadfast::{BoxError, spec::Routes, trace::call_spans};
/// use tower::{ServiceBuilder, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// let service = ServiceBuilder::new()
///     .layer(call_spans("https://api.example/v2".parse()?, Routes::default()))
///     .service(service_fn(async |_: Request<String>| {
///         tracing::info!("inside of the call's span");
///         Ok::<_, BoxError>(Response::new(String::new()))
///     }));
/// // The span's url.template is /api/mkt-data/scrips/symbol-store/{scripGroup}.
/// let scrips = Request::get("https://api.example/v2/api/mkt-data/scrips/symbol-store/NSE").body(String::new())?;
/// service.oneshot(scrips).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Order
///
/// Outermost, so that it sees everything that becomes of a call.
///
/// # Clone
///
/// Clones of the layer and of its services share the table; each call has a span of its own.
///
/// # Cancellation
///
/// Dropping the future, or the body of its answer, drops what is inside and closes the span, without what was still
/// to be recorded: a call that was dropped has no status.
#[must_use]
pub fn call_spans(base: BaseUrl, routes: Routes) -> CallSpanLayer {
    TraceLayer::new_for_http()
        .make_span_with(CallSpan { table: Arc::new(Table { base, routes }) })
        .on_request(())
        .on_response(RecordOutcome)
        .on_body_chunk(())
        .on_eos(())
        .on_failure(RecordFailure)
}

/// Makes the span of a call.
#[derive(Clone, Debug)]
pub struct CallSpan {
    table: Arc<Table>,
}

#[derive(Debug)]
struct Table {
    base: BaseUrl,
    routes: Routes,
}

impl Table {
    fn template(&self, uri: &Uri) -> &str {
        self.base.strip(uri).and_then(|path| self.routes.template(path)).unwrap_or("unknown")
    }
}

impl<B> MakeSpan<B> for CallSpan {
    fn make_span(&mut self, request: &Request<B>) -> Span {
        tracing::info_span!(
            "call",
            otel.kind = "internal",
            http.request.method = %request.method(),
            url.template = self.table.template(request.uri()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_recorded_as_its_template_or_not_at_all() {
        let table = Table { base: "https://api.example/v2".parse().unwrap(), routes: Routes::default() };
        for (uri, template) in [
            ("https://api.example/v2/api/oms/orders?authCode=x", "/api/oms/orders"),
            (
                "https://api.example/v2/api/mkt-data/scrips/symbol-store/NSE",
                "/api/mkt-data/scrips/symbol-store/{scripGroup}",
            ),
            ("https://api.example/v2/api/oms/orders/4711", "unknown"),
            ("https://elsewhere.example/v2/api/oms/orders", "unknown"),
            ("/api/oms/orders", "unknown"),
        ] {
            assert_eq!(table.template(&uri.parse().unwrap()), template, "{uri}");
        }
    }
}
