use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::{Instant, sleep};

use crate::{
    error::StoreError,
    orders::{
        book::Book,
        error::ResumeError,
        hearing::{Heard, Hearing},
        ledger::{HaltState, Turn},
    },
    rule::Micros,
};

/// A call that turns the kill switch of all processes.
pub(crate) struct HaltCall<'a> {
    book: &'a Book,
    /// The turns that this process has heard of.
    heard: &'a AtomicU64,
    began: Instant,
}

/// How soon the store is asked again.
const ASKS_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// For how long a store is asked that cannot be reached.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a resume waits for the owner.
const RESUMES_WITHIN: Duration = Duration::from_secs(2);

impl<'a> HaltCall<'a> {
    pub(crate) fn new(book: &'a Book, heard: &'a AtomicU64) -> Self {
        Self { book, heard, began: Instant::now() }
    }

    pub(crate) async fn halt(self) -> Result<bool, StoreError> {
        let mut hearing = Hearing::default();
        let (mut state, mut sent) = self.turn(Turn::Halt).await?;
        loop {
            match hearing.look(&state, sent, self.now()) {
                Heard::Everywhere => return Ok(true),
                Heard::Resumed => return Ok(false),
                Heard::NotYet => sleep(ASKS_AGAIN_AFTER).await,
            }
            (state, sent) = self.turn(Turn::Look).await?;
        }
    }

    pub(crate) async fn resume(self) -> Result<(), ResumeError> {
        let (mut state, _) = self.turn(Turn::Look).await?;
        if let Some(halt) = state.halt() {
            // It names that halt, so that it ends no later one if the store is slow.
            (state, _) = self.turn(|_| Turn::Resume(halt)).await?;
        }
        loop {
            if let Some(halt) = state.halt() {
                return Err(ResumeError::HaltedAgain { halt });
            }
            if state.is_heard() || self.began.elapsed() >= RESUMES_WITHIN {
                return Ok(());
            }
            sleep(ASKS_AGAIN_AFTER).await;
            (state, _) = self.turn(Turn::Look).await?;
        }
    }

    /// Turns the switch or looks, as `turn` says of what this process has heard, and returns when it began that. Patience is for
    /// each answer.
    async fn turn(&self, turn: impl Fn(u64) -> Turn) -> Result<(HaltState, Micros), StoreError> {
        let asked = Instant::now();
        loop {
            let sent = self.now();
            match self.book.turn(turn(self.heard.load(Ordering::SeqCst))).await {
                Ok(state) => {
                    self.heard.fetch_max(state.turns, Ordering::SeqCst);
                    return Ok((state, sent));
                }
                Err(error) if asked.elapsed() >= PATIENCE => return Err(error),
                Err(_) => sleep(ASKS_AGAIN_AFTER).await,
            }
        }
    }

    fn now(&self) -> Micros {
        self.book.store().now()
    }
}
