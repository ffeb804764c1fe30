use std::{error::Error, fmt, net::SocketAddr, sync::Arc};

use http::Method;
use secrecy::{ExposeSecret, SecretString};
use steadfast::{
    call::{Class, Lane},
    spec::Endpoint,
};
use subtle::ConstantTimeEq;

use super::{Head, Refusal};

/// The names by which a listener may be called.
#[derive(Clone, Debug)]
pub struct Hosts(Arc<[String]>);

impl Hosts {
    /// Allows calls to these addresses, and to this machine by its local names at one of their ports.
    pub fn of(addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        let mut hosts = Vec::new();
        for address in addresses {
            let port = address.port();
            let local = ["localhost", "127.0.0.1", "[::1]"].map(|host| format!("{host}:{port}"));
            for host in [address.to_string()].into_iter().chain(local) {
                // Clients leave out the port of plain HTTP.
                hosts.extend(host.strip_suffix(":80").map(str::to_owned));
                hosts.push(host);
            }
        }
        hosts.sort_unstable();
        hosts.dedup();
        Self(hosts.into())
    }

    /// Allows calls to this machine by its name alone, as clients of a Unix socket make them.
    #[must_use]
    pub fn of_socket() -> Self {
        Self(["localhost".to_owned()].into())
    }

    pub(super) fn check(&self, head: &Head<'_>) -> Result<(), Refusal> {
        let host = head.one("host")?.ok_or(Refusal::Host)?;
        let known = self.0.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(host));
        if known { Ok(()) } else { Err(Refusal::Host) }
    }
}

/// Refuses requests that a browser sends for a page. An address that a user types has `none`.
pub(super) fn refuse_pages(head: &Head<'_>) -> Result<(), Refusal> {
    let is_fetched = head.all("sec-fetch-site").any(|site| !site.eq_ignore_ascii_case(b"none"));
    if is_fetched || head.all("origin").next().is_some() { Err(Refusal::Page) } else { Ok(()) }
}

/// From where a request to the operator's listener comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visitor {
    /// A program, or an address that a user typed.
    Program,
    /// The listener's own page.
    OwnPage,
}

impl Visitor {
    /// Tells the listener's own page from programs, and refuses all other pages. The host must be one of the listener's.
    pub(super) fn of(head: &Head<'_>) -> Result<Self, Refusal> {
        let mut is_page = false;
        for site in head.all("sec-fetch-site") {
            match site {
                b"same-origin" => is_page = true,
                b"none" => {}
                // Another port of this machine is the same site.
                _ => return Err(Refusal::Page),
            }
        }
        if let Some(origin) = head.one("origin")? {
            let host = head.one("host")?.ok_or(Refusal::Host)?;
            let own = origin.strip_prefix(b"http://").is_some_and(|its| its.eq_ignore_ascii_case(host));
            if !own {
                return Err(Refusal::Page);
            }
            is_page = true;
        }
        Ok(if is_page { Self::OwnPage } else { Self::Program })
    }
}

/// A caller's rights. A wider scope is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Read: lists, market data, margins.
    Read,
    /// Everything, orders included.
    Trade,
}

impl Scope {
    /// Returns the scope that a request needs. It follows from the endpoint, so that a margin is a read although it is a
    /// POST. A path that is not in the table may do anything unless it is a GET.
    #[must_use]
    pub fn needed(endpoint: Option<Endpoint>, method: &Method) -> Self {
        let reads = match endpoint {
            Some(endpoint) => Class::of(endpoint) == Class::Safe && Lane::of(endpoint) >= Lane::Normal,
            None => method == Method::GET,
        };
        if reads { Self::Read } else { Self::Trade }
    }
}

/// The local tokens by which callers are known.
#[derive(Clone)]
pub struct Tokens {
    trade: Arc<SecretString>,
    read: Option<Arc<SecretString>>,
}

/// The shortest token that is accepted, in characters.
const SHORTEST: usize = 16;

impl Tokens {
    /// Knows the callers with this token, who may trade.
    ///
    /// # Errors
    ///
    /// [`InvalidToken::Malformed`] if it is shorter than 16 characters, or has others than letters, digits, `-` and `_`.
    pub fn new(trade: impl Into<SecretString>) -> Result<Self, InvalidToken> {
        Ok(Self { trade: checked(trade.into())?, read: None })
    }

    /// Knows also those with this token, who may only read.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), and [`InvalidToken::TradesToo`] if it is the token that trades.
    pub fn reader(self, read: impl Into<SecretString>) -> Result<Self, InvalidToken> {
        let read = checked(read.into())?;
        let (read_bytes, trade_bytes) =
            (read.expose_secret().as_bytes(), self.trade.expose_secret().as_bytes());
        if read_bytes.ct_eq(trade_bytes).into() {
            return Err(InvalidToken::TradesToo);
        }
        Ok(Self { read: Some(read), ..self })
    }

    pub(super) fn scope_of(&self, head: &Head<'_>) -> Result<Scope, Refusal> {
        let given = bearer(head)?.ok_or(Refusal::Token)?;
        // A client that insists on the service's own form puts its API key before a colon.
        let given = given.rsplit(|&byte| byte == b':').next().unwrap_or(given);
        self.scope_of_token(given).ok_or(Refusal::Token)
    }

    pub(super) fn scope_of_token(&self, given: &[u8]) -> Option<Scope> {
        let is = |token: &SecretString| token.expose_secret().as_bytes().ct_eq(given);
        let (trades, reads) = (is(&self.trade), self.read.as_ref().map(|read| is(read)));
        if trades.into() {
            Some(Scope::Trade)
        } else if reads.is_some_and(Into::into) {
            Some(Scope::Read)
        } else {
            None
        }
    }
}

/// Returns what follows `Bearer` in the header of that name.
pub(crate) fn bearer<'a>(head: &Head<'a>) -> Result<Option<&'a [u8]>, Refusal> {
    Ok(head.one("authorization")?.and_then(credentials))
}

/// Returns what follows `Bearer` in a header.
fn credentials(header: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = header.split_at_checked(6)?;
    let rest = rest.strip_prefix(b" ")?.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer") && !rest.is_empty()).then_some(rest)
}

fn checked(token: SecretString) -> Result<Arc<SecretString>, InvalidToken> {
    let text = token.expose_secret();
    let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if plain && text.len() >= SHORTEST { Ok(Arc::new(token)) } else { Err(InvalidToken::Malformed) }
}

impl PartialEq for Tokens {
    fn eq(&self, other: &Self) -> bool {
        let read = |it: &Self| it.read.as_ref().map(|read| read.expose_secret().to_owned());
        self.trade.expose_secret() == other.trade.expose_secret() && read(self) == read(other)
    }
}

impl Eq for Tokens {}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").finish_non_exhaustive()
    }
}

/// Why a local token cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidToken {
    /// It is too short, or has characters that a token must not have.
    Malformed,
    /// It is to read only, and is the token that trades: who has it could trade.
    TradesToo,
}

impl fmt::Display for InvalidToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => {
                write!(f, "a local token has at least {SHORTEST} letters, digits, - and _, and nothing else")
            }
            Self::TradesToo => f.write_str("the token that only reads is the token that trades"),
        }
    }
}

impl Error for InvalidToken {}
