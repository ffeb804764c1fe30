use std::{num::NonZeroU32, time::Duration};

use bytes::Bytes;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use parking_lot::Mutex;
use steadfast_sandbox::{Credentials, Sandbox};
use steadfast_spec::{
    Endpoint, FieldNames, Form, OrderRecord, OrderRequest, Paths, PlacedOrder, parse_order_list,
};

use crate::{arena::Arena, placement::INTENT};

/// The common part of the two rivals: plain HTTP over a connection pool, ten requests a second by `governor` for
/// orders and ten for all else, and a new login on 401.
///
/// Two limiters are more than `governor` gives by default; with a single one the rivals would do worse.
pub(crate) struct Wire {
    client: Client<HttpConnector, Full<Bytes>>,
    credentials: Credentials,
    token: Mutex<String>,
    login: tokio::sync::Mutex<()>,
    /// Stands for the user's authenticator app.
    authenticator: Sandbox,
    orders: DefaultDirectRateLimiter,
    rest: DefaultDirectRateLimiter,
    paths: Paths,
}

/// The answer to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A complete answer.
    Whole(StatusCode, Bytes),
    /// No answer, or an incomplete one.
    Lost,
}

/// The answer to an order, as seen by a client that goes by the status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Placed(String),
    /// 429.
    Later,
    /// Any other 4xx.
    Refused,
    /// 5xx, no answer, or an unreadable one.
    Failed,
}

/// The pauses before the second and every further send.
pub(crate) const BACKOFF: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4), Duration::from_secs(8)];
const PATIENCE: Duration = Duration::from_secs(30);
const MOST_BODY: usize = 16 * 1024 * 1024;
const TEN: NonZeroU32 = NonZeroU32::MIN.saturating_add(9);

impl Wire {
    /// Creates a client of `arena`, with the token of the day's first login.
    pub(crate) fn new(arena: &Arena) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let ten_a_second = || RateLimiter::direct(Quota::per_second(TEN));
        Self {
            client: Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector),
            token: Mutex::new(arena.credentials.access_token.clone()),
            credentials: arena.credentials.clone(),
            login: tokio::sync::Mutex::new(()),
            authenticator: arena.sandbox.clone(),
            orders: ten_a_second(),
            rest: ten_a_second(),
            paths: Paths::public(),
        }
    }

    pub(crate) async fn place(&self, name: &str, order: &OrderRequest) -> Look {
        self.orders.until_ready().await;
        look(&self.send(name, Endpoint::PlaceOrder, "", Some(&order.form())).await)
    }

    /// Returns true if the service says that it is done, or that it cannot be done.
    pub(crate) async fn cancel(&self, name: &str, order_id: &str) -> bool {
        self.rest.until_ready().await;
        let query = format!("?{}", Form::new().with("orderId", order_id).encode());
        match self.send(name, Endpoint::CancelOrder, &query, None).await {
            Answer::Whole(status, _) => status.is_success() || status == StatusCode::BAD_REQUEST,
            Answer::Lost => false,
        }
    }

    pub(crate) async fn list(&self, name: &str) -> Option<Vec<OrderRecord>> {
        self.rest.until_ready().await;
        match self.send(name, Endpoint::Orders, "", None).await {
            Answer::Whole(StatusCode::OK, body) => parse_order_list(&body, &FieldNames::default()).ok(),
            _ => None,
        }
    }

    /// Sends a request with the token; on 401, logs in and sends it once more.
    async fn send(&self, name: &str, endpoint: Endpoint, query: &str, form: Option<&Form>) -> Answer {
        let token = self.token.lock().clone();
        let answer = self.exchange(name, endpoint, query, form, Some(&token)).await;
        match answer {
            Answer::Whole(StatusCode::UNAUTHORIZED, _) => {
                self.log_in(&token).await;
                let token = self.token.lock().clone();
                self.exchange(name, endpoint, query, form, Some(&token)).await
            }
            answer => answer,
        }
    }

    /// Fetches a new token, unless another call has done so already.
    async fn log_in(&self, refused: &str) {
        let _one_at_a_time = self.login.lock().await;
        if *self.token.lock() != refused {
            return;
        }
        let form = Form::new()
            .with("client_id", self.credentials.client_id.clone())
            .with("password", self.credentials.password.clone())
            .with("twoFa", self.authenticator.totp_now())
            .with("twoFaTyp", "totp");
        let answer = self.exchange("login", Endpoint::IndividualToken, "", Some(&form), None).await;
        if let Answer::Whole(StatusCode::OK, body) = answer
            && let Ok(record) = serde_json::from_slice::<serde_json::Value>(&body)
            // The specification does not show whether this answer is in the envelope (§4.3).
            && let Some(token) = record["d"]["access_token"].as_str().or(record["access_token"].as_str())
        {
            token.clone_into(&mut self.token.lock());
        }
    }

    async fn exchange(
        &self,
        name: &str,
        endpoint: Endpoint,
        query: &str,
        form: Option<&Form>,
        token: Option<&str>,
    ) -> Answer {
        let Credentials { base_url, api_key, .. } = &self.credentials;
        let path = self.paths.of(endpoint).unwrap_or_default();
        let bearer = match token {
            Some(token) => format!("Bearer {api_key}:{token}"),
            None => format!("Bearer {api_key}"),
        };
        let mut request = Request::builder()
            .method(endpoint.method())
            .uri(format!("{base_url}{path}{query}"))
            .header(INTENT, name)
            .header(header::AUTHORIZATION, bearer);
        if endpoint.method() == Method::POST {
            request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        }
        let body = form.map(Form::encode).unwrap_or_default();
        let Ok(request) = request.body(Full::from(body)) else { return Answer::Lost };
        let answer = async {
            let (head, body) = self.client.request(request).await.ok()?.into_parts();
            let body = Limited::new(body, MOST_BODY).collect().await.ok()?;
            Some(Answer::Whole(head.status, body.to_bytes()))
        };
        tokio::time::timeout(PATIENCE, answer).await.ok().flatten().unwrap_or(Answer::Lost)
    }
}

fn look(answer: &Answer) -> Look {
    match answer {
        Answer::Whole(StatusCode::OK, body) => match PlacedOrder::parse(body) {
            Ok(placed) => Look::Placed(placed.order_id),
            Err(_) => Look::Failed,
        },
        Answer::Whole(StatusCode::TOO_MANY_REQUESTS, _) => Look::Later,
        Answer::Whole(status, _) if status.is_client_error() => Look::Refused,
        Answer::Whole(..) | Answer::Lost => Look::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_goes_by_the_status_takes_a_cut_answer_for_a_failure() {
        let whole = |status: u16, body: &'static str| {
            Answer::Whole(StatusCode::from_u16(status).unwrap(), Bytes::from_static(body.as_bytes()))
        };
        let placed = r#"{"s":"ok","d":{"orderId":"7","msg":"Order placed"}}"#;
        assert_eq!(look(&whole(200, placed)), Look::Placed("7".to_owned()));
        assert_eq!(look(&whole(200, r#"{"s":"ok","d":{"orde"#)), Look::Failed);
        assert_eq!(look(&whole(429, "")), Look::Later);
        assert_eq!(look(&whole(400, "")), Look::Refused);
        assert_eq!(look(&whole(504, "")), Look::Failed);
        assert_eq!(look(&Answer::Lost), Look::Failed);
    }
}
