//! An interrupted replay follows its orders to the end; a second signal ends it at once.
#![cfg(unix)]

use std::{
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::{Child, ChildStderr, ChildStdout, Command},
};

use crate::{
    command::{RunningSandbox, interrupt, signal, steadfast},
    files::{forget, orders, said},
    own_gateway::{OwnGateway, documented, listed, placed},
    readme::exchange,
};

/// A running replay, with the first row's result read.
struct Replay {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: BufReader<ChildStderr>,
    results: String,
    said: String,
    journal: String,
}

/// How a replay ended: exit code, results and messages.
struct Ended {
    code: Option<i32>,
    results: String,
    said: String,
}

impl Replay {
    /// Starts to place a file at `sandbox`, and waits until the first order is placed; all others follow later.
    async fn begun(file: &str, sandbox: &RunningSandbox) -> Self {
        // A journal of another run belongs to another sandbox.
        let port = sandbox.authority().rsplit(':').next().unwrap();
        let journal = format!("{}/{file}-{port}.journal", env!("CARGO_TARGET_TMPDIR"));
        forget(&journal);
        let mut command = Self::command(file, sandbox, &journal);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut replay = Self { child, stdout, stderr, results: String::new(), said: String::new(), journal };
        while !replay.results.contains(",placed,") {
            let read = replay.stdout.read_line(&mut replay.results).await.unwrap();
            assert!(read > 0, "ended before its first order: {}", replay.results);
        }
        replay
    }

    fn command(file: &str, sandbox: &RunningSandbox, journal: &str) -> Command {
        // A copy for this run, because of the note beside it.
        let data = format!("{}/../../examples/data/{file}", env!("CARGO_MANIFEST_DIR"));
        let own = journal.replace(".journal", ".csv");
        std::fs::copy(data, &own).unwrap();
        let mut command =
            steadfast(&["replay", &own, "--base-url", sandbox.fact("base_url"), "--journal", journal]);
        command.env("STEADFAST_API_KEY", sandbox.fact("api_key"));
        command.env("STEADFAST_ACCESS_TOKEN", sandbox.fact("access_token"));
        command
    }

    /// Interrupts it, and waits for the message.
    async fn interrupted(self) -> Self {
        self.stopped_by("-INT").await
    }

    async fn stopped_by(mut self, by: &str) -> Self {
        signal(&self.child, by).await;
        while !self.said.contains("interrupted: nothing more is sent") {
            let read = self.stderr.read_line(&mut self.said).await.unwrap();
            assert!(read > 0, "ended without a word of the interruption: {}", self.said);
        }
        self
    }

    async fn ended(mut self) -> Ended {
        let Self { stdout, stderr, results, said, .. } = &mut self;
        let (out, err) = tokio::join!(stdout.read_to_string(results), stderr.read_to_string(said));
        out.and(err).unwrap();
        let code = self.child.wait().await.unwrap().code();
        Ended { code, results: self.results, said: self.said }
    }
}

/// Starts a sandbox whose first order exists, although its answer is a 504.
async fn sandbox(name: &str) -> RunningSandbox {
    let script = format!("{}/{name}.toml", env!("CARGO_TARGET_TMPDIR"));
    let fault = "[[fault]]\nname = 'placement.504-applied'\nnth = 1\nanswer_after_ms = 500\n";
    std::fs::write(&script, fault).unwrap();
    RunningSandbox::start(&["--script", &script]).await
}

/// Returns the paths of all requests that the sandbox has seen, in their order.
async fn paths_at(sandbox: &RunningSandbox) -> Vec<String> {
    let admin = sandbox.fact("admin_url").strip_prefix("http://").unwrap();
    let (_, state) = exchange(admin, "/state", "", None).await;
    let state: serde_json::Value = serde_json::from_str(&state).unwrap();
    let arrivals = state["arrivals"].as_array().unwrap();
    arrivals.iter().map(|arrival| arrival["path"].as_str().unwrap().to_owned()).collect()
}

fn orders_among(paths: &[String]) -> usize {
    paths.iter().filter(|path| path.ends_with("/place-order")).count()
}

