use std::{
    future::Future,
    net::{IpAddr, Ipv4Addr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, UNIX_EPOCH},
};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body_util::BodyExt;
use tower_service::Service;

use crate::{
    arrival::{Action, Arrival, Hint, Page, UnreadBody},
    body::{Body, ConnectionReset},
    sandbox::Shared,
};

/// How much of a request's body is read; an order's form is a few hundred bytes.
const BODY_LIMIT: usize = 64 * 1024;

/// How long the name of an intent may be; the ground truth keeps a million of them.
const LONGEST_INTENT: usize = 200;
/// The end of the year 9999, behind which HTTP has no dates.
const LAST_DATE: Duration = Duration::from_secs(253_402_300_799);

/// The gateway as a tower service, without sockets: what the TCP server puts behind each connection.
///
/// Its error is a connection that was reset without an answer.
///
/// # Clone
///
/// Clones are the same gateway.
#[derive(Clone, Debug)]
pub struct Gateway {
    shared: Arc<Shared>,
}

/// The address that a request comes from, as a request extension; 127.0.0.1 without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerIp(pub IpAddr);

impl Gateway {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    async fn answer<B>(shared: Arc<Shared>, request: Request<B>) -> Result<Response<Body>, ConnectionReset>
    where
        B: http_body::Body<Data = Bytes>,
    {
        let (parts, body) = request.into_parts();
        let text = |name: header::HeaderName| {
            // Two values contradict each other; none of them is believed.
            let mut values = parts.headers.get_all(name).iter();
            let value = values.next().and_then(|value| value.to_str().ok()).map(str::to_owned);
            value.filter(|_| values.next().is_none())
        };
        let arrival = Arrival {
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().map(str::to_owned),
            content_type: text(header::CONTENT_TYPE),
            authorization: text(header::AUTHORIZATION),
            intent: text(header::HeaderName::from_static("x-test-intent"))
                .filter(|intent| intent.len() <= LONGEST_INTENT),
            peer: parts.extensions.get().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |PeerIp(ip)| *ip),
            method: parts.method,
            body: read(body).await,
        };
        let (reply, wall) = {
            let now = shared.clock.now();
            let mut engine = shared.engine.lock();
            (engine.receive(now, &arrival), engine.wall(now))
        };
        if !reply.after.is_zero() {
            tokio::time::sleep(reply.after).await;
        }
        match reply.action {
            Action::Respond(page) => Ok(response(page, wall.saturating_add(reply.after))),
            Action::Reset => Err(ConnectionReset),
        }
    }
}

impl<B> Service<Request<B>> for Gateway
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = ConnectionReset;
    // Boxed: this is the far end of a connection, not a layer on its way.
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, ConnectionReset>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectionReset>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(Self::answer(self.shared.clone(), request))
    }
}

async fn read<B: http_body::Body<Data = Bytes>>(body: B) -> Result<Bytes, UnreadBody> {
    let mut body = std::pin::pin!(body);
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| UnreadBody::Broken)?;
        if let Ok(data) = frame.into_data() {
            if read.len() + data.len() > BODY_LIMIT {
                return Err(UnreadBody::TooLarge);
            }
            read.extend_from_slice(&data);
        }
    }
    Ok(read.freeze())
}

fn response(page: Page, wall: Duration) -> Response<Body> {
    let mut headers = HeaderMap::with_capacity(4);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(page.content_type));
    let skew = Duration::from_secs(page.date_skew.unsigned_abs().into());
    let shown = if page.date_skew < 0 { wall.saturating_sub(skew) } else { wall.saturating_add(skew) };
    let date = httpdate::fmt_http_date(UNIX_EPOCH + shown.min(LAST_DATE));
    let hint = page.hint.as_ref().map(|hint| match hint {
        Hint::Location(address) => (header::LOCATION, address.as_str()),
        Hint::RetryAfter(wait) => (header::RETRY_AFTER, wait.as_ref()),
    });
    for (name, text) in [Some((header::DATE, date.as_str())), hint].into_iter().flatten() {
        if let Ok(value) = HeaderValue::from_str(text) {
            headers.insert(name, value);
        }
    }
    let mut response = Response::new(Body::new(page.content));
    *response.status_mut() = page.status;
    *response.headers_mut() = headers;
    response
}
