//! A person rules on an order that could not be resolved, and the next run respects the ruling.

use std::{path::Path, sync::Arc};

use serde_json::Value;
use steadfast::{
    OrderRequest, Outcome,
    dedup::{
        Answer, AttemptNo, IntentNo, Session, Settings, TradingDay,
        journal::{Entry, FileJournal, Journal, Record},
    },
    ext::{Account, IntentId},
};

use crate::{
    files::{Orders, orders, said},
    own_gateway::{OwnGateway, placed},
    proxy::{RunningProxy, get},
};

/// Writes the journal of a run over [`orders`] at `gateway`: each name with the order id of its answer. Without an id,
/// the service accepted the order without one, and no list has shown it.
pub(crate) async fn journal(gateway: &OwnGateway, file: &Orders, sent: &[(&str, Option<&str>)]) -> String {
    journal_of(Settings::default().today(), gateway, file, sent).await
}

/// As [`journal`], of a run on another day.
async fn journal_of(
    day: TradingDay,
    gateway: &OwnGateway,
    file: &Orders,
    sent: &[(&str, Option<&str>)],
) -> String {
    let path = file.beside("orders.csv.journal");
    let journal = FileJournal::open(&path).unwrap();
    let account = Account::new(gateway.base_url.clone());
    for (number, (name, order_id)) in (0..).zip(sent) {
        let line: usize = name.trim_start_matches("line-").trim_end_matches("-again").parse().unwrap();
        let qty = (line - 1).to_string();
        let order = OrderRequest::from_fields([
            ("symId", "EQT_INFY_EQ_NSE"),
            ("qty", &qty),
            ("side", "buy"),
            ("type", "market"),
            ("product", "intraday"),
            ("validity", "day"),
        ]);
        let (intent, order) = (IntentNo(number), Arc::new(order.unwrap()));
        let attempt = AttemptNo { intent, index: 0 };
        let session = Session::default();
        let outcome = Outcome::Accepted { order_id: order_id.map(Into::into) };
        let mut records = vec![
            Record::Begun { attempt, session, day, name: Some(IntentId::new(*name)), order, tag: None },
            Record::Closed { attempt, outcome, answer: Answer::Status(200) },
        ];
        if order_id.is_none() {
            let (reason, candidates) = ("accepted_unknown_id".to_owned(), Vec::new());
            records.push(Record::Unresolved { intent, reason, candidates });
        }
        for record in records {
            journal.append_durably(Entry { account: account.clone(), record }).await.unwrap();
        }
    }
    path
}

/// Returns the names that `orders unresolved` lists, and its exit code.
async fn unresolved(gateway: &OwnGateway, journal: &str) -> (Vec<String>, Option<i32>, String) {
    let output =
        gateway.command(&["orders", "unresolved", "--json", "--journal", journal]).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    let rows: Value = serde_json::from_str(&stdout).unwrap();
    let names = rows.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned());
    (names.collect(), output.status.code(), stderr)
}

