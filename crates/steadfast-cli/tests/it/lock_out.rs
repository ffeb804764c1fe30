//! Restarts must not lock an account.

use std::process::Stdio;

use futures_util::future::join_all;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::account::{User, code, stderr};

/// Runs a login with a wrong password `runs` times, and kills it as soon as its request has left, like a program that a
/// supervisor keeps restarting. Returns how many requests left.
async fn kill_and_restart(runs: usize, remembers: bool) -> usize {
    let user = User::new().await;
    // The service takes requests and never answers, so that each process is killed during its exchange.
    let service = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v2", service.local_addr().unwrap());
    let mut requests = 0;
    for _ in 0..runs {
        if !remembers {
            // The account has a file, and so has the user.
            for file in std::fs::read_dir(user.store().parent().unwrap()).unwrap().flatten() {
                if file.path().extension().is_some_and(|extension| extension == "json") {
                    std::fs::remove_file(file.path()).unwrap();
                }
            }
        }
        let mut command = user.command(&["login", "--flow", "otp", "--base-url", &base]);
        command.env("STEADFAST_PASSWORD", "wrong").env("STEADFAST_OTP_COMMAND", "echo 123456");
        let mut process = command.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let asked = async {
            // The first connection only tests whether the service can be reached.
            while service.accept().await.unwrap().0.read(&mut [0; 512]).await.unwrap_or(0) == 0 {}
        };
        tokio::select! {
            () = asked => {
                requests += 1;
                // SIGKILL cannot be caught.
                process.kill().await.unwrap();
            }
            ended = process.wait() => assert_eq!(ended.unwrap().code(), Some(4), "latched"),
        }
    }
    requests
}

/// Guards against clients that forget failed logins at a restart.
#[tokio::test]
async fn t13_twenty_kills_and_restarts_with_a_wrong_password_make_at_most_two_attempts() {
    assert!(kill_and_restart(20, true).await <= 2);
    // The planted defect: a client that remembers nothing.
    assert!(kill_and_restart(4, false).await > 2, "the test sees what it is made for");
}

#[tokio::test]
async fn twenty_logins_with_a_wrong_password_are_two_at_the_service() {
    let user = User::new().await;
    for run in 0..20 {
        let mut command = user.command(&["login", "--flow", "otp"]);
        command.env("STEADFAST_PASSWORD", "wrong").env("STEADFAST_OTP_COMMAND", "echo 123456");
        let output = command.output().await.unwrap();
        assert_eq!(code(&output), 4, "{}", stderr(&output));
        // Two logins for one wrong password looked like a bug, so a message explains them; the later runs send none.
        let told = stderr(&output).contains("are tried once more, with the next code, and not a third time");
        assert_eq!(told, run == 0, "{}", stderr(&output));
        // Regression: it named neither the API key nor the client id, which may be the wrong one as well.
        let named = "which of these is wrong: STEADFAST_API_KEY, STEADFAST_CLIENT_ID, STEADFAST_PASSWORD, ";
        assert_eq!(stderr(&output).contains(named), run == 0, "{}", stderr(&output));
        // Regression: no text said how many tries are left, and for how long none is made.
        let left = "0 of 2 tries with these credentials are left, and no login with them is sent, however long you wait";
        assert!(stderr(&output).contains(left), "{}", stderr(&output));
        assert!(stderr(&output).contains("`steadfast login` again; 1 try is left\n"), "{}", stderr(&output));
    }
    assert_eq!(user.logins().await, (0, 2));

    // Corrected credentials have a new budget, without a reset.
    let output = user.totp(&["login"]).output().await.unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(user.logins().await, (1, 2));
}

/// Failures were counted only for the credentials used last: each of the two programs found the other's, and started
/// from zero.
#[tokio::test]
async fn t21_two_programs_with_two_wrong_passwords_make_three_attempts() {
    let user = User::new().await;
    let wrong = async |password: &str| {
        let mut command = user.command(&["login", "--flow", "otp"]);
        command.env("STEADFAST_PASSWORD", password).env("STEADFAST_OTP_COMMAND", "echo 123456");
        command.output().await.unwrap()
    };
    const RESTARTS: usize = 20;
    for _ in 0..RESTARTS {
        let (one, other) = tokio::join!(wrong("wrong"), wrong("also-wrong"));
        assert_eq!((code(&one), code(&other)), (4, 4), "{}{}", stderr(&one), stderr(&other));
    }
    let (_, failed) = user.logins().await;
    println!("figures: restarts={} wrong_logins={failed}", 2 * RESTARTS);
    assert_eq!(user.logins().await, (0, 3), "the account's three");

    // Correct credentials could be the fourth wrong ones, so a person has to confirm them by a reset.
    let right = user.totp(&["login"]).output().await.unwrap();
    assert_eq!(code(&right), 4);
    assert!(stderr(&right).contains("then `steadfast auth reset`"), "{}", stderr(&right));
    assert!(stderr(&right).contains("0 of 3 tries are left"), "{}", stderr(&right));
    assert_eq!(user.logins().await, (0, 3));
    assert_eq!(code(&user.command(&["auth", "reset"]).output().await.unwrap()), 0);
    assert_eq!(code(&user.totp(&["login"]).output().await.unwrap()), 0);
    assert_eq!(user.logins().await, (1, 3));
}

