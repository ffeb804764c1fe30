//! A login in a browser, whose redirect comes to this machine over real sockets.

use std::{net::TcpListener as Bound, sync::Arc};

use parking_lot::Mutex;
use steadfast_auth::{AuthErrorKind, BrowserLogin, CodeExchange, CodeSource, OneTimeCode, TokenSource};
use steadfast_spec::{BaseUrl, BoxError};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::mpsc,
};

use crate::support::{Answer, Clock, Script, api_key, base, secs};

/// A port that is free now.
fn free_port() -> u16 {
    Bound::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A browser login that listens on `port`, and the addresses that it shows.
fn login(port: u16) -> (BrowserLogin, mpsc::UnboundedReceiver<String>) {
    let (shown, addresses) = mpsc::unbounded_channel();
    let redirect = format!("http://127.0.0.1:{port}/callback");
    let login = BrowserLogin::new(&base(), api_key(), redirect, move |address| {
        let _ = shown.send(address.to_owned());
    });
    (login.unwrap(), addresses)
}

fn state_of(address: &str) -> &str {
    address.split(['?', '&']).find_map(|part| part.strip_prefix("state=")).unwrap()
}

/// Sends `head` and returns the answer's status; empty if there was none.
async fn send(port: u16, head: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).split(' ').nth(1).unwrap_or_default().to_owned()
}

async fn get(port: u16, target: &str) -> String {
    send(port, &format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n")).await
}

/// Against listeners that end with whatever comes first: a forged callback ends the login, or logs in a stranger.
#[tokio::test]
async fn t19_forged_and_stray_hits_do_not_end_the_login() {
    let port = free_port();
    let (login, mut addresses) = login(port);
    let code = tokio::spawn(async move { login.code().await });
    let address = addresses.recv().await.unwrap();
    let state = state_of(&address);
    let half = &state[..state.len() / 2];
    for (target, status) in [
        ("/favicon.ico".to_owned(), "404"),
        ("/".to_owned(), "404"),
        ("/callback".to_owned(), "400"),
        ("/callback?code=forged".to_owned(), "400"),
        ("/callback?code=forged&state=".to_owned(), "400"),
        (format!("/callback?code=forged&state={half}"), "400"),
        (format!("/callback?code=forged&state={state}x"), "400"),
        ("/callback?error=access_denied&state=forged".to_owned(), "400"),
        (format!("/callback/?code=forged&state={state}"), "404"),
        (format!("/Callback?code=forged&state={state}"), "404"),
        (format!("http://127.0.0.1:{port}/callback?code=forged&state={state}"), "404"),
    ] {
        assert_eq!(get(port, &target).await, status, "{target}");
    }
    let callback = format!("/callback?code=forged&state={state}");
    for (head, status) in [
        (format!("HEAD {callback} HTTP/1.1\r\n\r\n"), "405"),
        (format!("POST {callback} HTTP/1.1\r\n\r\n"), "405"),
        (format!("GET {callback}\r\n\r\n"), "400"),
        (format!("GET {callback} HTTP/1.1 x\r\n\r\n"), "400"),
        (format!("GET {callback} SPDY/3\r\n\r\n"), "400"),
        ("\r\n\r\n".to_owned(), "400"),
        (format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(20_000)), "400"),
    ] {
        let got = send(port, &head).await;
        // A head that is too long is answered while it is still being sent, and may be reset.
        assert!(
            got == status || (head.len() > 16_384 && got.is_empty()),
            "{}: {got}",
            &head[..20.min(head.len())]
        );
    }
    // Connections that say nothing do not hold the door.
    let silent: Vec<_> = vec![
        TcpStream::connect(("127.0.0.1", port)).await.unwrap(),
        TcpStream::connect(("127.0.0.1", port)).await.unwrap(),
    ];
    assert!(!code.is_finished());
    assert_eq!(get(port, &format!("/callback?code=r%69ght&state={state}")).await, "200");
    let right = code.await.unwrap().unwrap();
    assert_eq!(submitted(right).await, "right");
    drop(silent);
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err(), "nobody listens any more");
}

