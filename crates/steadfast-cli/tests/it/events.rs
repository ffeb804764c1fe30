//! C3: a later change of an order's result is shown, kept, counted, and part of the exit code.

use std::{
    process::Stdio,
    sync::{Arc, OnceLock},
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    time::Instant,
};

use crate::{
    files::{orders, said},
    own_gateway::{OwnGateway, documented, listed, placed},
};

#[tokio::test]
async fn c03_an_identifier_given_twice_is_shown_kept_and_in_the_exit_code() {
    // The list tells the two apart by their quantity, so that neither search lasts to the end.
    let list = |sent: usize| match sent {
        0 | 1 => "[]".to_owned(),
        _ => serde_json::json!([listed("260000000001", 1), listed("260000000002", 2)]).to_string(),
    };
    let gateway = OwnGateway::with_list(|_| placed("260000000001", "Order placed"), list).await;
    let file = orders(2);
    let results = file.beside("results.csv");
    // An id that was given out before the order of one share was sent would not be accepted for it.
    let args = ["replay", file.path(), "--yes", "--in-order", "--json", "--out", &results];
    let output = gateway.command(&args).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(6), "{stderr}");
    let counts: Value = serde_json::from_str(&stdout).unwrap();
    assert!(counts["events"]["conflicts"].as_u64().unwrap() >= 1, "{stdout}");
    assert!(
        stderr.contains("conflict: the service gave the identifier 260000000001 to two orders"),
        "{stderr}"
    );
    let rows = std::fs::read_to_string(&results).unwrap();
    // The last line of each row holds, and so it stands in the object.
    for row in counts["results"].as_array().unwrap() {
        let held = rows.lines().rfind(|line| {
            let mut cells = line.split(',');
            cells.next() == Some(&*row["line"].to_string())
                && !cells.next().is_some_and(|status| status.starts_with("event: "))
        });
        let end = format!("{},{},", row["line"], row["status"].as_str().unwrap());
        assert!(held.is_some_and(|held| held.starts_with(&end)), "{row} {rows}");
    }
    assert_eq!(counts["results"].as_array().unwrap().len(), 2, "{stdout}");
    // The row reported as placed gets its correction as well.
    assert!(counts["events"]["corrected"].as_u64().unwrap() >= 1, "{stdout}{rows}");
    assert!(rows.contains(",event: corrected,"), "{rows}");
    assert!(rows.contains(",event: conflict,260000000001,,the service gave the identifier"), "{rows}");

    let journal = file.beside("orders.csv.journal");
    for json in [false, true] {
        let mut args = vec!["orders", "unresolved", "--journal", &journal];
        args.extend(json.then_some("--json"));
        let output = gateway.command(&args).output().await.unwrap();
        let (stdout, stderr) = said(&output);
        assert_eq!(output.status.code(), Some(6), "{stderr}");
        assert!(stdout.contains("conflict") && stdout.contains("260000000001"), "{stdout}");
        assert!(stderr.contains("orders.csv.journal.events"), "{stderr}");
    }

    // Events are cleared by the user who has looked at them, and are kept.
    for (args, code, shown) in [
        (&["orders", "events"][..], 6, true),
        (&["orders", "events", "--clear"], 0, true),
        (&["orders", "events", "--clear"], 0, false),
        (&["orders", "events"], 0, false),
        (&["orders", "unresolved"], 0, false),
    ] {
        let output = gateway.command(&[args, &["--journal", &journal]].concat()).output().await.unwrap();
        let (stdout, stderr) = said(&output);
        assert_eq!(
            (output.status.code(), stdout.contains("conflict")),
            (Some(code), shown),
            "{args:?}: {stderr}"
        );
    }
    assert!(
        std::fs::read_to_string(file.beside("orders.csv.journal.events.seen")).unwrap().contains("conflict")
    );
}

#[tokio::test]
async fn c03_an_event_is_shown_while_the_run_goes_on() {
    let gateway = OwnGateway::serve(|_| placed("260000000001", "Order placed")).await;
    let file = orders(2);
    let mut command = gateway.command(&["replay", file.path(), "--yes"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let told = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("conflict: ") {
                return true;
            }
        }
        false
    };
    // The orders stay in doubt, and the run goes on, three times as long as this timeout.
    let told = tokio::time::timeout(Duration::from_secs(15), told).await;
    assert_eq!(told, Ok(true), "nobody was told of the conflict");
    assert_eq!(child.try_wait().unwrap(), None, "the run was over");
    // The run may be about to store another event.
    let journal = file.beside("orders.csv.journal");
    let args = ["orders", "events", "--clear", "--journal", &journal];
    let output = gateway.command(&args).output().await.unwrap();
    assert_eq!(output.status.code(), Some(2), "{:?}", said(&output));
    assert!(said(&output).1.contains("is in use"), "{:?}", said(&output));
}

