//! `orders verify` tells what it has learned also if it is interrupted.

use std::{process::Stdio, time::Duration};

use crate::{
    command::signal,
    files::{orders, said},
    own_gateway::{OwnGateway, listed, placed},
};

/// Regression: the signal ended the process, and the event that had come by then was told nowhere.
#[tokio::test]
async fn c02_an_interrupted_search_loses_no_event() {
    for kind in ["-INT", "-TERM"] {
        // The list shows another order under the second identifier, and none that could be the second row's.
        let list = |sent: usize| {
            let mut other = listed("260000000002", 2);
            other["symId"] = "EQT_TCS_EQ_NSE".into();
            let shown = [listed("260000000001", 1), other].into_iter().take(sent);
            serde_json::Value::from_iter(shown).to_string()
        };
        let answer = |number| placed(["260000000001", "260000000002"][number], "Order placed");
        let gateway = OwnGateway::with_list(answer, list).await;
        let file = orders(2);
        let mut run = gateway.command(&["replay", file.path(), "--yes", "--in-order"]).spawn().unwrap();
        while gateway.orders().len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        run.kill().await.unwrap();
        let journal = file.beside("orders.csv.journal");
        let args = ["orders", "verify", "--journal", &journal];
        let verify = gateway.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // It has begun, and searches for two minutes.
        tokio::time::sleep(Duration::from_secs(4)).await;
        signal(&verify, kind).await;
        let output = verify.wait_with_output().await.unwrap();
        let (stdout, stderr) = said(&output);
        assert_eq!(output.status.code(), Some(6), "{stdout}{stderr}");
        assert!(
            stdout.contains("conflict: the list shows another order as 260000000002"),
            "{stdout}{stderr}"
        );
        assert!(stderr.contains("interrupted: the search ended early"), "{stderr}");
        let kept = std::fs::read_to_string(file.beside("orders.csv.journal.events")).unwrap();
        assert_eq!(kept.matches("\"conflict\"").count(), 1, "{kept}");
    }
}
