use std::pin::pin;

use futures_util::FutureExt;
use tokio::sync::watch;

use crate::exit::Failed;

/// Completes when the process is told to end.
pub(crate) async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => return,
                _ = terminate.recv() => return,
            }
        }
    }
    if tokio::signal::ctrl_c().await.is_err() {
        // Without a handler the signal ends the process by itself.
        std::future::pending::<()>().await;
    }
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
