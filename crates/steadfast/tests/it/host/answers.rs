//! Answers that are believed, and answers that are not.

use http_body_util::Full;
use steadfast::call::Fate;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
};

use super::{Gateway, MOMENT, OK, Step, fate, whole};

/// Two answers to one request in one piece.
const TWICE: Step =
    Step::Say("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");

// O6: which of the two answers belongs to the request is not certain, and the next one would get the other.
#[tokio::test]
async fn o06_first_of_two_answers_is_not_believed() {
    for twice in [
        TWICE,
        Step::Say("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}{}"),
        Step::Say("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}{}"),
        Step::Say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n{}"),
        Step::Say("HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"),
        Step::Say("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n{}"),
    ] {
        let gateway = Gateway::start(vec![vec![twice, Step::Close], vec![OK]]).await;
        let transport = gateway.transport();
        let (order, stamp) = gateway.stamped_order();
        let error = whole(&transport, order).await.unwrap_err();
        assert!(matches!(fate(&error), Some(Fate::Answered | Fate::Lost { .. })), "{twice:?}: {error:?}");
        assert!(error.to_string().contains("answer"), "{error}");
        assert!(stamp.abort().is_some(), "{twice:?}: its connection has ended, and when is known");
        assert_eq!(whole(&transport, gateway.order()).await.unwrap(), "{}", "{twice:?}");
        assert_eq!(gateway.requests(), [1, 2], "{twice:?}: nothing more is sent over that connection");
    }
}

#[tokio::test]
async fn o06_second_answer_that_comes_later_is_not_the_answer_of_the_next_request() {
    let gateway = Gateway::start(vec![
        vec![OK, Step::Wait(MOMENT), Step::Say("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong")],
        vec![OK],
    ])
    .await;
    let transport = gateway.transport();
    assert_eq!(whole(&transport, gateway.order()).await.unwrap(), "{}");
    tokio::time::sleep(3 * MOMENT).await;
    assert_eq!(whole(&transport, gateway.order()).await.unwrap(), "{}");
    assert_eq!(gateway.requests(), [1, 2]);
}

#[tokio::test]
async fn empty_line_after_a_body_is_no_second_answer() {
    let line = Step::Say("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}\r\n");
    let gateway = Gateway::start(vec![vec![line]]).await;
    let transport = gateway.transport();
    for _ in 0..2 {
        assert_eq!(whole(&transport, gateway.order()).await.unwrap(), "{}");
    }
    assert_eq!(gateway.requests(), [1, 2]);
}

#[tokio::test]
async fn switch_to_another_protocol_is_no_answer() {
    let switch = Step::Say("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nx");
    let gateway = Gateway::start(vec![vec![switch], vec![OK]]).await;
    let transport = gateway.transport();
    let error = whole(&transport, gateway.order()).await.unwrap_err();
    assert!(matches!(fate(&error), Some(Fate::Lost { ended: Some(_) })), "{error:?}");
    whole(&transport, gateway.read()).await.unwrap();
    assert_eq!(gateway.requests(), [1, 2]);
}

#[tokio::test]
async fn informational_answers_are_passed_over() {
    let early = Step::Say("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n");
    let gateway = Gateway::start(vec![vec![early, Step::Wait(MOMENT), early, OK]]).await;
    let transport = gateway.transport();
    for request in [gateway.order(), gateway.read()] {
        assert_eq!(whole(&transport, request).await.unwrap(), "{}");
    }
    assert_eq!(gateway.requests(), [1, 1]);
}

#[tokio::test]
async fn answer_that_ends_with_its_connection_is_handed_on_and_ends_its_connection() {
    let gateway =
        Gateway::start(vec![vec![Step::Say("HTTP/1.1 200 OK\r\n\r\n{}"), Step::Close], vec![OK]]).await;
    let transport = gateway.transport();
    assert_eq!(whole(&transport, gateway.order()).await.unwrap(), "{}");
    whole(&transport, gateway.read()).await.unwrap();
    assert_eq!(gateway.requests(), [1, 2]);
}

#[tokio::test]
async fn body_that_is_cut_is_an_error_and_ends_its_connection() {
    for cut in [
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\n{}",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\nx\r\n",
    ] {
        let gateway = Gateway::start(vec![vec![Step::Say(cut), Step::Close], vec![OK]]).await;
        let transport = gateway.transport();
        whole(&transport, gateway.order()).await.unwrap_err();
        assert_eq!(whole(&transport, gateway.read()).await.unwrap(), "{}");
        assert_eq!(gateway.requests(), [1, 2], "{cut:?}");
    }
}

#[tokio::test]
async fn head_that_is_cut_or_no_http_is_a_lost_answer() {
    for bad in [
        "",
        "HTTP/1.1 20",
        "HTTP/1.1 200 OK\r\ncontent-len",
        "SSH-2.0-x\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{}",
    ] {
        let gateway = Gateway::start(vec![vec![Step::Say(bad), Step::Close]]).await;
        let (order, stamp) = gateway.stamped_order();
        let error = whole(&gateway.transport(), order).await.unwrap_err();
        assert!(matches!(fate(&error), Some(Fate::Lost { ended: Some(_) })), "{bad:?}: {error:?}");
        assert!(stamp.began().is_some(), "{bad:?}");
    }
}

#[tokio::test]
async fn slow_body_is_read_to_its_end() {
    let gateway = Gateway::start(vec![vec![
        Step::Say("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"),
        Step::Wait(MOMENT),
        Step::Say("{ "),
        Step::Wait(MOMENT),
        Step::Say(" }"),
    ]])
    .await;
    let transport = gateway.transport();
    for request in [gateway.order(), gateway.read()] {
        assert_eq!(whole(&transport, request).await.unwrap(), "{  }");
    }
    assert_eq!(gateway.requests(), [1, 1]);
}

// The rest of such a request would be read as the next one.
#[tokio::test]
async fn answer_before_the_request_was_read_is_handed_on_and_ends_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gateway = Gateway::new(&format!("http://{}/v2", listener.local_addr().unwrap()), vec![vec![OK]]);
    let serving = gateway.clone();
    tokio::spawn(async move {
        let mut stream = BufReader::new(listener.accept().await.unwrap().0);
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            stream.read_line(&mut line).await.unwrap();
        }
        stream.write_all(b"HTTP/1.1 413 x\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
        // It never reads the rest of it.
        serving.serve(BufReader::new(listener.accept().await.unwrap().0)).await;
        drop(stream);
    });
    let transport = gateway.transport();
    let mut order = gateway.order();
    *order.body_mut() = Full::from(vec![b'x'; 32 << 20]);
    assert_eq!(whole(&transport, order).await.unwrap(), "{}");
    whole(&transport, gateway.read()).await.unwrap();
    assert_eq!(gateway.requests(), [1], "of the second connection");
}
