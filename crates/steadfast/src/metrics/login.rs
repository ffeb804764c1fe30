use std::sync::LazyLock;

use metrics::Key;
use steadfast_auth::{Attempt, Grant, Identity, Login, LoginFailure, LoginMode};

use super::{
    catalog,
    keys::{count, key},
};

/// Counts login attempts by result.
///
/// # Example
///
/// ```
/// use steadfast::{auth::{ApiKey, NoPaste, Static, TokenSource}, metrics::MeteredLogin};
///
/// # fn source(login: impl steadfast::auth::Login) -> Result<TokenSource, Box<dyn std::error::Error>> {
/// Ok(TokenSource::builder(ApiKey::new("key")?, MeteredLogin::new(login)).build())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct MeteredLogin<L> {
    login: L,
}

impl<L> MeteredLogin<L> {
    /// Counts the attempts of `login`.
    pub const fn new(login: L) -> Self {
        Self { login }
    }
}

impl<L: Login> Login for MeteredLogin<L> {
    fn mode(&self) -> LoginMode {
        self.login.mode()
    }

    fn identity(&self) -> Option<Identity> {
        self.login.identity()
    }

    async fn attempt(&self, attempt: &Attempt) -> Result<Grant, LoginFailure> {
        let result = self.login.attempt(attempt).await;
        record(result.as_ref().map_or_else(LoginFailure::as_str, |_| "ok"));
        result
    }
}

fn record(result: &'static str) {
    static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
        catalog::LOGIN_RESULTS.map(|name| key(catalog::LOGINS, [("result", name)])).to_vec()
    });
    let place = |name| catalog::LOGIN_RESULTS.iter().position(|known| *known == name);
    // A result that is newer than this table counts as unknown.
    if let Some(key) = place(result).or_else(|| place(catalog::UNKNOWN)).and_then(|at| KEYS.get(at)) {
        count(key);
    }
}