#[tokio::test]
async fn c03_a_refused_order_is_no_order_in_doubt_afterwards() {
    let refusal = r#"{"s":"error","msg":"Bad request"}"#;
    let gateway = OwnGateway::serve(move |_| (400, refusal.to_owned())).await;
    let file = orders(1);
    let output = gateway.command(&["replay", file.path(), "--yes"]).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(1), "{stdout}{stderr}");
    let journal = file.beside("orders.csv.journal");
    let output = gateway.command(&["orders", "unresolved", "--journal", &journal]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{:?}", said(&output));
}

/// The event was reported on the row that owns the order.
#[tokio::test]
async fn c03_a_conflict_stands_on_the_row_that_is_in_doubt() {
    let gateway = OwnGateway::serve(|_| placed("260000000001", "Order placed")).await;
    let file = orders(3);
    let mut command = gateway.command(&["replay", file.path(), "--yes"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut rows = Vec::new();
    // The orders end later than this test waits.
    while rows.len() < 2 {
        let line = lines.next_line().await.unwrap().unwrap();
        assert!(!line.contains("was listed before it was sent"), "{line}");
        rows.extend(line.split_once(",event: conflict,").map(|(row, _)| format!("line-{row}")));
    }
    let kept = file.beside("orders.csv.journal.events");
    let conflicts = |kept: &str| kept.lines().filter(|line| line.contains("\"conflict\"")).count();
    while conflicts(&std::fs::read_to_string(&kept).unwrap_or_default()) < 2 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    child.kill().await.unwrap();
    let args = ["orders", "events", "--json", "--journal", &file.beside("orders.csv.journal")];
    let events = said(&gateway.command(&args).output().await.unwrap()).0;
    let events: Vec<Value> = serde_json::from_str(&events).unwrap();
    // A list may have corrected a row meanwhile.
    let conflicts = events.iter().filter(|event| event["status"] == "conflict");
    for (event, row) in conflicts.zip(&rows) {
        let name = format!("line-{}", event["intent"].as_u64().unwrap() + 2);
        assert_eq!((&event["name"], &name), (&Value::from(row.as_str()), row), "{event}");
    }
}

/// The text mentioned an order without naming it.
#[tokio::test]
async fn c03_an_order_that_a_row_may_be_is_named() {
    let list = |sent: usize| match sent {
        0 => "[{}]".to_owned(),
        _ => serde_json::json!([listed("260000000001", 1)]).to_string(),
    };
    let gateway = OwnGateway::with_list(|_| (504, String::new()), list).await;
    let file = orders(1);
    let output = gateway.command(&["replay", file.path(), "--yes"]).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(6), "{stdout}{stderr}");
    assert!(stdout.contains("; it may be 260000000001"), "{stdout}");
    let args = ["orders", "unresolved", "--json", "--journal", &file.beside("orders.csv.journal")];
    let rows: Value = serde_json::from_slice(&gateway.command(&args).output().await.unwrap().stdout).unwrap();
    assert_eq!(rows[0]["candidates"], serde_json::json!(["260000000001"]), "{rows}");
}

/// Regression: the identifiers were invented, no list could be read, and the run said `placed 3` with exit code 0.
#[tokio::test]
async fn c03_rows_that_no_list_has_confirmed_are_told_and_in_the_exit_code() {
    let invented = |number: usize| placed(&format!("99900000000{number}"), "Order placed");
    let gateway = OwnGateway::with_answers(invented, |_| (500, String::new())).await;
    let file = orders(2);
    let results = file.beside("results.csv");
    let args = ["replay", file.path(), "--yes", "--in-order", "--json", "--out", &results];
    let output = gateway.command(&args).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(6), "{stderr}");
    let counts: Value = serde_json::from_str(&stdout).unwrap();
    let told = (&counts["placed"], &counts["unconfirmed"], &counts["events"]["ack_unconfirmed"]);
    assert_eq!(told, (&2.into(), &2.into(), &2.into()), "{stdout}");
    assert_eq!(counts["unconfirmed_lines"], serde_json::json!([2, 3]), "{stdout}");
    let msg = "order 999000000001 was acknowledged and no list that could be read shows it as it was sent";
    assert!(stderr.contains(&format!("line 3: ack unconfirmed: {msg}")), "{stderr}");
    assert!(
        stderr.contains("placed 2 (2 now, 0 before) refused 0 unresolved 0 unconfirmed 2 events 2"),
        "{stderr}"
    );
    let rows = std::fs::read_to_string(&results).unwrap();
    assert!(rows.contains(&format!("\n3,event: ack unconfirmed,999000000001,,{msg}")), "{rows}");
    let journal = file.beside("orders.csv.journal");
    for verb in ["unresolved", "verify"] {
        let output =
            gateway.command(&["orders", verb, "--json", "--journal", &journal]).output().await.unwrap();
        let (stdout, stderr) = said(&output);
        assert_eq!(output.status.code(), Some(6), "{stderr}");
        let rows: Value = serde_json::from_str(&stdout).unwrap();
        let names: Vec<_> = rows.as_array().unwrap().iter().map(|row| &row["name"]).collect();
        assert_eq!(names, ["line-2", "line-3"], "{stdout}");
    }
}

