//! How connections are made: through a proxy, with a certificate authority of the caller's own,
//! over another client.

use steadfast::{
    Access, Client, ErrorKind, InvalidCertificates, InvalidClient, Outcome, ReqwestTransport, Transport,
    call::Failure,
    retry::{RetryPolicy, Schedule},
};
use steadfast_sandbox::Sandbox;
use tokio::net::TcpListener;
use tower::ServiceExt as _;

use crate::{
    both::both,
    connecting::{answering, proxy, serve_tls},
    served::serve,
    world::{order, script},
};

/// Returns a policy that sends every request once.
pub(crate) fn once() -> RetryPolicy {
    RetryPolicy::default().schedule(Schedule::never())
}

#[tokio::test]
async fn connections_are_tunnelled_through_a_proxy() {
    let sandbox = Sandbox::builder().build().unwrap();
    let (base, pem) = serve_tls(&sandbox).await;
    let (address, asked) = proxy().await;
    let facts = sandbox.credentials();
    let access = Access::token(facts.api_key, facts.access_token.clone()).unwrap();
    let transport = Transport::new()
        .root_certificates(pem.as_bytes())
        .unwrap()
        .proxy(format!("http://desk:s3cret@{address}").parse().unwrap());
    let client = Client::builder(base.parse().unwrap(), access).transport(transport).build().unwrap();
    client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap();
    let head = asked.await.unwrap().to_lowercase();
    assert!(head.starts_with("connect localhost:"), "{head}");
    assert!(head.contains("proxy-authorization: basic zgvzazpzm2nyzxq="), "{head}");
    assert!(!head.contains(&facts.access_token.to_lowercase()), "the proxy sees nothing of what is sent");
}

// The token travelled in clear text through the proxy.
#[tokio::test]
async fn x02_clear_text_does_not_go_through_a_proxy() {
    let (address, heard) = answering("HTTP/1.1 200 OK\r\n\r\n").await;
    let transport = Transport::new().proxy(format!("http://{address}").parse().unwrap());
    for base in ["http://127.0.0.1:9/v2", "http://localhost:9/v2", "http://[::1]:9/v2"] {
        let access = Access::token("key", "token").unwrap();
        let client = Client::builder(base.parse().unwrap(), access).transport(transport.clone()).build();
        assert!(matches!(client, Err(InvalidClient::ClearTextThroughProxy)), "{base}: {client:?}");
        // A hand-made stack does not send it either.
        for (over, transport) in both(&transport, base) {
            let request = http::Request::get(format!("{base}/api/oms/orders"))
                .header("authorization", "the-access-token")
                .body(http_body_util::Full::<bytes::Bytes>::default());
            let error = transport.oneshot(request.unwrap()).await.map(drop).unwrap_err();
            assert_eq!(Failure::outcome_of(&*error), Outcome::NotSent, "{over}: {base}: {error:?}");
        }
    }
    assert_eq!(heard.lock().unwrap().len(), 0, "the proxy is told nothing");
}

#[tokio::test]
async fn a_proxy_that_refuses_leaves_nothing_in_doubt() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client =
        Client::builder("https://api.example/v2".parse().unwrap(), Access::token("key", "token").unwrap())
            .transport(Transport::new().proxy(format!("http://{address}").parse().unwrap()))
            .retry(once())
            .build()
            .unwrap();
    let error = client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unreachable, &Outcome::NotSent));
}

#[tokio::test]
async fn an_authority_of_ones_own_is_trusted_and_a_strangers_is_not() {
    let sandbox = Sandbox::builder().build().unwrap();
    let (base, pem) = serve_tls(&sandbox).await;
    let facts = sandbox.credentials();
    let client = |transport: Transport| {
        let access = Access::token(facts.api_key.clone(), facts.access_token.clone()).unwrap();
        Client::builder(base.parse().unwrap(), access).transport(transport).retry(once()).build().unwrap()
    };
    let trusting = Transport::new().root_certificates(pem.as_bytes()).unwrap();
    client(trusting).place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap();
    let error = client(Transport::new()).place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap_err();
    assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unreachable, &Outcome::NotSent));
    assert_eq!(sandbox.state().orders.len(), 1);
}

#[test]
fn a_text_without_certificates_is_refused() {
    let refusal = |pem: &str| Transport::new().root_certificates(pem.as_bytes()).unwrap_err();
    assert_eq!(refusal(""), InvalidCertificates::None);
    let cut = "-----BEGIN CERTIFICATE-----\nAAAA\n";
    assert_eq!(refusal(cut), InvalidCertificates::NotPem);
    let junk = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert_eq!(refusal(junk), InvalidCertificates::NotCertificate);
}

#[tokio::test]
async fn over_reqwest_an_order_whose_answer_is_lost_is_placed_once() {
    let served = serve(script("[[fault]]\nname = 'placement.reset-applied'\nnth = 1").build().unwrap()).await;
    let facts = served.facts.clone();
    let transport = ReqwestTransport::new(reqwest::Client::builder()).unwrap();
    let access = Access::token(facts.api_key, facts.access_token).unwrap();
    let client = served.builder(access).build_over(transport).unwrap();
    let placed = client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap();
    assert!(placed.resolution.is_some());
    client.cancel(&placed.order_id).await.unwrap();
    assert_eq!(served.sandbox.state().orders.len(), 1);
}

#[tokio::test]
async fn over_reqwest_what_never_left_is_known_and_no_address_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let base = format!("http://{address}/v2").parse().unwrap();
    let client = Client::builder(base, Access::token("key", "token").unwrap())
        .paths(steadfast::Paths::public())
        .retry(once())
        .build_over(ReqwestTransport::new(reqwest::Client::builder()).unwrap())
        .unwrap();
    for error in [
        client.place_order(&order("EQT_INFY_EQ_NSE")).await.unwrap_err(),
        client.cancel("the-order-id").await.unwrap_err(),
    ] {
        assert_eq!((error.kind(), error.outcome()), (ErrorKind::Unreachable, &Outcome::NotSent));
        let chain: Vec<String> =
            std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source())
                .map(|error| format!("{error} {error:?}"))
                .collect();
        assert!(!chain.concat().contains("the-order-id"), "{chain:?}");
    }
}