/// The code as the exchange submits it: nothing else shows it.
async fn submitted(code: OneTimeCode) -> String {
    let clock = Clock::new();
    let logins = Script::new(&clock, [Answer::Token("one")]);
    let code = Arc::new(Mutex::new(Some(code)));
    let source = move || {
        let code = code.lock().take();
        async move { code.ok_or_else(|| BoxError::from("no more codes")) }
    };
    let exchange = CodeExchange::new(logins.clone(), &base(), api_key(), "s", "http://127.0.0.1/", source);
    let source = TokenSource::builder(api_key(), exchange.unwrap()).clock(clock.wall()).build();
    source.login().await.unwrap();
    logins.seen()[0].form().get("code").unwrap().to_owned()
}

#[tokio::test]
async fn a_refusal_with_the_right_state_ends_the_login_and_latches_nothing() {
    let port = free_port();
    let (login, mut addresses) = login(port);
    let clock = Clock::new();
    let logins = Script::new(&clock, [Answer::Token("one")]);
    let exchange = CodeExchange::new(logins.clone(), &base(), api_key(), "s", "http://127.0.0.1/", login);
    let source = TokenSource::builder(api_key(), exchange.unwrap()).build();
    let ended = tokio::spawn({
        let source = source.clone();
        async move { source.login().await }
    });
    let address = addresses.recv().await.unwrap();
    assert_eq!(
        get(port, &format!("/callback?error=access_denied&state={}", state_of(&address))).await,
        "200"
    );
    let error = ended.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), AuthErrorKind::Unavailable);
    assert!(!source.status().latched);
    assert_eq!(logins.count(), 0);
}

#[tokio::test]
async fn a_taken_port_is_named_unless_the_address_can_be_pasted() {
    let taken = Bound::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let error = login(port).0.code().await.unwrap_err();
    assert_eq!(error.to_string(), format!("cannot listen for the redirect on 127.0.0.1:{port}"));

    let (login, mut addresses) = login(port);
    let (paste, pasted) = {
        let (sender, receiver) = mpsc::unbounded_channel::<String>();
        (sender, Arc::new(tokio::sync::Mutex::new(receiver)))
    };
    let login = login.paste(move || {
        let pasted = Arc::clone(&pasted);
        async move { Ok(OneTimeCode::new(pasted.lock().await.recv().await.unwrap_or_default())) }
    });
    let person = async {
        let address = addresses.recv().await.unwrap();
        let state = state_of(&address);
        paste.send(format!("http://127.0.0.1:{port}/callback?code=forged&state=forged")).unwrap();
        paste.send(format!("http://127.0.0.1:{port}/callback?code=right&state={state}")).unwrap();
    };
    let (code, ()) = tokio::join!(login.code(), person);
    assert_eq!(submitted(code.unwrap()).await, "right");
}

#[tokio::test(start_paused = true)]
async fn after_three_minutes_it_gives_up() {
    let start = tokio::time::Instant::now();
    let error = login(free_port()).0.code().await.unwrap_err();
    assert_eq!(error.to_string(), "nobody logged in in time");
    assert_eq!(start.elapsed(), secs(180));
}

#[tokio::test]
async fn a_redirect_to_another_machine_needs_somebody_who_pastes() {
    let base = BaseUrl::new("https://api.example/v2").unwrap();
    let login = BrowserLogin::new(&base, api_key(), "https://trader.example/cb", |_| ()).unwrap();
    assert_eq!(login.code().await.unwrap_err().to_string(), "redirect_uri leads to another machine");
    let login = login.paste(|| async { Ok::<_, BoxError>(OneTimeCode::new("c")) });
    assert_eq!(submitted(login.code().await.unwrap()).await, "c");
}

/// Whoever has the port for one of the two protocols would get the redirect of half of all browsers.
#[tokio::test]
async fn a_port_that_somebody_else_has_for_one_protocol_is_none_to_listen_on() {
    let taken = Bound::bind("127.0.0.1:0").unwrap();
    let redirect = format!("http://localhost:{}/callback", taken.local_addr().unwrap().port());
    let login =
        BrowserLogin::new(&base(), api_key(), redirect, |_: &str| panic!("nobody is asked to log in"));
    let error = login.unwrap().code().await.unwrap_err();
    assert!(error.to_string().contains("listen"), "{error}");
}
