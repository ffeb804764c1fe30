//! O6: an order is reported as placed only under a valid order id.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{
    files::{orders, said},
    own_gateway::{OwnGateway, documented, listed, placed},
};

#[tokio::test]
async fn o06_an_identifier_that_stands_for_none_is_looked_for() {
    let ids = ["260000000001", "260000000002", "260000000003"];
    let list = move |sent: usize| {
        // An order that is listed before this one has arrived belongs to another caller.
        let shown = ids.iter().zip(1..).filter(|_| sent == ids.len()).map(|(id, qty)| listed(id, qty));
        serde_json::Value::from_iter(shown).to_string()
    };
    let none = ["0", "null", " 260000000003"];
    let gateway = OwnGateway::with_list(move |number| placed(none[number], "Order placed"), list).await;
    let file = orders(3);
    let output = gateway.command(&["replay", file.path(), "--yes"]).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    for id in none {
        assert!(!stdout.contains(&format!(",placed,{id},")), "{stdout}{stderr}");
    }
    for line in 2..=4 {
        let row = format!("\n{line},placed,26000000000{},recovered,", line - 1);
        assert!(stdout.contains(&row), "{stdout}{stderr}");
    }
    assert_eq!(gateway.orders().len(), 3);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
}

/// An order that the service refused after accepting it was reported as placed, and nothing more.
#[tokio::test]
async fn o06_the_status_of_an_order_that_was_found_is_told() {
    let list = |sent: usize| {
        let mut order = listed("260000000001", 1);
        order["status"] = "rejected".into();
        if sent == 0 { "[]".to_owned() } else { serde_json::json!([order]).to_string() }
    };
    let late = r#"{"s":"error","msg":"Gateway timedout"}"#;
    let gateway = OwnGateway::with_list(move |_| (504, late.to_owned()), list).await;
    let file = orders(1);
    let output = gateway.command(&["replay", file.path(), "--yes"]).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    let row = "\n2,rejected,260000000001,recovered,recovered; the list shows it as rejected\n";
    assert!(stdout.ends_with(row), "{stdout}{stderr}");
    assert!(stderr.ends_with("placed 0 (0 now, 0 before) refused 0 unresolved 0 rejected 1\n"), "{stderr}");
    assert_eq!(output.status.code(), Some(1), "{stderr}");
}

/// Regression: it was told `placed`, with exit code 0, by this run and by each later one.
#[tokio::test]
async fn o06_an_order_that_a_later_list_shows_as_rejected_is_told_so() {
    let list = |sent: usize| {
        let mut orders: Vec<_> = (0..sent).map(|number| listed(&format!("26{number}"), number + 1)).collect();
        orders.iter_mut().skip(1).for_each(|order| order["status"] = "rejected".into());
        serde_json::Value::from_iter(orders).to_string()
    };
    let answer = |number| placed(&format!("26{number}"), "Order placed");
    let gateway = OwnGateway::with_list(answer, list).await;
    let file = orders(2);
    for (now, resolution) in [(1, ""), (0, "attached")] {
        let args = ["replay", file.path(), "--yes", "--in-order", "--json"];
        let output = gateway.command(&args).output().await.unwrap();
        let (stdout, stderr) = said(&output);
        assert_eq!(output.status.code(), Some(1), "{stdout}{stderr}");
        let before = 1 - now;
        let counts = format!("placed 1 ({now} now, {before} before) refused 0 unresolved 0 rejected 1\n");
        assert!(stderr.ends_with(&counts), "{stderr}");
        let told: serde_json::Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!((&told["placed"], &told["rejected"]), (&1.into(), &1.into()), "{told}");
        let row = &told["results"][1];
        let cells = ["status", "orderId", "msg"].map(|name| row[name].as_str().unwrap());
        assert_eq!(cells, ["rejected", "261", "the order list shows it as rejected"], "{told}");
        assert_eq!(row["resolution"].as_str().unwrap_or_default(), resolution, "{told}");
    }
    assert_eq!(gateway.orders().len(), 2, "a rejected order is not sent again");
}

/// A failed read is no list in which the order is not rejected.
#[tokio::test]
async fn o06_without_a_last_list_a_run_does_not_end_well() {
    let lists = AtomicUsize::new(0);
    let list = move |sent: usize| {
        // The first one with the order confirms it; the last one fails.
        if sent > 0 && lists.fetch_add(1, Ordering::SeqCst) > 0 {
            return documented(403);
        }
        let orders = serde_json::Value::from_iter((0..sent).map(|_| listed("26", 1)));
        (200, serde_json::json!({"s": "ok", "d": orders}).to_string())
    };
    let gateway = OwnGateway::with_answers(|_| placed("26", "Order placed"), list).await;
    let file = orders(1);
    let output = gateway.command(&["replay", file.path(), "--yes"]).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(1), "{stdout}{stderr}");
    assert!(stderr.contains("without a last list it is not known whether"), "{stderr}");
    assert!(stdout.contains("2,placed,26,,"), "{stdout}");
}

/// Regression: `orders verify` found it, and ended with 0.
#[tokio::test]
async fn o06_an_order_that_verify_finds_rejected_is_in_its_exit_code() {
    let list = |sent: usize| {
        let mut order = listed("260000000001", 1);
        order["status"] = "rejected".into();
        if sent == 0 { "[]".to_owned() } else { serde_json::json!([order]).to_string() }
    };
    let gateway = OwnGateway::with_list(|_| documented(504), list).await;
    let file = orders(1);
    let mut child = gateway.command(&["replay", file.path(), "--yes"]).spawn().unwrap();
    while gateway.orders().is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    child.kill().await.unwrap();
    let args = ["orders", "verify", "--journal", &file.beside("orders.csv.journal")];
    let output = gateway.command(&args).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(1), "{stdout}{stderr}");
    assert!(stderr.ends_with("recovered 1 rejected 1 unresolved 0 events 0\n"), "{stderr}");
}
