//! The facade's layers, and all layers together, over a service that must be polled ready before a call.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use steadfast::{
    BoxError, Operation, Paths, RequestBody, Stack,
    auth::{ApiKey, Credentials, IndividualLogin, TokenSource, TotpSecret},
    call::{Routes, WallClock},
    deadline::DeadlineLayer,
    route::RouteLayer,
    span::call_spans,
};
use steadfast_sandbox::{Gateway, Sandbox};
use steadfast_verify::{
    noon,
    probes::{Strict, Uses, drop_at_every_poll},
};
use tokio::time::{Instant, sleep, timeout};
use tower::{Layer, Service, ServiceExt, service_fn, util::BoxCloneSyncService};

use crate::world::{SECOND, World, order, script};

const BASE: &str = "https://api.example/v2";

type Body = Full<Bytes>;

/// A service with two awaits.
type Slow = BoxCloneSyncService<Request<Body>, Response<Body>, BoxError>;

fn slow() -> Slow {
    BoxCloneSyncService::new(service_fn(|_: Request<Body>| async {
        sleep(SECOND).await;
        sleep(SECOND).await;
        Ok(Response::new(Body::default()))
    }))
}

fn read() -> Request<Body> {
    Request::get(format!("{BASE}/api/oms/orders")).body(Body::default()).unwrap()
}

/// Calls a layer's service in ways that are often implemented wrongly, and drops it at every poll.
async fn probe<L>(layer: L)
where
    L: Layer<Strict<Slow>>,
    L::Service: Service<Request<Body>, Error: fmt::Debug> + Clone,
{
    let strict = Strict::new(slow());
    let uses = strict.uses();
    let service = layer.layer(strict);

    let mut ready = service.clone();
    ready.ready().await.unwrap();
    // The clone is not ready; the original still is.
    let mut other = ready.clone();
    ready.call(read()).await.map(drop).unwrap();
    other.ready().await.unwrap().call(read()).await.map(drop).unwrap();
    ready.ready().await.unwrap().call(read()).await.map(drop).unwrap();
    assert_eq!((uses.calls(), uses.running()), (3, 0));
    drop((ready, other));

    let (answer, polls) = drop_at_every_poll(
        || service.clone().oneshot(read()),
        |polls| {
            let uses = uses.clone();
            async move { assert_eq!(uses.running(), 0, "dropped after {polls} polls") }
        },
    )
    .await;
    answer.map(drop).unwrap();
    assert_eq!(polls, 4, "one until it is ready, one for each await, and one for the answer");
    // The first was dropped before it was ready: the request had not been passed on.
    assert_eq!((uses.calls(), uses.running()), (3 + polls - 1, 0));
    assert_eq!(Arc::strong_count(&uses), 2, "a clone of the service is left behind");
}

#[tokio::test(start_paused = true)]
async fn call_spans_pass_the_readiness_of_the_service_inside_on() {
    probe(call_spans(BASE.parse().unwrap(), Routes::default())).await;
}

#[tokio::test(start_paused = true)]
async fn a_deadline_passes_the_readiness_of_the_service_inside_on() {
    probe(DeadlineLayer::new(120 * SECOND).send_by(15 * SECOND)).await;
}

