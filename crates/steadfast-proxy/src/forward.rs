//! The way of one admitted request through the stack.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use http::{Extensions, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Collected, Full, Limited};
use hyper::ext::ReasonPhrase;
use parking_lot::Mutex;
use steadfast::{
    BaseUrl, Client, Decimal, Error, ErrorKind, Outcome,
    call::{Call, causes, find_cause, one_line},
    dedup::{OrderWithheld, Unresolved, Verdict},
    ext::IntentId,
    spec::{Endpoint, Form, OrderRequest, PlacedOrder},
};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};

use crate::{
    answer::{AnswerBody, Own, clean},
    away::Away,
    current::Current,
    dashboard::{Dashboard, OrderEnd, Sources, WatchedOrder},
    front::{Admitted, Scope},
    mask::{Masked, Masks},
    orders::{Conflict, Entry, Orders, UNHEARD, found},
    screen::Talk,
    sharing::{self, SharedOrders, Sharing},
    switch::Switch,
    token_health::TokenGuard,
    withheld,
};

/// Begins the names of orders without a name of their caller's, in every process.
const NAMES: &str = "sidecar-";
/// The most requests at once that read, and the most of the others, cancels apart.
pub(crate) const AT_ONCE: u32 = 512;
/// How long an order waits for the moment in which the answer to an equal one was heard or is lost.
const DELIVERY_PATIENCE: Duration = Duration::from_secs(1);
/// The longest answer to an order.
const ORDER_ANSWER: usize = 64 * 1024;

/// The state that all connections share.
pub(crate) struct Forward {
    pub(crate) client: Current,
    pub(crate) base: BaseUrl,
    pub(crate) orders: Arc<Orders>,
    pub(crate) dashboard: Arc<Dashboard>,
    pub(crate) switch: Switch,
    masks: Masks,
    /// Apart from the others, so that no poll keeps an order out.
    reads: Semaphore,
    others: Semaphore,
    /// When its client was new.
    began: Mutex<Instant>,
    away: Mutex<Away>,
    token: TokenGuard,
    /// The orders, where several sidecars share them.
    pub(crate) shared: Arc<OnceLock<Arc<dyn SharedOrders>>>,
}

impl Forward {
    pub(crate) fn new(client: Client, base: BaseUrl, prefix: String) -> Self {
        let client = Current::new(client);
        let (now, noting) = (client.clone(), client.clone());
        let prefix = format!("{NAMES}{prefix}");
        let orders = Orders::new(
            prefix,
            move |name| now.get().tracker().verdict_of(name),
            move |name| noting.get().tracker().note_heard(name),
        );
        stand_unheard(&orders, &client.get());
        let switch = Switch::new(client.clone());
        let shared = Arc::new(OnceLock::new());
        let (client_now, running) = (client.clone(), switch.running());
        let sources =
            Sources { client: client_now, orders: orders.clone(), running, shared: Arc::clone(&shared) };
        let dashboard = Arc::new(Dashboard::new(&base, sources));
        let [reads, others] = [AT_ONCE as usize; 2].map(Semaphore::new);
        let masks = Masks::new(client.clone());
        let (began, away, token) = (Mutex::new(Instant::now()), Mutex::default(), TokenGuard::default());
        Self { client, base, orders, dashboard, switch, masks, reads, others, began, away, token, shared }
    }

    /// Sends requests through another client from now on. Those on their way end with the one before. As after a restart, the
    /// orders that its journal knows without a name, and whose answers may not have been heard, stand for their time.
    pub(crate) fn replace(&self, client: Client) {
        stand_unheard(&self.orders, &client);
        *self.began.lock() = Instant::now();
        self.switch.replace(client);
    }

    /// Returns what is known of the orders that several sidecars share.
    pub(crate) fn sharing(&self) -> Option<Sharing> {
        self.shared.get().map(|shared| shared.now())
    }

    /// While orders are withheld because of the trading day, reads the list, whose answer has the service's date: nothing else
    /// may ask the service for anything.
    pub(crate) fn learn_day(&self, client: &Client) {
        if withheld::is_of_day(client) {
            self.token.read_list(client);
        }
    }

    /// Waits until no order or change is without an answer. None is taken meanwhile; cancels need no place.
    pub(crate) async fn drained(&self) {
        drop(self.others.acquire_many(AT_ONCE).await);
    }

