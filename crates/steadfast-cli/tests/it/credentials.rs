//! C5: one login serves every verb.

use serde_json::Value;

use crate::{
    account::{User, code, stderr, stdout},
    command::steadfast,
    files::orders,
};

#[tokio::test]
async fn c05_what_login_keeps_serves_replay_orders_and_auth_token() {
    let (user, file) = (User::new().await, orders(2));
    // Before any login: nothing is sent, and the message says how to log in.
    for args in [&["replay", file.path(), "--yes"][..], &["auth", "token"]] {
        let output = user.command(args).output().await.unwrap();
        assert_eq!(code(&output), 3, "{args:?}: {}", stderr(&output));
        assert!(
            stderr(&output).contains("`steadfast login` fetches one for all verbs"),
            "{}",
            stderr(&output)
        );
    }
    assert_eq!(code(&user.totp(&["login"]).output().await.unwrap()), 0);
    let logins = user.logins().await;

    // Neither the authenticator's secret nor a token is in the environment.
    let output = user.command(&["replay", file.path(), "--yes"]).output().await.unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let journal = file.beside("orders.csv.journal");
    let output = user.command(&["orders", "verify", "--journal", &journal]).output().await.unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));

    let kept: Value = serde_json::from_slice(&std::fs::read(user.store()).unwrap()).unwrap();
    let kept = kept["token"]["access_token"].as_str().unwrap();
    let output = user.command(&["auth", "token"]).output().await.unwrap();
    assert_eq!((code(&output), stdout(&output)), (0, format!("{kept}\n")), "{}", stderr(&output));
    let output = user.command(&["auth", "token", "--json"]).output().await.unwrap();
    let given: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(given["access_token"], kept);
    assert!(given["expires_at"].is_u64(), "{given}");
    assert_eq!(user.logins().await, logins, "nobody else has logged in");

    // With the secret, a replay uses the same token instead of opening a session of its own.
    let more = orders(2);
    let output = user.totp(&["replay", more.path(), "--yes"]).output().await.unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(user.logins().await, logins, "a token was there");
}

/// The token itself, given where a file's name belongs, was printed.
#[tokio::test]
async fn a_file_of_a_secret_that_is_not_there_is_named_by_its_variable_alone() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("config.toml"), "api-key-file = \"canary-of-the-file\"\n").unwrap();
    std::fs::write(at("empty"), "").unwrap();
    let long = "canary".repeat(100);
    for (variable, value, named) in [
        ("STEADFAST_API_KEY_FILE", "canary", "STEADFAST_API_KEY_FILE names no file"),
        ("STEADFAST_API_KEY_FILE", "/canary+with/a=slash", "STEADFAST_API_KEY_FILE names no file"),
        ("STEADFAST_API_KEY_FILE", &*long, "STEADFAST_API_KEY_FILE names no file"),
        ("STEADFAST_CONFIG", &*at("config.toml"), "config.toml:1: api-key-file names no file"),
        // A name that is shown is that of a file that is there.
        ("STEADFAST_API_KEY_FILE", folder.path().to_str().unwrap(), folder.path().to_str().unwrap()),
    ] {
        let mut command = steadfast(&["auth", "status", "--base-url", "http://127.0.0.1:9/v2"]);
        let output = command.env(variable, value).env("HOME", folder.path()).output().await.unwrap();
        assert_eq!(code(&output), 2, "{}", stderr(&output));
        assert!(stderr(&output).contains(named), "{}", stderr(&output));
        assert!(!stderr(&output).contains("canary") && stdout(&output).is_empty(), "{}", stderr(&output));
    }
}

/// Regression: what a command said of its failure was thrown away.
#[tokio::test]
async fn a_command_that_fails_is_told_with_its_status_and_what_it_says() {
    for (variable, verb) in [
        ("STEADFAST_API_KEY_COMMAND", &["auth", "status"][..]),
        ("STEADFAST_PASSWORD_COMMAND", &["login", "--flow", "otp"]),
        ("STEADFAST_OTP_COMMAND", &["login", "--flow", "otp"]),
    ] {
        let user = User::new().await;
        let mut command = user.command(verb);
        for name in
            ["STEADFAST_API_KEY", "STEADFAST_PASSWORD"].iter().filter(|name| variable.starts_with(**name))
        {
            command.env_remove(name);
        }
        command.env(variable, "echo canary; echo the vault is locked >&2; exit 3");
        let output = command.output().await.unwrap();
        assert_eq!(code(&output), if variable.contains("OTP") { 3 } else { 1 }, "{}", stderr(&output));
        for told in ["the vault is locked\n", &format!("{variable} ended with exit status: 3")] {
            assert!(stderr(&output).contains(told), "{variable}: {}", stderr(&output));
        }
        assert!(!stderr(&output).contains("canary") && stdout(&output).is_empty(), "{}", stderr(&output));
        assert_eq!(user.logins().await, (0, 0));
    }
}

#[tokio::test]
async fn c05_secrets_come_from_files_and_commands_for_replay_as_for_login() {
    let (user, file) = (User::new().await, orders(1));
    let token = user.file("token");
    std::fs::write(&token, format!("{}\n", user.sandbox.fact("access_token"))).unwrap();
    let mut command = steadfast(&["replay", file.path(), "--base-url", user.sandbox.fact("base_url")]);
    command.env_remove("STEADFAST_BASE_URL").env("STEADFAST_ACCESS_TOKEN_FILE", &token);
    command.env("STEADFAST_API_KEY_COMMAND", format!("echo {}", user.sandbox.fact("api_key")));
    let output = command.output().await.unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
}
