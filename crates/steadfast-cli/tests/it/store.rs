//! A real `redis-server` of a test's own.

#![allow(clippy::print_stderr, reason = "a test says that it is not run")]

use std::{
    io,
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};

/// Settings of a store that can keep orders.
pub(crate) const KEEPS: &[&str] = &["--appendonly", "yes", "--appendfsync", "always"];

/// One on a free port of the loopback, with its files in a folder that goes with it. Dropping it ends the server.
pub(crate) struct Store {
    process: Child,
    pub(crate) port: u16,
    _folder: TempDir,
}

impl Store {
    /// `None` if the program is not installed.
    pub(crate) async fn start(settings: &[&str]) -> Option<Self> {
        // Another program may take the port before the server does.
        for _ in 0..10 {
            let folder = TempDir::new().unwrap();
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let mut command = Command::new("redis-server");
            command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]).args(settings);
            command
                .current_dir(folder.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let process = match command.spawn() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    assert!(std::env::var_os("STEADFAST_MUST_RUN").is_none(), "redis-server is missing");
                    eprintln!("not run: redis-server is missing");
                    return None;
                }
                process => process.unwrap(),
            };
            let store = Self { process, port, _folder: folder };
            if timeout(Duration::from_secs(10), store.is_up()).await.is_ok() {
                return Some(store);
            }
        }
        panic!("redis-server finds no free port")
    }

    async fn is_up(&self) {
        while TcpStream::connect(("127.0.0.1", self.port)).await.is_err() {
            sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Sends a command of one line, and returns the first part of the answer.
    pub(crate) async fn tell(&self, command: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        stream.write_all(format!("{command}\r\n").as_bytes()).await.unwrap();
        let mut answer = vec![0; 4_096];
        let length = stream.read(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer[..length]).into_owned()
    }

    /// Stops its process, or lets it go on.
    pub(crate) fn stop(&self, is_stopped: bool) {
        let signal = if is_stopped { "-STOP" } else { "-CONT" };
        let sent = Command::new("kill").arg(signal).arg(self.process.id().to_string()).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
