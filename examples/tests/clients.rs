//! Runs the clients in other languages, each whose tool is on the machine, and asks the sandbox what became of its order.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, reason = "a client that was not run is told")]

use std::{env, path::Path, process::Output};

use steadfast_sandbox::Sandbox;
use tokio::{net::TcpListener, process::Command};

/// The tools with their clients; true for those that every machine has.
const CLIENTS: [(&[&str], &str, bool); 4] = [
    (&["python3"], "place_order.py", true),
    (&["node"], "place_order.mjs", false),
    (&["go", "run"], "place_order.go", false),
    (&["sh"], "place_order.sh", true),
];

/// Runs a client against the sandbox; `None` if its tool is missing.
async fn run(sandbox: &Sandbox, tool: &[&str], file: &str) -> Option<Output> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let facts = sandbox.credentials_at(listener.local_addr().unwrap());
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients").join(file);
    let mut command = Command::new(tool[0]);
    command.args(&tool[1..]).arg(client).kill_on_drop(true);
    command.env("STEADFAST_BASE_URL", facts.base_url).env("STEADFAST_API_KEY", facts.api_key);
    // A proxy of the developer's machine is not meant.
    command.env("STEADFAST_ACCESS_TOKEN", facts.access_token).env("no_proxy", "*");
    tokio::select! {
        output = command.output() => match output {
            Ok(output) => Some(output),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => panic!("{file}: {error}"),
        },
        served = sandbox.serve(listener, std::future::pending()) => panic!("{served:?}"),
    }
}

#[tokio::test]
async fn a_client_in_any_language_places_an_order_and_says_what_it_knows() {
    for (tool, file, is_everywhere) in CLIENTS {
        for (fault, told, is_placed) in [
            (None, "placed 260000000001", true),
            (Some("auth.401"), "refused: ", false),
            (Some("placement.504-applied"), "unknown, look into the order list: ", true),
            (Some("placement.400-internal-applied"), "unknown, look into the order list: ", true),
            (Some("placement.400-unknown-applied"), "unknown, look into the order list: ", true),
            (Some("placement.400-validation"), "refused: ", false),
            (Some("placement.reset-applied"), "unknown, look into the order list: ", true),
            (Some("placement.200-truncated"), "unknown, look into the order list: ", true),
            (Some("answer.redirect-307"), "unknown, look into the order list: ", true),
        ] {
            let script = fault.map(|name| format!("[[fault]]\nname = '{name}'\nnth = 1")).unwrap_or_default();
            let sandbox = Sandbox::builder().script(&script).unwrap().build().unwrap();
            let Some(output) = run(&sandbox, tool, file).await else {
                assert!(!is_everywhere, "{} is missing", tool[0]);
                println!("{file} was not run: {} is missing", tool[0]);
                break;
            };
            let (out, err) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            let said = if fault.is_none() { &out } else { &err };
            assert!(said.contains(told), "{file} with {fault:?}: {out}{err}");
            assert_eq!(output.status.success(), fault.is_none(), "{file} with {fault:?}: {out}{err}");
            let state = sandbox.state();
            assert_eq!(state.orders.len(), usize::from(is_placed), "{file} with {fault:?}: {out}{err}");
            assert_eq!(state.requests, 1, "{file} with {fault:?} sends once");
            assert!(!err.contains(&sandbox.credentials().access_token), "{file} shows the token: {err}");
        }
    }
}
