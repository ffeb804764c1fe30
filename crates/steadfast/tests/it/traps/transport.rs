//! Hyper's reports, those that it does not make, and what they prove about an order (§1 of the outcome table).

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use steadfast::{
    BoxError, HyperTransport, Outcome,
    call::{Failure, Fate, Resend},
    ext,
    retry::{AttemptTimeoutLayer, ClassifyLayer},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::oneshot,
};
use tower::{Layer, Service, ServiceExt, service_fn, util::BoxCloneSyncService};

use super::{Answer, Form, found};
use crate::{
    order::{Boxed, whole},
    world::SECOND,
};

const FORM: &str = "symId=EQT_INFY_EQ_NSE&qty=10";

/// Starts a gateway that reads one whole order, writes these bytes and closes the connection.
async fn gateway(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut read = Vec::new();
        while !read.ends_with(FORM.as_bytes()) {
            assert_ne!(stream.read_buf(&mut read).await.unwrap(), 0, "the whole order arrives");
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
    });
    format!("http://{address}/v2/api/oms/place-order")
}

fn transport() -> HyperTransport<hyper_util::client::legacy::connect::HttpConnector, Form> {
    HyperTransport::new(Client::builder(TokioExecutor::new()).build_http())
}

fn classified<L>(transport: L) -> Boxed
where
    L: Service<Request<Form>, Response = Response<hyper::body::Incoming>, Error = BoxError>,
    L: Clone + Send + Sync + 'static,
    L::Future: Send,
{
    whole_or_cut(ClassifyLayer::new().layer(transport))
}

/// As [`whole`], for bodies that may break off: the stamps beside them are kept.
fn whole_or_cut<S, B>(service: S) -> Boxed
where
    S: Service<Request<Form>, Response = Response<B>, Error = BoxError> + Clone + Send + Sync + 'static,
    S::Future: Send,
    B: Send + 'static,
{
    whole(service.map_response(|response: Response<B>| response.map(|_| Full::<Bytes>::default())))
}

async fn an_order_that_had_left_is_in_doubt(service: Boxed, answer: &'static str) {
    let order = Request::post(gateway(answer).await).body(Form::from(FORM)).unwrap();
    let outcome = match service.oneshot(order).await {
        Ok(response) => Outcome::of(response.extensions()).cloned().unwrap(),
        Err(error) => Failure::outcome_of(&*error),
    };
    assert!(outcome.is_unknown(), "{outcome:?} after {answer:?}");
}

#[tokio::test]
async fn an_incomplete_message_does_not_say_that_nothing_was_sent() {
    for answer in ["", "HTTP/1.1 20", "HTTP/1.1 200 OK\r\nContent-Le"] {
        an_order_that_had_left_is_in_doubt(classified(transport()), answer).await;
    }
    let planted = transport().map_err(|error: BoxError| -> BoxError {
        match steadfast::call::find_cause::<hyper::Error>(&*error) {
            Some(broken) if broken.is_incomplete_message() => Failure::new(Fate::NeverLeft, error).into(),
            _ => error,
        }
    });
    assert!(found(an_order_that_had_left_is_in_doubt(classified(planted), "")).await.starts_with("NotSent"));
}

/// Takes a 200 without a transport error for a success.
fn by_status() -> Boxed {
    whole_or_cut(transport().map_response(|mut response: Response<hyper::body::Incoming>| {
        if response.status() == StatusCode::OK {
            ext::Sent::of_mut(response.extensions_mut()).set_outcome(Outcome::Accepted { order_id: None });
        }
        response
    }))
}

#[tokio::test]
async fn a_body_longer_than_its_length_is_no_success() {
    const LONGER: &str =
        "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{\"s\":\"ok\",\"d\":{\"orderId\":\"7\",\"msg\":\"\"}}";
    an_order_that_had_left_is_in_doubt(classified(transport()), LONGER).await;
    assert!(found(an_order_that_had_left_is_in_doubt(by_status(), LONGER)).await.starts_with("Accepted"));
}

#[tokio::test]
async fn a_body_that_ends_with_its_connection_may_be_cut_and_is_then_no_success() {
    const CUT: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"s\":\"ok\",\"d\":{\"orderId\":\"7\"";
    an_order_that_had_left_is_in_doubt(classified(transport()), CUT).await;
    assert!(found(an_order_that_had_left_is_in_doubt(by_status(), CUT)).await.starts_with("Accepted"));
}

#[tokio::test]
async fn a_body_shorter_than_its_length_is_in_doubt_and_never_sent_again() {
    const SHORT: &str =
        "HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{\"s\":\"ok\",\"d\":{\"orderId\":\"7\",\"msg\":\"\"}}";
    let order = Request::post(gateway(SHORT).await).body(Form::from(FORM)).unwrap();
    let response = classified(transport()).oneshot(order).await.unwrap();
    assert_eq!(Outcome::of(response.extensions()), Some(&Outcome::Unknown { resend: Resend::Never }));
    assert!(found(an_order_that_had_left_is_in_doubt(by_status(), SHORT)).await.starts_with("Accepted"));
}

/// Checks that an answer within the attempt's 30 s is waited for.
async fn an_answer_in_time_is_waited_for(
    transport: BoxCloneSyncService<Request<Form>, Answer, BoxError>,
    url: &str,
) {
    let service = AttemptTimeoutLayer::default().layer(transport);
    let request = Request::get(url).body(Form::default()).unwrap();
    assert!(service.oneshot(request).await.is_ok(), "the clock ran ahead of the socket");
}

#[tokio::test(start_paused = true)]
async fn paused_time_runs_ahead_of_a_real_socket_so_tests_with_it_use_transports_in_memory() {
    let in_memory = service_fn(|_| async {
        tokio::time::sleep(20 * SECOND).await;
        Ok(Response::new(Form::default()))
    });
    an_answer_in_time_is_waited_for(BoxCloneSyncService::new(in_memory), "http://localhost/v2").await;

    // A socket's peer lives in real time. This one answers right after the call has been given up, and not
    // before.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v2", listener.local_addr().unwrap());
    let (given_up, ends) = oneshot::channel::<()>();
    let peer = std::thread::spawn(move || {
        let stream = listener.accept();
        let _ = ends.blocking_recv();
        drop(stream);
    });
    let over_tcp = whole_or_cut(transport());
    let found = found(an_answer_in_time_is_waited_for(over_tcp, &url)).await;
    given_up.send(()).unwrap();
    assert!(found.contains("ran ahead"), "{found}");
    peer.join().unwrap();
}
