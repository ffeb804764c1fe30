//! The far end of the wire: records what leaves, and lets a sandbox or a script answer.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use steadfast::{BoxError, spec::Form};
use steadfast_sandbox::Sandbox;
use tokio::time::Instant;
use tower::{Service, ServiceExt};

type Answer = Pin<Box<dyn Future<Output = Result<Response<Full<Bytes>>, BoxError>> + Send>>;

/// A transport that records every request that has left.
#[derive(Clone)]
pub(crate) struct Wire {
    far: Arc<dyn Fn(Request<Full<Bytes>>) -> Answer + Send + Sync>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

/// A request that has left.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) at: Instant,
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
    /// The status of its answer; zero if there was none.
    pub(crate) status: u16,
}

/// A scripted answer.
#[derive(Clone, Debug)]
pub(crate) struct Scripted {
    status: u16,
    body: String,
}

/// Returns a 200 with `d` as the envelope's payload.
pub(crate) fn ok(d: &str) -> Scripted {
    bare(&format!(r#"{{"s":"ok","d":{d}}}"#))
}

/// Returns a 200 with a raw body.
pub(crate) fn bare(body: &str) -> Scripted {
    Scripted { status: 200, body: body.to_owned() }
}

/// Returns an error in its envelope.
pub(crate) fn error(status: u16, msg: &str) -> Scripted {
    Scripted { status, body: format!(r#"{{"s":"error","msg":"{msg}"}}"#) }
}

/// Returns the token record of §2 in the form of §4.2.
pub(crate) fn token(token: &str) -> Scripted {
    bare(&format!(
        r#"{{"access_token":"{token}","token_type":"bearer","expires_in":86400,"scope":"general"}}"#
    ))
}

impl Scripted {
    fn response(&self) -> Response<Full<Bytes>> {
        Response::builder().status(self.status).body(Full::from(self.body.clone())).unwrap()
    }
}

impl Wire {
    pub(crate) fn to(sandbox: &Sandbox) -> Self {
        let gateway = sandbox.gateway();
        Self::new(move |request| {
            let gateway = gateway.clone();
            Box::pin(async move {
                let (head, body) = gateway.oneshot(request).await?.into_parts();
                Ok(Response::from_parts(head, Full::from(body.collect().await?.to_bytes())))
            })
        })
    }

    /// Gives the answers in turn, and repeats the last one for ever.
    pub(crate) fn scripted(answers: impl IntoIterator<Item = Scripted>) -> Self {
        let answers: Vec<Scripted> = answers.into_iter().collect();
        let next = Mutex::new(0);
        Self::new(move |_| {
            let mut next = next.lock().unwrap();
            let response = answers[(*next).min(answers.len() - 1)].response();
            *next += 1;
            Box::pin(async { Ok(response) })
        })
    }

    /// Answers each request by its content.
    pub(crate) fn answering(
        answer: impl Fn(&Request<Full<Bytes>>) -> Scripted + Send + Sync + 'static,
    ) -> Self {
        Self::new(move |request| {
            let response = answer(&request).response();
            Box::pin(async { Ok(response) })
        })
    }

    fn new(far: impl Fn(Request<Full<Bytes>>) -> Answer + Send + Sync + 'static) -> Self {
        Self { far: Arc::new(far), seen: Arc::default() }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Returns the only request that has left.
    #[track_caller]
    pub(crate) fn only(&self) -> Seen {
        let mut seen = self.seen();
        assert_eq!(seen.len(), 1, "{:?}", self.lines());
        seen.remove(0)
    }

    /// Returns the only request that has left to `path`; before an order the list is read.
    #[track_caller]
    pub(crate) fn only_to(&self, path: &str) -> Seen {
        let mut seen = self.to_path(path);
        assert_eq!(seen.len(), 1, "{:?}", self.lines());
        seen.remove(0)
    }

    /// Returns the requests and their statuses, as lines like `GET /api/oms/orders 200`.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.seen().iter().map(|seen| format!("{} {} {}", seen.method, seen.path(), seen.status)).collect()
    }

    /// Returns the whole seconds between one request and the next.
    pub(crate) fn pauses(&self) -> Vec<u64> {
        self.seen().windows(2).map(|pair| (pair[1].at - pair[0].at).as_secs()).collect()
    }

    /// Returns the requests to one path.
    pub(crate) fn to_path(&self, path: &str) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| seen.path() == path).collect()
    }
}

impl Seen {
    /// Returns the path below the version segment.
    pub(crate) fn path(&self) -> &str {
        self.uri.path().split_once("/v2").map_or(self.uri.path(), |(_, path)| path)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn authorization(&self) -> Option<&str> {
        self.header("authorization")
    }

    pub(crate) fn form(&self) -> Form {
        Form::parse(self.body.as_bytes()).unwrap()
    }

    /// Returns the names of the form's fields, in their order.
    pub(crate) fn fields(&self) -> Vec<String> {
        self.form().iter().map(|(name, _)| name.to_owned()).collect()
    }
}

impl<B> Service<Request<B>> for Wire
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Answer {
        let wire = self.clone();
        let (head, body) = request.into_parts();
        let body = Box::pin(body);
        Box::pin(async move {
            let body = body.collect().await.map_err(Into::into)?.to_bytes();
            let number = {
                let mut seen = wire.seen.lock().unwrap();
                seen.push(Seen {
                    at: Instant::now(),
                    method: head.method.clone(),
                    uri: head.uri.clone(),
                    headers: head.headers.clone(),
                    body: String::from_utf8(body.to_vec()).unwrap(),
                    status: 0,
                });
                seen.len() - 1
            };
            let response = (wire.far)(Request::from_parts(head, Full::from(body))).await?;
            wire.seen.lock().unwrap()[number].status = response.status().as_u16();
            Ok(response)
        })
    }
}
