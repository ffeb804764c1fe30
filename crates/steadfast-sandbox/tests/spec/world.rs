//! A gateway, its two users, and the steps that many tests share.

use std::{collections::BTreeSet, net::IpAddr, time::Duration};

use http::Method;
use serde_json::Value;
use steadfast_sandbox::{Gateway, Sandbox};
use steadfast_spec::Zone;

use crate::{
    answer::Answer,
    call::Call,
    endpoints::{
        AUTHORIZE, Access, Endpoint, INDIVIDUAL_TOKEN, ORDERS, PLACE_ORDER, POSITIONS, SCRIP_MASTER, TOKEN,
    },
    form::{Form, limit_order},
};

/// Longer than the validity of a two-factor code, and than twice any window of a second.
pub(crate) const A_MINUTE: Duration = Duration::from_secs(60);

/// Twice the longest window: after it every quota is unused again, whatever the enforcement.
pub(crate) const TWO_WINDOWS: Duration = Duration::from_secs(121);

/// The pace of tests that are not about limits: 2.5 requests a second, 150 a minute.
const CALM: Duration = Duration::from_millis(400);

/// A share that every fixture can trade; the lookup of valid symbols is tested in §2.
pub(crate) const EQUITY: &str = "EQT_RELIANCE_EQ_NSE";

/// One app, its one user, and the session that is open from the start.
#[derive(Clone)]
pub(crate) struct User {
    pub(crate) api_key: String,
    pub(crate) client_id: String,
    pub(crate) client_secret: String,
    pub(crate) redirect_uri: String,
    pub(crate) password: String,
    pub(crate) session: Session,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) api_key: String,
    pub(crate) token: String,
}

pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    pub(crate) base_url: String,
    pub(crate) user: User,
    pub(crate) other: User,
    gateway: Gateway,
}

