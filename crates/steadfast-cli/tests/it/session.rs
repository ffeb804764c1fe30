//! A session with `replay`, for `docs/cli.md`: placed, interrupted, and run again.

use std::{
    fmt::Write,
    process::{Output, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

use crate::{
    command::interrupt,
    files::orders,
    own_gateway::{OwnGateway, listed, placed},
};

const BASE: &str = "https://api.example/tradeapi/v2";

/// Returns what a user types, and what the command answers.
pub(crate) async fn session() -> String {
    let shown = Arc::new(AtomicBool::new(false));
    let is_shown = shown.clone();
    let answer = |number| match number {
        1 => (504, r#"{"s":"error","msg":"Gateway timedout"}"#.to_owned()),
        number => placed(&format!("26000000000{number}"), "Order placed"),
    };
    let list = move |sent: usize| {
        let is_listed = |number: &usize| *number != 1 || is_shown.load(Ordering::SeqCst);
        let rows =
            (0..sent).filter(is_listed).map(|number| listed(&format!("26000000000{number}"), number + 1));
        serde_json::Value::from_iter(rows).to_string()
    };
    let (gateway, file) = (OwnGateway::with_list(answer, list).await, orders(3));
    let run = || {
        let mut command =
            gateway.command(&["replay", "orders.csv", "--yes", "--in-order", "--out", "results.csv"]);
        command.current_dir(file.folder.path()).env("STEADFAST_CLIENT_ID", "SB0001");
        command
    };
    let mut text = format!("$ cat orders.csv\n{}", std::fs::read_to_string(file.path()).unwrap());
    let mut tell = |said: &str, code: Option<i32>| {
        let said = said.replace(&gateway.base_url, BASE);
        text.push_str("$ steadfast replay orders.csv --yes --in-order --out results.csv\n");
        // How long a list takes is another time each time.
        said.lines()
            .filter(|line| !line.starts_with("waiting: "))
            .for_each(|line| writeln!(text, "{line}").unwrap());
        let results = std::fs::read_to_string(file.beside("results.csv")).unwrap();
        write!(text, "$ echo $?\n{}\n$ cat results.csv\n{results}", code.unwrap()).unwrap();
    };

    let mut child = run().stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut stderr, mut said) = (BufReader::new(child.stderr.take().unwrap()), String::new());
    while gateway.orders().len() < 2 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    interrupt(&child).await;
    while !said.contains("interrupted: ") {
        assert!(stderr.read_line(&mut said).await.unwrap() > 0, "{said}");
    }
    shown.store(true, Ordering::SeqCst);
    stderr.read_to_string(&mut said).await.unwrap();
    tell(&said.replace("interrupted: ", "^C\ninterrupted: "), child.wait().await.unwrap().code());
    let Output { status, stderr, .. } = run().output().await.unwrap();
    tell(&String::from_utf8(stderr).unwrap(), status.code());
    text
}
