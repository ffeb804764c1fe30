//! Mistakes in settings, and the errors that report them.

use std::error::Error as _;

use futures_util::StreamExt;
use http::{HeaderName, HeaderValue, Method};
use http_body_util::BodyExt;
use steadfast::{
    Access, Cancellation, Client, ClientBuilder, Error, ErrorKind, InvalidClient, MissedEvents, Operation,
    OrderChange, OrderRequest, Paths, Placed, Record, Records, Stack, Transport,
    auth::TokenSource,
    call::{Route, Routes},
    dedup::{OrderEvent, OrderTracker},
    ext::IntentId,
    limit::{Quota, SECOND, Scope, Zone, ZoneLimiter},
    retry::{AttemptTrail, RetryPolicy},
    spec::{Endpoint, Form, InvalidOperation},
};

use crate::{
    answering::{Answering, builder},
    world::{credentials, order},
};

#[test]
fn a_path_that_cannot_be_one_is_refused_when_the_client_is_built() {
    let mut paths = Paths::public();
    paths.funds = Some("api/account/funds".to_owned());
    let error = builder().paths(paths).build().unwrap_err();
    assert!(matches!(error, InvalidClient::Path(InvalidOperation::BadPath(Endpoint::Funds))), "{error:?}");
    assert_eq!(error.to_string(), "path of funds is not of the form /a/b, percent-encoded");
}

/// Regression: a cancel on such a path waited behind polls for 8.7 s, because its lane was that of an unknown path.
#[test]
fn routes_that_lack_a_path_of_the_client_are_refused_when_it_is_built() {
    let mut paths = Paths::public();
    paths.cancel_order = Some("/api/oms/own-cancel".to_owned());
    for routes in [Routes::default(), Routes::new(&Paths::public())] {
        let error = builder().paths(paths.clone()).routes(routes).build().unwrap_err();
        assert!(error.to_string().contains("path of cancel-order"), "{error}");
    }
    assert!(builder().paths(paths.clone()).routes(Routes::new(&paths)).build().is_ok());
    let route = Route::new(Endpoint::CancelOrder);
    let routes = Routes::new(&Paths::public()).with(Method::DELETE, "/api/oms/own-cancel", route);
    assert!(builder().paths(paths).routes(routes).build().is_ok());
}

/// Regression: the first request found it, with a text about time.
#[test]
fn routes_that_no_request_matches_or_no_limit_counts_are_refused_when_the_client_is_built() {
    let with = |template: &str, zone| {
        let mut route = Route::unknown(&Method::GET);
        route.zones = vec![zone];
        builder().routes(Routes::new(&Paths::public()).with(Method::GET, template, route))
    };
    for template in
        ["", "/", "api/research/{symbol}", "/api/research/{symbol", "/api/{}", "/api/research?x=1", "/a/../b"]
    {
        let error = with(template, Zone::DATA).build().unwrap_err();
        assert!(matches!(&error, InvalidClient::Template(named) if named == template), "{error}");
    }
    let slow = Zone::new("slow");
    let error = with("/api/research/{symbol}", slow).build().unwrap_err();
    assert_eq!(error.to_string(), "limits lack zone slow, which GET /api/research/{symbol} falls under");
    let own =
        ZoneLimiter::builder().zone(Quota::new(slow, Scope::AuthToken).limit(2, SECOND)).build().unwrap();
    let error = builder().limiter(own).build().unwrap_err().to_string();
    assert!(error.ends_with(" falls under: begin with `ZoneLimiter::builder().preset()`"), "{error}");

    let mut nowhere = Route::unknown(&Method::GET);
    nowhere.zones.clear();
    let routes = Routes::default().with(Method::GET, "/api/research/{symbol}", nowhere);
    let error = builder().paths(Paths::default()).routes(routes).build().unwrap_err();
    assert!(matches!(&error, InvalidClient::NoZone(_)), "{error}");
    assert_eq!(error.to_string(), "route GET /api/research/{symbol} falls under no zone");

    let limits = ZoneLimiter::builder()
        .preset()
        .zone(Quota::new(slow, Scope::AuthToken).limit(2, SECOND))
        .build()
        .unwrap();
    let client = with("/api/research/{symbol}", slow).limiter(limits).build().unwrap();
    assert_eq!(client.describe().setting("Route", "GET /api/research/{symbol}"), Some("slow"));
}

