//! One span for each call, made by [`tower_http::trace`].
//!
//! The span has the method and the template of the path; the outcome is added at its end. Raw paths, queries, headers
//! and bodies are never recorded: a query may hold an authorization code, and a path may hold anything.
//!
//! Below it each send has a span of its own, by [`ClassifyLayer`](steadfast_retry::ClassifyLayer). The names of both
//! are those of OpenTelemetry's conventions for HTTP, and frozen:
//!
//! | field | on `call` | on `send` | |
//! |---|---|---|---|
//! | `otel.name` | the endpoint | method and template | the span's name |
//! | `otel.kind` | `internal` | `client` | |
//! | `otel.status_code` | `error` | `error` | only for errors |
//! | `http.request.method` | ✓ | ✓ | |
//! | `url.template` | ✓ | ✓ | below the base address; `unknown` for a path in no table |
//! | `server.address` | ✓ | ✓ | |
//! | `server.port` | | ✓ | |
//! | `http.request.resend_count` | | ✓ | only on sends after the first, whichever layer made them |
//! | `http.response.status_code` | ✓ | ✓ | only with an answer |
//! | `error.type` | ✓ | ✓ | a status, or one of [`error_type`] |
//! | `steadfast.endpoint` | ✓ | ✓ | |
//! | `steadfast.outcome` | ✓ | ✓ | what the answer proves |

use std::{
    any::Any,
    error::Error,
    fmt::{self, Display},
    sync::Arc,
    time::Duration,
};

use http::{Request, Response, StatusCode, Uri};
use steadfast_call::{BoxError, Call, Failure, Outcome, Routes, ext::Place};
use steadfast_retry::{Sends, error_type};
use steadfast_spec::{BaseUrl, Endpoint};
use tower_http::{
    classify::{ClassifiedResponse, ClassifyResponse, NeverClassifyEos, SharedClassifier},
    trace::{MakeSpan, OnFailure, OnResponse, ResponseBody, TraceLayer},
};
use tracing::{Span, field, level_filters::LevelFilter};

/// The layer of call spans.
pub type CallSpanLayer =
    TraceLayer<SharedClassifier<CallClassifier>, CallSpan, (), RecordOutcome, (), (), RecordFailure>;

/// A response's body inside the call's span.
pub type TracedBody<B> = ResponseBody<B, NeverClassifyEos<CallFailure>, (), (), RecordFailure>;

/// A layer that opens a span for each call below `base`, named after its path's template in `routes`.
///
/// The span stands outside of the routing layer, so it looks the route up itself. `url.template` is the template below
/// the base address, and `unknown` for a path that is not in the table or lies elsewhere, so that its values come from
/// a closed set.
///
/// # Example
///
/// ```
/// use http::{Request, Response};
/// use steadfast::{BoxError, call::Routes, span::call_spans};
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
/// Outermost, so that it sees the whole call. A debug build panics at a wrong [order](Place).
///
/// # Clone
///
/// Clones of the layer and of its services share the table; each call has a span of its own.
///
/// # Cost
///
/// About 630 instructions and no allocation for a successful call (`cargo xtask bench overhead`).
///
/// # Cancellation
///
/// Dropping the future, or the body of its answer, drops the inner call and closes the span. What was not recorded yet
/// is left out: a dropped call has no status.
#[must_use]
pub fn call_spans(base: BaseUrl, routes: Routes) -> CallSpanLayer {
    TraceLayer::new(SharedClassifier::new(CallClassifier))
        .make_span_with(CallSpan { table: Arc::new(Table { base, routes }) })
        .on_request(())
        .on_response(RecordOutcome)
        .on_body_chunk(())
        .on_eos(())
        .on_failure(RecordFailure)
}