/// Each kind of damage gave back the spent attempts: four wrong logins were made, and finally any number.
#[tokio::test]
async fn t21_a_damaged_count_of_wrong_logins_is_no_count_of_zero() {
    let user = User::new().await;
    let folder = user.store().parent().unwrap().to_owned();
    let wrong = async |password: &str| {
        let mut command = user.command(&["login", "--flow", "otp"]);
        command.env("STEADFAST_PASSWORD", password).env("STEADFAST_OTP_COMMAND", "echo 123456");
        command.output().await.unwrap()
    };
    assert_eq!(code(&wrong("wrong").await), 4);
    let json = |name: &std::path::Path| name.extension().is_some_and(|ending| ending == "json");
    let found = std::fs::read_dir(&folder).unwrap().flatten().map(|file| file.path());
    let files: Vec<_> = found.filter(|file| json(file)).collect();
    assert_eq!(files.len(), 2, "the account's and the user's: {files:?}");
    for file in &files {
        let whole = std::fs::read(file).unwrap();
        let damages = [
            Vec::new(),
            whole[..whole.len() / 2].to_vec(),
            b"\xff\xfe".to_vec(),
            [&whole[..], b"x"].concat(),
        ];
        for damaged in &damages {
            std::fs::write(file, damaged).unwrap();
            for verb in [
                &["login", "--flow", "otp"][..],
                &["auth", "status"],
                &["auth", "token"],
                &["auth", "logout"],
            ] {
                let output = match verb[0] {
                    "login" => wrong("another").await,
                    _ => user.command(verb).output().await.unwrap(),
                };
                // The user's file is independent of the token's.
                if *file != user.store() && matches!(verb[1], "token" | "logout") {
                    continue;
                }
                assert_eq!(code(&output), 1, "{verb:?}: {}", stderr(&output));
                let named = format!("{} is damaged", file.display());
                assert!(stderr(&output).contains(&named), "{verb:?}: {}", stderr(&output));
                assert!(
                    stderr(&output).contains("`steadfast auth reset` begins a new one"),
                    "{}",
                    stderr(&output)
                );
            }
            assert_eq!(&std::fs::read(file).unwrap(), damaged, "it is left as it is");
        }
        std::fs::write(file, whole).unwrap();
    }
    assert_eq!(user.logins().await, (0, 2));

    // The lock-out does not last for ever.
    files.iter().for_each(|file| std::fs::write(file, "").unwrap());
    let orders = crate::files::orders(1);
    let replay = user.totp(&["replay", orders.path(), "--yes"]).output().await.unwrap();
    assert_eq!(code(&replay), 1, "{}", stderr(&replay));
    assert!(stderr(&replay).contains("is damaged"), "{}", stderr(&replay));
    assert!(stderr(&replay).ends_with("; nothing was sent\n"), "{}", stderr(&replay));
    assert_eq!(code(&user.command(&["auth", "reset"]).output().await.unwrap()), 0);
    let output = user.totp(&["login"]).output().await.unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(user.logins().await, (1, 2));
}

/// Each spelling of the address had a file of its own, and so two wrong logins each.
#[tokio::test]
async fn t21_other_spellings_of_address_and_user_are_no_other_account() {
    let user = User::new().await;
    let (base, client) = (user.sandbox.fact("base_url"), user.sandbox.fact("client_id"));
    let port = base.strip_prefix("http://127.0.0.1:").unwrap();
    let (localhost, slash) = (format!("http://LocalHost:{port}"), format!("{base}/"));
    let wrong = async |base: &str, client: &str| {
        let mut command = user.command(&["login", "--flow", "otp", "--base-url", base]);
        command.env_remove("STEADFAST_STORE").env("XDG_STATE_HOME", user.file("state"));
        command.env("STEADFAST_CLIENT_ID", client).env("STEADFAST_PASSWORD", "wrong");
        code(&command.env("STEADFAST_OTP_COMMAND", "echo 123456").output().await.unwrap())
    };
    let all = async || {
        for base in [base, &localhost, &slash] {
            for client in [client, &client.to_lowercase(), &client.to_uppercase()] {
                assert_eq!(wrong(base, client).await, 4, "{base} {client}");
            }
        }
    };
    all().await;
    assert_eq!(user.logins().await, (0, 2));

    // The count of an older version's file, under its own spelling, is kept.
    let key = steadfast::auth::ApiKey::new(user.sandbox.fact("api_key")).unwrap();
    let identity = steadfast::auth::Identity::new(base, &key, client);
    let file = |label: &str| user.file("state").join("steadfast").join(format!("auth-{label}.json"));
    let (kept, older) = (file(&identity.label()), file(&identity.older_label().unwrap()));
    std::fs::rename(&kept, &older).unwrap();
    all().await;
    assert_eq!(user.logins().await, (0, 2));
    assert!(kept.exists() && !older.exists());
}

