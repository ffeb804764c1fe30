//! Scopes, and the effect of a changed zone on the wire: the table of §8, sentence by sentence.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::{Method, Request, Response, header::AUTHORIZATION};
use http_body_util::Full;
use steadfast_limit::{
    Account, Answer, ApiKeyName, BoxError, Builder, Lane, Profile, Quota, RateLimitLayer, SECOND, Scope,
    ScopeKeys, Zone, ZoneLimiter,
};
use steadfast_sandbox::Sandbox;
use steadfast_spec::zones;
use tokio::time::Instant;
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

async fn spend(limiter: &ZoneLimiter, zone: Zone, keys: ScopeKeys, n: u32) {
    for _ in 0..n {
        let mut permit = limiter.acquire(&[zone], keys, Lane::Critical).await.unwrap();
        permit.sent();
        permit.settle(Answer::Accepted);
    }
}

fn must_wait(limiter: &ZoneLimiter, zone: Zone, keys: ScopeKeys) -> bool {
    limiter.earliest(&[zone], keys, Lane::Critical).unwrap() > Instant::now()
}

#[tokio::test(start_paused = true)]
async fn each_zone_is_full_at_its_own_limit() {
    let limiter = ZoneLimiter::preset();
    let keys = limiter.keys("api.example", &Account::default());
    for row in zones() {
        let shortest = row.windows.iter().min_by_key(|window| window.period()).unwrap();
        assert_eq!(shortest.period(), SECOND);
        spend(&limiter, row.zone, keys, shortest.limit().get() - 1).await;
        assert!(!must_wait(&limiter, row.zone, keys), "{}: the last one goes", row.zone);
        spend(&limiter, row.zone, keys, 1).await;
        assert!(must_wait(&limiter, row.zone, keys), "{}", row.zone);
    }
}

#[tokio::test(start_paused = true)]
async fn an_api_key_is_counted_once_whoever_uses_it() {
    let limiter = ZoneLimiter::preset();
    let keys =
        |account, name| limiter.keys("api.example", &Account::new(account)).api_key(&ApiKeyName::new(name));
    spend(&limiter, Zone::API_KEY, keys("one", "desk"), 100).await;
    assert!(must_wait(&limiter, Zone::API_KEY, keys("two", "desk")), "another account, the same key");
    assert!(!must_wait(&limiter, Zone::API_KEY, keys("one", "other desk")));
    let unnamed = |account| limiter.keys("api.example", &Account::new(account));
    assert!(!must_wait(&limiter, Zone::API_KEY, unnamed("one")));
    spend(&limiter, Zone::API_KEY, unnamed("one"), 100).await;
    assert!(must_wait(&limiter, Zone::API_KEY, unnamed("two")), "nothing says that the keys differ");
}

