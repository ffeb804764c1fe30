//! Tests the two layers over a small gateway: callers that wait or leave, the poller, and the rest of a dropped call.

use std::{
    pin::pin,
    sync::{Mutex, atomic::AtomicUsize},
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use shuttle::rand::{Rng, thread_rng};
use steadfast_call::{BoxError, ext::Sent};
use tower_layer::Layer;
use tower_service::Service;

use super::*;
use crate::{
    guard::{guarded_body::GuardedBody, layer::SendGuardLayer},
    place::layer::DedupLayer,
    protocol::order_event::OrderEvent,
    settings::policy::ResendPolicy,
    tracker::order_tracker::OrderTracker,
};

/// The gateway and the requests it got.
#[derive(Default)]
struct Book {
    /// Numbers of the orders that it applied.
    orders: Mutex<Vec<usize>>,
    posts: AtomicUsize,
    reading: AtomicBool,
}

#[derive(Clone, Default)]
struct Gateway(Arc<Book>);

type Answer = Pin<Box<dyn Future<Output = Result<Response<Full<Bytes>>, BoxError>> + Send>>;

impl Service<Request<GuardedBody<Full<Bytes>>>> for Gateway {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<GuardedBody<Full<Bytes>>>) -> Answer {
        let book = self.0.clone();
        Box::pin(async move {
            match *request.method() {
                Method::POST => book.place(request.into_body()).await,
                _ => Ok(book.list().await),
            }
        })
    }
}

impl Book {
    async fn place(&self, body: GuardedBody<Full<Bytes>>) -> Result<Response<Full<Bytes>>, BoxError> {
        let queue = thread_rng().gen_range(0..2);
        pause(queue).await;
        body.collect().await?;
        let number = self.posts.fetch_add(1, SeqCst);
        pause(1).await;
        let (applied, acknowledged) = (thread_rng().gen_bool(0.7), thread_rng().gen_bool(0.3));
        if !applied {
            return Ok(answer(
                StatusCode::GATEWAY_TIMEOUT,
                Outcome::Unknown { resend: Resend::AfterAbsence },
            ));
        }
        self.orders.lock().unwrap().push(number);
        pause(1).await;
        Ok(if acknowledged {
            answer(StatusCode::OK, Outcome::Accepted { order_id: Some(format!("o{number}").into()) })
        } else {
            answer(StatusCode::GATEWAY_TIMEOUT, Outcome::Unknown { resend: Resend::AfterAbsence })
        })
    }

    async fn list(&self) -> Response<Full<Bytes>> {
        // Dropped where the poller gives a read up.
        let _reading = Reading::of(&self.reading);
        pause(1).await;
        let record = |number: &usize| {
            format!(
                r#"{{"orderId":"o{number}","symId":"S","qty":1,"side":"buy","type":"limit","limitPrice":5}}"#
            )
        };
        let records: Vec<_> = self.orders.lock().unwrap().iter().map(record).collect();
        pause(1).await;
        let mut response = answer(StatusCode::OK, Outcome::Accepted { order_id: None });
        *response.body_mut() = Full::from(match records.is_empty() {
            true => r#"{"s":"no-data","msg":"no-data"}"#.to_owned(),
            false => format!(r#"{{"s":"ok","d":[{}]}}"#, records.join(",")),
        });
        response
    }
}

struct Reading<'a>(&'a AtomicBool);

impl<'a> Reading<'a> {
    fn of(reading: &'a AtomicBool) -> Self {
        assert!(!reading.swap(true, SeqCst), "two pollers");
        Self(reading)
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.0.store(false, SeqCst);
    }
}

async fn pause(turns: u32) {
    for _ in 0..turns {
        future::yield_now().await;
    }
}

fn answer(status: StatusCode, outcome: Outcome) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(Bytes::from_static(b"{}")));
    *response.status_mut() = status;
    Sent::of_mut(response.extensions_mut()).set_outcome(outcome);
    response
}

