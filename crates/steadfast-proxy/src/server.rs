//! Serves the requests of programs and operators.

use std::{convert::Infallible, future::Future, io, pin::pin, sync::Arc, time::Duration};

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::timeout,
};

use crate::{
    admin,
    answer::{AnswerBody, Own},
    front::{Admitted, BODY_LIMIT, Framing, Front, Hosts, Local, Refusal, Scope},
    listener::{Accept, listen},
    login,
    orders_of::OrdersOf,
    proxy::{Proxy, search},
    screen::{Admit, Peer, Screened, Talk},
    strangers::Stranger,
};

/// How long a connection may be idle, or a request take to be read by HTTP.
const IDLE: Duration = Duration::from_secs(75);
/// How long a body may take.
const BODY_PATIENCE: Duration = Duration::from_secs(10);

impl Proxy {
    /// Serves trading programs on `listener` until `shutdown` completes, and then what is open until it is answered.
    ///
    /// # Errors
    ///
    /// The listener's, if it fails for good.
    ///
    /// # Cancellation
    ///
    /// Dropping the future drops all connections. Orders on their way are still looked for, and never sent again.
    pub async fn serve(&self, listener: TcpListener, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let bound = listener.local_addr()?;
        let hosts = |stream: &TcpStream| Hosts::of([bound, stream.local_addr().unwrap_or(bound)]);
        self.serve_programs(listener, hosts, shutdown).await
    }

    /// As [`serve`](Self::serve), for programs of this user on a Unix socket. Those of other users are turned away, and a
    /// token is needed as well. Its host is `localhost`.
    ///
    /// # Errors
    ///
    /// As [`serve`](Self::serve).
    #[cfg(unix)]
    pub async fn serve_unix(
        &self,
        listener: tokio::net::UnixListener,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let hosts = |_: &tokio::net::UnixStream| Hosts::of_socket();
        self.serve_programs(crate::listener::OwnSocket::new(listener)?, hosts, shutdown).await
    }

    async fn serve_programs<L: Accept>(
        &self,
        listener: L,
        hosts: impl Fn(&L::Stream) -> Hosts,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let mut searching = JoinSet::new();
        // By itself the search for orders of earlier processes would begin with the next order, and an equal one has to
        // wait for its end.
        searching.spawn(search(self.client()));
        listen(listener, self.limits, shutdown, |stream, stop, caller| {
            let proxy = self.clone();
            let front = Front::sharing(hosts(&stream), self.admission.clone(), self.routes.clone());
            let front = if self.passes_intent { front.passing_intent() } else { front };
            let known = caller.clone();
            let admit: Admit<Admitted> = Arc::new(move |head| {
                let admitted = front.admit(head)?;
                if admitted.local != Some(Local::Login) {
                    known.know();
                }
                let framing = admitted.framing;
                Ok((admitted, framing))
            });
            async move {
                converse(stream, admit, stop, caller, move |request, verdict, talk| {
                    let proxy = proxy.clone();
                    async move { proxy.answer(request, verdict, talk).await }
                })
                .await;
            }
        })
        .await
    }

    /// Serves an operator on `listener`: `GET /livez`, `/readyz`, `/startupz` and `/metrics`, `POST /-/halt`, `/-/resume`,
    /// `/-/reload`, `/-/rule`, `/-/accept` and `/-/link`, and the [dashboard](crate#dashboard). The first three need no token,
    /// `/metrics` and `/-/link` any, and the others one that trades.
    ///
    /// # Errors
    ///
    /// As [`serve`](Self::serve).
    pub async fn serve_admin(
        &self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let bound = listener.local_addr()?;
        let serving = listen(listener, self.limits, shutdown, |stream, stop, caller| {
            let (proxy, local) = (self.clone(), stream.local_addr().unwrap_or(bound));
            let front =
                Front::sharing(Hosts::of([bound, local]), self.admission.clone(), self.routes.clone());
            let dashboard = self.forward.dashboard.clone();
            let known = caller.clone();
            let admit: Admit<admin::Task> = Arc::new(move |head| {
                let (task, framing) = admin::admit(&front, &dashboard.access, head)?;
                if task.is_of_known() {
                    known.know();
                }
                Ok((task, framing))
            });
            async move {
                let ending = stop.clone();
                converse(stream, admit, stop, caller, move |_, verdict: Result<admin::Task, Refusal>, _| {
                    let (proxy, ending) = (proxy.clone(), ending.clone());
                    async move {
                        match verdict {
                            Ok(task) => admin::answer(&proxy, task, &ending).await,
                            Err(refusal) => Own::refusal(refusal).into_response(),
                        }
                    }
                })
                .await;
            }
        });
        tokio::select! {
            served = serving => served,
            () = self.forward.dashboard.watch() => Ok(()),
        }
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        verdict: Result<Admitted, Refusal>,
        talk: Arc<Talk<Admitted>>,
    ) -> Response<AnswerBody> {
        let admitted = match verdict {
            Ok(admitted) => admitted,
            Err(refusal) => {
                self.forward.dashboard.refused(refusal.details());
                let answer = Own::refusal(refusal).into_response();
                // A stranger learns of no account, and a web page of nothing at all.
                let is_told =
                    refusal == Refusal::Token && matches!(self.orders_of, Some(OrdersOf::Sandbox(_)));
                return if is_told { self.telling_whose(answer) } else { answer };
            }
        };
        let id = admitted.request_id.as_deref().and_then(|id| HeaderValue::from_str(id).ok());
        let mut answer = self.admitted(request, admitted, talk).await;
        if let Some(id) = id {
            answer.headers_mut().insert("x-request-id", id);
        }
        answer
    }

