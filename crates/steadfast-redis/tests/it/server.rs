use std::{
    env, io,
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::Duration,
};

use redis::{AsyncConnectionConfig, aio::MultiplexedConnection};
use tempfile::TempDir;

/// The program of the server where it is another one than `redis-server`, as `valkey-server`.
const PROGRAM: &str = "STEADFAST_REDIS_SERVER";
/// Set where a test that cannot be run must fail.
const MUST_RUN: &str = "STEADFAST_MUST_RUN";

/// A real server of its own: on a free port of the loopback, with its files in a folder that goes with it.
/// Dropping it ends the server.
pub(crate) struct Server {
    process: Child,
    port: u16,
    folder: TempDir,
}

impl Server {
    /// Starts one without persistence. `None` if the program is not installed.
    pub(crate) async fn start() -> Option<Self> {
        Self::start_with(&[]).await
    }

    /// Starts one with these settings.
    pub(crate) async fn start_with(settings: &[&str]) -> Option<Self> {
        let folder = TempDir::new().unwrap();
        // Another program may take the port before the server does.
        for _ in 0..10 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let mut process = match spawn(&folder, port, settings) {
                Ok(process) => process,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    assert!(env::var_os(MUST_RUN).is_none(), "not run: redis-server is not installed");
                    println!("not run: redis-server is not installed");
                    return None;
                }
                Err(error) => panic!("redis-server does not start: {error}"),
            };
            if is_up(&mut process, port).await {
                return Some(Self { process, port, folder });
            }
            process.wait().unwrap();
        }
        panic!("redis-server finds no free port")
    }

    /// Ends it at once.
    pub(crate) fn end(&mut self) {
        end(&mut self.process);
    }

    /// Ends it at once and starts another one in its place, which remembers nothing.
    pub(crate) async fn restart(&mut self) {
        self.restart_with(&[]).await;
    }

    /// The same with these settings, and with what is in its folder.
    pub(crate) async fn restart_with(&mut self, settings: &[&str]) {
        self.end();
        self.process = spawn(&self.folder, self.port, settings).unwrap();
        assert!(is_up(&mut self.process, self.port).await, "another program took the port");
    }

    /// Stops its process, or lets it go on.
    pub(crate) fn stop(&self, is_stopped: bool) {
        let signal = if is_stopped { "-STOP" } else { "-CONT" };
        let ended = Command::new("kill").arg(signal).arg(self.process.id().to_string()).status().unwrap();
        assert!(ended.success());
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    pub(crate) async fn connection(&self) -> MultiplexedConnection {
        // A server may take its time where the cores are busy.
        let patient = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(Duration::from_secs(30)))
            .set_response_timeout(Some(Duration::from_secs(30)));
        let client = redis::Client::open(self.url()).unwrap();
        client.get_multiplexed_async_connection_with_config(&patient).await.unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

/// Returns the program of the server.
pub(crate) fn program() -> Command {
    Command::new(env::var_os(PROGRAM).unwrap_or_else(|| "redis-server".into()))
}

fn spawn(folder: &TempDir, port: u16, settings: &[&str]) -> io::Result<Child> {
    program()
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
        .args(settings)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// Waits until the server answers. False if it ended.
async fn is_up(process: &mut Child, port: u16) -> bool {
    for _ in 0..1_000 {
        if process.try_wait().unwrap().is_some() {
            return false;
        }
        let client = redis::Client::open(("127.0.0.1", port)).unwrap();
        if let Ok(mut connection) = client.get_multiplexed_async_connection().await
            && redis::cmd("PING").query_async::<()>(&mut connection).await.is_ok()
        {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("redis-server does not answer")
}

fn end(process: &mut Child) {
    // It may have ended by itself.
    let _ = process.kill();
    let _ = process.wait();
}
