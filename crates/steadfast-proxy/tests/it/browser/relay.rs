//! A line between browser and sidecar that can be cut and frozen.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passes {
    Everything,
    /// Connections stay, and nothing comes from the sidecar.
    Nothing,
    /// All connections are closed, and each new one at once.
    NoConnection,
}

pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    passes: watch::Sender<Passes>,
}

impl Relay {
    pub(crate) async fn to(sidecar: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (passes, line) = watch::channel(Passes::Everything);
        tokio::spawn(async move {
            loop {
                let (caller, _) = listener.accept().await.unwrap();
                tokio::spawn(carry(caller, sidecar, line.clone()));
            }
        });
        Self { address, passes }
    }

    pub(crate) fn let_pass(&self, passes: Passes) {
        self.passes.send(passes).unwrap();
    }
}

async fn carry(caller: TcpStream, sidecar: SocketAddr, mut line: watch::Receiver<Passes>) {
    let mut cut = line.clone();
    let carried = async {
        let (mut from, mut to) = TcpStream::connect(sidecar).await?.into_split();
        let (mut reader, mut writer) = caller.into_split();
        let answers = async {
            let mut bytes = [0; 16_384];
            loop {
                let length = from.read(&mut bytes).await?;
                // Its sender is gone once the test has ended.
                let _ = line.wait_for(|passes| *passes == Passes::Everything).await;
                if length == 0 {
                    return writer.shutdown().await;
                }
                writer.write_all(&bytes[..length]).await?;
            }
        };
        tokio::try_join!(tokio::io::copy(&mut reader, &mut to), answers)
    };
    tokio::select! {
        _ = carried => (),
        _ = cut.wait_for(|passes| *passes == Passes::NoConnection) => (),
    }
}
