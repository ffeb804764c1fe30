mod greeting;

use std::{
    convert::Infallible,
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    pin::pin,
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};
use tower_service::Service;

use crate::{
    admin::{Admin, Callers},
    sandbox::Sandbox,
    wire::seats::{Seat, Seats},
    wire::{self, Answer, Hub, Line},
};

use self::greeting::serve;

/// The number of connections served at once. A further one replaces the connection that has been idle longest; if
/// none is idle, it waits, and later ones wait in the listener's backlog.
const MOST_CONNECTIONS: usize = 1_024;
/// How long open requests may take to end once the server is told to stop.
const DRAIN: Duration = Duration::from_secs(2);

impl Sandbox {
    /// Serves the gateway on `listener` until `shutdown` completes, then ends open connections.
    ///
    /// # Errors
    ///
    /// The listener's, if it fails for good.
    pub async fn serve(&self, listener: TcpListener, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let shared = self.shared.clone();
        listen(listener, shutdown, move |stream, peer, stop, seat| {
            let shared = shared.clone();
            async move { serve(shared, stream, peer.ip(), stop, &seat).await }
        })
        .await
    }

    /// Serves the gateway on one connection of any kind until it ends, for a client at `peer`.
    ///
    /// This lets a test run a real HTTP client against the gateway without a socket:
    ///
    /// ```
    /// use steadfast_sandbox::Sandbox;
    /// use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let sandbox = Sandbox::builder().fault("transport.status-line-cut", 1.0)?.build()?;
    /// let (mut client, server) = duplex(4_096);
    /// tokio::spawn(async move { sandbox.serve_line(server, [127, 0, 0, 1].into()).await });
    ///
    /// client.write_all(b"GET /v2/api/oms/orders HTTP/1.1\r\nhost: sandbox\r\n\r\n").await?;
    /// let mut answer = String::new();
    /// client.read_to_string(&mut answer).await?;
    /// assert_eq!(answer, "HTTP/1.1 20");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn serve_line(&self, line: impl Line, peer: IpAddr) {
        let (_running, stop) = watch::channel(());
        serve(self.shared.clone(), line, peer, stop, &Seat::default()).await;
    }

    /// Serves the admin API on `listener` until `shutdown` completes.
    ///
    /// It answers calls to its own address or to `localhost`. A request with another `Host`, or with an `Origin`, as
    /// web pages send it, is answered with 403.
    ///
    /// # Errors
    ///
    /// The listener's, if it fails for good.
    pub async fn serve_admin(
        &self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let (sandbox, bound) = (self.clone(), listener.local_addr()?);
        listen(listener, shutdown, move |stream, _, stop, seat| {
            // Bound to all addresses of the machine, it is called by one of them.
            let addresses = stream.local_addr().into_iter().chain([bound]);
            let admin = Admin::new(sandbox.clone(), Callers::of(addresses));
            let service = move |request| {
                let answer = admin.clone().call(request);
                async move { answer.await.map_or_else(|never: Infallible| match never {}, Answer::Response) }
            };
            async move { wire::converse(stream, service, stop, &Hub::default(), &seat).await }
        })
        .await
    }
}

async fn listen<C, F>(listener: TcpListener, shutdown: impl Future<Output = ()>, serve: C) -> io::Result<()>
where
    C: Fn(TcpStream, SocketAddr, watch::Receiver<()>, Seat) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let (running, stop) = watch::channel(());
    let seats = Seats::new(MOST_CONNECTIONS);
    // Dropping this future drops every connection.
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    let mut waiting = None;
    loop {
        let seat = tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(ended) = connections.join_next() => {
                report(ended);
                continue;
            }
            accepted = accept(&listener), if waiting.is_none() => {
                waiting = Some(accepted?);
                continue;
            }
            seat = seats.take(), if waiting.is_some() => seat,
        };
        if let Some((stream, peer)) = waiting.take() {
            let left = seat.left();
            let connection = serve(stream, peer, stop.clone(), seat);
            connections.spawn(async move {
                tokio::select! {
                    biased;
                    () = left => {}
                    () = connection => {}
                }
            });
        }
    }
    drop(listener);
    running.send_replace(());
    let ended = async {
        while let Some(ended) = connections.join_next().await {
            report(ended);
        }
    };
    if tokio::time::timeout(DRAIN, ended).await.is_err() {
        tracing::warn!("connections were still open at the end");
    }
    connections.shutdown().await;
    Ok(())
}

fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "connection failed");
    }
}

async fn accept(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // This only makes answers faster, and may fail if the client is gone already.
                let _ = stream.set_nodelay(true);
                return Ok((stream, peer));
            }
            // The client gave up, or file descriptors are short for a moment: neither ends the server.
            Err(error) if is_passing(&error) => {
                tracing::warn!(%error, "connection not accepted");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Err(error) => return Err(error),
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    const EMFILE: i32 = 24;
    const ENFILE: i32 = 23;
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    ) || matches!(error.raw_os_error(), Some(EMFILE | ENFILE))
}
