use std::{
    pin::Pin,
    task::{Context, Poll},
};

use tokio::sync::oneshot;

use super::error::JournalError;

/// A future that ends when an entry of a journal is durable, or has failed to become so.
#[derive(Debug)]
pub struct Durable {
    state: State,
}

#[derive(Debug)]
enum State {
    Known(Result<(), JournalError>),
    Awaited(oneshot::Receiver<Result<(), JournalError>>),
}

/// The other end of a [`Durable`]. Dropped unused, it reports that the journal has failed.
#[derive(Debug)]
pub struct Report(oneshot::Sender<Result<(), JournalError>>);

impl Durable {
    /// Returns one with a known result.
    #[must_use]
    pub fn known(result: Result<(), JournalError>) -> Self {
        Self { state: State::Known(result) }
    }

    /// Returns one that waits for its report.
    #[must_use]
    pub fn pending() -> (Report, Self) {
        let (report, told) = oneshot::channel();
        (Report(report), Self { state: State::Awaited(told) })
    }
}

impl Report {
    /// Reports the result.
    pub fn tell(self, result: Result<(), JournalError>) {
        // The waiting call may have given up.
        let _ = self.0.send(result);
    }
}

impl Future for Durable {
    type Output = Result<(), JournalError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.state {
            State::Known(result) => Poll::Ready(result.clone()),
            State::Awaited(told) => {
                Pin::new(told).poll(cx).map(|told| told.unwrap_or(Err(JournalError::Poisoned)))
            }
        }
    }
}