/// Makes calls with one order each; a call with `patience` for so many polls is dropped after them.
fn day(settings: Settings, patience: &'static [fn() -> u32]) {
    let (gateway, tracker) = (Gateway::default(), OrderTracker::new(settings.clone()));
    let service = DedupLayer::new(&tracker).layer(SendGuardLayer::new(&tracker).layer(gateway.clone()));
    let (mut events, done) = (tracker.events(), Arc::new(AtomicUsize::new(0)));
    let call = |patience: &fn() -> u32| {
        let (mut service, done, patience) = (service.clone(), Arc::clone(&done), patience());
        thread::spawn(move || {
            let request = Request::post("http://x/api/oms/place-order").body(Full::from(FORM)).unwrap();
            let told = future::block_on(async {
                let mut call = pin!(service.call(request));
                let mut looks = 0;
                poll_fn(|cx| {
                    looks += 1;
                    if looks > patience {
                        return Poll::Ready(None);
                    }
                    call.as_mut().poll(cx).map(Some)
                })
                .await
            });
            // The rest of the call was dropped above.
            done.fetch_add(1, SeqCst);
            told.and_then(Result::ok).filter(|response| response.status() == StatusCode::OK).map(order_id)
        })
    };
    let calls: Vec<_> = patience.iter().map(call).collect();
    let ends = {
        let (tracker, done) = (tracker.clone(), Arc::clone(&done));
        thread::spawn(move || {
            while done.load(SeqCst) < patience.len() {
                thread::yield_now();
            }
            future::block_on(tracker.shutdown());
            done.fetch_add(1, SeqCst);
        })
    };
    // Time passes now and then: most steps that are possible at once are taken first.
    while done.load(SeqCst) <= patience.len() {
        if thread_rng().gen_bool(0.1) {
            pass_time(Duration::MAX);
        }
        thread::yield_now();
    }
    ends.join().unwrap();
    let mut told: Vec<_> = calls.into_iter().filter_map(|call| call.join().unwrap()).collect();
    assert_eq!(tracker.in_doubt(), 0, "what nobody waits for is decided, too");
    let (orders, posts) = (gateway.0.orders.lock().unwrap().len(), gateway.0.posts.load(SeqCst));
    assert!(orders <= patience.len(), "I3: {orders} orders for {} calls", patience.len());
    if settings.max_resends() == 0 {
        assert!(posts <= patience.len(), "I14: sent again");
    }
    let count = told.len();
    told.sort();
    told.dedup();
    assert_eq!(told.len(), count, "I2: one order was told to two callers");
    let mut recovered = Vec::new();
    while let Ok(event) = events.try_recv() {
        if let OrderEvent::Recovered { intent, .. } | OrderEvent::Unresolved { intent, .. } = event {
            assert!(!recovered.contains(&intent), "two verdicts for one order");
            recovered.push(intent);
        }
    }
}

/// Returns the order's number from any kind of answer.
fn order_id<B>(response: Response<B>) -> String {
    let resolution = response.extensions().get::<crate::protocol::resolution::Resolution>();
    match (resolution, Outcome::of(response.extensions())) {
        (Some(crate::protocol::resolution::Resolution::Recovered { order_id, .. }), _) => order_id.clone(),
        (_, Some(Outcome::Accepted { order_id: Some(order_id) })) => order_id.to_string(),
        other => panic!("no order in {other:?}"),
    }
}

fn patient() -> u32 {
    u32::MAX
}

fn impatient() -> u32 {
    thread_rng().gen_range(1..20)
}

/// A halt at any moment: nothing leaves after it has returned.
#[test]
fn nothing_is_let_go_after_a_halt_has_returned() {
    explore(SCHEDULES, || {
        let (gateway, tracker) = (Gateway::default(), OrderTracker::new(Settings::default().traced()));
        let service = DedupLayer::new(&tracker).layer(SendGuardLayer::new(&tracker).layer(gateway));
        let sent = |tracker: &OrderTracker| {
            let steps = tracker.trace(None);
            steps.iter().filter(|step| matches!(step.event, Event::Sent(_))).count()
        };
        let done = Arc::new(AtomicUsize::new(0));
        let call = |_| {
            let (mut service, done) = (service.clone(), Arc::clone(&done));
            thread::spawn(move || {
                let request = Request::post("http://x/api/oms/place-order").body(Full::from(FORM)).unwrap();
                drop(future::block_on(service.call(request)));
                done.fetch_add(1, SeqCst);
            })
        };
        let calls: Vec<_> = (0..2).map(call).collect();
        let halt = {
            let tracker = tracker.clone();
            thread::spawn(move || {
                tracker.halt();
                sent(&tracker)
            })
        };
        while done.load(SeqCst) < 2 {
            if thread_rng().gen_bool(0.1) {
                pass_time(Duration::MAX);
            }
            thread::yield_now();
        }
        calls.into_iter().for_each(|call| call.join().unwrap());
        assert_eq!(halt.join().unwrap(), sent(&tracker));
    });
}

#[test]
fn every_call_is_answered_and_no_order_is_placed_twice() {
    explore(SCHEDULES, || day(Settings::default(), &[patient, patient]));
}

#[test]
fn what_a_dropped_call_has_sent_is_looked_for_and_never_sent_again() {
    let never = || Settings::default().resend(ResendPolicy::Never);
    explore(SCHEDULES, move || day(never(), &[impatient, impatient, patient]));
}

#[test]
fn callers_that_leave_take_nobody_elses_verdict_with_them() {
    explore(SCHEDULES, || day(Settings::default(), &[impatient, patient, impatient]));
}
