use std::process::Stdio;

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

use crate::{
    account::{User, code, stderr, stdout, totp},
    own_gateway::{OwnGateway, documented},
    readme::exchange,
};

#[tokio::test]
async fn a_token_is_fetched_once_kept_shown_forgotten_and_fetched_again() {
    let user = User::new().await;
    let run = async |args: &[&str]| user.totp(args).output().await.unwrap();
    assert_eq!(code(&run(&["auth", "status"]).await), 3);

    let login = run(&["login"]).await;
    assert_eq!(code(&login), 0, "{}", stderr(&login));
    assert!(stdout(&login).starts_with("logged in until "));
    let again: Value = serde_json::from_str(&stdout(&run(&["login", "--json"]).await)).unwrap();
    assert_eq!((&again["schema_version"], &again["result"]), (&1.into(), &"already_logged_in".into()));
    assert_eq!(user.logins().await, (1, 0));

    let status = run(&["auth", "status", "--json"]).await;
    assert_eq!(code(&status), 0);
    let status: Value = serde_json::from_str(&stdout(&status)).unwrap();
    for (name, value) in [("token", Value::from("valid")), ("failures", 0.into()), ("sessions", 1.into())] {
        assert_eq!(status[name], value, "{status}");
    }
    assert_eq!(stdout(&run(&["auth", "logout"]).await), "token forgotten\n");
    assert_eq!(code(&run(&["auth", "status"]).await), 3);
}

#[cfg(unix)]
#[tokio::test]
async fn the_store_is_its_owners_alone_and_one_that_is_not_is_refused_by_name() {
    use std::os::unix::fs::PermissionsExt;
    let user = User::new().await;
    assert_eq!(code(&user.totp(&["login"]).output().await.unwrap()), 0);
    let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(user.store()), 0o600);
    std::fs::set_permissions(user.store(), std::fs::Permissions::from_mode(0o640)).unwrap();
    for args in [&["login"][..], &["auth", "status"], &["auth", "reset"]] {
        let output = user.totp(args).output().await.unwrap();
        assert_eq!(code(&output), 1, "{args:?}");
        assert!(stderr(&output).contains("auth.json is open to others (mode 0640)"), "{}", stderr(&output));
    }
    let doctor = user.totp(&["doctor"]).output().await.unwrap();
    assert_eq!(code(&doctor), 1);
    assert!(stdout(&doctor).contains("bad       store"), "{}", stdout(&doctor));
}

#[tokio::test]
async fn another_accounts_store_is_refused() {
    let user = User::new().await;
    assert_eq!(code(&user.totp(&["login"]).output().await.unwrap()), 0);
    let other = user.totp(&["login"]).env("STEADFAST_CLIENT_ID", "SB0002").output().await.unwrap();
    assert_eq!(code(&other), 1);
    assert!(
        stderr(&other).contains("belongs to another base address, api_key or user"),
        "{}",
        stderr(&other)
    );
    assert_eq!(user.logins().await, (1, 0));
}

