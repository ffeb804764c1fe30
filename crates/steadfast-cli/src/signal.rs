use std::pin::pin;

use futures_util::FutureExt;
use tokio::sync::watch;

use crate::exit::Failed;

/// The signals that ask for the end, Ctrl-C and the system's own. None is missed from when somebody listens.
pub(crate) struct Signals {
    #[cfg(unix)]
    received: Option<[tokio::signal::unix::Signal; 2]>,
}

impl Signals {
    /// Begins to listen.
    #[cfg(unix)]
    pub(crate) fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let both = signal(SignalKind::interrupt()).and_then(|interrupt| {
            let terminate = signal(SignalKind::terminate())?;
            Ok([interrupt, terminate])
        });
        // Without a handler a signal ends the process by itself.
        Self { received: both.ok() }
    }

    #[cfg(not(unix))]
    pub(crate) fn listen() -> Self {
        Self {}
    }

    /// Completes when the process is told to end.
    ///
    /// # Cancellation
    ///
    /// A signal that arrives between two calls is told by the second.
    #[cfg(unix)]
    pub(crate) async fn next(&mut self) {
        match &mut self.received {
            Some([interrupt, terminate]) => {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            }
            None => std::future::pending().await,
        }
    }

    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Completes when the process is told to end.
pub(crate) async fn interrupted() {
    Signals::listen().next().await;
}

/// Asks for the end on the first signal, and says so; completes with the second, which leaves at once.
pub(crate) async fn stop_on_signal(stop: watch::Sender<bool>, note: impl FnOnce()) -> Failed {
    interrupted().await;
    let mut again = pin!(interrupted());
    // The first poll starts to listen: nothing that follows the note is missed.
    if again.as_mut().now_or_never().is_none() {
        note();
        stop.send_replace(true);
        again.await;
    }
    Failed::interrupted("interrupted; orders may be in doubt")
}
