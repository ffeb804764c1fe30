//! `replay` before a sidecar: whose orders it places, and the journal that belongs to them.

use crate::{
    command::steadfast,
    files::{orders, said},
    own_gateway::{OwnGateway, placed},
    proxy::{RunningProxy, placed as placed_at, private_folder},
};

/// Returns `replay` as a program of this sidecar.
fn replay(proxy: &RunningProxy, args: &[&str]) -> tokio::process::Command {
    let mut command = steadfast(&[&["replay"], args].concat());
    command.env("STEADFAST_BASE_URL", proxy.facts["base_url"].as_str().unwrap());
    command.env("STEADFAST_API_KEY", "local").env("STEADFAST_ACCESS_TOKEN", proxy.token());
    command
}

/// Regression: a rehearsal through a sidecar was told as trading, and its journal counted as that of placed orders once a sidecar
/// that trades had the address (G60).
#[tokio::test]
async fn c01_a_rehearsal_through_a_sidecar_says_so_and_leaves_no_journal_for_trading() {
    let (file, state) = (orders(2), private_folder());
    let sandbox = steadfast(&["proxy", "--sandbox", "--port", "0", "--json"]);
    let mut rehearsal = RunningProxy::start(sandbox).await;
    // Without a terminal and without `--yes`: nothing real can be placed.
    let output = replay(&rehearsal, &[file.path(), "--json"]).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("REHEARSAL: sandbox of the sidecar at "), "{stderr}");
    assert!(stderr.contains("in the sidecar's sandbox: placed 2 (2 now, 0 before)"), "{stderr}");
    assert!(stderr.ends_with("REHEARSAL: nothing was sent to the real service\n"), "{stderr}");
    assert!(!stderr.contains("placing ") && !stderr.contains("(account"), "{stderr}");
    let told: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&told["target"], &told["placed"]), (&"sandbox".into(), &2.into()));
    assert_eq!(placed_at(rehearsal.facts["sandbox_admin_url"].as_str().unwrap()).await.len(), 2);
    let rows = said(&replay(&rehearsal, &[file.path()]).output().await.unwrap()).0;
    assert!(rows.lines().skip(1).all(|row| row.contains("REHEARSAL: ")), "{rows}");

    // A journal that is asked for is the rehearsal's, also for a sidecar that trades at the same address.
    let rehearsed = file.beside("rehearsed");
    for placed in ["(2 now, 0 before)", "(0 now, 2 before)"] {
        let output = replay(&rehearsal, &[file.path(), "--journal", &rehearsed]).output().await.unwrap();
        assert!(said(&output).1.contains(placed), "{:?}", said(&output));
    }
    rehearsal.child.kill().await.unwrap();
    let gateway = OwnGateway::serve(|number| placed(&format!("26{number}"), "Order placed")).await;
    let port = rehearsal.authority().rsplit_once(':').unwrap().1;
    let mut trading = gateway.command(&["proxy", "--port", port, "--json"]);
    trading.env("XDG_STATE_HOME", state.path());
    let trading = RunningProxy::start(trading).await;
    let output = replay(&trading, &[file.path(), "--yes", "--journal", &rehearsed]).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!((output.status.code(), &*stdout), (Some(2), ""), "{stderr}");
    assert!(stderr.contains("is of a rehearsal's orders"), "{stderr}");
    let output = replay(&trading, &[file.path()]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(2), "trading needs a word: {:?}", said(&output));
    assert!(gateway.orders().is_empty());
    let output = replay(&trading, &[file.path(), "--yes"]).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!((output.status.code(), gateway.orders().len()), (Some(0), 2), "{stdout}{stderr}");
    assert!(stderr.contains("placing 2 orders at ") && !stderr.contains("REHEARSAL"), "{stderr}");
    // And what was traded is not rehearsed into.
    drop(trading);
    let again = RunningProxy::start(steadfast(&["proxy", "--sandbox", "--port", "0", "--json"])).await;
    let traded = file.beside("orders.csv.journal");
    let output = replay(&again, &[file.path(), "--journal", &traded]).output().await.unwrap();
    assert!(said(&output).1.contains("a rehearsal needs a --journal of its own"), "{:?}", said(&output));
}

