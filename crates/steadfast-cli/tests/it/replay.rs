use std::{
    collections::{BTreeMap, BTreeSet},
    process::Output,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::Value;
use tokio::net::TcpListener;

use crate::{
    command::{RunningSandbox, output, steadfast},
    files::{HEADER, Orders, file, orders},
    own_gateway::{OwnGateway, documented, placed},
};

fn data(name: &str) -> String {
    format!("{}/../../examples/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Returns a file of orders with these rows.
fn rows(rows: &str) -> Orders {
    file(&format!("{HEADER}{rows}"))
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

/// Places the short file, or with `STEADFAST_DEEP=1` the one of 1,040 rows.
#[tokio::test]
async fn all_rows_are_in_the_ground_truth_exactly_once() {
    let deep = std::env::var_os("STEADFAST_DEEP").is_some();
    let (file, rows) = if deep { ("orders.csv", 1_040) } else { ("orders-40.csv", 40) };
    let output = output(&["replay", &data(file), "--json"]).await;
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let counts: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&counts["rows"], &counts["placed"]), (&rows.into(), &rows.into()), "{stdout}");
    let truth = &counts["ground_truth"];
    assert_eq!((&truth["exactly_once"], &truth["duplicated"]), (&rows.into(), &0.into()), "{stdout}");
    assert_eq!((&truth["absent"], &truth["http_429"]), (&0.into(), &0.into()), "{stdout}");
    let summary =
        format!("\nin the own sandbox: placed {rows} ({rows} now, 0 before) refused 0 unresolved 0\n");
    assert!(stderr.contains(&summary), "{stderr}");
}

#[tokio::test]
async fn a_bad_row_is_named_and_the_rest_goes_on() {
    let rows = "EQT_INFY_EQ_NSE,1,buy,market,intraday,day,,\n\
        EQT_INFY_EQ_NSE,1,BUY,limit,intraday,day,,\n\
        EQT_TCS_EQ_NSE,2,sell,limit,delivery,gtc,3400.05,\n";
    let orders = file(&format!("{HEADER}{rows}"));
    let output = output(&["replay", orders.path()]).await;
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("line 3, column 3: side is not one of buy, sell\n"), "{stderr}");
    assert!(stderr.contains("line 3, column 7: limitPrice is required when type is limit\n"), "{stderr}");
    assert!(stderr.contains("\nbad rows, which are no orders: 1\n"), "{stderr}");
    assert!(
        stderr.contains("\nin the own sandbox: placed 2 (2 now, 0 before) refused 0 unresolved 0 bad 1\n"),
        "{stderr}"
    );
    let mut lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines.remove(0), "line,status,orderId,resolution,msg");
    lines.sort_unstable();
    assert!(lines[0].starts_with("2,placed,26"), "{stdout}");
    assert!(lines[1].starts_with("3,bad,,,"), "{stdout}");
    assert!(lines[2].starts_with("4,placed,26"), "{stdout}");
}

#[tokio::test]
async fn results_go_to_a_file_and_nothing_secret_goes_to_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results.csv").to_str().unwrap().to_owned();
    let orders = data("orders-40.csv");
    let mut command = steadfast(&["replay", &orders, "--out", &results]);
    let output = command.env("STEADFAST_LOG", "trace").output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert_eq!(stdout, "");
    assert_eq!(std::fs::read_to_string(&results).unwrap().lines().count(), 41);
    assert!(stderr.contains("TRACE"), "there is no log to look at");
    // The embedded sandbox has seed 0.
    let sandbox = RunningSandbox::start(&[]).await;
    for name in ["api_key", "access_token", "password", "totp_secret", "client_secret"] {
        assert!(!stderr.contains(sandbox.fact(name)), "{name} is in the log");
    }
}

#[tokio::test]
async fn an_order_behind_a_504_is_found_and_its_row_says_so() {
    let orders = rows("EQT_INFY_EQ_NSE,1,buy,market,intraday,day,,\n");
    let script = orders.beside("504.toml");
    std::fs::write(&script, "[[fault]]\nname = 'placement.504-applied'\nnth = 1\n").unwrap();
    let sandbox = RunningSandbox::start(&["--script", &script]).await;
    let mut command = steadfast(&["replay", orders.path(), "--base-url", sandbox.fact("base_url")]);
    command.env("STEADFAST_API_KEY", sandbox.fact("api_key"));
    let output = command.env("STEADFAST_ACCESS_TOKEN", sandbox.fact("access_token")).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stdout.contains("\n2,placed,260000000001,recovered,"), "{stdout}");
}

