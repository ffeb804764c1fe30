//! C9: `docs/cli.md` agrees with the command's help, and with the shapes of its `--json` output.

use std::{collections::BTreeMap, fmt::Write};

use serde_json::Value;

use crate::{
    account::User,
    command::{RunningSandbox, output, steadfast},
    files::{HEADER, file, orders, said},
    own_gateway::{OwnGateway, placed},
    session::session,
};

#[path = "../../src/words.rs"]
mod words;

const HEAD: &str = "\
# The `steadfast` command

`replay` places a file of orders; `orders` handles what stays open; `login`, `auth` and `doctor` are for the account; `demo` and
`sandbox` need none. Programs in other languages place orders by `proxy` or `exec`: [the sidecar](sidecar.md).

[Credentials](#credentials) · [a session](#a-session) · [exit codes](#exit-codes) · [results](#the-results-of-replay) ·
[the order of the rows](#the-order-of-the-rows) · [journals](#one-file-one-journal) · [all options](#steadfast) ·
[`--json`](#what---json-prints)

Data goes to standard output, everything else to standard error. `--json` prints one object or array; fields may be added, and
`schema_version` grows when one changes its meaning or goes. No secret is printed but by `auth token` and, of its own users, by
`sandbox` and `proxy --sandbox`.

## Credentials

`STEADFAST_BASE_URL`, or `--base-url`, is the service's address, which ends in `/v2`. Each of the following may be given by
itself, as `NAME_FILE`, a file that holds the value, or as `NAME_COMMAND`, a command that prints it; also in systemd's credentials
or in [a config file](sidecar.md#a-config-file). At a terminal, what is missing is asked for. No option takes a secret.
A client id that `steadfast login` has asked for need not be given to the other verbs. Another user's login is refused there until
`steadfast auth logout`.

| variable | needed for |
|---|---|
| `STEADFAST_API_KEY` | all that an account does |
| `STEADFAST_CLIENT_ID`, `STEADFAST_PASSWORD`, `STEADFAST_TOTP_SECRET` | logins with an authenticator's secret: the command logs in by itself |
| `STEADFAST_CLIENT_SECRET`, `STEADFAST_REDIRECT_URI` | logins in a browser (`steadfast login`) |
| `STEADFAST_ACCESS_TOKEN` | a token that is there already |

Without a token and an authenticator's secret, the token that `steadfast login` keeps is used. For a first time:

```sh
export STEADFAST_BASE_URL=https://api.example/tradeapi/v2
export STEADFAST_API_KEY_FILE=$HOME/.secrets/api-key
steadfast login     # asks for what is missing; the token lives for 24 hours
steadfast doctor    # says what is wrong, if anything is
```
";

/// Below the help texts and the shapes.
const END: &str = "
<!-- Written by the code: `STEADFAST_WRITE_DOCS=1 cargo test -p steadfast-cli --test it c09_` writes this page again. Without the
variable the same test fails if the page is out of date. -->
";

const OUTPUT: &str = "
**If standard output cannot be written**, exit code 0 becomes 1, and standard error says why. A report or a rehearsal whose reader
is gone (`| head -1`) ends with 141. A verb that has changed something (`login`, `auth reset`, `auth logout`, `orders rule`,
`orders events --clear`, `replay`) ends with 1 then, and says on standard error what was done. `replay` sends nothing and ends
with 2 if it cannot begin its results, or if standard output is closed; `--out /dev/null` says that no results are wanted.

**Exit code 0 of `replay` does not exclude a second order**: one that the service lists later than 15 s is reported by the next
run, or by `orders verify` ([G2](guarantees.md#an-order-may-exist-twice)). `--never-resend` avoids it.
";

/// By a row's status: its fate in the next run of the same file.
const NEXT_RUN: [(&str, &str); 8] = [
    ("placed", "sends nothing"),
    ("refused", "sends it again"),
    ("rejected", "sends nothing"),
    ("not executed", "sends it again"),
    ("not sent", "sends it"),
    ("not observed", "sends nothing without `--resend-absent`"),
    ("unresolved", "looks for it, and sends nothing"),
    ("bad", "sends it if it is corrected"),
];

/// The kinds of events, and what to do about them.
const EVENTS: [(&str, &str, &str); 11] = [
    (
        "late order",
        "An order appeared after its row was told.",
        "Look at both; cancel one if it is one too many.",
    ),
    (
        "excess",
        "There is an order more than was acknowledged.",
        "Look at it; it may be ours, by an answer that was lost.",
    ),
    (
        "refused but placed",
        "The service refused the row, and placed it all the same.",
        "Look at it; cancel it if it is one too many.",
    ),
    (
        "conflict",
        "The service gave one `orderId` to two orders, or the list shows another order under it.",
        "Do not trust the id; the rows are in doubt.",
    ),
    (
        "ack not listed",
        "The service acknowledged the row, and no list shows it.",
        "Do not trust the id; the row is in doubt.",
    ),
    (
        "ack unconfirmed",
        "The same, and no list could be read that must show it; or the list shows it with another quantity, which nothing \
         explains.",
        "Look whether it is placed, and with which quantity. If other ids are named, cancel none before you know.",
    ),
    (
        "refusal unconfirmed",
        "The service refused the row, and no list has confirmed that.",
        "Look whether it is placed.",
    ),
    (
        "may be doubled",
        "The row was sent again by lists that prove less by now.",
        "Watch for a second order.",
    ),
    ("corrected", "The row was told otherwise before.", "Take what this line says."),
    ("missed", "Events came faster than they were taken.", "Compare the order list with the rows."),
    (
        "not looked for",
        "A second Ctrl-C left the run before it looked for this row a last time.",
        "Run again on the same day.",
    ),
];

const SESSION: &str = "
## A session

A file of three orders is placed with a real service. The answer to the second is lost, and Ctrl-C comes while it is looked for:
it is found, and the third is not sent. The second run sends only that one. `STEADFAST_BASE_URL` names the service, and `steadfast
login` has fetched a token. Without `--yes`:

| terminal | service named by | what happens |
|---|---|---|
| input and standard error are one | either | a question |
| only one of the two is | either | exit code 2, nothing sent |
| none (cron, CI) | `--base-url` | **orders are placed without a question** |
| none (cron, CI) | `STEADFAST_BASE_URL` alone | exit code 2, nothing sent |
";

/// The exit codes, and what a script does about them.
const TO_DO: [(&str, &str); 10] = [
    ("0", "go on"),
    (
        "1",
        "look into the results: correct the rows that are `bad` or `refused`, add new ones at the end for those that are `rejected`, and run again",
    ),
    ("2", "correct the command line or the file that is named; nothing was sent"),
    ("3", "`steadfast login`, and run again"),
    (
        "4",
        "correct the credentials, and `steadfast login`; if that is refused, `steadfast auth reset` first. `steadfast doctor` says what is wrong",
    ),
    ("5", "wait a minute, and run again"),
    (
        "6",
        "place nothing by other means; `steadfast orders unresolved`, `orders verify` and `orders events` say what to look at",
    ),
    ("7", "run again later"),
    ("130", "run again: it goes on where it was interrupted"),
    ("141", "let the reader of the output read to its end"),
];

/// Returns the table of the exit codes, with the words of the command's help.
async fn codes() -> String {
    let help = said(&output(&["--help"]).await).0;
    let lines = help.lines().skip_while(|line| *line != "Exit codes:").skip(1);
    let mut told: Vec<(String, String)> = Vec::new();
    for line in lines.take_while(|line| line.starts_with("  ")) {
        match line.trim().split_once(' ').filter(|(code, _)| code.parse::<u8>().is_ok()) {
            Some((code, meant)) => told.push((code.to_owned(), meant.trim().to_owned())),
            None => write!(told.last_mut().unwrap().1, " {}", line.trim()).unwrap(),
        }
    }
    let mut table = "\n## Exit codes\n\n| code | it says | then |\n|---|---|---|\n".to_owned();
    assert_eq!(told.len(), TO_DO.len(), "{told:?}");
    for ((code, meant), (of, then)) in told.iter().zip(TO_DO) {
        assert_eq!(code, of);
        writeln!(table, "| {code} | {meant} | {then} |").unwrap();
    }
    table
}

/// The characters of the longest line.
const WIDTH: usize = 130;

const JOURNALS: &str = "
## The order of the rows

Rows are sent side by side, up to 64 at a time and as fast as the quota allows: a later row may reach the service, and be
executed, before an earlier one. `--in-order` sends a row only when the one before has its result, which is slower, and waits for
each order in doubt until it is found or given up. Neither stops at a row that is refused.

A row that was refused, or turned away, is sent again by every later run of the file. To keep it from that, leave its line empty:
the rows behind it must stay on their lines.

## One file, one journal

A journal knows a row by its line, and what it tells of is not sent again. So one file has one journal, and one journal is of
one file: `STEADFAST_JOURNAL` must name another one for each file. `replay` notes the file in the journal's name with `.file`
behind it, and, where the journal stands elsewhere than beside the file, the journal in the file's name with `.journals` behind
it.

- **A journal is of one trading day** (midnight to midnight in India). On another day it is refused with exit code 2, and nothing
  is sent. Settle what is open (`steadfast orders unresolved`), and give the day's orders a file of their own, such as
  `orders-2026-11-26.csv`. Do not move the journal away to run the same file again: all its rows are sent then, also those that
  were placed.
- A journal that holds what was sent of another file is refused with exit code 2, also where the rows are equal. A file that was
  renamed goes on with its journal by `--journal`.
- A file that another journal tells of today is refused with exit code 2, as long as the notes and that journal are there. With
  `--journal` you name the journal yourself, and **every row that it does not know is sent**: a new name sends the whole file once
  more.
- A journal is of one user: with `STEADFAST_CLIENT_ID`, a run notes the user's mark in the journal's name with `.user` behind it,
  and one of another user is refused with exit code 2. A run that has only a token does not know its user.
- Through a sidecar on this machine it is one of the sidecar's account, whatever its port
  ([more](sidecar.md#a-steadfast-client-before-the-sidecar)).
- A journal is of real orders or of one rehearsal (`--sandbox`, or a sidecar with it), by `replay`, `proxy` or `exec`: neither
  goes on with the other's, nor a rehearsal with that of an earlier one, whose orders ended with its sandbox. It is refused with
  exit code 2.
- Orders from standard input or a pipe have no file: two of them with equal rows under one journal are taken for one.
- A copy of a file is another file.
";

/// Returns a help text without the paragraph on credentials, which the page has once.
fn without_credentials(help: &str) -> String {
    let paragraphs = help.split("\n\n");
    let kept: Vec<_> =
        paragraphs.filter(|text| !text.starts_with("Secrets come from the environment")).collect();
    kept.join("\n\n")
}

/// Returns the verbs below `words`, as their help lists them.
async fn verbs_of(words: &[String]) -> (String, Vec<Vec<String>>) {
    let args: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
    let help = said(&output(&args).await).0;
    let lines =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let verbs = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let verbs = verbs.filter(|verb| !verb.is_empty() && *verb != "help");
    let verbs = verbs.map(|verb| [words, &[verb.to_owned()]].concat()).collect();
    (help, verbs)
}

/// The types of a value's parts, in the order in which they were printed.
#[derive(Clone, Debug, Default)]
struct Shape {
    words: Vec<&'static str>,
    fields: Vec<(String, Shape)>,
    item: Option<Box<Shape>>,
}

impl Shape {
    fn of(text: &str) -> Self {
        let mut shape = Self::default();
        shape.add(&serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}")), text);
        shape
    }

    fn add(&mut self, value: &Value, text: &str) {
        let word = match value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "number",
            Value::String(_) => "text",
            Value::Array(items) => {
                let item = self.item.get_or_insert_default();
                items.iter().for_each(|each| item.add(each, text));
                return;
            }
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_by_key(|(name, _)| text.find(&format!("\"{name}\":")));
                for (name, value) in fields {
                    let known = self.fields.iter().position(|(its, _)| its == name);
                    let at = known.unwrap_or_else(|| {
                        self.fields.push((name.clone(), Self::default()));
                        self.fields.len() - 1
                    });
                    self.fields[at].1.add(value, text);
                }
                return;
            }
        };
        if !self.words.contains(&word) {
            self.words.push(word);
            self.words.sort_unstable_by_key(|word| *word == "null");
        }
    }

    fn write(&self, out: &mut String, indent: usize) {
        let mut parts: Vec<String> = Vec::new();
        if !self.fields.is_empty() {
            let mut inner = "{\n".to_owned();
            for (number, (name, shape)) in self.fields.iter().enumerate() {
                write!(inner, "{:1$}\"{name}\": ", "", indent + 2).unwrap();
                shape.write(&mut inner, indent + 2);
                inner.push_str(if number + 1 < self.fields.len() { ",\n" } else { "\n" });
            }
            write!(inner, "{:1$}}}", "", indent).unwrap();
            parts.push(inner);
        }
        if let Some(item) = &self.item {
            let mut inner = String::new();
            item.write(&mut inner, indent);
            parts.push(format!("[{}]", if inner.is_empty() { "text" } else { &inner }));
        }
        parts.extend(self.words.iter().map(|word| (*word).to_owned()));
        out.push_str(&parts.join(" or "));
    }
}

/// Returns what every verb prints with `--json`. Several runs show which fields may be `null`.
async fn samples() -> BTreeMap<&'static str, Vec<String>> {
    let mut samples: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    let (user, file, twice) = (User::new().await, orders(2), orders(2));
    for (verb, args) in [
        ("auth status", &["auth", "status", "--json"][..]),
        ("login", &["login", "--json"]),
        ("auth status", &["auth", "status", "--json"]),
        ("auth token", &["auth", "token", "--json"]),
        ("doctor", &["doctor", "--json"]),
        ("replay", &["replay", file.path(), "--sandbox", "--json"]),
        ("replay", &["replay", file.path(), "--check", "--json"]),
        ("auth reset", &["auth", "reset", "--json"]),
        ("auth logout", &["auth", "logout", "--json"]),
    ] {
        samples.entry(verb).or_default().push(said(&user.totp(args).output().await.unwrap()).0);
    }
    let mut command = user.totp(&["auth", "token", "--json"]);
    let given = command.env("STEADFAST_ACCESS_TOKEN", "given").output().await.unwrap();
    samples.entry("auth token").or_default().push(said(&given).0);

    // No list fails in these runs, and none is left.
    let lines = r#"{"unconfirmed_lines":[2],"not_looked_for_lines":[2]}"#;
    samples.entry("replay").or_default().push(lines.to_owned());

    let row = r#"{"results":[{"line":2,"status":"placed","orderId":"26","resolution":"recovered","msg":""},{"orderId":null}]}"#;
    samples.entry("replay").or_default().push(row.to_owned());
    // No token is refused in these runs, and no login waits.
    let waits = r#"{"refused_at":1,"unknown_why":"t","next_login_at":1}"#;
    samples.entry("auth status").or_default().push(waits.to_owned());

    // One id for two orders is an event; a killed process leaves an order in doubt.
    let gateway = OwnGateway::serve(|_| placed("26", "Order placed")).await;
    let journal = twice.beside("orders.csv.journal");
    let mut child = gateway.command(&["replay", twice.path(), "--yes"]).spawn().unwrap();
    // The search for the two orders would take long.
    while !std::path::Path::new(&format!("{journal}.events")).exists() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    child.kill().await.unwrap();
    let stuck = OwnGateway::serve(|_| (504, String::new())).await;
    let lost = orders(1);
    let mut child = stuck.command(&["replay", lost.path(), "--yes"]).spawn().unwrap();
    while stuck.orders().is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    child.kill().await.unwrap();
    for journal in [lost.beside("orders.csv.journal"), journal] {
        let args = ["orders", "unresolved", "--json", "--journal", &journal];
        samples
            .entry("orders unresolved")
            .or_default()
            .push(said(&steadfast(&args).output().await.unwrap()).0);
    }
    // No list is read in these runs.
    samples.entry("orders unresolved").or_default().push(r#"[{"listed":"t"}]"#.to_owned());
    samples.entry("demo").or_default().push(include_str!("../../src/demo/sample.json").to_owned());
    let sandbox = RunningSandbox::start(&[]).await;
    samples.entry("sandbox").or_default().push(sandbox.facts.to_string());
    let facts = r#"{"schema_version":1,"target":"t","account":"a","base_url":"u","socket":null,"admin_url":"u","local_token":"t","token_file":null,"dashboard_url":"u","sandbox_admin_url":"u"}"#;
    let account =
        r#"{"socket":"f","local_token":null,"token_file":"f","dashboard_url":null,"sandbox_admin_url":null}"#;
    samples.entry("proxy").or_default().extend([facts.to_owned(), account.to_owned()]);
    samples
}

/// Returns a paragraph in lines that fit the page, each but the first behind `indent`.
fn wrapped(indent: &str, text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().unwrap();
        if !line.trim().is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(format!("{indent}{word}"));
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.join("\n")
}

/// Writes the statuses of rows as a table.
fn statuses(page: &mut String) {
    page.push_str("\n| `status` | it says | the next run |\n|---|---|---|\n");
    for ((status, meant), (of, next)) in words::STATUSES.iter().zip(NEXT_RUN) {
        assert_eq!(*status, of);
        writeln!(page, "| `{status}` | {meant} | {next} |").unwrap();
    }
}

/// Writes the events as a table.
fn events(page: &mut String) {
    page.push_str("\n| `event: ` | it says | what to do |\n|---|---|---|\n");
    for (event, meant, then) in EVENTS {
        writeln!(page, "| `{event}` | {meant} | {then} |").unwrap();
    }
}

/// Writes words and their meanings, after a paragraph.
fn list(page: &mut String, words: &[(&str, &str)]) {
    page.push('\n');
    for (word, meant) in words {
        writeln!(page, "{}", wrapped("  ", &format!("- `{word}`: {meant}"))).unwrap();
    }
}

async fn page() -> String {
    let mut page = HEAD.to_owned();
    write!(page, "{SESSION}\n```text\n{}```\n{}{OUTPUT}", session().await, codes().await).unwrap();
    results(&mut page).await;
    page.push_str(JOURNALS);
    helps(&mut page).await;
    shapes(&mut page).await;
    page.push_str(END);
    page
}

/// Writes what the results of `replay` mean.
async fn results(page: &mut String) {
    let results = file(HEADER);
    let columns = said(&output(&["replay", results.path(), "--sandbox"]).await).0;
    let results = format!(
        "CSV with the columns `{}`. Where a row has a second line, that one holds. A line whose status begins with `event: ` \
         says what was learned of an order beyond its row's result.",
        columns.trim_end()
    );
    write!(page, "\n## The results of `replay`\n\n{}\n", wrapped("", &results)).unwrap();
    statuses(page);
    events(page);
    page.push_str("\nThe `resolution` of a `placed` row says how that was found out, if the answer to its send did not say it:\n");
    list(page, &words::RESOLUTIONS);
    let reasons = "The `msg` of an `unresolved` row begins with one of these words, and ends with what the service itself has \
                   said, if it has said anything:";
    write!(page, "\n{}\n", wrapped("", reasons)).unwrap();
    list(page, &words::REASONS);
    page.push_str("\n### How a run ends\n");
    for paragraph in [
        "The last line on standard error is `placed N (N now, N before) refused N unresolved N`, where `before` counts \
         orders that an earlier run had sent; behind them stands each other count that is not 0: `unconfirmed` (placed \
         rows that no list which could be read shows as they were sent), `rejected`, `not looked for` (rows of a run that was left before its last look), \
         `not observed`, `not executed`, `not sent`, `bad`, `in doubt of an earlier run`, `events` and `events of earlier runs`. Lines before it \
         say more. That of a rehearsal is `REHEARSAL: nothing was sent to the real service`.",
        "An event stands until `steadfast orders events --clear` says that it has been looked at: until then each run with \
         its journal names it and ends with 6, whatever became of the rows. Later runs of the day that meet the same event again \
         print it as a note, and it counts no more.",
        "A second after the last answer a run reads the order list once more, for the status of the placed orders; one that is \
         rejected later is told by the next run. Where that list cannot be read, the exit code is not 0, and the next run, \
         which sends nothing for placed rows, reads it.",
        "A second Ctrl-C ends the run at once. Rows that it leaves without a result are `unresolved`, and the exit code is 6 if \
         there are any, or rows that are `not looked for`. The next run looks for both, on the same day.",
        "A 401 to an order does not end the run as long as lists are read with the same token: the row is `not executed`, and \
         the exit code is 7. Ten such answers in a row end the run.",
        "A token that the service refuses for good ends the run: the \
         rows that are left are `not sent`, and the exit code is 3, or 6 where no list could be read with it either, so that \
         orders are in doubt. SIGTERM and SIGHUP act like Ctrl-C. Under `nohup` SIGHUP is ignored.",
    ] {
        write!(page, "\n{}\n", wrapped("", paragraph)).unwrap();
    }
}

/// Writes the help of every verb.
async fn helps(page: &mut String) {
    let mut waiting = vec![Vec::new()];
    while let Some(words) = waiting.pop() {
        let (help, verbs) = verbs_of(&words).await;
        let title = [&["steadfast".to_owned()], &*words].concat().join(" ");
        let help = without_credentials(&help);
        let help: Vec<&str> = help.lines().map(str::trim_end).collect();
        write!(page, "\n## `{title}`\n\n```text\n{}\n```\n", help.join("\n").trim_end()).unwrap();
        waiting.extend(verbs.into_iter().rev());
    }
}

/// Writes the shapes of the `--json` output.
async fn shapes(page: &mut String) {
    page.push_str(
        "\n## What `--json` prints\n\n`orders verify` and `orders rule` print what `orders unresolved` does. \
         Its `next` says why an\norder is still in doubt, and what to do about it. The `results` of `replay` hold each row once, \
         with its end; with `--check`,\nand for a file without orders, the bad rows.\n",
    );
    for (verb, texts) in samples().await {
        let mut shape = Shape::of(&texts[0]);
        for text in &texts[1..] {
            shape.add(&serde_json::from_str(text).unwrap(), text);
        }
        let mut written = String::new();
        shape.write(&mut written, 0);
        write!(page, "\n### `steadfast {verb} --json`\n\n```text\n{written}\n```\n").unwrap();
    }
}

#[tokio::test]
async fn c09_the_page_is_what_the_command_says_of_itself() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
    let page = page().await;
    if std::env::var_os("STEADFAST_WRITE_DOCS").is_some() {
        std::fs::create_dir_all(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs")).unwrap();
        std::fs::write(path, &page).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap();
    for (number, (kept, said)) in kept.lines().zip(page.lines()).enumerate() {
        assert_eq!(kept, said, "line {} of docs/cli.md; its end says how it is written", number + 1);
    }
    assert_eq!(kept.lines().count(), page.lines().count(), "docs/cli.md is shorter or longer");
    // A row of a table stands on one line, and so does what the command prints.
    let (before, rest) = page.split_once("\n```text\n").unwrap();
    let (_, behind) = rest.split_once("\n```\n").unwrap();
    let prose = before.lines().chain(behind.lines()).filter(|line| !line.starts_with('|'));
    let long = { prose }.find(|line| line.chars().count() > WIDTH);
    assert_eq!(long, None, "a line is longer than the page");
}
