use crate::{Attempt, Grant, Identity, Login, LoginFailure, LoginMode};

/// No login of its own: the tokens of a store, which another program fetches.
///
/// For a program that must not have the credentials, beside somebody who runs `steadfast login`: the source takes over
/// each new token within half a minute, or with the next request that finds none.
#[derive(Clone, Debug)]
#[must_use]
pub struct Stored {
    identity: Identity,
}

impl Stored {
    /// The tokens of this account. Its credentials are not needed, and not compared.
    pub fn new(identity: Identity) -> Self {
        Self { identity }
    }
}

impl Login for Stored {
    fn mode(&self) -> LoginMode {
        LoginMode::Attended
    }

    fn identity(&self) -> Option<Identity> {
        Some(self.identity.clone())
    }

    async fn attempt(&self, _: &Attempt) -> Result<Grant, LoginFailure> {
        Err(LoginFailure::NoCode("logins are another program's".into()))
    }
}
