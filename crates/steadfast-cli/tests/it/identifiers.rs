//! O6: an order is reported as placed only under a valid order id.

use crate::{
    files::{orders, said},
    own_gateway::{OwnGateway, listed, placed},
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
    let row = "\n2,placed,260000000001,recovered,recovered; the list shows it as rejected\n";
    assert!(stdout.contains(row), "{stdout}{stderr}");
}