    /// Passes a request on, and returns the answer for its caller, without the account's credentials.
    pub(crate) async fn answer(
        &self,
        admitted: Admitted,
        body: Bytes,
        talk: Arc<Talk<Admitted>>,
    ) -> Response<AnswerBody> {
        let mut answer = self.pass(admitted, body, talk).await;
        let mask = self.masks.now();
        mask.hide_in(answer.headers_mut());
        // A service may put any text beside the status, and it would be passed on.
        answer.extensions_mut().remove::<ReasonPhrase>();
        answer.map(|body| body.by(mask))
    }

    async fn pass(&self, admitted: Admitted, body: Bytes, talk: Arc<Talk<Admitted>>) -> Response<AnswerBody> {
        let is_cancel = admitted.method == Method::DELETE;
        let reads = Scope::needed(admitted.endpoint, &admitted.method) == Scope::Read;
        if reads && self.away.lock().spares(Instant::now()) {
            let own = Own::new(
                StatusCode::BAD_GATEWAY,
                "destination_unavailable",
                "service cannot be reached, as other calls have found",
            );
            return own.retry_after(Duration::from_secs(1)).into_response();
        }
        let places = match Scope::needed(admitted.endpoint, &admitted.method) {
            Scope::Read => &self.reads,
            Scope::Trade => &self.others,
        };
        let _place = match places.try_acquire() {
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
        let Some(request) = self.request(&admitted, body.clone()) else {
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
        let client = self.client.get();
        if moves_money && let Some(refusal) = self.token.refusal(&client).await {
            return refusal.into_response();
        }
        let call = self.dashboard.call(admitted.endpoint);
        let answer = client.forward(request).await;
        call.ends(&answer);
        match &answer {
            Ok(_) => self.away.lock().answered(),
            Err(error) if found_none(error) => self.away.lock().unreachable(Instant::now()),
            Err(_) => {}
        }
        match answer {
            Ok(mut answer) => {
                let unknown = Outcome::of(answer.extensions()).is_some_and(Outcome::is_unknown);
                if moves_money && unknown {
                    return Own::in_doubt("request may have been executed").into_response();
                }
                clean(answer.headers_mut());
                answer.map(|body| AnswerBody::Service(Masked::of(body)))
            }
            Err(error) => self.of_error(&error, moves_money).into_response(),
        }
    }

    fn request(&self, admitted: &Admitted, body: Bytes) -> Option<Request<Full<Bytes>>> {
        let target = match &admitted.query {
            Some(query) => format!("{}?{query}", admitted.path),
            None => admitted.path.clone(),
        };
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = admitted.method.clone();
        *request.uri_mut() = self.base.join(&target).ok()?;
        *request.headers_mut() = admitted.headers.clone();
        if let Some(lane) = admitted.lane {
            Call::of_mut(request.extensions_mut()).set_lane(lane);
        }
        Some(request)
    }

    /// Places an order, and holds its answer until it is resolved.
    async fn place(
        &self,
        admitted: Admitted,
        mut request: Request<Full<Bytes>>,
        body: Bytes,
        talk: Arc<Talk<Admitted>>,
    ) -> Response<AnswerBody> {
        let order = Form::parse(&body).ok().and_then(|form| OrderRequest::from_fields(form.iter()).ok());
        let form = match &order {
            Some(order) => terms(order),
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
        let entry = match self.enter(form, admitted.key, admitted.is_new_order).await {
            Ok(entry) => entry,
            Err(reason) => return conflict(reason).into_response(),
        };
        let client = self.client.get();
        if !is_known(&client, &entry.name)
            && let Some(refusal) = self.token.refusal(&client).await
        {
            entry.placed_nothing();
            return refusal.into_response();
        }
        Call::of_mut(request.extensions_mut()).set_intent(entry.name.clone());
        let watched = order.map(|order| self.dashboard.order(&entry.name, &order));
        let call = self.dashboard.call(admitted.endpoint);
        let caller = Waiting {
            forward: self,
            client: client.clone(),
            entry: Some(entry),
            request: Some(request.clone()),
        };
        let answer = client.forward(request).await;
        call.ends(&answer);
        let Some(entry) = caller.answered() else {
            return Own::in_doubt("order has no entry").into_response();
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                let in_doubt = error.outcome().is_unknown() || is_doubtful(error.kind());
                WatchedOrder::end(watched, OrderEnd::of_error(&error, in_doubt));
                if in_doubt {
                    entry.in_doubt();
                } else {
                    entry.placed_nothing();
                    self.learn_day(&client);
                }
                return self.of_error(&error, true).into_response();
            }
        };
        let (mut parts, body) = answer.into_parts();
        let unresolved = parts.extensions.get::<Unresolved>().cloned();
        let end = End::of(&parts.extensions);
        let body = Limited::new(body, ORDER_ANSWER).collect().await.ok().map(Collected::to_bytes);
        let placed = body.as_ref().and_then(|body| PlacedOrder::parse(body).ok());
        let delivery = match end {
            End::PlacedNothing => {
                WatchedOrder::end(watched, OrderEnd::of_status(parts.status));
                entry.placed_nothing();
                None
            }
            End::Placed(_) if placed.is_some() && parts.status == StatusCode::OK => {
                let order_id = placed.map(|placed| placed.order_id);
                WatchedOrder::end(watched, OrderEnd::of_answer(parts.extensions.get(), order_id.clone()));
                Some(entry.answered(order_id))
            }
            _ => {
                WatchedOrder::end(watched, OrderEnd::InDoubt(unresolved.as_ref().map(Into::into)));
                let why = unresolved.as_ref().map_or("answer proves nothing", |it| it.reason.as_str());
                let details = format!("order is in doubt: {why}");
                entry.in_doubt();
                return Own::in_doubt(&details).into_response();
            }
        };
        let body = body.unwrap_or_default();
        clean(&mut parts.headers);
        let then = delivery.map(|delivery| (talk, delivery));
        Response::from_parts(parts, AnswerBody::Own { body: Masked::of(Full::new(body)), then })
    }

    fn of_error(&self, error: &Error, moves_money: bool) -> Own {
        of_error(error, moves_money, &self.switch, self.sharing())
    }

    /// Enters an order. While the answer to an equal one is on its way, it waits for the moment in which it is known
    /// whether that was heard: a caller that has read the answer can be back sooner than the sidecar knows of it.
    async fn enter(&self, form: String, key: Option<String>, is_new: bool) -> Result<Entry, Conflict> {
        let due = Instant::now() + DELIVERY_PATIENCE;
        loop {
            let mut answers = self.orders.answers();
            match self.orders.enter(form.clone(), key.clone(), is_new) {
                Err(Conflict::Leaving(_))
                    if matches!(timeout_at(due, answers.changed()).await, Ok(Ok(()))) => {}
                entered => return entered,
            }
        }
    }

    /// Returns the order with this form that an earlier process left in doubt, with its id if it was found: as long as
    /// it is in doubt, or its caller may not have heard of it.
    fn left_in_doubt(&self, form: &str) -> Option<Option<String>> {
        let left = self.client.get().recovered().ok()?;
        let is_new = self.began.lock().elapsed() < UNHEARD;
        left.into_iter().filter(|left| terms(&left.order) == form).find_map(|left| match left.verdict {
            Verdict::Pending | Verdict::Resend | Verdict::Unresolved(_) => Some(None),
            verdict => found(verdict).filter(|_| is_new).map(Some),
        })
    }
}

/// Enters the orders without a name whose answers the journal does not say to have been heard.
fn stand_unheard(orders: &Orders, client: &Client) {
    for left in client.tracker().unheard() {
        if let Some(name) = left.name.filter(|name| name.as_str().starts_with(NAMES)) {
            orders.stand(terms(&left.order), name, found(left.verdict));
        }
    }
}

/// True if an order of this name was sent: its repetition is told of its end, and is not sent.
fn is_known(client: &Client, name: &IntentId) -> bool {
    client.tracker().verdict_of(name).is_some_and(|verdict| verdict != Verdict::NotPlaced)
}

/// Returns the same text for all forms that ask for the same order: the terms by which the search for a lost order
/// compares, in one spelling. Other fields, and a price that does not apply to the order's type, are no part of it: a
/// repeat must not pass for another order because of a remark.
fn terms(order: &OrderRequest) -> String {
    let kind = order.order_type();
    let spelled = |number: Decimal| number.normalize().to_string();
    let applying = |price: Option<Decimal>, applies: bool| price.filter(|_| applies).map(spelled);
    [
        order.side().as_str(),
        kind.as_str(),
        order.product().as_str(),
        order.validity().as_str(),
        &spelled(order.qty()),
        &applying(order.limit_price(), kind.needs_limit_price()).unwrap_or_default(),
        &applying(order.trig_price(), kind.needs_trig_price()).unwrap_or_default(),
        // The last, because any character may be in it.
        order.sym_id().folded().as_str(),
    ]
    .join(" ")
}

/// A caller that waits for its order. If it goes away, a task waits for the order's end, and sends nothing.
struct Waiting<'a> {
    forward: &'a Forward,
    client: Arc<Client>,
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
        let client = self.client.clone();
        let (dashboard, name) = (self.forward.dashboard.clone(), entry.name.clone());
        runtime.spawn(async move {
            match client.forward(request).await {
                Ok(answer) => match End::of(answer.extensions()) {
                    End::Placed(id) => {
                        let end = OrderEnd::Placed { how: "placed_unheard", order_id: Some(id.clone()) };
                        dashboard.order_ended(&name, end);
                        drop(entry.answered(Some(id)));
                    }
                    End::PlacedNothing => {
                        dashboard.order_ended(&name, OrderEnd::of_status(answer.status()));
                        entry.placed_nothing();
                    }
                    End::InDoubt => {
                        let doubt = answer.extensions().get::<Unresolved>().map(Into::into);
                        dashboard.order_ended(&name, OrderEnd::InDoubt(doubt));
                        entry.in_doubt();
                    }
                },
                // The name was free again, so the first call has sent nothing.
                Err(error) if error.kind() == ErrorKind::Refused => {
                    dashboard.order_ended(&name, OrderEnd::of_error(&error, false));
                    entry.placed_nothing();
                }
                Err(error) => {
                    dashboard.order_ended(&name, OrderEnd::of_error(&error, true));
                    entry.in_doubt();
                }
            }
        });
    }
}

