//! Prompts, interrupts and waits at a terminal.

use std::{process::Stdio, time::Duration};

use steadfast::auth::{FileStore, TokenStore};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::Command,
    time::timeout,
};

use crate::{
    account::User,
    files::orders,
    own_gateway::{OwnGateway, placed},
};

const SOON: Duration = Duration::from_secs(20);

/// Reads until `text` comes.
async fn read_until(out: &mut (impl AsyncReadExt + Unpin), text: &str) -> String {
    let mut seen = String::new();
    while !seen.contains(text) {
        let mut bytes = [0; 1024];
        let read = timeout(SOON, out.read(&mut bytes)).await.unwrap().unwrap();
        assert!(read > 0, "ended without {text:?}: {seen}");
        seen.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
    seen
}

/// Guards against programs that leave the terminal with its echo off after a hidden prompt.
#[tokio::test]
async fn ctrl_c_at_a_hidden_prompt_gives_the_terminal_back() {
    let user = User::new().await;
    let program = env!("CARGO_BIN_EXE_steadfast");
    let shell = format!("trap : INT; {program} login --flow otp; echo ended with $?; stty -a");
    let mut command = Command::new("script");
    command.args(["-qec", &shell, "/dev/null"]).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command.env("STEADFAST_BASE_URL", user.sandbox.fact("base_url")).env("STEADFAST_STORE", user.store());
    command.env("STEADFAST_API_KEY", user.sandbox.fact("api_key")).env("STEADFAST_CLIENT_ID", "SB0001");
    let mut process =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let (mut keys, mut screen) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
    read_until(&mut screen, "password: ").await;
    // The echo is turned off right after the prompt.
    tokio::time::sleep(Duration::from_millis(300)).await;
    keys.write_all(b"\x03").await.unwrap();
    let mut seen = String::new();
    timeout(SOON, screen.read_to_string(&mut seen)).await.unwrap().unwrap();
    assert!(seen.contains("ended with 130"), "{seen}");
    assert!(seen.contains(" echo ") && !seen.contains("-echo "), "{seen}");
}

/// A program that is stopped in the middle of its login holds the lock as long as it is stopped.
#[tokio::test]
async fn whoever_waits_for_another_login_is_told_so_and_may_leave() {
    let user = User::new().await;
    let store = FileStore::open(user.store()).unwrap();
    let _held = store.lease().await.unwrap();
    for args in [&["auth", "reset"][..], &["auth", "logout"], &["login"]] {
        let mut command = user.totp(args);
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = process.stderr.take().unwrap();
        read_until(&mut said, "another program is logging in to this account").await;
        crate::command::interrupt(&process).await;
        assert_eq!(timeout(SOON, process.wait()).await.unwrap().unwrap().code(), Some(130), "{args:?}");
    }
    assert_eq!(user.logins().await, (0, 0));
}

/// Real orders at a terminal: the run asks, and only a yes places them.
#[tokio::test]
async fn c01_at_a_terminal_a_real_run_asks_and_no_is_the_default() {
    let gateway = OwnGateway::serve(|number| placed(&format!("26{number}"), "Order placed")).await;
    let file = orders(2);
    let program = env!("CARGO_BIN_EXE_steadfast");
    let counted = format!("{} (account of the token): rows 2: to send 2, ", gateway.base_url);
    for (named, answer, code, placed) in [
        ("", "\n", 1, 0),
        (&*format!("--base-url {}", gateway.base_url), "n\n", 1, 0),
        ("", "\x03", 130, 0),
        ("", "y\n", 0, 2),
    ] {
        let shell = format!("trap : INT; {program} replay {} {named}; echo ended with $?", file.path());
        let mut command = gateway.terminal(&shell);
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let (mut keys, mut screen) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let asked = read_until(&mut screen, "place them? [y/N] ").await;
        assert!(asked.contains(&format!("placing 2 orders at {}", gateway.base_url)), "{asked}");
        assert!(asked.contains(&counted), "{asked}");
        assert_eq!(gateway.orders().len(), 0, "an order left before the answer");
        keys.write_all(answer.as_bytes()).await.unwrap();
        read_until(&mut screen, &format!("ended with {code}")).await;
        assert_eq!(gateway.orders().len(), placed, "{named:?} {answer:?}");
    }
}

#[tokio::test]
async fn c01_bad_rows_are_told_before_the_question() {
    let gateway = OwnGateway::serve(|number| placed(&format!("26{number}"), "Order placed")).await;
    let file = orders(1);
    file.append(&"EQT_INFY_EQ_NSE,1,BUY,market,intraday,day,,\n".repeat(4));
    let shell = format!("{} replay {}; echo ended with $?", env!("CARGO_BIN_EXE_steadfast"), file.path());
    let mut command = gateway.terminal(&shell);
    let mut process =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let (mut keys, mut screen) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
    let asked = read_until(&mut screen, "place them? [y/N] ").await;
    assert!(asked.contains("4 of 5 rows are bad, and are not placed:"), "{asked}");
    assert!(asked.contains("  line 5, column 3: side is not one of buy, sell"), "{asked}");
    assert!(asked.contains("  and 1 more; --check names them all"), "{asked}");
    let counted =
        "rows 5: to send 1, placed by earlier runs 0, in doubt 0, bad 4 (left out); place them? [y/N] ";
    assert!(asked.contains(counted), "{asked}");
    keys.write_all(b"n\n").await.unwrap();
    read_until(&mut screen, "ended with 1").await;
    assert_eq!(gateway.orders().len(), 0);
}

/// Regression: the question named no counts, so that a second run looked as if it placed all rows once more.
#[tokio::test]
async fn c01_the_question_counts_what_earlier_runs_have_placed() {
    let gateway = OwnGateway::serve(|number| placed(&format!("26{number}"), "Order placed")).await;
    let file = orders(2);
    let first = gateway.command(&["replay", file.path(), "--yes"]).output().await.unwrap();
    let counted = "rows 2: to send 2, placed by earlier runs 0, in doubt 0, bad 0\n";
    assert!(String::from_utf8_lossy(&first.stderr).contains(counted), "{first:?}");
    file.append("EQT_TCS_EQ_NSE,9,sell,market,intraday,day,,\nEQT_INFY_EQ_NSE,1,BUY,market,intraday,day,,\n");
    let shell = format!("{} replay {}; echo ended with $?", env!("CARGO_BIN_EXE_steadfast"), file.path());
    let mut command = gateway.terminal(&shell);
    let mut process =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let (mut keys, mut screen) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
    let asked = read_until(&mut screen, "place them? [y/N] ").await;
    assert!(asked.contains(&format!("placing 1 order at {}", gateway.base_url)), "{asked}");
    let counted = "rows 4: to send 1, placed by earlier runs 2, in doubt 0, bad 1 (left out); place them?";
    assert!(asked.contains(counted), "{asked}");
    keys.write_all(b"y\n").await.unwrap();
    read_until(&mut screen, "ended with 1").await;
    assert_eq!(gateway.orders().len(), 3);
}

/// Orders piped in at a terminal were placed without a question, because the input could not answer it.
#[tokio::test]
async fn c01_orders_piped_in_at_a_terminal_need_a_yes() {
    let gateway = OwnGateway::serve(|number| placed(&format!("26{number}"), "Order placed")).await;
    let file = orders(2);
    for (yes, code, placed) in [("", 2, 0), ("--yes", 0, 2)] {
        let (program, path, base) = (env!("CARGO_BIN_EXE_steadfast"), file.path(), &gateway.base_url);
        let shell = format!(
            "cat {path} | {program} replay - --base-url {base} --journal {path}.journal {yes}; echo ended with $?"
        );
        let mut command = gateway.terminal(&shell);
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let mut screen = process.stdout.take().unwrap();
        read_until(&mut screen, &format!("ended with {code}")).await;
        assert_eq!(gateway.orders().len(), placed, "{yes:?}");
    }
}

/// An order ruled not placed is sent again by a later run, so the command asks, and only a yes records the
/// ruling.
#[tokio::test]
async fn at_a_terminal_a_ruling_asks_and_no_is_the_default() {
    let gateway = OwnGateway::serve(|_| (504, String::new())).await;
    let file = orders(1);
    let mut child = gateway.command(&["replay", file.path(), "--yes"]).spawn().unwrap();
    while gateway.orders().is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    child.kill().await.unwrap();
    let program = env!("CARGO_BIN_EXE_steadfast");
    for (answer, code) in [("\n", 1), ("n\n", 1), ("\x03", 130), ("y\n", 0), ("", 2)] {
        let shell = format!(
            "trap : INT; {program} orders rule --journal {}.journal line-2 --not-placed; echo ended with $?",
            file.path()
        );
        let mut command = gateway.terminal(&shell);
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let (mut keys, mut screen) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        if !answer.is_empty() {
            let asked = read_until(&mut screen, "is that so? [y/N] ").await;
            assert!(asked.contains("SENDS IT AGAIN"), "{asked}");
            keys.write_all(answer.as_bytes()).await.unwrap();
        }
        read_until(&mut screen, &format!("ended with {code}")).await;
    }
}

/// Regression: whoever was typed at the first login had the store for good. After a mistyped user every login was refused,
/// `auth reset` and `auth logout` did not help, and after the right one no other verb found the token.
#[tokio::test]
async fn t21_a_mistyped_client_id_bars_nobody_and_counts() {
    let user = User::new().await;
    let fact = |name| user.sandbox.fact(name);
    let in_environment = |command: &mut Command| {
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        command.env("XDG_STATE_HOME", user.file("state")).env("STEADFAST_BASE_URL", fact("base_url"));
        command.env("STEADFAST_API_KEY", fact("api_key"));
    };
    let log_in = async |client_id: &str, password: &str| {
        let admin = fact("admin_url").strip_prefix("http://").unwrap();
        let asked = format!(r#"{{"client_id":"{}"}}"#, fact("client_id"));
        let sent = crate::login::post(admin, "/otp", "application/json", &asked).await;
        let sent: serde_json::Value = serde_json::from_str(sent.rsplit("\r\n\r\n").next().unwrap()).unwrap();
        let shell = format!("{} login --flow otp; echo ended with $?", env!("CARGO_BIN_EXE_steadfast"));
        let mut command = Command::new("script");
        command.args(["-qec", &shell, "/dev/null"]);
        in_environment(&mut command);
        command.env("STEADFAST_PASSWORD", password);
        command.env("STEADFAST_OTP_COMMAND", format!("echo {}", sent["code"].as_str().unwrap()));
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let (mut keys, mut screen) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        read_until(&mut screen, "client id: ").await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        keys.write_all(format!("{client_id}\n").as_bytes()).await.unwrap();
        let mut seen = String::new();
        timeout(SOON, screen.read_to_string(&mut seen)).await.unwrap().unwrap();
        let (seen, code) = seen.rsplit_once("ended with ").unwrap();
        (code.trim().parse::<i32>().unwrap(), seen.to_owned())
    };
    let run = async |args: &[&str]| {
        let mut command = crate::command::steadfast(args);
        in_environment(&mut command);
        let output = command.output().await.unwrap();
        (output.status.code().unwrap(), crate::files::said(&output))
    };
    let (code, seen) = log_in("SB0009", fact("password")).await;
    assert_eq!((code, user.logins().await), (4, (0, 2)), "{seen}");
    let (code, seen) = log_in(fact("client_id"), fact("password")).await;
    assert_eq!((code, user.logins().await), (0, (1, 2)), "{seen}");
    let (code, (stdout, stderr)) = run(&["doctor"]).await;
    assert!(code == 0 && stdout.contains("fine      token     is accepted"), "{stdout}{stderr}");
    assert_eq!(run(&["auth", "token"]).await.0, 0);
    // The token is its user's alone until he gives it up.
    let (code, seen) = log_in("SB0009", fact("password")).await;
    assert!(code == 1 && seen.contains("`steadfast auth logout` gives the store to whoever"), "{seen}");
    assert_eq!(run(&["auth", "logout"]).await.0, 0);
    let (code, seen) = log_in("SB0009", "other-password").await;
    assert_eq!((code, user.logins().await), (4, (1, 3)), "three without a success of his: {seen}");
    let (code, seen) = log_in(fact("client_id"), fact("password")).await;
    assert_eq!((code, user.logins().await), (4, (1, 3)), "{seen}");
    assert_eq!(run(&["auth", "reset"]).await.0, 0);
    let (code, seen) = log_in(fact("client_id"), fact("password")).await;
    assert_eq!((code, user.logins().await), (0, (2, 3)), "{seen}");
}

/// Regression: after a refusal only the code was asked for again, and a mistyped client id spent both tries.
#[tokio::test]
async fn a_mistyped_client_id_is_corrected_in_the_same_login() {
    let user = User::new().await;
    let fact = |name| user.sandbox.fact(name);
    let code = async || {
        let admin = fact("admin_url").strip_prefix("http://").unwrap();
        let asked = format!(r#"{{"client_id":"{}"}}"#, fact("client_id"));
        let sent = crate::login::post(admin, "/otp", "application/json", &asked).await;
        let sent: serde_json::Value = serde_json::from_str(sent.rsplit("\r\n\r\n").next().unwrap()).unwrap();
        sent["code"].as_str().unwrap().to_owned()
    };
    let shell = format!("{} login --flow otp; echo ended with $?", env!("CARGO_BIN_EXE_steadfast"));
    let mut command = Command::new("script");
    command.args(["-qec", &shell, "/dev/null"]).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command.env("XDG_STATE_HOME", user.file("state")).env("STEADFAST_BASE_URL", fact("base_url"));
    command.env("STEADFAST_API_KEY", fact("api_key"));
    let mut process =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let (mut keys, mut screen) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
    let mut answer = async |prompt: &str, typed: &str| {
        let seen = read_until(&mut screen, prompt).await;
        // The echo is turned off right after the prompt.
        tokio::time::sleep(Duration::from_millis(300)).await;
        keys.write_all(format!("{typed}\n").as_bytes()).await.unwrap();
        seen
    };
    answer("client id: ", "SB0009").await;
    answer("password: ", fact("password")).await;
    answer("one-time code: ", &code().await).await;
    let told = answer("client id (Enter keeps SB0009): ", fact("client_id")).await;
    assert!(told.contains("the code, the password, the client id or the API key is wrong"), "{told}");
    answer("password (Enter keeps it): ", "").await;
    answer("one-time code: ", &code().await).await;
    let seen = read_until(&mut screen, "ended with ").await;
    assert!(seen.contains("logged in until "), "{seen}");
    assert_eq!(user.logins().await, (1, 1), "{seen}");
    assert!(!seen.contains(fact("password")), "{seen}");
}
