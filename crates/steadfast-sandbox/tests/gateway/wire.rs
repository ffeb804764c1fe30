//! A client that writes HTTP/1.1 by hand, so that it can send what no library would.

use std::{future::Future, io, net::SocketAddr, time::Duration};

use serde_json::Value;
use steadfast_sandbox::Sandbox;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};

/// A server on a free port of the loopback interface.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    served: JoinHandle<io::Result<()>>,
}

impl Server {
    pub(crate) async fn gateway(sandbox: &Sandbox) -> Self {
        let sandbox = sandbox.clone();
        Self::start(async move |listener, stop| sandbox.serve(listener, stop).await).await
    }

    pub(crate) async fn admin(sandbox: &Sandbox) -> Self {
        let sandbox = sandbox.clone();
        Self::start(async move |listener, stop| sandbox.serve_admin(listener, stop).await).await
    }

    async fn start<S, F>(serve: S) -> Self
    where
        S: FnOnce(TcpListener, Stop) -> F + Send + 'static,
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel();
        let stopped = Box::pin(async move { stopped.await.unwrap_or_default() });
        Self { address, stop, served: tokio::spawn(serve(listener, stopped)) }
    }

    pub(crate) async fn connect(&self) -> Wire {
        Wire::new(TcpStream::connect(self.address).await.expect("a connection"))
    }

    /// Connects from another address of the loopback interface.
    pub(crate) async fn connect_from(&self, ip: [u8; 4]) -> Wire {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind((ip, 0).into()).expect("a loopback address");
        Wire::new(socket.connect(self.address).await.expect("a connection"))
    }

    /// Sends one request on a connection of its own.
    pub(crate) async fn ask(&self, request: &str) -> Response {
        let mut wire = self.connect().await;
        wire.send(request).await;
        wire.response().await.expect("an answer")
    }

    pub(crate) fn begin_to_stop(self) -> JoinHandle<io::Result<()>> {
        let _ = self.stop.send(());
        self.served
    }

    pub(crate) async fn stop(self) {
        self.begin_to_stop().await.expect("no panic").expect("no error");
    }
}

type Stop = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// One connection.
pub(crate) struct Wire {
    stream: TcpStream,
    read: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// False if the connection was closed in the middle of the body.
    pub(crate) whole: bool,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().filter_map(|line| line.split_once(':'));
        fields.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let body = String::from_utf8_lossy(&self.body);
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {} {body}", self.head))
    }
}

/// Longer than any answer takes; only a test that fails waits for it.
const PATIENCE: Duration = Duration::from_secs(120);

impl Wire {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, read: Vec::new() }
    }

    pub(crate) async fn send(&mut self, text: impl AsRef<[u8]>) {
        // A server may refuse a request before it has read all of it.
        let _ = self.stream.write_all(text.as_ref()).await;
    }

    /// Ends the sending side only.
    pub(crate) async fn half_close(&mut self) {
        self.stream.shutdown().await.expect("a connection");
    }

    pub(crate) async fn response(&mut self) -> io::Result<Response> {
        self.response_to("GET").await
    }

    /// Reads an answer; one to a HEAD has no body.
    pub(crate) async fn response_to(&mut self, method: &str) -> io::Result<Response> {
        let end = loop {
            if let Some(end) = self.read.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end + 4;
            }
            if self.more().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        };
        let head: Vec<u8> = self.read.drain(..end).collect();
        let head = String::from_utf8(head).map_err(io::Error::other)?;
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .ok_or(io::ErrorKind::InvalidData)?;
        let mut response = Response { status, head, body: Vec::new(), whole: true };
        if method == "HEAD" {
            return Ok(response);
        }
        if response.header("transfer-encoding") == Some("chunked") {
            self.chunks(&mut response).await?;
        } else {
            let length =
                response.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
            response.whole = self.fill(length).await?;
            response.body = self.read.drain(..length.min(self.read.len())).collect();
        }
        Ok(response)
    }

    async fn chunks(&mut self, response: &mut Response) -> io::Result<()> {
        loop {
            let line = loop {
                if let Some(end) = self.read.windows(2).position(|bytes| bytes == b"\r\n") {
                    break self.read.drain(..end + 2).collect::<Vec<u8>>();
                }
                if self.more().await? == 0 {
                    response.whole = false;
                    return Ok(());
                }
            };
            let size = String::from_utf8_lossy(&line);
            let size = usize::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
            if !self.fill(size + 2).await? {
                response.whole = false;
                return Ok(());
            }
            response.body.extend(self.read.drain(..size + 2).take(size));
            if size == 0 {
                return Ok(());
            }
        }
    }

    /// Reads until so many bytes have arrived; returns false if the connection ends before.
    async fn fill(&mut self, length: usize) -> io::Result<bool> {
        while self.read.len() < length {
            if self.more().await? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns how the connection ends: the number of unread bytes, or an error.
    pub(crate) async fn end(&mut self) -> io::Result<usize> {
        while self.more().await? > 0 {}
        Ok(self.read.len())
    }

    async fn more(&mut self) -> io::Result<usize> {
        let read = self.stream.read_buf(&mut self.read);
        tokio::time::timeout(PATIENCE, read).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }
}
