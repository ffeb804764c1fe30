//! The commands of docs/sandbox.md print what the page shows.
//!
//! The few curl options that the page uses are implemented here. So the test runs without curl, and still sends
//! the requests of the page.

use std::collections::BTreeMap;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::command::RunningSandbox;

/// A command of a shell block, and the lines below it.
struct Shown {
    command: String,
    output: String,
}

fn shown() -> Vec<Shown> {
    let page = include_str!("../../../../docs/sandbox.md");
    let block = page.split("```console\n").find(|block| block.contains("$ curl")).unwrap();
    let block = block.split("\n```").next().unwrap().replace("\\\n", "");
    let mut shown: Vec<Shown> = Vec::new();
    for line in block.lines() {
        match line.strip_prefix("$ ") {
            Some(command) => shown.push(Shown { command: command.to_owned(), output: String::new() }),
            None => {
                let last = shown.last_mut().unwrap();
                last.output += line;
                last.output.push('\n');
            }
        }
    }
    shown
}

/// Splits a command into words: blanks separate, quotes group, variables are replaced.
fn words(command: &str, variables: &BTreeMap<String, String>) -> Vec<String> {
    let filled = variables
        .iter()
        .fold(command.to_owned(), |text, (name, value)| text.replace(&format!("${name}"), value));
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in filled.chars() {
        match quote {
            Some(q) if c == q => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c == ' ' => words.push(String::new()),
            _ => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns the output of curl.
async fn curl(words: &[String], authority: &str) -> String {
    let (mut headers, mut body, mut format, mut urls) = (String::new(), None, None, Vec::new());
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-s" => {}
            "-H" => headers += &format!("{}\r\n", rest.next().unwrap()),
            "-d" => body = rest.next(),
            "-o" => assert_eq!(rest.next().unwrap(), "/dev/null"),
            "-w" => format = rest.next(),
            option if option.starts_with('-') => {
                panic!("the page uses curl's {option}, which this test does not know")
            }
            url => urls.extend(globbed(url)),
        }
    }
    let mut printed = String::new();
    for url in urls {
        let path = url.strip_prefix("http://127.0.0.1:8080").unwrap();
        let (status, answer) = exchange(authority, path, &headers, body).await;
        printed += &match format {
            Some(format) => format.replace("%{http_code}", &status).replace("\\n", "\n"),
            None => answer,
        };
    }
    printed
}

/// Expands curl's `[1-11]`.
fn globbed(url: &str) -> Vec<String> {
    let Some((head, rest)) = url.split_once('[') else { return vec![url.to_owned()] };
    let (range, tail) = rest.split_once(']').unwrap();
    let (from, to) = range.split_once('-').unwrap();
    (from.parse::<u32>().unwrap()..=to.parse().unwrap()).map(|i| format!("{head}{i}{tail}")).collect()
}

pub(crate) async fn exchange(
    authority: &str,
    path: &str,
    headers: &str,
    body: Option<&String>,
) -> (String, String) {
    let mut stream = TcpStream::connect(authority).await.unwrap();
    let head = match body {
        None => format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n{headers}\r\n"),
        Some(body) => format!(
            "POST {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n{headers}\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ),
    };
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().to_owned(), body.to_owned())
}

#[tokio::test]
async fn the_curl_calls_of_the_first_page_print_what_it_says() {
    let sandbox = RunningSandbox::start(&[]).await;
    let mut variables = BTreeMap::new();
    let mut calls = 0;
    for Shown { command, output } in shown() {
        let words = words(&command, &variables);
        match words.first().map(String::as_str) {
            Some("curl") => {
                calls += 1;
                let printed = curl(&words[1..], sandbox.authority()).await;
                assert_eq!(printed.trim_end(), output.trim_end(), "$ {command}");
                // A person takes longer than a second from one command to the next.
                let admin = sandbox.fact("admin_url").strip_prefix("http://").unwrap().to_owned();
                let headers = "Content-Type: application/json\r\n";
                let clock = r#"{"advance_ms": 1000}"#;
                let call = format!(
                    "POST /clock HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{clock}",
                    clock.len()
                );
                let mut stream = TcpStream::connect(&admin).await.unwrap();
                stream.write_all(call.as_bytes()).await.unwrap();
                stream.read_to_string(&mut String::new()).await.unwrap();
            }
            Some(assignment) if assignment.contains('=') => {
                let (name, value) = assignment.split_once('=').unwrap();
                variables
                    .insert(name.to_owned(), format!("{value} {}", words[1..].join(" ")).trim().to_owned());
            }
            _ => panic!("the page shows a command that this test does not know: {command}"),
        }
    }
    assert!(calls >= 3, "the page shows {calls} calls");
}
