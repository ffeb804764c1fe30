//! Logins in a browser, whose redirect reaches this machine over real sockets.

#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{net::TcpListener as Bound, sync::Arc};

use parking_lot::Mutex;
use steadfast_auth::{
    AuthErrorKind, BrowserLogin, CodeExchange, CodeSource, InvalidRedirect, OneTimeCode, TokenSource,
};
use steadfast_call::BoxError;
use steadfast_spec::BaseUrl;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::mpsc,
};

use crate::support::{Answer, Clock, Script, api_key, base, secs};

/// Returns a port that is free now.
fn free_port() -> u16 {
    Bound::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Returns a browser login that listens on `port`, and the addresses that it shows.
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

/// Unlike listeners that end with the first request: there, a forged callback ends the login or logs in a stranger.
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
        // A head that is too long is answered while it is still being sent, so the connection may be reset.
        assert!(
            got == status || (head.len() > 16_384 && got.is_empty()),
            "{}: {got}",
            &head[..20.min(head.len())]
        );
    }
    // Silent connections do not block the redirect.
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

/// Sends a GET and returns the whole answer.
async fn page(port: u16, target: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(format!("GET {target} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// The page used to say "Logged in" before the code was exchanged, even with a wrong client secret, and the error then
/// spoke of a one-time code.
#[tokio::test]
async fn t24_the_page_promises_no_login_and_a_wrong_secret_is_named() {
    let port = free_port();
    let (login, mut addresses) = login(port);
    let clock = Clock::new();
    let logins = Script::new(&clock, [Answer::Status(401)]);
    let exchange = CodeExchange::new(logins.clone(), &base(), api_key(), "wrong", "http://127.0.0.1/", login);
    let source = TokenSource::builder(api_key(), exchange.unwrap()).build();
    let ended = tokio::spawn(async move { source.login().await });
    let address = addresses.recv().await.unwrap();
    let page = page(port, &format!("/callback?code=c&state={}", state_of(&address))).await;
    assert!(page.contains("The code was received.") && !page.to_lowercase().contains("logged in"), "{page}");
    let error = ended.await.unwrap().unwrap_err();
    let said = format!("{error}: {}", std::error::Error::source(&error).unwrap());
    assert!(said.contains("the client secret or the redirect address is wrong"), "{said}");
    assert!(!said.contains("one-time"), "{said}");
    assert_eq!(logins.count(), 1);
}

/// Providers add parameters of their own. An unreadable one used to end the login's redirect in a silent 400.
#[tokio::test]
async fn t24_other_parameters_of_the_redirect_are_ignored() {
    let port = free_port();
    let (login, mut addresses) = login(port);
    let code = tokio::spawn(async move { login.code().await });
    let address = addresses.recv().await.unwrap();
    let target = format!("/callback?session=%zz&code=right&iss=100%&state={}&%", state_of(&address));
    assert_eq!(get(port, &target).await, "200");
    assert_eq!(submitted(code.await.unwrap().unwrap()).await, "right");
}

/// Silent connections used to get five seconds each, 32 at a time, before the redirect was read.
#[tokio::test]
async fn t24_silent_connections_do_not_keep_the_redirect_out() {
    let port = free_port();
    let (login, mut addresses) = login(port);
    let code = tokio::spawn(async move { login.code().await });
    let address = addresses.recv().await.unwrap();
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
    }
    let target = format!("/callback?code=right&state={}", state_of(&address));
    let status = tokio::time::timeout(secs(3), get(port, &target)).await.expect("served at once");
    assert_eq!(status, "200");
    assert_eq!(submitted(code.await.unwrap().unwrap()).await, "right");
}

/// Port 99999 used to be taken for port 80, and port 0 for any port.
#[test]
fn t24_a_port_that_is_none_is_refused_by_name() {
    let redirect = |host: &str| {
        BrowserLogin::new(&base(), api_key(), format!("http://{host}/callback"), |_: &str| ()).map(drop)
    };
    for (host, named) in [
        ("127.0.0.1:0", "\"0\""),
        ("127.0.0.1:99999", "\"99999\""),
        ("localhost:65536", "\"65536\""),
        ("[::1]:00", "\"00\""),
        ("127.0.0.1:", "\"\""),
    ] {
        let error = redirect(host).unwrap_err();
        assert!(matches!(error, InvalidRedirect::Port(_)), "{host}: {error}");
        assert!(error.to_string().contains(named), "{host}: {error}");
    }
    for host in ["127.0.0.1:1", "[::1]:65535", "localhost", "[::1]"] {
        redirect(host).unwrap();
    }
}

/// Marks the child process in which descriptors run out.
#[cfg(target_os = "linux")]
const FEW: &str = "STEADFAST_TEST_FEW_DESCRIPTORS";

/// After descriptors had run out, a failed accept used to be repeated at once, for ever.
#[cfg(target_os = "linux")]
#[test]
fn t24_accept_errors_do_not_spin_and_silent_ones_make_room() {
    if std::env::var_os(FEW).is_none() {
        // In a child process, because other tests need descriptors too.
        let name = "browser::t24_accept_errors_do_not_spin_and_silent_ones_make_room";
        let mut this = std::process::Command::new(std::env::current_exe().unwrap());
        let output = this.args(["--exact", name]).env(FEW, "1").output().unwrap();
        return assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let failures = Failures::default();
        let sink = failures.clone();
        let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG);
        let subscriber = subscriber.with_writer(move || sink.clone()).finish();
        let _counting = tracing::subscriber::set_default(subscriber);
        let (redirect, held, code) = redirected_without_descriptors(0).await;
        tokio::time::sleep(secs(1)).await;
        assert!(!code.is_finished(), "there was a descriptor left");
        drop(held);
        let failures = failures.0.load(Ordering::Relaxed);
        assert!((1..100).contains(&failures), "{failures} times in a second");
        assert_eq!(submitted(code.await.unwrap().unwrap()).await, "right");
        drop(redirect);

        let (redirect, held, code) = redirected_without_descriptors(2).await;
        let code = tokio::time::timeout(secs(3), code).await.expect("a silent one has made room");
        assert_eq!(submitted(code.unwrap().unwrap()).await, "right");
        drop((redirect, held));
    });
}

