//! Outages of a real network, made by the kernel: a send that was given up in an outage does not arrive after it.
//!
//! Each test runs itself again in a network of its own (`unshare --net`), takes the loopback device down in the middle
//! of an order, and up again. The kernel then sends its unsent data, and the gateway notes everything that arrives.
//! `STEADFAST_OUTAGE_CAMPAIGN` makes the campaign a long one: whole clients at their defaults, and outages of 20 s to 90 s.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, reason = "a test that cannot run says why")]

mod campaign;
mod gateway;
mod network;

use std::{env, io::ErrorKind, process::Stdio, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use steadfast::{
    BoxError, Transport,
    call::{Failure, Fate},
    retry::{AttemptTimeoutLayer, TimedBody},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::Command,
    time::{Instant, sleep},
};
use tower::{Layer as _, ServiceExt as _, util::BoxCloneSyncService};

use crate::{
    gateway::{Gateway, Way},
    network::{Link, run_inside},
};

/// How long a send may take in these tests; the kernel tries again after 0.2, 0.6, 1.4 and 3 s.
const ATTEMPT: Duration = Duration::from_secs(1);
/// How long after an outage the kernel has tried again, if it ever does.
const TRIED_AGAIN: Duration = Duration::from_secs(5);
const FORM: &str = "symId=EQT_INFY_EQ_NSE&qty=10&side=buy&type=market&product=intraday&validity=day";

type Sends = BoxCloneSyncService<Request<Full<Bytes>>, Response<TimedBody<Incoming>>, BoxError>;

/// Sends once, and gives up after `attempt`.
fn sends(pem: &str, attempt: Duration) -> Sends {
    let transport = Transport::new().root_certificates(pem.as_bytes()).unwrap();
    let sends = AttemptTimeoutLayer::new(attempt).layer(transport.service().unwrap());
    BoxCloneSyncService::new(sends)
}

fn list(base: &str) -> Request<Full<Bytes>> {
    Request::get(format!("{base}/api/oms/orders")).body(Full::default()).unwrap()
}

fn order(base: &str, form: impl Into<Bytes>) -> Request<Full<Bytes>> {
    Request::post(format!("{base}/api/oms/place-order")).body(Full::new(form.into())).unwrap()
}

/// Returns when the connection of a lost order ended.
fn ended(error: &BoxError) -> Instant {
    match Failure::find(&**error).map(Failure::fate) {
        Some(Fate::Lost { ended: Some(ended) }) => Instant::from_std(ended),
        fate => panic!("{fate:?}: {error:?}"),
    }
}

/// Sends an order into an outage over an existing connection, gives it up, and restores the network.
async fn outage_in_an_order(way: Way) {
    let gateway = Gateway::start(way).await;
    let service = sends(&gateway.pem, ATTEMPT);
    let listed = service.clone().oneshot(list(&gateway.base)).await.unwrap();
    listed.into_body().collect().await.map(drop).unwrap();
    let link = Link::down();
    let sent = Instant::now();
    let error = service.clone().oneshot(order(&gateway.base, FORM)).await.map(drop).unwrap_err();
    let ended = ended(&error);
    assert!(ended >= sent + ATTEMPT && ended <= Instant::now(), "{:?}", ended - sent);
    sleep(Duration::from_millis(200)).await;
    link.up();
    sleep(TRIED_AGAIN).await;
    assert_eq!(gateway.orders(), 0, "{way:?}: it arrived when the network was back");
    // The network and the gateway are back.
    service.oneshot(order(&gateway.base, FORM)).await.map(drop).unwrap();
    assert_eq!(gateway.orders(), 1);
}

#[test]
fn o01_a_send_given_up_in_an_outage_never_arrives() {
    run_inside("o01_a_send_given_up_in_an_outage_never_arrives", || outage_in_an_order(Way::Plain));
}

#[test]
fn o01_a_send_given_up_in_an_outage_never_arrives_over_tls() {
    run_inside("o01_a_send_given_up_in_an_outage_never_arrives_over_tls", || outage_in_an_order(Way::Tls));
}

/// The same, but the call is dropped instead of timing out.
#[test]
fn o01_a_call_dropped_in_an_outage_never_arrives() {
    run_inside("o01_a_call_dropped_in_an_outage_never_arrives", async || {
        let gateway = Gateway::start(Way::Tls).await;
        let service = sends(&gateway.pem, Duration::from_secs(30));
        let listed = service.clone().oneshot(list(&gateway.base)).await.unwrap();
        listed.into_body().collect().await.map(drop).unwrap();
        let link = Link::down();
        let call = service.oneshot(order(&gateway.base, FORM));
        assert!(tokio::time::timeout(Duration::from_millis(300), call).await.is_err());
        link.up();
        sleep(TRIED_AGAIN).await;
        assert_eq!(gateway.orders(), 0);
    });
}

/// The variable that gives the child the gateway and its authority.
const CHILD: &str = "STEADFAST_OUTAGE_CHILD";

/// The child: lists its orders, waits for a line, and sends an order.
#[tokio::test]
async fn child() {
    let Ok(facts) = env::var(CHILD) else { return };
    let (base, pem) = facts.split_once('\n').unwrap();
    let service = sends(pem, Duration::from_secs(30));
    let listed = service.clone().oneshot(list(base)).await.unwrap();
    listed.into_body().collect().await.map(drop).unwrap();
    println!("\nlisted");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    // It is killed meanwhile.
    let _ = service.oneshot(order(base, FORM)).await;
}

async fn killed_in_an_outage(way: Way) {
    let gateway = Gateway::start(way).await;
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(CHILD, format!("{}\n{}", gateway.base, gateway.pem))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while lines.next_line().await.unwrap().expect("it lists its orders") != "listed" {}
    let link = Link::down();
    child.stdin.as_mut().unwrap().write_all(b"go\n").await.unwrap();
    sleep(Duration::from_millis(500)).await;
    // SIGKILL: no code of the process runs any more.
    child.kill().await.unwrap();
    link.up();
    sleep(TRIED_AGAIN).await;
    assert_eq!(gateway.orders(), 0, "{way:?}: the order of a process that is gone arrived");
}

#[test]
fn o01_a_process_killed_in_an_outage_sends_nothing_more() {
    run_inside("o01_a_process_killed_in_an_outage_sends_nothing_more", || killed_in_an_outage(Way::Plain));
}

#[test]
fn o01_a_process_killed_in_an_outage_sends_nothing_more_over_tls() {
    run_inside("o01_a_process_killed_in_an_outage_sends_nothing_more_over_tls", || {
        killed_in_an_outage(Way::Tls)
    });
}

/// An orderly end of TLS writes buffered data, and waits for room if the other end does not read.
#[test]
fn o01_a_full_send_buffer_under_tls_does_not_delay_the_end() {
    run_inside("o01_a_full_send_buffer_under_tls_does_not_delay_the_end", async || {
        let gateway = Gateway::start(Way::Tls).await;
        let service = sends(&gateway.pem, ATTEMPT);
        gateway.stop_reading();
        let sent = Instant::now();
        let error = service.oneshot(order(&gateway.base, vec![b'x'; 32 << 20])).await.map(drop).unwrap_err();
        let ended = ended(&error);
        let late = (sent + ATTEMPT).elapsed();
        assert!(ended >= sent + ATTEMPT && late < Duration::from_millis(300), "it took {late:?}");
        sleep(Duration::from_millis(500)).await;
        gateway.go_on_reading();
        sleep(Duration::from_secs(1)).await;
        // Neither an orderly end of TLS nor one of TCP.
        assert_eq!(gateway.endings(), [Err(ErrorKind::ConnectionReset)]);
        assert!(gateway.heard() < 16 << 20, "{} bytes", gateway.heard());
    });
}
