use std::{
    convert::Infallible,
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
};
use tower_service::Service;

use crate::{
    admin::Admin,
    sandbox::Sandbox,
    wire::{self, Answer, Hub, Line},
};

/// Connections served at once; further ones wait in the listener's backlog.
const MOST_CONNECTIONS: usize = 1_024;
/// How long open requests may take to end once the server is told to stop.
const DRAIN: Duration = Duration::from_secs(2);

impl Sandbox {
    /// Serves the gateway on `listener` until `shutdown` completes, then ends what is open.
    ///
    /// # Errors
    ///
    /// The listener's, if it fails for good.
    pub async fn serve(&self, listener: TcpListener, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let shared = self.shared.clone();
        listen(listener, shutdown, move |stream, peer, stop| {
            wire::serve(shared.clone(), stream, peer.ip(), stop)
        })
        .await
    }

    /// Serves the gateway on one connection of any kind until it ends, for a client at `peer`.
    ///
    /// This is how a test puts a real HTTP client before the gateway without a socket:
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
        wire::serve(self.shared.clone(), line, peer, stop).await;
    }

    /// Serves the admin API on `listener` until `shutdown` completes.
    ///
    /// # Errors
    ///
    /// The listener's, if it fails for good.
    pub async fn serve_admin(
        &self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let admin = Admin::new(self.clone());
        listen(listener, shutdown, move |stream, _, stop| {
            let admin = admin.clone();
            let service = move |request| {
                let answer = admin.clone().call(request);
                async move { answer.await.map_or_else(|never: Infallible| match never {}, Answer::Response) }
            };
            async move { wire::converse(stream, service, stop, &Hub::default()).await }
        })
        .await
    }
}

async fn listen<C, F>(listener: TcpListener, shutdown: impl Future<Output = ()>, serve: C) -> io::Result<()>
where
    C: Fn(TcpStream, SocketAddr, watch::Receiver<()>) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let (running, stop) = watch::channel(());
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    // Dropped with this future, and every connection with it.
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let (stream, peer, place) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(ended) = connections.join_next() => {
                report(ended);
                continue;
            }
            accepted = accept(&listener, &places) => accepted?,
        };
        let connection = serve(stream, peer, stop.clone());
        connections.spawn(async move {
            connection.await;
            drop(place);
        });
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

type Place = tokio::sync::OwnedSemaphorePermit;

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, Place)> {
    let place = places.clone().acquire_owned().await.map_err(io::Error::other)?;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // It only speeds answers up, and a client that is gone already is no reason to end.
                let _ = stream.set_nodelay(true);
                return Ok((stream, peer, place));
            }
            // The client gave up, or the process is short of descriptors for a moment: neither ends the server.
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
