use std::{
    future::Future,
    net::{IpAddr, Ipv4Addr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body_util::BodyExt;
use tokio::time::timeout;
use tower_service::Service;

use crate::{
    gateway::{
        log,
        reply::Action,
        request::{IncomingRequest, UnreadBody},
        shared::Shared,
    },
    wire::{
        Answer, Script,
        body::{Body, NoAnswer},
        page::Page,
        patience::BODY_TIMEOUT,
    },
};

/// How much of a request's body is read; an order's form is a few hundred bytes.
const BODY_LIMIT: usize = 64 * 1024;

/// The maximum length of an intent's name; the ground truth keeps a million of them.
const LONGEST_INTENT: usize = 200;

/// The gateway as a tower service without sockets; the TCP server uses it behind each connection.
///
/// Its error is a request without an answer. For faults whose bytes are not HTTP it returns what an HTTP client sees
/// of them ([`Seen`](crate::Seen)); faults of connections it refuses by name.
///
/// # Clone
///
/// Clones share the gateway.
#[derive(Clone, Debug)]
pub struct Gateway {
    shared: Arc<Shared>,
}

/// A request's source address, as an extension; 127.0.0.1 without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerIp(pub IpAddr);

impl Gateway {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Answers a request from a connection, with raw bytes if the fault requires them.
    ///
    /// For servers of the caller's own, such as [`serve_answers`](crate::wire::serve_answers). The tower service
    /// does the same, but returns what an HTTP client would see of the bytes.
    pub async fn answer<B>(&self, request: Request<B>) -> Answer<Body>
    where
        B: http_body::Body<Data = Bytes>,
    {
        let (action, wall) = self.act(request).await;
        match action {
            Action::Respond(page) => Answer::Response(response(page, wall)),
            Action::Reset => Answer::Reset,
            Action::Corrupt(corrupted) => Answer::Script(Script::of(corrupted, wall)),
        }
    }

    /// Answers a request without a connection.
    async fn answer_in_process<B>(self, request: Request<B>) -> Result<Response<Body>, NoAnswer>
    where
        B: http_body::Body<Data = Bytes>,
    {
        if let Some(fault) = self.shared.engine.lock().plan.connection_fault() {
            return Err(NoAnswer::NeedsConnection(fault));
        }
        let (action, wall) = self.act(request).await;
        let page = match action {
            Action::Respond(page) => page,
            Action::Reset => return Err(NoAnswer::Reset),
            Action::Corrupt(corrupted) => {
                let (after, page) = corrupted.into_seen(wall);
                tokio::time::sleep(after).await;
                page.ok_or(NoAnswer::Reset)?
            }
        };
        Ok(response(page, wall))
    }

    /// Returns the gateway's action for a request when it is due, with its wall clock then.
    async fn act<B>(&self, request: Request<B>) -> (Action, Duration)
    where
        B: http_body::Body<Data = Bytes>,
    {
        let shared = &self.shared;
        let (parts, body) = request.into_parts();
        let text = |name: header::HeaderName| {
            // Two values contradict each other, so neither is used.
            let mut values = parts.headers.get_all(name).iter();
            let value = values.next().and_then(|value| value.to_str().ok()).map(str::to_owned);
            value.filter(|_| values.next().is_none())
        };
        let incoming = IncomingRequest {
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().map(str::to_owned),
            content_type: text(header::CONTENT_TYPE),
            authorization: text(header::AUTHORIZATION),
            no_cache: text(header::CACHE_CONTROL).is_some_and(|value| {
                value.split(',').any(|part| part.trim().eq_ignore_ascii_case("no-cache"))
            }),
            intent: text(header::HeaderName::from_static("x-test-intent"))
                .filter(|intent| intent.len() <= LONGEST_INTENT),
            peer: parts.extensions.get().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |PeerIp(ip)| *ip),
            method: parts.method,
            body: read_in_time(body).await,
        };
        let ticket = shared.engine.lock().announce(&incoming);
        if !ticket.delay.is_zero() {
            tokio::time::sleep(ticket.delay).await;
        }
        let log = shared.front.log.as_ref();
        let (reply, wall, line) = {
            let now = shared.clock.now();
            let mut engine = shared.engine.lock();
            let reply = engine.receive(now, &incoming, ticket);
            let arrival = log.and_then(|_| engine.record.arrivals.back());
            (reply, engine.wall(now), arrival.map(|arrival| log::line(arrival, &incoming)))
        };
        if let (Some(log), Some(line)) = (log, line) {
            log.take(&line);
        }
        if !reply.after.is_zero() {
            tokio::time::sleep(reply.after).await;
        }
        (reply.action, wall.saturating_add(reply.after))
    }
}

impl<B> Service<Request<B>> for Gateway
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = NoAnswer;
    // Boxed: this is the end of a connection, not a layer on the client's path.
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, NoAnswer>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NoAnswer>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(self.clone().answer_in_process(request))
    }
}

/// Reads a body. A body that takes too long counts as broken: it is refused and its connection ends.
async fn read_in_time<B: http_body::Body<Data = Bytes>>(body: B) -> Result<Bytes, UnreadBody> {
    timeout(BODY_TIMEOUT, read(body)).await.unwrap_or(Err(UnreadBody::Broken))
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

pub(crate) fn response(page: Page, wall: Duration) -> Response<Body> {
    let mut headers = HeaderMap::with_capacity(4);
    for (name, text) in page.headers(wall) {
        if let Ok(value) = HeaderValue::from_str(&text) {
            headers.insert(name, value);
        }
    }
    let mut response = Response::new(Body::new(page.content));
    *response.status_mut() = page.status;
    *response.headers_mut() = headers;
    response
}
