//! Routes counted under a stricter zone than their own, because the gateway seems to do so.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use http::{Request, Response, StatusCode};
use steadfast_limit::{BoxError, Builder, Event, SECOND, Zone, ZoneLimiter};
use steadfast_spec::Endpoint;
use tokio::time::{Instant, sleep};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

use crate::drive::{general, per_second};

const STORE: &str = "https://example.com/v2/api/mkt-data/scrips/symbol-store/NSE_EQ";
const OTHER: &str = "https://example.com/v2/api/mkt-data/other";

/// The result of a run: the second of each refusal, and the reported events.
struct Run {
    refused: Arc<Mutex<Vec<u64>>>,
    heard: Arc<Mutex<Vec<(u64, Event)>>>,
}

impl Run {
    fn refused_between(&self, from: u64, to: u64) -> usize {
        self.refused.lock().unwrap().iter().filter(|at| (from..to).contains(*at)).count()
    }

    /// Returns the moves and returns, with their seconds.
    fn moves(&self) -> Vec<(u64, Event)> {
        let moved = |event: &Event| matches!(event, Event::RouteMoved { .. } | Event::RouteReturned { .. });
        self.heard.lock().unwrap().iter().filter(|(_, event)| moved(event)).cloned().collect()
    }
}

fn zones() -> Builder {
    ZoneLimiter::builder().zone(general()).zone(per_second(Zone::DATA, 100))
}

/// Reads market data at full speed for `seconds`, from a gateway that counts it under the general zone's limit.
async fn run(builder: Builder, seconds: u64) -> Run {
    let start = Instant::now();
    let run = Run { refused: Arc::default(), heard: Arc::default() };
    let heard = run.heard.clone();
    let limiter = builder
        .on_event(move |event| heard.lock().unwrap().push((start.elapsed().as_secs(), event.clone())))
        .build()
        .unwrap();
    let (counted, refused) = (Arc::new(Mutex::new(VecDeque::new())), run.refused.clone());
    let gateway = service_fn(move |_: Request<()>| {
        let (counted, refused) = (counted.clone(), refused.clone());
        async move {
            let now = Instant::now();
            let mut counted = counted.lock().unwrap();
            while counted.front().is_some_and(|at| now.duration_since(*at) >= SECOND) {
                counted.pop_front();
            }
            if counted.len() < 10 {
                counted.push_back(now);
                return Ok::<_, BoxError>(Response::new(()));
            }
            refused.lock().unwrap().push(start.elapsed().as_secs());
            let refusal = Response::builder().status(StatusCode::TOO_MANY_REQUESTS);
            Ok(refusal.body(()).unwrap())
        }
    });
    let service = ServiceBuilder::new()
        .layer(limiter.layer().zones_of(|_: &Request<()>| [Zone::DATA]))
        .service(gateway);
    while start.elapsed().as_secs() < seconds {
        let reads = (0..12).map(|_| service.clone().oneshot(Request::get(STORE).body(()).unwrap()));
        futures_util::future::join_all(reads).await;
        // Long runs need not be busy all the time.
        sleep(if start.elapsed().as_secs() < 20 { SECOND / 20 } else { 2 * SECOND }).await;
    }
    run
}

#[tokio::test(start_paused = true)]
async fn a_route_that_is_refused_three_times_moves_to_the_stricter_zone_for_half_an_hour() {
    let run = run(zones().move_refused_routes(Zone::DATA, Zone::GENERAL), 31 * 60).await;
    let moves = run.moves();
    let endpoint = Some(Endpoint::SymbolStore);
    let (first, moved) = &moves[0];
    assert_eq!(*moved, Event::RouteMoved { endpoint, from: Zone::DATA, to: Zone::GENERAL });
    assert!(*first < 60, "{moves:?}");
    assert!(run.refused_between(0, first + 1) >= 3);
    assert_eq!(run.refused_between(first + 3, first + 1_800), 0, "no 429 as long as it is there");
    let (returned, event) = &moves[1];
    assert_eq!(*event, Event::RouteReturned { endpoint, zone: Zone::DATA });
    assert!((first + 1_800..first + 1_803).contains(returned), "{moves:?}");
}

#[tokio::test(start_paused = true)]
async fn no_route_is_moved_unless_it_is_asked_for() {
    let run = run(zones(), 15).await;
    assert_eq!(run.moves(), []);
    assert!(run.refused_between(0, 15) >= 3, "and so the 429s go on");
}

#[tokio::test(start_paused = true)]
async fn other_routes_of_the_zone_stay_where_they_are() {
    let limiter = zones().move_refused_routes(Zone::DATA, Zone::GENERAL).build().unwrap();
    let answer = |request: &Request<()>| match request.uri().path().ends_with("other") {
        true => StatusCode::OK,
        false => StatusCode::TOO_MANY_REQUESTS,
    };
    let mut service = ServiceBuilder::new()
        .layer(limiter.layer().zones_of(|_: &Request<()>| [Zone::DATA]))
        .service(service_fn(move |request: Request<()>| {
            let response = Response::builder().status(answer(&request)).body(());
            async move { Ok::<_, BoxError>(response.unwrap()) }
        }));
    let mut send = async |uri: &str| {
        service.ready().await.unwrap().call(Request::get(uri).body(()).unwrap()).await.unwrap();
    };
    for _ in 0..3 {
        send(STORE).await;
    }
    send(OTHER).await;
    let used = |limiter: &ZoneLimiter| -> Vec<_> {
        limiter.snapshot().zones.iter().map(|zone| (zone.zone, zone.windows[0].used)).collect()
    };
    assert!(!used(&limiter).iter().any(|(zone, _)| *zone == Zone::GENERAL), "{:?}", used(&limiter));
    sleep(Duration::from_secs(61)).await;
    send(STORE).await;
    assert_eq!(used(&limiter).iter().filter(|(zone, used)| *zone == Zone::GENERAL && *used == 1).count(), 1);
}
