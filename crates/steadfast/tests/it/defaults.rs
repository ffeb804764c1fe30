//! Checks that the page of defaults agrees with the code and lists every setting.

use std::{collections::BTreeMap, fmt::Debug};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use steadfast::{
    BaseUrl, BoxError, Transport,
    auth::{
        ApiKey, AuthHeaderLayer, BrowserLogin, CodeExchange, Credentials, IndividualLogin, Renewal,
        TokenSource, TotpSecret,
    },
    deadline::DeadlineLayer,
    dedup::Settings,
    limit::{Ceilings, Lane, Quota, RateLimitLayer, Scope, Zone, ZoneLimiter},
    retry::{AttemptTimeoutLayer, BufferBodyLayer, RetryPolicy},
};
use tower::service_fn;

use crate::answering::builder;

const PAGE: &str = include_str!("../../src/guide/defaults.md");

/// The types with settings, and their source files.
const SOURCES: [(&str, &str); 23] = [
    ("ClientBuilder", include_str!("../../src/client/builder.rs")),
    ("Transport", include_str!("../../src/transport.rs")),
    ("DeadlineLayer", include_str!("../../src/layers/deadline.rs")),
    ("Access", include_str!("../../src/access.rs")),
    ("AttemptTimeoutLayer", include_str!("../../../steadfast-retry/src/timeout/layer.rs")),
    ("BufferBodyLayer", include_str!("../../../steadfast-retry/src/buffer/layer.rs")),
    ("RetryPolicy", include_str!("../../../steadfast-retry/src/policy.rs")),
    ("Settings", include_str!("../../../steadfast-dedup/src/settings.rs")),
    ("Settings", include_str!("../../../steadfast-dedup/src/settings/clocks.rs")),
    ("DedupLayer", include_str!("../../../steadfast-dedup/src/place/layer.rs")),
    ("Builder", include_str!("../../../steadfast-limit/src/shell/builder.rs")),
    ("Quota", include_str!("../../../steadfast-limit/src/core/rules/quota.rs")),
    ("Ceilings", include_str!("../../../steadfast-limit/src/core/rules/ceilings.rs")),
    ("Renewal", include_str!("../../../steadfast-auth/src/token/renewal.rs")),
    ("TokenSourceBuilder", include_str!("../../../steadfast-auth/src/token/source/builder.rs")),
    ("AuthHeaderLayer", include_str!("../../../steadfast-auth/src/header/layer.rs")),
    ("IndividualLogin", include_str!("../../../steadfast-auth/src/login/individual.rs")),
    ("CodeExchange", include_str!("../../../steadfast-auth/src/login/oauth.rs")),
    ("BrowserLogin", include_str!("../../../steadfast-auth/src/login/browser.rs")),
    // These have the settings of a client's builder, under the same names.
    ("Stack", include_str!("../../src/stack.rs")),
    ("RouteLayer", include_str!("../../src/layers/route.rs")),
    ("LimiterGate", include_str!("../../src/gate.rs")),
    ("RateLimitLayer", include_str!("../../../steadfast-limit/src/layer.rs")),
];

/// Returns the rows of the page: each setting with its default.
fn page() -> BTreeMap<&'static str, &'static str> {
    let rows = PAGE.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let setting = cells.next()?.split('`').nth(1)?;
        Some((setting, cells.next()?))
    });
    let mut page = BTreeMap::new();
    for (setting, value) in rows {
        assert!(page.insert(setting, value).is_none(), "{setting} is there twice");
    }
    page
}

