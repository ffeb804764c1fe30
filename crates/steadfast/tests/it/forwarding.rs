//! Requests of other programs, passed on.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use steadfast::{Access, Client, ErrorKind, Paths, call::Routes, dedup::RESOLUTION_HEADER};
use steadfast_sandbox::{Sandbox, SandboxBuilder};
use tokio::time::Instant;

use crate::world::{SECOND, order, script};

fn client(sandbox: SandboxBuilder) -> (Client, Sandbox) {
    let sandbox = sandbox.build().unwrap();
    let facts = sandbox.credentials();
    let access = Access::token(facts.api_key, facts.access_token).unwrap();
    let builder = Client::builder(facts.base_url.parse().unwrap(), access)
        .paths(Paths::public())
        .routes(Routes::new(&Paths::public()).guard_unknown());
    (builder.build_over(sandbox.gateway()).unwrap(), sandbox)
}

fn request(sandbox: &Sandbox, method: Method, target: &str, form: &str) -> Request<Full<Bytes>> {
    let uri = format!("{}{target}", sandbox.credentials().base_url);
    let request = Request::builder().method(method).uri(uri);
    request.body(Full::from(form.to_owned())).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_confirmed_cancel_or_change_has_the_services_own_answer() {
    let (client, sandbox) = client(Sandbox::builder());
    let id = client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap().order_id;
    let change = request(&sandbox, Method::PUT, "/api/oms/modify-order", &format!("qty=7&orderId={id}"));
    let answer = client.forward(change).await.unwrap();
    assert!(answer.status() == 200 && !answer.headers().contains_key(RESOLUTION_HEADER));
    assert_eq!(sandbox.state().orders[0].qty.to_string(), "7");
    let cancel = request(&sandbox, Method::DELETE, &format!("/api/oms/cancel-order?orderId={id}"), "");
    let answer = client.forward(cancel).await.unwrap();
    assert!(answer.status() == 200 && !answer.headers().contains_key(RESOLUTION_HEADER));
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(std::str::from_utf8(&body).unwrap().contains(&id));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_or_change_that_worked_behind_errors_is_a_success() {
    for (fault, method, target, form) in [
        ("cancel-order", Method::DELETE, "/api/oms/cancel-order?orderId=", ""),
        ("modify-order", Method::PUT, "/api/oms/modify-order", "qty=7&orderId="),
    ] {
        let (client, sandbox) = client(script(&format!(
            "[[fault]]\nname = 'connection.reset-after'\nendpoint = '{fault}'\nnth = 1"
        )));
        let id = client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap().order_id;
        let (target, form) = match form {
            "" => (format!("{target}{id}"), String::new()),
            form => (target.to_owned(), format!("{form}{id}")),
        };
        let answer = client.forward(request(&sandbox, method, &target, &form)).await.unwrap();
        assert_eq!(answer.status(), 200, "{fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_that_cannot_be_read_is_refused_here() {
    let (client, sandbox) = client(Sandbox::builder());
    for form in ["", "qty=7", "orderId=1&qty=x", "orderId=1&qty=7&qty=8", "%zz"] {
        let change = request(&sandbox, Method::PUT, "/api/oms/modify-order", form);
        assert_eq!(client.forward(change).await.unwrap_err().kind(), ErrorKind::InvalidRequest, "{form}");
    }
    assert!(sandbox.state().arrivals.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_guarded_path_is_sent_once_and_halted_unless_it_reads_or_cancels() {
    let (client, sandbox) = client(Sandbox::builder().fault("connection.reset-before", 1.0).unwrap());
    let begun = Instant::now();
    for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        let before = sandbox.state().arrivals.len();
        let unknown = || request(&sandbox, method.clone(), "/api/oms/never-heard-of", "a=1");
        let _ = client.forward(unknown()).await;
        assert_eq!(sandbox.state().arrivals.len(), before + 1, "{method} is not repeated");
        client.halt();
        let halted = client.forward(unknown()).await;
        let leaves = method == Method::GET || method == Method::DELETE;
        assert_eq!(halted.is_err_and(|error| error.kind() == ErrorKind::Halted), !leaves, "{method}");
        client.resume();
    }
    assert!(begun.elapsed() < 3 * SECOND);
}
