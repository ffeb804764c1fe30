use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Once,
};

use steadfast::{
    Access, BoxError, Client, Operation, OrderRequest,
    call::{Failure, Fate},
    retry::error_type,
};
use steadfast_sandbox::Sandbox;
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

use crate::world::{World, script};

type Fields = Vec<(&'static str, String)>;

thread_local! {
    static SPANS: RefCell<Vec<Fields>> = const { RefCell::new(Vec::new()) };
    static WARNINGS: RefCell<Vec<Fields>> = const { RefCell::new(Vec::new()) };
    /// Every span with its level, and its possible fields.
    static DECLARED: RefCell<BTreeMap<String, Vec<&'static str>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Records all fields of this project's spans, and every warning, for each thread separately.
struct Spans;

struct Line<'a>(&'a mut Fields);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push((field.name(), format!("{value:?}").trim_matches('"').to_owned()));
    }
}

impl Subscriber for Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_ours = metadata.target().starts_with("steadfast");
        is_ours && metadata.is_span() || metadata.is_event() && *metadata.level() == Level::WARN
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let metadata = span.metadata();
        let fields = metadata.fields().iter().map(|field| field.name()).collect();
        let name = format!("{} {}", metadata.name(), metadata.level());
        DECLARED.with_borrow_mut(|declared| declared.insert(name, fields));
        let mut line = vec![("name", metadata.name().to_owned())];
        span.record(&mut Line(&mut line));
        SPANS.with_borrow_mut(|spans| {
            spans.push(line);
            Id::from_u64(spans.len() as u64)
        })
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        SPANS.with_borrow_mut(|spans| values.record(&mut Line(&mut spans[span.into_u64() as usize - 1])));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut line = Fields::new();
        event.record(&mut Line(&mut line));
        WARNINGS.with_borrow_mut(|warnings| warnings.push(line));
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

fn spans() -> Vec<String> {
    let line = |fields: Fields| fields.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(" ");
    SPANS.take().into_iter().map(line).collect()
}

fn subscribe() {
    static SUBSCRIBED: Once = Once::new();
    SUBSCRIBED.call_once(|| tracing::subscriber::set_global_default(Spans).unwrap());
    SPANS.take();
}

#[tokio::test(start_paused = true)]
async fn a_call_and_each_of_its_sends_have_spans_with_frozen_names() {
    subscribe();
    let world = World::new(script("[[fault]]\nname = 'list.504'\nendpoint = 'orders'\nnth = 1"));
    world.send(&Operation::orders(), None).await.unwrap();
    let send = "name=send otel.name=GET /api/oms/orders otel.kind=client http.request.method=GET \
                url.template=/api/oms/orders server.address=localhost server.port=80 steadfast.endpoint=orders";
    assert_eq!(
        spans(),
        [
            "name=call otel.name=orders otel.kind=internal http.request.method=GET \
             url.template=/api/oms/orders server.address=localhost steadfast.endpoint=orders \
             http.response.status_code=200 steadfast.outcome=accepted"
                .to_owned(),
            format!(
                "{send} http.response.status_code=504 steadfast.outcome=unknown error.type=504 \
                 otel.status_code=error"
            ),
            format!(
                "{send} http.request.resend_count=1 http.response.status_code=200 steadfast.outcome=accepted"
            ),
        ]
    );
}

/// Lists everything that dashboards may use: every span, its fields, and the values of `error.type` beside
/// a status.
fn catalogue() -> String {
    let mut lines = String::new();
    for (span, fields) in DECLARED.take() {
        lines += &format!("{span}\n");
        for field in fields {
            lines += &format!("    {field}\n");
        }
    }
    let failures =
        [Fate::NeverLeft, Fate::Answered, Fate::Lost { ended: None }].map(|fate| Failure::new(fate, "x"));
    let others = [Failure::refused("x"), Failure::timed_out(Fate::Lost { ended: None }, "x")];
    let mut errors: Vec<BoxError> = failures.into_iter().chain(others).map(Into::into).collect();
    errors.push("x".into());
    let kinds: BTreeSet<_> = errors.iter().map(|error| error_type(&**error)).collect();
    lines += &format!("error.type = {}\n", kinds.into_iter().collect::<Vec<_>>().join(" | "));
    lines
}

