use super::{Attempt, Grant, Login, LoginFailure, LoginMode};
use crate::store::Identity;

/// Makes no login of its own, but uses the tokens of a store, which another program fetches.
///
/// For a program that must not have the credentials, while a person runs `steadfast login`: the source takes over each
/// new token within half a minute, or with the next request that finds none.
#[derive(Clone, Debug)]
#[must_use]
pub struct Stored {
    identity: Identity,
}

impl Stored {
    /// Uses the tokens of this account. Credentials are neither needed nor compared.
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