/// Each API key had its own file and allowed two wrong logins of the same user; the service locks at the fifth.
#[tokio::test]
async fn t21_three_api_keys_of_one_user_make_three_attempts() {
    let user = User::new().await;
    let own = user.sandbox.fact("api_key");
    let command = |key: &str, args: &[&str]| {
        let mut command = user.command(args);
        command.env_remove("STEADFAST_STORE").env("XDG_STATE_HOME", user.file("state"));
        command.env("STEADFAST_API_KEY", key).env("STEADFAST_PASSWORD", "wrong");
        command.env("STEADFAST_OTP_COMMAND", "echo 123456");
        command
    };
    // The other two keys leave no attempt for the key that the sandbox knows; its tally has no wrong keys.
    for key in ["another-key-0000000001", "another-key-0000000002", own].repeat(2) {
        let output = command(key, &["login", "--flow", "otp"]).output().await.unwrap();
        assert_eq!(code(&output), 4, "{key}: {}", stderr(&output));
    }
    assert_eq!(user.logins().await, (0, 0));
    // With any of the keys, the user's count is shown and can be reset.
    let status = command("another-key-0000000003", &["auth", "status", "--json"]).output().await.unwrap();
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!((&status["failures"], &status["latched"]), (&3.into(), &true.into()));
    let reset = command("another-key-0000000003", &["auth", "reset"]).output().await.unwrap();
    assert_eq!(code(&reset), 0, "{}", stderr(&reset));
    let mut right = user.totp(&["login"]);
    right.env_remove("STEADFAST_STORE").env("XDG_STATE_HOME", user.file("state"));
    let right = right.output().await.unwrap();
    assert_eq!(code(&right), 0, "{}", stderr(&right));
    assert_eq!(user.logins().await, (1, 0));
}

/// Shifts the store's times as if this much time had passed.
fn age(user: &User, seconds: i64) {
    for file in std::fs::read_dir(user.store().parent().unwrap()).unwrap().flatten() {
        if file.path().extension().is_some_and(|extension| extension == "json") {
            let mut record: serde_json::Value =
                serde_json::from_slice(&std::fs::read(file.path()).unwrap()).unwrap();
            for stamp in record["unknown_ms"].as_array_mut().unwrap() {
                *stamp = (stamp.as_i64().unwrap() - seconds * 1_000).into();
            }
            std::fs::write(file.path(), record.to_string()).unwrap();
        }
    }
}

/// A proxy turned each 401 into a page and so hid all wrong logins: none of them counted, and three left each hour.
#[tokio::test]
async fn t21_logins_that_a_proxy_answers_leave_ever_less_often() {
    for answer in ["500 Internal Server Error", "302 Found", "403 Forbidden", "200 OK"] {
        let user = User::new().await;
        let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/v2", proxy.local_addr().unwrap());
        let sent = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counted = std::sync::Arc::clone(&sent);
        let page = format!("HTTP/1.1 {answer}\r\ncontent-length: 6\r\nconnection: close\r\n\r\n<html>");
        let serving = tokio::spawn(async move {
            loop {
                let (mut connection, _) = proxy.accept().await.unwrap();
                let (page, counted) = (page.clone(), std::sync::Arc::clone(&counted));
                tokio::spawn(async move {
                    let read = connection.read(&mut [0; 4_096]).await.unwrap_or(0);
                    // The first connection only tests whether the service can be reached.
                    if read > 0 {
                        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        let _ = connection.write_all(page.as_bytes()).await;
                        let _ = connection.shutdown().await;
                    }
                });
            }
        });
        let mut said = String::new();
        for (waits, left) in [(0, 1), (0, 1), (901, 2), (1_800, 2), (1_900, 3), (14_000, 3), (500, 4)] {
            age(&user, waits);
            let mut command = user.command(&["login", "--flow", "otp", "--base-url", &base]);
            command.env("STEADFAST_PASSWORD", "wrong").env("STEADFAST_OTP_COMMAND", "echo 123456");
            let output = command.output().await.unwrap();
            said = stderr(&output);
            assert_ne!(code(&output), 0, "{said}");
            assert_ne!(code(&output), 4, "no latch: {said}");
            assert_eq!(sent.load(std::sync::atomic::Ordering::Relaxed), left, "{answer}: {said}");
        }
        assert!(said.contains("4 logins of unknown end"), "{said}");
        assert!(said.contains("the next may leave at"), "{said}");
        let status = user.command(&["auth", "status", "--base-url", &base]).output().await.unwrap();
        let status = String::from_utf8(status.stdout).unwrap();
        assert!(status.contains("unknown   4 logins of unknown end"), "{status}");
        assert!(status.contains("; the next may leave at"), "{status}");
        let status = user.command(&["auth", "status", "--json", "--base-url", &base]).output().await.unwrap();
        let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
        assert_eq!((&status["unknown_ends"], &status["failures"]), (&4.into(), &0.into()));
        assert!(status["next_login_at"].is_u64() && status["unknown_why"].is_string(), "{status}");
        serving.abort();
    }
}

