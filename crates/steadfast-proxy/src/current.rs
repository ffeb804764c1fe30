use std::{fmt, sync::Arc};

use steadfast::Client;
use tokio::sync::watch;

/// The client that requests go through. Another one takes its place when this process comes to own the orders of an account,
/// or has lost them.
///
/// # Clone
///
/// Clones hold the same one.
#[derive(Clone)]
pub(crate) struct Current(Arc<watch::Sender<Arc<Client>>>);

impl Current {
    pub(crate) fn new(client: Client) -> Self {
        Self(Arc::new(watch::channel(Arc::new(client)).0))
    }

    /// Returns the client of this moment. A request goes through one to its end.
    pub(crate) fn get(&self) -> Arc<Client> {
        self.0.borrow().clone()
    }

    pub(crate) fn set(&self, client: Client) {
        self.0.send_replace(Arc::new(client));
    }

    /// Returns a receiver that is told when another one takes its place.
    pub(crate) fn changes(&self) -> watch::Receiver<Arc<Client>> {
        self.0.subscribe()
    }
}

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Current").finish_non_exhaustive()
    }
}
