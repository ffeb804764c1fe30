//! The typed client over the in-process gateway.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use steadfast::{
    Access, BoxError, Client, ErrorKind, Operation, OrderChange, Paths, RequestBody,
    ext::IntentId,
    retry::{RetryPolicy, Schedule},
    spec::{Endpoint, Form},
};
use steadfast_sandbox::{BookEdit, Sandbox, SandboxBuilder};
use tokio::time::{sleep, timeout};
use tower::Service;

use crate::world::{SECOND, credentials, order, script};

fn client(sandbox: SandboxBuilder) -> (Client, Sandbox) {
    let sandbox = sandbox.build().unwrap();
    let facts = sandbox.credentials();
    let access = Access::token(facts.api_key, facts.access_token).unwrap();
    let builder = Client::builder(facts.base_url.parse().unwrap(), access).paths(Paths::public());
    (builder.build_over(sandbox.gateway()).unwrap(), sandbox)
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_worked_is_never_called_failed() {
    let (client, sandbox) =
        client(script("[[fault]]\nname = 'connection.reset-after'\nendpoint = 'cancel-order'\nnth = 1"));
    let placed = client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap();
    // The first cancel is executed and its answer lost; the second is refused, because the order is not open.
    client.cancel(&placed.order_id).await.unwrap();
    assert_eq!(sandbox.state().orders[0].status, "cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_came_too_late_says_what_became_of_the_order() {
    let (client, sandbox) =
        client(script("[[fault]]\nname = 'connection.reset-before'\nendpoint = 'cancel-order'\nnth = 1"));
    let placed = client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap();
    sandbox.edit_order(&placed.order_id, BookEdit::Fill).unwrap();
    let error = client.cancel(&placed.order_id).await.unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::NotOpen, Some("completed")));
}