/// Gives each request the [`Sends`] that counts the spans of its sends and knows the path's template.
///
/// Not done while no subscriber listens to spans. If a subscriber starts during a call, that call counts only the
/// repeats of the policy.
pub(crate) fn counted_sends<B>(
    base: BaseUrl,
    routes: Routes,
) -> impl Fn(Request<B>) -> Request<B> + Clone + Send + Sync + 'static {
    let table = Arc::new(Table { base, routes });
    move |mut request| {
        if LevelFilter::current() < LevelFilter::INFO {
            return request;
        }
        // Created for each call: a request that the caller sends again is a new call.
        let sends = Sends::new(table.template(request.uri()));
        Call::of_mut(request.extensions_mut()).set_sends(sends);
        request
    }
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

    fn endpoint<B>(&self, request: &Request<B>) -> &'static str {
        self.base
            .strip(request.uri())
            .and_then(|path| self.routes.find(request.method(), path))
            .and_then(|route| route.endpoint)
            .map_or("unknown", Endpoint::as_str)
    }
}

impl<B> MakeSpan<B> for CallSpan {
    fn make_span(&mut self, request: &Request<B>) -> Span {
        Place::CallSpan.check(request.extensions());
        // The table is read only if a subscriber takes the span.
        tracing::info_span!(
            "call",
            otel.name = self.table.endpoint(request),
            otel.kind = "internal",
            otel.status_code = field::Empty,
            http.request.method = request.method().as_str(),
            url.template = self.table.template(request.uri()),
            server.address = request.uri().host(),
            steadfast.endpoint = self.table.endpoint(request),
            http.response.status_code = field::Empty,
            error.type = field::Empty,
            steadfast.outcome = field::Empty,
        )
    }
}

/// Classifies failed calls: an answer of 400 and above, or none at all.
#[derive(Clone, Copy, Debug)]
pub struct CallClassifier;

/// The kind of a failed call, without any text of the error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallFailure {
    /// The answer's status.
    Status(StatusCode),
    /// There was no answer.
    NoAnswer {
        /// The kind of the error, by [`error_type`].
        kind: &'static str,
        /// The outcome that the error proves.
        outcome: Outcome,
    },
}

impl ClassifyResponse for CallClassifier {
    type FailureClass = CallFailure;
    type ClassifyEos = NeverClassifyEos<CallFailure>;

    fn classify_response<B>(
        self,
        response: &Response<B>,
    ) -> ClassifiedResponse<CallFailure, NeverClassifyEos<CallFailure>> {
        let status = response.status();
        ClassifiedResponse::Ready(if status.is_client_error() || status.is_server_error() {
            Err(CallFailure::Status(status))
        } else {
            Ok(())
        })
    }

    fn classify_error<E: Display + 'static>(self, error: &E) -> CallFailure {
        let error =
            (error as &dyn Any).downcast_ref::<BoxError>().map(|error| &**error as &(dyn Error + 'static));
        match error {
            Some(error) => {
                CallFailure::NoAnswer { kind: error_type(error), outcome: Failure::outcome_of(error) }
            }
            None => CallFailure::NoAnswer { kind: "_OTHER", outcome: Failure::outcome_of(&fmt::Error) },
        }
    }
}

impl Display for CallFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => f.write_str(status.as_str()),
            Self::NoAnswer { kind, .. } => f.write_str(kind),
        }
    }
}

/// Adds an answer's status and outcome to the span.
#[derive(Clone, Copy, Debug)]
pub struct RecordOutcome;

impl<B> OnResponse<B> for RecordOutcome {
    fn on_response(self, response: &Response<B>, _: Duration, span: &Span) {
        if span.is_disabled() {
            return;
        }
        span.record("http.response.status_code", response.status().as_u16());
        if let Some(outcome) = Outcome::of(response.extensions()) {
            span.record("steadfast.outcome", field::display(outcome));
        }
    }
}

/// Adds the failure to the span: the status, or the kind of the error without its text.
#[derive(Clone, Copy, Debug)]
pub struct RecordFailure;

impl OnFailure<CallFailure> for RecordFailure {
    fn on_failure(&mut self, failure: CallFailure, _: Duration, span: &Span) {
        span.record("otel.status_code", "error");
        span.record("error.type", field::display(&failure));
        if let CallFailure::NoAnswer { outcome, .. } = failure {
            span.record("steadfast.outcome", field::display(outcome));
        }
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
