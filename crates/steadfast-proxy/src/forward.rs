//! The way of one admitted request through the stack.

mod errors;
mod order;
mod terms;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::ext::ReasonPhrase;
use parking_lot::Mutex;
use steadfast::{BaseUrl, Client, Outcome, call::Call, spec::Endpoint};
use tokio::{sync::Semaphore, time::Instant};

use self::{
    errors::{found_none, of_error},
    order::{NAMES, stand_unheard},
};
use crate::{
    answer::{AnswerBody, Own, clean},
    away::Away,
    current::Current,
    dashboard::{Dashboard, Sources},
    front::{Admitted, Scope},
    mask::{Masked, Masks},
    orders::Orders,
    screen::Talk,
    sharing::{SharedOrders, Sharing},
    switch::Switch,
    token_health::TokenGuard,
    withheld,
};

/// The most requests at once that read, and the most of the others, cancels apart.
pub(crate) const AT_ONCE: u32 = 512;
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
            Err(error) => of_error(&error, moves_money, self).into_response(),
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
}

#[cfg(test)]
mod tests {
    use steadfast::{Access, call::Routes};

    use super::*;
    use crate::{
        front::{Front, Hosts, Refusal, Tokens},
        screen::{Admit, Screened},
    };

    #[tokio::test]
    async fn polls_keep_no_order_out() {
        let form = "symId=S&qty=10&side=buy&type=market&product=delivery&validity=day";
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
            let answer = forward.answer(admitted, form.into(), talk).await;
            answer.headers()["proxy-status"].to_str().unwrap().to_owned()
        };
        forward.reads.close();
        assert!(why("GET /v2/api/oms/orders").await.contains("too many requests"));
        assert!(why("POST /v2/api/oms/place-order").await.contains("halted"));
        forward.others.close();
        assert!(why("POST /v2/api/oms/place-order").await.contains("too many requests"));
    }
}