#[tokio::test(start_paused = true)]
async fn two_gateways_in_one_process_share_nothing() {
    let limiter = ZoneLimiter::preset();
    let keys = |authority| limiter.keys(authority, &Account::new("one"));
    for row in zones() {
        let n = row.windows[0].limit().get();
        spend(&limiter, row.zone, keys("a.example"), n).await;
        assert!(must_wait(&limiter, row.zone, keys("a.example")), "{}", row.zone);
        assert!(!must_wait(&limiter, row.zone, keys("b.example")), "{}", row.zone);
        assert!(!must_wait(&limiter, row.zone, keys("a.example:8443")), "{}", row.zone);
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_is_counted_once_for_all_accounts_and_keys_of_a_process() {
    let limiter = ZoneLimiter::preset();
    let from = |address: &str, account| {
        limiter.keys("api.example", &Account::new(account)).local_address(address.parse().unwrap())
    };
    spend(&limiter, Zone::OTP, from("192.0.2.1", "one"), 3).await;
    let other = from("192.0.2.1", "two").api_key(&ApiKeyName::new("desk"));
    assert!(must_wait(&limiter, Zone::OTP, other));
    assert!(!must_wait(&limiter, Zone::OTP, from("192.0.2.2", "one")));
}

#[tokio::test(start_paused = true)]
async fn a_renewed_token_inherits_its_windows_until_the_limiter_is_told() {
    let limiter = ZoneLimiter::preset();
    let keys = limiter.keys("api.example", &Account::new("one"));
    for row in zones() {
        spend(&limiter, row.zone, keys, row.windows[0].limit().get()).await;
        // The key is the account's: another token changes nothing.
        assert!(must_wait(&limiter, row.zone, limiter.keys("api.example", &Account::new("one"))));
    }
    limiter.reset(keys);
    for row in zones() {
        let still = row.scope != Scope::AuthToken;
        assert_eq!(must_wait(&limiter, row.zone, keys), still, "{}: only the token is new", row.zone);
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_of_two_scopes_spends_in_both_or_in_neither() {
    let limiter = ZoneLimiter::preset();
    let keys =
        |account| limiter.keys("api.example", &Account::new(account)).api_key(&ApiKeyName::new(account));
    spend(&limiter, Zone::OTP, keys("one"), 3).await;
    let soon = Instant::now() + SECOND / 2;
    let both = limiter.acquire(&[Zone::OTP, Zone::API_KEY], keys("two"), Lane::Critical).send_by(soon);
    assert!(both.await.is_err());
    let used = |zone| {
        let zones = limiter.snapshot().zones;
        zones.iter().filter(|snapshot| snapshot.zone == zone).map(|zone| zone.windows[0].used).sum::<usize>()
    };
    assert_eq!((used(Zone::OTP), used(Zone::API_KEY)), (3, 0));
    limiter
        .acquire(&[Zone::OTP, Zone::API_KEY], keys("two"), Lane::Critical)
        .await
        .unwrap()
        .settle(Answer::Accepted);
    assert_eq!(used(Zone::API_KEY), 1);
}

#[tokio::test(start_paused = true)]
async fn a_path_in_no_table_falls_under_the_strictest_zone() {
    let limiter = ZoneLimiter::preset();
    let service = ServiceBuilder::new()
        .layer(limiter.layer())
        .service(service_fn(async |_: Request<()>| Ok::<_, BoxError>(http::Response::new(()))));
    service.oneshot(Request::patch("https://api.example/v9/never/heard/of").body(()).unwrap()).await.unwrap();
    let zones: Vec<_> = limiter.snapshot().zones.iter().map(|zone| zone.zone).collect();
    assert_eq!(zones, [Zone::GENERAL]);
}

#[tokio::test(start_paused = true)]
async fn the_layer_counts_the_api_key_that_it_or_the_request_names() {
    let limiter = ZoneLimiter::preset();
    let send = async |layer: RateLimitLayer, name: Option<&str>| {
        let service = ServiceBuilder::new()
            .layer(layer)
            .service(service_fn(async |_: Request<()>| Ok::<_, BoxError>(http::Response::new(()))));
        let mut request = Request::post("https://api.example/v2/api-gw/oauth/token").body(()).unwrap();
        request.extensions_mut().extend(
            name.map(|name| {
                let mut extensions = http::Extensions::new();
                extensions.insert(ApiKeyName::new(name));
                extensions
            })
            .unwrap_or_default(),
        );
        service.oneshot(request).await.unwrap();
    };
    let count = || limiter.snapshot().zones.len();
    send(limiter.layer(), None).await;
    send(limiter.layer().api_key(ApiKeyName::new("desk")), None).await;
    assert_eq!(count(), 2);
    send(limiter.layer(), Some("desk")).await;
    assert_eq!(count(), 2, "the same key");
    send(limiter.layer().api_key(ApiKeyName::new("desk")), Some("other desk")).await;
    assert_eq!(count(), 3, "the request's own name comes first");
}

/// Returns how many of 60 simultaneous requests of `zone` reached the sandbox in each of the first three seconds.
async fn trace(builder: Builder, zone: Zone) -> Vec<usize> {
    let sandbox = Sandbox::builder().build().unwrap();
    let facts = sandbox.credentials();
    let (method, path, login) = match zone {
        Zone::OTP => (Method::POST, "/api-gw/oauth/individual-token-v2", true),
        Zone::API_KEY => (Method::POST, "/api-gw/oauth/token", true),
        Zone::DATA => (Method::GET, "/api/mkt-data/scrips/symbol-store/NSE_EQ", false),
        Zone::PLACE_ORDER => (Method::POST, "/api/oms/place-order", false),
        _ => (Method::GET, "/api/oms/orders", false),
    };
    let token = if login { String::new() } else { format!(":{}", facts.access_token) };
    let service = ServiceBuilder::new().layer(builder.build().unwrap().layer()).service(sandbox.gateway());
    let request = || {
        Request::builder()
            .method(method.clone())
            .uri(format!("{}{path}", facts.base_url))
            .header(AUTHORIZATION, format!("Bearer {}{token}", facts.api_key))
            .body(Full::<Bytes>::default())
            .unwrap()
    };
    join_all((0..60).map(|_| service.clone().oneshot(request()))).await;
    let arrivals = sandbox.state().arrivals;
    assert!(arrivals.iter().all(|arrival| arrival.status != 429), "{zone}");
    let in_second = |s: u64| {
        let counted = arrivals.iter().filter(|a| a.zones.contains(&zone.as_str()));
        counted.filter(|a| a.at_ns / 1_000_000_000 == s).count()
    };
    (0..3).map(in_second).collect()
}

/// For every zone of the service: the trace with the service's limit, and with a custom one.
#[tokio::test(start_paused = true)]
async fn a_zone_that_is_changed_from_code_changes_what_is_on_the_wire() {
    let preset = || ZoneLimiter::builder().preset();
    for (zone, before) in [
        (Zone::OTP, [3, 3, 3]),
        (Zone::API_KEY, [60, 0, 0]),
        (Zone::DATA, [60, 0, 0]),
        (Zone::PLACE_ORDER, [10, 10, 10]),
        (Zone::GENERAL, [8, 8, 8]),
    ] {
        let log = |quota: Quota| quota.profile(Profile::WindowLog);
        assert_eq!(trace(preset().adjust(zone, log), zone).await[..2], before[..2], "{zone} of the service");
        let mine = |quota: Quota| log(quota).clear_limits().limit(2, SECOND);
        assert_eq!(trace(preset().adjust(zone, mine), zone).await, [2, 2, 2], "{zone}, two a second");
        let slow = |quota: Quota| log(quota).clear_limits().limit(1, Duration::from_millis(1_900));
        assert_eq!(trace(preset().adjust(zone, slow), zone).await, [1, 1, 0], "{zone}, one in 1.9 s");
    }
}

/// Regression: the service kept the authority of its first request as it was written.
#[tokio::test(start_paused = true)]
async fn a_password_before_the_host_is_not_shown() {
    let limiter = ZoneLimiter::preset();
    let answers = service_fn(|_: Request<()>| async { Ok::<_, BoxError>(Response::new(())) });
    let mut service = ServiceBuilder::new().layer(limiter.layer()).service(answers);
    let uri = "https://trader:hunter2@example.com/v2/api/oms/orders";
    service.ready().await.unwrap().call(Request::get(uri).body(()).unwrap()).await.unwrap();
    assert!(!format!("{service:?}").contains("hunter2"));
}