// Dashboards depend on the names of spans and fields: a change here is a breaking change.
#[tokio::test(start_paused = true)]
async fn names_of_spans_and_their_fields_are_frozen() {
    subscribe();
    DECLARED.take();
    let world = crate::logging_in("[[fault]]\nname = 'list.504'\nendpoint = 'orders'\nnth = 1");
    for operation in [Operation::orders(), Operation::cancel_order("1"), Operation::symbols("NSE")] {
        let _ = world.send(&operation, None).await;
    }
    let frozen = include_str!("spans.txt");
    let declared = catalogue();
    assert_eq!(declared, frozen, "what is recorded now:\n{declared}");
}

#[test]
fn the_page_on_spans_names_the_fields_that_are_frozen() {
    let page =
        include_str!("../../src/layers/span.rs").lines().filter_map(|line| line.strip_prefix("//! | `"));
    let mut told = BTreeMap::from([("call INFO", BTreeSet::new()), ("send INFO", BTreeSet::new())]);
    for row in page {
        let mut cells = row.split('|').map(str::trim);
        let field = cells.next().unwrap().trim_end_matches('`');
        for fields in told.values_mut() {
            if cells.next().is_some_and(|cell| !cell.is_empty()) {
                fields.insert(field);
            }
        }
    }
    let mut frozen = BTreeMap::<&str, BTreeSet<&str>>::new();
    let mut span = "";
    for line in include_str!("spans.txt").lines().filter(|line| !line.contains('=')) {
        match line.strip_prefix("    ") {
            Some(field) => drop(frozen.get_mut(span).unwrap().insert(field)),
            None => {
                span = line;
                frozen.insert(span, BTreeSet::new());
            }
        }
    }
    assert_eq!(told, frozen);
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_says_so_without_an_error_text() {
    subscribe();
    let world = World::new(script(""));
    let request = http::Request::post("http://localhost/v2/api/oms/place-order")
        .header("content-type", "application/json")
        .body("{\"canary\":1}".into())
        .unwrap();
    world.call(request).await.unwrap_err();
    assert_eq!(
        spans(),
        ["name=call otel.name=place-order otel.kind=internal http.request.method=POST \
          url.template=/api/oms/place-order server.address=localhost steadfast.endpoint=place-order \
          otel.status_code=error error.type=refused steadfast.outcome=not sent"]
    );
}

// The policy does not know of the send after a 401, so its own count showed none.
#[tokio::test(start_paused = true)]
async fn a_send_after_a_401_is_a_resend() {
    subscribe();
    let world = crate::logging_in("[[fault]]\nname = 'list.401'\nendpoint = 'orders'\nnth = 1");
    world.send(&Operation::orders(), None).await.unwrap();
    let sends: Vec<_> = spans().into_iter().filter(|span| span.starts_with("name=send ")).collect();
    assert_eq!(sends.len(), 2, "{sends:?}");
    assert!(sends[0].contains(" http.response.status_code=401 ") && !sends[0].contains("resend_count"));
    assert!(sends[1].contains(" http.request.resend_count=1 http.response.status_code=200 "), "{sends:?}");
}

#[tokio::test(start_paused = true)]
async fn a_validity_that_only_bse_has_is_warned_of_and_sent() {
    subscribe();
    let sandbox = Sandbox::builder().build().unwrap();
    let facts = sandbox.credentials();
    let access = Access::token(facts.api_key, facts.access_token).unwrap();
    let client =
        Client::builder(facts.base_url.parse().unwrap(), access).build_over(sandbox.gateway()).unwrap();
    for (sym_id, warned) in [("EQT_INFY_EQ_BSE", 0), ("EQT_INFY_EQ_NSE", 1)] {
        let fields = [("qty", "1"), ("side", "buy"), ("type", "market"), ("product", "delivery")];
        let fields = fields.into_iter().chain([("validity", "eos"), ("symId", sym_id)]);
        let _ = client.place_order(&OrderRequest::from_fields(fields).unwrap()).await;
        let warnings = WARNINGS.take();
        let of_eos =
            warnings.iter().flatten().filter(|(_, text)| text.contains("eos is for BSE only")).count();
        assert_eq!(of_eos, warned, "{sym_id}: {warnings:?}");
        assert!(!format!("{warnings:?}").contains("INFY"), "{warnings:?}");
    }
    assert_eq!(sandbox.state().requests, 3, "two orders and the list that was read before them");
}