#[tokio::test]
async fn orders_ruled_on_are_placed_or_sent_again_by_the_next_run() {
    let gateway = OwnGateway::serve(|_| placed("1003", "Order placed")).await;
    let file = orders(3);
    let sent = [("line-2", Some("1001")), ("line-3", None), ("line-4", None)];
    let journal = journal(&gateway, &file, &sent).await;
    let (names, code, stderr) = unresolved(&gateway, &journal).await;
    assert_eq!((names, code), (vec!["line-3".to_owned(), "line-4".to_owned()], Some(6)));
    assert!(stderr.contains(&format!("`steadfast orders rule --journal {journal} NAME`")), "{stderr}");

    let rule = async |more: &[&str]| {
        let args = [&["orders", "rule", "--journal", &journal], more].concat();
        let output = gateway.command(&args).output().await.unwrap();
        (output.status.code(), said(&output))
    };
    let (code, (stdout, stderr)) = rule(&["line-3", "--placed", "1002", "--yes", "--json"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    let rows: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&rows[0]["name"], &rows[0]["status"]), (&"line-3".into(), &"placed".into()), "{stdout}");
    assert_eq!(rows[0]["orderId"], "1002");
    let (code, (stdout, stderr)) = rule(&["line-4", "--not-placed", "--yes"]).await;
    assert_eq!((code, &*stdout), (Some(0), "line-4 buy 3 EQT_INFY_EQ_NSE - not placed\n"), "{stderr}");
    assert!(stderr.contains("SENDS IT AGAIN") && stderr.contains("still in doubt: 0"), "{stderr}");
    assert_eq!(unresolved(&gateway, &journal).await.1, Some(0));
    assert_eq!(gateway.all().len(), 0, "something was asked of the service");

    let output = gateway.command(&["replay", file.path(), "--yes"]).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("3,placed,1002,attached,") && stdout.contains("4,placed,1003,,"), "{stdout}");
    assert!(stdout.contains("2,placed,1001,attached,"), "{stdout}");
    assert_eq!(gateway.orders().len(), 1, "line 4 alone is sent");
    assert_eq!(unresolved(&gateway, &journal).await.1, Some(0));
}

/// Regression: an order id that a wrong answer had given to one row could not be ruled to be another's.
#[tokio::test]
async fn a_ruling_takes_a_candidate_from_the_row_whose_answer_named_it() {
    let gateway = OwnGateway::serve(|_| placed("1003", "Order placed")).await;
    let file = orders(3);
    let path = journal(&gateway, &file, &[("line-2", Some("1001")), ("line-3", None)]).await;
    let (reason, candidates) = ("near_match".to_owned(), vec!["1001".to_owned()]);
    let record = Record::Unresolved { intent: IntentNo(1), reason, candidates };
    let account = Account::new(gateway.base_url.clone());
    FileJournal::open(&path).unwrap().append_durably(Entry { account, record }).await.unwrap();

    let rule = async |name: &str, id: &str| {
        let args = ["orders", "rule", "--journal", &path, name, "--placed", id, "--yes"];
        let output = gateway.command(&args).output().await.unwrap();
        (output.status.code(), said(&output).1)
    };
    let (code, stderr) = rule("line-3", "1001").await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("line-2, which is in doubt from now on"), "{stderr}");
    assert!(stderr.contains("still in doubt: 1"), "{stderr}");
    assert_eq!(unresolved(&gateway, &path).await.0, ["line-2"]);
    let (code, stderr) = rule("line-2", "1001").await;
    assert!(code == Some(2) && stderr.contains("the journal gives 1001 to line-3"), "{stderr}");
    assert_eq!(rule("line-2", "1002").await.0, Some(0));
    assert_eq!(unresolved(&gateway, &path).await.1, Some(0));
}

#[tokio::test]
async fn a_ruling_that_cannot_be_taken_writes_nothing() {
    let gateway = OwnGateway::serve(|_| placed("1003", "Order placed")).await;
    let file = orders(3);
    let sent = [("line-2", Some("1001")), ("line-3", None)];
    let journal = journal(&gateway, &file, &sent).await;
    let missing = file.beside("no.journal");
    for (path, more, told) in [
        (&journal, &["line-2", "--not-placed", "--yes"][..], "line-2 is not in doubt"),
        (&journal, &["line-9", "--placed", "7", "--yes"], "line-9 is not in doubt"),
        (&journal, &["#0", "--not-placed", "--yes"], "#0 is not in doubt"),
        (
            &journal,
            &["line-3", "--placed", "01001", "--yes"],
            "the service has shown no order 01001, but 1001; give",
        ),
        (&journal, &["line-3", "--placed", " ", "--yes"], "--placed wants the order's identifier"),
        (&journal, &["line-3", "--yes"], "--placed"),
        (&journal, &["line-3", "--placed", "7", "--not-placed", "--yes"], "cannot be used with"),
        (&journal, &["line-3", "--not-placed"], "no question can be asked here; give --yes"),
        (&missing, &["line-3", "--not-placed", "--yes"], "no such file"),
    ] {
        let args = [&["orders", "rule", "--journal", path], more].concat();
        let output = gateway.command(&args).output().await.unwrap();
        let (stdout, stderr) = said(&output);
        assert_eq!((output.status.code(), &*stdout), (Some(2), ""), "{more:?}: {stderr}");
        assert!(stderr.contains(told), "{more:?}: {stderr}");
    }
    assert!(!Path::new(&missing).exists(), "a journal was begun");
    // While a run holds the journal, only that run knows what is in doubt.
    let held = FileJournal::open(&journal).unwrap();
    let args = ["orders", "rule", "--journal", &journal, "line-3", "--not-placed", "--yes"];
    let output = gateway.command(&args).output().await.unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).1.contains("is in use: wait until the run"), "{}", said(&output).1);
    drop(held);
    assert_eq!(unresolved(&gateway, &journal).await.0, ["line-3"]);
    assert_eq!(gateway.all().len(), 0);
}

