//! C8: errors in a file, an address or a row are named.

use std::process::Stdio;

use serde_json::Value;
use tokio::io::AsyncWriteExt;

use crate::{
    command::steadfast,
    files::{HEADER, file, orders, said},
    own_gateway::{OwnGateway, placed},
};

fn rehearse(args: &[&str]) -> tokio::process::Command {
    let mut command = steadfast(&[&["replay"], args, &["--sandbox"]].concat());
    command.env_remove("STEADFAST_BASE_URL");
    command
}

#[tokio::test]
async fn c08_an_expiry_with_hyphens_is_one_and_is_sent_as_it_is() {
    let rows = "FUT_NIFTY_FUT_NFO_28-Nov-2026,75,buy,market,normal,day,,\n\
        OPT_NIFTY_CE_NFO_28-Nov-2026_24500,75,buy,market,normal,day,,\n";
    let file = file(&format!("{HEADER}{rows}"));
    let output = rehearse(&[file.path()]).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    assert_eq!(stdout.matches(",placed,").count(), 2, "{stdout}");
}

#[tokio::test]
async fn c08_a_text_that_is_too_long_is_named_by_its_length() {
    let file = file(&format!("{HEADER}EQT_{}_EQ_NSE,1,buy,market,intraday,day,,\n", "X".repeat(70_000)));
    let output = rehearse(&[file.path()]).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("line 2, column 1: symId has 70011 characters"), "{stderr}");
    assert!(stdout.len() < 300, "the text is not repeated: {stdout}");
}

#[tokio::test]
async fn c08_a_port_that_is_none_is_named() {
    let output =
        steadfast(&["replay", "x.csv", "--base-url", "http://127.0.0.1:99999/v2"]).output().await.unwrap();
    let (_, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("base url's port is not a number from 1 to 65535"), "{stderr}");
}

#[tokio::test]
async fn c08_a_file_without_orders_has_results_with_a_header_and_says_so() {
    let file = file(HEADER);
    let output = rehearse(&[file.path()]).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(
        (output.status.code(), &*stdout),
        (Some(0), "line,status,orderId,resolution,msg\n"),
        "{stderr}"
    );
    assert!(stderr.contains("holds no order: nothing is placed"), "{stderr}");
}

#[tokio::test]
async fn c08_a_hyphen_is_standard_input() {
    let gateway = OwnGateway::serve(|number| placed(&format!("26{number}"), "Order placed")).await;
    let file = orders(2);
    let text = std::fs::read(file.path()).unwrap();
    let journal = file.beside("j");
    for (args, code, placed) in [
        (&["replay", "-", "--sandbox"][..], 0, 0),
        (&["replay", "-", "--yes"], 2, 0),
        (&["replay", "-", "--yes", "--journal", &journal], 0, 2),
    ] {
        let mut command = gateway.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&text).await.unwrap();
        drop(stdin);
        let output = child.wait_with_output().await.unwrap();
        let (stdout, stderr) = said(&output);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
        assert_eq!(stdout.matches(",placed,").count(), if code == 0 { 2 } else { 0 }, "{args:?}: {stdout}");
        assert_eq!(stderr.contains("orders from standard input need --journal FILE"), code == 2, "{stderr}");
        assert_eq!(gateway.orders().len(), placed, "{args:?}");
    }
}

/// The order of a file that ended within `25` was placed for 2.
#[tokio::test]
async fn a_file_that_may_be_cut_within_its_last_number_is_refused_before_anything_is_sent() {
    let gateway = OwnGateway::serve(|number| placed(&format!("26{number}"), "Order placed")).await;
    let whole = "symId,side,type,product,validity,limitPrice,trigPrice,qty\n\
        EQT_INFY_EQ_NSE,buy,market,intraday,day,,,7\nEQT_TCS_EQ_NSE,buy,market,intraday,day,,,25\n";
    let cut = whole.strip_suffix("5\n").unwrap();
    let named = "line 3 has no line end, so that the file may be cut within it; if it is whole, end it with a line break; \
        nothing was sent";
    let file = file(cut);
    let journal = file.beside("j");
    for (args, text, code, placed) in [
        (&["replay", file.path(), "--yes"][..], "", 2, 0),
        (&["replay", file.path(), "--check"], "", 2, 0),
        (&["replay", file.path(), "--sandbox"], "", 2, 0),
        (&["replay", "-", "--yes", "--journal", &journal], cut, 2, 0),
        (&["replay", "-", "--yes", "--journal", &journal], whole, 0, 2),
    ] {
        let mut command = gateway.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(text.as_bytes()).await.unwrap();
        drop(stdin);
        let output = child.wait_with_output().await.unwrap();
        let (stdout, stderr) = said(&output);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
        assert_eq!(stderr.contains(named), code == 2, "{args:?}: {stderr}");
        assert_eq!(stdout.matches(",placed,").count(), placed, "{args:?}: {stdout}{stderr}");
        assert_eq!(gateway.orders().len(), placed, "{args:?}");
    }
}

#[tokio::test]
async fn c08_another_separator_than_a_comma_is_named() {
    for (separator, named) in [(";", "';'"), ("\t", "'\\t'"), ("|", "'|'")] {
        let file = file(&HEADER.replace(',', separator));
        let output = rehearse(&[file.path()]).output().await.unwrap();
        let (_, stderr) = said(&output);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(&format!("columns are separated by {named} instead of a comma")), "{stderr}");
    }
}

#[tokio::test]
async fn c08_the_last_line_and_the_object_count_alike() {
    let file = file(&format!("{HEADER}{}", "EQT_INFY_EQ_NSE,1,BUY,market,intraday,day,,\n".repeat(6)));
    file.append("EQT_INFY_EQ_NSE,1,buy,market,intraday,day,,\n");
    let output = rehearse(&[file.path(), "--json"]).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let counts: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&counts["bad"], &counts["refused"], &counts["placed"]), (&6.into(), &0.into(), &1.into()));
    assert!(stderr.contains("\nbad rows, which are no orders: 6\n"), "{stderr}");
    assert!(
        stderr.contains("\nin the own sandbox: placed 1 (1 now, 0 before) refused 0 unresolved 0 bad 6\n"),
        "{stderr}"
    );
}
