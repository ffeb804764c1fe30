//! The program that a proxy is run for.

use std::{env, ffi::OsString, process::ExitStatus};

use secrecy::{ExposeSecret, SecretString};
use tokio::process::{Child, Command};

use super::announce::Facts;
use crate::{
    exit::Failed,
    secret::PREFIX,
    signal::{Kind, Signals},
};

/// Starts a program that finds the proxy in its environment, and nothing of the account.
pub(super) fn start(command: &[OsString], facts: &Facts, token: &SecretString) -> Result<Child, Failed> {
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
    child.spawn().map_err(|error| {
        Failed::usage(format_args!("{}: {error}; nothing was sent", program.to_string_lossy()))
    })
}

/// Waits for the program's end, and passes signals on to it. Returns its exit code.
pub(super) async fn wait(child: &mut Child, signals: &mut Signals) -> u8 {
    loop {
        tokio::select! {
            ended = child.wait() => return ended.map_or(1, code),
            kind = signals.next_kind() => forward(child, kind),
        }
    }
}

#[cfg(unix)]
fn forward(child: &Child, kind: Kind) {
    use std::io::IsTerminal;

    use rustix::process::{Pid, Signal, kill_process};

    let signal = match kind {
        Kind::Terminate => Signal::TERM,
        // A terminal sends them to all programs in front, and twice may mean something else.
        _ if std::io::stdin().is_terminal() => return,
        Kind::Interrupt => Signal::INT,
        Kind::HangUp => Signal::HUP,
    };
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // It may have ended just now.
        let _ = kill_process(pid, signal);
    }
}

/// Ctrl-C reaches all programs of a console.
#[cfg(not(unix))]
fn forward(_: &Child, _: Kind) {}

fn code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal = None;
    let code = status.code().or(signal.map(|signal| 128 + signal)).unwrap_or(1);
    // A code beyond a byte, as some systems have, is still a failure.
    u8::try_from(code).unwrap_or(1)
}
