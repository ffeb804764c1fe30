use std::{fmt, sync::Arc};

use steadfast_spec::{BootClock, WallClock};

use super::{TokenSource, shared::Shared};
use crate::{ApiKey, HumanNeeded, Renewal, TokenStore, login::AnyLogin, store::AnyStore};

/// Builds a [`TokenSource`].
#[must_use]
pub struct TokenSourceBuilder {
    pub(super) api_key: ApiKey,
    pub(super) login: Option<Arc<dyn AnyLogin>>,
    pub(super) clock: WallClock,
    pub(super) boot: BootClock,
    pub(super) renewal: Renewal,
    pub(super) may_renew: MayRenew,
    pub(super) on_human_needed: OnHumanNeeded,
    pub(super) store: Option<Arc<dyn AnyStore>>,
}

pub(super) type MayRenew = Box<dyn Fn() -> bool + Send + Sync>;
pub(super) type OnHumanNeeded = Box<dyn Fn(HumanNeeded) + Send + Sync>;

impl TokenSourceBuilder {
    pub(super) fn new(api_key: ApiKey, login: Option<Arc<dyn AnyLogin>>) -> Self {
        Self {
            api_key,
            login,
            clock: WallClock::system(),
            boot: BootClock::system(),
            renewal: Renewal::new(),
            may_renew: Box::new(|| true),
            on_human_needed: Box::new(|_| ()),
            store: None,
        }
    }

    /// Reads the wall time from `clock`.
    pub fn clock(self, clock: WallClock) -> Self {
        Self { clock, ..self }
    }

    /// Ages tokens by `clock`, which is never set and runs on in a suspended machine. If it has no reading, the wall
    /// clock is used.
    pub fn boot_clock(self, clock: BootClock) -> Self {
        Self { boot: clock, ..self }
    }

    /// Sets when tokens are renewed.
    pub fn renewal(self, renewal: Renewal) -> Self {
        Self { renewal, ..self }
    }

    /// Sets a hook that is asked before each renewal that can wait. It returns false while an order is in doubt,
    /// because a new session may not see the orders of the old one.
    pub fn may_renew(self, may_renew: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { may_renew: Box::new(may_renew), ..self }
    }

    /// Sets a hook for when only a person can renew the token. It is called once about an hour before the token ends,
    /// if [`keep_fresh`](TokenSource::keep_fresh) runs, and once when a token that worked is refused.
    pub fn on_human_needed(self, notify: impl Fn(HumanNeeded) + Send + Sync + 'static) -> Self {
        Self { on_human_needed: Box::new(notify), ..self }
    }

    /// Keeps the token and the failure budget in `store`, which other processes and sources may share. Without it they
    /// end with the source. A given token ([`Static`](crate::Static)) is never stored.
    pub fn store(self, store: impl TokenStore) -> Self {
        Self { store: Some(Arc::new(store)), ..self }
    }

    /// Builds the source. No token is fetched before a request needs it.
    #[must_use]
    pub fn build(self) -> TokenSource {
        TokenSource { shared: Arc::new(Shared::new(self)) }
    }
}

impl fmt::Debug for TokenSourceBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSourceBuilder").field("renewal", &self.renewal).finish_non_exhaustive()
    }
}
