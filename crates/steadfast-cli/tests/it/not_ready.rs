//! A sidecar that can send no order says so before one is refused.

use std::time::Duration;

use steadfast::dedup::Settings;
use steadfast_call::WallClock;

use crate::{
    own_gateway::{OwnGateway, placed},
    proxy::{RunningProxy, get},
};

async fn start(gateway: &OwnGateway, folder: &tempfile::TempDir) -> RunningProxy {
    let place = |name: &str| folder.path().join(name).display().to_string();
    let (journal, store) = (place("orders.journal"), place("store"));
    let args = ["proxy", "--port", "0", "--json", "--journal", &journal, "--store", &store];
    RunningProxy::start(gateway.command(&args)).await
}

pub(crate) async fn ready(proxy: &RunningProxy) -> String {
    let admin = proxy.facts["admin_url"].as_str().unwrap().strip_prefix("http://").unwrap();
    get(admin, "/readyz", String::new()).await
}

/// Waits until the sidecar says so by itself.
pub(crate) async fn until_ready(proxy: &RunningProxy) {
    while !ready(proxy).await.starts_with("HTTP/1.1 200") {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Regression: `/readyz` answered 200 while every order got 503.
#[tokio::test]
async fn a_sidecar_whose_journal_was_moved_is_not_ready() {
    let gateway = OwnGateway::serve(|number| placed(&format!("2{number}"), "Order placed")).await;
    let folder = tempfile::tempdir().unwrap();
    let proxy = start(&gateway, &folder).await;
    assert!(proxy.order("Idempotency-Key: a\r\n").await.starts_with("HTTP/1.1 200"));
    assert!(ready(&proxy).await.starts_with("HTTP/1.1 200"));
    let journal = folder.path().join("orders.journal");
    std::fs::rename(&journal, folder.path().join("aside")).unwrap();
    let refused = proxy.order("Idempotency-Key: b\r\n").await;
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    let told = ready(&proxy).await;
    assert!(told.starts_with("HTTP/1.1 503"), "{told}");
    let why = format!("{} was moved, removed or replaced while the journal was open", journal.display());
    assert!(told.contains("no order leaves: ") && told.contains(&why), "{told}");
    assert_eq!(gateway.orders().len(), 1);
}

/// Regression: the service's first `Date` was of another day. Orders got 503 until the sidecar was started again, and `/readyz`
/// answered 200.
#[tokio::test]
async fn a_sidecar_is_not_ready_while_the_service_says_another_day_and_trades_once_it_is_right() {
    let gateway = OwnGateway::serve(|number| placed(&format!("2{number}"), "Order placed")).await;
    // Around midnight both days are valid.
    let now = WallClock::system().now();
    let of_day = Settings::default().day_of(now + Duration::from_secs(1_200));
    let near = of_day != Settings::default().day_of(now - Duration::from_secs(1_200));
    gateway.is_ahead(Duration::from_secs(if near { 26 } else { 24 } * 3_600));
    let folder = tempfile::tempdir().unwrap();
    let proxy = start(&gateway, &folder).await;
    for _ in 0..2 {
        let refused = proxy.order("Idempotency-Key: a\r\n").await;
        assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
        let told = ready(&proxy).await;
        let why = "no order leaves: time by the machine's clock is not the service's";
        assert!(told.starts_with("HTTP/1.1 503") && told.contains(why), "{told}");
    }
    assert_eq!(gateway.orders().len(), 0);
    gateway.is_ahead(Duration::ZERO);
    // It reads the list by itself: nothing else asks the service for anything.
    tokio::time::timeout(Duration::from_secs(30), until_ready(&proxy)).await.expect("the day is put right");
    for _ in 0..2 {
        let answer = proxy.order("Idempotency-Key: a\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    assert_eq!(gateway.orders().len(), 1);
}