#[tokio::test]
async fn what_is_missing_or_unsafe_ends_with_the_code_for_usage_before_anything_is_sent() {
    let user = User::new().await;
    for (without, args, said) in [
        ("STEADFAST_API_KEY", &["login"][..], "STEADFAST_API_KEY is not set"),
        ("STEADFAST_PASSWORD", &["login"], "STEADFAST_PASSWORD is not set"),
        ("STEADFAST_BASE_URL", &["login"], "--base-url"),
        ("-", &["login", "--base-url", "http://api.example/v2"], "clear-text http to another machine"),
        ("-", &["login", "--base-url", "http://127.0.0.1:1/v3"], "does not end in /v2"),
        ("-", &["login", "--password", "x"], "--password"),
        ("-", &["login", "--flow", "browser"], "STEADFAST_CLIENT_SECRET is not set"),
    ] {
        let output = user.totp(args).env_remove(without).output().await.unwrap();
        assert_eq!(code(&output), 2, "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(said), "{args:?}: {}", stderr(&output));
    }
    assert_eq!(user.logins().await, (0, 0));
}

#[tokio::test]
async fn the_doctor_says_what_is_fine_and_ranks_the_causes_of_a_401() {
    let user = User::new().await;
    assert_eq!(code(&user.totp(&["login"]).output().await.unwrap()), 0);
    let fine = user.totp(&["doctor", "--json"]).output().await.unwrap();
    assert_eq!(code(&fine), 0, "{}", stdout(&fine));
    let fine: Value = serde_json::from_str(&stdout(&fine)).unwrap();
    let subjects: Vec<_> =
        fine["findings"].as_array().unwrap().iter().map(|f| f["subject"].as_str().unwrap()).collect();
    assert_eq!(
        subjects,
        [
            "base_url", "api_key", "store", "logins", "sessions", "limits", "address", "service", "clock",
            "token"
        ]
    );

    let detail = |subject: &str| {
        let found = fine["findings"].as_array().unwrap().iter().find(|f| f["subject"] == subject);
        found.unwrap()["detail"].as_str().unwrap().to_owned()
    };
    let store = detail("store").strip_suffix(", its owner's alone").unwrap().to_owned();
    assert_eq!(detail("limits"), format!("spent requests are counted in {store}.limits"));

    let admin = user.sandbox.fact("admin_url").strip_prefix("http://").unwrap();
    post(admin, "/tokens/revoke", "application/json", "{}").await;
    let ill = user.totp(&["doctor"]).output().await.unwrap();
    assert_eq!(code(&ill), 1);
    let said = stdout(&ill);
    assert!(said.contains("bad       token     401"), "{said}");
    assert!(said.contains("1. the session was ended elsewhere"), "{said}");

    let wrong = user.sandbox.fact("base_url").replace("/v2", "/elsewhere/v2");
    let lost = user.totp(&["doctor", "--base-url", &wrong]).output().await.unwrap();
    assert!(stdout(&lost).contains("bad       service   404"), "{}", stdout(&lost));
    assert_eq!(user.logins().await, (1, 0), "it never logs in");
}

/// The causes shown were ones that an accepted token had disproved, and a refused token was reported as
/// logged in.
#[tokio::test]
async fn t23_a_revoked_token_is_named_and_is_no_login() {
    let user = User::new().await;
    let run = async |args: &[&str]| user.command(args).output().await.unwrap();
    let admin = user.sandbox.fact("admin_url").strip_prefix("http://").unwrap();
    // With codes from messages, because an authenticator's code would take up to 30 s.
    let log_in = async || {
        let client = format!(r#"{{"client_id":"{}"}}"#, user.sandbox.fact("client_id"));
        let sent = post(admin, "/otp", "application/json", &client).await;
        let sent: Value = serde_json::from_str(sent.rsplit("\r\n\r\n").next().unwrap()).unwrap();
        let mut command = user.command(&["login", "--flow", "otp"]);
        command.env("STEADFAST_OTP_COMMAND", format!("echo {}", sent["code"].as_str().unwrap()));
        let output = command.output().await.unwrap();
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        (stdout(&output), stderr(&output))
    };
    let revoke = async || post(admin, "/tokens/revoke", "application/json", "{}").await;
    log_in().await;
    revoke().await;
    let (said, noted) = log_in().await;
    assert!(said.starts_with("logged in until") && noted.contains("refuses the token"), "{said}{noted}");
    assert!(log_in().await.0.starts_with("already logged in until"));
    assert_eq!(user.logins().await, (2, 0));

    revoke().await;
    for _ in 0..2 {
        let doctor = run(&["doctor"]).await;
        let said = stdout(&doctor);
        assert_eq!(code(&doctor), 1);
        assert!(said.contains("bad       token     401: is refused, and was accepted before"), "{said}");
        assert!(said.contains("1. the session was ended elsewhere"), "{said}");
        for disproved in ["api_key is wrong", "header is changed", "this machine's address is not on"] {
            assert!(!said.contains(disproved), "{said}");
        }
    }
    let status = run(&["auth", "status"]).await;
    assert_eq!(code(&status), 3);
    assert!(stdout(&status).contains("token     refused"), "{}", stdout(&status));
    assert!(log_in().await.0.starts_with("logged in until"));
    assert_eq!(user.logins().await, (3, 0));
    assert!(stdout(&run(&["doctor"]).await).contains("fine      token     is accepted"));
}

/// Regression: it named a time a quarter of an hour later, and the next login left after half a minute.
#[tokio::test]
async fn t21_a_login_that_was_denied_names_the_time_of_the_next_one() {
    let gateway = OwnGateway::with_answers(|_| documented(403), |_| documented(403)).await;
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("auth.json");
    let run = async |args: &[&str]| {
        let mut command = gateway.command(args);
        command.env_remove("STEADFAST_ACCESS_TOKEN").env("STEADFAST_STORE", &store);
        command.env("STEADFAST_CLIENT_ID", "C1").env("STEADFAST_PASSWORD", "p-0123456789");
        command.env("STEADFAST_OTP_COMMAND", "echo 123456").output().await.unwrap()
    };
    let next = |said: &str| {
        let (_, next) = said.split_once("the next may leave at ").unwrap_or_else(|| panic!("{said}"));
        next.split_once(" GMT").unwrap().0.to_owned()
    };
    let denied = run(&["login", "--flow", "otp"]).await;
    assert_eq!(code(&denied), 3, "{}", stderr(&denied));
    let status = run(&["auth", "status"]).await;
    assert_eq!(next(&stderr(&denied)), next(&stdout(&status)));
    let held_back = run(&["login", "--flow", "otp"]).await;
    assert_eq!(next(&stderr(&denied)), next(&stderr(&held_back)));
}

pub(crate) async fn post(authority: &str, path: &str, kind: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(authority).await.unwrap();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\nContent-Type: {kind}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

fn field<'a>(query: &'a str, name: &str) -> &'a str {
    let start = format!("{name}=");
    query.split(['?', '&']).find_map(|part| part.strip_prefix(start.as_str())).unwrap()
}

const RECEIVED: &str =
    "The code was received. How the login ends is shown where it was started; this page can be closed.\n";

/// The whole flow of §4.2, with the sandbox as the broker's login page and this test as the browser.
#[tokio::test]
async fn spec_4_2_a_login_in_a_browser_survives_forged_hits_and_brings_the_token() {
    let user = User::new().await;
    let fact = |name| user.sandbox.fact(name);
    let mut command = user.command(&["login", "--json"]);
    command.env("STEADFAST_CLIENT_SECRET", fact("client_secret"));
    command.env("STEADFAST_REDIRECT_URI", fact("redirect_uri"));
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(process.stderr.take().unwrap()).lines();
    let address = loop {
        let line = said.next_line().await.unwrap().unwrap();
        if line.starts_with("http") {
            break line;
        }
    };
    let path = address.strip_prefix(&format!("http://{}", user.sandbox.authority())).unwrap();
    let (status, page) = exchange(user.sandbox.authority(), path, "", None).await;
    assert_eq!(status, "200", "{page}");
    let state = field(path, "state");
    assert!(page.contains(state));

    let here = fact("redirect_uri").strip_prefix("http://").unwrap().strip_suffix("/callback").unwrap();
    for (forged, expected) in [
        ("/favicon.ico".to_owned(), "404"),
        ("/callback?code=forged&state=forged".to_owned(), "400"),
        ("/callback?code=forged".to_owned(), "400"),
        ("/callback?error=access_denied".to_owned(), "400"),
        (format!("/other?code=forged&state={state}"), "404"),
    ] {
        assert_eq!(exchange(here, &forged, "", None).await.0, expected, "{forged}");
    }

    let form = format!(
        "api_key={}&state={state}&redirect_uri={}&client_id={}&password={}&twoFa={}",
        fact("api_key"),
        field(path, "redirect_uri"),
        fact("client_id"),
        fact("password"),
        totp(fact("totp_secret"))
    );
    let form_path = page.split("action=\"").nth(1).unwrap().split('"').next().unwrap();
    let redirected =
        post(user.sandbox.authority(), form_path, "application/x-www-form-urlencoded", &form).await;
    let location = redirected
        .lines()
        .find_map(|line| line.to_lowercase().starts_with("location:").then(|| line[9..].trim()))
        .unwrap_or_else(|| panic!("{redirected}"));
    let back = location.strip_prefix(&format!("http://{here}")).unwrap();
    let (status, page) = exchange(here, back, "", None).await;
    assert_eq!((status.as_str(), page.as_str()), ("200", RECEIVED));

    let output = process.wait_with_output().await.unwrap();
    assert_eq!(code(&output), 0);
    let login: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(login["result"], "logged_in");
    assert_eq!(user.logins().await, (1, 0));
    let doctor = user.command(&["doctor"]).output().await.unwrap();
    assert!(stdout(&doctor).contains("fine      token     is accepted"), "{}", stdout(&doctor));
}

#[cfg(unix)]
#[tokio::test]
async fn an_interrupted_login_ends_with_130_and_has_spent_budget() {
    let user = User::new().await;
    let service = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v2", service.local_addr().unwrap());
    let mut command = user.command(&["login", "--flow", "otp", "--base-url", &base]);
    command.env("STEADFAST_OTP_COMMAND", "echo 123456");
    let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // The first connection only tests whether the service can be reached.
    drop(service.accept().await.unwrap());
    let (mut request, _) = service.accept().await.unwrap();
    assert!(request.read(&mut [0; 64]).await.unwrap() > 0);
    crate::command::interrupt(&process).await;
    assert_eq!(process.wait().await.unwrap().code(), Some(130));
    let status = user.command(&["auth", "status", "--json", "--base-url", &base]).output().await.unwrap();
    let status: Value = serde_json::from_str(&stdout(&status)).unwrap();
    assert_eq!(status["failures"], 1);
}

#[tokio::test]
async fn a_code_that_nobody_has_ends_with_the_code_for_a_login_that_is_needed() {
    let user = User::new().await;
    for (command, said) in [("exit 3", "ended with exit status: 3"), ("true", "holds no secret of one line")]
    {
        let mut login = user.command(&["login", "--flow", "otp"]);
        let output = login.env("STEADFAST_OTP_COMMAND", command).output().await.unwrap();
        assert_eq!(code(&output), 3, "{}", stderr(&output));
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    }
    assert_eq!(user.logins().await, (0, 0));
}

/// The pauses of 1, 2, 4 and 8 s pass in real time, so logins are tested in the deep stages only.
#[tokio::test]
async fn a_service_that_does_not_answer_or_limits_has_a_code_of_its_own() {
    let mut user = User::new().await;
    let nobody = "http://127.0.0.1:1/v2";
    let doctor = user.totp(&["doctor", "--base-url", nobody]).output().await.unwrap();
    assert_eq!(code(&doctor), 1);
    assert!(
        stdout(&doctor).contains("bad       service   service cannot be reached at 127.0.0.1:1: "),
        "{}",
        stdout(&doctor)
    );
    if std::env::var_os("STEADFAST_DEEP").is_none() {
        return;
    }
    let login = user.totp(&["login", "--base-url", nobody]).output().await.unwrap();
    assert_eq!(code(&login), 7, "{}", stderr(&login));
    user.sandbox = crate::command::RunningSandbox::start(&["--fault", "quota.storm=1"]).await;
    let mut limited = user.totp(&["login"]);
    let limited = limited.env("STEADFAST_STORE", user.file("other.json")).output().await.unwrap();
    assert_eq!(code(&limited), 5, "{}", stderr(&limited));
}

/// Regression: after a login with a user, a run without it said only that a login is needed.
#[tokio::test]
async fn c03_a_missing_user_is_named_where_his_token_is_looked_for() {
    let gateway = crate::own_gateway::OwnGateway::serve(|_| crate::own_gateway::placed("1", "")).await;
    let file = crate::files::orders(1);
    let mut command = gateway.command(&["replay", file.path(), "--yes"]);
    command.env_remove("STEADFAST_ACCESS_TOKEN").env("HOME", file.beside("home"));
    let output = command.output().await.unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("STEADFAST_CLIENT_ID is not set"), "{stderr}");
}