#[tokio::test]
async fn a_row_whose_first_order_is_settled_follows_its_second() {
    let gateway = OwnGateway::serve(|_| placed("1003", "Order placed")).await;
    let file = orders(2);
    let sent = [("line-2", Some("1001")), ("line-3-again", Some("1002"))];
    let journal = journal(&gateway, &file, &sent).await;
    for more in [&["--resend-absent"][..], &[]] {
        let args = [&["replay", file.path(), "--yes"], more].concat();
        let output = gateway.command(&args).output().await.unwrap();
        let (stdout, stderr) = said(&output);
        assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
        assert!(stdout.contains("3,placed,1002,attached,"), "{stdout}");
    }
    assert_eq!(gateway.orders().len(), 0, "it was placed a second time");
    assert_eq!(unresolved(&gateway, &journal).await.1, Some(0));
}

/// Regression: an identifier without the zeros that it is listed with was written down as it was typed. With them it was
/// refused as another row's, although the list showed both.
#[tokio::test]
async fn c03_a_ruling_by_another_spelling_of_a_listed_identifier_is_refused() {
    let gateway = OwnGateway::serve(|_| placed("1003", "Order placed")).await;
    let file = orders(3);
    let journal = journal(&gateway, &file, &[("line-2", Some("1001")), ("line-3", None)]).await;
    let rule = async |id: &str| {
        let args = ["orders", "rule", "--journal", &journal, "line-3", "--placed", id, "--yes"];
        let output = gateway.command(&args).output().await.unwrap();
        (output.status.code(), said(&output).1)
    };
    let show = async |order_ids: &[&str]| {
        let (session, day) = (Session::default(), Settings::default().today());
        let order_ids = order_ids.iter().map(|id| (*id).to_owned()).collect();
        let record = Record::Seen { session, day, order_ids, complete: true };
        let account = Account::new(gateway.base_url.clone());
        FileJournal::open(&journal).unwrap().append_durably(Entry { account, record }).await.unwrap();
    };
    show(&["001001", "00ab"]).await;
    for (id, told) in [
        ("01001", "has shown no order 01001, but 1001; give"),
        (
            "001001",
            "the journal gives 1001 to line-2, and no two orders have one identifier, in whatever spelling",
        ),
        ("00AB", "has shown no order 00AB, but 00ab; give"),
    ] {
        let (code, stderr) = rule(id).await;
        assert!(code == Some(2) && stderr.contains(told), "{id}: {stderr}");
    }
    assert_eq!(unresolved(&gateway, &journal).await.0, ["line-3"], "nothing was written");
    // The list shows both, so they are two orders.
    show(&["1001"]).await;
    let (code, stderr) = rule("001001").await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(!stderr.contains("make sure that it is"), "{stderr}");
    let output = gateway.command(&["replay", file.path(), "--yes"]).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert!(stdout.contains("3,placed,001001,attached,"), "{stdout}{stderr}");
}

