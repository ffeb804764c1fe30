//! A sandbox, its two users, and calls that many tests share.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::Method;
use serde_json::Value;
use steadfast_sandbox::{Credentials, FaultEntry, Sandbox, SandboxBuilder, State};

use crate::client::{Answer, Call};

pub(crate) const PLACE_ORDER: &str = "/api/oms/place-order";
pub(crate) const ORDERS: &str = "/api/oms/orders";
pub(crate) const POSITIONS: &str = "/api/account/positions";
pub(crate) const LOGIN: &str = "/api-gw/oauth/individual-token-v2";
pub(crate) const EXCHANGE: &str = "/api-gw/oauth/token";
pub(crate) const SCRIP_MASTER: &str = "/api/mkt-data/scrips/master";

/// An order that is filled at once.
pub(crate) const MARKET: &str =
    "symId=EQT_INFY_EQ_NSE&qty=10&side=buy&type=market&product=intraday&validity=day";
/// An order that rests in the book.
pub(crate) const LIMIT: &str =
    "symId=EQT_TCS_EQ_NSE&qty=10.50&side=sell&type=limit&product=delivery&validity=day&limitPrice=100.10";

pub(crate) struct World {
    /// The wall clock when the sandbox was started.
    pub(crate) start: SystemTime,
    pub(crate) sandbox: Sandbox,
    pub(crate) user: Credentials,
    pub(crate) other: Credentials,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::of(Sandbox::builder().seed(7))
    }

    pub(crate) fn of(builder: SandboxBuilder) -> Self {
        // Fixed, so that a run depends on the code only.
        let start = UNIX_EPOCH + Duration::from_secs(1_790_000_000);
        let sandbox = builder.wall_clock(start).build().expect("a sandbox");
        let (user, other) = (sandbox.credentials(), sandbox.other_credentials());
        Self { start, sandbox, user, other }
    }

    /// Creates a sandbox with one fault at one rate.
    pub(crate) fn with_fault(name: &str, rate: f64) -> Self {
        Self::of(Sandbox::builder().seed(7).fault(name, rate).expect("a known fault"))
    }

    /// Creates a sandbox with a script.
    pub(crate) fn with_script(toml: &str) -> Self {
        Self::of(Sandbox::builder().seed(7).script(toml).expect("a script"))
    }

    /// Makes the fault strike every time from now on.
    pub(crate) fn strike_always(&self, name: &str) {
        let mut entry = FaultEntry::default();
        entry.name = name.to_owned();
        entry.rate = Some(1.0);
        self.sandbox.inject(entry).expect("a known fault");
    }

    pub(crate) fn truth(&self) -> State {
        self.sandbox.state()
    }

    /// Returns the number of orders in the ground truth.
    pub(crate) fn orders(&self) -> usize {
        self.truth().orders.len()
    }

    /// Returns how often the fault struck, by the ground truth.
    pub(crate) fn struck(&self, name: &str) -> u64 {
        self.truth().faults.get(name).copied().unwrap_or_default()
    }

    pub(crate) fn call(&self, method: Method, path: &str) -> Call {
        Call::new(self.sandbox.gateway(), method, path).bearer(&self.user.api_key, &self.user.access_token)
    }

    pub(crate) fn get(&self, path: &str) -> Call {
        self.call(Method::GET, path)
    }

    pub(crate) fn post(&self, path: &str, form: impl Into<String>) -> Call {
        self.call(Method::POST, path).form(form)
    }

    pub(crate) async fn place(&self, order: &str) -> Answer {
        self.post(PLACE_ORDER, order).send().await
    }

    /// Places an order for an intent, which the ground truth will name.
    pub(crate) async fn place_for(&self, intent: &str) -> Answer {
        self.post(PLACE_ORDER, MARKET).intent(intent).send().await
    }

    pub(crate) async fn list(&self) -> Answer {
        self.get(ORDERS).send().await
    }

    /// Returns the records of the order list.
    pub(crate) async fn records(&self) -> Vec<Value> {
        self.list().await.records()
    }

    /// Returns a valid login.
    pub(crate) fn login(&self) -> Call {
        self.login_with(&self.sandbox.totp_now(), "totp")
    }

    pub(crate) fn login_with(&self, code: &str, kind: &str) -> Call {
        let Credentials { client_id, password, .. } = &self.user;
        self.post(LOGIN, format!("client_id={client_id}&password={password}&twoFa={code}&twoFaTyp={kind}"))
            .authorization(&format!("Bearer {}", self.user.api_key))
    }

    /// Logs in as often as wanted, each time with a new code, and returns the last token.
    pub(crate) async fn log_in(&self, times: usize) -> String {
        let mut token = String::new();
        for _ in 0..times {
            self.pass(Duration::from_secs(30));
            let answer = self.login().send().await;
            token = answer.json()["d"]["access_token"].as_str().expect("a token").to_owned();
        }
        token
    }

    pub(crate) fn pass(&self, time: Duration) {
        self.sandbox.advance(time);
    }
}