/// Runs a login whose redirect arrives behind `silent` silent connections, when no descriptor is left.
#[cfg(target_os = "linux")]
async fn redirected_without_descriptors(
    silent: usize,
) -> (Vec<std::net::TcpStream>, Vec<std::fs::File>, tokio::task::JoinHandle<Result<OneTimeCode, BoxError>>) {
    use rustix::process::{Resource, getrlimit, setrlimit};
    use std::io::Write;
    let port = free_port();
    let (login, mut addresses) = login(port);
    let code = tokio::spawn(async move { login.code().await });
    let address = addresses.recv().await.unwrap();
    let connect = || std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut streams: Vec<_> = (0..silent).map(|_| connect()).collect();
    // With one runtime and one thread, all ready work is done before a sleep ends.
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    streams.push(connect());
    let state = state_of(&address);
    write!(streams[silent], "GET /callback?code=right&state={state} HTTP/1.1\r\n\r\n").unwrap();
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = Some(64);
    setrlimit(Resource::Nofile, limit).unwrap();
    let held = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
    (streams, held, code)
}

/// Counts log entries about connections that cannot be accepted.
#[cfg(target_os = "linux")]
#[derive(Clone, Default)]
struct Failures(Arc<AtomicUsize>);

#[cfg(target_os = "linux")]
impl std::io::Write for Failures {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let counted = String::from_utf8_lossy(line).contains("cannot be accepted");
        self.0.fetch_add(usize::from(counted), Ordering::Relaxed);
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns the code as the exchange submits it; it is visible nowhere else.
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
    let text = format!("cannot listen for the redirect on 127.0.0.1:{port}: ");
    assert!(error.to_string().starts_with(&text), "{error}");

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

/// A stranger with the port on one of the two protocols would get the redirect of half of all browsers.
#[tokio::test]
async fn a_port_that_somebody_else_has_for_one_protocol_is_none_to_listen_on() {
    let taken = Bound::bind("127.0.0.1:0").unwrap();
    let redirect = format!("http://localhost:{}/callback", taken.local_addr().unwrap().port());
    let login =
        BrowserLogin::new(&base(), api_key(), redirect, |_: &str| panic!("nobody is asked to log in"));
    let error = login.unwrap().code().await.unwrap_err();
    assert!(error.to_string().contains("listen"), "{error}");
}
