//! Sockets for the typed client, with a sandbox or prepared answers behind them.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use steadfast::{Access, Client, ClientBuilder, Paths, TotpCredentials, retry::RetryPolicy, retry::Schedule};
use steadfast_sandbox::{Credentials, Sandbox};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};

/// A sandbox behind a socket.
pub(crate) struct Served {
    pub(crate) sandbox: Sandbox,
    pub(crate) facts: Credentials,
    _stop: oneshot::Sender<()>,
}

pub(crate) async fn serve(sandbox: Sandbox) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let server = sandbox.clone();
    tokio::spawn(async move {
        server
            .serve(listener, async {
                let _ = stopped.await;
            })
            .await
    });
    Served { facts: sandbox.credentials_at(address), sandbox, _stop: stop }
}

/// Returns what a login with a sandbox's authenticator takes.
pub(crate) fn totp(facts: Credentials) -> TotpCredentials {
    TotpCredentials {
        api_key: facts.api_key.into(),
        client_id: facts.client_id.into(),
        password: facts.password.into(),
        totp_secret: facts.totp_secret.into(),
    }
}

impl Served {
    pub(crate) fn client(&self) -> Client {
        let access = Access::token(self.facts.api_key.clone(), self.facts.access_token.clone()).unwrap();
        self.builder(access).build().unwrap()
    }

    pub(crate) fn builder(&self, access: Access) -> ClientBuilder {
        Client::builder(self.facts.base_url.parse().unwrap(), access).paths(Paths::public())
    }
}

/// Returns a client that repeats nothing, whose service gives `answers` in turn, and the requests that the
/// service read.
pub(crate) async fn canned(answers: Vec<(u16, String)>) -> (Client, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v2", listener.local_addr().unwrap());
    let read = Arc::<Mutex<Vec<String>>>::default();
    let log = read.clone();
    tokio::spawn(async move {
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let request = read_request(&mut stream).await;
            log.lock().unwrap().push(request);
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        }
    });
    let client = Client::builder(base.parse().unwrap(), Access::token("key", "token").unwrap())
        .paths(Paths::public())
        .retry(RetryPolicy::default().schedule(Schedule::never()))
        .build()
        .unwrap();
    (client, read)
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    let mut piece = [0; 1_024];
    loop {
        let length = stream.read(&mut piece).await.unwrap();
        request.extend_from_slice(&piece[..length]);
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let announced = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if length == 0 || body.len() >= announced.map_or(0, |length| length.parse().unwrap()) {
                return text;
            }
        }
    }
}

pub(crate) fn envelope_error(msg: &str) -> String {
    format!(r#"{{"s":"error","msg":"{msg}"}}"#)
}
