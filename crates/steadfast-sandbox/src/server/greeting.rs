use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::watch,
    time::{sleep, timeout},
};

use crate::wire::{Answer, End, Line, Script, converse, patience::GIVE_UP};
use crate::{
    faults::Fault,
    gateway::{
        plan::Strike,
        service::{Gateway, PeerIp},
        shared::Shared,
    },
    site::Site,
    wire::{Body, seats::Seat},
};

/// How long the server does not read from a slowly accepted connection.
const SLOW: Duration = Duration::from_secs(5);
/// The number of the answer after which a connection ends without notice.
const LAST_ANSWER: u32 = 3;
/// A request is broken off within this many bytes; no order is shorter.
const SHORTEST_REQUEST: u64 = 200;
/// An answer that the server sends without a request.
const UNASKED: &[u8] = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Serves the gateway on one connection, under the fault that strikes it, if one does.
pub(crate) async fn serve<I: Line>(
    shared: Arc<Shared>,
    mut io: I,
    peer: IpAddr,
    stop: watch::Receiver<()>,
    seat: &Seat,
) {
    let struck = shared.engine.lock().accept();
    let most = match struck {
        None => None,
        Some((Strike { fault, at_byte, .. }, chance)) => match fault {
            Fault::ConnectionAcceptReset => return io.reset(),
            Fault::ConnectionAcceptClose => return drop(io.shutdown().await),
            Fault::ConnectionBlackHole => return sleep(GIVE_UP).await,
            Fault::ConnectionEarlyAnswer => {
                drop(io.write_all(UNASKED).await);
                return drop(io.shutdown().await);
            }
            Fault::ConnectionResetMidRequest => {
                let mut left = at_byte.unwrap_or(chance % SHORTEST_REQUEST);
                while left > 0 {
                    let mut bytes = [0; 256];
                    let most = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    match timeout(GIVE_UP, io.read(&mut bytes[..most])).await {
                        Ok(Ok(read)) if read > 0 => left -= read as u64,
                        _ => return,
                    }
                }
                return io.reset();
            }
            Fault::ConnectionAcceptSlow => {
                sleep(SLOW).await;
                None
            }
            _ => Some(LAST_ANSWER),
        },
    };
    let (gateway, site) = (Gateway::new(shared.clone()), Site::new(shared.clone()));
    let answers = Arc::new(AtomicU32::new(0));
    let service = move |mut request: Request<Incoming>| {
        let (gateway, site, answers) = (gateway.clone(), site.clone(), answers.clone());
        request.extensions_mut().insert(PeerIp(peer));
        async move {
            let asked = site.asked(&request);
            if let Some(page) = site.answer(&request) {
                return site.share(asked.as_ref(), Answer::Response(page));
            }
            let answer = site.share(asked.as_ref(), gateway.answer(request).await);
            let count = answers.fetch_add(1, Ordering::Relaxed) + 1;
            match answer {
                Answer::Response(response) if most == Some(count) => last(response).await,
                answer => answer,
            }
        }
    };
    converse(io, service, stop, &shared.hub, seat).await;
}

/// Returns an answer that does not announce that it is the last one.
async fn last(response: Response<Body>) -> Answer<Body> {
    let (head, body) = response.into_parts();
    let Ok(body) = body.collect().await else { return Answer::Reset };
    let body: Bytes = body.to_bytes();
    let mut bytes = format!("HTTP/1.1 {}\r\ncontent-length: {}\r\n", head.status, body.len()).into_bytes();
    for (name, value) in &head.headers {
        bytes.extend_from_slice(&[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(&body);
    Answer::Script(Script::sends(bytes, End::Close))
}
