//! C1: a rehearsal cannot be taken for trading, nor trading for a rehearsal.

use serde_json::Value;

use crate::{
    files::{orders, said},
    own_gateway::{OwnGateway, placed},
};

async fn gateway() -> OwnGateway {
    OwnGateway::serve(|number| placed(&format!("26{number}"), "Order placed")).await
}

#[tokio::test]
async fn c01_a_service_of_the_environment_counts_and_is_named_first() {
    let (gateway, file) = (gateway().await, orders(3));
    let mut command = gateway.command(&["replay", file.path(), "--yes", "--json"]);
    let output = command.env("STEADFAST_CLIENT_ID", "SB0001").output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let first = format!("placing 3 orders at {} (account SB0001)", gateway.base_url);
    assert_eq!(stderr.lines().next(), Some(&*first));
    let counts: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&counts["target"], &counts["placed"]), (&gateway.base_url.clone().into(), &3.into()));
    assert_eq!((&counts["not_sent"], &counts["events"]["conflicts"]), (&0.into(), &0.into()));
    assert_eq!(gateway.orders().len(), 3);
    assert!(!stderr.contains("REHEARSAL"), "{stderr}");
}

/// A variable exported earlier for another verb must not turn a script's rehearsal into trading.
#[tokio::test]
async fn c01_without_a_terminal_the_environment_alone_places_nothing() {
    let (gateway, file) = (gateway().await, orders(3));
    let output = gateway.command(&["replay", file.path()]).output().await.unwrap();
    let (_, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("give --yes or --base-url to place real orders, or --sandbox"), "{stderr}");
    assert_eq!(gateway.orders().len(), 0);
    // The command line names the service, so real orders are meant.
    let args = ["replay", file.path(), "--base-url", &gateway.base_url];
    let output = gateway.command(&args).output().await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output).1);
    assert_eq!(gateway.orders().len(), 3);
}