/// Returns how many place-order requests the sandbox has seen, whatever its answers.
async fn sends_to(sandbox: &RunningSandbox) -> usize {
    orders_among(&paths_at(sandbox).await)
}

#[tokio::test]
async fn c02_nothing_leaves_after_the_first_ctrl_c_and_every_row_is_told() {
    let sandbox = sandbox("interrupted-40").await;
    let replay = Replay::begun("orders.csv", &sandbox).await.interrupted().await;
    // Orders that had left before the message arrive before this request. Without a halt, fifty more would follow it.
    exchange(sandbox.authority(), "/v2/after-ctrl-c", "", None).await;
    let Ended { code, results, said } = replay.ended().await;
    assert_eq!(code, Some(130), "{said}");
    let paths = paths_at(&sandbox).await;
    let mark = paths.iter().position(|path| path.ends_with("/after-ctrl-c")).unwrap();
    let (sent, further) = (orders_among(&paths[..mark]), orders_among(&paths[mark..]));
    println!("figures: waiting_rows={} further_sends={further}", 1_040 - sent);
    assert_eq!(further, 0, "orders left after Ctrl-C");
    assert_eq!(results.lines().count(), 1_041, "each row has a result");
    let with = |status: &str| results.lines().filter(|row| row.split(',').nth(1) == Some(status)).count();
    assert_eq!((with("placed"), with("not sent")), (sent, 1_040 - sent), "{said}");
    assert_eq!(results.matches(",recovered,").count(), 1, "the order in doubt: {results}");
    assert!(said.contains(&format!("\nnot sent: {}\n", 1_040 - sent)), "{said}");
    assert_eq!(
        said.lines().last(),
        Some(&*format!(
            "placed {sent} ({sent} now, 0 before) refused 0 unresolved 0 not sent {}",
            1_040 - sent
        )),
        "{said}"
    );
}

#[tokio::test]
async fn c02_a_closed_terminal_is_told_like_ctrl_c() {
    let sandbox = sandbox("hung-up").await;
    let replay = Replay::begun("orders-40.csv", &sandbox).await.stopped_by("-HUP").await;
    let Ended { code, results, said } = replay.ended().await;
    assert_eq!(code, Some(130), "{said}");
    assert_eq!(results.lines().count(), 41, "each row has a result: {results}");
    assert!(said.contains("\nnot sent: "), "{said}");
}

