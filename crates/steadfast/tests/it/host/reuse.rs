//! Connections that are used again, and connections that are not.

use std::time::Duration;

use http_body_util::BodyExt;
use steadfast::{
    call::{Call, Fate},
    ext::SendStamp,
};
use tower::ServiceExt;

use super::{Gateway, MOMENT, OK, Step, fate, whole};

#[tokio::test]
async fn connection_carries_one_request_after_another() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\n{}",
    ] {
        let gateway = Gateway::start(vec![vec![Step::Say(answer)]]).await;
        let transport = gateway.transport();
        for _ in 0..3 {
            whole(&transport, gateway.read()).await.unwrap();
            whole(&transport, gateway.order()).await.unwrap();
        }
        assert_eq!(gateway.requests(), [1; 6], "{answer:?}");
    }
}

#[tokio::test]
async fn requests_at_once_take_a_connection_each_and_never_share_one() {
    let gateway = Gateway::start(vec![vec![Step::Wait(MOMENT), OK]]).await;
    let transport = gateway.transport();
    for _ in 0..2 {
        let all = (0..8).map(|_| whole(&transport, gateway.read()));
        futures_util::future::try_join_all(all).await.unwrap();
    }
    let requests = gateway.requests();
    let (first, second) = requests.split_at(8);
    for numbers in [first, second] {
        let mut numbers = numbers.to_vec();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 8);
    }
    assert_eq!(gateway.connections(), 8, "the second eight use those of the first");
}

#[tokio::test]
async fn connection_whose_answer_was_not_read_to_its_end_is_not_used_again() {
    let gateway = Gateway::start(vec![
        vec![
            Step::Say("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}"),
            Step::Wait(MOMENT),
            Step::Say("       "),
        ],
        vec![OK],
    ])
    .await;
    let transport = gateway.transport();
    let (order, stamp) = gateway.stamped_order();
    drop(transport.clone().oneshot(order).await.unwrap());
    let ended = stamp.abort();
    assert!(ended.is_some(), "it ended when the answer was dropped");
    whole(&transport, gateway.read()).await.unwrap();
    assert_eq!((gateway.requests(), stamp.abort()), (vec![1, 2], ended));
}

#[tokio::test]
async fn connection_whose_bytes_were_all_read_is_used_again_though_the_end_was_not_asked_for() {
    let gateway = Gateway::start(vec![vec![OK]]).await;
    let transport = gateway.transport();
    for _ in 0..2 {
        let mut body = transport.clone().oneshot(gateway.read()).await.unwrap().into_body();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "{}");
        assert!(http_body::Body::is_end_stream(&body));
        drop(body);
    }
    assert_eq!(gateway.requests(), [1, 1]);
}

#[tokio::test]
async fn connection_that_either_side_wants_to_close_is_not_used_again() {
    let close = Step::Say("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}");
    let gateway = Gateway::start(vec![vec![close], vec![OK]]).await;
    let transport = gateway.transport();
    whole(&transport, gateway.read()).await.unwrap();
    let mut closing = gateway.read();
    closing.headers_mut().insert("connection", "close".parse().unwrap());
    whole(&transport, closing).await.unwrap();
    whole(&transport, gateway.read()).await.unwrap();
    assert_eq!(gateway.requests(), [1, 2, 3]);
}

#[tokio::test]
async fn send_that_is_dropped_ends_its_connection() {
    let gateway = Gateway::start(vec![vec![Step::Wait(Duration::from_secs(60))], vec![OK]]).await;
    let transport = gateway.transport();
    let (order, stamp) = gateway.stamped_order();
    tokio::time::timeout(MOMENT, transport.clone().oneshot(order)).await.unwrap_err();
    assert!(stamp.began().is_some() && stamp.abort().is_some());
    whole(&transport, gateway.order()).await.unwrap();
    assert_eq!(gateway.requests(), [1, 2]);
}

#[tokio::test]
async fn send_that_was_given_up_before_it_had_a_connection_never_leaves() {
    let gateway = Gateway::start(vec![vec![OK]]).await;
    let (order, stamp) = gateway.stamped_order();
    assert_eq!(stamp.abort(), None);
    let error = whole(&gateway.transport(), order).await.unwrap_err();
    assert_eq!(fate(&error), Some(Fate::NeverLeft), "{error:?}");
    assert!(gateway.requests().is_empty());
}

#[tokio::test]
async fn clone_of_a_send_is_not_sent() {
    let gateway = Gateway::start(vec![vec![OK]]).await;
    let transport = gateway.transport();
    let mut order = gateway.order();
    Call::of_mut(order.extensions_mut()).set_send(SendStamp::new());
    let hedged = order.clone();
    whole(&transport, order).await.unwrap();
    let error = whole(&transport, hedged).await.unwrap_err();
    assert_eq!(fate(&error), Some(Fate::Lost { ended: None }));
    assert_eq!(gateway.requests(), [1]);
}

#[tokio::test]
async fn request_for_another_host_is_refused() {
    let (one, other) = (Gateway::start(vec![vec![OK]]).await, Gateway::start(vec![vec![OK]]).await);
    let error = whole(&one.transport(), other.read()).await.unwrap_err();
    assert_eq!(fate(&error), Some(Fate::NeverLeft));
    assert_eq!((one.connections(), other.connections()), (0, 0));
}
