//! A killed replay is run again: placed orders are not placed again, and those in doubt are looked for.

use std::process::{Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::{
    command::{RunningSandbox, steadfast},
    readme::exchange,
};

const HEADER: &str = "symId,qty,side,type,product,validity,limitPrice,trigPrice";

/// A file of orders and the journal of its runs.
struct Run {
    sandbox: RunningSandbox,
    orders: String,
    journal: String,
    _folder: TempDir,
}

impl Run {
    /// Creates orders that differ in their quantity, at a sandbox with this script.
    async fn new(rows: usize, script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (orders, journal) = (path("orders.csv"), path("journal"));
        let mut text = format!("{HEADER}\n");
        for row in 1..=rows {
            text.push_str(&format!("EQT_INFY_EQ_NSE,{row},buy,market,intraday,day,,\n"));
        }
        std::fs::write(&orders, text).unwrap();
        let faults = path("faults.toml");
        std::fs::write(&faults, script).unwrap();
        // An empty script is refused.
        let args = if script.is_empty() { &[][..] } else { &["--script", &faults] };
        let sandbox = RunningSandbox::start(args).await;
        Self { sandbox, orders, journal, _folder: folder }
    }

    fn command(&self, words: &[&str]) -> tokio::process::Command {
        let mut command = steadfast(words);
        command.args(["--base-url", self.sandbox.fact("base_url"), "--journal", &self.journal]);
        command.env("STEADFAST_API_KEY", self.sandbox.fact("api_key"));
        command.env("STEADFAST_ACCESS_TOKEN", self.sandbox.fact("access_token"));
        command
    }

    /// Starts a replay and kills it once `rows` results are printed.
    async fn killed_after(&self, rows: usize) {
        let mut command = self.command(&["replay", &self.orders]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for _ in 0..=rows {
            assert!(lines.next_line().await.unwrap().is_some(), "it ended before it was killed");
        }
        child.kill().await.unwrap();
    }

    async fn replay(&self, more: &[&str]) -> (Output, Value) {
        let output =
            self.command(&[&["replay", &self.orders, "--json"], more].concat()).output().await.unwrap();
        let counts = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (output, counts)
    }

    async fn state(&self) -> Value {
        let admin = self.sandbox.fact("admin_url").strip_prefix("http://").unwrap();
        serde_json::from_str(&exchange(admin, "/state", "", None).await.1).unwrap()
    }

    /// Returns the number of orders at the sandbox, and the number of place-order requests.
    async fn truth(&self) -> (usize, usize) {
        let state = self.state().await;
        let arrivals = state["arrivals"].as_array().unwrap();
        let is_order = |arrival: &&Value| arrival["path"].as_str().unwrap().ends_with("/place-order");
        (state["orders"].as_array().unwrap().len(), arrivals.iter().filter(is_order).count())
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test]
async fn a_killed_replay_goes_on_and_places_nothing_twice() {
    // The first answer is delayed until after the process is dead.
    let script = "[[fault]]\nname = 'placement.504-applied'\nnth = 1\nanswer_after_ms = 20000\n";
    let run = Run::new(25, script).await;
    // Nine of the first second's ten orders are answered, and the next second has not begun.
    run.killed_after(9).await;
    assert_eq!(run.truth().await, (10, 10));

    // Lists what is in doubt without asking the service.
    let mut command = steadfast(&["orders", "unresolved", "--json", "--journal", &run.journal]);
    let output = command.output().await.unwrap();
    assert_eq!(output.status.code(), Some(6), "{}", said(&output));
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
    // The list of events contains no orders, but counts those in doubt.
    let mut command = steadfast(&["orders", "events", "--journal", &run.journal]);
    let counted = command.output().await.unwrap();
    let last = format!("events 0 unresolved {}", rows.as_array().unwrap().len());
    assert_eq!((counted.status.code(), said(&counted).lines().last()), (Some(6), Some(&*last)));
    // An answer that was not recorded in time is a doubt as well.
    let lost = rows.as_array().unwrap();
    let is_row =
        |row: &Value| row["name"].as_str().unwrap().starts_with("line-") && row["status"] == "in doubt";
    assert!((1..=10).contains(&lost.len()) && lost.iter().all(is_row), "{rows}");

    let (output, counts) = run.replay(&[]).await;
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!((&counts["rows"], &counts["placed"]), (&25.into(), &25.into()), "{}", said(&output));
    // The dead process's sends still count at the gateway, and the new process respects them. It used to begin with a
    // burst and met up to ten refusals.
    assert_eq!(run.state().await["refusals"], serde_json::json!({}));
    let after = run.truth().await;
    assert_eq!(after.0, 25, "each row is one order");

    // Another run sends nothing at all.
    let (output, counts) = run.replay(&[]).await;
    assert_eq!((output.status.code(), &counts["placed"]), (Some(0), &25.into()), "{}", said(&output));
    assert_eq!(run.truth().await, after);
    let mut command = steadfast(&["orders", "unresolved", "--journal", &run.journal]);
    let output = command.output().await.unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0), "{}", said(&output));
}

#[tokio::test]
async fn what_is_in_doubt_is_looked_for_and_never_sent() {
    let script = "[[fault]]\nname = 'placement.504-applied'\nnth = 1\nanswer_after_ms = 20000\n";
    let run = Run::new(3, script).await;
    run.killed_after(2).await;
    let before = run.truth().await;
    let output = run.command(&["orders", "verify", "--json"]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
    let (rows, orders) = (rows.as_array().unwrap(), run.state().await["orders"].to_string());
    assert!(!rows.is_empty());
    for row in rows {
        assert_eq!(row["status"], "recovered", "{row}");
        assert!(orders.contains(row["orderId"].as_str().unwrap()), "{row}: {orders}");
    }
    assert_eq!(run.truth().await, before, "nothing was sent");
}

#[tokio::test]
async fn an_order_that_never_arrived_is_placed_again_only_if_asked_for() {
    // Deep only: the whole time to settle passes.
    if std::env::var_os("STEADFAST_DEEP").is_none() {
        return;
    }
    let script = "[[fault]]\nname = 'placement.504-not-applied'\nnth = 1\nanswer_after_ms = 20000\n";
    let run = Run::new(3, script).await;
    run.killed_after(2).await;
    let (output, counts) = run.replay(&[]).await;
    assert_eq!(output.status.code(), Some(6), "{}", said(&output));
    assert_eq!((&counts["placed"], &counts["not_observed"]), (&2.into(), &1.into()));
    assert!(said(&output).contains(" unresolved 0 not observed 1\n"), "{}", said(&output));
    assert_eq!(run.truth().await, (2, 3));
    let (output, counts) = run.replay(&["--resend-absent"]).await;
    assert_eq!((output.status.code(), &counts["placed"]), (Some(0), &3.into()), "{}", said(&output));
    assert_eq!(run.truth().await, (3, 4));
    // The order that it replaced stayed in doubt for ever.
    let output = steadfast(&["orders", "unresolved", "--journal", &run.journal]).output().await.unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0), "{}", said(&output));
    let output = run.command(&["orders", "verify"]).output().await.unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0), "{}", said(&output));
    // A later run reported that row's order as not there, so the user would have placed a third.
    let (output, counts) = run.replay(&[]).await;
    assert_eq!((output.status.code(), &counts["placed"]), (Some(0), &3.into()), "{}", said(&output));
    assert_eq!(run.truth().await, (3, 4));
}

