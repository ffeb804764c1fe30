//! A second run over a file that is interrupted tells every row as it is.

use std::{
    process::Stdio,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use tokio::io::AsyncReadExt;

use crate::{
    command::interrupt,
    files::{file, orders, said},
    own_gateway::{OwnGateway, documented, listed, placed},
    ruling::journal,
};

/// Returns the last line of each row's result, which holds.
fn ends(results: &str) -> Vec<String> {
    let mut ends = std::collections::BTreeMap::new();
    for row in results.lines().skip(1).filter(|row| !row.contains(",event: ")) {
        let (line, rest) = row.split_once(',').unwrap();
        ends.insert(line.parse::<u64>().unwrap(), rest.to_owned());
    }
    ends.into_iter().map(|(line, rest)| format!("{line},{rest}")).collect()
}

/// Regression: a row that had been placed under its second name was told as not sent, one in doubt without its reason, and a
/// rejected one as placed.
#[tokio::test]
async fn c02_an_interrupted_second_run_tells_every_row_as_it_is() {
    let list = |_| {
        let mut order = listed("1001", 2);
        order["status"] = "rejected".into();
        serde_json::json!([order, listed("1002", 4)]).to_string()
    };
    // The first row is sent again and again, and the others wait for it.
    let gateway = OwnGateway::with_list(|_| documented(429), list).await;
    let file = orders(5);
    let sent = [("line-3", Some("1001")), ("line-4", None), ("line-5-again", Some("1002"))];
    journal(&gateway, &file, &sent).await;
    let mut command = gateway.command(&["replay", file.path(), "--yes", "--in-order"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while gateway.orders().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    interrupt(&child).await;
    let (mut results, mut told) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut results).await.unwrap();
    child.stderr.take().unwrap().read_to_string(&mut told).await.unwrap();
    let ends = ends(&results);
    let found = |line: usize, start: &str| ends[line - 2].starts_with(&format!("{line},{start}"));
    assert_eq!(ends.len(), 5, "{results}{told}");
    assert!(found(2, "not executed,") || found(2, "unresolved,"), "{results}{told}");
    assert!(found(3, "rejected,1001,attached,the order list shows it as rejected"), "{results}{told}");
    // It has been looked for meanwhile.
    assert!(found(4, "unresolved,,,\"session_changed: "), "{results}{told}");
    assert!(
        found(5, "placed,1002,attached,placed by an earlier run; nothing was sent now"),
        "{results}{told}"
    );
    assert!(found(6, "not sent,,,"), "{results}{told}");
    assert!(
        told.contains(" unresolved 1 rejected 1 ") && !told.contains("in doubt of an earlier run"),
        "{told}"
    );
    assert_eq!(child.wait().await.unwrap().code(), Some(6), "{told}");
}

/// Regression: the first bad rows were told before the question, and again when the run came to them.
#[tokio::test]
async fn c08_each_bad_row_is_told_once_on_the_terminal_and_once_in_the_results() {
    let gateway = OwnGateway::serve(|number| placed(&format!("26{number}"), "Order placed")).await;
    let good = "EQT_INFY_EQ_NSE,1,buy,market,intraday,day,,\n";
    let bad = good.replace("buy", "BUY");
    let file = file(&[crate::files::HEADER, &bad, good, &bad, &bad, &bad, &bad].concat());
    let results = file.beside("results.csv");
    for more in [&["--check"][..], &["--yes", "--out", &results]] {
        let args = [&["replay", file.path()], more].concat();
        let output = gateway.command(&args).output().await.unwrap();
        let (stdout, stderr) = said(&output);
        assert_eq!(output.status.code(), Some(1), "{stdout}{stderr}");
        for line in [2, 4, 5, 6, 7] {
            let told = format!("line {line}, column 3: side is not one of");
            assert_eq!(stderr.matches(&told).count(), 1, "{told} in {stderr}");
        }
    }
    let rows = std::fs::read_to_string(&results).unwrap();
    for line in [2, 4, 5, 6, 7] {
        assert_eq!(rows.matches(&format!("\n{line},bad,")).count(), 1, "{rows}");
    }
    assert_eq!(gateway.orders().len(), 1);
}

/// Regression: each answer had named the order before, and the first run was killed. The second one told the rows under
/// those identifiers, and the order of the last row as one too many: a list showed it after the others.
#[tokio::test]
async fn o06_a_second_run_tells_no_row_as_placed_that_its_list_contradicts() {
    let reads = AtomicUsize::new(0);
    let list = move |_| {
        let mut before = listed("1001", 9);
        before["symId"] = "EQT_TCS_EQ_NSE".into();
        let mut orders = vec![before, listed("1002", 1), listed("1003", 2)];
        if reads.fetch_add(1, Ordering::Relaxed) > 0 {
            orders.push(listed("1004", 3));
        }
        serde_json::Value::from(orders).to_string()
    };
    let gateway = OwnGateway::with_list(|_| documented(429), list).await;
    let file = orders(3);
    let sent = [("line-2", Some("1001")), ("line-3", Some("1002")), ("line-4", Some("1003"))];
    journal(&gateway, &file, &sent).await;
    let output = gateway.command(&["replay", file.path(), "--yes"]).output().await.unwrap();
    let (results, told) = said(&output);
    // No journal says which orders were listed before the first send.
    for (end, own) in ends(&results).iter().zip([1002, 1003, 1004]) {
        assert!(end.contains(",unresolved,,,") && end.contains(&own.to_string()), "{results}{told}");
    }
    assert!(!results.contains("event: excess"), "{results}{told}");
    assert!(gateway.orders().is_empty(), "{told}");
    assert_eq!(output.status.code(), Some(6), "{told}");
}
