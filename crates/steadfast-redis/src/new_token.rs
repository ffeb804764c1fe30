use std::{collections::BTreeSet, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

/// Says of which keys nothing can have been counted yet, because this process has just made the account's token.
///
/// It is said once for each key, and soon after the token was made. A store that is emptied later has forgotten
/// requests, of this process or of others.
#[derive(Default)]
pub(crate) struct NewToken(Mutex<Made>);

#[derive(Default)]
struct Made {
    at: Option<Instant>,
    /// The keys that the store has answered for since.
    used: BTreeSet<String>,
}

/// How long after the token was made a key may be used for the first time.
const FIRST_USE_WITHIN: Duration = Duration::from_secs(10);

impl NewToken {
    /// Notes that the token was made now.
    pub(crate) fn note(&self) {
        *self.0.lock() = Made { at: Some(Instant::now()), used: BTreeSet::new() };
    }

    /// True if nothing can have been counted of the key.
    pub(crate) fn is_first_use(&self, key: &str) -> bool {
        let made = self.0.lock();
        made.at.is_some_and(|at| at.elapsed() < FIRST_USE_WITHIN) && !made.used.contains(key)
    }

    /// Notes that the store has a memory of the key from here on.
    pub(crate) fn used(&self, key: &str) {
        let mut made = self.0.lock();
        if made.at.is_some() && !made.used.contains(key) {
            made.used.insert(key.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_key_is_used_for_the_first_time_once_and_soon_after_the_token_was_made() {
        let new_token = NewToken::default();
        assert!(!new_token.is_first_use("a"), "no token was made");
        new_token.note();
        assert!(new_token.is_first_use("a") && new_token.is_first_use("a"), "until the store has answered");
        new_token.used("a");
        assert!(!new_token.is_first_use("a") && new_token.is_first_use("b"));
        tokio::time::advance(FIRST_USE_WITHIN).await;
        assert!(!new_token.is_first_use("b"), "other processes have used the token since");
        new_token.note();
        assert!(new_token.is_first_use("a"), "another token");
    }
}