#[tokio::test(start_paused = true)]
async fn a_route_passes_the_readiness_of_the_service_inside_on() {
    probe(RouteLayer::new(BASE.parse().unwrap(), Routes::default())).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_refused_for_its_form_does_not_use_readiness_up() {
    let strict = Strict::new(slow());
    let uses = strict.uses();
    let mut service = RouteLayer::new(BASE.parse().unwrap(), Routes::default()).layer(strict);
    let elsewhere = Request::get("https://elsewhere.example/v2").body(Body::default()).unwrap();
    service.ready().await.unwrap().call(elsewhere).await.unwrap_err();
    assert_eq!(uses.calls(), 0);
    service.ready().await.unwrap().call(read()).await.unwrap();
    assert_eq!((uses.calls(), uses.running()), (1, 0));
}

/// The whole stack of `world` over its gateway; answers are read to their end.
#[derive(Clone)]
struct Probed {
    world: World,
    uses: Arc<Uses>,
    service: BoxCloneSyncService<Request<Body>, Response<Bytes>, BoxError>,
}

impl Probed {
    fn new(world: World) -> Self {
        let strict: Strict<Gateway> = Strict::new(world.sandbox.gateway());
        let uses = strict.uses();
        let service = stack_over(&world.stack, strict);
        Self { world, uses, service }
    }

    async fn send(&self, operation: &Operation) -> Result<u16, BoxError> {
        let target = operation.target(&Paths::public())?;
        let request = Request::builder()
            .method(operation.method())
            .uri(format!("{}{target}", self.world.sandbox.credentials().base_url))
            .body(Full::from(operation.body().unwrap_or_default()))?;
        let response = self.service.clone().oneshot(request).await?;
        Ok(response.status().as_u16())
    }

    async fn place(&self) -> Result<u16, BoxError> {
        self.send(&Operation::place_order(&order("EQT_INFY_EQ_NSE"))).await
    }

    /// Asserts that nothing runs, waits, is in doubt or holds a permit.
    async fn assert_nothing_is_left(&self, when: &str) {
        self.world.stack.known_orders().shutdown().await;
        assert_eq!(self.world.stack.known_orders().in_doubt(), 0, "{when}");
        assert_eq!(self.uses.running(), 0, "{when}");
        // A lost request may arrive for two minutes, and the reaction to a 429 is taken back in that time. Twice the
        // longest window is added: long enough for every stamp and hold to end by itself, also after a read of the
        // watch.
        sleep(420 * SECOND).await;
        let snapshot = self.world.stack.rate_limits().snapshot();
        assert!(snapshot.zones.is_empty(), "{when}: {snapshot:?}");
    }
}

fn stack_over<S>(stack: &Stack, transport: S) -> BoxCloneSyncService<Request<Body>, Response<Bytes>, BoxError>
where
    S: Service<Request<RequestBody>, Response = Response<steadfast_sandbox::Body>>,
    S: Clone + Send + Sync + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
{
    BoxCloneSyncService::new(stack.service(transport).and_then(|response: Response<_>| async {
        let (parts, body) = response.into_parts();
        let body = BodyExt::collect(body).await?.to_bytes();
        Ok(Response::from_parts(parts, body))
    }))
}

#[tokio::test(start_paused = true)]
async fn repeats_searches_and_resends_each_wait_until_the_transport_is_ready() {
    let probed = Probed::new(World::new(script(
        "[[fault]]\nname = 'placement.504-applied'\nrate = 0.3\n\
         [[fault]]\nname = 'placement.504-not-applied'\nendpoint = 'place-order'\nnth = 3\ntimes = 1\n\
         [[fault]]\nname = 'quota.storm'\nrate = 0.2\n\
         [[fault]]\nname = 'list.504'\nrate = 0.2",
    )));
    for number in 0..10 {
        assert_eq!(probed.place().await.unwrap(), 200, "order {number}");
        assert_eq!(probed.send(&Operation::orders()).await.unwrap(), 200, "list {number}");
        // At intervals, so that the orders are separate.
        sleep(60 * SECOND).await;
    }
    let state = probed.world.sandbox.state();
    assert_eq!(state.orders.len(), 10);
    for fault in ["placement.504-applied", "placement.504-not-applied", "quota.storm", "list.504"] {
        assert!(state.faults.contains_key(fault), "{fault} did not strike: {:?}", state.faults);
    }
    assert_eq!(probed.uses.calls(), state.arrivals.len());
    probed.assert_nothing_is_left("at the end").await;
}

#[tokio::test(start_paused = true)]
async fn a_send_after_a_renewal_waits_until_the_transport_is_ready() {
    let (then, start) = (UNIX_EPOCH + 2_000_000_000 * SECOND, Instant::now());
    let clock = WallClock::new(move || then + start.elapsed());
    let sandbox = Sandbox::builder().seed(5).wall_clock(clock.now()).build().unwrap();
    let facts = sandbox.credentials();
    let (base, key) = (facts.base_url.parse().unwrap(), ApiKey::new(facts.api_key).unwrap());
    let credentials = Credentials::new(facts.client_id, facts.password);
    let secret = TotpSecret::new(facts.totp_secret).unwrap();
    let login = IndividualLogin::totp(sandbox.gateway(), &base, key.clone(), credentials, secret).unwrap();
    let tokens = TokenSource::builder(key, login).clock(clock).build();
    let stack = Stack::new(base, tokens).routes(Routes::new(&Paths::public())).tracker(noon::tracker());
    let probed = Probed::new(World::around(sandbox, stack));
    assert_eq!(probed.place().await.unwrap(), 200);
    // Long enough for the next login to have another code.
    sleep(40 * SECOND).await;
    probed.world.sandbox.revoke(None);
    assert_eq!(probed.place().await.unwrap(), 200);
    assert_eq!(probed.world.sandbox.state().logins.succeeded, 2);
    assert_eq!(probed.uses.running(), 0);
}

/// Drops placements at every poll. Returns how many orders exist, and how many placements there were.
async fn placements_dropped_at_every_poll(probed: &Probed) -> (usize, usize) {
    let (placed, polls) = drop_at_every_poll(
        || {
            let probed = probed.clone();
            async move { probed.place().await }
        },
        |polls| {
            let probed = probed.clone();
            async move { probed.assert_nothing_is_left(&format!("dropped after {polls} polls")).await }
        },
    )
    .await;
    assert_eq!(placed.unwrap(), 200);
    probed.assert_nothing_is_left("placed").await;
    (probed.world.sandbox.state().orders.len(), polls)
}

#[tokio::test(start_paused = true)]
async fn the_whole_stack_leaves_nothing_behind_wherever_it_is_dropped() {
    for faults in [
        "",
        "[[fault]]\nname = 'placement.504-applied'",
        "[[fault]]\nname = 'placement.reset-applied'\nanswer_after_ms = 700",
        "[[fault]]\nname = 'placement.504-late'\nlate_by_ms = 3000",
    ] {
        let probed = Probed::new(World::new(script(faults)));
        let (orders, placements) = placements_dropped_at_every_poll(&probed).await;
        assert!((1..=placements).contains(&orders), "{orders} orders of {placements} placements: {faults}");
        assert!(placements > 1, "dropped at {placements} points");
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_dropped_between_its_repeats_leaves_nothing_behind() {
    let probed = Probed::new(World::new(script("[[fault]]\nname = 'list.504'\nnth = 1\ntimes = 2")));
    let mut waits = Vec::new();
    for wait in [0, 1, 150, 700, 1_500, 4_000] {
        let list = Operation::orders();
        let answered = timeout(Duration::from_millis(wait), probed.send(&list)).await;
        waits.push(answered.is_ok());
        probed.assert_nothing_is_left(&format!("dropped after {wait} ms")).await;
    }
    assert!(waits.contains(&true) && waits.contains(&false), "{waits:?}");
}