/// Regression: without a terminal a login waited for half a minute without a word.
#[tokio::test]
async fn a_login_without_a_terminal_says_what_it_waits_for_and_until_when() {
    let user = User::new().await;
    let mut command = user.totp(&["login"]);
    command.env("STEADFAST_PASSWORD", "wrong").stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    // The first code may be waited for, too.
    let line = loop {
        let line = lines.next_line().await.unwrap().unwrap();
        if !line.contains("waits for the next one-time code, until ") {
            break line;
        }
    };
    assert!(
        line.contains("the login was refused (401)") && line.contains("one more refusal stops"),
        "{line}"
    );
    assert!(line.contains("with the next code, at ") && line.contains(" GMT (in "), "{line}");
}

/// Regression: it looked at what it needed itself, so that a login failed with files that it had not mentioned.
#[tokio::test]
async fn doctor_reads_every_file_that_gives_a_secret() {
    let user = User::new().await;
    let (there, blank, missing) = (user.file("there"), user.file("blank"), user.file("missing"));
    std::fs::write(&there, "hunter2\n").unwrap();
    std::fs::write(&blank, "\n").unwrap();
    let mut command = user.command(&["doctor"]);
    command.env_remove("STEADFAST_PASSWORD").env("STEADFAST_PASSWORD_FILE", &there);
    let found = stdout(&command.output().await.unwrap());
    assert!(found.contains("fine      secrets   can be read: STEADFAST_PASSWORD_FILE\n"), "{found}");
    command.env("STEADFAST_TOTP_SECRET_FILE", &missing).env("STEADFAST_CLIENT_SECRET_FILE", &blank);
    let output = command.output().await.unwrap();
    let found = stdout(&output);
    assert_eq!(code(&output), 1, "{found}");
    assert!(
        found.contains("bad       secrets   STEADFAST_TOTP_SECRET_FILE names no file that can be read"),
        "{found}"
    );
    let told = "bad       secrets   STEADFAST_CLIENT_SECRET_FILE holds no secret of one line";
    assert!(found.contains(told) && !found.contains("hunter2"), "{found}");
}
