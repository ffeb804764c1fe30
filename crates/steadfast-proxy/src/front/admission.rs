//! The callers that the listeners admit. It can be changed while they serve.

use std::{error::Error, fmt, str::FromStr, sync::Arc};

use http::{Method, uri::Authority};
use parking_lot::RwLock;

use super::{Head, Refusal, Scope, Tokens};

/// The callers that a proxy admits, and for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    tokens: Tokens,
    hosts: Vec<Host>,
    is_read_only: bool,
}

impl Admission {
    /// Admits the callers that know one of `tokens`.
    #[must_use]
    pub fn new(tokens: Tokens) -> Self {
        Self { tokens, hosts: Vec::new(), is_read_only: false }
    }

    /// Lets programs call the proxy by this name, too.
    #[must_use]
    pub fn host(mut self, host: Host) -> Self {
        self.hosts.push(host);
        self
    }

    /// Lets nothing pass but what reads, and DELETE: a cancel must get out.
    #[must_use]
    pub fn read_only(self) -> Self {
        Self { is_read_only: true, ..self }
    }

    pub(crate) fn reads_only(&self) -> bool {
        self.is_read_only
    }
}

impl From<Tokens> for Admission {
    fn from(tokens: Tokens) -> Self {
        Self::new(tokens)
    }
}

/// The state that all listeners of a proxy share.
///
/// # Clone
///
/// Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Shared(Arc<RwLock<Admission>>);

impl Shared {
    pub(crate) fn new(admission: Admission) -> Self {
        Self(Arc::new(RwLock::new(admission)))
    }

    /// Replaces it as a whole. Returns true if the tokens are others than before.
    pub(crate) fn replace(&self, by: Admission) -> bool {
        let mut now = self.0.write();
        let changed = now.tokens != by.tokens;
        *now = by;
        changed
    }

    pub(super) fn scope_of(&self, head: &Head<'_>) -> Result<Scope, Refusal> {
        self.0.read().tokens.scope_of(head)
    }

    /// True for a local token.
    pub(crate) fn knows(&self, token: &str) -> bool {
        self.0.read().tokens.scope_of_token(token.as_bytes()).is_some()
    }

    pub(super) fn knows_host(&self, host: &[u8]) -> bool {
        self.0.read().hosts.iter().any(|known| known.0.as_bytes().eq_ignore_ascii_case(host))
    }

    /// Refuses what a proxy that only reads does not pass on.
    pub(super) fn permits(&self, needed: Scope, method: &Method) -> Result<(), Refusal> {
        let acts = needed == Scope::Trade && method != Method::DELETE;
        if acts && self.0.read().is_read_only { Err(Refusal::ReadOnly) } else { Ok(()) }
    }
}

/// A name by which programs call a proxy, with the port that they give: `NAME` or `NAME:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host(String);

impl FromStr for Host {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        let authority: Authority = text.parse().map_err(|_| InvalidHost)?;
        let name = authority.host();
        let port = text.strip_prefix(name).and_then(|rest| rest.strip_prefix(':'));
        // An authority has more characters than a name or an address.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
        if !name.bytes().all(is_plain) {
            return Err(InvalidHost);
        }
        let whole = text == name || port.is_some_and(|port| port.parse::<u16>().is_ok());
        if whole && !name.is_empty() { Ok(Self(text.to_owned())) } else { Err(InvalidHost) }
    }
}

/// A name of a host that no client could send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidHost;

impl fmt::Display for InvalidHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a host is NAME or NAME:PORT, as clients send it")
    }
}

impl Error for InvalidHost {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_with_or_without_a_port() {
        for good in ["steadfast", "steadfast:8090", "10.0.0.7:8090", "[::1]:80", "a.example"] {
            assert!(good.parse::<Host>().is_ok(), "{good}");
        }
        for bad in
            ["", ":8090", "steadfast:", "steadfast:http", "steadfast:70000", "u@steadfast", "a b", "a/b", "*"]
        {
            assert!(bad.parse::<Host>().is_err(), "{bad}");
        }
    }
}
