use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};

use crate::command::{RunningSandbox, output, steadfast};

#[tokio::test]
async fn start_up_prints_every_fact_that_a_client_needs_as_one_line_of_json() {
    let sandbox = RunningSandbox::start(&[]).await;
    for name in [
        "base_url",
        "admin_url",
        "api_key",
        "client_id",
        "client_secret",
        "redirect_uri",
        "password",
        "totp_secret",
        "access_token",
    ] {
        assert!(!sandbox.fact(name).is_empty(), "{name}");
    }
    assert!(sandbox.fact("base_url").starts_with("http://127.0.0.1:"));
}

#[tokio::test]
async fn the_same_seed_gives_the_same_credentials() {
    let (first, second) =
        (RunningSandbox::start(&["--seed", "5"]).await, RunningSandbox::start(&["--seed", "5"]).await);
    assert_eq!(first.fact("access_token"), second.fact("access_token"));
    let other = RunningSandbox::start(&["--seed", "6"]).await;
    assert_ne!(first.fact("access_token"), other.fact("access_token"));
}

#[tokio::test]
async fn bad_values_are_named_and_end_with_the_code_for_usage() {
    for (args, named) in [
        (&["sandbox", "--fault", "list.nothing=0.1"][..], "no fault is named \"list.nothing\""),
        (&["sandbox", "--fault", "list.empty"], "a fault is NAME=RATE"),
        (&["sandbox", "--fault", "list.empty=much"], "rate of list.empty is not a number"),
        (&["sandbox", "--fault", "list.empty=1.1"], "rate of list.empty is not between 0 and 1"),
        (&["sandbox", "--enforcer", "otp"], "an enforcer is ZONE=KIND"),
        (&["sandbox", "--enforcer", "opt=fixed"], "no zone is named \"opt\""),
        (&["sandbox", "--enforcer", "otp=fix"], "unknown enforcement \"fix\""),
        (&["sandbox", "--interpret", "refused"], "a reading is AXIS=VALUE"),
        (&["sandbox", "--interpret", "colour=red"], "no axis is named \"colour\""),
        (&["sandbox", "--interpret", "refused=maybe"], "refused is one of free, counted"),
        (&["sandbox", "--script", "no-such-file.toml"], "no-such-file.toml"),
        (&["sandbox", "--script", "/dev/null"], "/dev/null: it holds no fault and no reading"),
        (&["sandbox", "--port", "99999"], "--port"),
        (&["sandbox", "--cors", "localhost:3000"], "an origin is scheme://host[:port], or * for all"),
        (&["sandbxo"], "sandbox"),
    ] {
        let output = output(args).await;
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(named), "{args:?}: {said}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[tokio::test]
async fn every_fault_and_axis_is_listed_for_people_and_for_programs() {
    let text = output(&["sandbox", "--list-faults"]).await;
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    let json = output(&["sandbox", "--list-faults", "--json"]).await;
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("one line of JSON");
    let faults = json["faults"].as_array().expect("a list");
    assert!(faults.len() > 150, "{}", faults.len());
    for fault in faults {
        let name = fault["name"].as_str().expect("a name");
        assert!(text.contains(&format!("  {name} ")), "{name}");
    }
    assert_eq!(json["axes"].as_array().map(Vec::len), Some(21));
    assert!(json["catalogue"].as_array().is_some_and(|items| {
        items.iter().all(|item| item["covered"].as_array().is_some_and(|covers| !covers.is_empty()))
    }));
}

#[tokio::test]
async fn a_reading_is_in_force_from_the_start() {
    let sandbox = RunningSandbox::start(&["--interpret", "no-data=404"]).await;
    let url = format!("{}/api/oms/orders", sandbox.fact("base_url"));
    let bearer = format!("Bearer {}:{}", sandbox.fact("api_key"), sandbox.fact("access_token"));
    let request = http::Request::get(url).header("authorization", bearer);
    let request = request.body(http_body_util::Empty::<bytes::Bytes>::new()).expect("a request");
    let client =
        hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http();
    assert_eq!(client.request(request).await.expect("an answer").status(), 404);
}

#[tokio::test]
async fn a_log_and_a_web_page_are_served_only_if_asked_for() {
    let mut command =
        steadfast(&["sandbox", "--port", "0", "--json", "--log", "--cors", "http://localhost:3000"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut facts = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut facts).await.unwrap();
    let facts: serde_json::Value = serde_json::from_str(&facts).unwrap();
    let url = format!("{}/api/oms/orders?orderId=7", facts["base_url"].as_str().unwrap());
    let bearer = format!("Bearer {}:no-such-token", facts["api_key"].as_str().unwrap());
    let request =
        http::Request::get(url).header("authorization", bearer).header("origin", "http://localhost:3000");
    let request = request.body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
    let client =
        hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http();
    let answer = client.request(request).await.unwrap();
    assert_eq!(answer.headers()["access-control-allow-origin"], "http://localhost:3000");
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).await.unwrap();
    assert!(line.ends_with(" GET /api/oms/orders orderId=7 -> 401\n"), "{line}");
}
