//! The token exchange.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use http::{Request, StatusCode, header::CONTENT_TYPE};
use http_body_util::Full;
use steadfast::{auth::AuthErrorKind, spec::Form};
use steadfast_sandbox::Sandbox;
use tower::ServiceExt;

use crate::{
    wire::{Wire, bare, error, token},
    world::{BASE, HOUR, World, exchange_source, sandbox},
};

const REDIRECT: &str = "http://127.0.0.1:9000/cb?app=1&x=a b";

/// Logs in at the sandbox's page as a browser would, and returns the code of the redirect.
async fn browser_login(sandbox: &Sandbox) -> String {
    let facts = sandbox.credentials();
    let form = Form::new()
        .with("api_key", facts.api_key)
        .with("redirect_uri", facts.redirect_uri)
        .with("client_id", facts.client_id)
        .with("password", facts.password)
        .with("twoFa", sandbox.totp_now());
    let request = Request::post(format!("{BASE}/api-gw/oauth/login"))
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Full::<bytes::Bytes>::from(form.encode()))
        .unwrap();
    let response = sandbox.gateway().oneshot(request).await.unwrap();
    let location = response.headers().get("location").expect("a redirect").to_str().unwrap().to_owned();
    let query = location.split_once('?').unwrap().1;
    Form::parse(query.as_bytes()).unwrap().get("code").unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn spec_4_2_client_the_exchange_is_a_form_of_all_five_fields_without_a_header() {
    let wire = Wire::scripted([token("one")]);
    let source = exchange_source(&wire, "K3y", "s3cr&t", REDIRECT, || "c0de/1".into());
    source.login().await.unwrap();
    let seen = wire.only();
    assert_eq!((seen.method.as_str(), seen.path()), ("POST", "/api-gw/oauth/token"));
    assert_eq!(seen.authorization(), None);
    assert_eq!(seen.header("content-type"), Some("application/x-www-form-urlencoded"));
    let expected = Form::new()
        .with("code", "c0de/1")
        .with("client_id", "K3y")
        .with("client_secret", "s3cr&t")
        .with("redirect_uri", REDIRECT)
        .with("grant_type", "authorization_code");
    assert_eq!(seen.form(), expected);
}

#[tokio::test(start_paused = true)]
async fn spec_4_2_client_the_redirect_uri_is_percent_encoded() {
    let wire = Wire::scripted([token("one")]);
    exchange_source(&wire, "K3y", "s3cret", "http://a.example/cb?x=1&y=é", || "c".into())
        .login()
        .await
        .unwrap();
    let body = wire.only().body;
    assert!(body.contains("redirect_uri=http%3A%2F%2Fa.example%2Fcb%3Fx%3D1%26y%3D%C3%A9&"), "{body}");
}

#[tokio::test(start_paused = true)]
async fn spec_4_2_client_a_record_without_an_envelope_is_a_token() {
    let wire = Wire::scripted([token("one"), bare(r#"{"s":"ok","d":[]}"#)]);
    let source = exchange_source(&wire, "K3y", "s3cret", REDIRECT, || "c".into());
    let world = World::logging_in(wire.clone(), source.clone());
    source.login().await.unwrap();
    world.orders().await;
    assert_eq!(wire.seen()[1].authorization(), Some("Bearer K3y:one"));
}

#[tokio::test(start_paused = true)]
async fn spec_4_2_client_each_refusal_of_the_exchange_has_its_reaction() {
    for (status, msg, kind, sends) in [
        (
            400,
            "Input validation failed. Kindly check your input contains required fields for the request",
            AuthErrorKind::Latched,
            1,
        ),
        (401, "Unauthorized", AuthErrorKind::Rejected, 1),
        (500, "Internal server error", AuthErrorKind::Unavailable, 1),
    ] {
        let wire = Wire::scripted([error(status, msg)]);
        let source = exchange_source(&wire, "K3y", "s3cret", REDIRECT, || "c".into());
        let error = source.login().await.unwrap_err();
        assert_eq!((error.kind(), wire.seen().len()), (kind, sends), "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn spec_4_2_client_a_429_on_the_exchange_is_waited_out_and_the_code_is_kept() {
    let refused = || error(429, "Too many requests");
    let wire = Wire::scripted([refused(), refused(), refused(), token("one")]);
    let asked = Arc::new(AtomicU32::new(0));
    let count = asked.clone();
    let source = exchange_source(&wire, "K3y", "s3cret", REDIRECT, move || {
        count.fetch_add(1, Ordering::Relaxed).to_string()
    });
    source.login().await.unwrap();
    assert_eq!(wire.pauses(), [1, 2, 4]);
    assert_eq!(asked.load(Ordering::Relaxed), 1, "the person who logged in is asked once");
}

#[tokio::test(start_paused = true)]
async fn spec_4_2_client_reauthentication_asks_for_a_new_code_of_a_new_login() {
    let sandbox = sandbox(Sandbox::builder());
    let facts = sandbox.credentials();
    let code = Arc::new(std::sync::Mutex::new(browser_login(&sandbox).await));
    let next = code.clone();
    let wire = Wire::to(&sandbox);
    let source =
        exchange_source(&wire, &facts.api_key, &facts.client_secret, &facts.redirect_uri, move || {
            next.lock().unwrap().clone()
        });
    let world = World::logging_in(wire.clone(), source.clone());
    source.login().await.unwrap();
    assert_eq!(world.orders().await.status(), StatusCode::OK);

    tokio::time::sleep(24 * HOUR + Duration::from_secs(60)).await;
    world.service_is_closed().await;
    *code.lock().unwrap() = browser_login(&sandbox).await;
    source.login().await.unwrap();
    assert_eq!(world.orders().await.status(), StatusCode::OK);
    let exchange = "POST /api-gw/oauth/token 200";
    let read = "GET /api/oms/orders 200";
    assert_eq!(wire.lines(), [exchange, read, exchange, read], "an ended token is not even tried");
}

impl World {
    /// Asserts that there is no token, and that a request is refused without being sent.
    async fn service_is_closed(&self) {
        let before = self.wire.seen().len();
        let refused = self.send(&steadfast::Operation::orders()).await.unwrap_err();
        assert_eq!(steadfast::call::Failure::outcome_of(&*refused), steadfast::Outcome::NotSent);
        assert_eq!(self.wire.seen().len(), before);
    }
}
