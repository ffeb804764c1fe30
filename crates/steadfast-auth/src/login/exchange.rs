use std::{fmt, future::poll_fn, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Request, Response, StatusCode, Uri,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use http_body::Body;
use http_body_util::{BodyExt, Full, Limited};
use parking_lot::Mutex;
use steadfast_call::{BoxError, Call, Failure, Outcome, RetryAfter, Route};
use steadfast_spec::{BaseUrl, Endpoint, Envelope, Form, InvalidBaseUrl, Paths, TokenRecord, msg};
use tower_service::Service;

use super::{Attempt, Gate, GatePermit, Grant, LoginFailure, UnexpectedStatus};
use crate::destination;

/// A token record is a few hundred bytes.
const LARGEST_ANSWER: usize = 64 * 1024;
/// Ends an attempt even if the transport has no timeout of its own.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Limits the wait for a gate, which must not stop logins for ever.
const PERMIT_WITHIN: Duration = Duration::from_secs(120);

/// One request to a token endpoint: take the permit, send, read the answer.
pub(crate) struct Exchange<S, G> {
    // A lock instead of a `Sync` bound: services need not be shareable between threads.
    transport: Mutex<S>,
    gate: G,
    uri: Uri,
    route: Arc<Route>,
    pub(crate) base: String,
    pub(crate) timeout: Duration,
}

impl<S, G> Exchange<S, G> {
    pub(crate) fn new(
        transport: S,
        gate: G,
        base: &BaseUrl,
        endpoint: Endpoint,
    ) -> Result<Self, InvalidBaseUrl> {
        let paths = Paths::default();
        let uri = base.join(paths.of(endpoint).unwrap_or_default())?;
        let route = Arc::new(Route::new(endpoint));
        Ok(Self {
            transport: Mutex::new(transport),
            gate,
            uri,
            route,
            base: base.to_string(),
            timeout: TIMEOUT,
        })
    }

    pub(crate) fn with_gate<H>(self, gate: H) -> Exchange<S, H> {
        Exchange {
            transport: self.transport,
            gate,
            uri: self.uri,
            route: self.route,
            base: self.base,
            timeout: self.timeout,
        }
    }
}

impl<S, G: Gate> Exchange<S, G> {
    /// Waits until the endpoint's zones admit the request.
    pub(crate) async fn permit(&self) -> Result<G::Permit, LoginFailure> {
        // Checked before any wait: no secret may leave in clear text.
        destination::check(&self.uri).map_err(|refusal| LoginFailure::Misconfigured(refusal.into()))?;
        let permit = self.gate.acquire(&self.route.zones, self.route.lane);
        tokio::time::timeout(PERMIT_WITHIN, permit).await.map_err(not_sent)?.map_err(not_sent)
    }

    /// Sends `form` and reads the token record.
    pub(crate) async fn send<ResBody>(
        &self,
        mut permit: G::Permit,
        form: &Form,
        authorization: Option<HeaderValue>,
        attempt: &Attempt,
        step: Option<u64>,
    ) -> Result<Grant, LoginFailure>
    where
        S: Service<Request<Full<Bytes>>, Response = Response<ResBody>> + Clone,
        S::Error: Into<BoxError>,
        ResBody: Body,
        ResBody::Error: Into<BoxError>,
    {
        let request = self.request(form, authorization).map_err(LoginFailure::Misconfigured)?;
        let exchange = async {
            let mut transport = self.transport.lock().clone();
            poll_fn(|cx| transport.poll_ready(cx)).await.map_err(not_sent)?;
            // From here on the attempt counts, even if this process ends.
            attempt.about_to_send(step).await?;
            let sent = attempt.now();
            permit.sent();
            let response = transport.call(request).await.map_err(|error| of_error(error.into()))?;
            permit.answered(response.status(), response.headers());
            attempt.observe(response.headers(), sent, attempt.now());
            let (head, body) = response.into_parts();
            if head.status == StatusCode::BAD_REQUEST {
                let body = Limited::new(body, LARGEST_ANSWER).collect().await;
                let body = body.ok().map(|body| body.to_bytes());
                return Err(of_bad_request(body.as_deref()));
            }
            if head.status != StatusCode::OK {
                return Err(of_status(head.status, &head.headers));
            }
            let body = Limited::new(body, LARGEST_ANSWER).collect().await.map_err(LoginFailure::Unknown)?;
            let record = TokenRecord::parse(&body.to_bytes()).map_err(|e| LoginFailure::Unknown(e.into()))?;
            Ok(Grant::new(record.access_token, sent).valid_for(record.expires_in))
        };
        tokio::time::timeout(self.timeout, exchange)
            .await
            .unwrap_or_else(|elapsed| Err(LoginFailure::Unknown(elapsed.into())))
    }

    fn request(
        &self,
        form: &Form,
        authorization: Option<HeaderValue>,
    ) -> Result<Request<Full<Bytes>>, BoxError> {
        let mut request = Request::post(self.uri.clone())
            .header(CONTENT_TYPE, Form::CONTENT_TYPE)
            .body(Full::from(form.encode()))?;
        if let Some(authorization) = authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization);
        }
        Call::of_mut(request.extensions_mut()).set_route(self.route.clone());
        Ok(request)
    }
}

