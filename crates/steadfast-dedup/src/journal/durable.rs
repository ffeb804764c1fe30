use std::{
    pin::Pin,
    task::{Context, Poll},
};

use tokio::sync::oneshot;

use super::error::JournalError;

/// Tells when what was added to a journal is durable, or that it will never be.
#[derive(Debug)]
pub struct Durable {
    state: State,
}

#[derive(Debug)]
enum State {
    Known(Result<(), JournalError>),
    Awaited(oneshot::Receiver<Result<(), JournalError>>),
}

/// The other end of a [`Durable`]. Dropped unused, it says that the journal has failed.
#[derive(Debug)]
pub struct Report(oneshot::Sender<Result<(), JournalError>>);

impl Durable {
    /// One whose end is known.
    #[must_use]
    pub fn known(result: Result<(), JournalError>) -> Self {
        Self { state: State::Known(result) }
    }

    /// One that waits for its report.
    #[must_use]
    pub fn pending() -> (Report, Self) {
        let (report, told) = oneshot::channel();
        (Report(report), Self { state: State::Awaited(told) })
    }
}

impl Report {
    /// Says how it ended.
    pub fn tell(self, result: Result<(), JournalError>) {
        // Whoever waited may have given up.
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
