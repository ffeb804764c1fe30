//! §4.1 Summary: every endpoint with its method and its Authorization header.

use http::Method;

use crate::{
    answer::{METHOD_NOT_ALLOWED, UNAUTHORIZED},
    endpoints::{self, AUTHORIZE, Access},
    form::Form,
    world::World,
};

#[tokio::test(start_paused = true)]
async fn spec_4_1_every_endpoint_answers_to_its_method() {
    let world = World::new();
    for endpoint in endpoints::all() {
        let answer = world.calmly(&world.call(&endpoint)).await;
        // Some of these calls are incomplete, and the login attempts are wrong on purpose. The gateway must
        // know the endpoint and let the request reach it.
        assert!(!matches!(answer.status.as_u16(), 404 | 405 | 429), "{answer}");
        assert!(!answer.status.is_server_error(), "{answer}");
        if endpoint.access == Access::Full {
            assert_ne!(answer.status, 401, "{answer}");
        }
        if endpoint.method == Method::GET {
            assert!(answer.status.is_success(), "{answer}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn spec_4_1_wrong_methods_are_not_allowed() {
    let world = World::new();
    for endpoint in endpoints::all() {
        for method in [Method::GET, Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
            // The login page posts to its own address, a reading of "user logs in".
            let is_login = endpoint.path == AUTHORIZE && method == Method::POST;
            if method == endpoint.method || is_login {
                continue;
            }
            let call = world.call(&endpoint).method(method).query("orderId", "any");
            world.calmly(&call.content_type(crate::call::FORM)).await.assert_error(405, METHOD_NOT_ALLOWED);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn spec_4_1_full_endpoints_refuse_half_an_authorization() {
    let world = World::new();
    let session = &world.user.session;
    for endpoint in endpoints::protected() {
        for half in [&session.api_key, &session.token] {
            let call = world.call(&endpoint).authorization(&format!("Bearer {half}"));
            world.calmly(&call).await.assert_error(401, UNAUTHORIZED);
        }
        let call = world.call(&endpoint).without_authorization();
        world.calmly(&call).await.assert_error(401, UNAUTHORIZED);
    }
    assert_eq!(world.orders_in_the_book(), 0);
    assert!(world.is_alive(session).await, "the whole header is good");
}

#[tokio::test(start_paused = true)]
async fn spec_4_1_authorize_leads_to_a_redirect_with_a_code() {
    let world = World::new();
    let location = world.redirect_after_login().await;
    assert!(location.starts_with(&world.user.redirect_uri), "{location}");

    let (_, query) = location.split_once('?').expect("a query");
    assert!(!Form::parse(query).get("code").is_empty(), "{location}");
}

#[tokio::test(start_paused = true)]
async fn spec_4_1_each_login_yields_its_own_code() {
    let world = World::new();
    let first = world.authorization_code().await;
    let second = world.authorization_code().await;
    assert_ne!(first, second);
}

#[tokio::test(start_paused = true)]
async fn spec_4_1_token_exchange_needs_no_authorization_header() {
    let world = World::new();
    let code = world.authorization_code().await;
    let call = world.exchange(&world.exchange_form(&code)).without_authorization();
    let answer = world.calmly(&call).await;
    assert!(answer.json()["access_token"].is_string(), "{answer}");
}
