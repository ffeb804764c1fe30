use std::{
    collections::VecDeque,
    error::Error,
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use steadfast_call::{BoxError, causes, one_line};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
};

use super::{LoginRefused, answer::Answer};
use crate::login::OneTimeCode;

/// A redirect's head is a few hundred bytes, and a browser adds its cookies for this host.
const LARGEST_HEAD: usize = 16 * 1024;
/// How long a connection may stay silent before it is closed.
const HEAD_WITHIN: Duration = Duration::from_secs(5);
/// A browser opens only a few connections. With more silent ones than this, the oldest is dropped.
const MOST_SILENT: usize = 32;
/// The pause after a connection could not be accepted.
const AFTER_FAILURE: Duration = Duration::from_millis(20);
/// The exchange of the code comes later and may fail, so the page does not promise success.
const RECEIVED: &str =
    "The code was received. How the login ends is shown where it was started; this page can be closed.\n";

/// Listens for one redirect on this machine.
///
/// It speaks only as much HTTP/1 as a redirect needs: it reads one request line, answers with a page and closes the
/// connection.
#[derive(Debug)]
pub(super) struct Listener {
    sockets: Vec<TcpListener>,
}

impl Listener {
    /// Listens on exactly the registered host and port. For `localhost` that is both loopback addresses: the browser
    /// chooses one, and a foreign listener on the other would get the code.
    pub(super) async fn bind(host: &str, port: u16) -> Result<Self, BoxError> {
        let addresses = match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
            Ok(ip) => vec![ip],
            Err(_) => vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)],
        };
        let only = addresses.len() == 1;
        let mut sockets = Vec::new();
        for ip in addresses {
            let address = SocketAddr::new(ip, port);
            match TcpListener::bind(address).await {
                Ok(socket) => sockets.push(socket),
                // A machine without one of the two protocols cannot have a foreign listener on it either.
                Err(error) if !only && error.kind() == io::ErrorKind::AddrNotAvailable => {}
                Err(source) => return Err(CannotListen { address, source }.into()),
            }
        }
        Ok(Self { sockets })
    }

    /// Turns all requests away until the login's own redirect comes.
    pub(super) async fn answer(self, path: &str, state: &str) -> Result<OneTimeCode, LoginRefused> {
        let (mut heard, mut answers) = (JoinSet::new(), JoinSet::new());
        // The connections without a request so far, oldest first.
        let mut silent: VecDeque<AbortHandle> = VecDeque::new();
        loop {
            silent.retain(|connection| !connection.is_finished());
            let is_crowded = silent.len() >= MOST_SILENT;
            tokio::select! {
                accepted = self.accept() => {
                    match accepted {
                        Ok(stream) => {
                            // Silent connections must not keep the redirect out.
                            if is_crowded {
                                drop_oldest(&mut silent);
                            }
                            silent.push_back(heard.spawn(hear(stream)));
                        }
                        // Most likely file descriptors have run out. Drop the oldest silent connection, and pause
                        // before asking the socket again, because it is still ready.
                        Err(error) => {
                            tracing::debug!(error = %error, "a connection cannot be accepted");
                            drop_oldest(&mut silent);
                            tokio::time::sleep(AFTER_FAILURE).await;
                        }
                    }
                }
                Some(request) = heard.join_next() => {
                    // The connection was dropped or closed before it sent a request: ignore it.
                    let Ok((stream, line)) = request else { continue };
                    let (status, page, answer) = match &line {
                        Some(line) => judge(line, path, state),
                        None => ("400 Bad Request", NOT_A_REQUEST, Answer::Foreign("no request")),
                    };
                    let answered = tell(stream, status, page);
                    match answer {
                        Answer::Foreign(foreign) => {
                            tracing::debug!(foreign, "turned away at the redirect's address");
                            answers.spawn(answered);
                        }
                        Answer::Code(code) => {
                            answered.await;
                            return Ok(code);
                        }
                        Answer::Refused(refused) => {
                            answered.await;
                            return Err(refused);
                        }
                    }
                }
                Some(_) = answers.join_next() => {}
            }
        }
    }

    async fn accept(&self) -> io::Result<TcpStream> {
        let (stream, _) = match &self.sockets[..] {
            [one] => one.accept().await?,
            [one, two, ..] => tokio::select! {
                accepted = one.accept() => accepted?,
                accepted = two.accept() => accepted?,
            },
            [] => std::future::pending().await,
        };
        Ok(stream)
    }
}

fn drop_oldest(silent: &mut VecDeque<AbortHandle>) {
    if let Some(oldest) = silent.pop_front() {
        oldest.abort();
    }
}

/// Waits for a connection's request line; `None` if there is no valid one.
async fn hear(mut stream: TcpStream) -> (TcpStream, Option<String>) {
    let line = tokio::time::timeout(HEAD_WITHIN, request_line(&mut stream)).await;
    (stream, line.ok().and_then(Result::ok))
}

/// Answers a connection. Failure to deliver the page is ignored.
async fn tell(mut stream: TcpStream, status: &'static str, page: &'static str) {
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
         Content-Security-Policy: default-src 'none'\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
    let _ = tokio::time::timeout(HEAD_WITHIN, async {
        stream.write_all(response.as_bytes()).await?;
        stream.shutdown().await
    })
    .await;
}

const NOT_A_REQUEST: &str = "Not a request.\n";

/// Judges a request line: status, page and meaning.
fn judge(line: &str, path: &str, state: &str) -> (&'static str, &'static str, Answer) {
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return ("400 Bad Request", NOT_A_REQUEST, Answer::Foreign("no request"));
    };
    if !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
        return ("400 Bad Request", NOT_A_REQUEST, Answer::Foreign("no request"));
    }
    let (asked, query) = target.split_once('?').unwrap_or((target, ""));
    if asked != path {
        return ("404 Not Found", "Nothing is here.\n", Answer::Foreign("another path"));
    }
    // A prefetch by HEAD must not use up the code, and a posted form is not a redirect.
    if method != "GET" {
        return (
            "405 Method Not Allowed",
            "Only a redirect comes here.\n",
            Answer::Foreign("another method"),
        );
    }
    match Answer::of_query(query, state) {
        answer @ Answer::Code(_) => ("200 OK", RECEIVED, answer),
        answer @ Answer::Refused(_) => ("200 OK", "The login was refused.\n", answer),
        answer @ Answer::Foreign(_) => {
            ("400 Bad Request", "This does not belong to the login that is waiting.\n", answer)
        }
    }
}

/// Reads the whole head, because a browser expects that before the answer, and returns its first line.
async fn request_line(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    let mut chunk = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut chunk).await?;
        if read == 0 || head.len() + read > LARGEST_HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
        head.extend_from_slice(&chunk[..read]);
    }
    let end = head.windows(2).position(|end| end == b"\r\n").unwrap_or_default();
    head.truncate(end);
    String::from_utf8(head).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The redirect's port is taken, or this process may not use it.
#[derive(Debug)]
struct CannotListen {
    address: SocketAddr,
    source: io::Error,
}

impl fmt::Display for CannotListen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return f.write_str(&one_line(causes(self)));
        }
        write!(f, "cannot listen for the redirect on {}", self.address)
    }
}

impl Error for CannotListen {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}
