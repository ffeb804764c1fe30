//! The way of one admitted request through the stack.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Collected, Full, Limited};
use steadfast::{
    BaseUrl, Client, Error, ErrorKind, Outcome,
    call::{Call, causes, find_cause, one_line},
    dedup::{OrderRefused, Unresolved, Verdict},
    spec::{Endpoint, Form, OrderRequest, PlacedOrder},
};
use tokio::{sync::Semaphore, time::Instant};

use crate::{
    answer::{AnswerBody, Own, clean},
    front::Admitted,
    orders::{Conflict, Entry, Orders},
    screen::Talk,
};

/// The most requests at once, cancels apart.
const IN_FLIGHT: usize = 512;
/// The longest answer to an order.
const ORDER_ANSWER: usize = 64 * 1024;

/// What all connections share.
pub(crate) struct Forward {
    pub(crate) client: Client,
    pub(crate) base: BaseUrl,
    pub(crate) orders: Arc<Orders>,
    in_flight: Semaphore,
}

impl Forward {
    pub(crate) fn new(client: Client, base: BaseUrl, prefix: String) -> Self {
        Self { client, base, orders: Orders::new(prefix), in_flight: Semaphore::new(IN_FLIGHT) }
    }

    /// Passes a request on, and returns the answer for its caller.
    pub(crate) async fn answer(
        &self,
        admitted: Admitted,
        body: Bytes,
        talk: Arc<Talk<Admitted>>,
    ) -> Response<AnswerBody> {
        let is_cancel = admitted.method == Method::DELETE;
        let _place = match self.in_flight.try_acquire() {
            Ok(place) => Some(place),
            // A cancel must get out.
            Err(_) if is_cancel => None,
            Err(_) => {
                let busy = Own::new(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "connection_limit_reached",
                    "too many requests",
                );
                return busy.retry_after(Duration::from_secs(1)).into_response();
            }
        };
        let Ok(request) = self.request(&admitted, body.clone()) else {
            return Own::new(StatusCode::BAD_REQUEST, "http_request_error", "path cannot be passed on")
                .into_response();
        };
        if admitted.endpoint == Some(Endpoint::PlaceOrder) {
            return self.place(admitted, request, body, talk).await;
        }
        let moves_money = match admitted.endpoint {
            Some(endpoint) => endpoint.moves_money(),
            None => admitted.method != Method::GET && !is_cancel,
        };
        match self.client.forward(request).await {
            Ok(mut answer) => {
                let unknown = Outcome::of(answer.extensions()).is_some_and(Outcome::is_unknown);
                if moves_money && unknown {
                    return Own::in_doubt("request may have been executed").into_response();
                }
                clean(answer.headers_mut());
                answer.map(AnswerBody::Service)
            }
            Err(error) => of_error(&error, moves_money).into_response(),
        }
    }

    fn request(&self, admitted: &Admitted, body: Bytes) -> Result<Request<Full<Bytes>>, http::Error> {
        let target = match &admitted.query {
            Some(query) => format!("{}?{query}", admitted.path),
            None => admitted.path.clone(),
        };
        let uri = self.base.join(&target).unwrap_or_default();
        let mut request =
            Request::builder().method(admitted.method.clone()).uri(uri).body(Full::new(body))?;
        *request.headers_mut() = admitted.headers.clone();
        if let Some(lane) = admitted.lane {
            Call::of_mut(request.extensions_mut()).set_lane(lane);
        }
        Ok(request)
    }

    /// Places an order, and holds its answer until it is resolved.
    async fn place(
        &self,
        admitted: Admitted,
        mut request: Request<Full<Bytes>>,
        body: Bytes,
        talk: Arc<Talk<Admitted>>,
    ) -> Response<AnswerBody> {
        let form = match Form::parse(&body).ok().and_then(|form| OrderRequest::from_fields(form.iter()).ok())
        {
            Some(order) => order.form().encode(),
            // The stack refuses it, and nothing leaves.
            None => String::from_utf8_lossy(&body).into_owned(),
        };
        let is_named = admitted.key.is_some();
        if !is_named
            && !admitted.is_new_order
            && let Some(known) = self.left_in_doubt(&form)
        {
            return conflict(Conflict::Equal(known)).into_response();
        }
        let entry = match self.orders.enter(form, admitted.key, admitted.is_new_order) {
            Ok(entry) => entry,
            Err(reason) => return conflict(reason).into_response(),
        };
        Call::of_mut(request.extensions_mut()).set_intent(entry.name.clone());
        let caller = Waiting { forward: self, entry: Some(entry), request: Some(request.clone()) };
        let answer = self.client.forward(request).await;
        let Some(entry) = caller.answered() else {
            return Own::in_doubt("order has no entry").into_response();
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                let in_doubt = error.outcome().is_unknown() || is_doubtful(error.kind());
                if in_doubt {
                    // It stands until its time is over, whether its caller hears of it or not.
                    let candidates = error.unresolved().and_then(|it| it.candidates.first().cloned());
                    entry.answered(candidates).told_in_doubt();
                } else {
                    entry.placed_nothing();
                }
                return of_error(&error, true).into_response();
            }
        };
        let (mut parts, body) = answer.into_parts();
        let unresolved = parts.extensions.get::<Unresolved>().cloned();
        let outcome = Outcome::of(&parts.extensions).cloned();
        let body = Limited::new(body, ORDER_ANSWER).collect().await.ok().map(Collected::to_bytes);
        let placed = body.as_ref().and_then(|body| PlacedOrder::parse(body).ok());
        let delivery = match (unresolved, outcome) {
            (None, Some(outcome)) if outcome.is_not_executed() => {
                entry.placed_nothing();
                None
            }
            (None, Some(Outcome::Accepted { .. })) if placed.is_some() && parts.status == StatusCode::OK => {
                Some(entry.answered(placed.map(|placed| placed.order_id)))
            }
            (unresolved, outcome) => {
                let accepted = match outcome {
                    Some(Outcome::Accepted { order_id }) => order_id.as_deref().map(str::to_owned),
                    _ => None,
                };
                let why = unresolved.as_ref().map_or("answer proves nothing", |it| it.reason.as_str());
                let details = format!("order is in doubt: {why}");
                let named = unresolved.and_then(|it| it.answered.or(it.candidates.into_iter().next()));
                entry.answered(accepted.or(named)).told_in_doubt();
                return Own::in_doubt(&details).into_response();
            }
        };
        let body = body.unwrap_or_default();
        clean(&mut parts.headers);
        let then = delivery.map(|delivery| (talk, delivery));
        Response::from_parts(parts, AnswerBody::Own { body: Full::new(body), then })
    }

    /// Returns the order of an earlier process with this form that is in doubt still, with its id if that is known.
    fn left_in_doubt(&self, form: &str) -> Option<Option<String>> {
        let left = self.client.recovered().ok()?;
        let equal = left.iter().filter(|left| left.order.form().encode() == form);
        equal.into_iter().find_map(|left| match &left.verdict {
            Verdict::Pending | Verdict::Resend => Some(None),
            Verdict::Unresolved(unresolved) => Some(unresolved.candidates.first().cloned()),
            _ => None,
        })
    }
}