#[tokio::test]
async fn c02_a_run_under_nohup_goes_on_when_its_terminal_is_closed() {
    let sandbox = RunningSandbox::start(&[]).await;
    let port = sandbox.authority().rsplit(':').next().unwrap();
    let journal = format!("{}/nohup-{port}.journal", env!("CARGO_TARGET_TMPDIR"));
    forget(&journal);
    let direct = Replay::command("orders-40.csv", &sandbox, &journal);
    let direct = direct.as_std();
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(direct.get_program()).args(direct.get_args());
    command.envs(direct.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut results = String::new();
    while !results.contains(",placed,") {
        assert!(stdout.read_line(&mut results).await.unwrap() > 0, "{results}");
    }
    signal(&child, "-HUP").await;
    stdout.read_to_string(&mut results).await.unwrap();
    assert_eq!((child.wait().await.unwrap().code(), results.matches(",placed,").count()), (Some(0), 40));
}

#[tokio::test]
async fn c02_rows_that_were_not_sent_are_placed_by_the_next_run() {
    let sandbox = sandbox("interrupted-again").await;
    let replay = Replay::begun("orders-40.csv", &sandbox).await;
    let journal = replay.journal.clone();
    let Ended { said, .. } = replay.interrupted().await.ended().await;
    assert!(said.contains("\nnot sent: "), "{said}");
    let mut command = steadfast(&["orders", "unresolved", "--journal", &journal]);
    let output = command.output().await.unwrap();
    assert_eq!(output.status.code(), Some(0), "no row that was not sent is in doubt: {output:?}");
    let output = Replay::command("orders-40.csv", &sandbox, &journal).output().await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(sends_to(&sandbox).await, 40, "each order is sent once");
}

#[tokio::test]
async fn c02_a_second_ctrl_c_leaves_at_once_and_names_what_may_be_in_doubt() {
    let sandbox = sandbox("interrupted-twice").await;
    let replay = Replay::begun("orders-40.csv", &sandbox).await.interrupted().await;
    let journal = replay.journal.clone();
    interrupt(&replay.child).await;
    let Ended { code, results, said } = replay.ended().await;
    let look =
        format!("interrupted; orders may be in doubt: see `steadfast orders unresolved --journal {journal}`");
    // If every order was answered by then, the first Ctrl-C ended the run.
    if said.contains("interrupted; ") {
        assert!(said.contains(&look), "{said}");
        // Regression: only orders in doubt were named, and placed rows that no list has shown were not.
        let rows = results.matches(",event: not looked for,").count();
        let unlooked =
            format!("; no last list was read for the rows that were placed or refused now: {rows};");
        assert!(said.contains(&unlooked), "{said}");
    }
    let open = results.matches(",unresolved,").count() + results.matches(",event: not looked for,").count();
    assert_eq!(code, Some(if open > 0 { 6 } else { 130 }), "{said}");
    let ends = results.lines().filter(|row| !row.contains(",event: ")).count();
    assert_eq!(ends, 41, "each row has a result: {results}");
}

#[tokio::test]
async fn a_long_wait_says_what_for_and_until_when() {
    let gateway = OwnGateway::serve(|_| (504, String::new())).await;
    let file = orders(1);
    let mut command = gateway.command(&["replay", file.path(), "--yes"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut waits = 0;
    // Without a terminal no message came as long as the search went on. An interrupt begins a new wait.
    let told = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.starts_with("waiting: orders in doubt, which are looked for in the order list: 1; ") {
                assert!(
                    line.contains(" s at most, until ") && line.contains(" GMT; then a last look, "),
                    "{line}"
                );
                waits += 1;
                if waits == 2 {
                    return;
                }
                interrupt(&child).await;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), told).await.unwrap();
    assert_eq!(waits, 2);
}

#[tokio::test]
async fn a_row_in_doubt_says_that_the_token_is_refused() {
    // Deep only: the search runs to its end.
    if std::env::var_os("STEADFAST_DEEP").is_none() {
        return;
    }
    // The token dies after the first order, whose answer the run does not wait for.
    let list = |sent: usize| match sent {
        0 => (200, r#"{"s":"ok","d":[]}"#.to_owned()),
        _ => (401, r#"{"s":"error","msg":"Invalid token"}"#.to_owned()),
    };
    let gateway = OwnGateway::with_answers(|_| (504, String::new()), list).await;
    let file = orders(1);
    let mut child = gateway.command(&["replay", file.path(), "--yes"]).spawn().unwrap();
    while gateway.orders().is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    child.kill().await.unwrap();
    let output = gateway.command(&["replay", file.path(), "--yes"]).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert_eq!(output.status.code(), Some(6), "{stdout}{stderr}");
    assert!(
        stdout.contains("401 to the token, with which the order list cannot be read"),
        "{stdout}{stderr}"
    );
}

/// Rows that had never left, or were answered, were reported as in doubt.
#[tokio::test]
async fn c02_a_run_that_is_left_tells_what_its_journal_tells() {
    // The first order stays in doubt, and those of the same instrument wait for it.
    let gateway = OwnGateway::serve(|number| match number {
        0 => (504, String::new()),
        number => placed(&format!("26{number}"), "Order placed"),
    })
    .await;
    let file = orders(30);
    let mut command = gateway.command(&["replay", file.path(), "--yes"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while gateway.orders().is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    interrupt(&child).await;
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut told = String::new();
    while !told.contains("interrupted: nothing more is sent") {
        assert!(stderr.read_line(&mut told).await.unwrap() > 0, "{told}");
    }
    interrupt(&child).await;
    let output = child.wait_with_output().await.unwrap();
    let results = String::from_utf8(output.stdout).unwrap();
    let ends = results.lines().filter(|row| !row.contains(",event: "));
    assert_eq!(ends.count(), 31, "each row has a result: {results}");
    let journal = file.beside("orders.csv.journal");
    let list =
        gateway.command(&["orders", "unresolved", "--json", "--journal", &journal]).output().await.unwrap();
    let list: serde_json::Value = serde_json::from_slice(&list.stdout).unwrap();
    let mut open: Vec<&str> =
        list.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    open.sort_unstable();
    let unresolved = results.lines().filter(|row| row.contains(",unresolved,"));
    let mut unresolved: Vec<String> =
        unresolved.map(|row| format!("line-{}", row.split(',').next().unwrap())).collect();
    unresolved.sort_unstable();
    assert_eq!(unresolved, open, "{results}");
    assert!(!open.is_empty(), "{results}");
}

/// Returns a gateway that refuses the first order, whose list is empty and counts its answers from there.
async fn refusing(status: u16) -> OwnGateway {
    let answer = move |number| match number {
        0 => documented(status),
        number => placed(&format!("26{number}"), "Order placed"),
    };
    OwnGateway::serve(answer).await
}

/// Places `file`, and interrupts the run `times` once its first order was refused.
async fn interrupted_after_refusal(gateway: &OwnGateway, file: &str, times: usize) -> Ended {
    let mut command = gateway.command(&["replay", file, "--yes"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while gateway.orders().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // The answer has arrived, and no list can confirm it yet.
    tokio::time::sleep(Duration::from_millis(150)).await;
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    interrupt(&child).await;
    while !said.contains("interrupted: nothing more is sent") {
        assert!(stderr.read_line(&mut said).await.unwrap() > 0, "{said}");
    }
    if times > 1 {
        interrupt(&child).await;
    }
    let (output, rest) = tokio::join!(child.wait_with_output(), async {
        let mut rest = String::new();
        stderr.read_to_string(&mut rest).await.unwrap();
        rest
    });
    let output = output.unwrap();
    let results = String::from_utf8(output.stdout).unwrap();
    Ended { code: output.status.code(), results, said: said + &rest }
}

/// Regression: "not sent: interrupted before it left" was told of an order that had left.
#[tokio::test]
async fn c02_an_order_that_was_refused_before_the_interruption_is_not_called_unsent() {
    let gateway = refusing(429).await;
    let file = orders(1);
    let ended = interrupted_after_refusal(&gateway, file.path(), 1).await;
    assert!(ended.results.contains("\n2,not executed,,,"), "{}{}", ended.results, ended.said);
    assert_eq!(ended.code, Some(130), "{}{}", ended.results, ended.said);
    assert_eq!(gateway.orders().len(), 1);

    let output = gateway.command(&["replay", file.path(), "--yes"]).output().await.unwrap();
    let (stdout, stderr) = said(&output);
    assert!(stdout.contains("2,placed,261,"), "{stdout}{stderr}");
    assert!(stderr.contains("placed 1 (1 now, 0 before)"), "{stderr}");
}

/// Regression: "not executed" was told of an order whose refusal no list had confirmed, and nothing named it any more.
#[tokio::test]
async fn c02_an_order_whose_refusal_no_list_has_confirmed_is_in_doubt() {
    for status in [429, 401] {
        let gateway = refusing(status).await;
        let file = orders(1);
        let ended = interrupted_after_refusal(&gateway, file.path(), 2).await;
        let rows: Vec<_> = ended.results.lines().filter(|row| row.starts_with("2,")).collect();
        assert!(rows.last().unwrap().starts_with("2,unresolved,,,\"interrupted: "), "{rows:?}{}", ended.said);
        assert_eq!(ended.code, Some(6), "{}", ended.said);
        let journal = file.beside("orders.csv.journal");
        let unresolved = async || {
            let args = ["orders", "unresolved", "--journal", &journal];
            let output = gateway.command(&args).output().await.unwrap();
            (output.status.code(), said(&output))
        };
        let (code, (stdout, stderr)) = unresolved().await;
        assert_eq!(code, Some(6), "{stdout}{stderr}");
        assert!(stdout.starts_with("line-2 buy "), "{stdout}");

        // A list without the order confirms it.
        let args = ["orders", "verify", "--journal", &journal];
        let output = gateway.command(&args).output().await.unwrap();
        let (stdout, stderr) = said(&output);
        assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
        assert!(stdout.contains(" - not executed"), "{stdout}{stderr}");
        assert_eq!(unresolved().await.0, Some(0));
        assert_eq!(gateway.orders().len(), 1);
    }
}

/// Regression: rows that were placed were named as not looked for, and refused ones were not; the exit code was 130.
#[tokio::test]
async fn c02_a_last_look_that_is_left_names_placed_and_refused_rows() {
    let answer = |number| match number {
        0 => documented(403),
        number => placed(&format!("26{number}"), "Order placed"),
    };
    let gateway = OwnGateway::serve(answer).await;
    let file = orders(2);
    let results = file.beside("results.csv");
    let args = ["replay", file.path(), "--yes", "--json", "--out", &results];
    let mut command = gateway.command(&args);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while gateway.orders().len() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // The answers have arrived, and the last look waits until a list may show the refused order.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut told = String::new();
    interrupt(&child).await;
    while !told.contains("interrupted: nothing more is sent") {
        assert!(stderr.read_line(&mut told).await.unwrap() > 0, "{told}");
    }
    interrupt(&child).await;
    let output = child.wait_with_output().await.unwrap();
    stderr.read_to_string(&mut told).await.unwrap();
    assert_eq!(output.status.code(), Some(6), "{told}");
    assert!(told.contains("for the rows that were placed or refused now: 2; the next run"), "{told}");
    assert!(told.contains(" refused 1 unresolved 0 not looked for 2\n"), "{told}");
    let counts: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(counts["not_looked_for_lines"], serde_json::json!([2, 3]), "{counts}");
    let rows = std::fs::read_to_string(&results).unwrap();
    let named = rows.lines().filter(|row| row.contains(",event: not looked for,"));
    assert_eq!(named.count(), 2, "{rows}");
    assert!(rows.contains("event: not looked for,261,,"), "{rows}");
}

/// Regression: rows that the run before had placed, or left in doubt, were told to be unsent.
#[tokio::test]
async fn c02_a_row_that_an_earlier_run_sent_is_not_called_unsent() {
    let answer = |number| match number {
        0 => documented(403),
        1 | 2 => placed(&format!("26{number}"), "Order placed"),
        _ => documented(429),
    };
    let gateway = OwnGateway::serve(answer).await;
    let file = orders(3);
    let run = |more: &[&str]| gateway.command(&[&["replay", file.path(), "--yes"], more].concat());
    // In order, so that the refused one is the first row.
    let (stdout, stderr) = said(&run(&["--in-order"]).output().await.unwrap());
    assert_eq!(stdout.matches(",placed,").count(), 2, "{stdout}{stderr}");
    // The first row is sent again and again, and the others wait for it.
    let mut child = run(&["--in-order"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    interrupt(&child).await;
    let mut results = String::new();
    child.stdout.take().unwrap().read_to_string(&mut results).await.unwrap();
    drop(child.wait_with_output().await);
    for line in stdout.lines().filter(|line| line.contains(",placed,")) {
        let order: Vec<_> = line.split(',').take(3).collect();
        assert!(results.contains(&order.join(",")), "{order:?} in {results}");
    }
    assert_eq!(results.matches(",placed by an earlier run").count(), 2, "{results}");
}

/// Regression: `orders verify` looked for orders in doubt alone. The identifier that no list shows stayed, with exit code 0.
#[tokio::test]
async fn c02_what_a_run_that_was_left_has_not_looked_for_is_looked_for_by_verify() {
    let list = |sent: usize| {
        let shown = ["260000000001", "260000000002"].iter().zip(1..).take(sent);
        serde_json::Value::from_iter(shown.map(|(id, qty)| listed(id, qty))).to_string()
    };
    let ids = ["260000000001", "999000000009"];
    let gateway = OwnGateway::with_list(move |number| placed(ids[number], "Order placed"), list).await;
    let file = orders(2);
    let mut child = gateway.command(&["replay", file.path(), "--yes", "--in-order"]).spawn().unwrap();
    while gateway.orders().len() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    child.kill().await.unwrap();
    let journal = file.beside("orders.csv.journal");
    let run = async |verb: &str| {
        let output = gateway.command(&["orders", verb, "--journal", &journal]).output().await.unwrap();
        (output.status.code(), said(&output))
    };
    assert_eq!(run("unresolved").await.0, Some(0), "it knows of nothing");
    let (code, (stdout, stderr)) = run("verify").await;
    assert_eq!(code, Some(6), "{stdout}{stderr}");
    assert!(
        stdout.contains("line-3 999000000009 ack not listed: order 999000000009 was"),
        "{stdout}{stderr}"
    );
    assert!(stdout.contains("line-3 260000000002 corrected: the order of this row is"), "{stdout}{stderr}");
    assert!(stderr.contains("orders that were answered today: 2; "), "{stderr}");
    assert_eq!(gateway.orders().len(), 2);
}

/// Regression: a run that was interrupted before its first order left no results.
#[tokio::test]
async fn c02_an_interruption_before_the_first_order_tells_every_row() {
    let is_away = Arc::new(AtomicBool::new(false));
    let away = Arc::clone(&is_away);
    let list = move |sent: usize| match away.load(Ordering::SeqCst) {
        true => documented(503),
        false => {
            let orders = (0..sent).map(|number| listed(&format!("26{number}"), number + 1));
            (200, serde_json::json!({"s": "ok", "d": Vec::from_iter(orders)}).to_string())
        }
    };
    let gateway =
        OwnGateway::with_answers(|number| placed(&format!("26{number}"), "Order placed"), list).await;
    let file = orders(1);
    let first = gateway.command(&["replay", file.path(), "--yes"]).output().await.unwrap();
    assert_eq!(first.status.code(), Some(0), "{:?}", said(&first));
    file.append("EQT_TCS_EQ_NSE,9,sell,market,intraday,day,,\nEQT_INFY_EQ_NSE,1,BUY,market,intraday,day,,\n");
    is_away.store(true, Ordering::SeqCst);
    let out = file.beside("results.csv");
    for json in [&[][..], &["--json"]] {
        let mut command = gateway.command(&[&["replay", file.path(), "--yes", "--out", &out], json].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (mut stderr, mut told) = (BufReader::new(child.stderr.take().unwrap()), String::new());
        // The order list is read before the first order, and does not come.
        while !told.contains("rows 3: to send 1, placed by earlier runs 1, in doubt 0, bad 1") {
            assert!(stderr.read_line(&mut told).await.unwrap() > 0, "{told}");
        }
        interrupt(&child).await;
        stderr.read_to_string(&mut told).await.unwrap();
        let output = child.wait_with_output().await.unwrap();
        assert_eq!(output.status.code(), Some(130), "{told}");
        let last = "placed 1 (0 now, 1 before) refused 0 unresolved 0 not sent 1 bad 1";
        assert_eq!(told.lines().last(), Some(last), "{told}");
        let results = std::fs::read_to_string(&out).unwrap();
        let rows: Vec<&str> = results.lines().collect();
        assert_eq!(
            rows[1], "2,placed,260,attached,placed by an earlier run; nothing was sent now",
            "{results}"
        );
        assert_eq!(rows[2], "3,not sent,,,interrupted before it left", "{results}");
        assert!(rows[3].starts_with("4,bad,") && rows.len() == 4, "{results}");
        if !json.is_empty() {
            let whole: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!((&whole["not_sent"], &whole["results"][1]["status"]), (&1.into(), &"not sent".into()));
        }
        std::fs::remove_file(&out).unwrap();
    }
    assert_eq!(gateway.orders().len(), 1);
}