/// One symbol of each form, as the scrip master lists them.
#[derive(Clone, Debug)]
pub(crate) struct Instruments {
    pub(crate) equity: String,
    pub(crate) bse_equity: String,
    pub(crate) future: String,
    pub(crate) option: String,
    pub(crate) all: BTreeSet<String>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::of(Sandbox::builder().seed(7).build().expect("the default sandbox"))
    }

    pub(crate) fn of(sandbox: Sandbox) -> Self {
        macro_rules! user {
            ($credentials:expr) => {{
                let known = $credentials;
                let session = Session { api_key: known.api_key.clone(), token: known.access_token.clone() };
                User {
                    api_key: known.api_key.clone(),
                    client_id: known.client_id.clone(),
                    client_secret: known.client_secret.clone(),
                    redirect_uri: known.redirect_uri.clone(),
                    password: known.password.clone(),
                    session,
                }
            }};
        }
        let user = user!(sandbox.credentials());
        let other = user!(sandbox.other_credentials());
        let base_url = sandbox.credentials().base_url.clone();
        let gateway = sandbox.gateway();
        Self { sandbox, base_url, user, other, gateway }
    }

    /// Creates a sandbox in which the named fault strikes every time.
    pub(crate) fn with_fault(name: &str) -> Self {
        let sandbox = Sandbox::builder().seed(7).fault(name, 1.0).expect("a known fault");
        Self::of(sandbox.build().expect("a sandbox with a fault"))
    }

    pub(crate) fn pass(&self, time: Duration) {
        self.sandbox.advance(time);
    }

    // Requests.

    /// Returns a request below the base address, with the first user's full authorization.
    pub(crate) fn request(&self, method: Method, path: &str) -> Call {
        let url = format!("{}{path}", self.base_url);
        Call::new(self.gateway.clone(), method, url).bearer(&self.user.session)
    }

    /// Returns a request to any address, with the first user's full authorization.
    pub(crate) fn request_to(&self, method: Method, url: &str) -> Call {
        Call::new(self.gateway.clone(), method, url.to_owned()).bearer(&self.user.session)
    }

    pub(crate) fn get(&self, path: &str) -> Call {
        self.request(Method::GET, path)
    }

    pub(crate) fn delete(&self, path: &str) -> Call {
        self.request(Method::DELETE, path)
    }

    pub(crate) fn post(&self, path: &str, form: &Form) -> Call {
        self.request(Method::POST, path).form(form)
    }

    pub(crate) fn put(&self, path: &str, form: &Form) -> Call {
        self.request(Method::PUT, path).form(form)
    }

    /// Returns a request to the endpoint with its own method and authorization, and with the required
    /// fields.
    pub(crate) fn call(&self, endpoint: &Endpoint) -> Call {
        let call = self.request(endpoint.method.clone(), endpoint.path);
        let call = match endpoint.access {
            Access::None => call.without_authorization(),
            Access::ApiKey => call.authorization(&format!("Bearer {}", self.user.api_key)),
            Access::Full => call,
        };
        match (endpoint.path, &endpoint.method) {
            (AUTHORIZE, _) => call.raw_query(&self.authorize_query().encoded()),
            (TOKEN, _) => call.form(&self.exchange_form("no-such-code")),
            (INDIVIDUAL_TOKEN, _) => call.form(&self.login_form().with("password", "wrong")),
            (_, &Method::POST | &Method::PUT) => {
                call.form(&limit_order(EQUITY).with("orderId", "no-such-order"))
            }
            (_, &Method::DELETE) => call.query("orderId", "no-such-order"),
            _ => call.query("symId", EQUITY),
        }
    }

    /// Sends without hurry, so that no rate limit interferes.
    pub(crate) async fn calmly(&self, call: &Call) -> Answer {
        self.pass(CALM);
        call.send().await
    }

    // Orders.

    pub(crate) async fn place(&self, order: &Form) -> Answer {
        self.calmly(&self.post(PLACE_ORDER, order)).await
    }

    /// Places an order that must be accepted, and returns its id.
    pub(crate) async fn placed(&self, order: &Form) -> String {
        let answer = self.place(order).await;
        let id = answer.payload()["orderId"].as_str().map(str::to_owned);
        id.unwrap_or_else(|| panic!("no orderId: {answer}"))
    }

    /// Returns the records of the first user's order list.
    pub(crate) async fn order_list(&self) -> Vec<Value> {
        let answer = self.calmly(&self.get(ORDERS)).await;
        let payload = answer.payload();
        payload.as_array().unwrap_or_else(|| panic!("not an array: {answer}")).clone()
    }

    pub(crate) async fn listed(&self, order_id: &str) -> Value {
        let list = self.order_list().await;
        let record = list.iter().find(|record| record["orderId"] == order_id);
        record.unwrap_or_else(|| panic!("{order_id} is not in {list:?}")).clone()
    }

    /// Returns the number of orders in the ground truth.
    pub(crate) fn orders_in_the_book(&self) -> usize {
        self.sandbox.state().orders.len()
    }

    pub(crate) async fn instruments(&self) -> Instruments {
        let answer = self.calmly(&self.get(SCRIP_MASTER)).await;
        let mut all = BTreeSet::new();
        collect_symbols(&answer.payload(), &mut all);
        let first = |start: &str, middle: &str| {
            let found = all.iter().find(|symbol| symbol.starts_with(start) && symbol.contains(middle));
            found.cloned().unwrap_or_else(|| panic!("no {start}…{middle} among {} symbols", all.len()))
        };
        Instruments {
            equity: first("EQT_", "_NSE"),
            bse_equity: first("EQT_", "_BSE"),
            future: first("FUT_", "_FUT_"),
            option: first("OPT_", "_CE_"),
            all,
        }
    }

    // Limits.

    /// Returns a cheap request that the zone limits.
    pub(crate) fn probe(&self, zone: Zone) -> Call {
        match zone {
            Zone::OTP => self.individual_token(&self.login_form().with("password", "wrong")),
            Zone::API_KEY => self.exchange(&self.exchange_form("no-such-code")),
            Zone::DATA => self.get(POSITIONS),
            Zone::PLACE_ORDER => self.post(PLACE_ORDER, &limit_order(EQUITY)),
            _ => self.get(ORDERS),
        }
    }

    /// Sends the request back to back and counts how many are admitted before the first 429.
    pub(crate) async fn admitted_back_to_back(&self, call: &Call, tries: usize) -> usize {
        for admitted in 0..tries {
            if !call.send().await.is_admitted() {
                return admitted;
            }
        }
        tries
    }

    /// Uses the zone's quota up with its own probe.
    pub(crate) async fn exhaust(&self, zone: Zone) {
        let limit = per_second(zone);
        let admitted = self.admitted_back_to_back(&self.probe(zone), limit).await;
        assert_eq!(admitted, limit, "{zone:?} before it is exhausted");
    }
}

/// The table of §8.
pub(crate) const ZONES: [(Zone, usize); 5] =
    [(Zone::OTP, 3), (Zone::API_KEY, 100), (Zone::DATA, 100), (Zone::PLACE_ORDER, 10), (Zone::GENERAL, 10)];

pub(crate) fn per_second(zone: Zone) -> usize {
    ZONES.iter().find(|(known, _)| *known == zone).expect("a zone of §8").1
}

pub(crate) fn ip(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

/// Finds symbols anywhere in a payload, because the shape of scrip records is not shown.
fn collect_symbols(value: &Value, found: &mut BTreeSet<String>) {
    let is_symbol = |text: &str| ["EQT_", "FUT_", "OPT_"].iter().any(|start| text.starts_with(start));
    match value {
        Value::String(text) if is_symbol(text) => {
            found.insert(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| collect_symbols(item, found)),
        Value::Object(fields) => {
            found.extend(fields.keys().filter(|name| is_symbol(name)).cloned());
            fields.values().for_each(|item| collect_symbols(item, found));
        }
        _ => {}
    }
}
