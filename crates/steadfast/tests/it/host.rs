//! The transport to one host, over real sockets: which answers it believes, and which connections it uses again.

mod answers;
mod bounds;
mod reuse;
mod stale;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use steadfast::{
    BaseUrl, BoxError, HostTransport, Transport,
    call::{Call, Failure, Fate, Lane},
    ext::SendStamp,
};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    net::TcpListener,
};
use tower::ServiceExt;

type Form = Full<Bytes>;

/// One thing that a gateway does with a request.
#[derive(Clone, Copy, Debug)]
enum Step {
    Say(&'static str),
    Wait(Duration),
    Close,
}

const OK: Step = Step::Say("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
const MOMENT: Duration = Duration::from_millis(30);

/// A gateway that does with the nth request what its script says, and with all after its end what the last line says.
#[derive(Clone)]
struct Gateway {
    base: BaseUrl,
    script: Arc<Vec<Vec<Step>>>,
    connections: Arc<AtomicUsize>,
    /// For each request, the number of its connection.
    requests: Arc<Mutex<Vec<usize>>>,
}

impl Gateway {
    fn new(base: &str, script: Vec<Vec<Step>>) -> Self {
        Self {
            base: base.parse().unwrap(),
            script: Arc::new(script),
            connections: Arc::default(),
            requests: Arc::default(),
        }
    }

    async fn start(script: Vec<Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let gateway = Self::new(&format!("http://{}/v2", listener.local_addr().unwrap()), script);
        let accepting = gateway.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(accepting.clone().serve(BufReader::new(stream)));
            }
        });
        gateway
    }

    async fn serve(self, mut stream: impl AsyncBufRead + AsyncWrite + Unpin) {
        let number = self.connections.fetch_add(1, Ordering::SeqCst) + 1;
        while heard(&mut stream).await.is_some() {
            let nth = {
                let mut requests = self.requests.lock().unwrap();
                requests.push(number);
                requests.len()
            };
            for step in &self.script[nth.min(self.script.len()) - 1] {
                match step {
                    Step::Say(text) => {
                        let _ = stream.write_all(text.as_bytes()).await;
                        let _ = stream.flush().await;
                    }
                    Step::Wait(time) => tokio::time::sleep(*time).await,
                    Step::Close => return,
                }
            }
        }
    }

    fn transport(&self) -> HostTransport<Form> {
        Transport::new().to(&self.base).unwrap()
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Returns the number of each request's connection.
    fn requests(&self) -> Vec<usize> {
        self.requests.lock().unwrap().clone()
    }

    fn read(&self) -> Request<Form> {
        Request::get(format!("{}/api/oms/orders", self.base)).body(Form::default()).unwrap()
    }

    fn order(&self) -> Request<Form> {
        Request::post(format!("{}/api/oms/place-order", self.base)).body(Form::from("qty=1")).unwrap()
    }

    /// Returns a read that must not wait.
    fn cancel(&self) -> Request<Form> {
        let mut cancel = self.read();
        Call::of_mut(cancel.extensions_mut()).set_lane(Lane::Critical);
        cancel
    }

    /// Returns an order, and the evidence of its send.
    fn stamped_order(&self) -> (Request<Form>, SendStamp) {
        let (mut order, stamp) = (self.order(), SendStamp::new());
        Call::of_mut(order.extensions_mut()).set_send(stamp.clone());
        (order, stamp)
    }
}

/// Reads one request; `None` at the end of the connection.
async fn heard(stream: &mut (impl AsyncBufRead + Unpin)) -> Option<()> {
    let (mut line, mut length) = (String::new(), 0);
    while line != "\r\n" {
        line.clear();
        stream.read_line(&mut line).await.ok().filter(|&read| read > 0)?;
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    stream.read_exact(&mut vec![0; length]).await.ok()?;
    Some(())
}

/// Sends a request and reads its answer to the end.
async fn whole(transport: &HostTransport<Form>, request: Request<Form>) -> Result<Bytes, BoxError> {
    Ok(transport.clone().oneshot(request).await?.into_body().collect().await?.to_bytes())
}

fn fate(error: &BoxError) -> Option<Fate> {
    Failure::find(&**error).map(Failure::fate)
}