#[tokio::test]
async fn an_order_under_an_empty_name_is_refused() {
    let transport = Answering::always("");
    let error =
        transport.client().place_order_as(&order("EQT_INFY_EQ_NSE"), IntentId::new("")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
    assert_eq!(error.to_string(), "request is invalid: intent id is empty");
    assert!(transport.asked().is_empty());
}

#[test]
fn credentials_that_cannot_be_used_are_named_and_not_shown() {
    const SECRET: &str = "AYOJWTMM6TUYN4RMVSHYXKFE2CIFYIRL";
    for (parts, named) in [
        (["", "client", "hunter2", SECRET], "api_key"),
        (["a:b", "client", "hunter2", SECRET], "api_key"),
        (["key", "", "hunter2", SECRET], "client_id"),
        (["key", "client", "", SECRET], "password"),
        (["key", "client", "hunter2", ""], "totp_secret"),
        (["key", "client", "hunter2", "no base32!"], "totp_secret"),
    ] {
        let error = Access::totp(credentials(parts)).unwrap_err();
        assert_eq!(error.value(), named);
        let shown = format!("{error} {error:?} {:?}", error.source());
        assert!(!shown.contains("hunter2") && !shown.contains(SECRET), "{shown}");
    }
}

#[test]
fn the_builder_shows_no_header_of_the_callers() {
    let name = HeaderName::from_static("x-app-secret");
    let builder = builder().header(name, HeaderValue::from_static("hush-hush"));
    assert!(!format!("{builder:?}").contains("hush-hush"));
}

#[tokio::test(start_paused = true)]
async fn a_change_that_no_order_can_undergo_is_not_sent() {
    let transport = Answering::always(r#"{"s":"ok","d":{}}"#);
    let client = transport.client();
    for (id, change, message) in [
        ("", OrderChange::new().qty(1), "orderId is required"),
        ("1", OrderChange::new().qty(-5), "qty must be above zero"),
        ("1", OrderChange::new().extra("qty", "7"), "qty cannot be given as an extra field"),
    ] {
        let error = client.modify(id, &change).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest);
        assert_eq!(error.source().unwrap().to_string(), message);
    }
    assert!(transport.asked().is_empty(), "{:?}", transport.asked());
}

#[tokio::test(start_paused = true)]
async fn a_login_is_not_called_past_what_keeps_the_account_from_being_locked() {
    let transport = Answering::always(r#"{"s":"ok","d":{}}"#);
    let client = transport.client();
    for login in [Endpoint::Authorize, Endpoint::Token, Endpoint::IndividualToken] {
        let error = client.call(&Operation::new(login)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{login:?}");
    }
    assert!(transport.asked().is_empty(), "{:?}", transport.asked());
}

#[tokio::test(start_paused = true)]
async fn a_scrip_master_of_another_shape_is_an_error_and_can_be_had_as_it_is() {
    for body in [
        "symId,name\nEQT_A_EQ_NSE,\"A, B\"\n",
        r#"{"s":"ok","d":"symId,name"}"#,
        r#"{"s":"ok","d":{"EQ":[1]}}"#,
        r#"[1,2]"#,
        "",
    ] {
        let client = Answering::always(body).client();
        let records: Vec<_> = client.scrip_master().await.unwrap().collect().await;
        let error = records.into_iter().find_map(Result::err).unwrap();
        assert_eq!(error.kind(), ErrorKind::UnexpectedAnswer, "{body}");
        let request = client.request(&Operation::new(Endpoint::ScripMaster)).unwrap();
        let whole = client.raw(request).await.unwrap().into_body().collect().await.unwrap();
        assert_eq!(whole.to_bytes(), body);
    }
}

fn is_shareable<T: Send + Sync + 'static>() {}
fn can_be_spawned<T: Send>(_: &T) {}

#[tokio::test(start_paused = true)]
async fn whatever_a_program_holds_can_cross_threads() {
    is_shareable::<Client>();
    is_shareable::<ClientBuilder>();
    is_shareable::<Stack>();
    is_shareable::<Transport>();
    is_shareable::<Access>();
    is_shareable::<Error>();
    is_shareable::<InvalidClient>();
    is_shareable::<(Placed, Cancellation, Record, OrderEvent, MissedEvents, AttemptTrail)>();
    is_shareable::<(OrderTracker, ZoneLimiter, TokenSource, RetryPolicy, Operation, OrderRequest)>();
    let client = Answering::always(r#"{"s":"no-data","msg":"no-data"}"#).client();
    let (order, change, orders) = (order("EQT_INFY_EQ_NSE"), OrderChange::new(), Operation::orders());
    can_be_spawned(&client.place_order(&order));
    can_be_spawned(&client.modify("1", &change));
    can_be_spawned(&(client.cancel("1"), client.cancel_all()));
    can_be_spawned(&(client.orders(), client.history(), client.prewarm(), client.recover()));
    can_be_spawned(&(client.order_margin(&order), client.basket_margin(Form::new()), client.call(&orders)));
    can_be_spawned(&(client.scrip_master(), client.symbols("NSE"), client.events(), client.shutdown()));
    can_be_spawned::<Option<Records>>(&None);
}