/// Regression: the last look came a second after the refusal, and the run ended before the list showed the order.
#[tokio::test]
async fn c03_a_row_that_was_refused_and_is_listed_late_is_told() {
    let (refused, since) = (Arc::<OnceLock<Instant>>::default(), Duration::from_secs(6));
    let shown = refused.clone();
    let answer = move |_| {
        refused.get_or_init(Instant::now);
        documented(403)
    };
    let list = move |_| match shown.get() {
        Some(at) if at.elapsed() > since => serde_json::json!([listed("260000000001", 1)]).to_string(),
        _ => "[]".to_owned(),
    };
    let (gateway, file) = (OwnGateway::with_list(answer, list).await, orders(1));
    let output = gateway.command(&["replay", file.path(), "--yes"]).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(6), "{stdout}{stderr}");
    assert!(stderr.contains("line 2: refused but placed: order 260000000001 was refused"), "{stderr}");
    assert!(stdout.contains("2,event: refused but placed,260000000001,"), "{stdout}");

    // Regression: the next run found the order placed, and ended with 0 although the event was not cleared.
    let journal = file.beside("orders.csv.journal");
    let again = async |more: &[&str]| {
        let args = [&["replay", file.path(), "--yes"], more].concat();
        let output = gateway.command(&args).output().await.unwrap();
        (output.status.code(), said(&output))
    };
    let event = "event of an earlier run, not cleared: line 2: refused but placed: order 260000000001";
    let (code, (stdout, stderr)) = again(&["--json"]).await;
    assert_eq!(code, Some(6), "{stdout}{stderr}");
    assert!(stderr.contains(event) && stderr.contains("orders events --clear --journal"), "{stderr}");
    assert!(stderr.contains("placed 1 (0 now, 1 before) refused 0 unresolved 0 events of earlier runs 1\n"));
    assert_eq!(serde_json::from_str::<Value>(&stdout).unwrap()["events_before"], 1, "{stdout}");
    let cleared = gateway.command(&["orders", "events", "--clear", "--journal", &journal]).output().await;
    assert_eq!(cleared.unwrap().status.code(), Some(0));
    let (code, (stdout, stderr)) = again(&[]).await;
    assert_eq!((code, stderr.contains("not cleared")), (Some(0), false), "{stdout}{stderr}");
}

/// Regression: each later run told the event again, kept it again, and ended with 6: clearing had no effect.
#[tokio::test]
async fn c03_an_event_that_was_cleared_does_not_come_back() {
    let list = |sent: usize| {
        let twice = [("260000000001", 1), ("260000000002", 1), ("260000000003", 2)];
        let shown = twice.into_iter().take(if sent == 0 { 0 } else { sent + 1 });
        serde_json::Value::from_iter(shown.map(|(id, qty)| listed(id, qty))).to_string()
    };
    let answer = |number| match number {
        0 => documented(504),
        _ => placed("260000000003", "Order placed"),
    };
    let gateway = OwnGateway::with_list(answer, list).await;
    let file = orders(2);
    let journal = file.beside("orders.csv.journal");
    let run = async |args: &[&str]| {
        let output = gateway.command(args).output().await.unwrap();
        (output.status.code(), said(&output))
    };
    let (replay, clear) = (
        ["replay", file.path(), "--yes", "--in-order"],
        ["orders", "events", "--clear", "--journal", &journal],
    );
    for _ in 0..2 {
        let (code, (_, stderr)) = run(&replay).await;
        assert_eq!((code, stderr.contains("\nexcess: order 260000000002")), (Some(6), true), "{stderr}");
        // It is told by this run and stands from the one before: that is one event.
        assert!(stderr.ends_with(" unresolved 0 events 1\n"), "{stderr}");
    }
    assert_eq!(run(&clear).await.0, Some(0));
    for _ in 0..2 {
        let (code, (stdout, stderr)) = run(&replay).await;
        assert_eq!(code, Some(0), "{stdout}{stderr}");
        assert!(stderr.contains("\nlooked at before, and cleared: excess: order 260000000002"), "{stderr}");
        assert!(!stdout.contains("event: "), "{stdout}");
        for verb in ["verify", "events", "unresolved"] {
            let (code, (stdout, stderr)) = run(&["orders", verb, "--journal", &journal]).await;
            assert_eq!((code, &*stdout), (Some(0), ""), "{verb}: {stderr}");
        }
    }
    assert_eq!(gateway.orders().len(), 2);
}
