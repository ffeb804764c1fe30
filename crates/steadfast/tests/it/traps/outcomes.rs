//! Every row of the outcome table: what happens to a read and to an order whose first send ends in this
//! way.

use std::sync::{Arc, Mutex};

use http::{Request, Response};
use http_body_util::Full;
use steadfast::{
    BoxError, Stack,
    auth::{ApiKey, TokenSource},
    call::{Failure, Fate},
    retry::{Jitter, RetryPolicy},
    spec::msg,
};
use steadfast_verify::noon;
use tower::{ServiceExt, service_fn, util::BoxCloneSyncService};

use super::{
    Answer, Form, base, found, list,
    planted::{naive_retry, twice},
};
use crate::order::{Boxed, of_any_body, whole};

const EMPTY: &str = r#"{"s":"no-data","msg":"no-data"}"#;
const PLACED: &str = r#"{"s":"ok","d":{"orderId":"7","msg":"placed"}}"#;

/// How the first send of a request ends.
#[derive(Clone, Debug)]
enum Signal {
    Fails(Fate),
    Refused,
    /// Status and text of an error envelope.
    Says(u16, &'static str),
    /// Status and raw body.
    Body(u16, &'static str),
}

/// The reaction to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Done {
    /// How often a read is sent.
    reads: usize,
    /// How often an order is sent.
    orders: usize,
    /// True if the list is read after the order was sent.
    verified: bool,
}

const RETURNED: Done = Done { reads: 1, orders: 1, verified: false };
const REPEATED: Done = Done { reads: 2, orders: 2, verified: false };
/// The read is repeated. The order is looked for, not found, and sent again.
const RESENT: Done = Done { reads: 2, orders: 2, verified: true };
/// The order is looked for, and never sent again.
const LOOKED_FOR: Done = Done { reads: 1, orders: 1, verified: true };
/// The read is repeated. The order is looked for and never sent again, because it may still arrive at an
/// unknown time.
const READ_AGAIN: Done = Done { reads: 2, orders: 1, verified: true };

fn table() -> Vec<(&'static str, Signal, Done)> {
    use Signal::{Body, Fails, Refused, Says};
    let ended = Some(tokio::time::Instant::now().into_std());
    let mut table = vec![
        ("never left", Fails(Fate::NeverLeft), REPEATED),
        ("refused by a layer of our own", Refused, RETURNED),
        ("429", Says(429, msg::TOO_MANY_REQUESTS), RESENT),
        ("429 of an edge", Body(429, "<html>"), READ_AGAIN),
        // Returned after one list that does not show the order.
        ("401 of a token that nobody renews", Says(401, msg::UNAUTHORIZED), LOOKED_FOR),
        ("400 bad request", Says(400, msg::BAD_REQUEST), RETURNED),
        ("400 input validation", Says(400, msg::INPUT_VALIDATION), RETURNED),
        ("400 internal error", Says(400, msg::INTERNAL_ERROR), RESENT),
        ("400 with another text", Says(400, "Bad request "), LOOKED_FOR),
        ("400 unreadable", Body(400, "<html>"), LOOKED_FOR),
        ("answer lost with its connection", Fails(Fate::Lost { ended }), RESENT),
        ("answer lost", Fails(Fate::Lost { ended: None }), READ_AGAIN),
        ("answer cut", Fails(Fate::Answered), READ_AGAIN),
        ("200 empty", Body(200, ""), LOOKED_FOR),
        ("200 html", Body(200, "<html>"), LOOKED_FOR),
        ("200 cut", Body(200, r#"{"s":"ok","d":{"orderId":"7""#), LOOKED_FOR),
        ("200 with an error", Says(200, "x"), LOOKED_FOR),
        ("200 without an id", Body(200, r#"{"s":"ok","d":{"orderId":"","msg":"placed"}}"#), LOOKED_FOR),
        ("200 placed", Body(200, PLACED), RETURNED),
    ];
    table.extend(
        [403, 404, 405, 415].map(|status| ("page for a refusal", Body(status, "<html>"), LOOKED_FOR)),
    );
    table.extend([
        ("403", Says(403, msg::FORBIDDEN), RETURNED),
        ("404", Says(404, msg::NOT_FOUND), RETURNED),
        ("405", Says(405, msg::METHOD_NOT_ALLOWED), RETURNED),
        ("415", Says(415, "x"), RETURNED),
    ]);
    table.extend([302, 408, 409, 425, 418].map(|status| ("another status", Says(status, "x"), LOOKED_FOR)));
    table.extend(
        [500, 502, 503, 504, 599].map(|status| ("5xx of somebody else", Says(status, "x"), READ_AGAIN)),
    );
    table.extend([
        ("500", Says(500, msg::INTERNAL_SERVER_ERROR), RESENT),
        ("502", Says(502, msg::BAD_GATEWAY), RESENT),
        ("503", Says(503, msg::SERVICE_UNAVAILABLE), RESENT),
        ("504", Says(504, msg::GATEWAY_TIMED_OUT), RESENT),
    ]);
    table
}

/// The paths that arrived at a gateway whose first answer to `path` is `signal`, and whose other answers
/// are good.
type Arrived = Arc<Mutex<Vec<String>>>;

fn gateway(path: &'static str, signal: Signal) -> (Boxed, Arrived) {
    let arrived = Arrived::default();
    let seen = arrived.clone();
    let gateway = service_fn(move |request: Request<Form>| {
        let at = request.uri().path().to_owned();
        let is_first = at.ends_with(path) && !seen.lock().unwrap().contains(&at);
        seen.lock().unwrap().push(at.clone());
        let signal = if is_first { signal.clone() } else { good(&at) };
        async move { ended(signal) }
    });
    (BoxCloneSyncService::new(gateway), arrived)
}

fn good(path: &str) -> Signal {
    Signal::Body(200, if path.ends_with("place-order") { PLACED } else { EMPTY })
}

fn ended(signal: Signal) -> Result<Answer, BoxError> {
    let (status, body) = match signal {
        Signal::Fails(fate) => return Err(Failure::new(fate, "planned").into()),
        Signal::Refused => return Err(Failure::refused("planned").into()),
        Signal::Says(status, text) => (status, format!(r#"{{"s":"error","msg":"{text}"}}"#)),
        Signal::Body(status, body) => (status, body.to_owned()),
    };
    Ok(Response::builder().status(status).body(Full::from(body))?)
}

/// Returns a stack's reaction to a signal.
async fn done(signal: &Signal, stack: fn(Boxed) -> Boxed) -> Done {
    let (transport, arrived) = gateway("orders", signal.clone());
    let _ = stack(transport).oneshot(list()).await;
    let reads = arrived.lock().unwrap().len();

    let (transport, arrived) = gateway("place-order", signal.clone());
    let form = "symId=EQT_INFY_EQ_NSE&qty=10&side=buy&type=limit&limitPrice=1&product=delivery&validity=day";
    let order = Request::post("http://localhost/v2/api/oms/place-order").body(Form::from(form)).unwrap();
    let _ = stack(transport).oneshot(order).await;
    let arrived = arrived.lock().unwrap();
    let is_order = |path: &String| path.ends_with("place-order");
    let orders = arrived.iter().filter(|path| is_order(path)).count();
    let verified = arrived.iter().skip_while(|path| !is_order(path)).any(|path| path.ends_with("orders"));
    Done { reads, orders, verified }
}

async fn the_row_holds(name: &str, signal: Signal, expected: Done, stack: fn(Boxed) -> Boxed) {
    assert_eq!(done(&signal, stack).await, expected, "{name}: {signal:?}");
}

/// Builds all layers. The order's call ends within its deadline.
fn all_layers(transport: Boxed) -> Boxed {
    let tokens = TokenSource::fixed(ApiKey::new("key").unwrap(), "token").unwrap();
    let retry = RetryPolicy::default().jitter(Jitter::NONE);
    whole(Stack::new(base(), tokens).retry(retry).tracker(noon::tracker()).service(of_any_body(transport)))
}

#[tokio::test(start_paused = true)]
async fn every_row_of_the_outcome_table_holds() {
    for (name, signal, expected) in table() {
        the_row_holds(name, signal, expected, all_layers).await;
    }
}

#[tokio::test(start_paused = true)]
async fn every_row_of_the_outcome_table_is_missed_by_a_stack_that_does_not_look() {
    // One repeats everything unsuccessful, one repeats nothing, one sends everything twice.
    let planted: [fn(Boxed) -> Boxed; 3] = [naive_retry, |transport| transport, twice];
    let mut missed = [0; 3];
    for (name, signal, expected) in table() {
        let mut misses = 0;
        for (stack, missed) in planted.into_iter().zip(&mut missed) {
            if done(&signal, stack).await != expected {
                found(the_row_holds(name, signal.clone(), expected, stack)).await;
                *missed += 1;
                misses += 1;
            }
        }
        assert!(misses > 0, "{name}: {signal:?} tells nobody from anybody");
    }
    assert!(missed.iter().all(|missed| *missed > 0), "{missed:?}");
}
