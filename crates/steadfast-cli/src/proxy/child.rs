//! The program that a proxy is run for.

#[cfg(not(unix))]
use std::convert::Infallible;
#[cfg(unix)]
use std::task::Poll;
use std::{env, ffi::OsString, process::ExitStatus};

#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process};
use secrecy::{ExposeSecret, SecretString};
use tokio::process::{Child, Command};

use super::announce::Facts;
use crate::{
    exit::Failed,
    secret::PREFIX,
    signal::{Kind, Signals},
};

/// A running program.
pub(super) struct Program {
    child: Child,
    passed: Passed,
}

/// Starts a program that finds the proxy in its environment, and nothing of the account.
pub(super) fn start(command: &[OsString], facts: &Facts, token: &SecretString) -> Result<Program, Failed> {
    let Some((program, args)) = command.split_first() else { return Err(Failed::usage("no program")) };
    let mut child = Command::new(program);
    child.args(args).kill_on_drop(true);
    for (variable, _) in env::vars_os() {
        if variable.to_string_lossy().starts_with(PREFIX) {
            child.env_remove(variable);
        }
    }
    // The proxy's own word to the service manager, and its secrets.
    for variable in ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "CREDENTIALS_DIRECTORY"] {
        child.env_remove(variable);
    }
    child.env(format!("{PREFIX}BASE_URL"), &facts.base_url);
    // Clients send both with a colon between them, of which the proxy reads the token.
    child.env(format!("{PREFIX}API_KEY"), "local");
    child.env(format!("{PREFIX}ACCESS_TOKEN"), token.expose_secret());
    if let Some(socket) = &facts.socket {
        child.env(format!("{PREFIX}SOCKET"), socket);
    }
    let passed = Passed::listen();
    let child = child.spawn().map_err(|error| {
        Failed::usage(format_args!("{}: {error}; nothing was sent", program.to_string_lossy()))
    })?;
    Ok(Program { child, passed })
}

/// Waits for the program's end, and passes signals on to it. Returns its exit code.
pub(super) async fn wait(program: &mut Program, signals: &mut Signals) -> u8 {
    let Program { child, passed } = program;
    loop {
        tokio::select! {
            ended = child.wait() => return ended.map_or(1, code),
            kind = signals.next_kind() => forward(child, kind),
            signal = passed.next() => pass(child, signal),
        }
    }
}

/// Signals that mean something to the program alone. None ends the proxy.
struct Passed {
    #[cfg(unix)]
    received: Vec<(Signal, tokio::signal::unix::Signal)>,
}

#[cfg(unix)]
impl Passed {
    fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};

        let kinds = [Signal::USR1, Signal::USR2, Signal::QUIT, Signal::ALARM, Signal::WINCH];
        let received = kinds
            .map(|kind| signal(SignalKind::from_raw(kind.as_raw())).ok().map(|received| (kind, received)));
        Self { received: received.into_iter().flatten().collect() }
    }

    async fn next(&mut self) -> Signal {
        std::future::poll_fn(|cx| {
            let mut all = self.received.iter_mut();
            match all.find_map(|(kind, received)| received.poll_recv(cx).is_ready().then_some(*kind)) {
                Some(kind) => Poll::Ready(kind),
                None => Poll::Pending,
            }
        })
        .await
    }
}

#[cfg(not(unix))]
impl Passed {
    fn listen() -> Self {
        Self {}
    }

    async fn next(&mut self) -> Infallible {
        std::future::pending().await
    }
}

#[cfg(unix)]
fn forward(child: &Child, kind: Kind) {
    let signal = match kind {
        Kind::Terminate => Signal::TERM,
        Kind::Interrupt => Signal::INT,
        Kind::HangUp => Signal::HUP,
    };
    pass(child, signal);
}

/// Ctrl-C reaches all programs of a console.
#[cfg(not(unix))]
fn forward(_: &Child, _: Kind) {}

#[cfg(not(unix))]
fn pass(_: &Child, never: Infallible) {
    match never {}
}

#[cfg(unix)]
fn pass(child: &Child, signal: Signal) {
    use std::io::IsTerminal;

    // A terminal sends them to all programs in front, and twice may mean something else.
    let is_terminals = [Signal::INT, Signal::HUP, Signal::QUIT, Signal::WINCH].contains(&signal);
    if is_terminals && std::io::stdin().is_terminal() {
        return;
    }
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // It may have ended just now.
        let _ = kill_process(pid, signal);
    }
}

fn code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal = None;
    let code = status.code().or(signal.map(|signal| 128 + signal)).unwrap_or(1);
    // A code beyond a byte, as some systems have, is still a failure.
    u8::try_from(code).unwrap_or(1)
}
