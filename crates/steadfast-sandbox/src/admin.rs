mod callers;

use std::{
    collections::BTreeMap,
    convert::Infallible,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use steadfast_spec::OrderRequest;
use tokio::time::timeout;
use tower_service::Service;

use crate::{
    gateway::plan::FaultEntry,
    sandbox::{BookEdit, Sandbox},
    wire::patience::BODY_TIMEOUT,
};

pub(crate) use self::callers::Callers;

/// How much of an admin call's body is read.
const BODY_LIMIT: usize = 256 * 1024;

/// The admin API: changes a sandbox from outside, for tests and people, on a listener of its own.
///
/// Calls must be `application/json`, which a web page cannot send to another origin without a preflight, and must name
/// the API's own address.
#[derive(Clone, Debug)]
pub(crate) struct Admin {
    sandbox: Sandbox,
    callers: Callers,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClockCall {
    advance_ms: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RevokeCall {
    token: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OtpCall {
    client_id: String,
}

/// A foreign order, or the end of an open one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OrderCall {
    action: OrderAction,
    /// The fields of §4.4, as texts or numbers.
    order: Option<BTreeMap<String, Value>>,
    #[serde(rename = "orderId")]
    order_id: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OrderAction {
    Place,
    Fill,
    Cancel,
    Reject,
}

struct Refused(StatusCode, String);

impl Refused {
    fn bad(message: impl ToString) -> Self {
        Self(StatusCode::BAD_REQUEST, message.to_string())
    }
}

impl Admin {
    pub(crate) fn new(sandbox: Sandbox, callers: Callers) -> Self {
        Self { sandbox, callers }
    }

    fn call(&self, method: &Method, path: &str, body: &[u8]) -> Result<Value, Refused> {
        match (method.as_str(), path) {
            ("GET", "/state") => serde_json::to_value(self.sandbox.state()).map_err(Refused::bad),
            ("POST", "/faults") => {
                let entries: Vec<FaultEntry> = match body.trim_ascii_start().first() {
                    Some(b'[') => parse(body)?,
                    _ => vec![read(body)?],
                };
                self.sandbox.inject_all(entries).map_err(Refused::bad)?;
                Ok(json!({}))
            }
            ("POST", "/clock") => {
                let call: ClockCall = read(body)?;
                self.sandbox.advance(Duration::from_millis(call.advance_ms));
                Ok(json!({"now_ns": self.sandbox.state().now_ns}))
            }
            ("POST", "/orders") => self.orders(read(body)?),
            ("POST", "/tokens/revoke") => {
                let call: RevokeCall = read(body)?;
                self.sandbox.revoke(call.token.as_deref());
                Ok(json!({}))
            }
            ("POST", "/otp") => {
                let call: OtpCall = read(body)?;
                let code = self.sandbox.send_otp(&call.client_id);
                code.map(|code| json!({"code": code})).ok_or_else(|| Refused::bad("client_id is unknown"))
            }
            ("POST", "/reset") => {
                self.sandbox.reset();
                Ok(json!({"access_token": self.sandbox.credentials().access_token}))
            }
            (_, "/state" | "/faults" | "/clock" | "/orders" | "/tokens/revoke" | "/otp" | "/reset") => {
                Err(Refused(StatusCode::METHOD_NOT_ALLOWED, format!("{path} does not take {method}")))
            }
            _ => Err(Refused(StatusCode::NOT_FOUND, "there is no such admin call".to_owned())),
        }
    }

    fn orders(&self, call: OrderCall) -> Result<Value, Refused> {
        let edit = match call.action {
            OrderAction::Place => {
                let fields = texts(call.order.ok_or_else(|| Refused::bad("order is missing"))?)?;
                let fields = fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
                let order = OrderRequest::from_fields(fields).map_err(Refused::bad)?;
                return Ok(json!({"orderId": self.sandbox.place_foreign(&order)}));
            }
            OrderAction::Fill => BookEdit::Fill,
            OrderAction::Cancel => BookEdit::Cancel,
            OrderAction::Reject => BookEdit::Reject,
        };
        let order_id = call.order_id.ok_or_else(|| Refused::bad("orderId is missing"))?;
        self.sandbox.edit_order(&order_id, edit).map_err(Refused::bad)?;
        Ok(json!({"orderId": order_id}))
    }

    async fn answer<B>(self, request: Request<B>) -> Response<Full<Bytes>>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let (parts, body) = request.into_parts();
        let content_type = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let kind = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        let is_json = kind.eq_ignore_ascii_case("application/json");
        let answer = if let Err(refused) = self.callers.admit(&parts) {
            Err(refused)
        } else if parts.method == Method::POST && !is_json {
            Err(Refused(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "content-type must be application/json".to_owned(),
            ))
        } else {
            match timeout(BODY_TIMEOUT, Limited::new(body, BODY_LIMIT).collect()).await {
                Ok(Ok(body)) => self.call(&parts.method, parts.uri.path(), &body.to_bytes()),
                Ok(Err(_)) => Err(Refused::bad("body is too large or broken")),
                Err(_) => Err(Refused(StatusCode::REQUEST_TIMEOUT, "body took too long".to_owned())),
            }
        };
        let (status, body) = match answer {
            Ok(body) => (StatusCode::OK, body),
            Err(Refused(status, message)) => (status, json!({"error": message})),
        };
        let mut response = Response::new(Full::from(body.to_string()));
        *response.status_mut() = status;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}

/// Reads a JSON object. serde alone would also accept an array for a struct. An empty body is an empty object.
fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    let body = if body.trim_ascii().is_empty() { b"{}" } else { body };
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(Refused::bad("body is not a json object"));
    }
    parse(body)
}

/// Reads JSON; an error names the field that is wrong.
fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    let mut json = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut json).map_err(Refused::bad)?;
    json.end().map_err(Refused::bad)?;
    Ok(value)
}

fn texts(fields: BTreeMap<String, Value>) -> Result<Vec<(String, String)>, Refused> {
    let text = |(name, value)| match value {
        Value::String(text) => Ok((name, text)),
        Value::Number(number) => Ok((name, number.to_string())),
        _ => Err(Refused::bad(format!("order.{name} is neither a text nor a number"))),
    };
    fields.into_iter().map(text).collect()
}

impl<B> Service<Request<B>> for Admin
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let answer = self.clone().answer(request);
        Box::pin(async move { Ok(answer.await) })
    }
}