#[tokio::test]
async fn any_base_url_takes_the_orders_with_credentials_from_the_environment() {
    let sandbox = RunningSandbox::start(&[]).await;
    let orders = rows("EQT_INFY_EQ_NSE,1,buy,market,intraday,day,,\n");
    let args = ["replay", orders.path(), "--base-url", sandbox.fact("base_url"), "--json"];
    let mut command = steadfast(&args);
    command.env("STEADFAST_API_KEY", sandbox.fact("api_key"));
    let output = command.env("STEADFAST_ACCESS_TOKEN", sandbox.fact("access_token")).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let counts: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&counts["placed"], &counts["ground_truth"]), (&1.into(), &Value::Null));
}

#[tokio::test]
async fn what_cannot_be_read_or_used_ends_with_the_code_for_usage() {
    let header = file("symId,quantity\n");
    let one = rows("EQT_INFY_EQ_NSE,1,buy,market,intraday,day,,\n");
    for (args, named) in [
        (&["replay", "no-such-file.csv"][..], "no-such-file.csv"),
        (&["replay", header.path()], "line 1, column 2: \"quantity\" is none of symId, qty"),
        (&["replay", one.path(), "--base-url", "https://api.example"], "base url does not end in /v2"),
        (&["replay", one.path(), "--base-url", "http://127.0.0.1:1/v2"], "STEADFAST_API_KEY is not set"),
        (&["demo", "--orders", "10"], "10 is not in 60..=3000"),
    ] {
        let mut command = steadfast(args);
        let output = command.env_remove("STEADFAST_API_KEY").output().await.unwrap();
        let (stdout, stderr) = said(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains(named), "{args:?}: {stderr}");
        assert_eq!(stdout, "", "{args:?}");
    }
}

#[tokio::test]
async fn a_refused_order_is_not_placed_and_the_rest_goes_on() {
    let refusal = r#"{"s":"error","msg":"Bad request"}"#;
    let gateway = OwnGateway::serve(move |number| match number {
        0 => (400, refusal.to_owned()),
        number => placed(&format!("26{number}"), "Order placed"),
    })
    .await;
    let orders = orders(2);
    let output = gateway.command(&["replay", orders.path(), "--yes"]).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stdout.contains(",refused,,,400 Bad request\n"), "{stdout}");
    let last = "placed 1 (1 now, 0 before) refused 1 unresolved 0";
    assert_eq!(stderr.lines().last(), Some(last), "{stderr}");

    // Each run sends it again, as the page says, until its line is empty.
    let text = std::fs::read_to_string(orders.path()).unwrap();
    let refused = stdout.lines().find(|row| row.contains(",refused,")).unwrap().split(',').next().unwrap();
    let refused: usize = refused.parse().unwrap();
    let emptied: Vec<&str> =
        text.lines().enumerate().map(|(at, row)| if at + 1 == refused { "" } else { row }).collect();
    std::fs::write(orders.path(), emptied.join("\n") + "\n").unwrap();
    let output = gateway.command(&["replay", orders.path(), "--yes"]).output().await.unwrap();
    let last = "placed 1 (0 now, 1 before) refused 0 unresolved 0";
    assert_eq!(said(&output).1.lines().last(), Some(last), "{:?}", said(&output));
    assert_eq!(gateway.orders().len(), 2);
}

/// Later rows were sent while the first was looked for; no option prevented it.
#[tokio::test]
async fn c03_in_order_a_row_waits_for_the_result_of_the_one_before() {
    for (more, sent) in [(&[][..], 3), (&["--in-order"], 1)] {
        let gateway = OwnGateway::serve(|number| match number {
            0 => (504, String::new()),
            number => placed(&format!("26{number}"), "Order placed"),
        })
        .await;
        let file = rows(
            "EQT_INFY_EQ_NSE,1,sell,market,intraday,day,,\nEQT_TCS_EQ_NSE,1,buy,market,intraday,day,,\n\
             EQT_ITC_EQ_NSE,1,buy,market,intraday,day,,\n",
        );
        let args = [&["replay", file.path(), "--yes"], more].concat();
        let mut child = gateway.command(&args).spawn().unwrap();
        let begun = tokio::time::Instant::now();
        while gateway.orders().len() < sent && begun.elapsed().as_secs() < 30 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert_eq!(gateway.orders().len(), sent, "{more:?}");
        child.kill().await.unwrap();
    }
}

