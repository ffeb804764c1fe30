use std::{cell::RefCell, fmt, sync::Once};

use http::{Request, header::AUTHORIZATION};
use steadfast_call::Call;
use steadfast_retry::{ClassifyLayer, Jitter, RetryPolicy, Sends};
use steadfast_spec::Endpoint;
use tower::{ServiceBuilder, ServiceExt};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

use crate::support::{Reply, Script, Sent, request};

/// The fields of one span.
type Fields = Vec<(&'static str, String)>;

thread_local! {
    /// One entry for each span of this thread.
    static SENDS: RefCell<Vec<Fields>> = const { RefCell::new(Vec::new()) };
}

/// Keeps all values recorded on spans, per thread. Tests run in parallel, and a subscriber per test can miss spans
/// whose call sites another thread meets at the same moment.
struct Spans;

struct Line<'a>(&'a mut Fields);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push((field.name(), format!("{value:?}").trim_matches('"').to_owned()));
    }
}

impl Subscriber for Spans {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line = vec![("name", span.metadata().name().to_owned())];
        span.record(&mut Line(&mut line));
        SENDS.with_borrow_mut(|sends| {
            sends.push(line);
            Id::from_u64(sends.len() as u64)
        })
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        SENDS.with_borrow_mut(|sends| values.record(&mut Line(&mut sends[span.into_u64() as usize - 1])));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Returns the spans of one call.
fn spans(replies: impl IntoIterator<Item = Reply>, request: Request<Sent>) -> Vec<String> {
    static SUBSCRIBED: Once = Once::new();
    SUBSCRIBED.call_once(|| tracing::subscriber::set_global_default(Spans).unwrap());
    SENDS.take();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let stack = ServiceBuilder::new()
            .layer(RetryPolicy::default().jitter(Jitter::NONE).layer())
            .layer(ClassifyLayer::new())
            .service(Script::new(replies));
        let _ = stack.oneshot(request).await;
    });
    let line = |fields: Fields| fields.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(" ");
    SENDS.take().into_iter().map(line).collect()
}

// Dashboards depend on these names and values: a change here is a breaking change.
#[test]
fn every_send_has_a_span_with_frozen_names() {
    let replies = [Reply::Status(504), Reply::NeverLeft, Reply::Status(200)];
    let common = "name=send otel.name=GET unknown otel.kind=client http.request.method=GET \
                  url.template=unknown server.address=host server.port=443 steadfast.endpoint=orders";
    assert_eq!(
        spans(replies, request(Endpoint::Orders)),
        [
            format!(
                "{common} http.response.status_code=504 steadfast.outcome=unknown error.type=504 \
                 otel.status_code=error"
            ),
            format!(
                "{common} http.request.resend_count=1 error.type=never_left otel.status_code=error \
                 steadfast.outcome=not sent"
            ),
            format!(
                "{common} http.request.resend_count=2 http.response.status_code=200 steadfast.outcome=accepted"
            ),
        ]
    );
}

#[test]
fn the_ways_a_send_can_fail_are_a_closed_set() {
    for (reply, kind) in [
        (Reply::Lost, "error.type=answer_lost otel.status_code=error steadfast.outcome=unknown"),
        (Reply::Refused, "error.type=refused otel.status_code=error steadfast.outcome=not sent"),
        (Reply::Plain, "error.type=_OTHER otel.status_code=error steadfast.outcome=unknown"),
    ] {
        let spans = spans([reply], request(Endpoint::PlaceOrder));
        assert!(spans.len() == 1 && spans[0].ends_with(kind), "{spans:?}");
    }
}

// A repeat by another layer, such as after a 401, carries no count of the policy.
#[test]
fn sends_of_one_call_are_counted_together_whoever_makes_them() {
    let sends = Sends::new("/own/{thing}");
    let mut lines = Vec::new();
    for _ in 0..2 {
        let mut request = request(Endpoint::Orders);
        Call::of_mut(request.extensions_mut()).set_sends(sends.clone());
        lines.extend(spans([Reply::Status(401)], request));
    }
    assert_eq!(lines.len(), 2);
    assert!(lines.iter().all(|line| line.contains("otel.name=GET /own/{thing} ")), "{lines:?}");
    assert!(!lines[0].contains("resend_count"), "a first send is no repeat: {lines:?}");
    assert!(lines[1].contains("http.request.resend_count=1 "), "{lines:?}");
}

#[test]
fn a_path_that_the_specification_shows_is_named_by_its_template() {
    let uri = "http://host:8080/v2/api/mkt-data/scrips/symbol-store/canary?canary";
    let spans = spans([Reply::Status(200)], Request::get(uri).body(Sent::default()).unwrap());
    let template = "/api/mkt-data/scrips/symbol-store/{scripGroup}";
    assert!(spans[0].contains(&format!("otel.name=GET {template} ")), "{spans:?}");
    assert!(spans[0].contains(&format!("url.template={template} server.address=host server.port=8080 ")));
    assert!(!spans[0].contains("canary"), "{spans:?}");
}

#[test]
fn the_port_of_a_plain_address_is_80() {
    let mut request = request(Endpoint::Orders);
    *request.uri_mut() = "http://host/v2/x".parse().unwrap();
    let spans = spans([Reply::Status(200)], request);
    assert!(spans[0].contains("server.address=host server.port=80 "), "{spans:?}");
}

#[test]
fn no_secret_and_no_id_is_in_a_span() {
    let mut request = Request::delete("https://user:canary@host/v2/canary/cancel?orderId=canary#canary")
        .header(AUTHORIZATION, "Bearer canary:canary")
        .body(Sent::from("password=canary"))
        .unwrap();
    Call::of_mut(request.extensions_mut()).set_intent(steadfast_call::ext::IntentId::new("canary"));
    let spans = spans([Reply::Body(400, "canary".into())], request);
    assert!(spans.len() == 1 && !spans[0].contains("canary"), "{spans:?}");
}
