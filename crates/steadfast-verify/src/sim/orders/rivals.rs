use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full};
use steadfast_call::BoxError;
use steadfast_sandbox::Sandbox;
use steadfast_spec::{
    Code, Endpoint, FieldNames, OrderRecord, OrderRequest, Paths, PlacedOrder, parse_order_list,
};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tower::ServiceExt;

use crate::sim::{
    orders::{
        trader::{Told, Trader},
        workload::Wanted,
    },
    wire::{INTENT, Wire},
};

/// How a client treats an answer that proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Sends again after 1, 2, 4 and 8 seconds, like a general retry layer.
    Naive,
    /// Checks the order list once, a second later, and sends again if the order is not there: the simplest form of "the
    /// order list must be checked before retrying" (§4.4).
    ChecksOnce,
}

/// A client without this project, over the same kind of wire: ten orders and ten other requests a second.
pub(crate) struct Rival {
    policy: Policy,
    wire: Wire,
    bearer: String,
    place: Uri,
    list: Uri,
    orders: Pace,
    rest: Pace,
    /// The order ids that it has returned; they belong to no other caller.
    known: Mutex<BTreeSet<String>>,
}

/// How the answer to an order looks to a client that reads only the status.
enum Look {
    Placed(String),
    /// 429.
    Later,
    /// Any other 4xx.
    Refused,
    /// 5xx, no answer, or one that cannot be read.
    Failed,
}

const BACKOFF: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4), Duration::from_secs(8)];
const PATIENCE: Duration = Duration::from_secs(30);
const BEFORE_THE_CHECK: Duration = Duration::from_secs(1);

impl Rival {
    pub(crate) fn new(policy: Policy, sandbox: &Sandbox, wire: &Wire) -> Result<Self, BoxError> {
        let facts = sandbox.credentials();
        let paths = Paths::public();
        let path = |endpoint| format!("{}{}", facts.base_url, paths.of(endpoint).unwrap_or_default());
        Ok(Self {
            policy,
            wire: wire.clone(),
            bearer: format!("Bearer {}:{}", facts.api_key, facts.access_token),
            place: path(Endpoint::PlaceOrder).parse()?,
            list: path(Endpoint::Orders).parse()?,
            orders: Pace::default(),
            rest: Pace::default(),
            known: Mutex::default(),
        })
    }

    async fn send(&self, order: &OrderRequest, intent: &str) -> Look {
        self.orders.turn().await;
        let request = Request::post(self.place.clone())
            .header(header::AUTHORIZATION, &self.bearer)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(INTENT, intent)
            .body(Full::from(order.form().encode()));
        match self.exchange(request).await {
            Some((StatusCode::OK, body)) => match PlacedOrder::parse(&body) {
                Ok(placed) => Look::Placed(placed.order_id),
                Err(_) => Look::Failed,
            },
            Some((StatusCode::TOO_MANY_REQUESTS, _)) => Look::Later,
            Some((status, _)) if status.is_client_error() => Look::Refused,
            _ => Look::Failed,
        }
    }

    async fn list(&self) -> Option<Vec<OrderRecord>> {
        self.rest.turn().await;
        let request = Request::builder()
            .method(Method::GET)
            .uri(self.list.clone())
            .header(header::AUTHORIZATION, &self.bearer)
            .body(Full::default());
        match self.exchange(request).await {
            Some((StatusCode::OK, body)) => parse_order_list(&body, &FieldNames::default()).ok(),
            _ => None,
        }
    }

    async fn exchange(&self, request: http::Result<Request<Full<Bytes>>>) -> Option<(StatusCode, Bytes)> {
        let request = request.ok()?;
        let answer = async {
            let (head, body) = self.wire.clone().oneshot(request).await.ok()?.into_parts();
            Some((head.status, body.collect().await.ok()?.to_bytes()))
        };
        timeout(PATIENCE, answer).await.ok().flatten()
    }

    /// Searches for the order. A failed read is repeated.
    async fn check(&self, order: &OrderRequest) -> Option<String> {
        sleep(BEFORE_THE_CHECK).await;
        let mut pauses = BACKOFF.into_iter();
        let records = loop {
            if let Some(records) = self.list().await {
                break records;
            }
            sleep(pauses.next()?).await;
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found =
            records.into_iter().find(|record| is_like(record, order) && !known.contains(&record.order_id))?;
        known.insert(found.order_id.clone());
        Some(found.order_id)
    }

    fn placed(&self, order_id: String) -> Told {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(order_id.clone());
        Told::Placed(order_id)
    }
}

impl Trader for Rival {
    async fn place(&self, wanted: &Wanted) -> Told {
        let Ok(order) = wanted.shape.order() else { return Told::Nonsense("no order".to_owned()) };
        let intent = wanted.intent();
        let mut pauses = BACKOFF.into_iter();
        loop {
            let look = self.send(&order, &intent).await;
            match (look, self.policy) {
                (Look::Placed(order_id), _) => return self.placed(order_id),
                // To a client that reads only the status, a 400 is an error that cannot be repeated.
                (Look::Refused, Policy::Naive) => return Told::Unresolved("refused"),
                (Look::Refused | Look::Failed, Policy::ChecksOnce) => {
                    if let Some(order_id) = self.check(&order).await {
                        return Told::Placed(order_id);
                    }
                    if pauses.next().is_none() {
                        return Told::Unresolved("all sends failed");
                    }
                }
                (Look::Later, _) | (Look::Failed, Policy::Naive) => {
                    let Some(pause) = pauses.next() else { return Told::Unresolved("all sends failed") };
                    sleep(pause).await;
                }
            }
        }
    }

    /// A rival's cancels place nothing twice, so they are not simulated.
    async fn cancel(&self, _: &str) {}
}

fn is_like(record: &OrderRecord, order: &OrderRequest) -> bool {
    record.sym_id.as_deref() == Some(order.sym_id().as_str())
        && record.qty == Some(order.qty())
        && record.side == Some(Code::Known(order.side()))
}

/// Ten turns a second, evenly.
#[derive(Debug, Default)]
struct Pace(Mutex<Option<Instant>>);

impl Pace {
    async fn turn(&self) {
        let turn = {
            let mut next = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let turn = next.map_or_else(Instant::now, |next| next.max(Instant::now()));
            *next = Some(turn + Duration::from_millis(100));
            turn
        };
        sleep_until(turn).await;
    }
}
