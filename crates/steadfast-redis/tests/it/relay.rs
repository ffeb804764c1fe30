use std::{
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU16, Ordering},
    },
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// The way of the processes to their server. It can be cut at any byte, and lead to another server.
#[derive(Clone)]
pub(crate) struct Relay(Arc<Way>);

struct Way {
    port: u16,
    leads_to: AtomicU16,
    /// How many bytes pass, in both directions, before all connections are cut.
    left: AtomicI64,
    cuts: watch::Sender<u64>,
}

impl Relay {
    pub(crate) async fn start(leads_to: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let relay = Self(Arc::new(Way {
            port: listener.local_addr().unwrap().port(),
            leads_to: leads_to.into(),
            left: i64::MAX.into(),
            cuts: watch::Sender::new(0),
        }));
        let way = Arc::clone(&relay.0);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(Arc::clone(&way).carry(client));
            }
        });
        relay
    }

    pub(crate) fn port(&self) -> u16 {
        self.0.port
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port())
    }

    /// Cuts all connections once so many more bytes have passed. New ones can be made.
    pub(crate) fn cut_after(&self, bytes: i64) {
        self.0.left.store(bytes, Ordering::SeqCst);
    }

    /// Leads to another server, and cuts the connections to the one before.
    pub(crate) fn lead_to(&self, port: u16) {
        self.0.leads_to.store(port, Ordering::SeqCst);
        self.0.cut();
    }
}

impl Way {
    fn cut(&self) {
        self.left.store(i64::MAX, Ordering::SeqCst);
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    async fn carry(self: Arc<Self>, client: TcpStream) {
        let mut is_cut = self.cuts.subscribe();
        let to = (Ipv4Addr::LOCALHOST, self.leads_to.load(Ordering::SeqCst));
        let Ok(server) = TcpStream::connect(to).await else { return };
        let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
        tokio::select! {
            () = self.pass(from_client, to_server) => {}
            () = self.pass(from_server, to_client) => {}
            _ = is_cut.changed() => {}
        }
    }

    async fn pass(&self, mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut bytes).await {
            let left = self.left.fetch_sub(count as i64, Ordering::SeqCst);
            let passes = count.min(usize::try_from(left).unwrap_or(0));
            if to.write_all(&bytes[..passes]).await.is_err() {
                return;
            }
            if passes < count {
                return self.cut();
            }
        }
    }
}
