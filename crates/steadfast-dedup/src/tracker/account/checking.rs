//! Waits for a list that confirms a refusal.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use super::Account;
use crate::{
    numbers::IntentNo,
    tracker::waiters::{About, WakerNo},
};

/// A wait until an intent's refusal is confirmed or in doubt. Dropping it has no effect.
pub(crate) struct Checked {
    account: Arc<Account>,
    intent: IntentNo,
    waker_no: Option<WakerNo>,
}

impl Account {
    /// Returns the wait for the check of an intent's refusal, if one is due.
    pub(crate) fn check(self: &Arc<Self>, intent: IntentNo) -> Option<Checked> {
        let awaited = self.shared.look(|state| state.protocol.awaits_check(intent));
        awaited.then(|| Checked { account: self.clone(), intent, waker_no: None })
    }
}

impl Future for Checked {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { account, intent, waker_no } = &mut *self;
        account.shared.poll_wait(About::Intent(*intent), waker_no, cx, |state| {
            (!state.protocol.awaits_check(*intent)).then_some(())
        })
    }
}

impl Drop for Checked {
    fn drop(&mut self) {
        self.account.shared.stop_waiting(About::Intent(self.intent), self.waker_no);
    }
}
