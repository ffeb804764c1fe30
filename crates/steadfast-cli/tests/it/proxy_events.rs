//! An event that a sidecar has met is in its exit code, and in that of the next one, until a person has looked at it.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::{io::AsyncReadExt, process::Command};

use crate::{
    command::signal,
    own_gateway::{OwnGateway, documented, placed},
    proxy::{RunningProxy, private_folder},
};

/// Returns an order of [`FORM`](crate::proxy::FORM) as a list record.
fn listed(order_id: &str) -> Value {
    json!({
        "orderId": order_id, "symId": "EQT_INFY_EQ_NSE", "side": "buy", "qty": 10, "type": "limit", "limitPrice": 100,
        "product": "delivery", "validity": "day", "status": "open", "legType": "main",
    })
}

/// Regression: `proxy` and `exec` ended with 0 although they had printed an event.
#[tokio::test]
async fn c03_an_event_of_a_sidecar_is_in_its_exit_code_until_it_is_cleared() {
    // The first order is placed twice, and its answer is lost. The second one makes the sidecar look at the list again.
    let list = |sent: usize| {
        let shown = ["260000000001", "260000000002", "260000000003"].into_iter();
        Value::from_iter(shown.take(if sent == 0 { 0 } else { sent + 1 }).map(listed)).to_string()
    };
    let answer = |number| match number {
        0 => documented(504),
        _ => placed("260000000003", "Order placed"),
    };
    let gateway = OwnGateway::with_list(answer, list).await;
    let state = private_folder();
    let journal = state.path().join("orders.journal").to_str().unwrap().to_owned();
    let command = |args: &[&str]| -> Command {
        let mut command = gateway.command(args);
        command.env("XDG_STATE_HOME", state.path()).stderr(Stdio::piped());
        command
    };
    let served = ["proxy", "--port", "0", "--json", "--journal", &journal];
    let mut proxy = RunningProxy::start(command(&served)).await;
    for _ in 0..2 {
        let answer = proxy.order("x-new-order: 1\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    signal(&proxy.child, "-TERM").await;
    let mut told = String::new();
    proxy.child.stderr.take().unwrap().read_to_string(&mut told).await.unwrap();
    assert_eq!(proxy.child.wait().await.unwrap().code(), Some(6), "{told}");
    assert!(told.contains("excess: order 260000000002"), "{told}");
    assert!(told.contains("`steadfast orders events --clear --journal "), "{told}");
    assert!(!told.contains("whether they exist"), "no order is in doubt: {told}");

    // The program's own failure goes before an event.
    for (script, code) in [("exit 0", 6), ("exit 7", 7)] {
        let args = ["exec", "--journal", &journal, "--", "sh", "-c", script];
        let ended = command(&args).output().await.unwrap();
        assert_eq!(ended.status.code(), Some(code), "{}", String::from_utf8_lossy(&ended.stderr));
    }
    let clear = ["orders", "events", "--clear", "--journal", &journal];
    assert!(command(&clear).output().await.unwrap().status.success());
    let ended = command(&["exec", "--journal", &journal, "--", "true"]).output().await.unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    assert_eq!(gateway.orders().len(), 2);
}
