//! The listener of an operator: health, figures, the kill switch and the dashboard.

use std::fmt::Write;

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header};
use tokio::sync::watch;

use crate::{
    answer::{AnswerBody, text},
    dashboard::{Access, DASHBOARD, DOOR, Page, cookie_name, protect, set_cookie},
    forward::Forward,
    front::{Framing, Front, Head, Refusal, Scope, Visitor, bearer},
    halting::{halt, resume},
    proxy::Proxy,
    ruling::{RULE, Ruled},
    sharing, token_health, withheld,
};

/// A call of an operator. Not to be printed: it may hold a one-time token.
pub(crate) enum Task {
    Live,
    Started,
    /// Whether it can be of use; if true, whether it places orders.
    Ready(bool),
    Metrics,
    Halt,
    Resume,
    Reload,
    /// Rule on an order; `None` if the query cannot be read.
    Rule(Option<Ruled>),
    /// Accept the shared journal of the orders by this mark.
    Accept(String),
    /// The page for a visitor without a cookie.
    Door,
    Page,
    State(Scope),
    Events(Scope),
    /// Exchange a one-time token for a cookie of this name.
    Enter {
        link: Bytes,
        cookie: String,
    },
    /// Make a link to this host.
    Link {
        scope: Scope,
        host: String,
    },
}

impl Task {
    /// True if its caller has shown a token or a cookie.
    pub(crate) fn is_of_known(&self) -> bool {
        !matches!(self, Self::Live | Self::Started | Self::Ready(_) | Self::Door | Self::Enter { .. })
    }
}

/// Decides about a call from its head.
pub(crate) fn admit(front: &Front, access: &Access, head: &[u8]) -> Result<(Task, Framing), Refusal> {
    let head = Head::parse(head)?;
    let framing = head.framing()?;
    let from = front.visitor(&head)?;
    if head.method() == Method::POST && framing != Framing::Length(0) {
        return Err(Refusal::UnexpectedBody);
    }
    let known = access.visitor(&head);
    let call = (head.method().as_str(), head.target());
    let task = match call {
        // A supervisor has no token, and learns no more than whether the process lives and can be of use.
        ("GET", "/livez") => Task::Live,
        ("GET", "/startupz") => Task::Started,
        ("GET", "/readyz") => Task::Ready(false),
        // For what balances orders among several sidecars.
        ("GET", "/readyz?role=owner") => Task::Ready(true),
        ("GET", "/") if known.is_some() => Task::Page,
        // The fragment of a link does not reach this side, so a page has to send it. It holds nothing else.
        ("GET", "/") => Task::Door,
        ("POST", "/-/enter") if from == Visitor::OwnPage => {
            let link = bearer(&head)?.ok_or(Refusal::Token)?;
            Task::Enter { link: Bytes::copy_from_slice(link), cookie: cookie_name(&head)? }
        }
        _ => {
            let granted = match (from, known) {
                (Visitor::OwnPage, known) => known.ok_or(Refusal::Token)?,
                // An address that a user typed. A program has a token, and no link can make a browser post.
                (Visitor::Program, Some(scope)) if head.method() == Method::GET => scope,
                (Visitor::Program, _) => front.token(&head)?,
            };
            // A stranger is not told which calls there are.
            permitted(call, from, granted, &head)?
        }
    };
    Ok((task, framing))
}

/// Decides about a caller who is known.
fn permitted(call: (&str, &str), from: Visitor, granted: Scope, head: &Head<'_>) -> Result<Task, Refusal> {
    let (task, needed) = match call {
        ("GET", "/metrics") => (Task::Metrics, Scope::Read),
        ("GET", "/-/state") => (Task::State(granted), Scope::Read),
        ("GET", "/-/events") => (Task::Events(granted), Scope::Read),
        ("POST", "/-/halt") => (Task::Halt, Scope::Trade),
        ("POST", "/-/resume") => (Task::Resume, Scope::Trade),
        // The page has no switch for it.
        ("POST", "/-/reload") if from == Visitor::Program => (Task::Reload, Scope::Trade),
        ("POST", target) if path_of(target) == RULE => {
            let query = target.split_once('?').map_or("", |(_, query)| query);
            (Task::Rule(Ruled::read(query)), Scope::Trade)
        }
        ("POST", target) if target.starts_with(ACCEPT) => {
            (Task::Accept(target[ACCEPT.len()..].to_owned()), Scope::Trade)
        }
        // A cookie must not outlive itself.
        ("POST", "/-/link") if from == Visitor::Program => {
            let host = head.one("host")?.ok_or(Refusal::Host)?;
            let host = String::from_utf8_lossy(host).into_owned();
            (Task::Link { scope: granted, host }, Scope::Read)
        }
        (_, "/" | "/livez" | "/readyz" | "/startupz" | "/metrics") => return Err(Refusal::Method),
        (_, "/-/state" | "/-/events" | "/-/halt" | "/-/resume" | "/-/reload" | "/-/link" | "/-/enter") => {
            return Err(Refusal::Method);
        }
        (_, target) if path_of(target) == RULE || target.starts_with(ACCEPT) => return Err(Refusal::Method),
        _ => return Err(Refusal::Path),
    };
    if granted < needed { Err(Refusal::Scope) } else { Ok(task) }
}

const ACCEPT: &str = "/-/accept?mark=";

fn path_of(target: &str) -> &str {
    target.split_once('?').map_or(target, |(path, _)| path)
}

