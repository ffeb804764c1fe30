use std::{net::IpAddr, time::Duration};

use steadfast_sandbox::{Fault, Sandbox};

use crate::world::{MARKET, World};

const TABLE: &[(Fault, &str)] = &[
    (Fault::AuthTokenRevoked, "auth.token-revoked"),
    (Fault::AuthAllTokensRevoked, "auth.all-tokens-revoked"),
    (Fault::AuthSessionEvicted, "auth.session-evicted"),
    (Fault::AuthIpRemoved, "auth.ip-removed"),
    (Fault::AuthDateSkew, "auth.date-skew"),
    (Fault::AuthLogin5xx, "auth.login-5xx"),
    (Fault::AuthLockOut, "auth.lock-out"),
    (Fault::Auth401, "auth.401"),
    (Fault::Auth403, "auth.403"),
    (Fault::AuthExpiresZero, "auth.expires-zero"),
    (Fault::AuthExpiresNegative, "auth.expires-negative"),
    (Fault::AuthExpiresHuge, "auth.expires-huge"),
    (Fault::AuthExpiresText, "auth.expires-text"),
    (Fault::AuthSameToken, "auth.same-token"),
    (Fault::AuthLogin429, "auth.login-429"),
    (Fault::AuthLogin500, "auth.login-500"),
    (Fault::AuthLogin504, "auth.login-504"),
    (Fault::AuthLoginHang, "auth.login-hang"),
    (Fault::AuthTotpSkew, "auth.totp-skew"),
];

pub(super) fn faults() -> Vec<Fault> {
    TABLE.iter().map(|(fault, _)| *fault).collect()
}

#[tokio::test(start_paused = true)]
async fn an_authorization_fault_does_to_wire_and_sessions_what_it_says() {
    for &(fault, name) in TABLE {
        assert_eq!(fault.as_str(), name);
        let world = World::new();
        let second = world.log_in(1).await;
        world.strike_always(name);
        match fault {
            Fault::AuthDateSkew => dates_are_off(&world).await,
            Fault::AuthLogin5xx => the_session_of_a_failed_login_is_there(&world).await,
            Fault::Auth401 => one_request_is_refused(&world, 401).await,
            Fault::Auth403 => one_request_is_refused(&world, 403).await,
            Fault::AuthExpiresZero => expires_in(&world, &0.into()).await,
            Fault::AuthExpiresNegative => expires_in(&world, &(-1).into()).await,
            Fault::AuthExpiresHuge => expires_in(&world, &u64::MAX.into()).await,
            Fault::AuthExpiresText => expires_in(&world, &"soon".into()).await,
            Fault::AuthSameToken => {
                let sessions = world.truth().logins.active_sessions;
                assert_eq!((world.log_in(1).await, world.log_in(1).await), (second.clone(), second.clone()));
                assert_eq!(world.truth().logins.active_sessions, sessions);
            }
            Fault::AuthLogin429 => a_login_is_not_looked_at(&world, 429).await,
            Fault::AuthLogin500 => a_login_is_not_looked_at(&world, 500).await,
            Fault::AuthLogin504 => a_login_is_not_looked_at(&world, 504).await,
            Fault::AuthLoginHang => {
                let sent = tokio::time::Instant::now();
                a_login_is_not_looked_at(&world, 0).await;
                assert!(sent.elapsed() > Duration::from_secs(500), "nobody waits for it");
            }
            Fault::AuthTotpSkew => {
                world.pass(Duration::from_secs(30));
                assert_eq!(world.login().send().await.status(), 401);
                world.sandbox.heal();
                world.pass(Duration::from_secs(30));
                assert_eq!(world.login().send().await.status(), 200);
            }
            Fault::AuthLockOut => every_login_is_refused(&world).await,
            _ => the_request_is_refused(&world, fault, &second).await,
        }
        assert!(world.struck(name) > 0, "{name}");
    }
}

async fn the_request_is_refused(world: &World, fault: Fault, second: &str) {
    let sessions = world.truth().logins.active_sessions;
    let answer = world.place(MARKET).await;
    assert_eq!(answer.error(), (401, "Unauthorized".to_owned()), "{fault}");
    assert_eq!(world.orders(), 0, "{fault}");
    world.sandbox.heal();
    let works = async |token: &str| {
        let call = world.get("/api/oms/history").bearer(&world.user.api_key, token);
        call.send().await.status() == 200
    };
    let alive = world.truth().logins.active_sessions;
    let after = (works(&world.user.access_token).await, works(second).await);
    match fault {
        // Only the token itself; the other session and the other user are unaffected.
        Fault::AuthTokenRevoked => assert_eq!((after, alive), ((false, true), sessions - 1)),
        // The first session is the oldest.
        Fault::AuthSessionEvicted => assert_eq!((after, alive), ((false, true), sessions - 1)),
        Fault::AuthAllTokensRevoked => assert_eq!((after, alive), ((false, false), 0)),
        Fault::AuthIpRemoved => {
            assert_eq!((after, alive), ((false, false), sessions), "the tokens are good, the address is not");
            world.sandbox.whitelist(&world.user.client_id, None);
            assert!(works(&world.user.access_token).await);
        }
        other => panic!("{other} refuses no request"),
    }
}