/// Regression: an identifier that no list has was taken without a word, and for good.
#[tokio::test]
async fn c03_a_ruling_by_an_unlisted_identifier_is_warned_of_and_can_be_corrected() {
    let gateway = OwnGateway::serve(|_| placed("1003", "Order placed")).await;
    let file = orders(1);
    let journal = journal(&gateway, &file, &[("line-2", None)]).await;
    for id in ["nonexisting", "1002"] {
        let args = ["orders", "rule", "--journal", &journal, "line-2", "--placed", id, "--yes"];
        let output = gateway.command(&args).output().await.unwrap();
        let (stdout, stderr) = said(&output);
        assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
        assert!(stderr.contains(&format!("has shown {id}: make sure")), "{stderr}");
        assert!(stderr.contains("still in doubt: 0"), "{stderr}");
    }
    let output = gateway.command(&["replay", file.path(), "--yes"]).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert!(stdout.contains("2,placed,1002,attached,"), "{stdout}{stderr}");
    assert_eq!(gateway.orders().len(), 0);
}

/// Regression: `proxy` and `exec` ended with 0, and did not name the order, because it was not looked for any more.
#[cfg(unix)]
#[tokio::test]
async fn a_sidecar_that_ends_names_unresolved_orders_and_says_so_by_its_code() {
    let gateway = OwnGateway::serve(|_| placed("1003", "Order placed")).await;
    let file = orders(3);
    let journal = journal(&gateway, &file, &[("line-2", Some("1001")), ("line-3", None)]).await;
    for (own, code) in [("exit 0", 6), ("exit 3", 6)] {
        let args = ["exec", "--journal", &journal, "--", "sh", "-c", own];
        let mut command = gateway.command(&args);
        command.env("XDG_STATE_HOME", file.beside("state")).env_remove("XDG_RUNTIME_DIR");
        let output = command.output().await.unwrap();
        let (_, stderr) = said(&output);
        assert_eq!(output.status.code(), Some(code), "{own}: {stderr}");
        assert!(stderr.contains("steadfast: line-3 buy 2 EQT_INFY_EQ_NSE"), "{stderr}");
        assert!(
            stderr.contains(&format!("`steadfast orders verify --journal {journal}` looks for them")),
            "{stderr}"
        );
        assert!(!stderr.contains("line-2"), "it is placed: {stderr}");
    }
    let args = ["orders", "rule", "--journal", &journal, "line-3", "--not-placed", "--yes"];
    assert_eq!(gateway.command(&args).output().await.unwrap().status.code(), Some(0));
    let args = ["exec", "--journal", &journal, "--", "sh", "-c", "exit 3"];
    let mut command = gateway.command(&args);
    command.env("XDG_STATE_HOME", file.beside("state")).env_remove("XDG_RUNTIME_DIR");
    let output = command.output().await.unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output).1);
}

