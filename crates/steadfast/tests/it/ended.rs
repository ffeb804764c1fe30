//! How the end of a lost send's connection is known, and what can no longer be sent after it.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use steadfast::{
    BoxError, HyperTransport, ReqwestTransport, Transport,
    call::{Call, Failure, Fate},
    ext::SendStamp,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
    time::{Instant, sleep},
};
use tokio_rustls::{TlsAcceptor, rustls};
use tower::ServiceExt;

use crate::{
    both::{Sender, both},
    connecting::proxy,
};

/// Ends every connection at its first request, a `GET` after an answer.
async fn end_at_once(mut stream: impl AsyncRead + AsyncWrite + Unpin, heard: &Mutex<Vec<u8>>) {
    let mut piece = [0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut piece).await {
        heard.lock().unwrap().extend_from_slice(&piece[..read]);
        if !piece.starts_with(b"GET") {
            return;
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
        stream.flush().await.unwrap();
    }
}

struct Server {
    port: u16,
    pem: String,
    heard: Arc<Mutex<Vec<u8>>>,
    connections: Arc<AtomicUsize>,
}

impl Server {
    /// Starts a server with or without TLS; its handshakes take this long.
    async fn start(tls: bool, handshake: Duration) -> Self {
        let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = rustls::pki_types::PrivateKeyDer::try_from(signed.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![signed.cert.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (heard, connections) = (Arc::<Mutex<Vec<u8>>>::default(), Arc::<AtomicUsize>::default());
        let (noted, counted) = (heard.clone(), connections.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let (acceptor, noted) = (acceptor.clone(), noted.clone());
                tokio::spawn(async move {
                    if !tls {
                        return end_at_once(stream, &noted).await;
                    }
                    sleep(handshake).await;
                    if let Ok(stream) = acceptor.accept(stream).await {
                        end_at_once(stream, &noted).await;
                    }
                });
            }
        });
        Self { port, pem: signed.cert.pem(), heard, connections }
    }

    fn order(&self, scheme: &str) -> Request<Full<Bytes>> {
        let address = format!("{scheme}://localhost:{}/v2/api/oms/place-order", self.port);
        Request::post(address).body(Full::from("symId=EQT_INFY_EQ_NSE")).unwrap()
    }

    fn list(&self) -> Request<Full<Bytes>> {
        let address = format!("http://localhost:{}/v2/api/oms/orders", self.port);
        Request::get(address).body(Full::default()).unwrap()
    }

    fn base(&self, scheme: &str) -> String {
        format!("{scheme}://localhost:{}/v2", self.port)
    }

    fn both(&self, scheme: &str) -> [(&'static str, Sender); 2] {
        both(&self.transport(), &self.base(scheme))
    }

    fn transport(&self) -> Transport {
        Transport::new().root_certificates(self.pem.as_bytes()).unwrap()
    }
}

fn fate(error: &BoxError) -> Fate {
    Failure::find(&**error).map(Failure::fate).unwrap()
}

#[tokio::test]
async fn o01_a_transport_says_when_a_lost_send_ended() {
    for (tls, scheme) in [(false, "http"), (true, "https")] {
        let server = Server::start(tls, Duration::ZERO).await;
        for (over, transport) in server.both(scheme) {
            let begun = Instant::now();
            let sent = transport.oneshot(server.order(scheme)).await;
            let Fate::Lost { ended: Some(ended) } = fate(&sent.map(drop).unwrap_err()) else {
                panic!("{over}: {scheme}")
            };
            assert!(begun.into_std() < ended && ended <= Instant::now().into_std(), "{over}: {scheme}");
        }
    }
}

#[tokio::test]
async fn o01_nobody_says_so_who_cannot_know() {
    let tls = Server::start(true, Duration::ZERO).await;
    for nth in 0..2 {
        let (address, _) = proxy().await;
        let proxied = tls.transport().proxy(format!("http://{address}").parse().unwrap());
        let (over, transport) = &both(&proxied, &tls.base("https"))[nth];
        let sent = transport.clone().oneshot(tls.order("https")).await;
        let fate = fate(&sent.map(drop).unwrap_err());
        assert_eq!(fate, Fate::Lost { ended: None }, "{over}, through a proxy");
    }

    let plain = Server::start(false, Duration::ZERO).await;
    let executor = hyper_util::rt::TokioExecutor::new();
    let own = HyperTransport::new(hyper_util::client::legacy::Client::builder(executor).build_http());
    let sent = own.oneshot(plain.order("http")).await;
    assert_eq!(fate(&sent.map(drop).unwrap_err()), Fate::Lost { ended: None }, "a client of one's own");
    let reqwest = ReqwestTransport::new(reqwest::Client::builder().no_proxy()).unwrap();
    let sent = reqwest.oneshot(plain.order("http")).await;
    assert_eq!(fate(&sent.map(drop).unwrap_err()), Fate::Lost { ended: None }, "reqwest");
}

#[tokio::test]
async fn o01_a_finished_exchange_keeps_its_connection() {
    for nth in 0..2 {
        let server = Server::start(false, Duration::ZERO).await;
        let [one, other] = server.both("http");
        a_finished_exchange_keeps_its_connection(&server, if nth == 0 { one.1 } else { other.1 }).await;
    }
}

async fn a_finished_exchange_keeps_its_connection(server: &Server, transport: Sender) {
    let mut stamps = Vec::new();
    for _ in 0..3 {
        let (mut request, stamp) = (server.list(), SendStamp::new());
        Call::of_mut(request.extensions_mut()).set_send(stamp.clone());
        stamps.push(stamp);
        let answer = transport.clone().oneshot(request).await.unwrap();
        answer.into_body().collect().await.unwrap();
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
    // Until one of them is in doubt and ends the connection, which all of them used.
    let ended = stamps[0].abort();
    assert!(ended.is_some());
    assert_eq!(stamps[2].abort(), ended);
    transport.oneshot(server.list()).await.unwrap();
    assert_eq!(server.connections.load(Ordering::SeqCst), 2);
}

// A layer in between may hand the send to a task that goes on for a while.
#[tokio::test]
async fn o01_a_send_that_is_given_up_before_it_began_never_begins() {
    let server = Server::start(true, Duration::from_millis(300)).await;
    for (over, transport) in server.both("https") {
        let (mut order, stamp) = (server.order("https"), SendStamp::new());
        Call::of_mut(order.extensions_mut()).set_send(stamp.clone());
        let send = tokio::spawn(transport.oneshot(order));
        sleep(Duration::from_millis(50)).await;
        assert_eq!((stamp.began(), stamp.abort()), (None, None), "{over}");
        send.await.unwrap().map(drop).unwrap_err();
        sleep(Duration::from_millis(100)).await;
        let heard = server.heard.lock().unwrap();
        assert!(!String::from_utf8_lossy(&heard).contains("symId"), "{over}: {heard:?}");
    }
}

// A hedge or a repeat between the stack and the transport: the evidence could not say which of the two has left.
#[tokio::test]
async fn clone_of_a_send_is_not_sent_and_counts_as_lost() {
    let server = Server::start(false, Duration::ZERO).await;
    let reqwest = ReqwestTransport::new(reqwest::Client::builder().no_proxy()).unwrap();
    let [_, (_, transport)] = server.both("http");
    let mut order = server.order("http");
    Call::of_mut(order.extensions_mut()).set_send(SendStamp::new());
    let clones = [order.clone(), order.clone()];
    transport.clone().oneshot(order).await.map(drop).unwrap_err();
    let [one, other] = clones;
    let hedged = transport.oneshot(one).await.map(drop).unwrap_err();
    assert_eq!(fate(&hedged), Fate::Lost { ended: None });
    let hedged = reqwest.oneshot(other).await.map(drop).unwrap_err();
    assert_eq!(fate(&hedged), Fate::Lost { ended: None });
    let heard = String::from_utf8_lossy(&server.heard.lock().unwrap()).matches("symId").count();
    assert_eq!(heard, 1);
}
