//! The OpenTelemetry trace of a call that was lost once and sent again.
//!
//! The exporter keeps the spans in memory; a program uses its collector's exporter instead. Time is virtual.
//!
//! Prints: Client GET /api/oms/orders
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
use steadfast::{
    BoxError, Stack,
    auth::{ApiKey, TokenSource},
};
use steadfast_sandbox::Sandbox;
use tower::ServiceExt;
use tracing_subscriber::{Registry, layer::SubscriberExt};

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), BoxError> {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    let spans = tracing_opentelemetry::layer().with_tracer(provider.tracer("steadfast")).with_location(false);
    let spans = spans.with_threads(false).with_tracked_inactivity(false).with_target(false);
    tracing::subscriber::set_global_default(Registry::default().with(spans))?;

    let sandbox = Sandbox::builder().script("[[fault]]\nname = 'list.504'\nnth = 1")?.build()?;
    let facts = sandbox.credentials();
    let tokens = TokenSource::fixed(ApiKey::new(facts.api_key)?, facts.access_token)?;
    let service = Stack::new(facts.base_url.parse()?, tokens).service(sandbox.gateway());
    let orders = Request::get(format!("{}/api/oms/orders", facts.base_url));
    // The span of a call ends with the body of its answer.
    drop(service.oneshot(orders.body(Full::<Bytes>::default())?).await?);

    for span in exporter.get_finished_spans()? {
        println!("{:?} {} {:?}", span.span_kind, span.name, span.status);
        for field in span.attributes {
            println!("    {} = {}", field.key, field.value);
        }
    }
    Ok(())
}