/// How an order ended, as far as the extensions of its answer say.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Placed(String),
    PlacedNothing,
    InDoubt,
}

impl End {
    fn of(answer: &Extensions) -> Self {
        match (answer.get::<Unresolved>(), Outcome::of(answer)) {
            (None, Some(Outcome::Accepted { order_id: Some(id) })) => Self::Placed(id.as_ref().to_owned()),
            (None, Some(outcome)) if outcome.is_not_executed() => Self::PlacedNothing,
            _ => Self::InDoubt,
        }
    }
}

fn conflict(conflict: Conflict) -> Own {
    let own = |details| Own::new(StatusCode::CONFLICT, "http_request_denied", details);
    match conflict {
        Conflict::Running => own("an order of this name is on its way").retry_after(Duration::from_secs(1)),
        Conflict::Equal(None) | Conflict::Leaving(None) => {
            own("an equal order is in doubt; x-new-order: 1 places another one")
                .with("verify", "/api/oms/orders")
        }
        Conflict::Equal(Some(id)) | Conflict::Leaving(Some(id)) => {
            own("an equal order was placed; x-new-order: 1 places another one")
                .saying(&format!("an equal order was placed as {id}; x-new-order: 1 places another one"))
                .with("x-steadfast-order-id", &id)
                .with("verify", "/api/oms/orders")
        }
    }
}