/// The first line said that orders were being placed, and the second why they were not.
#[tokio::test]
async fn c01_placing_is_announced_once_nothing_can_refuse_it() {
    let (gateway, file) = (gateway().await, orders(2));
    let garbled = file.beside("garbled");
    std::fs::write(&garbled, "no journal").unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(&garbled, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let nowhere = file.beside("no-such-folder/results.csv");
    for (removed, more) in [
        ("STEADFAST_API_KEY", &["--yes"][..]),
        ("", &["--yes", "--out", &nowhere]),
        ("", &["--yes", "--journal", &garbled]),
        ("", &[]),
    ] {
        let mut command = gateway.command(&[&["replay", file.path()], more].concat());
        let output = command.env_remove(removed).output().await.unwrap();
        let (stdout, stderr) = said(&output);
        assert_eq!((output.status.code(), stdout.as_str()), (Some(2), ""), "{more:?}: {stderr}");
        assert!(!stderr.contains("placing ") && !stderr.contains("every row is sent"), "{more:?}: {stderr}");
        assert_eq!(stderr.matches("nothing was sent").count(), 1, "{more:?}: {stderr}");
        assert!(!std::fs::exists(file.beside("orders.csv.journal")).unwrap(), "{more:?}");
    }
    assert_eq!(gateway.orders().len(), 0);
}

/// The run was a rehearsal, and a script with `--yes` took exit code 0 for placed orders.
#[tokio::test]
async fn c01_an_empty_address_in_the_environment_is_an_error() {
    let (gateway, file) = (gateway().await, orders(1));
    let journal = file.beside("j");
    for args in [
        &["replay", file.path(), "--yes"][..],
        &["doctor"],
        &["login"],
        &["auth", "status"],
        &["orders", "verify", "--journal", &journal],
    ] {
        let output = gateway.command(args).env("STEADFAST_BASE_URL", "").output().await.unwrap();
        let (_, stderr) = said(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains("STEADFAST_BASE_URL"), "{args:?}: {stderr}");
        assert!(!stderr.contains("REHEARSAL"), "{stderr}");
    }
    // Regression: it was shown as not set, which is a rehearsal.
    let shown =
        gateway.command(&["replay", file.path(), "--print-config"]).env("STEADFAST_BASE_URL", "").output();
    let shown = shown.await.unwrap();
    assert_eq!(shown.status.code(), Some(2), "{:?}", said(&shown));
    assert!(said(&shown).1.contains("STEADFAST_BASE_URL is empty"), "{:?}", said(&shown));
    for more in [&[][..], &["--print-config"]] {
        let args = [&["replay", file.path(), "--sandbox"], more].concat();
        let output = gateway.command(&args).env("STEADFAST_BASE_URL", "").output().await.unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", said(&output).1);
    }
}

/// Regression: a script that had lost its environment rehearsed, and told its rows as placed with exit code 0.
#[tokio::test]
async fn c01_consent_to_real_orders_is_refused_where_no_service_is_named() {
    let (gateway, file) = (gateway().await, orders(2));
    let mut command = gateway.command(&["replay", file.path(), "--yes"]);
    let output = command.env_remove("STEADFAST_BASE_URL").output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!((output.status.code(), stdout.as_str()), (Some(2), ""), "{stderr}");
    assert!(stderr.contains("--yes asks for real orders") && stderr.contains("--sandbox"), "{stderr}");
    let mut command = gateway.command(&["replay", file.path(), "--yes", "--sandbox"]);
    assert_eq!(command.output().await.unwrap().status.code(), Some(0), "a rehearsal was asked for");
    assert_eq!(gateway.orders().len(), 0);
}

/// Regression: neither a program nor its log could tell a rehearsal from trading.
#[tokio::test]
async fn c01_exec_says_first_where_orders_go() {
    let gateway = gateway().await;
    let folder = orders(0);
    let (journal, store) = (folder.beside("j"), folder.beside("auth.json"));
    let real = format!("steadfast: orders go to {} (account ", gateway.base_url);
    for (args, first) in [
        (&["exec", "--store", &store, "--journal", &journal, "--", "true"][..], &*real),
        (&["exec", "--sandbox", "--", "true"], "REHEARSAL: own sandbox, nothing real is placed"),
    ] {
        let output = gateway.command(args).output().await.unwrap();
        let (stdout, stderr) = said(&output);
        assert_eq!((output.status.code(), stdout.as_str()), (Some(0), ""), "{stderr}");
        assert!(stderr.starts_with(first), "{stderr}");
    }
}

#[tokio::test]
async fn c01_a_rehearsal_says_so_first_last_and_in_every_row() {
    let (gateway, file) = (gateway().await, orders(2));
    let mut without = gateway.command(&["replay", file.path(), "--quiet"]);
    without.env_remove("STEADFAST_BASE_URL");
    for mut command in [without, gateway.command(&["replay", file.path(), "--sandbox", "--quiet"])] {
        let output = command.output().await.unwrap();
        let (stdout, stderr) = said(&output);
        assert_eq!(output.status.code(), Some(0), "{stderr}");
        let lines: Vec<&str> = stderr.lines().collect();
        assert_eq!(lines[0], "REHEARSAL: own sandbox, nothing real is placed");
        assert_eq!(lines.last(), Some(&"REHEARSAL: nothing was sent to the real service"));
        assert!(!lines.iter().any(|line| line.starts_with("placed ")), "{stderr}");
        assert!(stdout.lines().skip(1).all(|row| row.contains(",REHEARSAL: ")), "{stdout}");
    }
    assert_eq!(gateway.orders().len(), 0);
    let mut command = gateway.command(&["replay", file.path(), "--sandbox", "--json"]);
    let counts: Value = serde_json::from_slice(&command.output().await.unwrap().stdout).unwrap();
    assert_eq!(counts["target"], "sandbox");
}

#[tokio::test]
async fn c01_a_check_names_what_is_wrong_and_places_nothing() {
    let (gateway, file) = (gateway().await, orders(2));
    for (row, code) in [("", 0), ("EQT_INFY_EQ_NSE,1,BUY,market,intraday,day,,\n", 1)] {
        file.append(row);
        let args = ["replay", file.path(), "--check", "--base-url", &gateway.base_url];
        let output = gateway.command(&args).output().await.unwrap();
        let (stdout, stderr) = said(&output);
        assert_eq!((output.status.code(), stdout.as_str()), (Some(code), ""), "{stderr}");
        assert_eq!(stderr.lines().next(), Some("CHECK: nothing is placed"));
        assert_eq!(stderr.contains("line 4, column 3: side is not one of buy, sell"), code == 1, "{stderr}");
    }
    assert_eq!(gateway.orders().len(), 0);
    assert!(!std::path::Path::new(&format!("{}.journal", file.path())).exists(), "a check keeps nothing");
}

#[tokio::test]
async fn c01_a_check_warns_of_what_a_run_warns_of() {
    let file = orders(0);
    file.append("EQT_INFY_EQ_NSE,1,buy,market,intraday,eos,,\n");
    for verb in ["--check", "--sandbox"] {
        let output = crate::command::output(&["replay", file.path(), verb]).await;
        assert!(
            said(&output).1.contains("line 2: validity eos is for BSE only"),
            "{verb}: {:?}",
            said(&output)
        );
    }
}

#[tokio::test]
async fn c05_one_journal_of_the_environment_serves_replay_and_orders() {
    let (gateway, file) = (gateway().await, orders(1));
    let journal = file.beside("j");
    for (args, code) in [
        // A rehearsal leaves no trace in it.
        (&["replay", file.path(), "--sandbox"][..], 0),
        (&["orders", "unresolved"], 2),
        (&["replay", file.path(), "--check"], 0),
        (&["replay", file.path(), "--yes"], 0),
        (&["orders", "unresolved"], 0),
    ] {
        let output = gateway.command(args).env("STEADFAST_JOURNAL", &journal).output().await.unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {:?}", said(&output));
    }
    assert!(!std::path::Path::new(&file.beside("orders.csv.journal")).exists());
    assert_eq!(gateway.orders().len(), 1);
}

#[tokio::test]
async fn c05_a_token_of_the_environment_is_the_one_that_is_looked_at() {
    let (gateway, file) = (gateway().await, orders(0));
    let store = file.beside("auth.json");
    let run = async |args: &[&str]| {
        let output = gateway.command(&[args, &["--store", &store]].concat()).output().await.unwrap();
        (output.status.code(), said(&output))
    };
    let (code, (stdout, stderr)) = run(&["auth", "status"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        stdout.contains("token     given\n") && stderr.contains("STEADFAST_ACCESS_TOKEN is used"),
        "{stdout}{stderr}"
    );
    let (_, (stdout, _)) = run(&["doctor"]).await;
    assert!(
        stdout.contains("the one of STEADFAST_ACCESS_TOKEN is used, and not the store's: is accepted"),
        "{stdout}"
    );
}
