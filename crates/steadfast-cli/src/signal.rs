use std::pin::pin;

use futures_util::FutureExt;
use tokio::sync::watch;

use crate::exit::Failed;

/// The signals that ask for the end: Ctrl-C, SIGTERM, and SIGHUP of a closed terminal. None is missed from the call of
/// `listen` on.
pub(crate) struct Signals {
    #[cfg(unix)]
    received: Option<Received>,
}

/// Lets a write beyond the limit of a file's size fail like one to a full disk, instead of ending the process without a
/// word (SIGXFSZ).
#[cfg(unix)]
pub(crate) fn survive_file_limits() {
    let kind = tokio::signal::unix::SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
    // The handler stays when this is dropped.
    drop(tokio::signal::unix::signal(kind));
}

#[cfg(not(unix))]
pub(crate) fn survive_file_limits() {}

/// Ctrl-C, SIGTERM, and SIGHUP unless it is ignored.
#[cfg(unix)]
type Received =
    (tokio::signal::unix::Signal, tokio::signal::unix::Signal, Option<tokio::signal::unix::Signal>);

/// A signal that asks for the end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Interrupt,
    #[cfg(unix)]
    Terminate,
    #[cfg(unix)]
    HangUp,
}

impl Signals {
    /// Begins to listen.
    #[cfg(unix)]
    pub(crate) fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let received = signal(SignalKind::interrupt()).and_then(|interrupt| {
            let terminate = signal(SignalKind::terminate())?;
            // A program started by `nohup` goes on when its terminal is closed; a handler would change that.
            let hang_up = if is_hang_up_ignored() { None } else { Some(signal(SignalKind::hangup())?) };
            Ok((interrupt, terminate, hang_up))
        });
        // Without a handler a signal ends the process by itself.
        Self { received: received.ok() }
    }

    #[cfg(not(unix))]
    pub(crate) fn listen() -> Self {
        Self {}
    }

    /// Completes when the process receives a signal to end.
    ///
    /// # Cancellation
    ///
    /// A signal that arrives between two calls completes the second.
    pub(crate) async fn next(&mut self) {
        self.next_kind().await;
    }

    /// As [`next`](Self::next), with the signal.
    #[cfg(unix)]
    pub(crate) async fn next_kind(&mut self) -> Kind {
        match &mut self.received {
            Some((interrupt, terminate, hang_up)) => {
                let closed = async {
                    match hang_up {
                        Some(hang_up) => drop(hang_up.recv().await),
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    _ = interrupt.recv() => Kind::Interrupt,
                    _ = terminate.recv() => Kind::Terminate,
                    () = closed => Kind::HangUp,
                }
            }
            None => std::future::pending().await,
        }
    }

    #[cfg(not(unix))]
    pub(crate) async fn next_kind(&mut self) -> Kind {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Kind::Interrupt
    }
}

/// Returns true if this process was started with SIGHUP ignored, as far as the system shows it.
#[cfg(unix)]
fn is_hang_up_ignored() -> bool {
    static IGNORED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    // Read once: after the first handler is set, the answer changes.
    *IGNORED.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
    })
}

/// Completes when the process receives a signal to end.
pub(crate) async fn interrupted() {
    Signals::listen().next().await;
}

/// Sends `stop` and calls `note` on the first signal; completes with the second, which ends the program at once.
pub(crate) async fn stop_on_signal(stop: watch::Sender<bool>, note: impl FnOnce()) -> Failed {
    interrupted().await;
    let mut again = pin!(interrupted());
    // The first poll starts to listen, so no signal after the note is missed.
    if again.as_mut().now_or_never().is_none() {
        note();
        stop.send_replace(true);
        again.await;
    }
    Failed::interrupted("interrupted; orders may be in doubt")
}
