use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use http::{
    Request, Response, StatusCode,
    header::{HOST, RETRY_AFTER},
};
use steadfast_call::{Call, Failure, Fate, Route};
use steadfast_limit::{Account, BoxError, Lane, RateLimit, RateLimitLayer, Refusal, Zone, ZoneLimiter};
use steadfast_spec::Endpoint;
use steadfast_verify::probes::Strict;
use tokio::time::{Instant, sleep};
use tokio_test::{assert_pending, assert_ready, task};
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};
use tower_test::mock::{self, Mock, Spawn};

use crate::drive::{general, per_second};

type Body = &'static str;
type Limited = Spawn<RateLimit<Mock<Request<Body>, Response<Body>>>>;
type Handle = mock::Handle<Request<Body>, Response<Body>>;

const ORDERS: &str = "https://example.com/v2/api/oms/orders";
const PLACE: &str = "https://example.com/v2/api/oms/place-order";

fn get(uri: &str) -> Request<Body> {
    Request::get(uri).body("").unwrap()
}

fn place() -> Request<Body> {
    Request::post(PLACE).body("symId=x").unwrap()
}

fn limiter() -> ZoneLimiter {
    ZoneLimiter::builder().zone(per_second(Zone::PLACE_ORDER, 1)).zone(general()).build().unwrap()
}

fn spawn(limiter: &ZoneLimiter) -> (Limited, Handle) {
    mock::spawn_layer(limiter.layer())
}

/// Returns how many slots of a zone's shortest window are on their way, spent, and lost.
fn spent(limiter: &ZoneLimiter, zone: Zone) -> (u32, usize, usize) {
    let zones = limiter.snapshot().zones;
    let found = zones.iter().find(|snapshot| snapshot.zone == zone);
    found.map_or((0, 0, 0), |zone| (zone.in_flight, zone.windows[0].used, zone.lost))
}

/// Returns a service that ends every call with the result of `end`.
fn ending<F>(
    limiter: &ZoneLimiter,
    end: F,
) -> impl Service<Request<Body>, Response = Response<Body>, Error = BoxError>
where
    F: Fn() -> Result<Response<Body>, BoxError> + Clone + Send + 'static,
{
    ServiceBuilder::new().layer(limiter.layer()).service(service_fn(move |_: Request<Body>| {
        let end = end.clone();
        async move { end() }
    }))
}

