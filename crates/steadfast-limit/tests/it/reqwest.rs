//! Requests of a `reqwest` client over real sockets: what they cost the limiter.

use std::{future::IntoFuture as _, net::SocketAddr, time::Duration};

use steadfast_limit::{Lane, MINUTE, Quota, Refusal, SECOND, Scope, SendError, Zone, ZoneLimiter};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    time::Instant,
};

const WEATHER: Zone = Zone::new("weather");

fn limiter(each_second: u32) -> ZoneLimiter {
    let quota = Quota::new(WEATHER, Scope::Shared).limit(each_second, SECOND).limit(100, MINUTE);
    ZoneLimiter::builder().zone(quota).build().unwrap()
}

/// Answers every connection's only request with `head`.
async fn answering(head: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            drop(connection.read(&mut [0; 4096]).await);
            drop(connection.write_all(head.as_bytes()).await);
        }
    });
    address
}

async fn ask(limiter: &ZoneLimiter, address: SocketAddr) -> Result<reqwest::Response, SendError> {
    let client = reqwest::Client::builder().connect_timeout(SECOND).build().unwrap();
    let request = client.get(format!("http://{address}/v1?key=secret")).build().unwrap();
    limiter.send(&client, request, WEATHER).send_by(Instant::now() + Duration::from_millis(300)).await
}

const SUNNY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nsunny";

#[tokio::test]
async fn a_request_that_cannot_leave_in_time_is_refused_with_its_zone_and_sends_nothing() {
    let (limiter, address) = (limiter(2), answering(SUNNY).await);
    for _ in 0..2 {
        assert_eq!(ask(&limiter, address).await.unwrap().text().await.unwrap(), "sunny");
    }
    let refused = ask(&limiter, address).await.unwrap_err();
    assert!(matches!(refused.refusal(), Some(Refusal::WouldMissDeadline { .. })), "{refused}");
    assert_eq!(refused.zone(), Some(WEATHER));
    assert!(refused.to_string().contains("zone weather"), "{refused}");
}

#[tokio::test]
async fn a_429_stops_the_zone_for_as_long_as_it_says() {
    let limiter = limiter(2);
    let busy = "HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    assert_eq!(ask(&limiter, answering(busy).await).await.unwrap().status(), 429);
    let paused = limiter.snapshot().zones[0].paused_for.unwrap();
    assert!(paused > Duration::from_secs(6), "{paused:?}");
}

/// Regression: the last one counted.
#[tokio::test]
async fn of_several_times_to_wait_the_longest_counts() {
    for (first, second) in [(7, 1), (1, 7)] {
        let limiter = limiter(2);
        let head = format!(
            "HTTP/1.1 429 Too Many\r\nRetry-After: {first}\r\nRetry-After: {second}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(ask(&limiter, answering(head.leak()).await).await.unwrap().status(), 429);
        let paused = limiter.snapshot().zones[0].paused_for.unwrap();
        assert!(paused > Duration::from_secs(6), "{first}, {second}: {paused:?}");
    }
}

#[tokio::test]
async fn a_connection_that_was_refused_costs_nothing_and_a_lost_answer_does() {
    let limiter = limiter(2);
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for _ in 0..5 {
        let error = ask(&limiter, gone).await.unwrap_err();
        assert!(error.request().is_some_and(reqwest::Error::is_connect), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    let address = answering("").await;
    for _ in 0..2 {
        assert!(ask(&limiter, address).await.unwrap_err().request().is_some());
    }
    let refused = ask(&limiter, address).await.unwrap_err();
    assert!(refused.refusal().is_some(), "both slots are held: {refused}");
}

#[tokio::test]
async fn a_request_waits_in_the_lane_that_it_names() {
    let (limiter, address) = (limiter(2), answering(SUNNY).await);
    let client = reqwest::Client::new();
    let send = |lane| {
        let request = client.get(format!("http://{address}/v1")).build().unwrap();
        limiter.send(&client, request, WEATHER).lane(lane).into_future()
    };
    let (first, second) = tokio::join!(send(Lane::Normal), send(Lane::Normal));
    assert!(first.is_ok() && second.is_ok());
    let start = Instant::now();
    let timed = async |lane| {
        send(lane).await.unwrap();
        start.elapsed()
    };
    let polls = async { tokio::join!(timed(Lane::Bulk), timed(Lane::Bulk), timed(Lane::Bulk)) };
    let (polls, hurried) = tokio::join!(polls, timed(Lane::Critical));
    assert!(hurried <= polls.0.max(polls.1).max(polls.2), "{hurried:?}");
    assert!(polls.0.max(polls.1).max(polls.2) >= SECOND, "the third of a second waits");
}
