//! The client's own view of its sends. The policy is judged by it; in a pipe the gateway's end sees less.

use std::{
    error::Error,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response, header};
use http_body::{Body, Frame, SizeHint};
use steadfast::{BoxError, Outcome, RequestBody, call::Failure};
use tokio::time::Instant;
use tower::Service;

use crate::sim::wire::{Call, Ended, Says, Wire, exchange::retry_after, text};

/// A service between a stack and its HTTP client that notes each send and its end in the wire's trace.
///
/// It sees what the client sees, so every rule of the policy can be decided: a send that was cut is one whose body was
/// begun, wherever its bytes ended. The gateway's end counts the requests that arrive whole.
///
/// # Clone
///
/// Clones note in the same trace.
#[derive(Clone, Debug)]
pub(crate) struct Witness<S> {
    inner: S,
    wire: Wire,
}

impl<S> Witness<S> {
    pub(super) fn new(inner: S, wire: Wire) -> Self {
        Self { inner, wire }
    }
}

impl<S, B> Service<Request<RequestBody>> for Witness<S>
where
    S: Service<Request<Sent<RequestBody>>, Response = Response<B>, Error = BoxError>,
    S::Future: Send + 'static,
    B: Body<Data = Bytes>,
{
    type Response = Response<Answer<B>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let (parts, body) = request.into_parts();
        let token = text(&parts, header::AUTHORIZATION).to_owned();
        let note = Note(Arc::new(Noted {
            of: Call::of(&parts),
            token,
            wire: self.wire.clone(),
            stage: Mutex::default(),
        }));
        // An empty body is never polled.
        if body.is_end_stream() {
            note.left();
        }
        let sent = self.inner.call(Request::from_parts(parts, Sent { body, note: note.clone() }));
        Box::pin(async move {
            match sent.await {
                Ok(response) => Ok(note.answered(response)),
                Err(error) => {
                    note.broke(&*error);
                    Err(error)
                }
            }
        })
    }
}

/// One send.
#[derive(Clone, Debug)]
struct Note(Arc<Noted>);

#[derive(Debug)]
struct Noted {
    of: Call,
    token: String,
    wire: Wire,
    stage: Mutex<Stage>,
}

/// How far a send got.
#[derive(Clone, Copy, Debug, Default)]
enum Stage {
    #[default]
    Waiting,
    /// The stack refused it at the last moment.
    Withheld,
    /// It left, with this number in the trace.
    Left(usize),
}

impl Note {
    fn left(&self) -> usize {
        let Noted { of, token, wire, stage } = &*self.0;
        let mut stage = stage.lock().unwrap_or_else(PoisonError::into_inner);
        if let Stage::Left(exchange) = *stage {
            return exchange;
        }
        let exchange = wire.shared.sends(of.clone(), token);
        *stage = Stage::Left(exchange);
        exchange
    }

    fn withheld(&self) {
        *self.0.stage.lock().unwrap_or_else(PoisonError::into_inner) = Stage::Withheld;
    }

    /// Records a failed send. If the client takes it for unsent, it must not arrive, however far it got.
    fn broke(&self, error: &(dyn Error + 'static)) {
        let stage = *self.0.stage.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = match stage {
            Stage::Withheld => return,
            Stage::Waiting => Ended::NotSent,
            Stage::Left(_) if Failure::outcome_of(error) == Outcome::NotSent => Ended::NotSent,
            Stage::Left(_) => Ended::Broken,
        };
        self.0.wire.shared.ended(self.left(), Instant::now(), ended);
    }

    fn answered<B: Body>(self, response: Response<B>) -> Response<Answer<B>> {
        let ended = Ended::Answered {
            status: response.status().as_u16(),
            says: Says::Nothing,
            retry_after: retry_after(response.headers()),
        };
        let at = Instant::now();
        self.0.wire.shared.ended(self.left(), at, ended);
        response.map(|body| {
            // Only the answers to orders are read.
            let read = matches!(self.0.of, Call::Order(_)).then(Vec::new);
            let mut answer = Answer { body, read, note: Some(self), at, ended };
            answer.look_for_the_end();
            answer
        })
    }
}

/// The body of a request, whose first poll is the send.
#[derive(Debug)]
pub(crate) struct Sent<B> {
    body: B,
    note: Note,
}

impl<B> Body for Sent<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Err(_)) => self.note.withheld(),
            Some(Ok(_)) | None => {
                self.note.left();
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of an answer, as the client reads it.
#[derive(Debug)]
pub(crate) struct Answer<B> {
    body: B,
    read: Option<Vec<u8>>,
    /// `None` once its end was seen.
    note: Option<Note>,
    /// When the client knew enough to decide; a complete body may be polled for its end later, or never.
    at: Instant,
    ended: Ended,
}

impl<B: Body> Answer<B> {
    /// True if the body decides. With any other status it does not, and may be read much later.
    fn body_decides(&self) -> bool {
        matches!(self.ended, Ended::Answered { status: 200 | 400, .. })
    }

    fn look_for_the_end(&mut self) {
        if self.body.is_end_stream() {
            self.ends(true);
        }
    }

    fn ends(&mut self, is_whole: bool) {
        let Some(note) = self.note.take() else { return };
        let read = self.read.as_deref().filter(|_| is_whole);
        if let (Ended::Answered { says, .. }, Some(read)) = (&mut self.ended, read) {
            *says = Says::of(read);
        }
        note.0.wire.shared.ended(note.left(), self.at, self.ended);
    }
}

impl<B> Body for Answer<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = &mut *self;
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if this.body_decides() {
                    this.at = Instant::now();
                }
                if let (Some(read), Some(data)) = (&mut this.read, frame.data_ref()) {
                    read.extend_from_slice(data);
                }
                this.look_for_the_end();
            }
            Some(Err(_)) => this.ends(false),
            None => this.ends(true),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
