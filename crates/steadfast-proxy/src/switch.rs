//! The reasons for which no order and no change may leave, and the client's kill switch, which follows them.

use std::{fmt, time::Duration};

use http::StatusCode;
use parking_lot::Mutex;
use steadfast::Client;
use tokio::sync::watch;

use crate::{answer::Own, current::Current};

/// When an order that came at the end may be tried again: another process may be there by then.
const SUCCESSOR: Duration = Duration::from_secs(5);

/// Halts the client as long as there is a reason, so that what waits in a queue is kept back, too.
pub(crate) struct Switch {
    client: Current,
    reasons: Mutex<Reasons>,
    /// False once the sidecar was told to end.
    running: watch::Sender<bool>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Reasons {
    /// An operator has halted.
    is_halted: bool,
    /// The sidecar only reads, and cancels.
    is_read_only: bool,
}

impl Switch {
    pub(crate) fn new(client: Current) -> Self {
        Self { client, reasons: Mutex::default(), running: watch::channel(true).0 }
    }

    pub(crate) fn is_running(&self) -> bool {
        *self.running.borrow()
    }

    pub(crate) fn running(&self) -> watch::Receiver<bool> {
        self.running.subscribe()
    }

    /// The sidecar ends: nothing leaves any more.
    pub(crate) fn end(&self) {
        let _reasons = self.reasons.lock();
        self.running.send_replace(false);
        self.client.get().halt();
    }

    pub(crate) fn halt(&self) {
        let mut reasons = self.reasons.lock();
        reasons.is_halted = true;
        self.client.get().halt();
    }

    /// Turns its own switch back after a halt of an operator, which holds in all sidecars that share the orders now, and is
    /// resumed there.
    pub(crate) fn hand_over_halt(&self) {
        let mut reasons = self.reasons.lock();
        reasons.is_halted = false;
        if self.is_running() && !reasons.is_read_only {
            // The client says that orders are resumed.
            tracing::warn!("orders of all sidecars are halted, so this one's own switch is turned back");
            self.client.get().resume();
        }
    }

    /// Puts another client in the place of the one before. What halted that one halts it, too.
    pub(crate) fn replace(&self, client: Client) {
        let _reasons = self.reasons.lock();
        if self.client.get().tracker().halts_itself() {
            client.halt();
        }
        self.client.set(client);
    }

    /// An operator lets orders leave again. Fails, with the reason, if another one keeps them back.
    pub(crate) fn resume(&self) -> Result<(), &'static str> {
        let mut reasons = self.reasons.lock();
        reasons.is_halted = false;
        if !self.is_running() {
            return Err("ending");
        }
        if reasons.is_read_only {
            return Err("the proxy only reads: read-only keeps orders back");
        }
        self.client.get().resume();
        Ok(())
    }

    /// Whether the sidecar only reads, and cancels. A halt of another origin stays.
    pub(crate) fn read_only(&self, is_read_only: bool) {
        let mut reasons = self.reasons.lock();
        match (reasons.is_read_only, is_read_only) {
            (false, true) => {
                let client = self.client.get();
                reasons.is_halted = client.tracker().halts_itself();
                client.halt();
            }
            (true, false) if self.is_running() && !reasons.is_halted => self.client.get().resume(),
            _ => {}
        }
        reasons.is_read_only = is_read_only;
    }

    /// Returns the answer to an order that is kept back. It has not left.
    pub(crate) fn refusal(&self) -> Own {
        let own = |details| Own::new(StatusCode::SERVICE_UNAVAILABLE, "http_request_denied", details);
        if !self.is_running() {
            return own("proxy is ending and lets no order leave; nothing was sent").retry_after(SUCCESSOR);
        }
        let Reasons { is_halted, is_read_only } = *self.reasons.lock();
        if is_read_only && !is_halted {
            own("the proxy only reads; nothing was sent")
        } else {
            own("orders are halted")
        }
    }
}

impl fmt::Debug for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Switch")
            .field("reasons", &*self.reasons.lock())
            .field("is_running", &self.is_running())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use steadfast::Access;

    use super::*;

    fn client() -> Client {
        let access = Access::token("key", "token").unwrap();
        Client::builder("http://127.0.0.1:9/v2".parse().unwrap(), access).build().unwrap()
    }

    fn switch() -> Switch {
        Switch::new(Current::new(client()))
    }

    #[tokio::test]
    async fn what_halts_a_client_halts_the_one_that_takes_its_place() {
        let switch = switch();
        switch.replace(client());
        assert!(!switch.client.get().is_halted());
        switch.halt();
        switch.replace(client());
        assert!(switch.client.get().is_halted(), "an operator has halted");
        switch.resume().unwrap();
        assert!(!switch.client.get().is_halted());
        switch.end();
        switch.replace(client());
        assert!(switch.client.get().is_halted(), "it ends");
    }

    #[tokio::test]
    async fn orders_leave_when_no_reason_is_left() {
        let switch = switch();
        switch.read_only(true);
        switch.halt();
        assert!(switch.client.get().is_halted());
        assert!(switch.resume().is_err() && switch.client.get().is_halted(), "it only reads");
        switch.read_only(false);
        assert!(!switch.client.get().is_halted(), "it was resumed meanwhile");
        switch.halt();
        switch.read_only(true);
        switch.read_only(false);
        assert!(switch.client.get().is_halted(), "an operator has halted");
        switch.resume().unwrap();
        assert!(!switch.client.get().is_halted());
        switch.read_only(false);
        switch.client.get().halt();
        switch.read_only(false);
        assert!(switch.client.get().is_halted(), "nothing was changed");
        switch.end();
        assert!(switch.resume().is_err() && switch.client.get().is_halted());
    }
}
