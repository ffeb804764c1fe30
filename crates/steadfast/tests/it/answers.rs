//! A small gateway that answers as a test says, and records what reached it.

use std::{
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use steadfast::{Access, BoxError, Client, ClientBuilder, OrderRequest, Paths, dedup::Settings};
use steadfast_verify::noon::at_noon;
use tokio::time::{Instant, sleep};
use tower::Service;

/// How long every answer takes.
pub(crate) const TRIP: Duration = Duration::from_millis(20);

pub(crate) const NO_DATA: &str = r#"{"s":"no-data","msg":"no-data"}"#;
pub(crate) const GATEWAY_TIMED_OUT: &str = r#"{"s":"error","msg":"Gateway timedout"}"#;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Duration,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: String,
}

/// The answer, or `None` for a connection that ends instead.
pub(crate) type Reply = Option<Response<Full<Bytes>>>;

pub(crate) fn reply(status: u16, body: impl Into<Bytes>) -> Reply {
    Response::builder().status(status).body(Full::from(body.into())).ok()
}

pub(crate) fn reply_with(status: u16, headers: HeaderMap, body: impl Into<Bytes>) -> Reply {
    let mut response = Response::builder().status(status).body(Full::from(body.into())).ok()?;
    *response.headers_mut() = headers;
    Some(response)
}

pub(crate) fn placed(order_id: impl std::fmt::Display) -> String {
    format!(r#"{{"s":"ok","d":{{"msg":"placed","orderId":"{order_id}"}}}}"#)
}

pub(crate) fn list(records: &[String]) -> String {
    format!(r#"{{"s":"ok","d":[{}]}}"#, records.join(","))
}

/// Returns the record of [`order`](crate::world::order).
pub(crate) fn record(order_id: &str, order: &OrderRequest) -> String {
    let price = order.limit_price().unwrap();
    format!(
        r#"{{"orderId":"{order_id}","symId":"{}","side":"buy","qty":10,"type":"limit","product":"delivery","validity":"day","status":"open","legType":"main","limitPrice":{price}}}"#,
        order.sym_id()
    )
}

type Answer = dyn Fn(&Arrival, usize) -> Reply + Send + Sync;

/// Answers each request by its content and by how many like it have come, itself included.
#[derive(Clone)]
pub(crate) struct Answers {
    start: Instant,
    arrivals: Arc<Mutex<Vec<Arrival>>>,
    answer: Arc<Answer>,
}

impl Answers {
    pub(crate) fn with(answer: impl Fn(&Arrival, usize) -> Reply + Send + Sync + 'static) -> Self {
        Self { start: Instant::now(), arrivals: Arc::default(), answer: Arc::new(answer) }
    }

    /// Answers the first order by `first` and places all others; the first list is empty, later ones are
    /// `list`.
    pub(crate) fn to_first_order(
        first: impl Fn() -> Reply + Send + Sync + 'static,
        list: impl Fn() -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::with(move |arrival, number| match (&arrival.method, number) {
            (&Method::POST, 1) => first(),
            (&Method::POST, _) => reply(200, placed(number)),
            (_, 1) => reply(200, NO_DATA),
            _ => list(),
        })
    }

    pub(crate) fn builder(&self) -> ClientBuilder {
        let access = Access::token("the-api-key", "the-access-token").unwrap();
        Client::builder("http://localhost/v2".parse().unwrap(), access)
            .paths(Paths::public())
            .order_safety(at_noon(Settings::default()))
    }

    pub(crate) fn client(&self) -> Client {
        self.builder().build_over(self.clone()).unwrap()
    }

    pub(crate) fn arrivals(&self) -> Vec<Arrival> {
        self.arrivals.lock().unwrap().clone()
    }

    /// Returns how many requests had a path ending in `path`.
    pub(crate) fn count(&self, path: &str) -> usize {
        self.arrivals().iter().filter(|arrival| arrival.path.ends_with(path)).count()
    }

    pub(crate) fn orders_sent(&self) -> usize {
        self.count("/place-order")
    }
}

impl<B> Service<Request<B>> for Answers
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map_err(Into::into)?.to_bytes();
            let arrival = Arrival {
                at: this.start.elapsed(),
                method: head.method,
                path: head.uri.path().to_owned(),
                body: String::from_utf8_lossy(&body).into_owned(),
            };
            let number = {
                let mut arrivals = this.arrivals.lock().unwrap();
                arrivals.push(arrival.clone());
                let alike =
                    |other: &&Arrival| (&other.method, &other.path) == (&arrival.method, &arrival.path);
                arrivals.iter().filter(alike).count()
            };
            sleep(TRIP).await;
            (this.answer)(&arrival, number).ok_or_else(|| "connection reset".into())
        })
    }
}
