//! C7: if a service cannot be reached, its address and the cause are reported at once.

use std::time::Duration;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::TcpListener,
    time::{Instant, timeout},
};

use crate::{
    account::{User, stdout},
    command::steadfast,
    files::orders,
    own_gateway::OwnGateway,
    store::Store,
};

/// Returns the first line of a replay at `base`, and how long it took.
async fn first_word(base: &str) -> (String, Duration) {
    let file = orders(1);
    let mut command = steadfast(&["replay", file.path(), "--base-url", base]);
    command.env("STEADFAST_API_KEY", "key").env("STEADFAST_ACCESS_TOKEN", "token");
    let began = Instant::now();
    let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    loop {
        let line = timeout(Duration::from_secs(20), lines.next_line()).await.unwrap().unwrap().unwrap();
        // A silent address of this machine is taken for a sidecar, which is told first.
        let is_asked = line.contains(" may be a sidecar of steadfast, ");
        if !is_asked && !line.starts_with("placing ") && !line.starts_with("new journal ") {
            return (line, began.elapsed());
        }
    }
}

#[tokio::test]
async fn c07_a_refused_port_is_told_at_once_with_its_address() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let (line, took) = first_word(&format!("http://{free}/v2")).await;
    let expected = format!(
        "steadfast: service cannot be reached at {free}: the connection is refused: nothing listens there; trying again in 1 s"
    );
    assert_eq!(line, expected);
    assert!(took < Duration::from_secs(5), "{took:?}");
}

/// `login` reported a temporary failure only after all its repeats, and `doctor` only a missing answer.
#[tokio::test]
async fn c07_login_and_doctor_name_a_refused_port_at_once() {
    let user = User::new().await;
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let base = format!("http://{free}/v2");
    let why =
        format!("service cannot be reached at {free}: the connection is refused: nothing listens there");
    let mut login = user.totp(&["login", "--base-url", &base]);
    let began = Instant::now();
    let mut child = login.stderr(std::process::Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = timeout(Duration::from_secs(20), lines.next_line()).await.unwrap().unwrap().unwrap();
    assert_eq!(line, format!("steadfast: {why}; trying again in 1 s"));
    child.kill().await.unwrap();
    let doctor = user.command(&["doctor", "--base-url", &base]).output().await.unwrap();
    assert!(stdout(&doctor).contains(&format!("bad       service   {why}")), "{}", stdout(&doctor));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(user.logins().await, (0, 0));
}

#[tokio::test]
async fn c07_doctor_names_a_shared_store_that_cannot_be_reached_without_its_password() {
    let user = User::new().await;
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let mut doctor = user.command(&["doctor"]);
    doctor.env("STEADFAST_REDIS_URL", format!("redis://:canary@{free}"));
    let doctor = stdout(&doctor.output().await.unwrap());
    assert!(doctor.contains(&format!("bad       shared_store store {free} cannot be reached")), "{doctor}");
    assert!(!doctor.contains("canary"), "{doctor}");
}

#[tokio::test]
async fn c07_a_store_of_an_own_certificate_authority_is_reached_by_those_who_are_told_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("cert"), cert.pem()).unwrap();
    std::fs::write(path("key"), signing_key.serialize_pem()).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port().to_string();
    let (cert, key) = (path("cert"), path("key"));
    let settings =
        ["--tls-port", &port, "--tls-cert-file", &cert, "--tls-key-file", &key, "--tls-auth-clients", "no"];
    let Some(_store) = Store::start(&settings).await else { return };
    let user = User::new().await;
    let url = format!("rediss://localhost:{port}");
    for (url, ca, finding) in [
        (&*url, None, format!("bad       shared_store store localhost:{port} cannot be reached")),
        (&*url, Some(&*cert), format!("shared_store localhost:{port}, ")),
        (
            &*url,
            Some(&*key),
            "certificate authorities of the store cannot be used: the text holds no certificate".into(),
        ),
        (&*url, Some("absent.pem"), "bad       shared_store --redis-ca absent.pem: ".into()),
        ("redis://localhost", Some(&*cert), "the address does not begin with rediss".into()),
    ] {
        let mut doctor = user.command(&["doctor", "--redis", url]);
        if let Some(ca) = ca {
            doctor.env("STEADFAST_REDIS_CA", ca);
        }
        let doctor = stdout(&doctor.output().await.unwrap());
        assert!(doctor.contains(&finding), "{ca:?}: {doctor}");
    }
}

#[tokio::test]
async fn c07_a_name_tls_and_a_stall_are_told_apart() {
    // Does not speak TLS, and answers only this.
    let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = plain.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = plain.accept().await {
            drop(tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").await);
        }
    });
    let (line, _) = first_word(&format!("https://{address}/v2")).await;
    assert!(line.contains(&format!("at {address}: TLS failed: ")), "{line}");
    // Accepts, and stays silent.
    let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = mute.local_addr().unwrap();
    let (line, _) = first_word(&format!("https://{address}/v2")).await;
    assert!(line.contains(&format!("at {address}: it does not answer: no connection within 3s")), "{line}");
    let (line, _) = first_word("https://no-such-host.invalid/v2").await;
    assert!(line.contains("at no-such-host.invalid:443: its name cannot be looked up: "), "{line}");
}

/// Regression: behind a network's login page, which answers everything with 200, the token was called accepted.
#[tokio::test]
async fn c10_a_page_accepts_no_token() {
    let page = || (200, "<html>welcome</html>".to_owned());
    let gateway = OwnGateway::with_answers(move |_| page(), move |_| page()).await;
    let doctor = gateway.command(&["doctor"]).output().await.unwrap();
    let told = String::from_utf8_lossy(&doctor.stdout);
    assert!(told.contains("200 where 401 was expected"), "{told}");
    assert!(told.contains("200: the answer says nothing of it") && !told.contains("is accepted"), "{told}");
}
