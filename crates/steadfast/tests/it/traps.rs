//! Mistakes that other stacks have made, one test each: the correct service passes the test's assertion, and a service
//! with the planted defect fails it.

mod outcomes;
mod planted;
mod transport;

use std::{
    future::Future,
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{Request, Response};
use http_body_util::Full;
use steadfast::{
    BaseUrl, BoxError, RequestBody, Stack,
    auth::{ApiKey, AuthHeaderLayer, TokenSource},
    call::{Call, Routes},
    limit::{Zone, ZoneLimiter},
    retry::{AttemptTimeoutLayer, Jitter, RetryPolicy},
    route::RouteLayer,
};
use steadfast_sandbox::Sandbox;
use steadfast_verify::probes::{Strict, Uses};
use tokio::time::{Instant, sleep, timeout};
use tower::{
    Layer as _, Service as _, ServiceExt, limit::ConcurrencyLimit, service_fn, util::BoxCloneSyncService,
};

use self::planted::{CloneInCall, Hoarder, naive_retry, with_the_first_header};
use crate::{
    order::{Boxed, whole},
    renewal::stack_that_logs_in,
    world::SECOND,
};

type Form = Full<Bytes>;
type Answer = Response<Form>;

/// Runs an assertion on a service with a planted defect. It must panic; returns the panic's message.
async fn found(assertion: impl Future<Output = ()>) -> String {
    let panic =
        AssertUnwindSafe(assertion).catch_unwind().await.expect_err("the planted defect was not found");
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}

fn base() -> BaseUrl {
    "http://localhost/v2".parse().unwrap()
}

fn list() -> Request<Form> {
    Request::get("http://localhost/v2/api/oms/orders").body(Full::default()).unwrap()
}

fn stack() -> Stack {
    let tokens = TokenSource::fixed(ApiKey::new("key").unwrap(), "token").unwrap();
    Stack::new(base(), tokens).retry(RetryPolicy::default().jitter(Jitter::NONE))
}

/// Returns a transport that answers every request with this status after so many seconds, and its request count.
fn answering<A: Send + 'static>(
    status: u16,
    seconds: u32,
) -> (BoxCloneSyncService<Request<A>, Answer, BoxError>, Arc<AtomicUsize>) {
    let sends = Arc::<AtomicUsize>::default();
    let count = sends.clone();
    let transport = service_fn(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        async move {
            sleep(SECOND * seconds).await;
            let body = Full::from(r#"{"s":"no-data","msg":"no-data"}"#);
            Ok(Response::builder().status(status).body(body)?)
        }
    });
    (BoxCloneSyncService::new(transport), sends)
}

/// Returns limits of which one read of the list takes everything, for so many seconds.
fn one_in(seconds: u32) -> ZoneLimiter {
    let one = |builder: steadfast::limit::Builder| {
        builder.adjust(Zone::GENERAL, |quota| quota.clear_limits().limit(1, SECOND * seconds))
    };
    one(ZoneLimiter::builder().preset()).build().unwrap()
}

