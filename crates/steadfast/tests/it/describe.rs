//! The descriptions of stacks and clients.

use std::time::Duration;

use http::{HeaderValue, header};
use steadfast::{
    Access, Client, Paths, Stack, Transport,
    auth::{ApiKey, TokenSource},
    deadline::DeadlineLayer,
    dedup::{AccountMode, Settings},
    limit::{Account, ApiKeyName},
    retry::{RetryPolicy, Schedule},
};

use crate::world::credentials;

const DEFAULTS: &str = "\
requests below https://api.example/t/v2
CallSpan
Deadline
  answered within: 120s
  left within: no limit
Route
  JSON bodies: refused
  authorize: GET /api-gw/oauth/authorize (api_key)
  token: POST /api-gw/oauth/token (api_key)
  individual-token: POST /api-gw/oauth/individual-token-v2 (otp, api_key)
  place-order: POST /api/oms/place-order (place_order)
  orders: GET /api/oms/orders (general)
  history: GET /api/oms/history (general)
  basket-margin: POST /api/oms/basket-margin (general)
  symbol-store: GET /api/mkt-data/scrips/symbol-store/{scripGroup} (data)
  without a path: cancel-order, order-margin, scrip-master, modify-order, quotes, positions, holdings, funds
Dedup
  lateness bound: 15s
  gateway's own timeout: 30s
  verification budget: 105s
  verified: every unknown outcome
  resends: at most 1; until 60s after the first send, market orders 20s
  after an undocumented 5xx: not resent
  account: nobody else trades on the account
  the list holds: the session's orders
  the list shows: orders of every status
  the list is known: before the first order
  absence is shown by: a list that was read
  reads: at most one in 1s, up to 67108864 bytes
  a 401 or 429 is confirmed: by a list read 1s later
  tag of an order: none
  orders alike: at the same time
  like one whose caller is gone: waits up to 5s
  trading day: +05:30
Retry
  repeats after: 1s, 2s, 4s, 8s
  longer by: up to 10 %
  Retry-After: up to 60s
  first 503: 5s at least
Refresh
  renewal: none: nobody renews the token
RateLimit
  otp: 3 in 1s per client_ip; universal; sustains 2
  api_key: 100 in 1s per api_key; universal; sustains 99
  data: 100 in 1s per auth_token; universal; sustains 99; critical 100, verification 97, trading 97, normal 95, bulk 95
  place_order: 10 in 1s per auth_token; adaptive, bursts of 1 at worst; sustains 10
  general: 10 in 1s, 400 in 60s per auth_token; universal; sustains 9/399; \
critical 10/400, verification 9/390, trading 9/390, normal 8/380, bulk 8/380
  waiting at most: critical 1024, verification 1024, trading 2048, normal 1024, bulk 256
AuthHeader
  only to: api.example
SendGuard
  journal: none
Classify
  looks into: 16384 bytes of a body
AttemptTimeout
  one send: 30s
  a body's pause: 10s
Transport
  sends over: the caller's own transport";

#[test]
fn a_stack_without_settings_describes_the_defaults() {
    let tokens = TokenSource::fixed(ApiKey::new("key").unwrap(), "token").unwrap();
    let description = Stack::new("https://api.example/t/v2".parse().unwrap(), tokens).describe();
    assert_eq!(description.to_string(), DEFAULTS, "{description}");
}

#[test]
fn a_client_describes_what_it_was_set_to_and_no_secret() {
    let secrets = [
        "KEY-CANARY",
        "CLIENT-CANARY",
        "PASSWORD-CANARY",
        "CANARYCANARYCANA",
        "PROXY-CANARY",
        "VALUE-CANARY",
    ];
    let [key, client, password, totp, proxy, value] = secrets;
    let access = Access::totp(credentials([key, client, password, totp])).unwrap();
    let transport = Transport::new()
        .local_address("127.0.0.9".parse().unwrap())
        .proxy(format!("http://desk:{proxy}@proxy.example:3128").parse().unwrap());
    let client = Client::builder("https://api.example/v2".parse().unwrap(), access)
        .paths(Paths::public())
        .transport(transport)
        .header(header::USER_AGENT, HeaderValue::from_static(value))
        .account(Account::new("desk"))
        .api_key_name(ApiKeyName::new("main"))
        .deadline(DeadlineLayer::new(Duration::from_secs(20)).send_by(Duration::from_secs(15)))
        .order_safety(Settings::conservative().account_mode(AccountMode::Shared))
        .retry(RetryPolicy::default().schedule(Schedule::never()))
        .build()
        .unwrap();
    let description = client.describe();
    for (layer, name, expected) in [
        ("Client", "sends", "user-agent"),
        ("Deadline", "answered within", "20s"),
        ("Deadline", "left within", "15s"),
        ("Route", "account", "desk"),
        ("Route", "cancel-order", "DELETE /api/oms/cancel-order (general)"),
        ("Route", "without a path", "none"),
        ("Dedup", "lateness bound", "90s"),
        ("Dedup", "account", "others trade on the account too"),
        ("Dedup", "absence is shown by", "a list that shows another order"),
        ("Retry", "repeats after", "never"),
        (
            "Refresh",
            "renewal",
            "3600s ahead in the background, 60s ahead at the latest, daily at 08:00 +05:30; stops after 2 wrong logins",
        ),
        ("RateLimit", "counted from", "127.0.0.9"),
        ("RateLimit", "api key", "main"),
        ("Transport", "sends over", "HTTP/1.1"),
        ("Transport", "connect timeout", "3s"),
        ("Transport", "local address", "127.0.0.9"),
        ("Transport", "proxy", "proxy.example:3128"),
    ] {
        assert_eq!(description.setting(layer, name), Some(expected), "{layer}: {name}");
    }
    let said = format!("{description} {description:?} {client:?}");
    for secret in secrets {
        assert!(!said.contains(secret), "{secret}");
    }
}
