//! Ways to use the stack in a program: as a field, as one layer of others, over another client.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use steadfast::{
    Access, BoxedStack, Client, ErrorKind, Outcome, ReqwestTransport, Stack,
    auth::{ApiKey, TokenSource},
};
use steadfast_sandbox::Sandbox;
use tower::{ServiceBuilder, ServiceExt};

use crate::{
    connecting::answering,
    transport::once,
    world::{order, script},
};

/// A program's own type, which names the stack in a field.
#[derive(Clone)]
struct Desk {
    stack: BoxedStack<steadfast_sandbox::Body>,
    base: String,
}

impl Desk {
    async fn place(&self) -> (StatusCode, Bytes) {
        let form =
            "symId=EQT_INFY_EQ_NSE&qty=10&side=buy&type=limit&limitPrice=1&product=delivery&validity=day";
        let request =
            Request::post(format!("{}/api/oms/place-order", self.base)).body(Full::from(form)).unwrap();
        let (head, body) = self.stack.clone().oneshot(request).await.unwrap().into_parts();
        (head.status, body.collect().await.unwrap().to_bytes())
    }
}

/// Returns a sandbox that places the first order and answers 504, and a stack for its account.
fn losing_the_first_answer() -> (Sandbox, Stack, String) {
    let sandbox = script("[[fault]]\nname = 'placement.504-applied'\nnth = 1").build().unwrap();
    let facts = sandbox.credentials();
    let tokens = TokenSource::fixed(ApiKey::new(facts.api_key).unwrap(), facts.access_token).unwrap();
    let stack = Stack::new(facts.base_url.parse().unwrap(), tokens);
    (sandbox, stack, facts.base_url)
}

#[tokio::test(start_paused = true)]
async fn a_stack_in_a_field_is_shared_by_its_clones() {
    fn can_be_shared<T: Clone + Send + Sync + 'static>(_: &T) {}
    let (sandbox, stack, base) = losing_the_first_answer();
    let desk = Desk { stack: stack.boxed(sandbox.gateway()), base };
    can_be_shared(&desk);
    let other = desk.clone();
    let (first, second) = tokio::join!(desk.place(), async move { other.place().await });
    assert_eq!((first.0, second.0), (StatusCode::OK, StatusCode::OK), "{first:?} {second:?}");
    assert_ne!(first.1, second.1, "each has an order of its own");
    assert_eq!(sandbox.state().orders.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_stack_is_one_layer_among_others() {
    let (sandbox, stack, base) = losing_the_first_answer();
    // A layer outside of the stack sees one call, a layer inside sees every send.
    let count = || Arc::<AtomicUsize>::default();
    let (outside, inside) = (count(), count());
    let add = |count: &Arc<AtomicUsize>| {
        count.fetch_add(1, Ordering::Relaxed);
    };
    let (calls, sends) = (outside.clone(), inside.clone());
    let service = ServiceBuilder::new()
        .map_request(move |request: Request<Full<Bytes>>| {
            add(&calls);
            request
        })
        .layer(stack)
        .concurrency_limit(1)
        .map_request(move |request: Request<steadfast::RequestBody>| {
            add(&sends);
            request
        })
        .service(sandbox.gateway());
    let desk = Desk { stack: BoxedStack::new(service), base };
    assert_eq!(desk.place().await.0, StatusCode::OK);
    let seen = [outside, inside].map(|count| count.load(Ordering::Relaxed));
    assert_eq!(seen[0], 1);
    assert_eq!(seen[1] as u64, sandbox.state().requests);
    assert_eq!(sandbox.state().orders.len(), 1, "placed once");
}

fn over(transport: reqwest::ClientBuilder, base: &str) -> Client {
    let access = Access::token("the-api-key", "the-access-token").unwrap();
    let builder = Client::builder(base.parse().unwrap(), access).retry(once());
    builder.build_over(ReqwestTransport::new(transport).unwrap()).unwrap()
}

#[tokio::test]
async fn over_reqwest_no_redirect_is_followed_whatever_its_settings_say() {
    let (elsewhere, heard) = answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let redirect = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://{elsewhere}/\r\nContent-Length: 0\r\n\r\n"
    );
    let (address, asked) = answering(redirect.leak()).await;
    let following = reqwest::Client::builder().redirect(reqwest::redirect::Policy::limited(5));
    let client = over(following, &format!("http://{address}/v2"));
    client.orders().await.unwrap_err();
    assert!(asked.lock().unwrap().starts_with(b"GET /v2/api/oms/orders "));
    assert!(heard.lock().unwrap().is_empty(), "the token went elsewhere");
}

#[tokio::test]
async fn an_existing_client_that_follows_redirects_is_found_out() {
    let empty = r#"{"s":"no-data","msg":"no orders"}"#;
    let empty = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{empty}", empty.len());
    let (elsewhere, _) = answering(empty.leak()).await;
    let redirect =
        format!("HTTP/1.1 303 See Other\r\nLocation: http://{elsewhere}/\r\nContent-Length: 0\r\n\r\n");
    let (address, _) = answering(redirect.leak()).await;
    let access = || Access::token("the-api-key", "the-access-token").unwrap();
    let builder = |base: String| Client::builder(base.parse().unwrap(), access()).retry(once());
    let transport = ReqwestTransport::over(reqwest::Client::new());
    let client = builder(format!("http://{address}/v2")).build_over(transport.clone()).unwrap();
    // The list of somewhere else is no list without orders.
    let error = client.orders().await.unwrap_err().to_string();
    assert!(error.contains("client followed a redirect"), "{error}");
    // A client that meets no redirect is as good as one of our own.
    let client = builder(format!("http://{elsewhere}/v2")).build_over(transport).unwrap();
    assert_eq!(client.orders().await.unwrap(), []);
}

#[tokio::test]
async fn over_reqwest_a_connection_that_is_never_finished_is_given_up_as_it_is_set_to() {
    let (address, _) = answering("").await;
    let hurried = reqwest::Client::builder().connect_timeout(Duration::from_millis(200));
    let client = over(hurried, &format!("https://{address}/v2"));
    let order = order("EQT_INFY_EQ_NSE");
    let placed = tokio::time::timeout(Duration::from_secs(10), client.place_order(&order)).await;
    let error = placed.expect("still connecting").unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unreachable, &Outcome::NotSent), "{error:?}");
}
