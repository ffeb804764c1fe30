use std::process::Output;

use serde_json::Value;

use crate::{
    command::{RunningSandbox, output, steadfast},
    files::forget,
};

const HEADER: &str = "symId,qty,side,type,product,validity,limitPrice,trigPrice";

fn data(name: &str) -> String {
    format!("{}/../../examples/data/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A file of the test's own in the build's directory for such files.
fn file(name: &str, rows: &str) -> String {
    let path = format!("{}/{name}", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&path, format!("{HEADER}\n{rows}")).unwrap();
    // What an earlier run of the test wrote down belongs to another sandbox.
    forget(&format!("{path}.journal"));
    path
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

/// The short file; with `STEADFAST_DEEP=1` the one of 1,040 rows.
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
    let last = format!("placed {rows} refused 0 unresolved 0");
    assert_eq!(stderr.lines().last(), Some(last.as_str()));
}

#[tokio::test]
async fn a_bad_row_is_named_and_the_rest_goes_on() {
    let rows = "EQT_INFY_EQ_NSE,1,buy,market,intraday,day,,\n\
        EQT_INFY_EQ_NSE,1,BUY,limit,intraday,day,,\n\
        EQT_TCS_EQ_NSE,2,sell,limit,delivery,gtc,3400.05,\n";
    let output = output(&["replay", &file("bad-row.csv", rows)]).await;
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("line 3, column 3: side is not one of buy, sell\n"), "{stderr}");
    assert!(stderr.contains("line 3, column 7: limitPrice is required when type is limit\n"), "{stderr}");
    assert!(stderr.contains("\nbad rows, which are no orders: 1\n"), "{stderr}");
    assert_eq!(stderr.lines().last(), Some("placed 2 refused 0 unresolved 0"));
    let mut lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines.remove(0), "line,status,orderId,resolution,msg");
    lines.sort_unstable();
    assert!(lines[0].starts_with("2,placed,26"), "{stdout}");
    assert!(lines[1].starts_with("3,bad,,,"), "{stdout}");
    assert!(lines[2].starts_with("4,placed,26"), "{stdout}");
}

#[tokio::test]
async fn results_go_to_a_file_and_nothing_secret_goes_to_the_log() {
    let results = format!("{}/results.csv", env!("CARGO_TARGET_TMPDIR"));
    let orders = data("orders-40.csv");
    let mut command = steadfast(&["replay", &orders, "--out", &results]);
    let output = command.env("STEADFAST_LOG", "trace").output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert_eq!(stdout, "");
    assert_eq!(std::fs::read_to_string(&results).unwrap().lines().count(), 41);
    assert!(stderr.contains("TRACE"), "there is no log to look at");
    // The embedded sandbox is the one of seed 0.
    let sandbox = RunningSandbox::start(&[]).await;
    for name in ["api_key", "access_token", "password", "totp_secret", "client_secret"] {
        assert!(!stderr.contains(sandbox.fact(name)), "{name} is in the log");
    }
}

#[tokio::test]
async fn an_order_behind_a_504_is_found_and_its_row_says_so() {
    let script = format!("{}/504.toml", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&script, "[[fault]]\nname = 'placement.504-applied'\nnth = 1\n").unwrap();
    let sandbox = RunningSandbox::start(&["--script", &script]).await;
    let orders = file("504.csv", "EQT_INFY_EQ_NSE,1,buy,market,intraday,day,,\n");
    let mut command = steadfast(&["replay", &orders, "--base-url", sandbox.fact("base_url")]);
    command.env("STEADFAST_API_KEY", sandbox.fact("api_key"));
    let output = command.env("STEADFAST_ACCESS_TOKEN", sandbox.fact("access_token")).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stdout.contains("\n2,placed,260000000001,recovered,"), "{stdout}");
}

#[tokio::test]
async fn any_base_url_takes_the_orders_with_credentials_from_the_environment() {
    let sandbox = RunningSandbox::start(&[]).await;
    let orders = file("base-url.csv", "EQT_INFY_EQ_NSE,1,buy,market,intraday,day,,\n");
    let args = ["replay", &orders, "--base-url", sandbox.fact("base_url"), "--json"];
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
    let header = file("header.csv", "");
    std::fs::write(&header, "symId,quantity\n").unwrap();
    let one = file("one.csv", "EQT_INFY_EQ_NSE,1,buy,market,intraday,day,,\n");
    for (args, named) in [
        (&["replay", "no-such-file.csv"][..], "no-such-file.csv"),
        (&["replay", &header], "line 1, column 2: \"quantity\" is none of symId, qty"),
        (&["replay", &one, "--base-url", "https://api.example"], "base url does not end in /v2"),
        (&["replay", &one, "--base-url", "http://127.0.0.1:1/v2"], "STEADFAST_API_KEY is not set"),
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
    let rows = "EQT_INFY_EQ_NSE,1,buy,market,intraday,day,,\nFUT_NIFTY_FUT_NFO_31Dec2026,75,buy,market,normal,day,,\n";
    // The sandbox revokes the token after the first order: the second is refused with 401.
    let script = format!("{}/revoke.toml", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&script, "[[fault]]\nname = 'auth.token-revoked'\nendpoint = 'place-order'\nnth = 2\n")
        .unwrap();
    let sandbox = RunningSandbox::start(&["--script", &script]).await;
    let orders = file("refused.csv", rows);
    let mut command = steadfast(&["replay", &orders, "--base-url", sandbox.fact("base_url")]);
    command.env("STEADFAST_API_KEY", sandbox.fact("api_key"));
    let output = command.env("STEADFAST_ACCESS_TOKEN", sandbox.fact("access_token")).output().await.unwrap();
    let (_, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert_eq!(stderr.lines().last(), Some("placed 1 refused 1 unresolved 0"), "{stderr}");
}
