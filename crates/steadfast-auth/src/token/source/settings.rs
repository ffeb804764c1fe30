use std::sync::Arc;

use steadfast_call::{BootClock, WallClock};

use crate::{
    login::{AnyLogin, OnLoginWait},
    secret::ApiKey,
    store::AnyStore,
    token::{HumanNeeded, Renewal},
};

/// All that a source is built from.
pub(super) struct Settings {
    pub(super) api_key: ApiKey,
    pub(super) login: Option<Arc<dyn AnyLogin>>,
    pub(super) clock: WallClock,
    pub(super) boot: BootClock,
    pub(super) renewal: Renewal,
    pub(super) may_renew: MayRenew,
    pub(super) on_human_needed: OnHumanNeeded,
    pub(super) on_login_wait: OnLoginWait,
    pub(super) store: Option<Arc<dyn AnyStore>>,
    /// The store does not name its user.
    pub(super) is_unnamed: bool,
}

pub(super) type MayRenew = Box<dyn Fn() -> bool + Send + Sync>;
pub(super) type OnHumanNeeded = Box<dyn Fn(HumanNeeded) + Send + Sync>;

impl Settings {
    /// Returns the defaults.
    pub(super) fn new(api_key: ApiKey, login: Option<Arc<dyn AnyLogin>>) -> Self {
        Self {
            api_key,
            login,
            clock: WallClock::system(),
            boot: BootClock::system(),
            renewal: Renewal::new(),
            may_renew: Box::new(|| true),
            on_human_needed: Box::new(|_| ()),
            on_login_wait: Arc::new(|_| ()),
            store: None,
            is_unnamed: false,
        }
    }
}