#[tokio::test(start_paused = true)]
async fn the_second_request_waits_and_the_service_is_asked_after_the_wait() {
    let limiter = limiter();
    let (mut service, mut handle) = spawn(&limiter);
    handle.allow(1);
    assert_ready!(service.poll_ready()).unwrap();
    let mut first = task::spawn(service.call(place()));
    let mut second = task::spawn(service.call(place()));
    assert_pending!(first.poll());
    assert_pending!(second.poll());
    let (_, send) = handle.next_request().await.unwrap();
    send.send_response(Response::new("placed"));
    assert_eq!(assert_ready!(first.poll()).unwrap().into_body(), "placed");

    assert_pending!(second.poll());
    sleep(Duration::from_millis(1_003)).await;
    assert!(second.is_woken());
    assert_pending!(second.poll(), "it has its permit, and the service is not ready");
    assert_eq!(spent(&limiter, Zone::PLACE_ORDER), (1, 1, 0));
    handle.allow(1);
    assert_pending!(second.poll());
    let (_, send) = handle.next_request().await.unwrap();
    send.send_response(Response::new("placed"));
    assert_ready!(second.poll()).unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_service_is_called_only_where_it_was_polled_ready() {
    let strict = Strict::new(service_fn(|_: Request<Body>| async { Ok::<_, BoxError>(Response::new("")) }));
    let uses = strict.uses();
    let mut service = ServiceBuilder::new().layer(limiter().layer()).service(strict);
    for _ in 0..3 {
        service.ready().await.unwrap().call(place()).await.unwrap();
    }
    assert_eq!((uses.calls(), uses.running()), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn the_lane_of_the_caller_decides_who_goes_first() {
    let limiter = ZoneLimiter::builder().zone(per_second(Zone::GENERAL, 1)).build().unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let service = {
        let order = order.clone();
        ServiceBuilder::new().layer(limiter.layer()).service(service_fn(move |request: Request<Body>| {
            order.lock().unwrap().push(*request.body());
            async { Ok::<_, BoxError>(Response::new("")) }
        }))
    };
    let call = |name, lane: Option<Lane>, head: bool| {
        let mut request = Request::get(ORDERS).body(name).unwrap();
        if let Some(lane) = lane {
            Call::of_mut(request.extensions_mut()).set_lane(lane);
        }
        if head {
            Call::of_mut(request.extensions_mut()).put_at_head_of_lane();
        }
        tokio::spawn(service.clone().oneshot(request))
    };
    let calls = [
        call("first", None, false),
        call("poll", Some(Lane::Bulk), false),
        call("read", None, false),
        call("order", Some(Lane::Trading), false),
        call("resend", Some(Lane::Trading), true),
        call("cancel", Some(Lane::Critical), false),
    ];
    for call in calls {
        call.await.unwrap().unwrap();
    }
    assert_eq!(*order.lock().unwrap(), ["first", "cancel", "resend", "order", "read", "poll"]);
}

#[tokio::test(start_paused = true)]
async fn the_route_in_the_extensions_decides_the_zone() {
    let limiter = limiter();
    let mut service = ending(&limiter, || Ok(Response::new("")));
    let mut request = get("https://example.com/somewhere/else");
    Call::of_mut(request.extensions_mut()).set_route(Arc::new(Route::new(Endpoint::PlaceOrder)));
    service.ready().await.unwrap().call(request).await.unwrap();
    assert_eq!(spent(&limiter, Zone::PLACE_ORDER), (0, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_closure_may_decide_the_zones() {
    let limiter = limiter();
    let layer = limiter.layer().zones_of(|_: &Request<Body>| [Zone::GENERAL, Zone::PLACE_ORDER]);
    let service = layer_over(layer);
    service.oneshot(get(ORDERS)).await.unwrap();
    assert_eq!(spent(&limiter, Zone::GENERAL), (0, 1, 0));
    assert_eq!(spent(&limiter, Zone::PLACE_ORDER), (0, 1, 0));

    let service = layer_over(limiter.layer().zones_of(|_: &Request<Body>| Vec::new()));
    let refused = service.oneshot(get(ORDERS)).await.unwrap_err();
    assert_eq!(refusal(&refused), &Refusal::NoZone);
}

fn layer_over<Z>(
    layer: RateLimitLayer<Z>,
) -> impl Service<Request<Body>, Response = Response<Body>, Error = BoxError>
where
    Z: steadfast_limit::ZonesOf<Body> + Clone,
{
    ServiceBuilder::new()
        .layer(layer)
        .service(service_fn(|_: Request<Body>| async { Ok::<_, BoxError>(Response::new("")) }))
}

fn refusal(error: &BoxError) -> &Refusal {
    let failure = Failure::find(&**error).expect("a refusal is a failure");
    assert!(failure.is_refusal());
    std::error::Error::source(failure).and_then(|source| source.downcast_ref()).expect("and says why")
}

#[tokio::test(start_paused = true)]
async fn a_request_that_would_miss_its_deadline_is_refused_before_it_waits() {
    let limiter = limiter();
    let mut service = ending(&limiter, || Ok(Response::new("")));
    service.ready().await.unwrap().call(place()).await.unwrap();
    let start = Instant::now();
    for by in [start.into_std(), start.into_std() + Duration::from_millis(900)] {
        let mut request = place();
        Call::of_mut(request.extensions_mut()).set_send_by(by);
        Call::of_mut(request.extensions_mut()).set_deadline(start.into_std() + Duration::from_secs(60));
        let error = service.ready().await.unwrap().call(request).await.unwrap_err();
        assert!(matches!(refusal(&error), Refusal::WouldMissDeadline { zone: Zone::PLACE_ORDER, .. }));
    }
    let mut request = place();
    Call::of_mut(request.extensions_mut()).set_deadline(start.into_std() + Duration::from_millis(900));
    let error = service.ready().await.unwrap().call(request).await.unwrap_err();
    assert!(matches!(refusal(&error), Refusal::WouldMissDeadline { .. }));
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(spent(&limiter, Zone::PLACE_ORDER), (0, 1, 0), "nothing was spent");
}

#[tokio::test(start_paused = true)]
async fn what_was_not_ready_in_time_is_not_sent() {
    let limiter = limiter();
    let (mut service, mut handle) = spawn(&limiter);
    handle.allow(0);
    let mut request = place();
    Call::of_mut(request.extensions_mut()).set_send_by((Instant::now() + Duration::from_secs(1)).into_std());
    assert_ready!(service.poll_ready()).unwrap();
    let mut call = task::spawn(service.call(request));
    assert_pending!(call.poll());
    sleep(Duration::from_secs(2)).await;
    handle.allow(1);
    let error = assert_ready!(call.poll()).unwrap_err();
    assert_eq!(refusal(&error), &Refusal::NotReadyInTime);
    assert_eq!(spent(&limiter, Zone::PLACE_ORDER), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_429_stops_the_zone_for_as_long_as_it_says() {
    let limiter = limiter();
    let too_many = || {
        let response = Response::builder().status(StatusCode::TOO_MANY_REQUESTS).header(RETRY_AFTER, "7");
        Ok(response.body("").unwrap())
    };
    let mut service = ending(&limiter, too_many);
    let start = Instant::now();
    let answer = service.ready().await.unwrap().call(get(ORDERS)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS, "the answer itself goes through");
    assert_eq!(limiter.snapshot().zones[0].paused_for, Some(Duration::from_secs(7)));
    service.ready().await.unwrap().call(get(ORDERS)).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 7);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_request_decides_what_becomes_of_its_slots() {
    type End = fn() -> Result<Response<Body>, BoxError>;
    let ends: [(&str, End, usize, usize); 8] = [
        ("answered", || Ok(Response::new("")), 1, 0),
        ("an error status", || Ok(Response::builder().status(504).body("").unwrap()), 1, 0),
        ("never left", || Err(Failure::new(Fate::NeverLeft, "connect").into()), 0, 0),
        ("left, and not processed", || Err(Failure::new(Fate::Unprocessed, "refused").into()), 1, 1),
        ("refused further in", || Err(Failure::refused("no token").into()), 0, 0),
        ("answered, unreadable", || Err(Failure::new(Fate::Answered, "cut").into()), 1, 0),
        ("lost", || Err(Failure::new(Fate::Lost { ended: None }, "reset").into()), 1, 1),
        ("nobody vouches for it", || Err(io::Error::other("what?").into()), 1, 1),
    ];
    for (name, end, used, lost) in ends {
        let limiter = limiter();
        let _ = ending(&limiter, end).oneshot(place()).await;
        assert_eq!(spent(&limiter, Zone::PLACE_ORDER), (0, used, lost), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn o01_a_connection_that_has_ended_holds_the_slot_for_less_than_one_that_may_still_send() {
    let held = |error: fn() -> BoxError| async move {
        let limiter = limiter();
        let _ = ending(&limiter, move || Err(error())).oneshot(place()).await;
        let start = Instant::now();
        ending(&limiter, || Ok(Response::new(""))).oneshot(place()).await.unwrap();
        start.elapsed().as_secs()
    };
    assert_eq!(
        held(|| Failure::new(Fate::Lost { ended: Some(Instant::now().into_std()) }, "timeout").into()).await,
        2
    );
    assert_eq!(held(|| Failure::new(Fate::Lost { ended: None }, "reset").into()).await, 121);
    assert_eq!(held(|| io::Error::from(io::ErrorKind::TimedOut).into()).await, 121);
}

/// Regression: after ten reads of a `select!` were dropped, no read could leave for two minutes, although the
/// transport had ended their connections.
#[tokio::test(start_paused = true)]
async fn o01_dropped_calls_cost_a_window_where_the_transport_ends_their_connections() {
    for (ends, held) in [(true, 2), (false, 121)] {
        let layer = RateLimitLayer::new(limiter());
        let layer = if ends { layer.ends_dropped_calls() } else { layer };
        let hangs = ServiceBuilder::new().layer(layer.clone()).service(service_fn(|_: Request<Body>| {
            std::future::pending::<Result<Response<Body>, BoxError>>()
        }));
        assert!(tokio::time::timeout(Duration::from_secs(1), hangs.oneshot(place())).await.is_err());
        let start = Instant::now();
        layer_over(layer).oneshot(place()).await.unwrap();
        assert_eq!(start.elapsed().as_secs(), held, "{ends}");
    }
}

/// The connection ends when the inner call is dropped, so that must come first.
#[tokio::test(start_paused = true)]
async fn o01_a_dropped_call_ends_its_connection_before_its_permit_counts_from_there() {
    struct Ends(ZoneLimiter);
    impl Drop for Ends {
        fn drop(&mut self) {
            assert_eq!(spent(&self.0, Zone::PLACE_ORDER).0, 1, "the permit is still there");
        }
    }
    let limiter = limiter();
    let inside = limiter.clone();
    let service = RateLimitLayer::new(limiter.clone()).ends_dropped_calls().layer(service_fn(
        move |_: Request<Body>| {
            let ends = Ends(inside.clone());
            async move {
                let _ends = ends;
                std::future::pending::<Result<Response<Body>, BoxError>>().await
            }
        },
    ));
    assert!(tokio::time::timeout(Duration::from_secs(1), service.oneshot(place())).await.is_err());
    assert_eq!(spent(&limiter, Zone::PLACE_ORDER), (0, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn clones_and_services_of_one_layer_share_the_limiter() {
    let layer = RateLimitLayer::new(limiter());
    let (first, second) = (layer_over(layer.clone()), layer_over(layer));
    let start = Instant::now();
    first.oneshot(place()).await.unwrap();
    second.oneshot(place()).await.unwrap();
    assert!(start.elapsed() > Duration::from_secs(1));
}

// Regression: each spelling of a gateway was counted apart, so a second spelling doubled every window.
#[tokio::test(start_paused = true)]
async fn spellings_of_one_gateway_share_their_windows() {
    let limiter = limiter();
    let start = Instant::now();
    let hosted = Request::post("/v2/api/oms/place-order").header(HOST, "Api.Example").body("").unwrap();
    let spelt = |uri: &str| Request::post(uri).body("").unwrap();
    for (second, request) in [
        spelt("https://API.Example/v2/api/oms/place-order"),
        spelt("https://api.example/v2/api/oms/place-order"),
        spelt("https://api.example:443/v2/api/oms/place-order"),
        hosted,
    ]
    .into_iter()
    .enumerate()
    {
        ending(&limiter, || Ok(Response::new(""))).oneshot(request).await.unwrap();
        assert_eq!(start.elapsed().as_secs(), second as u64);
    }
}

#[tokio::test(start_paused = true)]
async fn accounts_do_not_wait_for_each_other() {
    let limiter = limiter();
    let start = Instant::now();
    for account in ["one", "two", "three"] {
        let mut request = place();
        Call::of_mut(request.extensions_mut()).set_account(Account::new(account));
        ending(&limiter, || Ok(Response::new(""))).oneshot(request).await.unwrap();
    }
    assert_eq!(start.elapsed(), Duration::ZERO);

    // The same holds for accounts and gateways on one service.
    let mut service = ending(&limiter, || Ok(Response::new("")));
    for (account, gateway) in [("four", "one"), ("five", "one"), ("five", "two"), ("four", "two")] {
        let uri = format!("https://{gateway}.example.com/v2/api/oms/place-order");
        let mut request = Request::post(uri).body("symId=x").unwrap();
        Call::of_mut(request.extensions_mut()).set_account(Account::new(account));
        service.ready().await.unwrap().call(request).await.unwrap();
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn the_preset_sends_the_first_ten_orders_at_once_and_the_rest_in_time() {
    let service = ServiceBuilder::new().layer(RateLimitLayer::default()).service(service_fn(
        |_: Request<Body>| async {
            // The line takes 20 ms each way.
            sleep(Duration::from_millis(40)).await;
            Ok::<_, BoxError>(Response::new(""))
        },
    ));
    let start = Instant::now();
    let calls: Vec<_> = (0..30).map(|_| tokio::spawn(service.clone().oneshot(place()))).collect();
    let mut ends = Vec::new();
    for call in calls {
        call.await.unwrap().unwrap();
        ends.push(start.elapsed());
    }
    assert!(ends[9] <= Duration::from_millis(41), "{:?}", ends[9]);
    assert!(ends[29] <= Duration::from_millis(2_250), "{:?}", ends[29]);
    assert!(ends[29] >= Duration::from_millis(2_120), "{:?}", ends[29]);
}