/// Answers a call. A stream ends when `stop` changes.
pub(crate) async fn answer(proxy: &Proxy, task: Task, stop: &watch::Receiver<()>) -> Response<AnswerBody> {
    let Forward { dashboard, .. } = &*proxy.forward;
    let mut answer = match task {
        Task::Live => text(StatusCode::OK, "ok\n"),
        Task::Started | Task::Ready(_) if !proxy.is_running() => {
            text(StatusCode::SERVICE_UNAVAILABLE, "ending\n")
        }
        // A process without a token has started all the same: to start it again brings none.
        Task::Started => text(StatusCode::OK, "ok\n"),
        Task::Ready(owner) => match unready(proxy) {
            Some(why) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
            None => sharing::readiness(proxy.forward.sharing(), owner),
        },
        Task::Metrics => text(StatusCode::OK, figures(proxy)),
        Task::Halt => halt(proxy).await,
        Task::Resume => resume(proxy).await,
        Task::Reload => match proxy.reload.as_ref().map(|reload| reload()) {
            Some(Ok(told)) => text(StatusCode::OK, told + "\n"),
            Some(Err(told)) => text(StatusCode::CONFLICT, told + "\n"),
            None => text(StatusCode::CONFLICT, "there is no config file\n"),
        },
        Task::Rule(Some(ruled)) => ruled.apply(proxy),
        Task::Rule(None) => text(
            StatusCode::BAD_REQUEST,
            "a ruling has account, intent, and placed=ORDER-ID or not-placed=\n",
        ),
        Task::Accept(mark) => match proxy.forward.shared.get() {
            Some(shared) => match shared.accept(mark).await {
                Ok(()) => text(StatusCode::OK, "accepted; the orders are taken in about 8 s\n"),
                Err(why) => text(StatusCode::CONFLICT, format!("{why}\n")),
            },
            None => text(StatusCode::CONFLICT, "orders are not shared\n"),
        },
        Task::Door => of_page(&DOOR, StatusCode::UNAUTHORIZED),
        Task::Page => of_page(&DASHBOARD, StatusCode::OK),
        Task::State(scope) => match serde_json::to_vec(&dashboard.state(scope)) {
            Ok(state) => of_kind("application/json", AnswerBody::own(state)),
            Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "state cannot be written\n"),
        },
        Task::Events(scope) => match dashboard.stream(scope, stop.clone()) {
            Some(stream) => of_kind("text/event-stream", AnswerBody::Events(Box::pin(stream))),
            None => text(StatusCode::SERVICE_UNAVAILABLE, "too many viewers\n"),
        },
        Task::Enter { link, cookie } => match dashboard.access.enter(&link) {
            Some(value) => entered(&set_cookie(&cookie, &value)),
            None => text(StatusCode::UNAUTHORIZED, "link was used, or is too old\n"),
        },
        Task::Link { scope, host } => match dashboard.access.link(scope) {
            Some(link) => text(StatusCode::OK, format!("http://{host}/#{link}\n")),
            None => text(StatusCode::SERVICE_UNAVAILABLE, "no random numbers\n"),
        },
    };
    protect(answer.headers_mut());
    answer
}

/// Returns why requests would fail, or all orders.
fn unready(proxy: &Proxy) -> Option<String> {
    let client = proxy.client();
    let no_order = || {
        proxy.forward.learn_day(&client);
        withheld::trouble(&client)
    };
    token_health::trouble(&client.tokens().status()).or_else(no_order)
}

fn of_page(page: &Page, status: StatusCode) -> Response<AnswerBody> {
    let mut answer = of_kind("text/html; charset=utf-8", AnswerBody::own(page.html().to_owned()));
    *answer.status_mut() = status;
    if let Ok(policy) = HeaderValue::from_str(page.policy()) {
        answer.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    answer
}

pub(crate) fn of_kind(kind: &'static str, body: AnswerBody) -> Response<AnswerBody> {
    let mut answer = Response::new(body);
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

fn entered(cookie: &str) -> Response<AnswerBody> {
    let mut answer = text(StatusCode::OK, "ok\n");
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        answer.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    answer
}

/// Writes the figures in Prometheus' text format.
fn figures(proxy: &Proxy) -> String {
    let client = proxy.client();
    let mut page = String::new();
    let unresolved = client.tracker().unresolved().len();
    for (name, help, value) in [
        (
            "orders_in_doubt",
            "orders of which it is not known whether they exist",
            client.in_doubt() + unresolved,
        ),
        ("orders_unresolved", "those of them that a person has to look for", unresolved),
        ("orders_in_flight", "orders that are sent and not answered", client.in_flight()),
        ("orders_waiting", "orders whose callers wait", proxy.waiting_orders()),
        ("halted", "1 while no order leaves", usize::from(client.is_halted())),
        (
            "orders_withheld",
            "1 while every order is withheld: the journal has failed, or the trading day is disputed",
            usize::from(withheld::trouble(&client).is_some()),
        ),
        ("running", "0 once the proxy was told to end", usize::from(proxy.is_running())),
    ] {
        // Writing to a string cannot fail.
        let _ = write!(
            page,
            "# HELP steadfast_{name} {help}\n# TYPE steadfast_{name} gauge\nsteadfast_{name} {value}\n"
        );
    }
    if let Some(sharing) = proxy.forward.sharing() {
        sharing::figures(&mut page, &sharing);
    }
    page
}
