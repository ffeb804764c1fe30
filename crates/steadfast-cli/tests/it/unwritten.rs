//! C9: exit code 0 means that the result has arrived as well. C4: if it has not, the command says what was
//! sent.
#![cfg(target_os = "linux")]

use std::{
    fs::File,
    process::{Output, Stdio},
};

use tokio::io::AsyncReadExt;

use crate::{
    files::{orders, said},
    own_gateway::{OwnGateway, placed},
};

async fn gateway() -> OwnGateway {
    OwnGateway::serve(|number| placed(&format!("26{number}"), "Order placed")).await
}

/// Returns a device without free space.
fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

/// Returns a pipe without a reader.
fn gone() -> Stdio {
    std::io::pipe().unwrap().1.into()
}

async fn ended(gateway: &OwnGateway, args: &[&str], into: Stdio) -> Output {
    gateway
        .command(args)
        .stdout(into)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .await
        .unwrap()
}

/// The run ended with 0, after orders whose results were lost.
#[tokio::test]
async fn c09_a_replay_whose_result_is_lost_does_not_end_well_and_says_what_was_sent() {
    for (into, name) in [(full(), "full"), (gone(), "gone")] {
        let (gateway, orders) = (gateway().await, orders(2));
        let output = ended(&gateway, &["replay", orders.path(), "--yes", "--json"], into).await;
        let (_, stderr) = said(&output);
        assert_eq!(output.status.code(), Some(1), "{name}: {stderr}");
        let told = format!("orders were sent; what was sent stands in the journal {}.journal", orders.path());
        assert!(stderr.contains("results cannot be written: standard output: "), "{name}: {stderr}");
        assert!(stderr.contains(&told), "{name}: {stderr}");
        assert!(stderr.ends_with("placed 2 (2 now, 0 before) refused 0 unresolved 0\n"), "{stderr}");
        assert_eq!(gateway.orders().len(), 2);
        // The next run has nothing left to send.
        let output = ended(&gateway, &["replay", orders.path(), "--yes", "--json"], Stdio::null()).await;
        assert_eq!((output.status.code(), gateway.orders().len()), (Some(0), 2));
    }
}

