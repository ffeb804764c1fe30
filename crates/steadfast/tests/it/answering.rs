//! A transport in memory that answers by a function and records the requests.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use steadfast::{Access, BoxError, Client, ClientBuilder, Paths, RequestBody};
use tokio::time::sleep;
use tower::Service;

pub(crate) type Body = UnsyncBoxBody<Bytes, BoxError>;

type Answer = dyn Fn(&Request<RequestBody>) -> Response<Body> + Send + Sync;

#[derive(Clone)]
pub(crate) struct Answering {
    answer: Arc<Answer>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Answering {
    pub(crate) fn with(
        answer: impl Fn(&Request<RequestBody>) -> Response<Body> + Send + Sync + 'static,
    ) -> Self {
        Self { answer: Arc::new(answer), asked: Arc::default() }
    }

    pub(crate) fn always(body: &'static str) -> Self {
        Self::with(move |_| Response::new(whole(body)))
    }

    /// Returns method and address of each request so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn client(&self) -> Client {
        builder().build_over(self.clone()).unwrap()
    }
}

pub(crate) fn builder() -> ClientBuilder {
    let access = Access::token("the-api-key", "the-access-token").unwrap();
    Client::builder("http://localhost/v2".parse().unwrap(), access).paths(Paths::public())
}

pub(crate) fn whole(body: impl Into<Bytes>) -> Body {
    Full::new(body.into()).map_err(|never| match never {}).boxed_unsync()
}

/// Returns a body that begins at once and then sends a blank after each `pause`, for ever.
pub(crate) fn trickle(beginning: &'static str, pause: Duration) -> Body {
    let blanks = futures_util::stream::unfold(beginning, move |piece| async move {
        if piece == " " {
            sleep(pause).await;
        }
        Some((Ok(Frame::data(Bytes::from(piece))), " "))
    });
    StreamBody::new(blanks).boxed_unsync()
}

impl Service<Request<RequestBody>> for Answering {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        self.asked.lock().unwrap().push(format!("{} {}", request.method(), request.uri()));
        let answer = (self.answer)(&request);
        Box::pin(async move {
            request.into_body().collect().await?;
            Ok(answer)
        })
    }
}