#[tokio::test]
async fn c03_never_resend_sends_an_absent_order_once_and_says_that_it_is_not_there() {
    let gateway = OwnGateway::serve(|_| documented(504)).await;
    let file = orders(1);
    let output = gateway.command(&["replay", file.path(), "--yes", "--never-resend"]).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!((output.status.code(), with(&stdout, "not observed")), (Some(6), 1), "{stdout}{stderr}");
    assert_eq!(gateway.orders().len(), 1, "{stderr}");
    // Both would be a contradiction.
    let both = ["replay", file.path(), "--yes", "--never-resend", "--resend-absent"];
    assert_eq!(gateway.command(&both).output().await.unwrap().status.code(), Some(2));
}

/// Returns the number of rows with a status.
fn with(results: &str, status: &str) -> usize {
    results.lines().filter(|row| row.split(',').nth(1) == Some(status)).count()
}

/// A refused token was tried for each of the other rows as well, and all were reported as refused.
#[tokio::test]
async fn c03_a_dead_token_ends_the_run_and_the_next_one_places_the_rest() {
    let lives = Arc::new(AtomicBool::new(false));
    let alive = lives.clone();
    let gateway = OwnGateway::serve(move |number| match number {
        0 => placed("260000000000", "Order placed"),
        number if alive.load(Ordering::SeqCst) => placed(&format!("26{number:010}"), "Order placed"),
        _ => documented(401),
    })
    .await;
    let orders = orders(40);
    let output = gateway.command(&["replay", orders.path(), "--yes"]).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(gateway.orders().len() < 40, "the dead token was tried for all rows: {stderr}");
    let (not_executed, not_sent) = (with(&stdout, "not executed"), with(&stdout, "not sent"));
    assert_eq!((with(&stdout, "placed"), with(&stdout, "refused")), (1, 0), "{stdout}");
    assert!(not_executed > 0 && not_sent > 0 && not_executed + not_sent == 39, "{stdout}");
    assert!(stdout.contains(",not executed,,,"), "{stdout}");
    assert!(stdout.contains(",not sent,,,there is no token that the service accepts\n"), "{stdout}");
    assert!(stderr.contains(&format!("\nnot sent: {not_sent}\n")), "{stderr}");
    let rest = format!(" not executed {not_executed} not sent {not_sent}");
    let last = format!("placed 1 (1 now, 0 before) refused 0 unresolved 0{rest}");
    assert_eq!(stderr.lines().last(), Some(&*last), "{stderr}");

    lives.store(true, Ordering::SeqCst);
    let output = gateway.command(&["replay", orders.path(), "--yes", "--json"]).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert_eq!(
        stderr.lines().last(),
        Some("placed 40 (39 now, 1 before) refused 0 unresolved 0"),
        "{stderr}"
    );
    let counts: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&counts["placed"], &counts["placed_before"]), (&40.into(), &1.into()), "{stdout}");
}

/// Regression: each of the other rows was sent all the same, and needed a ruling although none was placed.
#[tokio::test]
async fn c03_a_token_that_dies_with_its_list_ends_the_run() {
    // The quota admits ten orders a second, and the list is asked a second after the first 401.
    tokio::join!(dies_after_five(12, &["--in-order"], 6), dies_after_five(40, &[], 25));
}

/// Places orders with a token that dies after the fifth, and checks that at most `most` are sent.
async fn dies_after_five(rows: usize, options: &[&str], most: usize) {
    let order = |number| match number {
        0..5 => placed(&format!("26{number:010}"), "Order placed"),
        _ => documented(401),
    };
    let (gateway, orders) = (OwnGateway::revoking(order, 5).await, orders(rows));
    let args = [&["replay", orders.path(), "--yes"], options].concat();
    let output = gateway.command(&args).output().await.unwrap();
    let ((stdout, stderr), sent) = (said(&output), gateway.orders().len());
    assert_eq!(output.status.code(), Some(6), "{stderr}");
    assert!((6..=most).contains(&sent), "{sent} {stdout}{stderr}");
    assert_eq!((with(&stdout, "placed"), with(&stdout, "unresolved")), (5, sent - 5), "{stdout}");
    assert_eq!(with(&stdout, "not sent"), rows - sent, "{stdout}");
    assert!(stdout.contains(",not sent,,,there is no token that the service accepts\n"), "{stdout}");
    assert!(stderr.contains("\nended early: there is no token that the service accepts; "), "{stderr}");
    assert!(stderr.contains(&format!("\nnot sent: {}\n", rows - sent)), "{stderr}");
}