#[tokio::test(start_paused = true)]
async fn an_order_that_nobody_can_verify_is_in_doubt_and_names_why() {
    let (client, _sandbox) = client(
        Sandbox::builder().fault("placement.504-applied", 1.0).unwrap().fault("list.504", 1.0).unwrap(),
    );
    let error = client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InDoubt);
    assert!(!error.is_retryable());
    assert!(error.to_string().starts_with("order is in doubt ("), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_told_with_the_services_own_words() {
    let (client, _sandbox) = client(Sandbox::builder());
    let error = client.cancel("nobody's").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Rejected);
    assert_eq!(error.message(), Some(steadfast::spec::msg::INPUT_VALIDATION));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_whose_answer_breaks_off_is_looked_up() {
    let (client, sandbox) =
        client(script("[[fault]]\nname = 'connection.reset-mid-body'\nendpoint = 'cancel-order'\nnth = 1"));
    let placed = client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap();
    client.cancel(&placed.order_id).await.unwrap();
    assert_eq!(sandbox.state().orders[0].status, "cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_breaks_off_proves_nothing() {
    let (client, _sandbox) = client(Sandbox::builder().fault("list.truncated", 1.0).unwrap());
    client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap();
    let error = client.orders().await.unwrap_err();
    assert!(error.outcome().is_unknown(), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn every_call_can_be_spawned() {
    let (client, _sandbox) = client(Sandbox::builder());
    let call = client.clone();
    let placed = tokio::spawn(async move { call.place_order(&order("EQT_INFY_EQ_NSE")).await })
        .await
        .unwrap()
        .unwrap();
    let call = client.clone();
    assert_eq!(tokio::spawn(async move { call.orders().await }).await.unwrap().unwrap().len(), 1);
    tokio::spawn(async move { client.cancel(&placed.order_id).await }).await.unwrap().unwrap();
}

/// A transport that answers every request alike. Its sentinel shows whether it is still alive.
#[derive(Clone)]
struct Answering {
    sentinel: Arc<()>,
    answer: fn(&Request<RequestBody>) -> (u16, String),
}

impl Answering {
    fn with(answer: fn(&Request<RequestBody>) -> (u16, String)) -> Self {
        Self { sentinel: Arc::new(()), answer }
    }

    fn client(&self, access: Access) -> Client {
        let retry = RetryPolicy::default().schedule(Schedule::never());
        let base = "http://localhost/v2".parse().unwrap();
        let builder = Client::builder(base, access).paths(Paths::public()).retry(retry);
        builder.build_over(self.clone()).unwrap()
    }
}

impl Service<Request<RequestBody>> for Answering {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Full<Bytes>>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let (status, body) = (self.answer)(&request);
        Box::pin(async move {
            request.into_body().collect().await?;
            Ok(Response::builder().status(status).body(Full::from(body))?)
        })
    }
}

fn token() -> Access {
    Access::token("the-api-key", "the-access-token").unwrap()
}

#[tokio::test(start_paused = true)]
async fn no_data_is_no_confirmation_of_a_cancel() {
    let transport = Answering::with(|_| (200, r#"{"s":"no-data","msg":"no-data"}"#.to_owned()));
    let error = transport.client(token()).cancel("1").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InDoubt, "{error:?}");
    let transport = Answering::with(|_| (404, r#"{"s":"no-data","msg":"no-data"}"#.to_owned()));
    assert_eq!(transport.client(token()).cancel("1").await.unwrap_err().kind(), ErrorKind::Rejected);
}

#[tokio::test(start_paused = true)]
async fn a_change_in_doubt_is_judged_by_the_main_leg() {
    let transport = Answering::with(|request| {
        let leg = |id, leg, status, qty| {
            format!(r#"{{"orderId":"{id}","legType":"{leg}","status":"{status}","qty":{qty}}}"#)
        };
        let records = [
            leg(1, "stoploss", "cancelled", 5),
            leg(1, "main", "open", 9),
            leg(2, "target", "open", 5),
            leg(2, "main", "completed", 9),
            leg(3, "stoploss", "cancelled", 9),
            leg(3, "main", "open", 5),
        ];
        match request.method().as_str() {
            "GET" => (200, format!(r#"{{"s":"ok","d":[{}]}}"#, records.join(","))),
            _ => (504, r#"{"s":"error","msg":"Gateway timedout"}"#.to_owned()),
        }
    });
    let client = transport.client(token());
    for (id, kind) in [("1", Some(ErrorKind::InDoubt)), ("2", Some(ErrorKind::NotOpen)), ("3", None)] {
        let told = client.modify(id, &OrderChange::new().qty(5)).await;
        assert_eq!(told.err().map(|error| error.kind()), kind, "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_that_cannot_be_read_keeps_no_order_from_being_cancelled() {
    let transport = Answering::with(|request| match request.method().as_str() {
        "GET" => {
            let records = [
                r#"{"orderId":"1","status":"open"}"#,
                r#"{"orderId":"2","status":"open","qty":1,"qty":2}"#,
                r#"{"orderId":3,"status":{}}"#,
                r#"{"orderId":"4","status":"completed"}"#,
                r#"{"status":"open"}"#,
            ];
            (200, format!(r#"{{"s":"ok","d":[{}]}}"#, records.join(",")))
        }
        _ => (200, r#"{"s":"ok","d":{}}"#.to_owned()),
    });
    let cancelled = transport.client(token()).cancel_all().await.unwrap();
    let told = cancelled.iter().map(|one| (one.order_id.as_str(), one.result.is_ok()));
    assert_eq!(told.collect::<Vec<_>>(), [("1", true), ("2", true), ("3", true), ("", false)]);
}

#[tokio::test(start_paused = true)]
async fn an_order_of_which_any_record_may_be_open_is_not_called_cancelled() {
    let transport = Answering::with(|request| {
        let twice = |id, one, other| {
            format!(r#"{{"orderId":"{id}","status":"{one}"}},{{"orderId":"{id}","status":"{other}"}}"#)
        };
        let records = [
            twice(1, "cancelled", "cancelled"),
            twice(2, "cancelled", "open"),
            twice(3, "cancelled", "trigger pending"),
            twice(4, "cancelled", "completed"),
        ];
        match request.method().as_str() {
            "GET" => (200, format!(r#"{{"s":"ok","d":[{}]}}"#, records.join(","))),
            _ => (504, r#"{"s":"error","msg":"Gateway timedout"}"#.to_owned()),
        }
    });
    let client = transport.client(token());
    let doubt = Some(ErrorKind::InDoubt);
    for (id, kind) in [("1", None), ("2", doubt), ("3", doubt), ("4", Some(ErrorKind::NotOpen)), ("5", doubt)]
    {
        let told = client.cancel(id).await;
        assert_eq!(told.err().map(|error| error.kind()), kind, "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_never_quotes_the_credentials_and_fits_a_log_line() {
    let transport = Answering::with(|request| {
        let sent = request.headers()["authorization"].to_str().unwrap_or_default().to_owned();
        (403, format!(r#"{{"s":"error","msg":"no access for {sent}"}}"#))
    });
    let error = transport.client(token()).orders().await.unwrap_err();
    let shown = format!("{error} {error:?} {:?}", error.message());
    assert!(!shown.contains("the-access-token") && !shown.contains("the-api-key"), "{shown}");

    let transport =
        Answering::with(|_| (403, format!(r#"{{"s":"error","msg":"a\nb{}"}}"#, "x".repeat(100_000))));
    let error = transport.client(token()).orders().await.unwrap_err();
    assert_eq!(error.message().map(|text| (&text[..3], text.len())), Some(("a b", 256)));
}

#[tokio::test(start_paused = true)]
async fn only_what_cannot_be_executed_twice_is_called_retryable() {
    let transport = Answering::with(|_| (504, r#"{"s":"error","msg":"Gateway timedout"}"#.to_owned()));
    let client = transport.client(token());
    assert!(client.orders().await.unwrap_err().is_retryable(), "a read");
    let modify =
        Operation::new(Endpoint::ModifyOrder).form(Form::new().with("orderId", "1").with("qty", "2"));
    assert!(!client.call(&modify).await.unwrap_err().is_retryable(), "a modification may have been executed");
    let unknown = Request::post("http://localhost/v2/api/new").body(Full::default()).unwrap();
    assert_eq!(client.raw(unknown).await.unwrap().status(), 504, "an answer is the caller's to judge");
}

#[tokio::test(start_paused = true)]
async fn an_intent_id_for_another_order_is_an_invalid_request() {
    let (client, _sandbox) = client(Sandbox::builder());
    let id = || IntentId::new("a");
    client.place_order_as(&order("EQT_INFY_EQ_NSE"), id()).await.unwrap();
    let error = client.place_order_as(&order("EQT_TCS_EQ_NSE"), id()).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::InvalidRequest, false));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_dropped_lets_go_of_its_transport_and_logs_in_no_more() {
    let placed =
        |_: &Request<RequestBody>| (200, r#"{"s":"ok","d":{"orderId":"1","msg":"placed"}}"#.to_owned());
    for access in [
        token(),
        Access::totp(credentials(["key", "client", "password", "AYOJWTMM6TUYN4RMVSHYXKFE2CIFYIRL"])).unwrap(),
    ] {
        let transport = Answering::with(placed);
        let client = transport.client(access);
        // With or without a token. The order lets the tracker know how to read lists.
        let _ = timeout(SECOND, client.place_order(&order("EQT_INFY_EQ_NSE"))).await;
        drop(client);
        sleep(7_200 * SECOND).await;
        assert_eq!(Arc::strong_count(&transport.sentinel), 1, "the transport is still held");
    }
}