#[tokio::test]
async fn a_journal_that_cannot_be_used_places_nothing() {
    let run = Run::new(2, "").await;
    std::fs::write(&run.journal, "no journal").unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&run.journal, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let (output, _) = run.replay(&[]).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("is not a journal, or its head is damaged"), "{}", said(&output));
    assert_eq!(run.truth().await, (0, 0));
    assert_eq!(std::fs::read(&run.journal).unwrap(), b"no journal", "it is left as it is");
}

#[tokio::test]
async fn a_file_whose_rows_have_moved_places_nothing() {
    let run = Run::new(3, "").await;
    let (output, counts) = run.replay(&[]).await;
    assert_eq!((output.status.code(), &counts["placed"]), (Some(0), &3.into()), "{}", said(&output));
    let before = run.truth().await;
    let text = std::fs::read_to_string(&run.orders).unwrap();

    // A row inserted at the top used to send the last one a second time, from a new line.
    let moved = text.replacen('\n', "\nEQT_TCS_EQ_NSE,9,sell,market,intraday,day,,\n", 1);
    let shorter = text.replacen("EQT_INFY_EQ_NSE,1,buy,market,intraday,day,,\n", "", 1);
    for (changed, line) in [(moved, 2), (shorter, 2)] {
        std::fs::write(&run.orders, changed).unwrap();
        let (output, _) = run.replay(&[]).await;
        assert_eq!(output.status.code(), Some(2));
        let named =
            format!("line {line} of {} is not the order that was sent for it, buy 1 EQT_INFY", run.orders);
        assert!(said(&output).contains(&named), "{}", said(&output));
    }
    assert_eq!(run.truth().await, before);

    // Rows appended at the end are new.
    std::fs::write(&run.orders, text + "EQT_TCS_EQ_NSE,9,sell,market,intraday,day,,\n").unwrap();
    let (output, counts) = run.replay(&[]).await;
    assert_eq!((output.status.code(), &counts["placed"]), (Some(0), &4.into()), "{}", said(&output));
    assert_eq!(run.truth().await, (before.0 + 1, before.1 + 1));
}

#[tokio::test]
async fn a_journal_of_another_service_is_refused() {
    let run = Run::new(2, "").await;
    let (output, _) = run.replay(&[]).await;
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    // The rows used to count as placed at a service that had never received them.
    let other = Run { sandbox: RunningSandbox::start(&["--seed", "1"]).await, ..run };
    for words in [&["replay", other.orders.as_str()][..], &["orders", "verify"]] {
        let output = other.command(words).output().await.unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", said(&output));
        assert!(said(&output).contains("is of orders at http://127.0.0.1:"), "{}", said(&output));
    }
    assert_eq!(other.truth().await, (0, 0));
}
