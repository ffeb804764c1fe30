//! The peer at an address: the service, or a sidecar of steadfast on this machine.

use std::{path::Path, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::Full;
use secrecy::{ExposeSecret, SecretString};
use steadfast::{BaseUrl, BoxError, Transport, limit};
use steadfast_proxy::OrdersOf;
use tokio::time::timeout;
use tower::ServiceExt;

use crate::{
    exit::Failed,
    journal::{REHEARSAL, read},
    secret::find,
};

/// How long a sidecar on this machine may take to answer.
const AT_ONCE: Duration = Duration::from_secs(2);

/// The program that answers at an address, as far as that can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// No sidecar.
    Service,
    /// Nothing answers. A sidecar that is busy or stopped looks like this.
    Silent,
    /// A sidecar. `None`: it does not tell whose orders it places, as one of an earlier version, or this side has no token for
    /// it.
    Sidecar(Option<OrdersOf>),
}

impl Peer {
    /// Asks the address. Only one on this machine is asked, so that no service is; and only a sidecar is shown the token.
    ///
    /// Fails if the sidecar refuses the token that is given: another login would not help.
    pub(crate) async fn at(base: &BaseUrl) -> Result<Self, Failed> {
        let peer = Self::of_stranger(base).await;
        let Self::Sidecar(told) = &peer else { return Ok(peer) };
        let Some(token) = find("ACCESS_TOKEN").await? else { return Ok(peer) };
        match timeout(AT_ONCE, ask(base, Some(&token))).await {
            Ok(Ok((StatusCode::UNAUTHORIZED, headers))) if is_sidecar(&headers) => {
                Err(Failed::usage(format_args!("{}; nothing was sent", wrong_token(base))))
            }
            Ok(Ok((_, headers))) => Ok(Self::Sidecar(OrdersOf::told_in(&headers).or_else(|| told.clone()))),
            _ => Ok(peer),
        }
    }

    /// Asks the address without a token.
    async fn of_stranger(base: &BaseUrl) -> Self {
        if !base.is_loopback() {
            return Self::Service;
        }
        match timeout(AT_ONCE, ask(base, None)).await {
            Ok(Ok((_, told))) if is_sidecar(&told) => Self::Sidecar(OrdersOf::told_in(&told)),
            Ok(_) => Self::Service,
            Err(_) => Self::Silent,
        }
    }

    /// Says why a sidecar may be there.
    pub(crate) fn may_be_sidecar(&self) -> Option<&'static str> {
        match self {
            Self::Service => None,
            Self::Sidecar(_) => Some("is a sidecar of steadfast, which"),
            Self::Silent => Some("does not answer, and may be a sidecar of steadfast, which"),
        }
    }

    /// True if the sidecar places orders at a sandbox of its own.
    pub(crate) fn is_rehearsal(&self) -> bool {
        matches!(self, Self::Sidecar(Some(OrdersOf::Sandbox(_))))
    }

    /// Returns the account of the orders that are placed there, as a journal names it: the sidecar's, whatever its address.
    pub(crate) fn account(&self, base: &BaseUrl) -> limit::Account {
        limit::Account::new(match self {
            Self::Sidecar(Some(OrdersOf::Account(name))) => format!("a sidecar of account {name}"),
            Self::Sidecar(Some(OrdersOf::Sandbox(name))) => format!("{REHEARSAL}{name}"),
            _ => base.to_string(),
        })
    }

    /// As [`account`](Self::account), for the orders of a journal: one that knows the sidecar by its address goes on so.
    pub(crate) fn account_in(&self, base: &BaseUrl, journal: &Path) -> Result<limit::Account, Failed> {
        let (account, address) = (self.account(base), limit::Account::new(base.to_string()));
        if self.is_rehearsal() || account == address {
            return Ok(account);
        }
        let is_of_address = read(journal)?.first().is_some_and(|first| first.account == address);
        Ok(if is_of_address { address } else { account })
    }
}

/// Explains that a sidecar refuses the token that a program shows to it.
pub(crate) fn wrong_token(base: &BaseUrl) -> String {
    format!(
        "STEADFAST_ACCESS_TOKEN is not the local token of the sidecar at {base}, which is in the file that `steadfast proxy` prints \
         as token_file; a login does not help"
    )
}

