//! Answers that redirect to another address.

use std::time::Duration;

use steadfast::{Access, Client, dedup::Settings};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    time::timeout,
};

use crate::world::order;

/// Answers every request with a redirect to `location`, and closes the connection.
async fn redirecting(status: u16, location: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v2", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            drop(connection.read(&mut [0; 4096]).await);
            let head = format!(
                "HTTP/1.1 {status} Elsewhere\r\nlocation: {location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            );
            drop(connection.write_all(head.as_bytes()).await);
        }
    });
    base
}

#[tokio::test]
async fn m7_no_redirect_is_followed_so_no_other_host_or_port_sees_the_header() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let other = elsewhere.local_addr().unwrap();
    let settings = Settings::default()
        .gateway_timeout(Duration::from_millis(50))
        .lateness(Duration::from_millis(50))
        .verification_budget(Duration::from_millis(200));
    for status in [301, 302, 303, 307, 308] {
        // Another port, another scheme, another name of the same machine.
        for location in [
            format!("http://{other}/v2"),
            format!("https://{other}/"),
            format!("//localhost:{}", other.port()),
        ] {
            let base = redirecting(status, location).await;
            let client = Client::builder(base.parse().unwrap(), Access::token("key", "token").unwrap())
                .order_safety(settings.clone())
                .build()
                .unwrap();
            assert!(client.orders().await.is_err());
            assert!(client.cancel("7").await.is_err());
            if status == 307 {
                assert!(client.place_order(&order("EQT_INFY_EQ_NSE")).await.is_err());
            }
        }
    }
    assert!(timeout(Duration::from_millis(50), elsewhere.accept()).await.is_err(), "somebody went elsewhere");
}
