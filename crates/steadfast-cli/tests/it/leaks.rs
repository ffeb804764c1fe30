//! No secret reaches the commands' output, their logs, or the programs that they start.

use std::fmt::Write;

use crate::{
    account::User,
    command::{RunningSandbox, steadfast},
};

/// Returns any eight consecutive characters of a secret and of its usual encodings.
fn pieces(secret: &str) -> Vec<String> {
    let mut percent = String::new();
    for byte in secret.bytes() {
        write!(percent, "%{byte:02X}").unwrap();
    }
    let forms = [
        secret.to_owned(),
        secret.chars().rev().collect(),
        percent,
        data_encoding::BASE64.encode(secret.as_bytes()),
        serde_json::to_string(secret).unwrap().trim_matches('"').to_owned(),
    ];
    let mut pieces = Vec::new();
    for form in forms {
        let chars: Vec<char> = form.chars().collect();
        pieces.extend(chars.windows(8).map(|window| window.iter().collect::<String>()));
    }
    pieces
}

#[tokio::test]
async fn no_piece_of_a_secret_is_printed_logged_or_handed_to_a_child() {
    let user = User::new().await;
    let child = user.file("child");
    let otp = format!(
        "(env; tr '\\0' ' ' </proc/$$/cmdline; ps -o args= -p $PPID) >{} 2>&1; echo 123456",
        child.display()
    );
    let (mut seen, mut token) = (String::new(), String::new());
    for args in [
        &["auth", "status"][..],
        &["login"],
        &["login", "--json"],
        &["login", "--flow", "otp", "--force"],
        &["auth", "status", "--json"],
        &["doctor"],
        &["doctor", "--json"],
        &["auth", "reset", "--json"],
        &["auth", "logout"],
        &["login", "--nonsense"],
    ] {
        let mut command = user.totp(args);
        command.env("STEADFAST_OTP_COMMAND", &otp).env("STEADFAST_LOG", "trace");
        let output = command.output().await.unwrap();
        write!(
            seen,
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
        .unwrap();
        if args == ["login"] {
            assert!(output.status.success(), "{seen}");
            let kept = std::fs::read_to_string(user.store()).unwrap();
            let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
            token = kept["token"]["access_token"].as_str().unwrap().to_owned();
        }
    }
    assert!(seen.contains("logged in") && seen.contains("TRACE"), "the log was captured");
    let kept = std::fs::read_to_string(user.store()).unwrap();
    let handed_on = std::fs::read_to_string(&child).unwrap();
    assert!(handed_on.contains("PATH="), "the child ran");

    for name in ["api_key", "password", "totp_secret", "access_token", "client_secret"] {
        for piece in pieces(user.sandbox.fact(name)) {
            assert!(!seen.contains(&piece), "{name} is printed or logged: {piece}");
            assert!(!handed_on.contains(&piece), "{name} reaches a child");
            assert!(!kept.contains(&piece), "{name} is stored");
        }
    }
    // The token itself is in the store and nowhere else.
    assert!(!token.is_empty());
    for piece in pieces(&token) {
        assert!(!seen.contains(&piece), "the token is printed or logged");
        assert!(!handed_on.contains(&piece), "the token reaches a child");
        assert!(!kept.contains(&piece), "a token that was forgotten is still stored");
    }
}

/// The files beside the token: the journal of orders, and the limiter's.
#[tokio::test]
async fn the_journals_hold_no_piece_of_a_secret() {
    let sandbox = RunningSandbox::start(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    let (orders, journal) = (folder.path().join("orders.csv"), folder.path().join("orders.journal"));
    let row = "EQT_INFY_EQ_NSE,1,buy,market,intraday,day,,";
    let header = "symId,qty,side,type,product,validity,limitPrice,trigPrice";
    std::fs::write(&orders, format!("{header}\n{row}\n")).unwrap();
    let mut command = steadfast(&["replay", orders.to_str().unwrap()]);
    command.args(["--base-url", sandbox.fact("base_url"), "--journal", journal.to_str().unwrap()]);
    command.env("STEADFAST_API_KEY", sandbox.fact("api_key"));
    let output = command.env("STEADFAST_ACCESS_TOKEN", sandbox.fact("access_token")).output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let mut kept = Vec::new();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path != orders {
            kept.push((
                path.display().to_string(),
                String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned(),
            ));
        }
    }
    assert!(kept.iter().any(|(_, text)| text.contains("EQT_INFY_EQ_NSE")), "the order was written down");
    for name in ["api_key", "access_token"] {
        for piece in pieces(sandbox.fact(name)) {
            for (path, text) in &kept {
                assert!(!text.contains(&piece), "{name} is in {path}");
            }
        }
    }
}

/// The memory of a process holds its secrets for as long as it runs.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_command_leaves_a_core_dump() {
    let sandbox = RunningSandbox::start(&[]).await;
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", sandbox.pid())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    let words: Vec<&str> = core.split_whitespace().collect();
    assert_eq!(words[4..6], ["0", "0"], "{core}");
}
