use std::sync::Arc;

use crate::{
    numbers::IntentNo,
    tracker::{account::Account, polled_calls::Opener},
};

/// A call that has opened an intent, until it returns or is dropped.
pub(crate) struct OpenCall<'a> {
    account: &'a Arc<Account>,
    intent: IntentNo,
    opener: Opener,
    has_ended: bool,
}

impl<'a> OpenCall<'a> {
    pub(crate) fn new(account: &'a Arc<Account>, intent: IntentNo, opener: Opener) -> Self {
        Self { account, intent, opener, has_ended: false }
    }

    pub(crate) fn intent(&self) -> IntentNo {
        self.intent
    }

    /// Ends the call with an acknowledged answer: true if the protocol agrees, so that nothing is left to do.
    pub(crate) fn acknowledged(&mut self) -> bool {
        self.has_ended = self.account.conclude_acknowledged(self.intent, self.opener);
        self.has_ended
    }
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.account.end_call(self.intent, self.opener);
        }
    }
}
