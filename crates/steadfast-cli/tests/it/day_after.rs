//! On the day after, no list can show an order in doubt any more: each row says so, and what to do.

use serde_json::Value;
use steadfast::{
    dedup::{
        IntentNo, Settings, TradingDay,
        journal::{Entry, FileJournal, Journal, Record},
    },
    ext::Account,
};

use crate::{
    files::{orders, said},
    journals::left_in_doubt,
    own_gateway::{OwnGateway, placed},
};

fn days_ago(days: i64) -> TradingDay {
    TradingDay(Settings::default().today().0 - days)
}

/// Regression: `orders verify` said `epoch_changed`, after a promise to look for 105 s, and read no list.
#[tokio::test]
async fn c03_an_order_of_an_earlier_day_names_why_no_list_helps_and_its_ruling() {
    let (gateway, file) = (OwnGateway::serve(|_| placed("26", "Order placed")).await, orders(1));
    let journal = file.beside("orders.csv.journal");
    left_in_doubt(&gateway, &journal, &[(Some("line-2"), days_ago(1)), (None, days_ago(4))]).await;
    for verb in ["unresolved", "verify"] {
        let args = ["orders", verb, "--journal", &journal];
        let output = gateway.command(&args).output().await.unwrap();
        let (stdout, stderr) = said(&output);
        assert_eq!(output.status.code(), Some(6), "{stdout}{stderr}");
        let mut rows: Vec<_> = stdout.lines().collect();
        rows.sort_unstable();
        assert_eq!(rows.len(), 2, "{stdout}");
        for (row, name) in rows.iter().zip(["'#1'", "line-2"]) {
            assert!(row.contains("the order list holds the orders of today only"), "{row}");
            let ruling = format!(
                "`steadfast orders rule --journal {journal} {name}` with --placed ORDER-ID or --not-placed"
            );
            assert!(row.ends_with(&ruling), "{row}");
        }
        assert!(!stderr.contains("looking for orders in doubt"), "{stderr}");
        let not_looked_for = "because the order list holds the orders of today only: 2\n";
        assert_eq!(stderr.contains(not_looked_for), verb == "verify", "{stderr}");
    }
    let lists = gateway.all().into_iter().filter(|asked| asked.path.ends_with("/orders"));
    assert_eq!(lists.filter(|asked| !asked.authorization.is_empty()).count(), 0);
}

#[tokio::test]
async fn c03_an_order_of_today_names_what_looks_for_it() {
    let (gateway, file) = (OwnGateway::serve(|_| placed("26", "Order placed")).await, orders(1));
    let journal = file.beside("orders.csv.journal");
    left_in_doubt(&gateway, &journal, &[(Some("line-2"), days_ago(0))]).await;
    let record = |reason: &str| Record::Unresolved {
        intent: IntentNo(0),
        reason: reason.to_owned(),
        candidates: vec!["7".to_owned()],
    };
    let verify = format!("`steadfast orders verify --journal {journal}`");
    let rule = format!("`steadfast orders rule --journal {journal} line-2` with");
    for (record, next) in
        [(None, &verify), (Some(record("budget")), &verify), (Some(record("near_match")), &rule)]
    {
        if let Some(record) = record {
            let account = Account::new(gateway.base_url.clone());
            let written = FileJournal::open(&journal).unwrap().append_durably(Entry { account, record });
            written.await.unwrap();
        }
        let args = ["orders", "unresolved", "--json", "--journal", &journal];
        let (stdout, stderr) = said(&gateway.command(&args).output().await.unwrap());
        let rows: Value = serde_json::from_str(&stdout).unwrap();
        assert!(rows[0]["next"].as_str().unwrap().contains(next), "{stdout}{stderr}");
    }
}