/// The last line was "nothing was sent" although orders were placed.
#[tokio::test]
async fn c09_a_reader_that_leaves_in_the_middle_is_told_what_was_sent() {
    let (gateway, orders) = (gateway().await, orders(40));
    let mut child = gateway
        .command(&["replay", orders.path(), "--yes", "--in-order"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0];
    child.stdout.take().unwrap().read_exact(&mut first).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    let (_, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(!gateway.orders().is_empty() && !stderr.contains("nothing was sent"), "{stderr}");
    assert!(stderr.contains("what was sent stands in the journal"), "{stderr}");
    assert_eq!(stderr.matches("cannot be written").count(), 1, "{stderr}");
}

/// Regression: a task that logged panicked, so that answers and events were lost and the exit code was 101.
#[tokio::test]
async fn c09_a_log_that_cannot_be_written_stops_nothing() {
    for (into, name) in [(full as fn() -> Stdio, "full"), (gone, "gone")] {
        let (gateway, orders) = (gateway().await, orders(2));
        let mut command = gateway.command(&["replay", orders.path(), "--yes", "--json"]);
        command.env("STEADFAST_LOG", "trace").stdout(Stdio::piped()).stderr(into());
        let output = command.spawn().unwrap().wait_with_output().await.unwrap();
        assert_eq!((output.status.code(), gateway.orders().len()), (Some(0), 2), "{name}");
    }
}

/// Regression: it ended with 1, and with two messages about a result that was wanted no longer.
#[tokio::test]
async fn c09_a_reader_that_leaves_a_rehearsal_ends_it_without_a_word() {
    let (gateway, orders) = (gateway().await, orders(40));
    let mut command = gateway.command(&["replay", orders.path(), "--sandbox", "--in-order"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdout.take().unwrap().read_exact(&mut [0]).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    let (_, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(141), "{stderr}");
    assert!(!stderr.contains("cannot be written"), "{stderr}");
}

/// The rows went to a file, and only the counts were lost.
#[tokio::test]
async fn c09_a_replay_says_where_the_results_are_that_did_arrive() {
    let (gateway, orders) = (gateway().await, orders(1));
    let results = orders.beside("results.csv");
    let args = ["replay", orders.path(), "--yes", "--json", "--out", &results];
    let output = ended(&gateway, &args, full()).await;
    let (_, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains(&format!("; each row's result stands in {results}\n")), "{stderr}");
    assert!(std::fs::read_to_string(&results).unwrap().contains("\n2,placed,260,,"));
}

/// One run did not say whether orders had been sent; one sent them all and ended with 0.
#[tokio::test]
async fn c09_a_replay_sends_nothing_where_no_result_can_be_written() {
    let (gateway, orders) = (gateway().await, orders(2));
    let args = ["replay", orders.path(), "--yes", "--out", "/dev/full"];
    let bare = &args[..3];
    let for_reading = File::open("/dev/null").unwrap().into();
    for (args, into) in [(bare, full()), (bare, gone()), (bare, for_reading), (&args, Stdio::null())] {
        let output = ended(&gateway, args, into).await;
        let (_, stderr) = said(&output);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.trim_end().ends_with("; nothing was sent"), "{stderr}");
    }
    let mut closed = gateway.shell("sh");
    closed.args(["-c", "\"$0\" \"$@\" >&-", env!("CARGO_BIN_EXE_steadfast")]).args(bare);
    let output = closed.output().await.unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output).1);
    assert!(said(&output).1.contains("standard output is closed"), "{}", said(&output).1);
    assert_eq!(gateway.orders().len(), 0);
    // Null output means that the user wants none.
    let output = ended(&gateway, bare, Stdio::null()).await;
    assert_eq!((output.status.code(), gateway.orders().len()), (Some(0), 2), "{}", said(&output).1);
}

#[tokio::test]
async fn c09_no_verb_ends_well_whose_result_is_lost() {
    let (gateway, orders) = (gateway().await, orders(1));
    let (store, journal) = (orders.beside("auth.json"), format!("{}.journal", orders.path()));
    assert_eq!(
        ended(&gateway, &["replay", orders.path(), "--yes"], Stdio::null()).await.status.code(),
        Some(0)
    );
    for args in [
        &["doctor", "--store", &store][..],
        &["doctor", "--store", &store, "--json"],
        &["auth", "status", "--store", &store],
        &["auth", "token", "--store", &store],
        &["auth", "token", "--store", &store, "--json"],
        &["orders", "unresolved", "--json", "--journal", &journal],
        &["sandbox", "--list-faults"],
        &["replay", "--check", "--json", orders.path()],
        &["--help"],
        &["--version"],
    ] {
        assert_eq!(ended(&gateway, args, Stdio::null()).await.status.code(), Some(0), "{args:?}");
        let output = ended(&gateway, args, full()).await;
        let (_, stderr) = said(&output);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {stderr}");
        assert!(stderr.contains("the result cannot be written: "), "{args:?}: {stderr}");
        assert!(stderr.contains("No space left on device"), "{args:?}: {stderr}");
    }
    // An earlier failure keeps its code.
    let args = ["auth", "status", "--store", &store];
    let mut command = gateway.command(&args);
    command.env_remove("STEADFAST_ACCESS_TOKEN").stdout(full()).stderr(Stdio::piped());
    let output = command.spawn().unwrap().wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output).1);
}

/// As in other programs, a reader that has gone gets no message. A command that has changed something
/// reports it.
#[tokio::test]
async fn c09_a_reader_that_has_gone_ends_a_report_and_hides_no_deed() {
    let (gateway, orders) = (gateway().await, orders(1));
    let store = orders.beside("auth.json");
    let status = ["auth", "status", "--store", &store];
    let reset = ["auth", "reset", "--store", &store];
    for (args, code, told) in [
        (&status[..], 141, ""),
        (
            &reset,
            1,
            "cannot be written: standard output: Broken pipe (os error 32); it is done: logins are allowed again",
        ),
    ] {
        let output = ended(&gateway, args, gone()).await;
        let (_, stderr) = said(&output);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
        let has_said = stderr.lines().any(|line| line.contains("cannot be written"));
        assert_eq!((has_said, stderr.contains(told)), (!told.is_empty(), true), "{args:?}: {stderr}");
    }
}

/// Regression: a row whose record filled the disk was told as refused by the service, which had never seen it.
#[tokio::test]
async fn a_disk_that_fills_under_the_journal_is_told_as_such() {
    for blocks in ["2", "3"] {
        let (gateway, orders) = (gateway().await, orders(20));
        let command = gateway.command(&["replay", orders.path(), "--yes"]);
        let mut limited = tokio::process::Command::new("bash");
        limited.args(["-c", r#"ulimit -f "$0"; exec "$@""#, blocks]);
        limited.arg(command.as_std().get_program()).args(command.as_std().get_args());
        for (name, value) in command.as_std().get_envs() {
            limited.env(name, value.unwrap_or_default());
        }
        let (stdout, stderr) = said(&limited.stdin(Stdio::null()).output().await.unwrap());
        assert!(
            stdout.contains("cannot be written") && stdout.contains("File too large"),
            "{stdout}{stderr}"
        );
        assert!(!stdout.contains("the service says"), "{stdout}{stderr}");
        // The orders whose records fitted are placed, and no other one.
        assert_eq!(stdout.matches(",placed,").count(), gateway.orders().len(), "{stdout}{stderr}");
    }
}
