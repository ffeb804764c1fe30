//! A sandbox, a sidecar before it, and a client that knows nothing but bytes.

use std::{net::SocketAddr, path::Path, time::Duration};

use steadfast::{
    Access, Client,
    call::Routes,
    dedup::{OrderTracker, Settings, journal::FileJournal},
    spec::Paths,
};
use steadfast_proxy::{Proxy, front::Tokens};
use steadfast_sandbox::{Sandbox, SandboxBuilder};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
    time::timeout,
};

pub(crate) const TOKEN: &str = "trade-0123456789abcdef";
pub(crate) const READER: &str = "read-0123456789abcdef";
pub(crate) const PLACE: &str = "POST /v2/api/oms/place-order HTTP/1.1";
pub(crate) const FORM: &str =
    "symId=EQT_INFY_EQ_NSE&qty=10&side=buy&type=limit&limitPrice=100&product=delivery&validity=day";

pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    pub(crate) client: Client,
    pub(crate) proxy: Proxy,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) served: JoinHandle<()>,
    pub(crate) end: Option<oneshot::Sender<()>>,
}

impl World {
    pub(crate) async fn new(sandbox: SandboxBuilder) -> Self {
        Self::with(sandbox, Settings::default()).await
    }

    pub(crate) async fn with(sandbox: SandboxBuilder, settings: Settings) -> Self {
        Self::made(sandbox, OrderTracker::new(settings), |proxy| proxy).await
    }

    /// As [`new`](Self::new), with a journal.
    pub(crate) async fn journaled(sandbox: SandboxBuilder, journal: &Path) -> Self {
        let journal = FileJournal::open(journal).unwrap();
        Self::made(sandbox, OrderTracker::journaled(Settings::default(), journal), |proxy| proxy).await
    }

    /// As [`new`](Self::new), with a sidecar that `change` has changed.
    pub(crate) async fn that(sandbox: SandboxBuilder, change: impl FnOnce(Proxy) -> Proxy) -> Self {
        Self::made(sandbox, OrderTracker::default(), change).await
    }

    async fn made(
        sandbox: SandboxBuilder,
        tracker: OrderTracker,
        change: impl FnOnce(Proxy) -> Proxy,
    ) -> Self {
        let sandbox = sandbox.build().unwrap();
        let gateway = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let facts = sandbox.credentials_at(gateway.local_addr().unwrap());
        let served = sandbox.clone();
        tokio::spawn(async move { served.serve(gateway, std::future::pending()).await });

        let base: steadfast::BaseUrl = facts.base_url.parse().unwrap();
        let access = Access::token(facts.api_key, facts.access_token).unwrap();
        let client = Client::builder(base.clone(), access)
            .paths(Paths::public())
            .routes(Routes::new(&Paths::public()).guard_unknown())
            .tracker(tracker)
            .build()
            .unwrap();
        let tokens = Tokens::new(TOKEN).unwrap().reader(READER).unwrap();
        let proxy = change(Proxy::new(client.clone(), base, &Paths::public(), tokens));
        let (listener, operators) = (
            TcpListener::bind("127.0.0.1:0").await.unwrap(),
            TcpListener::bind("127.0.0.1:0").await.unwrap(),
        );
        let (address, admin) = (listener.local_addr().unwrap(), operators.local_addr().unwrap());
        let (end, ended) = oneshot::channel();
        let (trading, operating) = (proxy.clone(), proxy.clone());
        let served = tokio::spawn(async move {
            let ended = async { drop(ended.await) };
            trading.serve(listener, ended).await.unwrap();
        });
        tokio::spawn(async move { operating.serve_admin(operators, std::future::pending()).await });
        Self { sandbox, client, proxy, address, admin, served, end: Some(end) }
    }

    /// Returns the bytes of a request with host and token.
    pub(crate) fn request(&self, line: &str, lines: &[&str], body: &str) -> Vec<u8> {
        let host = format!("Host: {}", self.address);
        let token = format!("Authorization: Bearer {TOKEN}");
        let length = format!("Content-Length: {}", body.len());
        let mut all = vec![line, &host, &token];
        all.extend(lines);
        if !body.is_empty() {
            all.extend(["Content-Type: application/x-www-form-urlencoded", &length]);
        }
        format!("{}\r\n\r\n{body}", all.join("\r\n")).into_bytes()
    }

    pub(crate) fn order(&self, lines: &[&str]) -> Vec<u8> {
        self.request(PLACE, lines, FORM)
    }

    pub(crate) async fn connect(&self) -> Line {
        Line(TcpStream::connect(self.address).await.unwrap())
    }

    /// Sends one request over a connection of its own.
    pub(crate) async fn ask(&self, request: &[u8]) -> Answer {
        let mut line = self.connect().await;
        line.send(request).await;
        line.answer().await.unwrap()
    }

    pub(crate) fn arrivals(&self) -> usize {
        self.sandbox.state().arrivals.len()
    }

    pub(crate) fn placed(&self) -> usize {
        self.sandbox.state().orders.len()
    }
}

pub(crate) struct Line(pub(crate) TcpStream);

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(its, _)| its.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

impl Line {
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.unwrap();
    }

    /// Reads one answer; `None` if the connection ends instead.
    pub(crate) async fn answer(&mut self) -> Option<Answer> {
        timeout(Duration::from_secs(60), self.read()).await.unwrap()
    }

    async fn read(&mut self) -> Option<Answer> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await.ok()?);
        }
        let head = String::from_utf8(head).unwrap();
        let mut answer = Answer { status: head[9..12].parse().unwrap(), head, body: String::new() };
        let length: usize = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).await.ok()?;
        answer.body = String::from_utf8(body).unwrap();
        Some(answer)
    }

    /// True if the connection ends without another byte.
    pub(crate) async fn is_over(&mut self) -> bool {
        let mut byte = [0];
        matches!(timeout(Duration::from_secs(5), self.0.read(&mut byte)).await, Ok(Ok(0) | Err(_)))
    }
}
