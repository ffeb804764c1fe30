//! An answer that gives its length twice is not accepted, and nothing more is sent over its connection.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use steadfast::{
    BoxError, Outcome, ReqwestTransport, Transport,
    call::{Failure, Fate, Resend},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
};
use tower::{Service, ServiceExt};

use crate::both::both;

const BOTH: &str = "content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
const CHUNKED: &str = "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";

/// Starts a server that gives this answer to every request, and counts its connections.
async fn server(rest_of_answer: &'static str) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v2", listener.local_addr().unwrap());
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = connections.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(answer_all(BufReader::new(stream), rest_of_answer));
        }
    });
    (base, connections)
}

async fn answer_all(mut stream: BufReader<tokio::net::TcpStream>, rest_of_answer: &str) -> Option<()> {
    let answer = format!("HTTP/1.1 200 OK\r\n{rest_of_answer}");
    loop {
        let (mut line, mut length) = (String::new(), 0);
        while line != "\r\n" {
            line.clear();
            stream.read_line(&mut line).await.ok().filter(|&read| read > 0)?;
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        stream.read_exact(&mut vec![0; length]).await.ok()?;
        stream.write_all(answer.as_bytes()).await.ok()?;
    }
}

/// Returns an order, and a read, which has no body.
fn requests(base: &str) -> [Request<Full<Bytes>>; 2] {
    [
        Request::post(format!("{base}/api/oms/place-order"))
            .body(Full::from("symId=EQT_INFY_EQ_NSE"))
            .unwrap(),
        Request::get(format!("{base}/api/oms/orders")).body(Full::default()).unwrap(),
    ]
}

async fn send<S, B>(transport: S, request: Request<Full<Bytes>>) -> Result<Bytes, BoxError>
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = BoxError>,
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    Ok(transport.oneshot(request).await?.into_body().collect().await.map_err(Into::into)?.to_bytes())
}

fn assert_unknown(error: &BoxError) {
    let fate = Failure::find(&**error).map(Failure::fate);
    assert!(matches!(fate, Some(Fate::Lost { .. })), "{error}: {fate:?}");
    assert_eq!(Failure::outcome_of(&**error), Outcome::Unknown { resend: Resend::AfterAbsence });
}

#[tokio::test]
async fn an_answer_with_two_lengths_is_unknown_and_its_connection_is_not_used_again() {
    for nth in 0..2 {
        let (base, connections) = server(BOTH).await;
        let (over, transport) = &both(&Transport::new(), &base)[nth];
        for (sent, request) in requests(&base).into_iter().chain(requests(&base)).enumerate() {
            assert_unknown(&send(transport.clone(), request).await.unwrap_err());
            assert_eq!(connections.load(Ordering::SeqCst), sent + 1, "{over}");
        }
    }
}

#[tokio::test]
async fn a_chunked_answer_is_believed_and_its_connection_is_used_again() {
    for nth in 0..2 {
        let (base, connections) = server(CHUNKED).await;
        let (over, transport) = &both(&Transport::new(), &base)[nth];
        for request in requests(&base) {
            assert_eq!(send(transport.clone(), request).await.unwrap(), "hello", "{over}");
        }
        assert_eq!(connections.load(Ordering::SeqCst), 1, "{over}");
    }
}

#[tokio::test]
async fn over_reqwest_an_answer_with_two_lengths_is_unknown() {
    let (base, _) = server(BOTH).await;
    let transport = ReqwestTransport::new(reqwest::Client::builder()).unwrap();
    for request in requests(&base) {
        assert_unknown(&send(transport.clone(), request).await.unwrap_err());
    }
}
