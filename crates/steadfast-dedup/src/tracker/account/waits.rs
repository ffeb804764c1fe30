//! Waits for what becomes of orders.

use std::{sync::Arc, time::Duration};

use steadfast_spec::OrderRequest;

use super::Account;
use crate::{
    error::OrderWithheld,
    numbers::IntentNo,
    protocol::{event::Event, resolution::Verdict},
    tracker::{shared_protocol::State, waiters::About},
};

/// How often a call that waits looks whether the orders are still this process's.
const LOOKS_EVERY: Duration = Duration::from_millis(200);

impl Account {
    /// Waits until an intent has its turn among others of its instrument and side.
    pub(crate) async fn turn(self: &Arc<Self>, intent: IntentNo) {
        let about = About::Intent(intent);
        self.wait(about, |state| state.protocol.has_turn(intent).then_some(())).await;
    }

    /// Waits until the call that sends an intent has something to do.
    pub(crate) async fn decided(self: &Arc<Self>, intent: IntentNo) -> Verdict {
        self.verdict_when(intent, |verdict| *verdict != Verdict::Pending).await
    }

    /// Waits until an intent that another call sends is decided for good.
    pub(crate) async fn ended(self: &Arc<Self>, intent: IntentNo) -> Verdict {
        self.verdict_when(intent, |verdict| !matches!(verdict, Verdict::Pending | Verdict::Resend)).await
    }

    async fn verdict_when(
        self: &Arc<Self>,
        intent: IntentNo,
        wanted: impl Fn(&Verdict) -> bool + Unpin,
    ) -> Verdict {
        let about = About::Intent(intent);
        self.wait(about, |state| Some(state.protocol.verdict(intent)).filter(&wanted)).await
    }

    /// Returns the future's result, or `None` once another process may own the orders.
    pub(crate) async fn unless_lost<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        if !self.halt.can_be_lost() {
            return Some(future.await);
        }
        let mut future = std::pin::pin!(future);
        loop {
            match self.within(LOOKS_EVERY, future.as_mut()).await {
                Some(result) => return Some(result),
                None if self.halt.owned().is_err() => return None,
                None => {}
            }
        }
    }

    /// Waits while an equal order of a gone caller is in doubt, at most for the [twin
    /// hold](crate::Settings::duplicate_hold).
    ///
    /// Such a call is most likely a repetition by hand.
    pub(crate) async fn orphaned_twin(self: &Arc<Self>, order: &OrderRequest) -> Result<(), OrderWithheld> {
        let twin = || self.shared.look(|state| state.protocol.orphaned_twin(order));
        let Some(mut found) = twin() else { return Ok(()) };
        let all_ended = async {
            loop {
                self.ended(found).await;
                match twin() {
                    Some(another) => found = another,
                    None => return,
                }
            }
        };
        self.within(self.settings.duplicate_hold, all_ended).await.ok_or(OrderWithheld::TwinInDoubt)
    }

    /// Waits until no order is in flight or in doubt, or may still leave for a caller that waits. Then lets the list be
    /// read for orders that it does not show yet.
    pub(crate) async fn begin_last_look(self: &Arc<Self>) {
        if self.has_path() {
            self.quiet().await;
            self.step(Event::LastLook);
        }
    }

    /// Waits until those reads are over and all events were sent. Orders that they contradict are searched for, too.
    pub(crate) async fn end_last_look(self: &Arc<Self>) {
        if self.has_path() {
            let is_over = |state: &State| {
                let protocol = &state.protocol;
                state.has_reported() && !protocol.awaits_last_look() && protocol.in_doubt() == 0
            };
            self.wait(About::Change, |state| is_over(state).then_some(())).await;
        }
    }
}