/// A caller that waits for its order. If it goes away, the order is asked after, and never sent.
struct Waiting<'a> {
    forward: &'a Forward,
    entry: Option<Entry>,
    request: Option<Request<Full<Bytes>>>,
}

impl Waiting<'_> {
    fn answered(mut self) -> Option<Entry> {
        self.request = None;
        self.entry.take()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let (Some(entry), Some(mut request)) = (self.entry.take(), self.request.take()) else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        // A call with its name joins it. If the order never left, this one cannot leave either: its time has passed.
        Call::of_mut(request.extensions_mut()).set_send_by(Instant::now().into_std());
        let client = self.forward.client.clone();
        runtime.spawn(async move {
            match client.forward(request).await {
                Ok(answer) => {
                    let placed = match Outcome::of(answer.extensions()) {
                        Some(Outcome::Accepted { order_id }) => order_id.as_deref().map(str::to_owned),
                        _ => None,
                    };
                    drop(entry.answered(placed));
                }
                // It opened the name anew, so that the first call has sent nothing.
                Err(error) if error.kind() == ErrorKind::Refused => entry.placed_nothing(),
                Err(_) => drop(entry),
            }
        });
    }
}

fn conflict(conflict: Conflict) -> Own {
    let own = |details| Own::new(StatusCode::CONFLICT, "http_request_denied", details);
    match conflict {
        Conflict::Running => own("an order of this name is on its way").retry_after(Duration::from_secs(1)),
        Conflict::Equal(None) => own("an equal order is in doubt; x-new-order: 1 places another one")
            .with("verify", "/api/oms/orders"),
        Conflict::Equal(Some(id)) => own("an equal order was placed; x-new-order: 1 places another one")
            .saying(&format!("an equal order was placed as {id}; x-new-order: 1 places another one"))
            .with("x-steadfast-order-id", &id)
            .with("verify", "/api/oms/orders"),
    }
}

fn is_doubtful(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::InDoubt | ErrorKind::NotObserved)
}

/// Returns the answer for a call without one of the service's.
fn of_error(error: &Error, moves_money: bool) -> Own {
    let why = one_line(causes(error));
    let why = why.as_str();
    if matches!(find_cause(error), Some(OrderRefused::IntentMismatch)) {
        return Own::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "http_request_denied",
            "name is that of another order",
        );
    }
    let unavailable =
        |details: &str| Own::new(StatusCode::SERVICE_UNAVAILABLE, "http_request_denied", details);
    let wait = error.retry_in();
    match error.kind() {
        kind if is_doubtful(kind) => Own::in_doubt(why),
        _ if moves_money && error.outcome().is_unknown() => Own::in_doubt(why),
        ErrorKind::InvalidRequest => Own::new(StatusCode::BAD_REQUEST, "http_request_error", why)
            .saying(steadfast::spec::msg::INPUT_VALIDATION),
        ErrorKind::Halted => unavailable("orders are halted"),
        ErrorKind::Refused => unavailable(why).retry_after(wait.unwrap_or(Duration::from_secs(1))),
        ErrorKind::RateLimited => Own::new(StatusCode::TOO_MANY_REQUESTS, "http_request_denied", why)
            .retry_after(wait.unwrap_or(Duration::from_secs(1))),
        ErrorKind::Unreachable => Own::new(StatusCode::BAD_GATEWAY, "destination_unavailable", why),
        ErrorKind::NotOpen => Own::new(StatusCode::BAD_REQUEST, "http_request_denied", why),
        _ => match error.status() {
            Some(status) if status.is_client_error() || status.is_server_error() => {
                let own = Own::new(status, "http_request_denied", why);
                match error.message() {
                    Some(msg) => own.saying(msg),
                    None => own,
                }
            }
            _ if error.kind() == ErrorKind::Unavailable => {
                Own::new(StatusCode::BAD_GATEWAY, "connection_terminated", why)
            }
            _ => unavailable(why),
        },
    }
}