#[tokio::test]
async fn c03_a_service_that_has_gone_is_no_refusal() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gateway = OwnGateway::serve(|_| placed("26", "Order placed")).await;
    let base = format!("http://{}/v2", gone.local_addr().unwrap());
    // The service exists when the run begins, and no longer when the order is sent. Before that one connection asks whether
    // it is a sidecar, and another one whether it is there.
    tokio::spawn(async move {
        for _ in 0..2 {
            drop(gone.accept().await);
        }
    });
    let orders = orders(1);
    let args = ["replay", orders.path(), "--yes", "--base-url", &base];
    let output = gateway.command(&args).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(7), "{stdout}{stderr}");
    assert!(stdout.contains("\n2,not sent,,,service cannot be reached"), "{stdout}");
    let last = "placed 0 (0 now, 0 before) refused 0 unresolved 0 not sent 1";
    assert_eq!(stderr.lines().last(), Some(last), "{stderr}");
}

/// Waits as a user would, until the backoff is over.
#[tokio::test]
async fn c03_a_used_up_quota_is_no_refusal() {
    let gateway = OwnGateway::serve(|_| (429, r#"{"s":"error","msg":"Too many requests"}"#.to_owned())).await;
    let orders = orders(1);
    let output = gateway.command(&["replay", orders.path(), "--yes"]).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(5), "{stdout}{stderr}");
    assert!(stdout.contains("\n2,not executed,,,429 Too many requests\n"), "{stdout}");
    assert!(stderr.contains("\nturned away by the service, not executed: 1\n"), "{stderr}");
}

/// Regression: all rows but the first ones were told as in doubt, and nothing of them had been sent.
#[tokio::test]
async fn c03_a_journal_moved_under_a_run_leaves_rows_unsent_whose_send_has_not_begun() {
    let orders = orders(60);
    let [journal, aside] = ["orders.csv.journal", "aside"].map(|name| orders.beside(name));
    let gateway = OwnGateway::serve(move |number| {
        drop(std::fs::rename(&journal, &aside));
        placed(&format!("2{number}"), "Order placed")
    })
    .await;
    let output = gateway.command(&["replay", orders.path(), "--yes"]).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    let last_told: BTreeMap<&str, &str> = stdout
        .lines()
        .skip(1)
        .map(|row| {
            let (line, rest) = row.split_once(',').unwrap();
            (line, rest.split(',').next().unwrap())
        })
        .collect();
    let told = |status: &str| last_told.values().filter(|told| **told == status).count();
    let sent = gateway.orders().len();
    assert_eq!((last_told.len(), told("placed")), (60, sent), "{stdout}{stderr}");
    // Those whose records were on their way when the journal was found to be gone.
    assert!((1..=30).contains(&told("unresolved")), "{stdout}{stderr}");
    assert_eq!(told("not sent"), 60 - sent - told("unresolved"), "{stdout}{stderr}");
    assert_eq!(output.status.code(), Some(6), "{stdout}{stderr}");
}

/// If the journal fails after a record was begun, its order stays open: the next run takes it for an order in doubt,
/// while this run reported a refusal.
#[tokio::test]
async fn c03_a_lock_removed_under_a_run_leaves_results_that_agree_with_the_journal() {
    let orders = orders(25);
    let lock = orders.beside("orders.csv.journal.lock");
    let gateway = OwnGateway::serve(move |_| {
        drop(std::fs::remove_file(&lock));
        (400, r#"{"s":"error","msg":"Bad request"}"#.to_owned())
    })
    .await;
    let output = gateway.command(&["replay", orders.path(), "--yes"]).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    let journal = orders.beside("orders.csv.journal");
    let args = ["orders", "unresolved", "--json", "--journal", &journal];
    let open = gateway.command(&args).output().await.unwrap();
    let open: Value = serde_json::from_slice(&open.stdout).unwrap();
    let open = open.as_array().unwrap().iter();
    let open: BTreeSet<&str> =
        open.map(|row| row["name"].as_str().unwrap().strip_prefix("line-").unwrap()).collect();
    let mut told = BTreeMap::new();
    for row in stdout.lines().skip(1) {
        let mut cells = row.split(',');
        told.insert(cells.next().unwrap(), cells.next().unwrap());
    }
    let unresolved: BTreeSet<&str> =
        told.iter().filter(|(_, told)| **told == "unresolved").map(|(line, _)| *line).collect();
    assert!(!open.is_empty(), "{stdout}{stderr}");
    assert_eq!((told.len(), unresolved), (25, open), "{stdout}{stderr}");
    assert_eq!(output.status.code(), Some(6), "{stdout}{stderr}");
}
