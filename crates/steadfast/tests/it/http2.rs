//! HTTP/2 over TLS: the switch, and what its errors prove of an order.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use h2::Reason;
use http::{Request, Response, Version};
use http_body_util::Full;
use steadfast::{
    Access, Client, ErrorKind, Outcome, Transport,
    retry::{RetryPolicy, Schedule},
    spec::{Failure, Resend},
};
use tokio::net::TcpListener;
use tokio_rustls::{TlsAcceptor, rustls};
use tower::ServiceExt as _;

use crate::world::order;

const PLACED: &str = r#"{"s":"ok","d":{"orderId":"7","msg":"placed"}}"#;

/// A listener that speaks these protocols behind TLS, its base address and its authority's certificate.
async fn listen(alpn: &[&str]) -> (TcpListener, TlsAcceptor, String, String) {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(signed.signing_key.serialize_der()).unwrap();
    let mut config =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![signed.cert.der().clone()], key)
            .unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("https://localhost:{}/v2", listener.local_addr().unwrap().port());
    (listener, TlsAcceptor::from(Arc::new(config)), base, signed.cert.pem())
}

/// A client that sends once and never again, by whatever `transport` says.
fn client(base: &str, pem: &str, transport: Transport) -> Client {
    Client::builder(base.parse().unwrap(), Access::token("key", "token").unwrap())
        .transport(transport.root_certificates(pem.as_bytes()).unwrap())
        .retry(RetryPolicy::default().schedule(Schedule::never()))
        .build()
        .unwrap()
}

/// A gateway that places every order, over whatever protocol the connection speaks; the version of each request.
async fn gateway(alpn: &[&str]) -> (String, String, Arc<std::sync::Mutex<Vec<Version>>>) {
    let (listener, acceptor, base, pem) = listen(alpn).await;
    let versions = Arc::<std::sync::Mutex<Vec<Version>>>::default();
    let seen = versions.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let seen = seen.clone();
            let service = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
                seen.lock().unwrap().push(request.version());
                let body =
                    if request.uri().path().ends_with("place-order") { PLACED } else { r#"{"s":"no-data"}"# };
                async move { Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(body))) }
            });
            let io = hyper_util::rt::TokioIo::new(stream);
            let builder = hyper_util::server::conn::auto::Builder::new(hyper_util::rt::TokioExecutor::new());
            tokio::spawn(async move { builder.serve_connection(io, service).await.map_err(drop) });
        }
    });
    (base, pem, versions)
}

#[tokio::test]
async fn http2_is_spoken_only_if_both_sides_want_it() {
    for (alpn, transport, version) in [
        (&["h2", "http/1.1"][..], Transport::new().http2(), Version::HTTP_2),
        (&["http/1.1"][..], Transport::new().http2(), Version::HTTP_11),
        (&["h2", "http/1.1"][..], Transport::new(), Version::HTTP_11),
    ] {
        let (base, pem, versions) = gateway(alpn).await;
        let client = client(&base, &pem, transport);
        assert_eq!(client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap().order_id, "7");
        assert!(
            versions.lock().unwrap().iter().all(|seen| *seen == version),
            "{versions:?}, not {version:?}"
        );
    }
}

/// What a gateway does to an order once its form has arrived.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Reset(Reason),
    GoAway(Reason),
    Drop,
}

/// A gateway that ends every request so; how many forms have arrived.
async fn ending(ending: Ending) -> (String, String, Arc<AtomicUsize>) {
    let (listener, acceptor, base, pem) = listen(&["h2"]).await;
    let arrived = Arc::<AtomicUsize>::default();
    let count = arrived.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let mut connection = h2::server::handshake(stream).await.unwrap();
            let mut kept = Vec::new();
            while let Some(Ok((request, mut respond))) = connection.accept().await {
                let mut body = request.into_body();
                // The connection must be driven for the form to arrive.
                let form = tokio::select! {
                    form = body.data() => form,
                    _ = connection.accept() => None,
                };
                if !matches!(form, Some(Ok(form)) if !form.is_empty()) {
                    continue;
                }
                count.fetch_add(1, Ordering::SeqCst);
                match ending {
                    Ending::Reset(reason) => respond.send_reset(reason),
                    Ending::GoAway(reason) => connection.abrupt_shutdown(reason),
                    Ending::Drop => break,
                }
                // Dropped, it would reset its stream.
                kept.push(respond);
            }
        }
    });
    (base, pem, arrived)
}

fn form(base: &str) -> Request<Full<Bytes>> {
    Request::post(format!("{base}/api/oms/place-order"))
        .body(Full::from("symId=EQT_INFY_EQ_NSE&qty=10"))
        .unwrap()
}

/// What one order's end proves, by the bare transport, and how often its form arrived.
async fn proved(end: Ending) -> (Outcome, usize) {
    let (base, pem, arrived) = ending(end).await;
    let transport = Transport::new().http2().root_certificates(pem.as_bytes()).unwrap();
    let error = transport.leaf().unwrap().oneshot(form(&base)).await.map(drop).unwrap_err();
    (Failure::outcome_of(&*error), arrived.load(Ordering::SeqCst))
}

#[tokio::test]
async fn a_refused_stream_was_not_processed_although_its_form_had_left() {
    assert_eq!(proved(Ending::Reset(Reason::REFUSED_STREAM)).await, (Outcome::NotSent, 1));
}

#[tokio::test]
async fn every_other_end_of_a_stream_or_connection_leaves_the_order_in_doubt() {
    for end in [
        Ending::Reset(Reason::CANCEL),
        Ending::Reset(Reason::INTERNAL_ERROR),
        Ending::Reset(Reason::ENHANCE_YOUR_CALM),
        Ending::Reset(Reason::NO_ERROR),
        Ending::GoAway(Reason::INTERNAL_ERROR),
        Ending::GoAway(Reason::NO_ERROR),
        Ending::GoAway(Reason::REFUSED_STREAM),
        Ending::Drop,
    ] {
        assert_eq!(proved(end).await, (Outcome::Unknown { resend: Resend::AfterAbsence }, 1), "{end:?}");
    }
}

#[tokio::test]
async fn a_body_that_is_refused_at_its_first_poll_sends_no_form() {
    let (base, pem, arrived) = ending(Ending::Reset(Reason::CANCEL)).await;
    let transport = Transport::new().http2().root_certificates(pem.as_bytes()).unwrap();
    let refused =
        futures_util::stream::iter([Err::<http_body::Frame<Bytes>, _>(std::io::Error::other("refused"))]);
    let request = form(&base).map(|_| http_body_util::StreamBody::new(refused));
    assert!(transport.leaf().unwrap().oneshot(request).await.is_err());
    assert_eq!(arrived.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_order_whose_stream_is_refused_is_no_order_in_doubt() {
    let (base, pem, arrived) = ending(Ending::Reset(Reason::REFUSED_STREAM)).await;
    let client = client(&base, &pem, Transport::new().http2());
    let error = client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unreachable, &Outcome::NotSent));
    assert!(error.is_retryable());
    assert_eq!((client.in_doubt(), arrived.load(Ordering::SeqCst)), (0, 1));
}
