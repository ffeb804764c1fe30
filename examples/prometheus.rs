//! Metrics of a bad morning: lost answers, waits for permits, and whether an order is in doubt.
//!
//! The exporter is read once, without its HTTP server; a program serves the same text under `/metrics`. Time is
//! virtual, so the seconds of reading the list take none.
//!
//! Prints: steadfast_orders_in_doubt 0
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use steadfast::{
    BoxError, Stack,
    auth::{ApiKey, TokenSource},
    metrics,
};
use steadfast_sandbox::Sandbox;
use tower::ServiceExt;

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), BoxError> {
    // Custom buckets give histograms that can be added up over machines.
    let durations = Matcher::Suffix("_seconds".into());
    let exporter = PrometheusBuilder::new()
        .set_buckets_for_metric(durations, &[0.01, 0.1, 1.0, 10.0, 60.0])?
        .install_recorder()?;
    metrics::describe();

    let sandbox = Sandbox::builder().script("[[fault]]\nname = 'placement.504-applied'\nnth = 3")?.build()?;
    let facts = sandbox.credentials();
    let tokens = TokenSource::fixed(ApiKey::new(facts.api_key)?, facts.access_token)?;
    let stack = Stack::new(facts.base_url.parse()?, tokens);
    let service = stack.service(sandbox.gateway());
    for price in 1500..1520 {
        let form = format!(
            "symId=EQT_INFY_EQ_NSE&qty=1&side=buy&type=limit&limitPrice={price}&product=delivery&validity=day"
        );
        let order = Request::post(format!("{}/api/oms/place-order", facts.base_url));
        service.clone().oneshot(order.body(Full::<Bytes>::from(form))?).await?;
    }

    metrics::record(&stack); // right before the exporter renders
    let text = exporter.render();
    let shown = ["orders_in_doubt", "ambiguous", "recovered", "permit_wait", "call_duration", "zone_used"];
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.contains("_bucket{")) {
        let zero_of_many = line.contains('{') && line.ends_with(" 0");
        if !zero_of_many && shown.iter().any(|name| line.contains(name)) {
            println!("{line}");
        }
    }
    Ok(())
}
