#![cfg(unix)]

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

use crate::command::{RunningSandbox, interrupt, steadfast};

/// No early order of this seed is sent again or late, so that draining is quick.
const SEED: &str = "1462";

#[tokio::test]
async fn an_interruption_drains_what_is_in_doubt_and_no_secret_is_logged() {
    let mut command = steadfast(&["demo", "--seed", SEED, "--json"]);
    command.env("STEADFAST_LOG", "trace").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    // The login may wait for a fresh code first. One of the orders in doubt in the first wave is then found.
    while !said.contains("order in doubt recovered") {
        assert!(stderr.read_line(&mut said).await.unwrap() > 0, "ended before an order was found: {said}");
    }
    interrupt(&child).await;
    stderr.read_to_string(&mut said).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(output.stdout.is_empty(), "a run that was cut short has no result");
    assert!(said.contains("interrupted; 0 orders in doubt, "), "{said}");
    assert!(!said.contains("in doubt, 0 followed to their end"), "no order was in doubt: {said}");

    let sandbox = RunningSandbox::start(&["--seed", SEED]).await;
    for name in ["api_key", "access_token", "password", "totp_secret", "client_secret"] {
        assert!(!said.contains(sandbox.fact(name)), "{name} is in the log");
    }
}
