//! The listener of an operator: health, figures and the kill switch.

use std::fmt::Write;

use http::{Method, Response, StatusCode};

use crate::{
    answer::AnswerBody,
    front::{Framing, Front, Head, Refusal, Scope},
    server::{Proxy, text},
};

/// A call of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Live,
    Ready,
    Metrics,
    Halt,
    Resume,
}

impl Task {
    /// Returns what its caller's token has to allow; `None` if it needs none.
    pub(crate) fn needed(self) -> Option<Scope> {
        match self {
            Self::Live | Self::Ready => None,
            Self::Metrics => Some(Scope::Read),
            Self::Halt | Self::Resume => Some(Scope::Trade),
        }
    }
}

/// Decides about a call from its head.
pub(crate) fn admit(front: &Front, head: &[u8]) -> Result<(Task, Framing), Refusal> {
    let head = Head::parse(head)?;
    let framing = head.framing()?;
    front.page(&head)?;
    let task = match (head.method().as_str(), head.target()) {
        // A supervisor has no token, and learns no more than that the process lives.
        ("GET", "/livez") => return Ok((Task::Live, framing)),
        ("GET", "/readyz" | "/startupz") => return Ok((Task::Ready, framing)),
        ("GET", "/metrics") => Ok(Task::Metrics),
        ("POST", "/-/halt") => Ok(Task::Halt),
        ("POST", "/-/resume") => Ok(Task::Resume),
        (_, "/livez" | "/readyz" | "/startupz" | "/metrics" | "/-/halt" | "/-/resume") => {
            Err(Refusal::Method)
        }
        _ => Err(Refusal::Path),
    };
    // A stranger is not told which calls there are.
    let granted = front.token(&head)?;
    let task = task?;
    if task.needed().is_some_and(|needed| granted < needed) {
        return Err(Refusal::Scope);
    }
    if head.method() == Method::POST && framing != Framing::Length(0) {
        return Err(Refusal::UnexpectedBody);
    }
    Ok((task, framing))
}

pub(crate) fn answer(proxy: &Proxy, task: Task) -> Response<AnswerBody> {
    let client = &proxy.forward.client;
    match task {
        Task::Live => text(StatusCode::OK, "ok\n"),
        Task::Ready if proxy.is_running() => text(StatusCode::OK, "ok\n"),
        Task::Ready => text(StatusCode::SERVICE_UNAVAILABLE, "ending\n"),
        Task::Metrics => text(StatusCode::OK, figures(proxy)),
        Task::Halt => {
            client.halt();
            text(StatusCode::OK, "halted\n")
        }
        // Orders that waited when the proxy was told to end must not leave.
        Task::Resume if !proxy.is_running() => text(StatusCode::SERVICE_UNAVAILABLE, "ending\n"),
        Task::Resume => {
            client.resume();
            // It was told so just now.
            if !proxy.is_running() {
                client.halt();
            }
            text(StatusCode::OK, "trading\n")
        }
    }
}

/// Writes the figures in Prometheus' text format.
fn figures(proxy: &Proxy) -> String {
    let client = &proxy.forward.client;
    let mut page = String::new();
    for (name, help, value) in [
        ("orders_in_doubt", "orders of which it is not known whether they exist", client.in_doubt()),
        ("orders_in_flight", "orders that are sent and not answered", client.in_flight()),
        ("orders_waiting", "orders whose callers wait", proxy.waiting_orders()),
        ("halted", "1 while no order leaves", usize::from(client.is_halted())),
        ("running", "0 once the proxy was told to end", usize::from(proxy.is_running())),
    ] {
        // Writing to a string cannot fail.
        let _ = write!(
            page,
            "# HELP steadfast_{name} {help}\n# TYPE steadfast_{name} gauge\nsteadfast_{name} {value}\n"
        );
    }
    page
}
