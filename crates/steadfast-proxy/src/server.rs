use std::{
    convert::Infallible, fmt, future::Future, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use steadfast::{BaseUrl, Client, call::Routes, spec::Paths};
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
    description,
    forward::Forward,
    front::{Admission, Admitted, BODY_LIMIT, Framing, Front, Hosts, Local, Refusal, Scope, Shared},
    listener::{Accept, Limits, listen},
    login,
    orders_of::OrdersOf,
    screen::{Admit, Peer, Screened, Talk},
    sharing::SharedOrders,
    strangers::Stranger,
};

/// How long a connection may be idle, or a request take to be read by HTTP.
const IDLE: Duration = Duration::from_secs(75);
/// How long a body may take.
const BODY_PATIENCE: Duration = Duration::from_secs(10);

/// A sidecar: the service's own paths on a local address, with the stack behind them.
///
/// # Clone
///
/// Clones are the same sidecar.
#[derive(Clone)]
pub struct Proxy {
    pub(crate) forward: Arc<Forward>,
    admission: Shared,
    routes: Arc<Routes>,
    /// The document of `GET /openapi.json`.
    described: Bytes,
    passes_intent: bool,
    /// The account or the sandbox whose orders it places, as it tells.
    orders_of: Option<OrdersOf>,
    pub(crate) limits: Limits,
    pub(crate) reload: Option<Reload>,
}

/// Reads the configuration again. Returns what has changed, or why nothing has.
pub(crate) type Reload = Arc<dyn Fn() -> Result<String, String> + Send + Sync>;

impl Proxy {
    /// Passes requests of those whom `admission` admits on to the service at `base` by `client`.
    ///
    /// `paths` are those of the client. Its routes should [guard](Routes::guard_unknown) unknown paths.
    #[must_use]
    pub fn new(client: Client, base: BaseUrl, paths: &Paths, admission: impl Into<Admission>) -> Self {
        let mut random = [0; 8];
        // Without chance the names of two processes could be the same, and their orders be taken for one.
        let prefix = match getrandom::fill(&mut random) {
            Ok(()) => u64::from_le_bytes(random),
            Err(_) => u64::from(std::process::id()),
        };
        let forward = Forward::new(client, base, format!("{prefix:016x}"));
        let admission = admission.into();
        forward.switch.read_only(admission.reads_only());
        Self {
            forward: Arc::new(forward),
            admission: Shared::new(admission),
            routes: Arc::new(Routes::new(paths)),
            described: description::document(paths),
            passes_intent: false,
            orders_of: None,
            limits: Limits::default(),
            reload: None,
        }
    }

    /// Changes whom all listeners admit, from the next request of each connection on. Returns true if the tokens are
    /// others than before; the dashboard's links and cookies end then, for they came by the old ones.
    ///
    /// If it [only reads](Admission::read_only), the client is halted as long as it does: orders that wait in a queue do
    /// not leave either, and are told so.
    pub fn admit(&self, admission: Admission) -> bool {
        let reads_only = admission.reads_only();
        let changed = self.admission.replace(admission);
        self.forward.switch.read_only(reads_only);
        if changed {
            self.forward.dashboard.access.forget();
        }
        changed
    }

    /// Shares the orders of the account with other sidecars. `orders` says who owns them. An order or a change that another
    /// one would have to place is answered with 503.
    #[must_use]
    pub fn shares_orders(self, orders: Arc<dyn SharedOrders>) -> Self {
        // They are given once, before it serves.
        let _ = self.forward.shared.set(orders);
        self
    }

    /// Sends requests through another client from now on: one with the orders of the account, or without them. Requests on their
    /// way end with the client before. A halt holds on, and what the client's journal left in doubt is looked for.
    ///
    /// # Panics
    ///
    /// If it is called outside of a tokio runtime.
    pub fn replace_client(&self, client: Client) {
        self.forward.replace(client);
        tokio::spawn(search(self.client()));
    }

    /// Returns the client that requests go through now.
    #[must_use]
    pub fn client(&self) -> Arc<Client> {
        self.forward.client.get()
    }

    /// Lets an operator read the configuration again, by `POST /-/reload`. `reload` returns what has changed, or why
    /// nothing has. It must not block for long.
    #[must_use]
    pub fn on_reload(self, reload: impl Fn() -> Result<String, String> + Send + Sync + 'static) -> Self {
        Self { reload: Some(Arc::new(reload)), ..self }
    }

    /// Passes `x-test-intent` on, the ground truth of tests at a sandbox. No other service may get it.
    #[must_use]
    pub fn pass_test_intent(self) -> Self {
        Self { passes_intent: true, ..self }
    }

    /// Tells programs whose orders it places, by [`OrdersOf::HEADER`] in the answer to `GET /openapi.json`. If it is a sandbox's,
    /// it tells that as well to a request without a local token.
    #[must_use]
    pub fn orders_of(self, whose: OrdersOf) -> Self {
        Self { orders_of: Some(whose), ..self }
    }

    /// Returns the number of orders whose callers wait for an answer.
    #[must_use]
    pub fn waiting_orders(&self) -> usize {
        self.forward.orders.running()
    }

    /// Takes no further order or change from now on, and lets none leave that waits in a queue. Those on their way are
    /// answered. Cancels and reads pass as before, until [`serve`](Self::serve) ends.
    pub fn stop(&self) {
        self.forward.switch.end();
    }

    /// Waits until every order and change on its way is answered. To be called after [`stop`](Self::stop).
    pub async fn drained(&self) {
        self.forward.drained().await;
    }

    /// True between the start and [`stop`](Self::stop).
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.forward.switch.is_running()
    }

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

    /// Names the account on the dashboard.
    #[must_use]
    pub fn account(self, name: impl Into<String>) -> Self {
        self.forward.dashboard.name_account(name.into());
        self
    }

    /// Returns a link to the dashboard on the operator's listener at this address. It serves once, within ten minutes;
    /// `POST /-/link` makes another one. Its visitor may halt and resume.
    ///
    /// `None` if the system has no random numbers.
    #[must_use]
    pub fn dashboard_link(&self, operators: SocketAddr) -> Option<String> {
        let secret = self.forward.dashboard.access.link(Scope::Trade)?;
        Some(format!("http://{operators}/#{secret}"))
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

/// Looks for the orders that earlier processes left in doubt.
async fn search(client: Arc<Client>) {
    if let Err(error) = client.recover().await {
        tracing::debug!(%error, "no search for orders of earlier processes");
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("base", &self.forward.base).finish_non_exhaustive()
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

/// Makes an answer in plain text.
pub(crate) fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::own(text));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}