/// True for an answer of a sidecar's own.
pub(crate) fn is_sidecar(headers: &HeaderMap) -> bool {
    let told = headers.get("proxy-status").and_then(|told| told.to_str().ok());
    told.is_some_and(|told| told.starts_with("steadfast;")) || headers.contains_key(OrdersOf::HEADER)
}

/// Asks for the description of a sidecar, which it answers by itself, and without a token by a refusal that names it.
async fn ask(base: &BaseUrl, token: Option<&SecretString>) -> Result<(StatusCode, HeaderMap), BoxError> {
    let uri = base.uri();
    let (scheme, at) = (uri.scheme_str().unwrap_or_default(), uri.authority().map_or("", |at| at.as_str()));
    let mut request = Request::get(format!("{scheme}://{at}/openapi.json")).body(Full::<Bytes>::default())?;
    if let Some(token) = token {
        let mut value = header::HeaderValue::from_str(&format!("Bearer {}", token.expose_secret()))?;
        value.set_sensitive(true);
        request.headers_mut().insert(header::AUTHORIZATION, value);
    }
    let answer = Transport::new().to(base)?.oneshot(request).await?;
    Ok((answer.status(), answer.headers().clone()))
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    #[tokio::test]
    async fn a_sidecar_is_known_by_its_refusal_and_is_asked_without_a_token_first() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base: BaseUrl = format!("http://{}/v2", listener.local_addr().unwrap()).parse().unwrap();
        let sandbox = Some(OrdersOf::Sandbox("s1".to_owned()));
        for (told, peer) in [
            ("Proxy-Status: steadfast; error=http_request_denied; details=\"x\"\r\n", Peer::Sidecar(None)),
            ("Proxy-Status: steadfast; x\r\nX-Steadfast-Orders-Of: sandbox s1\r\n", Peer::Sidecar(sandbox)),
            ("Proxy-Status: other; error=http_request_denied\r\n", Peer::Service),
            ("", Peer::Service),
        ] {
            let answers = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut asked = vec![0; 4_096];
                let length = stream.read(&mut asked).await.unwrap();
                let asked = String::from_utf8_lossy(&asked[..length]).to_lowercase();
                assert!(!asked.contains("authorization"), "{asked}");
                let answer =
                    format!("HTTP/1.1 401 X\r\n{told}Content-Length: 0\r\nConnection: close\r\n\r\n");
                stream.write_all(answer.as_bytes()).await.unwrap();
            };
            let (found, ()) = tokio::join!(Peer::of_stranger(&base), answers);
            assert_eq!(found, peer, "{told}");
        }
    }

    /// Regression: a sidecar that was stopped for three seconds was taken for a service.
    #[tokio::test(start_paused = true)]
    async fn an_address_that_does_not_answer_may_be_a_sidecars() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base: BaseUrl = format!("http://{}/v2", listener.local_addr().unwrap()).parse().unwrap();
        let silent = Peer::of_stranger(&base).await;
        assert!(silent.may_be_sidecar().is_some() && !silent.is_rehearsal());
    }

    #[test]
    fn a_journal_that_knows_a_sidecar_by_its_address_goes_on_so() {
        use steadfast::dedup::journal::{Entry, FileJournal, Journal};

        use crate::journal::records::begun;

        let base: BaseUrl = "http://127.0.0.1:8090/v2".parse().unwrap();
        let peer = Peer::Sidecar(Some(OrdersOf::Account("a1".to_owned())));
        let folder = tempfile::tempdir().unwrap();
        for (number, (begun_as, goes_on_as)) in [
            (None, "a sidecar of account a1"),
            (Some("a sidecar of account a1"), "a sidecar of account a1"),
            (Some("http://127.0.0.1:8090/v2"), "http://127.0.0.1:8090/v2"),
            // It is refused.
            (Some("http://127.0.0.1:8091/v2"), "a sidecar of account a1"),
        ]
        .into_iter()
        .enumerate()
        {
            let path = folder.path().join(number.to_string());
            if let Some(account) = begun_as {
                let entry = Entry { account: limit::Account::new(account), ..begun(1, "line-2") };
                FileJournal::open(&path).unwrap().append(entry);
            }
            assert_eq!(peer.account_in(&base, &path).unwrap().as_str(), goes_on_as, "{begun_as:?}");
        }
    }
}
