use std::net::IpAddr;

use http::{HeaderMap, StatusCode};
use steadfast_auth::{Gate, GatePermit};
use steadfast_call::{BoxError, Lane, RetryAfter};
use steadfast_limit::{Account, Answer, ApiKeyName, Permit, ScopeKeys, TokenOrigin, ZoneLimiter};
use steadfast_spec::{BaseUrl, Zone};

/// Takes permits for logins from the limiter of the business calls, since a login's zones count both.
#[derive(Clone, Debug)]
pub struct LimiterGate {
    limiter: ZoneLimiter,
    authority: String,
    account: Account,
    from: Option<IpAddr>,
    api_key: Option<ApiKeyName>,
}

impl LimiterGate {
    /// Creates a gate for logins of `account` below `base`.
    #[must_use]
    pub fn new(limiter: ZoneLimiter, base: &BaseUrl, account: Account) -> Self {
        let authority = base.uri().authority().map(ToString::to_string).unwrap_or_default();
        Self { limiter, authority, account, from: None, api_key: None }
    }

    /// Sets the local address of logins. It must be that of the business calls, since the OTP zone counts by address.
    #[must_use]
    pub fn local_address(mut self, from: Option<IpAddr>) -> Self {
        self.from = from;
        self
    }

    /// Names the API key of logins. It must be that of the business calls.
    #[must_use]
    pub fn api_key_name(mut self, name: ApiKeyName) -> Self {
        self.api_key = Some(name);
        self
    }

    /// Tells the limiter where the first token came from.
    pub(crate) fn begin(&self, origin: TokenOrigin) {
        self.limiter.token_is(self.keys(), origin);
    }

    /// Tells the limiter of whom requests may come.
    pub(crate) fn expect(&self) {
        self.limiter.expect(self.keys());
    }

    fn keys(&self) -> ScopeKeys {
        let keys = self.limiter.keys(&self.authority, &self.account);
        let keys = self.from.map_or(keys, |address| keys.local_address(address));
        self.api_key.as_ref().map_or(keys, |name| keys.api_key(name))
    }
}

impl Gate for LimiterGate {
    type Permit = LoginPermit;

    async fn acquire(&self, zones: &[Zone], lane: Lane) -> Result<LoginPermit, BoxError> {
        let permit = self.limiter.acquire(zones, self.keys(), lane).await?;
        Ok(LoginPermit { permit: Some(permit), gate: self.clone() })
    }
}

/// A login's permit.
#[derive(Debug)]
pub struct LoginPermit {
    permit: Option<Permit>,
    gate: LimiterGate,
}

impl GatePermit for LoginPermit {
    fn sent(&mut self) {
        if let Some(permit) = &mut self.permit {
            permit.sent();
        }
    }

    fn answered(&mut self, status: StatusCode, headers: &HeaderMap) {
        let Some(permit) = self.permit.take() else { return };
        permit.settle(match status {
            StatusCode::TOO_MANY_REQUESTS => {
                Answer::TooManyRequests { retry_after: RetryAfter::parse(headers).map(|after| after.0) }
            }
            _ => Answer::Accepted,
        });
        // Processes that share the limits learn of a token before they can be handed it.
        if status.is_success() {
            self.gate.begin(TokenOrigin::Minted);
        }
    }
}
