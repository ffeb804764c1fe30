//! Accepts connections, and keeps places free for callers that are known.

use std::{future::Future, io, pin::pin, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::JoinSet,
    time::timeout,
};

use crate::{
    forward::AT_ONCE,
    screen::Peer,
    strangers::{Stranger, Strangers},
};

/// How many connections a listener has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The most. Later ones wait in its backlog until a stranger or an idle caller has left.
    pub(crate) connections: usize,
    /// The most of them whose callers have not shown a token yet.
    pub(crate) strangers: usize,
}

impl Default for Limits {
    fn default() -> Self {
        // More than there are requests open at once: however many orders wait, another connection can make room for a
        // cancel.
        Self { connections: 2 * AT_ONCE as usize + 176, strangers: 200 }
    }
}

/// Brings connections of one kind.
pub(crate) trait Accept {
    type Stream: AsyncRead + AsyncWrite + Peer + Unpin + Send + 'static;

    /// Waits for the next connection; `None` for one whose caller may not connect.
    fn accept(&self) -> impl Future<Output = io::Result<Option<Self::Stream>>>;
}

impl Accept for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<Option<TcpStream>> {
        let (stream, _) = TcpListener::accept(self).await?;
        // This only makes answers faster, and may fail if the client is gone already.
        let _ = stream.set_nodelay(true);
        Ok(Some(stream))
    }
}

/// A Unix socket for programs of this user alone, whatever the rights of its file.
#[cfg(unix)]
pub(crate) struct OwnSocket {
    socket: tokio::net::UnixListener,
    user: u32,
}

#[cfg(unix)]
impl OwnSocket {
    pub(crate) fn new(socket: tokio::net::UnixListener) -> io::Result<Self> {
        // Both ends are this process's.
        let (own, _) = tokio::net::UnixStream::pair()?;
        Ok(Self { socket, user: own.peer_cred()?.uid() })
    }
}

#[cfg(unix)]
impl Accept for OwnSocket {
    type Stream = tokio::net::UnixStream;

    async fn accept(&self) -> io::Result<Option<Self::Stream>> {
        let (stream, _) = self.socket.accept().await?;
        let is_own = stream.peer_cred().is_ok_and(|peer| peer.uid() == self.user);
        if !is_own {
            tracing::warn!("another user of this machine was turned away");
        }
        Ok(is_own.then_some(stream))
    }
}

/// Serves connections until `shutdown` completes, and then those that are open until they end.
pub(crate) async fn listen<L, C, F>(
    listener: L,
    limits: Limits,
    shutdown: impl Future<Output = ()>,
    serve: C,
) -> io::Result<()>
where
    L: Accept,
    C: Fn(L::Stream, watch::Receiver<()>, Arc<Stranger>) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let (running, stop) = watch::channel(());
    let (places, strangers) =
        (Arc::new(Semaphore::new(limits.connections)), Strangers::new(limits.strangers));
    // Dropping this future drops every connection.
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    let ended = loop {
        while connections.try_join_next().is_some() {}
        let accepted = async {
            let stream = next(&listener).await?;
            Ok((stream, place(&places, &strangers).await))
        };
        let accepted = tokio::select! {
            biased;
            () = &mut shutdown => break Ok(()),
            accepted = accepted => accepted,
        };
        let (stream, place) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => break Err(error),
        };
        let caller = strangers.enter();
        let connection = serve(stream, stop.clone(), caller.clone());
        connections.spawn(async move {
            tokio::select! {
                biased;
                () = caller.dismissed() => {}
                () = connection => {}
            }
            drop(place);
        });
    };
    drop(listener);
    running.send_replace(());
    while connections.join_next().await.is_some() {}
    ended
}

/// Waits for a place. An idle caller or a stranger has to make room if there is none.
async fn place(places: &Arc<Semaphore>, strangers: &Strangers) -> Option<OwnedSemaphorePermit> {
    if let Ok(place) = places.clone().try_acquire_owned() {
        return Some(place);
    }
    loop {
        strangers.make_room();
        // One that has become known meanwhile stays.
        if let Ok(place) = timeout(Duration::from_millis(10), places.clone().acquire_owned()).await {
            return place.ok();
        }
    }
}

