//! C5: a token that the service refuses is named as the cause, by every verb, at once.

use std::{
    process::Stdio,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    time::{Instant, timeout},
};

use crate::{
    account::{User, code, stderr, stdout},
    command::interrupt,
    files::{orders, said},
    login::post,
    own_gateway::{OwnGateway, documented, placed},
    proxy::{RunningProxy, get, placed as placed_orders},
};

/// Regression: it searched for 125 s, and then said that the list cannot be used.
#[tokio::test]
async fn c05_orders_verify_with_a_dead_token_says_log_in_and_searches_nothing() {
    let list = |sent| if sent == 0 { (200, r#"{"s":"ok","d":[]}"#.to_owned()) } else { documented(401) };
    let gateway = OwnGateway::with_answers(|_| (504, String::new()), list).await;
    let file = orders(2);
    let mut child = gateway.command(&["replay", file.path(), "--yes", "--in-order"]).spawn().unwrap();
    while gateway.orders().is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    child.kill().await.unwrap();
    let (journal, begun) = (file.beside("orders.csv.journal"), Instant::now());
    let args = ["orders", "verify", "--journal", &journal];
    let verified = timeout(Duration::from_secs(60), gateway.command(&args).output()).await;
    let output = verified.expect("it searches").unwrap();
    let (_, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}: {stderr}", begun.elapsed());
    assert!(stderr.contains("orders in doubt, which were not looked for: 1; `steadfast login` "), "{stderr}");
    assert_eq!(gateway.orders().len(), 1, "nothing is sent");
}

/// Regression: orders were sent, and one whose answer was lost was searched for 105 s with lists that were all refused.
#[tokio::test]
async fn c05_replay_with_a_dead_token_sends_nothing_and_says_log_in() {
    let gateway = OwnGateway::with_answers(|_| (504, String::new()), |_| documented(401)).await;
    let (file, begun) = (orders(3), Instant::now());
    let run = timeout(Duration::from_secs(60), gateway.command(&["replay", file.path(), "--yes"]).output());
    let output = run.await.expect("it searches").unwrap();
    let (_, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}: {stderr}", begun.elapsed());
    assert!(stderr.contains(": nothing was sent; `steadfast login` "), "{stderr}");
    assert_eq!(gateway.orders().len(), 0, "an order was sent");
}

/// Regression: it found nothing wrong and ended with 0, although it had tried no token.
#[tokio::test]
async fn c05_a_doctor_that_tried_no_token_does_not_end_well_and_says_so() {
    let gateway = OwnGateway::serve(|_| documented(403)).await;
    let folder = tempfile::tempdir().unwrap();
    for (client, why) in
        [(None, "STEADFAST_CLIENT_ID is not set"), (Some("C1"), "none is kept, and none was tried")]
    {
        for json in [false, true] {
            let mut command = gateway.command(&["doctor"]);
            command.args(json.then_some("--json")).env_remove("STEADFAST_ACCESS_TOKEN");
            command.env("STEADFAST_STORE", folder.path().join("auth.json"));
            command.envs(client.map(|client| ("STEADFAST_CLIENT_ID", client)));
            let (output, state) =
                (command.output().await.unwrap(), if json { "\"unchecked\"" } else { "unchecked" });
            let (stdout, stderr) = said(&output);
            assert_eq!(output.status.code(), Some(3), "{stdout}{stderr}");
            assert!(stdout.contains(state) && stdout.contains(why), "{stdout}");
            assert!(stderr.contains("the login was not checked"), "{stderr}");
        }
    }
}

/// Regression: after the 401 of a replay, `auth status` said that the token is valid and accepted.
#[cfg(unix)]
#[tokio::test]
async fn c05_a_token_that_a_replay_found_refused_is_refused_for_every_verb() {
    let user = User::new().await;
    assert_eq!(code(&user.totp(&["login"]).output().await.unwrap()), 0);
    let fine = user.command(&["auth", "status", "--json"]).output().await.unwrap();
    let fine: Value = serde_json::from_slice(&fine.stdout).unwrap();
    assert_eq!((&fine["token"], &fine["refused_at"]), (&"unverified".into(), &Value::Null), "{fine}");
    let admin = user.sandbox.fact("admin_url").strip_prefix("http://").unwrap();
    post(admin, "/tokens/revoke", "application/json", "{}").await;
    let file = orders(2);
    let mut command = user.command(&["replay", file.path(), "--yes"]);
    let mut run = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
    // Which row is answered first decides whether the run ends by itself, or searches.
    let met =
        ["there is no token that the service accepts: nothing more is sent", "waiting: orders in doubt"];
    for told in [&met[..], &["interrupt again to leave"]] {
        while let Some(line) = lines.next_line().await.unwrap() {
            if told.iter().any(|told| line.contains(told)) {
                interrupt(&run).await;
                break;
            }
        }
    }
    let code_of_run = run.wait().await.unwrap().code();
    assert!(matches!(code_of_run, Some(3 | 6 | 130)), "{code_of_run:?}");

    let status = user.command(&["auth", "status"]).output().await.unwrap();
    assert_eq!(code(&status), 3, "{}", stderr(&status));
    let said = stdout(&status);
    assert!(said.contains("token     refused\n"), "{said}");
    assert!(said.contains(": refused (401, last at ") && !said.contains("accepted  yes"), "{said}");
    let status = user.command(&["auth", "status", "--json"]).output().await.unwrap();
    assert!(stdout(&status).contains(r#""refused_at":1"#), "{}", stdout(&status));
    for args in [&["replay", file.path(), "--yes"][..], &["auth", "token"]] {
        let refused = user.command(args).output().await.unwrap();
        assert_eq!(code(&refused), 3, "{}", stderr(&refused));
        assert!(stderr(&refused).contains("the service refuses the token of this account (401, last at "));
        assert!(stderr(&refused).contains("`steadfast login` fetches one"), "{}", stderr(&refused));
    }
}

/// Regression: the run said that there is no token, sent nothing and ended with 3, and the next one was fine.
#[tokio::test]
async fn c05_one_stray_401_to_the_first_list_keeps_no_run_from_its_orders() {
    let lists = AtomicUsize::new(0);
    let list = move |_| match lists.fetch_add(1, Ordering::SeqCst) {
        0 => documented(401),
        _ => (200, r#"{"s":"ok","d":[]}"#.to_owned()),
    };
    let gateway = OwnGateway::with_answers(|_| documented(403), list).await;
    let file = orders(1);
    let output = gateway.command(&["replay", file.path(), "--yes"]).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(1), "{stdout}{stderr}");
    assert!(stdout.contains("2,refused,,,403 "), "{stdout}{stderr}");
}

/// Regression: the run ended early, said that there is no token, and ended with 3; its lists were read with that token.
#[tokio::test]
async fn c05_one_stray_401_to_an_order_ends_no_run_and_calls_for_no_login() {
    let answer = |number| match number {
        1 => documented(401),
        number => placed(&format!("26{number}"), "Order placed"),
    };
    let gateway = OwnGateway::serve(answer).await;
    let file = orders(4);
    let args = ["replay", file.path(), "--yes", "--in-order"];
    let output = gateway.command(&args).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(7), "{stdout}{stderr}");
    assert_eq!(stdout.matches(",placed,").count(), 3, "{stdout}");
    assert!(stdout.contains("3,not executed,,,401 "), "{stdout}");
    assert!(stderr.contains("accepts it now: no login is needed; run again"), "{stderr}");
    let output = gateway.command(&args).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    assert_eq!(gateway.orders().len(), 5, "the row that was turned away is sent again, and no other");
}

/// Regression: the sidecar sent each order with a token that the service refuses, and told it as in doubt.
#[cfg(unix)]
#[tokio::test]
async fn a_sidecar_with_a_dead_token_sends_no_order_until_a_login_elsewhere() {
    let user = User::new().await;
    assert!(user.totp(&["login"]).output().await.unwrap().status.success());
    let mut command = user.command(&["proxy", "--port", "0", "--json"]);
    command.env_remove("XDG_RUNTIME_DIR");
    let proxy = RunningProxy::start(command).await;
    let admin = proxy.facts["admin_url"].as_str().unwrap().strip_prefix("http://").unwrap();
    let sandbox = user.sandbox.fact("admin_url").strip_prefix("http://").unwrap();
    assert!(proxy.order("x-new-order: 1\r\n").await.starts_with("HTTP/1.1 200"));
    post(sandbox, "/tokens/revoke", "application/json", "{}").await;
    while get(admin, "/readyz", String::new()).await.starts_with("HTTP/1.1 200") {
        get(proxy.authority(), "/v2/api/oms/orders", proxy.token()).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let refused = proxy.order("x-new-order: 1\r\n").await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("the order was not sent: "), "{refused}");
    assert!(user.totp(&["login"]).output().await.unwrap().status.success());
    let order = proxy.order("x-new-order: 1\r\n").await;
    assert!(order.starts_with("HTTP/1.1 200"), "{order}");
    assert_eq!(placed_orders(user.sandbox.fact("admin_url")).await.len(), 2);
}

/// Regression: a token that was refused from its first use on was told as valid.
#[cfg(unix)]
#[tokio::test]
async fn a_token_that_was_never_accepted_is_unverified_until_it_is_refused() {
    let user = User::new().await;
    assert_eq!(code(&user.totp(&["login"]).output().await.unwrap()), 0);
    let status = async || {
        let status = user.command(&["auth", "status"]).output().await.unwrap();
        (code(&status), stdout(&status))
    };
    let (fine, said) = status().await;
    assert!(fine == 0 && said.contains("token     unverified: never used\n"), "{said}");
    let sandbox = user.sandbox.fact("admin_url").strip_prefix("http://").unwrap();
    post(sandbox, "/tokens/revoke", "application/json", "{}").await;
    let mut command = user.command(&["proxy", "--port", "0", "--json"]);
    command.env_remove("XDG_RUNTIME_DIR");
    let proxy = RunningProxy::start(command).await;
    let admin = proxy.facts["admin_url"].as_str().unwrap().strip_prefix("http://").unwrap();
    while get(admin, "/readyz", String::new()).await.starts_with("HTTP/1.1 200") {
        get(proxy.authority(), "/v2/api/oms/orders", proxy.token()).await;
    }
    let told = async {
        loop {
            let (code, said) = status().await;
            if said.contains("token     refused\n") {
                break (code, said);
            }
        }
    };
    let (code, said) = timeout(Duration::from_secs(30), told).await.expect("it is told as refused");
    assert!(code == 3 && said.contains("accepted  never: refused (401, last at "), "{said}");
}
