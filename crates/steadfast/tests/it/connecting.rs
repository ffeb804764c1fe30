//! Connections that are never completed, are refused, or lead to another server: nothing was sent over them.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use steadfast::{Access, Client, ErrorKind, Outcome, Transport};
use steadfast_sandbox::Sandbox;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, copy_bidirectional},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{TlsAcceptor, rustls};

use crate::{transport::once, world::order};

/// Starts a proxy that tunnels one connection, and returns the head of the request for the tunnel.
pub(crate) async fn proxy() -> (String, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let asked = tokio::spawn(async move {
        let mut client = BufReader::new(listener.accept().await.unwrap().0);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            client.read_line(&mut head).await.unwrap();
        }
        let target = head.split(' ').nth(1).unwrap().to_owned();
        let mut service = TcpStream::connect(target).await.unwrap();
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        tokio::spawn(async move { copy_bidirectional(&mut client, &mut service).await });
        head
    });
    (address, asked)
}

/// Serves a sandbox behind TLS with a certificate of its own, and returns the authority that signed it.
pub(crate) async fn serve_tls(sandbox: &Sandbox) -> (String, String) {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(signed.signing_key.serialize_der()).unwrap();
    let config =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![signed.cert.der().clone()], key)
            .unwrap();
    let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let behind = plain.local_addr().unwrap();
    let (gateway, front) = (sandbox.clone(), TcpListener::bind("127.0.0.1:0").await.unwrap());
    tokio::spawn(async move { gateway.serve(plain, std::future::pending()).await });
    let port = front.local_addr().unwrap().port();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((stream, _)) = front.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut client) = acceptor.accept(stream).await else { return };
                let mut service = TcpStream::connect(behind).await.unwrap();
                let _ = copy_bidirectional(&mut client, &mut service).await;
            });
        }
    });
    (format!("https://localhost:{port}/v2"), signed.cert.pem())
}

/// Starts a server that accepts, writes this text, and notes everything that it receives.
pub(crate) async fn answering(answer: &'static str) -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let heard = Arc::<Mutex<Vec<u8>>>::default();
    let notes = heard.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let notes = notes.clone();
            tokio::spawn(async move {
                let mut piece = [0; 1024];
                while let Ok(read @ 1..) = stream.read(&mut piece).await {
                    notes.lock().unwrap().extend_from_slice(&piece[..read]);
                    let _ = stream.write_all(answer.as_bytes()).await;
                }
            });
        }
    });
    (address, heard)
}

/// Checks that an order over `transport` fails with nothing sent, long before a send would be given up.
async fn nothing_is_sent(base: &str, transport: Transport, why: &str) {
    let access = Access::token("the-api-key", "the-access-token").unwrap();
    let client =
        Client::builder(base.parse().unwrap(), access).transport(transport).retry(once()).build().unwrap();
    let order = order("EQT_INFY_EQ_NSE");
    let placed = tokio::time::timeout(Duration::from_secs(10), client.place_order(&order)).await;
    let error = placed.unwrap_or_else(|_| panic!("{why}: still connecting")).unwrap_err();
    assert_eq!(
        (error.kind(), error.outcome()),
        (ErrorKind::Unreachable, &Outcome::NotSent),
        "{why}: {error:?}"
    );
    assert_eq!(client.in_doubt(), 0, "{why}");
}

fn hurried() -> Transport {
    Transport::new().connect_timeout(Duration::from_millis(200))
}

// The connect timeout ended with the TCP connection: a missing answer to `CONNECT` or to the TLS handshake was waited
// for as long as for a whole send, five times.
#[tokio::test]
async fn a_connection_that_is_never_finished_is_given_up_within_the_connect_timeout() {
    let (address, heard) = answering("").await;
    let silent = hurried().proxy(format!("http://{address}").parse().unwrap());
    nothing_is_sent("https://api.example/v2", silent, "a proxy that never answers").await;
    assert!(heard.lock().unwrap().starts_with(b"CONNECT api.example:443 "));
    let (address, _) = answering("").await;
    nothing_is_sent(&format!("https://{address}/v2"), hurried(), "a handshake that never ends").await;
}

#[tokio::test]
async fn a_proxy_that_does_not_tunnel_is_told_nothing_but_where_to() {
    for answer in [
        "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 403 Forbidden\r\n\r\n",
        "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 2\r\n\r\nno",
        "SSH-2.0-OpenSSH_9.6\r\n",
    ] {
        let (address, heard) = answering(answer).await;
        let proxy = hurried().proxy(format!("http://{address}").parse().unwrap());
        nothing_is_sent("https://api.example/v2", proxy, answer).await;
        let heard = String::from_utf8(heard.lock().unwrap().clone()).unwrap();
        assert!(heard.starts_with("CONNECT api.example:443 HTTP/1.1\r\n"), "{answer}: {heard}");
        for secret in ["the-access-token", "the-api-key", "symId"] {
            assert!(!heard.contains(secret), "{answer}: {heard}");
        }
    }
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused_however_trusted_its_authority_is() {
    let sandbox = Sandbox::builder().build().unwrap();
    let (base, pem) = serve_tls(&sandbox).await;
    let trusting = || Transport::new().root_certificates(pem.as_bytes()).unwrap();
    nothing_is_sent(&base.replace("localhost", "127.0.0.1"), trusting(), "another name").await;
    assert_eq!(sandbox.state().requests, 0);
}

// With HTTP/2 a form may leave long after it was released.
#[tokio::test]
async fn o14_http2_is_not_offered() {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(signed.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![signed.cert.der().clone()], key);
    let mut config = config.unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("https://localhost:{}/v2", listener.local_addr().unwrap().port());
    let served = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = TlsAcceptor::from(Arc::new(config)).accept(stream).await.unwrap();
        let chosen = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
        let mut begins = [0; 13];
        stream.read_exact(&mut begins).await.unwrap();
        (chosen, begins)
    });
    let transport = Transport::new().root_certificates(signed.cert.pem().as_bytes()).unwrap();
    let access = Access::token("key", "token").unwrap();
    let client =
        Client::builder(base.parse().unwrap(), access).transport(transport).retry(once()).build().unwrap();
    client.orders().await.unwrap_err();
    let (chosen, begins) = served.await.unwrap();
    assert_ne!(chosen.as_deref(), Some(&b"h2"[..]));
    assert_eq!(&begins, b"GET /v2/api/o");
}

#[tokio::test]
async fn an_authority_of_ones_own_is_trusted_through_a_proxy_too() {
    let sandbox = Sandbox::builder().build().unwrap();
    let (base, pem) = serve_tls(&sandbox).await;
    let (address, asked) = proxy().await;
    let facts = sandbox.credentials();
    let transport = Transport::new()
        .root_certificates(pem.as_bytes())
        .unwrap()
        .proxy(format!("http://{address}").parse().unwrap());
    let access = Access::token(facts.api_key, facts.access_token).unwrap();
    let client = Client::builder(base.parse().unwrap(), access).transport(transport).build().unwrap();
    client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap();
    let head = asked.await.unwrap();
    assert!(head.starts_with("CONNECT localhost:"), "{head}");
    assert!(!head.to_lowercase().contains("authorization"), "neither the proxy's nor the service's: {head}");
    assert_eq!(sandbox.state().orders.len(), 1);
}
