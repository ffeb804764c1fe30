//! §5 Authentication: the header, the two ways of login, the IP whitelist. Sessions have a module of their own.

use steadfast_sandbox::{IpRefusal, Sandbox};

use crate::{
    answer::{FORBIDDEN, UNAUTHORIZED},
    endpoints::{self, ORDERS, PLACE_ORDER},
    form::limit_order,
    world::{A_MINUTE, EQUITY, World, ip},
};

#[tokio::test(start_paused = true)]
async fn spec_5_the_full_header_opens_protected_endpoints() {
    let world = World::new();
    let header = format!("Bearer {}:{}", world.user.session.api_key, world.user.session.token);
    let call = world.get(ORDERS).without_authorization();
    world.calmly(&call).await.assert_error(401, UNAUTHORIZED);
    let answer = world.calmly(&call.authorization(&header)).await;
    assert!(answer.status.is_success(), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn spec_5_a_missing_header_is_unauthorized() {
    let world = World::new();
    for endpoint in endpoints::protected() {
        let call = world.call(&endpoint);
        assert_ne!(world.calmly(&call).await.status, 401, "{endpoint:?}");
        world.calmly(&call.without_authorization()).await.assert_error(401, UNAUTHORIZED);
    }
}

#[tokio::test(start_paused = true)]
async fn spec_5_malformed_headers_are_unauthorized() {
    let world = World::new();
    let (key, token) = (&world.user.session.api_key, &world.user.session.token);
    let malformed = [
        String::new(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        "Bearer :".to_owned(),
        format!("{key}:{token}"),
        format!("Basic {key}:{token}"),
        format!("Token {key}:{token}"),
        format!("Bearer{key}:{token}"),
        format!("Bearer {key}"),
        format!("Bearer {key}:"),
        format!("Bearer :{token}"),
        format!("Bearer {token}"),
        format!("Bearer {key}{token}"),
        format!("Bearer {key};{token}"),
        format!("Bearer {key}/{token}"),
        format!("Bearer {key} {token}"),
        format!("Bearer {key}: {token}"),
        format!("Bearer {token}:{key}"),
        format!("Bearer {key}:{token}:{token}"),
        format!("Bearer {key}:{token}x"),
        format!("Bearer {key}x:{token}"),
    ];
    for header in malformed {
        let call = world.get(ORDERS).authorization(&header);
        world.calmly(&call).await.assert_error(401, UNAUTHORIZED);
    }
    assert!(world.is_alive(&world.user.session).await, "the session itself was good");
}

#[tokio::test(start_paused = true)]
async fn spec_5_the_api_key_is_alphanumeric() {
    let world = World::new();
    for key in [&world.user.api_key, &world.other.api_key] {
        assert!(!key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{key}");
    }
}

#[tokio::test(start_paused = true)]
async fn spec_5_key_and_token_must_belong_together() {
    let world = World::new();
    let token = &world.user.session.token;
    for key in ["nosuchkey", &world.other.api_key, &world.user.api_key.to_ascii_lowercase()] {
        if *key == world.user.api_key {
            continue;
        }
        let call = world.get(ORDERS).authorization(&format!("Bearer {key}:{token}"));
        world.calmly(&call).await.assert_error(401, UNAUTHORIZED);
    }
    assert!(world.is_alive(&world.user.session).await, "the pair itself was good");
}

#[tokio::test(start_paused = true)]
async fn spec_5_both_ways_of_login_yield_a_working_token() {
    let world = World::new();
    let by_code = world.log_in_by_oauth().await;
    let by_two_factor = world.log_in().await;
    assert_ne!(by_code.token, by_two_factor.token);
    assert!(world.is_alive(&by_code).await);
    assert!(world.is_alive(&by_two_factor).await);
}

#[tokio::test(start_paused = true)]
async fn spec_5_only_whitelisted_addresses_are_served() {
    let world = World::new();
    world.sandbox.whitelist(&world.user.client_id, Some(vec![ip(1), ip(2)]));
    for endpoint in endpoints::protected() {
        let call = world.call(&endpoint);
        world.calmly(&call).await.assert_error(401, UNAUTHORIZED);
        world.calmly(&call.clone().peer(ip(3))).await.assert_error(401, UNAUTHORIZED);
        for listed in [ip(1), ip(2)] {
            assert_ne!(world.calmly(&call.clone().peer(listed)).await.status, 401, "{endpoint:?}");
        }
    }

    let theirs = world.get(ORDERS).bearer(&world.other.session).peer(ip(3));
    let answer = world.calmly(&theirs).await;
    assert!(answer.status.is_success(), "another user has no whitelist: {answer}");
}

#[tokio::test(start_paused = true)]
async fn spec_5_login_also_needs_a_whitelisted_address() {
    let world = World::new();
    world.sandbox.whitelist(&world.user.client_id, Some(vec![ip(1)]));
    world.try_log_in().await.assert_error(401, UNAUTHORIZED);

    world.pass(A_MINUTE);
    let listed = world.individual_token(&world.login_form()).peer(ip(1));
    world.session_from(&listed.send().await);
}

#[tokio::test(start_paused = true)]
async fn spec_5_the_token_exchange_also_needs_a_whitelisted_address() {
    let world = World::new();
    let exchange = world.exchange(&world.exchange_form(&world.authorization_code().await));
    world.sandbox.whitelist(&world.user.client_id, Some(vec![ip(1)]));
    world.calmly(&exchange).await.assert_error(401, UNAUTHORIZED);
    let answer = world.calmly(&exchange.peer(ip(1))).await;
    assert!(answer.json()["access_token"].is_string(), "the refusal has not used the code up: {answer}");
}

#[tokio::test(start_paused = true)]
async fn spec_5_an_order_from_a_foreign_address_is_not_placed() {
    let world = World::new();
    world.sandbox.whitelist(&world.user.client_id, Some(vec![ip(1)]));
    world.place(&limit_order(EQUITY)).await.assert_error(401, UNAUTHORIZED);
    assert_eq!(world.orders_in_the_book(), 0);

    let listed = world.post(PLACE_ORDER, &limit_order(EQUITY)).peer(ip(1));
    world.calmly(&listed).await.payload();
    assert_eq!(world.orders_in_the_book(), 1);
}

#[tokio::test(start_paused = true)]
async fn spec_5_a_foreign_address_with_a_valid_token_is_forbidden_by_switch() {
    let world = forbidding();
    for endpoint in endpoints::protected() {
        world.calmly(&world.call(&endpoint)).await.assert_error(403, FORBIDDEN);
    }
    let listed = world.calmly(&world.get(ORDERS).peer(ip(1))).await;
    assert!(listed.status.is_success(), "{listed}");
}

#[tokio::test(start_paused = true)]
async fn spec_5_a_foreign_address_without_a_valid_token_stays_unauthorized() {
    let world = forbidding();
    world.calmly(&world.get(ORDERS)).await.assert_error(403, FORBIDDEN);
    let wrong = world.get(ORDERS).authorization(&format!("Bearer {}:nonsense", world.user.api_key));
    world.calmly(&wrong).await.assert_error(401, UNAUTHORIZED);
    world.calmly(&wrong.without_authorization()).await.assert_error(401, UNAUTHORIZED);
}

/// Creates a gateway that serves the user from one address only, and answers 403 to the others.
fn forbidding() -> World {
    let sandbox = Sandbox::builder().seed(7).ip_refusal(IpRefusal::Forbidden).build();
    let world = World::of(sandbox.expect("a sandbox"));
    world.sandbox.whitelist(&world.user.client_id, Some(vec![ip(1)]));
    world
}
