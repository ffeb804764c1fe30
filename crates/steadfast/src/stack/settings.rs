use std::net::IpAddr;

use steadfast_call::Routes;
use steadfast_dedup::{OrderTracker, Settings};
use steadfast_limit::{Account, ApiKeyName, ZoneLimiter};
use steadfast_retry::{AttemptTimeoutLayer, RetryPolicy};

use crate::deadline::DeadlineLayer;

/// The settings of all layers, for a [`Stack`](super::Stack) as for a [`ClientBuilder`](crate::ClientBuilder).
#[derive(Clone, Debug)]
pub(crate) struct StackSettings {
    pub(crate) account: Account,
    pub(crate) routes: Routes,
    pub(crate) pass_json: bool,
    pub(crate) deadline: DeadlineLayer,
    pub(crate) tracker: OrderTracker,
    pub(crate) retry: RetryPolicy,
    pub(crate) limiter: ZoneLimiter,
    pub(crate) local_address: Option<IpAddr>,
    pub(crate) api_key_name: Option<ApiKeyName>,
    pub(crate) attempt_timeout: AttemptTimeoutLayer,
    pub(crate) ends_dropped_calls: bool,
}

impl Default for StackSettings {
    fn default() -> Self {
        Self {
            account: Account::default(),
            routes: Routes::default(),
            pass_json: false,
            deadline: DeadlineLayer::default(),
            tracker: OrderTracker::new(Settings::default()),
            retry: RetryPolicy::default(),
            limiter: ZoneLimiter::preset(),
            local_address: None,
            api_key_name: None,
            attempt_timeout: AttemptTimeoutLayer::default(),
            ends_dropped_calls: false,
        }
    }
}