async fn one_request_is_refused(world: &World, status: u16) {
    assert_eq!(world.place(MARKET).await.error().0, status);
    assert_eq!(world.orders(), 0);
    world.sandbox.heal();
    assert_eq!(world.place(MARKET).await.status(), 200, "the token is good");
}

async fn expires_in(world: &World, written: &serde_json::Value) {
    world.pass(Duration::from_secs(30));
    let answer = world.login().send().await;
    assert_eq!(&answer.json()["d"]["expires_in"], written);
    let token = answer.json()["d"]["access_token"].as_str().expect("a token").to_owned();
    world.pass(Duration::from_secs(86_399));
    let call = world.get("/api/oms/orders").bearer(&world.user.api_key, &token);
    assert_eq!(call.send().await.status(), 200, "it lives for a day all the same");
}

async fn a_login_is_not_looked_at(world: &World, status: u16) {
    let before = world.truth().logins;
    world.pass(Duration::from_secs(30));
    let login = world.login();
    assert_eq!(login.send().await.status(), status);
    assert_eq!(world.truth().logins, before);
    world.sandbox.heal();
    assert_eq!(world.login().send().await.status(), 200, "the code was not used up");
}

async fn dates_are_off(world: &World) {
    let mut skews = Vec::new();
    for _ in 0..40 {
        world.pass(Duration::from_secs(1));
        skews.push(skew(world).await);
    }
    assert!(skews.iter().all(|skew| skew.abs() <= 11), "{skews:?}");
    assert!(skews.iter().any(|skew| *skew < -2) && skews.iter().any(|skew| *skew > 2), "{skews:?}");
    world.sandbox.heal();
    assert!((-1..=0).contains(&skew(world).await), "without the fault the date is right");
}

/// Returns how far an answer's `Date` is from the gateway's wall clock, in seconds, rounded down as
/// dates are.
async fn skew(world: &World) -> i64 {
    let answer = world.list().await;
    assert_eq!(answer.status(), 200);
    let shown = httpdate::parse_http_date(answer.header("date").expect("a date")).expect("a date of HTTP");
    let shown = shown.duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs();
    let start = world.start.duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    let wall = start + Duration::from_nanos(world.truth().now_ns);
    i64::try_from(shown).expect("a date") - i64::try_from(wall.as_secs()).expect("a date")
}

async fn the_session_of_a_failed_login_is_there(world: &World) {
    let before = world.truth().logins;
    world.pass(Duration::from_secs(30));
    let answer = world.login().send().await;
    assert_eq!(answer.error(), (500, "Internal server error".to_owned()));
    let after = world.truth().logins;
    assert_eq!(after.active_sessions, before.active_sessions + 1);
    assert_eq!((after.succeeded, after.failed), (before.succeeded + 1, before.failed));
}

async fn every_login_is_refused(world: &World) {
    for heals in [false, true] {
        if heals {
            world.sandbox.heal();
        }
        world.pass(Duration::from_secs(30));
        assert_eq!(world.login().send().await.error(), (401, "Unauthorized".to_owned()));
    }
    assert_eq!(world.list().await.status(), 200, "the open session lives on");
}

#[tokio::test(start_paused = true)]
async fn a_reset_unlocks_an_account() {
    let world = World::with_script("[[fault]]\nname = 'auth.lock-out'\nnth = 1");
    assert_eq!(world.login().send().await.status(), 401);
    world.sandbox.reset();
    assert_eq!(world.login().send().await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn an_address_taken_off_the_whitelist_leaves_the_others_on_it() {
    let [home, office] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
    let builder = Sandbox::builder().whitelist([home, office]);
    let world = World::of(builder.script("[[fault]]\nname = 'auth.ip-removed'\nnth = 2").expect("a script"));
    let status_from = async |peer| world.get("/api/oms/orders").peer(peer).send().await.status();
    assert_eq!(status_from(home).await, 200);
    assert_eq!(status_from(home).await, 401, "the fault");
    assert_eq!(status_from(home).await, 401);
    assert_eq!(status_from(office).await, 200);
    world.sandbox.reset();
    let token = world.sandbox.credentials().access_token;
    let call = world.get("/api/oms/orders").bearer(&world.user.api_key, &token);
    assert_eq!(call.clone().peer(home).send().await.status(), 200, "a reset undoes the fault");
    let stranger = call.peer([10, 0, 0, 3].into()).send().await.status();
    assert_eq!(stranger, 401, "and keeps the setting");
}
