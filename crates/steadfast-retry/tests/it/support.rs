use std::{
    collections::VecDeque,
    future::{Future, Ready, ready},
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Extensions, HeaderMap, Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use steadfast_call::{BoxError, Call, Failure, Fate, Outcome, Route, ext};
use steadfast_spec::Endpoint;
use tokio::time::{Instant, Sleep, sleep};
use tower::Service;

pub(crate) type Sent = Full<Bytes>;

pub(crate) const PLACED: &str = r#"{"s":"ok","d":{"orderId":"7","msg":"placed"}}"#;

pub(crate) fn error(msg: &str) -> String {
    format!(r#"{{"s":"error","msg":"{msg}"}}"#)
}

pub(crate) fn request(endpoint: Endpoint) -> Request<Sent> {
    let mut request = Request::builder()
        .method(endpoint.method())
        .uri("https://host/v2/x")
        .body(Sent::from("a=1"))
        .unwrap();
    let route = Arc::new(Route::new(endpoint));
    Call::of_mut(request.extensions_mut()).set_route(route);
    request
}

/// One step of a scripted body.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Data(Bytes),
    Trailers(HeaderMap),
    Pause(Duration),
    Fail(&'static str),
}

pub(crate) fn data(text: impl Into<Bytes>) -> Step {
    Step::Data(text.into())
}

/// A body that performs its steps in order. Its end is noticed only by polling it.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    steps: VecDeque<Step>,
    pause: Option<Pin<Box<Sleep>>>,
    hint: SizeHint,
    /// True if the end is known before it is polled, when only pauses are left.
    known_end: bool,
    /// Lives as long as the body, and counts how much of it was read.
    pub(crate) read: Arc<Mutex<usize>>,
}

impl Steps {
    pub(crate) fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { steps: steps.into_iter().collect(), ..Self::default() }
    }

    pub(crate) fn announcing(mut self, hint: SizeHint) -> Self {
        self.hint = hint;
        self
    }

    pub(crate) fn knowing_its_end(mut self) -> Self {
        self.known_end = true;
        self
    }
}

impl Body for Steps {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            if let Some(pause) = &mut self.pause {
                std::task::ready!(pause.as_mut().poll(cx));
                self.pause = None;
            }
            return Poll::Ready(match self.steps.pop_front() {
                None => None,
                Some(Step::Data(data)) => {
                    *self.read.lock().unwrap() += data.len();
                    Some(Ok(Frame::data(data)))
                }
                Some(Step::Trailers(trailers)) => Some(Ok(Frame::trailers(trailers))),
                Some(Step::Fail(text)) => Some(Err(text.into())),
                Some(Step::Pause(time)) => {
                    self.pause = Some(Box::pin(sleep(time)));
                    continue;
                }
            });
        }
    }

    fn is_end_stream(&self) -> bool {
        self.known_end && self.steps.iter().all(|step| matches!(step, Step::Pause(_)))
    }

    fn size_hint(&self) -> SizeHint {
        self.hint
    }
}

/// How one send ends.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Status(u16),
    Body(u16, String),
    Header(u16, &'static str, String),
    /// A `Retry-After` and the answer's own `Date`.
    Dated(u16, String, Option<String>),
    NeverLeft,
    Lost,
    Refused,
    /// An error that says nothing about the send.
    Plain,
}

/// Returns the body of a 4xx as §7 documents it, and nothing for every other status.
fn documented(status: u16) -> Sent {
    let row = steadfast_spec::ERRORS.iter().find(|row| row.status == status && status > 400 && status < 500);
    row.map_or_else(Sent::default, |row| {
        Sent::from(format!(r#"{{"s":"error","msg":"{}"}}"#, row.msg.unwrap_or("Unsupported media type")))
    })
}

impl Reply {
    /// A 429 carries its outcome, because no layer of these tests reads its text.
    pub(crate) fn give(self) -> Result<Response<Sent>, BoxError> {
        let mut answer = self.answer()?;
        if answer.status() == 429 {
            ext::Sent::of_mut(answer.extensions_mut()).set_outcome(Outcome::NotExecuted);
        }
        Ok(answer)
    }

    fn answer(self) -> Result<Response<Sent>, BoxError> {
        let builder = Response::builder();
        Ok(match self {
            Self::Status(status) => builder.status(status).body(documented(status))?,
            Self::Body(status, body) => builder.status(status).body(Sent::from(body))?,
            Self::Header(status, name, value) => {
                builder.status(status).header(name, value).body(documented(status))?
            }
            Self::Dated(status, until, date) => {
                let builder = builder.status(status).header("retry-after", until);
                let builder = date.into_iter().fold(builder, |builder, date| builder.header("date", date));
                builder.body(documented(status))?
            }
            Self::NeverLeft => return Err(Failure::new(Fate::NeverLeft, "no route to host").into()),
            Self::Lost => return Err(Failure::new(Fate::Lost { ended: None }, "connection reset").into()),
            Self::Refused => return Err(Failure::refused("queue full").into()),
            Self::Plain => return Err("broken".into()),
        })
    }
}

/// A service that follows a script, repeats its last line, and records its calls.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    replies: Arc<Mutex<VecDeque<Reply>>>,
    calls: Arc<Mutex<Vec<(Instant, Extensions)>>>,
    start: Instant,
}

impl Script {
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self {
            replies: Arc::new(Mutex::new(replies.into_iter().collect())),
            calls: Arc::default(),
            start: Instant::now(),
        }
    }

    pub(crate) fn sends(&self) -> usize {
        self.calls.lock().unwrap().len()
    }

    /// Returns the instants of the sends, relative to the start.
    pub(crate) fn trace(&self) -> Vec<Duration> {
        self.calls.lock().unwrap().iter().map(|(at, _)| *at - self.start).collect()
    }

    pub(crate) fn extensions(&self) -> Vec<Extensions> {
        self.calls.lock().unwrap().iter().map(|(_, extensions)| extensions.clone()).collect()
    }
}

impl<B> Service<Request<B>> for Script {
    type Response = Response<Sent>;
    type Error = BoxError;
    type Future = Ready<Result<Response<Sent>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.calls.lock().unwrap().push((Instant::now(), request.extensions().clone()));
        let mut replies = self.replies.lock().unwrap();
        let reply = if replies.len() > 1 { replies.pop_front() } else { replies.front().cloned() };
        ready(reply.unwrap_or(Reply::Status(200)).give())
    }
}

pub(crate) fn secs(secs: impl IntoIterator<Item = u64>) -> Vec<Duration> {
    secs.into_iter().map(Duration::from_secs).collect()
}
