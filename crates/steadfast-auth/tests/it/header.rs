use http::{Request, header::AUTHORIZATION};
use http_body_util::Full;
use steadfast_auth::{AuthHeaderLayer, CallersHeader, RefusedHeader, TokenSource};
use steadfast_call::{
    BoxError, Call, Failure, Outcome,
    ext::{Sent, TokenGeneration},
};
use tower::{Layer, Service, ServiceExt, limit::ConcurrencyLimit};
use tower_test::mock;

use crate::support::{Answer, Clock, Script, api_key, base, orders};

fn source() -> TokenSource {
    TokenSource::fixed(api_key(), "t0ken").unwrap()
}

async fn seen_of(layer: AuthHeaderLayer, request: Request<Full<bytes::Bytes>>) -> Option<String> {
    let script = Script::new(&Clock::new(), [Answer::Body("{}")]);
    layer.layer(script.clone()).oneshot(request).await.unwrap();
    script.seen().remove(0).authorization
}

fn refused(error: &BoxError) -> RefusedHeader {
    assert!(Failure::find(&**error).unwrap().is_refusal());
    assert_eq!(Failure::outcome_of(&**error), Outcome::NotSent);
    *std::error::Error::source(Failure::find(&**error).unwrap()).unwrap().downcast_ref().unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_route_decides_what_the_header_holds() {
    let source = source();
    for (method, path, header) in [
        ("GET", "/api/oms/orders", Some("Bearer K3y:t0ken")),
        ("POST", "/api/oms/place-order", Some("Bearer K3y:t0ken")),
        ("POST", "/api-gw/oauth/individual-token-v2", Some("Bearer K3y")),
        ("POST", "/api-gw/oauth/token", None),
        ("GET", "/new/path", Some("Bearer K3y:t0ken")),
    ] {
        let request = Request::builder().method(method).uri(base().join(path).unwrap());
        let seen =
            seen_of(AuthHeaderLayer::new(source.clone()), request.body(Full::default()).unwrap()).await;
        assert_eq!(seen.as_deref(), header, "{method} {path}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_generation_goes_with_the_request_and_comes_back_with_the_response() {
    let (service, mut handle) = mock::pair::<Request<()>, http::Response<()>>();
    let layer = AuthHeaderLayer::new(source());
    let call = tokio::spawn(
        layer.layer(service).oneshot(Request::get("https://api.example/v2/x").body(()).unwrap()),
    );
    let (request, reply) = handle.next_request().await.unwrap();
    assert_eq!(Call::of(request.extensions()).generation(), Some(TokenGeneration(1)));
    assert!(request.headers()[AUTHORIZATION].is_sensitive());
    reply.send_response(http::Response::new(()));
    let response = call.await.unwrap().unwrap();
    assert_eq!(Sent::of(response.extensions()).generation(), Some(TokenGeneration(1)));
}

/// The list of an ended session is requested with that session's token.
#[tokio::test(start_paused = true)]
async fn a_request_with_an_authorization_of_its_own_keeps_it() {
    let mut request = orders();
    request.headers_mut().insert(AUTHORIZATION, "Bearer K3y:older".parse().unwrap());
    Call::of_mut(request.extensions_mut()).keep_authorization();
    let seen = seen_of(AuthHeaderLayer::new(source()), request).await;
    assert_eq!(seen.as_deref(), Some("Bearer K3y:older"));
}

#[tokio::test(start_paused = true)]
async fn a_callers_own_header_is_replaced_unless_it_is_to_be_respected() {
    let source = source();
    let own = || {
        let mut request = orders();
        request.headers_mut().insert(AUTHORIZATION, "Bearer mine".parse().unwrap());
        request.headers_mut().append(AUTHORIZATION, "Bearer mine too".parse().unwrap());
        request
    };
    let seen = seen_of(AuthHeaderLayer::new(source.clone()), own()).await;
    assert_eq!(seen.as_deref(), Some("Bearer K3y:t0ken"));
    let respectful = AuthHeaderLayer::new(source.clone()).callers_header(CallersHeader::Respect);
    assert_eq!(seen_of(respectful.clone(), own()).await.as_deref(), Some("Bearer mine"));
    assert_eq!(seen_of(respectful, orders()).await.as_deref(), Some("Bearer K3y:t0ken"));

    let mut exchange = own();
    *exchange.method_mut() = http::Method::POST;
    *exchange.uri_mut() = base().join("/api-gw/oauth/token").unwrap();
    assert_eq!(seen_of(AuthHeaderLayer::new(source), exchange).await, None, "none belongs there");
}

#[tokio::test(start_paused = true)]
async fn without_a_token_nothing_is_sent() {
    let script = Script::new(&Clock::new(), [Answer::Body("{}")]);
    let layer = AuthHeaderLayer::new(TokenSource::not_configured(api_key()));
    let error = layer.layer(script.clone()).oneshot(orders()).await.unwrap_err();
    assert_eq!(refused(&error), RefusedHeader::NoToken);
    assert_eq!(script.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn credentials_leave_neither_in_clear_text_nor_to_a_foreign_host() {
    let script = Script::new(&Clock::new(), [Answer::Body("{}")]);
    let layer = AuthHeaderLayer::new(source()).only_to(&base());
    for (method, uri, refusal) in [
        ("GET", "http://api.example/v2/api/oms/orders", RefusedHeader::ClearText),
        ("POST", "http://api.example/v2/api-gw/oauth/individual-token-v2", RefusedHeader::ClearText),
        ("GET", "https://api.example.evil/v2/api/oms/orders", RefusedHeader::ForeignDestination),
        ("GET", "https://api.example:444/v2/api/oms/orders", RefusedHeader::ForeignDestination),
        ("GET", "/v2/api/oms/orders", RefusedHeader::NoDestination),
    ] {
        let request = Request::builder().method(method).uri(uri).body(Full::default()).unwrap();
        let error = layer.layer(script.clone()).oneshot(request).await.unwrap_err();
        assert_eq!(refused(&error), refusal, "{uri}");
    }
    assert_eq!(script.count(), 0);
}

/// Against layers that reserve a slot in `poll_ready` for a call that never comes.
#[tokio::test(start_paused = true)]
async fn a_refusal_gives_back_the_slot_that_was_reserved_for_the_call() {
    let script = Script::new(&Clock::new(), [Answer::Body("{}")]);
    let limited = ConcurrencyLimit::new(script, 1);
    let mut service = AuthHeaderLayer::new(TokenSource::not_configured(api_key())).layer(limited.clone());
    service.ready().await.unwrap().call(orders()).await.unwrap_err();
    let other = tokio::time::timeout(crate::support::secs(1), limited.oneshot(orders())).await;
    assert!(other.is_ok(), "the slot is free although the refusing service lives");
    drop(service);
}
