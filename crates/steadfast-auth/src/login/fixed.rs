use std::{fmt, time::Duration};

use secrecy::SecretString;

use super::{Attempt, Grant, Login, LoginFailure, LoginMode};

/// A token that was fetched elsewhere. It is never renewed.
#[derive(Clone)]
#[must_use]
pub struct Static {
    token: SecretString,
    life: Option<Duration>,
}

impl Static {
    /// Takes the given token; its remaining life is unknown.
    pub fn new(token: impl Into<SecretString>) -> Self {
        Self { token: token.into(), life: None }
    }

    /// Sets how long the token still lives, counted from its first use.
    pub fn valid_for(self, life: Duration) -> Self {
        Self { life: Some(life), ..self }
    }
}

impl Login for Static {
    fn mode(&self) -> LoginMode {
        LoginMode::Once
    }

    async fn attempt(&self, attempt: &Attempt) -> Result<Grant, LoginFailure> {
        Ok(Grant { token: self.token.clone(), sent: attempt.now(), life: self.life })
    }
}

impl fmt::Debug for Static {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Static").field("life", &self.life).finish_non_exhaustive()
    }
}
