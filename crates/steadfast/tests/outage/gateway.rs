//! A gateway that notes everything that arrives, over plain TCP or TLS.

use std::{
    io,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
    sync::watch,
};
use tokio_rustls::{TlsAcceptor, rustls};

/// The protocol below HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Plain,
    Tls,
}

pub(crate) struct Gateway {
    pub(crate) base: String,
    /// Its certificate authority; unused over plain TCP.
    pub(crate) pem: String,
    notes: Arc<Mutex<Notes>>,
    reads: watch::Sender<bool>,
}

#[derive(Default)]
struct Notes {
    orders: usize,
    heard: usize,
    endings: Vec<Result<(), io::ErrorKind>>,
}

impl Gateway {
    pub(crate) async fn start(way: Way) -> Self {
        let (acceptor, pem) = authority();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let base = match way {
            Way::Plain => format!("http://localhost:{port}/v2"),
            Way::Tls => format!("https://localhost:{port}/v2"),
        };
        let (notes, reads) = (Arc::<Mutex<Notes>>::default(), watch::Sender::new(true));
        let (noted, may_read) = (notes.clone(), reads.subscribe());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, noted, may_read) = (acceptor.clone(), noted.clone(), may_read.clone());
                tokio::spawn(async move {
                    let ending = match way {
                        Way::Plain => serve(stream, &noted, may_read).await,
                        Way::Tls => match acceptor.accept(stream).await {
                            Ok(stream) => serve(stream, &noted, may_read).await,
                            Err(error) => Err(error),
                        },
                    };
                    noted.lock().unwrap().endings.push(ending.map_err(|error| error.kind()));
                });
            }
        });
        Self { base, pem, notes, reads }
    }

    /// Returns how many orders have arrived.
    pub(crate) fn orders(&self) -> usize {
        self.notes.lock().unwrap().orders
    }

    /// Returns how many bytes have arrived.
    pub(crate) fn heard(&self) -> usize {
        self.notes.lock().unwrap().heard
    }

    /// Returns how each ended connection has ended.
    pub(crate) fn endings(&self) -> Vec<Result<(), io::ErrorKind>> {
        self.notes.lock().unwrap().endings.clone()
    }

    pub(crate) fn stop_reading(&self) {
        self.reads.send_replace(false);
    }

    pub(crate) fn go_on_reading(&self) {
        self.reads.send_replace(true);
    }
}

/// Creates a certificate for `localhost`, and the authority that signed it.
pub(crate) fn authority() -> (TlsAcceptor, String) {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(signed.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![signed.cert.der().clone()], key)
        .unwrap();
    (TlsAcceptor::from(Arc::new(config)), signed.cert.pem())
}

/// Reads one request after the other, and answers each.
async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    notes: &Mutex<Notes>,
    mut may_read: watch::Receiver<bool>,
) -> io::Result<()> {
    let (mut text, mut piece) = (Vec::new(), vec![0; 64 * 1024]);
    loop {
        may_read.wait_for(|&may| may).await.map_err(io::Error::other)?;
        let read = stream.read(&mut piece).await?;
        if read == 0 {
            return Ok(());
        }
        notes.lock().unwrap().heard += read;
        text.extend_from_slice(&piece[..read]);
        while let Some((head, whole)) = request(&text) {
            let is_order = head.contains("/place-order ");
            text.drain(..whole);
            let answer = match is_order {
                true => r#"{"s":"ok","d":{"orderId":"7","msg":"placed"}}"#,
                false => r#"{"s":"no-data"}"#,
            };
            notes.lock().unwrap().orders += usize::from(is_order);
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{answer}", answer.len());
            stream.write_all(answer.as_bytes()).await?;
            stream.flush().await?;
        }
    }
}

/// Returns the head of the first request and its whole length, once it is complete.
fn request(text: &[u8]) -> Option<(String, usize)> {
    let end = text.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&text[..end]).to_lowercase();
    let length = head
        .split_once("content-length: ")
        .map_or(0, |(_, rest)| rest.split("\r\n").next().and_then(|length| length.parse().ok()).unwrap_or(0));
    (text.len() >= end + length).then_some((head, end + length))
}