/// Waits for the next connection of a caller who may connect.
async fn next<L: Accept>(listener: &L) -> io::Result<L::Stream> {
    loop {
        match listener.accept().await {
            Ok(Some(stream)) => return Ok(stream),
            Ok(None) => {}
            Err(error) if is_passing(&error) => {
                tracing::warn!(%error, "connection not accepted");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// True unless the listener itself is of no use. A caller may have given up, its network may be down, and descriptors or
/// memory may be short for a moment.
fn is_passing(error: &io::Error) -> bool {
    error.kind() != io::ErrorKind::InvalidInput
}

#[cfg(test)]
mod tests {
    use steadfast::{Access, Client, spec::Paths};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::{front::Tokens, proxy::Proxy};

    #[test]
    fn a_shortage_or_a_lost_caller_does_not_end_the_listener() {
        // Linux: EPERM, ENOMEM, ENFILE, EMFILE, EPROTO, ENETDOWN, ECONNABORTED, ENOBUFS, EHOSTUNREACH.
        for passing in [1, 12, 23, 24, 71, 100, 103, 105, 113] {
            assert!(is_passing(&io::Error::from_raw_os_error(passing)), "{passing}");
        }
        assert!(!is_passing(&io::Error::from_raw_os_error(22)), "it does not listen");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn another_user_is_turned_away_from_a_socket() {
        let folder = std::env::temp_dir().join(format!("steadfast-own-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("socket");
        let own = OwnSocket::new(tokio::net::UnixListener::bind(&path).unwrap()).unwrap();
        let _caller = tokio::net::UnixStream::connect(&path).await.unwrap();
        assert!(Accept::accept(&own).await.unwrap().is_some());
        let others = OwnSocket { user: own.user + 1, ..own };
        let _caller = tokio::net::UnixStream::connect(&path).await.unwrap();
        assert!(Accept::accept(&others).await.unwrap().is_none());
        std::fs::remove_dir_all(folder).unwrap();
    }

    /// Regression: connections that programs kept for later held every place, and a cancel could not connect.
    #[tokio::test]
    async fn an_idle_caller_makes_room_and_one_that_waits_for_an_answer_stays() {
        const FORM: &str = "symId=S&qty=1&side=buy&type=market&product=intraday&validity=day";
        let base: steadfast::BaseUrl = "http://127.0.0.1:9/v2".parse().unwrap();
        let client = Client::builder(base.clone(), Access::token("key", "token").unwrap()).build().unwrap();
        // Orders are answered at once.
        client.halt();
        let tokens = Tokens::new("trade-0123456789abcdef").unwrap();
        let mut proxy = Proxy::new(client, base, &Paths::public(), tokens);
        proxy.limits = Limits { connections: 3, strangers: 3 };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { proxy.serve(listener, std::future::pending()).await });
        let head = format!(
            "POST /v2/api/oms/place-order HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer trade-0123456789abcdef\r\n\
             Content-Length: {}\r\n\r\n",
            FORM.len()
        );
        let send =
            async |caller: &mut TcpStream, text: &str| caller.write_all(text.as_bytes()).await.unwrap();
        let answer = async |caller: &mut TcpStream| {
            let mut text = [0; 1024];
            let length = timeout(Duration::from_secs(5), caller.read(&mut text)).await.unwrap().unwrap();
            String::from_utf8_lossy(&text[..length]).into_owned()
        };
        let connect = async || TcpStream::connect(address).await.unwrap();
        let (mut waits, mut idle, mut later) = (connect().await, connect().await, connect().await);
        send(&mut waits, &head).await;
        for caller in [&mut idle, &mut later] {
            send(caller, &format!("{head}{FORM}")).await;
            assert!(answer(caller).await.contains("halted"));
        }
        let mut new = connect().await;
        send(&mut new, &format!("{head}{FORM}")).await;
        assert!(answer(&mut new).await.contains("halted"));
        assert_eq!(answer(&mut idle).await, "", "it made room");
        send(&mut waits, FORM).await;
        send(&mut later, &format!("{head}{FORM}")).await;
        for caller in [&mut waits, &mut later] {
            assert!(answer(caller).await.contains("halted"));
        }
    }
}
