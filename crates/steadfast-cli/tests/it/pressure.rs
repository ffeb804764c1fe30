//! `steadfast proxy` under pressure, over real sockets: callers that dawdle, callers that idle, an end and a service that
//! goes while requests are on their way.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use crate::{
    command::{RunningSandbox, signal, steadfast},
    proxy::{FORM, RunningProxy, of, placed},
};

/// Sends a request, and returns its answer; `None` if there was no connection, or it ended without one.
async fn ask(authority: &str, token: &str, line: &str, lines: &str, body: &str) -> Option<String> {
    let mut stream = TcpStream::connect(authority).await.ok()?;
    let request = format!(
        "{line} HTTP/1.1\r\nHost: {authority}\r\nAuthorization: Bearer {token}\r\n{lines}Connection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    (!answer.is_empty()).then_some(answer)
}

const LIST: &str = "GET /v2/api/oms/orders";

/// Lets this process have many sockets.
fn raise_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
}

#[tokio::test]
async fn two_hundred_callers_that_dawdle_keep_no_one_out() {
    raise_limit();
    let proxy = RunningProxy::start(steadfast(&["proxy", "--sandbox", "--port", "0", "--json"])).await;
    let (authority, token) = (proxy.authority().to_owned(), proxy.token());
    let mut dawdlers = Vec::new();
    for _ in 0..200 {
        let mut stream = TcpStream::connect(&authority).await.unwrap();
        stream.write_all(b"POST /v2/api/oms/place-order HTTP/1.1\r\nX-A: ").await.unwrap();
        dawdlers.push(stream);
    }
    let begun = Instant::now();
    for round in 0..5 {
        for dawdler in &mut dawdlers {
            // The oldest has to leave for a new caller.
            let _ = dawdler.write_all(b"a").await;
        }
        let key = format!("Idempotency-Key: o{round}\r\n");
        for (line, lines, body) in [(LIST, "", ""), ("POST /v2/api/oms/place-order", key.as_str(), FORM)] {
            let answer = timeout(Duration::from_secs(10), ask(&authority, &token, line, lines, body)).await;
            let answer = answer.expect("an answer in time").expect("an answer");
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(9), "before a dawdler has to end: {:?}", begun.elapsed());
    assert_eq!(placed(proxy.facts["sandbox_admin_url"].as_str().unwrap()).await.len(), 5);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn idle_connections_cost_little_and_keep_no_one_out() {
    raise_limit();
    let sandbox = RunningSandbox::start(&[]).await;
    let state = tempfile::tempdir().unwrap();
    let proxy = RunningProxy::start(of(&sandbox, state.path())).await;
    let (authority, token) = (proxy.authority().to_owned(), proxy.token());
    let resident = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", proxy.child.id().unwrap())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap().to_owned();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let before = resident();
    // It is no order, so that nothing leaves, and its caller is known from then on.
    let request = format!(
        "POST /v2/api/oms/place-order HTTP/1.1\r\nHost: {authority}\r\nAuthorization: Bearer {token}\r\n\
         Content-Length: 3\r\n\r\na=b"
    );
    let mut idle = Vec::new();
    for _ in 0..990 {
        let mut stream = TcpStream::connect(&authority).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.unwrap();
        assert_eq!(&head, b"HTTP/1.1 400");
        idle.push(stream);
    }
    let answer =
        timeout(Duration::from_secs(10), ask(&authority, &token, LIST, "", "")).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let after = resident();
    eprintln!("resident: {before} kB, with 990 idle connections {after} kB");
    // 26 kB for each, in a build without optimization: 16 of them are HTTP's own two buffers.
    assert!(
        after.saturating_sub(before) < 26_000,
        "{before} kB before, {after} kB with 990 idle connections"
    );
}

#[tokio::test]
async fn sigterm_under_load_loses_no_order() {
    let sandbox = RunningSandbox::start(&[]).await;
    let state = tempfile::tempdir().unwrap();
    let mut proxy = RunningProxy::start(of(&sandbox, state.path())).await;
    let (authority, token) = (proxy.authority().to_owned(), proxy.token());
    let mut callers = JoinSet::new();
    for caller in 0..8 {
        let (authority, token) = (authority.clone(), token.clone());
        callers.spawn(async move {
            let mut placed = 0;
            for order in 0.. {
                let key = format!("Idempotency-Key: o{caller}-{order}\r\n");
                match ask(&authority, &token, "POST /v2/api/oms/place-order", &key, FORM).await {
                    Some(answer) if answer.starts_with("HTTP/1.1 200") => placed += 1,
                    Some(answer) => {
                        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
                        return placed;
                    }
                    None => return placed,
                }
            }
            placed
        });
    }
    sleep(Duration::from_millis(700)).await;
    signal(&proxy.child, "-TERM").await;
    let told: usize = callers.join_all().await.into_iter().sum();
    assert!(proxy.child.wait().await.unwrap().success());
    assert!(told > 0);
    assert_eq!(
        placed(sandbox.fact("admin_url")).await.len(),
        told,
        "each order that exists was told to its caller"
    );
}

#[tokio::test]
async fn reads_of_a_service_that_is_away_are_answered_at_once() {
    let sandbox = RunningSandbox::start(&[]).await;
    let state = tempfile::tempdir().unwrap();
    let proxy = RunningProxy::start(of(&sandbox, state.path())).await;
    let (authority, token) = (proxy.authority().to_owned(), proxy.token());
    let read = async || ask(&authority, &token, LIST, "", "").await.unwrap();
    assert!(read().await.starts_with("HTTP/1.1 200"));
    let gateway = sandbox.authority().to_owned();
    drop(sandbox);
    // The first is tried again for as long as the stack does.
    let first = read().await;
    assert!(first.starts_with("HTTP/1.1 502"), "{first}");
    let mut at_once = 0;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(2) {
        let asked = Instant::now();
        if let Ok(answer) = timeout(Duration::from_millis(500), read()).await {
            assert!(answer.starts_with("HTTP/1.1 502") && answer.contains("retry-after: 1"), "{answer}");
            assert!(asked.elapsed() < Duration::from_millis(500));
            at_once += 1;
        }
        sleep(Duration::from_millis(50)).await;
    }
    assert!(at_once >= 10, "{at_once}");
    let port = gateway.rsplit_once(':').unwrap().1;
    // With the same seed, so with the same credentials.
    let _again = steadfast(&["sandbox", "--port", port]).stdout(std::process::Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while !read().await.starts_with("HTTP/1.1 200") {
        assert!(begun.elapsed() < Duration::from_secs(20), "it is back");
        sleep(Duration::from_millis(100)).await;
    }
}