impl<S, G: fmt::Debug> fmt::Debug for Exchange<S, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("gate", &self.gate)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

fn not_sent(error: impl Into<BoxError>) -> LoginFailure {
    LoginFailure::NotSent(error.into())
}

fn of_error(error: BoxError) -> LoginFailure {
    match Failure::outcome_of(&*error) {
        Outcome::NotSent => LoginFailure::NotSent(error),
        _ => LoginFailure::Unknown(error),
    }
}

/// Judges a 400 by its text: one of them asks to try again, and does not say what was executed (§7).
fn of_bad_request(body: Option<&[u8]>) -> LoginFailure {
    match body.map(Envelope::parse) {
        Some(Ok(Envelope::Error { msg })) if msg == msg::INTERNAL_ERROR => {
            LoginFailure::Unknown(UnexpectedStatus(StatusCode::BAD_REQUEST).into())
        }
        _ => of_status(StatusCode::BAD_REQUEST, &HeaderMap::new()),
    }
}

fn of_status(status: StatusCode, headers: &HeaderMap) -> LoginFailure {
    let answered = || UnexpectedStatus(status).into();
    match status.as_u16() {
        401 => LoginFailure::Refused,
        429 => LoginFailure::RateLimited { retry_after: RetryAfter::parse(headers).map(|after| after.0) },
        400 | 415 => LoginFailure::Misconfigured(answered()),
        403..=405 => LoginFailure::Denied(answered()),
        _ => LoginFailure::Unknown(answered()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t22_a_400_that_asks_to_try_again_is_an_unknown_end() {
        let judged = |body: Option<&str>| of_bad_request(body.map(str::as_bytes)).as_str();
        let error = |msg: &str| format!(r#"{{"s":"error","msg":"{msg}"}}"#);
        assert_eq!(judged(Some(&error(msg::INTERNAL_ERROR))), "unknown");
        for wrong in [msg::BAD_REQUEST, msg::INPUT_VALIDATION, "x"] {
            assert_eq!(judged(Some(&error(wrong))), "misconfigured", "{wrong}");
        }
        assert_eq!((judged(Some("<html>")), judged(None)), ("misconfigured", "misconfigured"));
    }

    #[test]
    fn statuses_are_told_apart_by_what_they_prove() {
        for (status, name) in [
            (401, "refused"),
            (429, "rate_limited"),
            (400, "misconfigured"),
            (415, "misconfigured"),
            (403, "denied"),
            (404, "denied"),
            (405, "denied"),
            (500, "unknown"),
            (502, "unknown"),
            (504, "unknown"),
            (302, "unknown"),
            (408, "unknown"),
            (204, "unknown"),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(of_status(status, &HeaderMap::new()).as_str(), name, "{status}");
        }
    }
}
