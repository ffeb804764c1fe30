//! O6: an order is told as placed under an identifier that is one.

use crate::{
    files::{orders, said},
    own_gateway::{OwnGateway, listed, placed},
};

#[tokio::test]
async fn o06_an_identifier_that_stands_for_none_is_looked_for() {
    let list = |sent: usize| {
        let ids = ["260000000001", "260000000002", "260000000003"];
        let shown = ids.iter().zip(1..=sent).map(|(id, qty)| listed(id, qty));
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
