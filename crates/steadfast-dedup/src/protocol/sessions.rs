use std::collections::BTreeSet;

use crate::numbers::Session;

/// The login sessions that orders and reads go out in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sessions {
    /// The latest one that anything was sent in.
    current: Option<Session>,
    /// Those whose lists can be read even after they are over: their token is kept and accepted.
    readable: BTreeSet<Session>,
}

impl Sessions {
    pub(crate) fn current(&self) -> Option<Session> {
        self.current
    }

    pub(crate) fn enter(&mut self, session: Session) {
        self.current = Some(session);
    }

    /// Forgets the current session: the next request says which one it is.
    pub(crate) fn leave(&mut self) {
        self.current = None;
    }

    /// Notes that the token of a session is kept.
    pub(crate) fn keep(&mut self, session: Session) {
        self.readable.insert(session);
    }

    /// Notes that the token of a session is lost; true if it was kept.
    pub(crate) fn lose(&mut self, session: Session) -> bool {
        self.readable.remove(&session)
    }

    pub(crate) fn can_read(&self, session: Session) -> bool {
        self.readable.contains(&session)
    }

    /// Returns the past sessions whose lists can still be read.
    pub(crate) fn past(&self) -> impl Iterator<Item = Session> {
        self.current
            .into_iter()
            .flat_map(|now| self.readable.iter().copied().filter(move |&session| session != now))
    }

    #[cfg(test)]
    pub(crate) fn has_readable(&self) -> bool {
        !self.readable.is_empty()
    }
}
