//! C6, C7: an error says in one line what was wrong, where, and why; `main` shows it by its `Debug`.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use steadfast::{
    Access, BaseUrl, BoxError, Client, ErrorKind, Operation, OrderChange, Outcome, Paths, RequestBody,
    auth::{ApiKey, RefreshLayer, TokenSource},
    deadline::DeadlineLayer,
    dedup::{OrderTracker, Settings, journal::NoJournal},
    limit::{Quota, SECOND, Scope, Zone, ZoneLimiter},
    retry::{RetryPolicy, Schedule},
};
use steadfast_sandbox::Sandbox;
use tokio::net::TcpListener;
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::{
    answering::{Answering, builder, whole},
    world::order,
};

#[tokio::test(start_paused = true)]
async fn c06_an_error_names_field_and_zone_in_one_line() {
    let transport = Answering::always(r#"{"s":"ok","d":{}}"#);
    let error = transport.client().modify("1", &OrderChange::new().qty(-5)).await.unwrap_err();
    assert_eq!(error.to_string(), "request is invalid: qty must be above zero");
    assert_eq!(format!("{error:?}"), error.to_string());

    let sandbox = Sandbox::builder().build().unwrap();
    let facts = sandbox.credentials();
    let access = Access::token(facts.api_key, facts.access_token).unwrap();
    let client = Client::builder(facts.base_url.parse().unwrap(), access).paths(Paths::public());
    let client = client.build_over(sandbox.gateway()).unwrap();
    for _ in 0..10 {
        client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap();
    }
    let hurried = client.with_deadline(DeadlineLayer::default().send_by(Duration::from_millis(1)));
    let error = hurried.place_order(&order("EQT_TCS_EQ_NSE")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    let line = error.to_string();
    assert!(line.starts_with("request was not sent: zone place_order admits the request only"), "{line}");
}

/// Regression: three reasons read alike, "request refused before it was sent".
#[tokio::test(start_paused = true)]
async fn c06_a_layer_alone_says_why_it_refused_a_request() {
    let quota = Quota::new(Zone::new("reports"), Scope::Shared).limit(5, SECOND);
    let limiter = ZoneLimiter::builder().zone(quota).build().unwrap();
    let tokens = TokenSource::not_configured(ApiKey::new("key").unwrap());
    let wire = service_fn(async |_: Request<Full<Bytes>>| {
        Ok::<_, BoxError>(Response::new(Full::<Bytes>::default()))
    });
    let limits = limiter.layer();
    let of_no_zone = limits.clone().zones_of(|_: &Request<Full<Bytes>>| Vec::new());
    for (text, reason) in [
        (refusal(limits.all_in(Zone::new("other")).layer(wire)).await, "zone other is not configured"),
        (refusal(of_no_zone.layer(wire)).await, "request falls under no zone"),
        (refusal(RefreshLayer::new(tokens).layer(wire)).await, "no login is configured"),
    ] {
        assert_eq!(text, format!("request refused before it was sent: {reason}"));
    }
}

/// Returns the text of the error of a request that a layer refuses.
async fn refusal<S, B>(layered: S) -> String
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = BoxError>,
{
    let request = Request::get("https://api.example/v2/api/oms/orders").body(Full::default()).unwrap();
    layered.oneshot(request).await.err().unwrap().to_string()
}

/// Regression: the answer was empty, so a program that had forgotten its journal took nothing for in doubt.
#[tokio::test(start_paused = true)]
async fn recovery_without_a_journal_is_an_error() {
    let client = Answering::always(r#"{"s":"no-data","msg":"no-data"}"#).client();
    for error in [client.recover().await.unwrap_err(), client.recovered().unwrap_err()] {
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::InvalidRequest, &Outcome::NotSent));
        let source = std::error::Error::source(&error).unwrap();
        assert!(source.is::<NoJournal>(), "{error:?}");
    }
    let tracker = OrderTracker::new(Settings::default());
    assert_eq!(
        (tracker.recovered().unwrap_err(), tracker.recover().await.unwrap_err()),
        (NoJournal, NoJournal)
    );
}

/// Regression: the texts were `order is in doubt` for a cancel, and without the id that the answer named.
#[tokio::test(start_paused = true)]
async fn c06_a_doubt_names_the_call_and_the_answered_id() {
    let transport = Answering::with(|request| {
        let listed = r#"{"orderId":"7","symId":"EQT_INFY_EQ_NSE","side":"buy","qty":10,"type":"limit",
            "limitPrice":100.05,"product":"delivery","validity":"day","status":"open","legType":"main"}"#;
        Response::new(whole(match request.method().as_str() {
            "GET" => format!(r#"{{"s":"ok","d":[{listed}]}}"#),
            "POST" => r#"{"s":"ok","d":{"orderId":"7","msg":"Order placed"}}"#.to_owned(),
            _ => "<html>Bad gateway</html>".to_owned(),
        }))
    });
    let client = transport.client();
    for (error, said) in [
        (client.cancel("7").await.unwrap_err(), "cancel of the order is in doubt: 200"),
        (
            client.modify("7", &OrderChange::new().qty(5)).await.unwrap_err(),
            "change of the order is in doubt: 200",
        ),
    ] {
        assert_eq!(error.kind(), ErrorKind::InDoubt);
        assert!(error.to_string().starts_with(said), "{error}");
    }
    // The list had it before the order left.
    let error = client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap_err();
    let line = error.to_string();
    assert!(line.starts_with("order is in doubt ("), "{line}");
    assert!(line.ends_with("): 200; answered with order 7 (unconfirmed)"), "{line}");
}

#[tokio::test(start_paused = true)]
async fn c06_a_lost_answer_says_once_what_became_of_the_order() {
    let client = builder().build_over(service_fn(|request: Request<RequestBody>| async move {
        match request.method().as_str() {
            "GET" => Ok(Response::new(whole(r#"{"s":"ok","d":[]}"#))),
            _ => {
                // An order whose body nobody has asked for has not left.
                let _ = request.into_body().collect().await;
                Err(BoxError::from("connection reset"))
            }
        }
    }));
    let error = client.unwrap().place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap_err();
    assert_eq!(error.to_string(), "order was not observed (not_observed): connection reset");
}

#[test]
fn c06_what_main_returns_reads_like_a_sentence() {
    let error = "https://api.example".parse::<BaseUrl>().unwrap_err();
    assert_eq!(format!("{error:?}"), "base url does not end in /v2");
    let error = Access::token("a:b", "token").unwrap_err();
    assert!(format!("{error:?}").starts_with("api_key cannot be used: "), "{error:?}");
    let mut paths = Paths::public();
    paths.funds = Some("funds".to_owned());
    let error = builder().paths(paths).build().unwrap_err();
    assert_eq!(format!("{error:?}"), "path of funds is not of the form /a/b, percent-encoded");
}

#[tokio::test]
async fn c06_a_service_that_is_not_there_is_named_with_its_address() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let base: BaseUrl = format!("http://{free}/v2").parse().unwrap();
    let client = Client::builder(base, Access::token("key", "token").unwrap());
    let client = client.retry(RetryPolicy::default().schedule(Schedule::never())).build().unwrap();
    let error = client.call(&Operation::orders()).await.unwrap_err();
    let line =
        format!("service cannot be reached at {free}: the connection is refused: nothing listens there");
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Unreachable, line));
}

#[tokio::test(start_paused = true)]
async fn an_order_with_a_wrong_token_ends_in_doubt_and_does_not_leave_once_that_is_known() {
    let sandbox = Sandbox::builder().build().unwrap();
    let client = || {
        let facts = sandbox.credentials();
        let access = Access::token(facts.api_key, "wrong").unwrap();
        Client::builder(facts.base_url.parse().unwrap(), access).build_over(sandbox.gateway()).unwrap()
    };
    let orders = || sandbox.state().arrivals.iter().filter(|it| it.path.ends_with("place-order")).count();
    let error = client().place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap_err();
    assert_eq!((error.kind(), orders()), (ErrorKind::InDoubt, 1), "{error}");

    // One 401 may be a mistake, for two seconds.
    let warned = client();
    assert_eq!(warned.prewarm().await.unwrap_err().kind(), ErrorKind::Unauthorized);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let error = warned.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap_err();
    assert_eq!((error.kind(), orders()), (ErrorKind::Unauthorized, 1), "{error}");
}