/// Regression: the journal is locked by the sidecar, so no order could be ruled on beside it.
#[cfg(unix)]
#[tokio::test]
async fn orders_are_ruled_on_beside_the_sidecar_that_holds_the_journal() {
    let gateway = OwnGateway::serve(|_| placed("1003", "Order placed")).await;
    let file = orders(4);
    // Lists no longer show orders of that day, so nothing is looked for.
    let day = TradingDay(Settings::default().today().0 - 2);
    let sent = [("line-2", None), ("line-3", None), ("line-4", None)];
    let journal = journal_of(day, &gateway, &file, &sent).await;
    let mut command = gateway.command(&["proxy", "--port", "0", "--json", "--journal", &journal]);
    command.env("XDG_STATE_HOME", file.beside("state")).env_remove("XDG_RUNTIME_DIR");
    let mut proxy = RunningProxy::start(command).await;
    assert_eq!(unresolved(&gateway, &journal).await.0, ["line-2", "line-3", "line-4"]);
    let rule = async |more: &[&str]| {
        let args = [&["orders", "rule", "--journal", &journal, "--yes"], more].concat();
        let output = gateway.command(&args).output().await.unwrap();
        (output.status.code(), said(&output))
    };
    let (code, (stdout, stderr)) = rule(&["line-3", "line-4", "--not-placed"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    let rows = "line-3 buy 2 EQT_INFY_EQ_NSE - not placed\nline-4 buy 3 EQT_INFY_EQ_NSE - not placed\n";
    assert_eq!(stdout, rows);
    assert!(stderr.contains("SENDS IT AGAIN") && stderr.contains("still in doubt: 1"), "{stderr}");
    assert_eq!(unresolved(&gateway, &journal).await.0, ["line-2"]);

    let admin = proxy.facts["admin_url"].as_str().unwrap().to_owned();
    let figures = async || get(admin.strip_prefix("http://").unwrap(), "/metrics", proxy.token()).await;
    assert!(figures().await.contains("\nsteadfast_orders_in_doubt 1\n"));
    let (code, (_, stderr)) = rule(&["line-2", "line-3", "--placed", "1001"]).await;
    assert_eq!((code, stderr.contains("name one order")), (Some(2), true), "{stderr}");
    let (code, (_, stderr)) = rule(&["line-2", "--placed", "1001", "--admin", &admin]).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(unresolved(&gateway, &journal).await.1, Some(0));
    assert!(figures().await.contains("\nsteadfast_orders_in_doubt 0\n"));
    let (code, (_, stderr)) = rule(&["line-2", "--placed", "1001", "--admin", "http://192.0.2.1:1"]).await;
    assert_eq!((code, stderr.contains("one of this machine")), (Some(2), true), "{stderr}");

    crate::command::signal(&proxy.child, "-TERM").await;
    assert_eq!(proxy.child.wait().await.unwrap().code(), Some(0), "nothing is unresolved");
    assert!(!std::path::Path::new(&format!("{journal}.sidecar")).exists());
}

/// Regression: the advice was a look by `orders verify`, which the sidecar that holds the journal makes impossible, and that one
/// said only that the journal is in use.
#[cfg(unix)]
#[tokio::test]
async fn beside_a_sidecar_the_advice_is_to_ask_it() {
    let gateway = OwnGateway::serve(|_| placed("1003", "Order placed")).await;
    let file = orders(1);
    let journal = file.beside("orders.csv.journal");
    let verify = format!("`steadfast orders verify --journal {journal}` looks for it in the order list");
    crate::journals::left_in_doubt(&gateway, &journal, &[(Some("line-2"), Settings::default().today())])
        .await;
    let next = async || {
        let args = ["orders", "unresolved", "--json", "--journal", &journal];
        let output = gateway.command(&args).output().await.unwrap();
        let rows: Value = serde_json::from_str(&said(&output).0).unwrap();
        rows[0]["next"].as_str().unwrap().to_owned()
    };
    assert_eq!(next().await, verify);
    let mut command = gateway.command(&["proxy", "--port", "0", "--json", "--journal", &journal]);
    command.env("XDG_STATE_HOME", file.beside("state")).env_remove("XDG_RUNTIME_DIR");
    let proxy = RunningProxy::start(command).await;
    let admin = proxy.facts["admin_url"].as_str().unwrap();
    let told = next().await;
    assert!(told.starts_with(&format!("the sidecar at {admin} looks for it while it runs")), "{told}");
    assert!(told.ends_with(&format!("once it has ended, {verify}")), "{told}");
    for args in [&["orders", "verify"][..], &["orders", "events", "--clear"]] {
        let output = gateway.command(&[args, &["--journal", &journal]].concat()).output().await.unwrap();
        let told = said(&output).1;
        assert_eq!(output.status.code(), Some(2), "{args:?}: {told}");
        let who = format!("journal {journal} is in use: the sidecar at {admin} has it");
        assert!(told.contains(&who) && told.contains(&format!("{admin}/-/state")), "{args:?}: {told}");
    }
    let state = get(admin.strip_prefix("http://").unwrap(), "/-/state", proxy.token()).await;
    assert!(state.contains("line-2"), "{state}");
}
