//! Logins with a two-factor code.

use http::StatusCode;
use steadfast::auth::{AuthErrorKind, Credentials};
use steadfast_sandbox::{LoginAnswer, Sandbox};

use crate::{
    wire::{Wire, error},
    world::{World, limited_totp_source, otp_source, sandbox, totp_source},
};

const PATH: &str = "/api-gw/oauth/individual-token-v2";

#[tokio::test(start_paused = true)]
async fn spec_4_3_client_an_authenticators_code_buys_a_token_at_the_gateway() {
    for answer in [LoginAnswer::Enveloped, LoginAnswer::Bare] {
        let sandbox = sandbox(Sandbox::builder().login_answer(answer));
        let wire = Wire::to(&sandbox);
        let world = World::logging_in(wire.clone(), totp_source(&sandbox, &wire));
        assert_eq!(world.orders().await.status(), StatusCode::OK, "{answer:?}");
        let login = &wire.seen()[0];
        let facts = sandbox.credentials();
        assert_eq!((login.method.as_str(), login.path()), ("POST", PATH));
        assert_eq!(login.authorization(), Some(format!("Bearer {}", facts.api_key).as_str()));
        assert_eq!(login.header("content-type"), Some("application/x-www-form-urlencoded"));
        assert_eq!(login.fields(), ["client_id", "password", "twoFa", "twoFaTyp"]);
        let form = login.form();
        assert_eq!(form.get("client_id"), Some(facts.client_id.as_str()));
        assert_eq!(form.get("twoFaTyp"), Some("totp"));
        let code = form.get("twoFa").unwrap();
        assert!(code.len() == 6 && code.bytes().all(|digit| digit.is_ascii_digit()), "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn spec_4_3_client_a_sent_code_goes_as_otp_and_buys_a_token() {
    let sandbox = sandbox(Sandbox::builder());
    let facts = sandbox.credentials();
    let wire = Wire::to(&sandbox);
    let code = sandbox.send_otp(&facts.client_id).unwrap();
    let credentials = Credentials::new(facts.client_id, facts.password);
    let source = otp_source(&wire, credentials, &facts.api_key, code.clone());
    let world = World::logging_in(wire.clone(), source.clone());
    source.login().await.unwrap();
    assert_eq!(world.orders().await.status(), StatusCode::OK);
    let form = wire.seen()[0].form();
    assert_eq!((form.get("twoFa"), form.get("twoFaTyp")), (Some(code.as_str()), Some("otp")));
}

#[tokio::test(start_paused = true)]
async fn spec_4_3_client_a_wrong_password_is_not_tried_until_the_account_is_locked() {
    let sandbox = sandbox(Sandbox::builder().lock_out_after(3));
    let facts = sandbox.credentials();
    let wire = Wire::to(&sandbox);
    let wrong = Credentials::new(facts.client_id, "wrong");
    let secret = steadfast::auth::TotpSecret::new(facts.totp_secret).unwrap();
    let key = steadfast::auth::ApiKey::new(facts.api_key).unwrap();
    let base = crate::world::base();
    let login =
        steadfast::auth::IndividualLogin::totp(wire.clone(), &base, key.clone(), wrong, secret).unwrap();
    let source = steadfast::auth::TokenSource::builder(key, login).clock(crate::world::wall_clock()).build();
    let world = World::logging_in(wire.clone(), source);
    for _ in 0..20 {
        world.send(&steadfast::Operation::orders()).await.unwrap_err();
    }
    assert_eq!(wire.lines(), vec![format!("POST {PATH} 401"); 2], "two logins, and none after that");
}

#[tokio::test(start_paused = true)]
async fn spec_4_3_client_a_400_for_the_login_form_is_not_repeated() {
    let wire = Wire::scripted([error(
        400,
        "Input validation failed. Kindly check your input contains required fields for the request",
    )]);
    let source = limited_totp_source(&wire, &steadfast::limit::ZoneLimiter::preset(), "u");
    assert_eq!(source.login().await.unwrap_err().kind(), AuthErrorKind::Latched);
    assert_eq!(source.login().await.unwrap_err().kind(), AuthErrorKind::Latched);
    assert_eq!(wire.seen().len(), 1);
}