/// True if a call has got no answer of the service, not even an error's.
fn found_none(error: &Error) -> bool {
    let kind = error.kind();
    kind == ErrorKind::Unreachable || kind == ErrorKind::Unavailable && error.status().is_none()
}

fn is_doubtful(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::InDoubt | ErrorKind::NotObserved)
}

/// Returns the answer for a call without one of the service's.
fn of_error(error: &Error, moves_money: bool, switch: &Switch, sharing: Option<Sharing>) -> Own {
    let why = one_line(causes(error));
    let why = why.as_str();
    if matches!(find_cause(error), Some(OrderWithheld::IntentMismatch)) {
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
        ErrorKind::Halted => switch.refusal(),
        ErrorKind::NotOwner => sharing::refusal(error.not_owner(), sharing, why),
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

#[cfg(test)]
mod tests {
    use steadfast::{Access, call::Routes, ext::Sent};

    use super::*;
    use crate::{
        front::{Front, Hosts, Refusal, Tokens},
        screen::{Admit, Screened},
    };

    const FORM: &str = "symId=S&qty=10&side=buy&type=limit&limitPrice=100&product=delivery&validity=day";

    #[test]
    fn equal_orders_have_one_text_however_they_are_written() {
        let text = |form: &str| {
            terms(&OrderRequest::from_fields(Form::parse(form.as_bytes()).unwrap().iter()).unwrap())
        };
        let stop = FORM.replace("type=limit", "type=stoplimit") + "&trigPrice=99";
        let market = FORM.replace("type=limit&limitPrice=100", "type=market");
        for (order, equals) in [
            (
                FORM,
                vec![
                    FORM.replace("qty=10", "qty=10.0"),
                    FORM.replace("limitPrice=100", "limitPrice=100.00"),
                    FORM.replace("limitPrice=100", "limitPrice=1e2"),
                    FORM.replace("symId=S&", "") + "&symId=%53",
                    FORM.replace("symId=S", "symId=s"),
                    FORM.to_owned() + "&trigPrice=",
                    FORM.to_owned() + "&trigPrice=0",
                    FORM.to_owned() + "&trigPrice=99&disclosedQty=0&remarks=x&foo=1",
                ],
            ),
            (&stop, vec![stop.replace("=99", "=99.0")]),
            (&market, vec![market.clone() + "&limitPrice=0&trigPrice=0"]),
        ] {
            for equal in equals {
                assert_eq!(text(&equal), text(order), "{equal}");
            }
        }
        for other in [
            FORM.replace("symId=S", "symId=T"),
            FORM.replace("qty=10", "qty=11"),
            FORM.replace("buy", "sell"),
            FORM.replace("type=limit", "type=stoplimit") + "&trigPrice=98",
            FORM.replace("=100", "=100.5"),
            FORM.replace("delivery", "intraday"),
            FORM.replace("day", "ioc"),
            market,
            stop.clone(),
        ] {
            assert_ne!(text(&other), text(FORM), "{other}");
            assert!(other == stop || text(&other) != text(&stop), "{other}");
        }
    }

    #[test]
    fn an_order_is_in_doubt_unless_its_answer_says_how_it_ended() {
        let end = |outcome: Option<Outcome>| {
            let mut answer = Extensions::new();
            if let Some(outcome) = outcome {
                Sent::of_mut(&mut answer).set_outcome(outcome);
            }
            End::of(&answer)
        };
        let accepted = |id: Option<&str>| Some(Outcome::Accepted { order_id: id.map(Into::into) });
        assert_eq!(end(accepted(Some("7"))), End::Placed("7".to_owned()));
        for nothing in [Outcome::NotSent, Outcome::NotExecuted, Outcome::Rejected] {
            assert_eq!(end(Some(nothing)), End::PlacedNothing);
        }
        assert_eq!(end(accepted(None)), End::InDoubt);
        assert_eq!(end(None), End::InDoubt);
    }

    #[tokio::test]
    async fn polls_keep_no_order_out() {
        let base: BaseUrl = "http://127.0.0.1:9/v2".parse().unwrap();
        let client = Client::builder(base.clone(), Access::token("key", "token").unwrap()).build().unwrap();
        // No order leaves, and it is told so.
        client.halt();
        let forward = Forward::new(client, base, "p".to_owned());
        let hosts = Hosts::of(["127.0.0.1:8080".parse().unwrap()]);
        let tokens = Tokens::new("trade-0123456789abcdef").unwrap();
        let front = Arc::new(Front::new(hosts, tokens, Routes::default()));
        let why = async |line: &str| {
            let head = format!(
                "{line} HTTP/1.1\r\nHost: localhost:8080\r\nAuthorization: Bearer trade-0123456789abcdef\r\n\r\n"
            );
            let admitted = front.admit(head.as_bytes()).unwrap();
            let admit: Admit<Admitted> = Arc::new(|_: &[u8]| Err(Refusal::Malformed));
            let (_, talk) = Screened::new(tokio::io::empty(), admit);
            let answer = forward.answer(admitted, FORM.into(), talk).await;
            answer.headers()["proxy-status"].to_str().unwrap().to_owned()
        };
        forward.reads.close();
        assert!(why("GET /v2/api/oms/orders").await.contains("too many requests"));
        assert!(why("POST /v2/api/oms/place-order").await.contains("halted"));
        forward.others.close();
        assert!(why("POST /v2/api/oms/place-order").await.contains("too many requests"));
    }
}
