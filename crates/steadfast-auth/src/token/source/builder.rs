use std::{fmt, sync::Arc};

use steadfast_call::{BootClock, WallClock};

use super::{TokenSource, settings::Settings, shared::Shared};
use crate::{
    login::{AnyLogin, LoginWait},
    secret::ApiKey,
    store::TokenStore,
    token::{HumanNeeded, Renewal},
};

/// Builds a [`TokenSource`].
#[must_use]
pub struct TokenSourceBuilder {
    settings: Settings,
}

impl TokenSourceBuilder {
    pub(super) fn new(api_key: ApiKey, login: Option<Arc<dyn AnyLogin>>) -> Self {
        Self { settings: Settings::new(api_key, login) }
    }

    /// Reads the wall time from `clock`.
    pub fn clock(self, clock: WallClock) -> Self {
        Self { settings: Settings { clock, ..self.settings } }
    }

    /// Ages tokens by `clock`, which is never set and runs on in a suspended machine. If it has no reading, the wall
    /// clock is used.
    pub fn boot_clock(self, clock: BootClock) -> Self {
        Self { settings: Settings { boot: clock, ..self.settings } }
    }

    /// Sets when tokens are renewed.
    pub fn renewal(self, renewal: Renewal) -> Self {
        Self { settings: Settings { renewal, ..self.settings } }
    }

    /// Sets a hook that is asked before each renewal that can wait. It returns false while an order is in doubt,
    /// because a new session may not see the orders of the old one.
    pub fn may_renew(self, may_renew: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { settings: Settings { may_renew: Box::new(may_renew), ..self.settings } }
    }

    /// Sets a hook for when only a person can renew the token. It is called once about an hour before the token ends,
    /// if [`keep_fresh`](TokenSource::keep_fresh) runs, and once when a token that worked is refused.
    pub fn on_human_needed(self, notify: impl Fn(HumanNeeded) + Send + Sync + 'static) -> Self {
        Self { settings: Settings { on_human_needed: Box::new(notify), ..self.settings } }
    }

    /// Sets a hook for the waits within a login, called when one begins: for a one-time code, or between attempts. A login
    /// that has to wait longer ends instead ([`AuthErrorKind::Unavailable`](crate::AuthErrorKind::Unavailable)).
    pub fn on_login_wait(self, notify: impl Fn(LoginWait) + Send + Sync + 'static) -> Self {
        Self { settings: Settings { on_login_wait: Arc::new(notify), ..self.settings } }
    }

    /// Keeps the token and the failure budget in `store`, which other processes and sources may share. Without it they
    /// end with the source. A given token ([`Static`](crate::Static)) is never stored.
    pub fn store(self, store: impl TokenStore) -> Self {
        Self { settings: Settings { store: Some(Arc::new(store)), is_unnamed: false, ..self.settings } }
    }

    /// As [`store`](Self::store), for a store that does not name its user: sources without a user find the token there, too.
    ///
    /// Any user that logs in may use it as long as it holds no token of another user.
    pub fn unnamed_store(self, store: impl TokenStore) -> Self {
        let Self { settings } = self.store(store);
        Self { settings: Settings { is_unnamed: true, ..settings } }
    }

    /// Builds the source. No token is fetched before a request needs it.
    #[must_use]
    pub fn build(self) -> TokenSource {
        TokenSource { shared: Arc::new(Shared::new(self.settings)) }
    }
}

impl fmt::Debug for TokenSourceBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSourceBuilder").field("renewal", &self.settings.renewal).finish_non_exhaustive()
    }
}
