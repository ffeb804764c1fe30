//! Authentication.

use std::net::{IpAddr, Ipv4Addr};

use http::StatusCode;
use steadfast::{
    Access, ErrorKind, Operation, Outcome, Transport,
    auth::{ApiKey, Cause, Credentials, TokenSource, Unrenewed},
    call::Failure,
};
use steadfast_sandbox::{IpRefusal, Sandbox};

use crate::{
    served::{canned, envelope_error, serve, totp},
    wire::{Wire, error, ok},
    world::{HOUR, KEY, TOKEN, World, otp_source, sandbox, totp_source},
};

/// An address of this machine that is not the one connections leave from by default.
const WHITELISTED: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

#[tokio::test(start_paused = true)]
async fn spec_5_client_the_header_is_bearer_key_colon_token() {
    let world = World::scripted([ok("[]")]);
    world.orders().await;
    assert_eq!(world.wire.only().authorization(), Some(format!("Bearer {KEY}:{TOKEN}").as_str()));
}

#[test]
fn spec_5_client_a_key_that_would_shift_the_colon_is_refused() {
    for key in ["", "a:b", "a b", "a\nb"] {
        assert!(ApiKey::new(key).is_err(), "{key:?}");
    }
    assert!(ApiKey::new("Kq7Xw2Vb9Zt4Rm6C").is_ok());
}

#[tokio::test(start_paused = true)]
async fn spec_5_client_without_a_token_nothing_leaves() {
    let wire = Wire::scripted([ok("[]")]);
    let world = World::logging_in(wire, TokenSource::not_configured(ApiKey::new(KEY).unwrap()));
    let refused = world.send(&Operation::orders()).await.unwrap_err();
    assert_eq!(Failure::outcome_of(&*refused), Outcome::NotSent);
    assert_eq!(world.wire.seen().len(), 0, "a request without its header would be a 401");
}

#[tokio::test(start_paused = true)]
async fn spec_5_client_after_24_hours_it_logs_in_again_by_itself() {
    let sandbox = sandbox(Sandbox::builder());
    let wire = Wire::to(&sandbox);
    let world = World::logging_in(wire.clone(), totp_source(&sandbox, &wire));
    for _ in 0..3 {
        assert_eq!(world.orders().await.status(), StatusCode::OK);
        tokio::time::sleep(24 * HOUR).await;
    }
    assert_eq!(sandbox.state().logins.succeeded, 3);
}

#[tokio::test(start_paused = true)]
async fn spec_5_client_a_code_that_was_sent_is_used_once_and_at_once() {
    let wire = Wire::scripted([error(401, "Unauthorized")]);
    let source = otp_source(&wire, Credentials::new("u", "p"), KEY, "123456".into());
    source.login().await.unwrap_err();
    let sends = wire.seen();
    assert_eq!(sends[0].form().get("twoFa"), Some("123456"));
    let last = sends.last().unwrap().at - sends[0].at;
    assert!(last.as_secs() < 30, "a code is not tried after it may have expired: {last:?}");
}

#[tokio::test]
async fn spec_5_client_everything_leaves_from_the_local_address_that_is_set() {
    let served = serve(Sandbox::builder().whitelist([WHITELISTED]).build().unwrap()).await;
    let facts = served.facts.clone();
    let access = Access::totp(totp(facts)).unwrap();
    let transport = Transport::new().local_address(WHITELISTED);
    let client = served.builder(access).transport(transport).build().unwrap();
    assert_eq!(client.orders().await.unwrap(), []);
    let state = served.sandbox.state();
    let statuses: Vec<u16> = state.arrivals.iter().map(|arrival| arrival.status).collect();
    assert_eq!(statuses, [200, 200], "the login and the request were admitted");
}

#[tokio::test(start_paused = true)]
async fn spec_5_client_a_401_for_a_foreign_address_is_told_from_an_expired_token() {
    let sandbox = sandbox(Sandbox::builder().whitelist([WHITELISTED]).ip_refusal(IpRefusal::Unauthorized));
    let world = World::at(&sandbox);
    let response = world.orders().await;
    assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    let unrenewed = response.extensions().get::<Unrenewed>().expect("why nothing better came");
    let causes = unrenewed.0.causes();
    assert!(causes.contains(&Cause::IpNotWhitelisted), "{causes:?}");
}

#[tokio::test(start_paused = true)]
async fn spec_5_client_a_403_for_a_foreign_address_causes_no_login() {
    let sandbox = sandbox(Sandbox::builder().whitelist([WHITELISTED]).ip_refusal(IpRefusal::Forbidden));
    let world = World::at(&sandbox);
    assert_eq!(world.orders().await.status(), StatusCode::FORBIDDEN);
    assert_eq!(world.wire.lines(), ["GET /api/oms/orders 403"]);
}

#[tokio::test]
async fn spec_5_client_a_401_is_told_to_the_caller_as_unauthorized() {
    let (client, _) = canned(vec![(401, envelope_error("Unauthorized")); 2]).await;
    let error = client.orders().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized);
    assert!(!error.is_retryable());
}

#[tokio::test(start_paused = true)]
async fn spec_5_client_knows_how_many_of_the_ten_sessions_it_has_opened() {
    let sandbox = sandbox(Sandbox::builder());
    let wire = Wire::to(&sandbox);
    let source = totp_source(&sandbox, &wire);
    for opened in 1..=4 {
        source.login().await.unwrap();
        assert_eq!(source.status().sessions, opened);
        tokio::time::sleep(HOUR).await;
    }
}
