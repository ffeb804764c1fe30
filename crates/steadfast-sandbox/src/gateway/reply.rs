use std::time::Duration;

use crate::wire::page::{Corrupted, Page};

/// The gateway's reaction to a request.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    /// How long the client waits for it.
    pub(crate) after: Duration,
    pub(crate) action: Action,
}

/// The visible part of a [`Reply`].
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Respond(Page),
    /// Resets the connection without an answer.
    Reset,
    /// Writes the page in the way of a fault.
    Corrupt(Corrupted),
}

impl From<Page> for Reply {
    fn from(page: Page) -> Self {
        Self { after: Duration::ZERO, action: Action::Respond(page) }
    }
}