async fn what_was_polled_ready_is_called(mut service: Boxed, uses: Arc<Uses>) {
    for _ in 0..2 {
        service.ready().await.unwrap().call(list()).await.unwrap();
    }
    assert_eq!((uses.calls(), uses.running()), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn a_clone_is_never_called_in_place_of_the_service_that_was_polled_ready() {
    let strict = Strict::new(answering::<RequestBody>(200, 0).0);
    let uses = strict.uses();
    what_was_polled_ready_is_called(whole(stack().service(strict)), uses).await;

    let strict = Strict::new(answering::<Form>(200, 0).0);
    let uses = strict.uses();
    let planted = BoxCloneSyncService::new(CloneInCall(strict));
    assert!(
        found(what_was_polled_ready_is_called(planted, uses)).await.contains("without being polled ready")
    );
}

/// Checks that a refused request keeps no slot; `refusing` and `other` share one slot.
async fn what_is_refused_keeps_no_slot(mut refusing: Boxed, other: Boxed) {
    refusing.ready().await.unwrap().call(list()).await.unwrap_err();
    let other = timeout(60 * SECOND, other.oneshot(list())).await;
    other.expect("the slot of a request that was refused is still taken").unwrap();
    drop(refusing);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_refused_keeps_no_service_ready() {
    let slot = || BoxCloneSyncService::new(ConcurrencyLimit::new(answering::<Form>(200, 0).0, 1));
    let no_token = AuthHeaderLayer::new(TokenSource::not_configured(ApiKey::new("key").unwrap()));
    let elsewhere = RouteLayer::new("http://elsewhere/v2".parse().unwrap(), Routes::default());
    let slots = [slot(), slot()];
    let refusing = [whole(no_token.layer(slots[0].clone())), whole(elsewhere.layer(slots[1].clone()))];
    for (refusing, slot) in refusing.into_iter().zip(slots) {
        what_is_refused_keeps_no_slot(refusing, slot).await;
    }

    let slot = slot();
    let planted = BoxCloneSyncService::new(Hoarder(slot.clone()));
    assert!(found(what_is_refused_keeps_no_slot(planted, slot)).await.contains("still taken"));
}

async fn readiness_takes_no_permit(service: Boxed) {
    let mut ready = vec![service.clone(); 100];
    for service in &mut ready {
        timeout(SECOND, service.ready()).await.expect("readiness has taken a permit").unwrap();
    }
    let start = Instant::now();
    service.oneshot(list()).await.unwrap();
    assert!(start.elapsed() < SECOND, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_ready_and_never_called_leaks_no_permit() {
    let (transport, _) = answering::<RequestBody>(200, 0);
    readiness_takes_no_permit(whole(stack().service(transport))).await;

    let planted = ConcurrencyLimit::new(answering::<Form>(200, 0).0, 10);
    let found = found(readiness_takes_no_permit(BoxCloneSyncService::new(planted))).await;
    assert!(found.contains("readiness has taken a permit"), "{found}");
}

async fn every_send_takes_a_permit(service: Boxed, limiter: ZoneLimiter, sends: Arc<AtomicUsize>) {
    service.oneshot(list()).await.unwrap();
    let zones = limiter.snapshot().zones;
    let general = zones.iter().find(|zone| zone.zone == Zone::GENERAL).unwrap();
    let minute = general.windows.last().unwrap();
    assert_eq!((minute.used, sends.load(Ordering::SeqCst)), (5, 5), "permits and sends");
}

#[tokio::test(start_paused = true)]
async fn a_repeat_takes_a_permit_of_its_own() {
    let (limiter, (transport, sends)) = (ZoneLimiter::preset(), answering::<RequestBody>(500, 0));
    let service = whole(stack().limiter(limiter.clone()).service(transport));
    every_send_takes_a_permit(service, limiter, sends).await;

    let (limiter, (transport, sends)) = (ZoneLimiter::preset(), answering::<Form>(500, 0));
    let planted = whole(limiter.layer().layer(naive_retry(transport)));
    assert!(found(every_send_takes_a_permit(planted, limiter, sends)).await.contains("permits and sends"));
}

async fn a_send_after_a_renewal_has_the_new_token(service: Boxed, sandbox: Sandbox) {
    let list = || {
        let base = sandbox.credentials().base_url;
        Request::get(format!("{base}/api/oms/orders")).body(Full::default()).unwrap()
    };
    assert_eq!(service.clone().oneshot(list()).await.unwrap().status(), 200);
    // Long enough for the next login to have another code.
    sleep(40 * SECOND).await;
    sandbox.revoke(None);
    assert_eq!(
        service.oneshot(list()).await.unwrap().status(),
        200,
        "the header of the first send was sent again"
    );
}

#[tokio::test(start_paused = true)]
async fn a_repeat_never_has_the_header_of_the_first_send() {
    let (sandbox, stack) = stack_that_logs_in("");
    let service = whole(stack.service(sandbox.gateway()));
    a_send_after_a_renewal_has_the_new_token(service, sandbox).await;

    let (sandbox, stack) = stack_that_logs_in("");
    let planted = whole(stack.service(with_the_first_header(sandbox.gateway())));
    let found = found(a_send_after_a_renewal_has_the_new_token(planted, sandbox)).await;
    assert!(found.contains("the header of the first send"), "{found}");
}

async fn waiting_for_a_permit_is_not_slowness(service: Boxed) {
    for call in ["the first", "the one that waits"] {
        let answer = service.clone().oneshot(list()).await;
        assert!(answer.is_ok_and(|answer| answer.status() == 200), "{call} was given up");
    }
}

#[tokio::test(start_paused = true)]
async fn time_in_the_queue_is_not_counted_as_the_services() {
    let sends_take_4_s = || stack().limiter(one_in(20)).attempt_timeout(AttemptTimeoutLayer::new(5 * SECOND));
    let service = whole(sends_take_4_s().service(answering::<RequestBody>(200, 4).0));
    waiting_for_a_permit_is_not_slowness(service).await;

    let waiting = whole(one_in(20).layer().layer(answering::<Form>(200, 4).0));
    let planted = service_fn(move |request| {
        let waiting = waiting.clone();
        async move { timeout(5 * SECOND, waiting.oneshot(request)).await? }
    });
    let found = found(waiting_for_a_permit_is_not_slowness(BoxCloneSyncService::new(planted))).await;
    assert!(found.contains("the one that waits"), "{found}");
}

async fn a_refusal_of_our_own_comes_at_once(service: Boxed) {
    service.clone().oneshot(list()).await.unwrap();
    let mut late = list();
    let start = Instant::now();
    Call::of_mut(late.extensions_mut()).set_deadline((start + 10 * SECOND).into_std());
    service.oneshot(late).await.unwrap_err();
    assert!(start.elapsed() < SECOND, "refused after {:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_local_refusal_is_not_repeated() {
    let service = whole(stack().limiter(one_in(60)).service(answering::<RequestBody>(200, 0).0));
    a_refusal_of_our_own_comes_at_once(service).await;

    let waiting = whole(one_in(60).layer().layer(answering::<Form>(200, 0).0));
    let found = found(a_refusal_of_our_own_comes_at_once(naive_retry(waiting))).await;
    assert!(found.starts_with("refused after 4s"), "{found}");
}

const SECRET: &str = "hunter2-canary";

fn no_form_is_shown(shown: &str) {
    assert!(!shown.contains(SECRET), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_shows_no_form() {
    let form = || {
        Request::post("http://localhost/v2/api/new").body(Form::from(format!("password={SECRET}"))).unwrap()
    };
    let (shows, shown) = tokio::sync::mpsc::unbounded_channel();
    let transport = service_fn(move |request: Request<RequestBody>| {
        shows.send(format!("{request:?} {request:#?}")).unwrap();
        async { Ok::<_, BoxError>(Response::new(Form::default())) }
    });
    stack().service(transport).oneshot(form()).await.unwrap();
    let mut shown = shown;
    no_form_is_shown(&shown.recv().await.unwrap());
    let stamped = form().map(steadfast::StampedBody::new);
    no_form_is_shown(&format!("{stamped:?}"));

    assert!(found(async { no_form_is_shown(&format!("{:?}", form())) }).await.contains("password"));
}