    fn telling_whose(&self, mut answer: Response<AnswerBody>) -> Response<AnswerBody> {
        let whose = self.orders_of.as_ref().and_then(OrdersOf::value);
        answer.headers_mut().extend(whose.map(|whose| (OrdersOf::HEADER, whose)));
        answer
    }

    async fn admitted(
        &self,
        request: Request<Incoming>,
        admitted: Admitted,
        talk: Arc<Talk<Admitted>>,
    ) -> Response<AnswerBody> {
        let is_chunked = admitted.framing == Framing::Chunked;
        let own =
            |status, details| Own::new(status, "http_request_error", details).with("connection", "close");
        let body = match timeout(BODY_PATIENCE, Limited::new(request.into_body(), BODY_LIMIT).collect()).await
        {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
                return own(StatusCode::PAYLOAD_TOO_LARGE, "body is too long").into_response();
            }
            Ok(Err(_)) => return own(StatusCode::BAD_REQUEST, "body cannot be read").into_response(),
            Err(_) => return own(StatusCode::REQUEST_TIMEOUT, "body took too long").into_response(),
        };
        if let Some(local) = admitted.local {
            let mut answer = match local {
                Local::Description => {
                    let described = AnswerBody::own(self.described.clone());
                    self.telling_whose(admin::of_kind("application/json", described))
                }
                Local::Login => login::answer(&self.admission, &body),
            };
            // A connection that idles keeps the room of its longest answer.
            if is_chunked || local == Local::Description {
                answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            return answer;
        }
        let reads = Scope::needed(admitted.endpoint, &admitted.method) == Scope::Read;
        let reads_or_cancels = reads || admitted.method == Method::GET || admitted.method == Method::DELETE;
        let mut answer = if self.is_running() || reads_or_cancels {
            self.forward.answer(admitted, body, talk).await
        } else {
            self.forward.switch.refusal().into_response()
        };
        if is_chunked {
            // Chunks are not counted on the way, so nothing is read behind them.
            answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }
}

/// Serves HTTP on one connection until it ends or, once `stop` changes, what is open is answered.
/// It also ends, between two requests, when its caller has to make room.
async fn converse<I, T, F, A>(
    io: I,
    admit: Admit<T>,
    mut stop: watch::Receiver<()>,
    caller: Arc<Stranger>,
    answer: A,
) where
    I: AsyncRead + AsyncWrite + Peer + Unpin,
    T: 'static,
    A: Fn(Request<Incoming>, Result<T, Refusal>, Arc<Talk<T>>) -> F,
    F: Future<Output = Response<AnswerBody>>,
{
    let (screened, talk) = Screened::new(io, admit);
    let (retiring, resting) = (talk.clone(), caller.clone());
    let service = service_fn(move |request| {
        // Boxed: HTTP keeps room for a request's future as long as its connection lives, and this one is large.
        let (answer, caller) = (Box::pin(answer(request, talk.next(), talk.clone())), resting.clone());
        async move {
            let answer = answer.await;
            caller.rest();
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .max_headers(80)
        .serve_connection(TokioIo::new(screened), service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        _ = stop.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        () = caller.retired() => {
            retiring.retire();
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}