/// Regression: the sidecar had another port the second time, so the journal was refused as another address's.
#[tokio::test]
async fn c02_a_run_by_exec_goes_on_with_the_journal_of_the_one_before() {
    let gateway = OwnGateway::serve(|number| placed(&format!("26{number}"), "Order placed")).await;
    let (file, state) = (orders(2), private_folder());
    let run = async |args: &[&str], key: Option<&str>| {
        let exec = ["exec", "--", env!("CARGO_BIN_EXE_steadfast")];
        let mut command = gateway.command(&[&exec, args].concat());
        command.env("XDG_STATE_HOME", state.path());
        key.map(|key| command.env("STEADFAST_API_KEY", key));
        let output = command.output().await.unwrap();
        (output.status.code(), said(&output))
    };
    let replay = ["replay", file.path(), "--yes"];
    for placed in ["placed 2 (2 now, 0 before)", "placed 2 (0 now, 2 before)"] {
        let (code, (stdout, stderr)) = run(&replay, None).await;
        assert_eq!((code, gateway.orders().len()), (Some(0), 2), "{stdout}{stderr}");
        assert!(stderr.contains(placed), "{stderr}");
    }
    let journal = file.beside("orders.csv.journal");
    let (code, (_, stderr)) = run(&["orders", "verify", "--journal", &journal], None).await;
    assert_eq!(code, Some(0), "{stderr}");
    // Another account's, behind whatever port.
    let (code, (_, stderr)) = run(&replay, Some("key-of-another-account")).await;
    assert_eq!((code, gateway.orders().len()), (Some(2), 2), "{stderr}");
    assert!(stderr.contains("is of orders at a sidecar of account "), "{stderr}");
    // And the service itself.
    let output = gateway.command(&replay).output().await.unwrap();
    let (_, stderr) = said(&output);
    assert_eq!((output.status.code(), gateway.orders().len()), (Some(2), 2), "{stderr}");
    assert!(stderr.contains("is of orders at a sidecar of account "), "{stderr}");
}

/// Regression: `replay` and `doctor` sent a person with a wrong local token to `steadfast login`.
#[tokio::test]
async fn c05_a_wrong_local_token_is_named() {
    let gateway = OwnGateway::serve(|number| placed(&format!("26{number}"), "Order placed")).await;
    let (file, state) = (orders(1), private_folder());
    let mut trading = gateway.command(&["proxy", "--port", "0", "--json"]);
    trading.env("XDG_STATE_HOME", state.path());
    let trading = RunningProxy::start(trading).await;
    let rehearsal = RunningProxy::start(steadfast(&["proxy", "--sandbox", "--port", "0", "--json"])).await;
    let journal = file.beside("j");
    std::fs::write(&journal, "").unwrap();
    for (proxy, verb) in [
        (&trading, &["replay", file.path(), "--yes"][..]),
        (&rehearsal, &["replay", file.path(), "--yes"]),
        (&trading, &["orders", "verify", "--journal", &journal]),
    ] {
        let mut command = steadfast(verb);
        command.env("STEADFAST_BASE_URL", proxy.facts["base_url"].as_str().unwrap());
        command.env("STEADFAST_API_KEY", "local").env("STEADFAST_ACCESS_TOKEN", "wrong-0123456789abcdef");
        let output = command.output().await.unwrap();
        let (stdout, stderr) = said(&output);
        assert_eq!((output.status.code(), &*stdout), (Some(2), ""), "{verb:?}: {stderr}");
        let told = "STEADFAST_ACCESS_TOKEN is not the local token of the sidecar at http://127.0.0.1:";
        assert!(stderr.contains(told) && !stderr.contains("steadfast login"), "{verb:?}: {stderr}");
        assert!(!stderr.contains("0123456789abcdef"), "{stderr}");
    }
    let mut doctor = steadfast(&["doctor"]);
    doctor.env("STEADFAST_BASE_URL", trading.facts["base_url"].as_str().unwrap());
    doctor.env("STEADFAST_API_KEY", "local").env("STEADFAST_ACCESS_TOKEN", "wrong-0123456789abcdef");
    let output = doctor.output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(1), "{stdout}{stderr}");
    assert!(stdout.contains("is not the local token of the sidecar at "), "{stdout}{stderr}");
    assert!(!stdout.contains("may be because") && !stdout.contains("steadfast login"), "{stdout}");
    assert!(gateway.orders().is_empty());
}