#[tokio::test]
async fn a_reset_allows_the_same_credentials_again() {
    let user = User::new().await;
    let wrong = async || {
        let mut command = user.command(&["login", "--flow", "otp"]);
        command.env("STEADFAST_PASSWORD", "wrong").env("STEADFAST_OTP_COMMAND", "echo 123456");
        code(&command.output().await.unwrap())
    };
    assert_eq!((wrong().await, wrong().await), (4, 4));
    assert_eq!(user.logins().await, (0, 2));
    let status = user.command(&["auth", "status"]).output().await.unwrap();
    assert_eq!(code(&status), 4);
    assert_eq!(code(&user.command(&["auth", "reset"]).output().await.unwrap()), 0);
    assert_eq!(code(&user.command(&["auth", "status"]).output().await.unwrap()), 3);
    assert_eq!(wrong().await, 4);
    assert_eq!(user.logins().await, (0, 4));
}

/// Starts eight logins at once, with one shared store or a store each. Returns the service's counts.
async fn eight_cold_starts(share: bool) -> (u64, u64) {
    let user = User::new().await;
    let starts = (0..8).map(|number| {
        let mut command = user.totp(&["login", "--quiet"]);
        if !share {
            command.env("STEADFAST_STORE", user.file(&format!("{number}/auth.json")));
        }
        async move {
            let run = command.output();
            // Logins that meet a used code wait for the next one; the others are enough for this test.
            tokio::time::timeout(std::time::Duration::from_secs(20), run).await.map(|output| output.unwrap())
        }
    });
    if share {
        for output in join_all(starts).await {
            let output = output.unwrap();
            assert_eq!(code(&output), 0, "{}", stderr(&output));
        }
    } else {
        let seen = async {
            loop {
                let (succeeded, failed) = user.logins().await;
                if succeeded + failed > 1 {
                    return;
                }
            }
        };
        tokio::select! {
            () = seen => {}
            _ = join_all(starts) => {}
        }
    }
    user.logins().await
}

/// Guards against clients of which every process logs in.
#[tokio::test]
async fn t14_eight_processes_that_start_cold_make_one_login() {
    assert_eq!(eight_cold_starts(true).await, (1, 0));
    // The planted defect: processes that share nothing.
    let (succeeded, failed) = eight_cold_starts(false).await;
    assert!(succeeded + failed > 1, "the test sees what it is made for");
}

/// Regression: a mistyped STEADFAST_CLIENT_ID had the file of STEADFAST_STORE for good, although no login of its succeeded.
#[tokio::test]
async fn t21_a_store_without_a_token_is_given_free_by_hand() {
    for (verb, left) in [("logout", 1), ("reset", 2)] {
        let user = User::new().await;
        let log_in = async |client_id: &str| {
            let mut command = user.command(&["login", "--flow", "otp"]);
            command.env("STEADFAST_CLIENT_ID", client_id).env("STEADFAST_OTP_COMMAND", "echo 123456");
            command.output().await.unwrap()
        };
        let right = user.sandbox.fact("client_id");
        assert_eq!((code(&log_in("SB0009").await), user.logins().await), (4, (0, 2)));
        let barred = log_in(right).await;
        assert_eq!((code(&barred), user.logins().await), (1, (0, 2)));
        let way_out = "`steadfast auth logout` gives the store to whoever logs in next";
        assert!(stderr(&barred).contains(way_out), "{}", stderr(&barred));
        assert_eq!(code(&user.command(&["auth", verb]).output().await.unwrap()), 0);
        // The wrong logins count on without a reset.
        assert_eq!((code(&log_in(right).await), user.logins().await), (4, (0, 2 + left)), "{verb}");
    }
}