/// Returns the methods of a type that take `self` and return it.
fn setters(name: &str, source: &'static str) -> impl Iterator<Item = &'static str> {
    let code = source.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let blocks = code.split("\nimpl").skip(1);
    let own = blocks.filter(move |block| block.split('{').next().is_some_and(|head| head.contains(name)));
    own.flat_map(|block| block.split("    pub ").skip(1)).filter_map(|rest| {
        let (name, rest) = rest.trim_start_matches("const ").strip_prefix("fn ")?.split_once('(')?;
        let name = name.split('<').next()?;
        let head = rest.split_once('{')?.0;
        let takes = head.trim_start().trim_start_matches("mut ").starts_with("self");
        (takes && (head.contains("-> Self") || head.contains("-> Result<Self"))).then_some(name)
    })
}

#[test]
fn every_setting_is_on_the_page_of_defaults() {
    let page = page();
    let is_there = |setting: &str| page.contains_key(setting);
    let mut settings = 0;
    for (name, source) in SOURCES {
        for setter in setters(name, source) {
            let same = ["ClientBuilder", "Transport"].map(|name| format!("{name}::{setter}"));
            let repeats = ["Stack", "RouteLayer", "LimiterGate", "RateLimitLayer"].contains(&name);
            let known = is_there(&format!("{name}::{setter}"))
                || repeats && (same.iter().any(|same| is_there(same)) || setter == "api_key");
            assert!(known, "{name}::{setter} is missing");
            settings += 1;
        }
    }
    assert!(settings > 80, "{settings}: the sources are not read");
    for setting in page.keys() {
        let (name, setter) = setting.split_once("::").unwrap();
        let mut sources = SOURCES.iter().filter(|(its, _)| *its == name);
        let is_there = sources.any(|(_, source)| setters(name, source).any(|its| its == setter));
        assert!(setter == "new" || is_there, "there is no {setting}");
    }
}

/// Returns a field from the debug output of a value.
fn field(value: &impl Debug, name: &str) -> String {
    let shown = format!("{value:?}");
    let start = shown.find(&format!("{name}: ")).unwrap_or_else(|| panic!("{shown} has no {name}"));
    let rest = &shown[start + name.len() + 2..];
    let mut depth = 0;
    let end = rest.find(|c: char| {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        depth < 0 || depth == 0 && c == ','
    });
    rest[..end.unwrap_or(rest.len())].trim().to_owned()
}

type Leaf = fn(Request<Full<Bytes>>) -> std::future::Ready<Result<Response<Full<Bytes>>, BoxError>>;

fn defaults() -> BTreeMap<&'static str, String> {
    let base: BaseUrl = "https://api.example/v2".parse().unwrap();
    let key = || ApiKey::new("key").unwrap();
    let leaf: Leaf = |_| std::future::ready(Ok(Response::default()));
    let (deadline, send) = (DeadlineLayer::default(), AttemptTimeoutLayer::default());
    let (transport, client, retry) = (Transport::new(), builder(), RetryPolicy::default());
    let (orders, limits, renewal) = (Settings::new(), ZoneLimiter::builder(), Renewal::new());
    let quota = Quota::new(Zone::new("own"), Scope::AuthToken);
    let header = AuthHeaderLayer::new(TokenSource::not_configured(key()));
    let totp = TotpSecret::new("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ").unwrap();
    let individual =
        IndividualLogin::totp(service_fn(leaf), &base, key(), Credentials::new("U1", "x"), totp).unwrap();
    let browser = || BrowserLogin::new(&base, key(), "http://127.0.0.1:9/", |_: &str| ()).unwrap();
    let exchange =
        CodeExchange::new(service_fn(leaf), &base, key(), "x", "http://127.0.0.1:9/", browser()).unwrap();
    let withheld = |ceilings: Ceilings| {
        let lanes = [Lane::Critical, Lane::Verification, Lane::Trading, Lane::Normal, Lane::Bulk];
        format!("{:?}", lanes.map(|lane| 10 - ceilings.ceiling(lane, 10)))
    };
    let daily = field(&renewal, "daily");
    let inner = |debug: String| debug.trim_start_matches("Some(").trim_end_matches(')').to_owned();
    let delays = format!("{:?}", retry.rules().schedule.delays());
    let of = |value: &dyn Debug, name| field(&value, name);
    BTreeMap::from([
        ("DeadlineLayer::new", of(&deadline, "deadline")),
        ("DeadlineLayer::send_by", of(&deadline, "send_by")),
        ("AttemptTimeoutLayer::new", of(&send, "timeout")),
        ("AttemptTimeoutLayer::body_idle", inner(of(&send, "idle"))),
        ("Transport::connect_timeout", of(&transport, "connect_timeout")),
        ("Transport::idle_timeout", of(&transport, "idle_timeout")),
        ("Transport::order_idle_timeout", of(&transport, "order_idle_timeout")),
        ("Transport::max_connections", of(&transport, "max_connections")),
        ("Transport::local_address", of(&transport, "local_address")),
        ("Transport::proxy", of(&transport, "proxy")),
        ("Transport::root_certificates", of(&transport, "roots")),
        ("ClientBuilder::account", of(&client, "account").replace("Account(", "").replace(')', "")),
        ("ClientBuilder::api_key_name", of(&client, "api_key_name")),
        ("ClientBuilder::header", of(&client, "headers")),
        ("ClientBuilder::pass_json", of(&client, "pass_json")),
        ("ClientBuilder::journal", of(&client, "journal")),
        ("Access::store", of(&client, "store")),
        ("Access::shared_store", of(&client, "shared_store")),
        ("ClientBuilder::shared", of(&client, "shared")),
        ("ClientBuilder::shared_orders", of(&client, "shared_orders")),
        ("RetryPolicy::schedule", delays),
        ("RetryPolicy::jitter", retry.rules().jitter.most().to_string()),
        ("RetryPolicy::retry_after_cap", of(&retry, "retry_after_cap")),
        ("RetryPolicy::unavailable_delay", of(&retry, "unavailable_delay")),
        ("RetryPolicy::persistent_bad_gateway", of(&retry, "persistent_bad_gateway")),
        ("RetryPolicy::budget", of(&retry, "budget")),
        ("BufferBodyLayer::limit", of(&BufferBodyLayer::new(), "limit")),
        ("Settings::lateness", of(&orders, "lateness")),
        ("Settings::gateway_timeout", of(&orders, "gateway_timeout")),
        ("Settings::verification_budget", format!("{:?}", orders.verification_bound())),
        ("Settings::resend", of(&orders, "resend")),
        ("Settings::resend_after_undocumented_error", of(&orders, "resend_undocumented")),
        ("Settings::max_resend_age", of(&orders, "max_resend_age")),
        ("Settings::max_resend_age_market", of(&orders, "max_resend_age_market")),
        ("Settings::duplicate_hold", of(&orders, "duplicate_hold")),
        ("Settings::refusal_lag", of(&orders, "refusal_lag")),
        ("Settings::account_mode", of(&orders, "account_mode")),
        ("Settings::orders_scope", of(&orders, "orders_scope")),
        ("Settings::list_shows", of(&orders, "list_shows")),
        ("Settings::key_policy", of(&orders, "key_policy")),
        ("Settings::verify_on", of(&orders, "verify_on")),
        ("Settings::baseline", of(&orders, "baseline")),
        ("Settings::read_spacing", of(&orders, "read_spacing")),
        ("Settings::refuse_disputed_day", of(&orders, "refuse_disputed_day")),
        ("Settings::list_body_cap", of(&orders, "list_body_cap")),
        ("Settings::traced", of(&orders, "traced")),
        ("Settings::trading_day", of(&orders, "utc_offset")),
        ("RateLimitLayer::ends_dropped_calls", of(&RateLimitLayer::default(), "ends_when_dropped")),
        ("Builder::zone", of(&limits, "quotas")),
        ("Builder::arrives_within", of(&limits, "arrives_within")),
        ("Builder::ends_with_process", of(&limits, "ends_with_process")),
        ("Builder::queue_bound", of(&limits, "queue_bounds")),
        ("Builder::max_keys", of(&limits, "most_keys")),
        ("Builder::strict_critical", of(&limits, "strict_critical")),
        ("Builder::move_refused_routes", of(&limits, "moved_routes")),
        ("Builder::cold_start", of(&limits, "cold_start")),
        ("Builder::on_event", of(&limits, "observer")),
        ("Quota::limit", of(&quota, "limits")),
        ("Quota::profile", of(&quota, "profile")),
        ("Quota::ceilings", withheld(Ceilings::default())),
        ("Ceilings::withhold", withheld(Ceilings::standard())),
        ("Quota::headroom", of(&quota, "headroom")),
        ("Quota::settle", of(&quota, "settle")),
        ("Renewal::advisory", of(&renewal, "advisory")),
        ("Renewal::mandatory", of(&renewal, "mandatory")),
        (
            "Renewal::daily",
            format!("{} +{}", field(&daily, "minute_of_day"), field(&daily, "utc_offset_minutes")),
        ),
        ("Renewal::failure_budget", of(&renewal, "budget")),
        ("Renewal::max_waiting", of(&renewal, "waiting")),
        ("TokenSourceBuilder::store", "None".to_owned()),
        ("TokenSourceBuilder::unnamed_store", "None".to_owned()),
        ("AuthHeaderLayer::callers_header", of(&header, "callers")),
        ("AuthHeaderLayer::only_to", of(&header, "only_to")),
        ("IndividualLogin::timeout", of(&individual, "timeout")),
        ("CodeExchange::timeout", of(&exchange, "timeout")),
        ("CodeExchange::user", "\"\"".to_owned()),
        ("BrowserLogin::patience", of(&browser(), "patience")),
        ("BrowserLogin::parameter", "[]".to_owned()),
    ])
}

#[test]
fn the_page_of_defaults_says_what_the_code_does() {
    let (page, code) = (page(), defaults());
    // Defaults described in words are not compared.
    let values = page.iter().filter_map(|(setting, value)| Some((*setting, value.split('`').nth(1)?)));
    let code: BTreeMap<_, _> = code.iter().map(|(setting, value)| (*setting, &**value)).collect();
    assert_eq!(values.collect::<BTreeMap<_, _>>(), code);
}
