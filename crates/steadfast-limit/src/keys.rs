use std::{borrow::Cow, hash::BuildHasher, net::IpAddr};

use steadfast_spec::Scope;

/// Under which keys a request is counted, for every [`Scope`].
///
/// Made by [`ZoneLimiter::keys`](crate::ZoneLimiter::keys), cheap to copy and worth keeping. Keys are keyed hashes:
/// neither the account nor the address can be read from them, and no secret ever goes in. They mean nothing to
/// another limiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScopeKeys {
    client_ip: u64,
    api_key: u64,
    auth_token: u64,
}

impl ScopeKeys {
    /// The keys of requests to `authority`, from the local address `from`, with the credentials of `account`.
    pub(crate) fn new(
        hasher: &impl BuildHasher,
        authority: &str,
        from: Option<IpAddr>,
        account: &str,
    ) -> Self {
        let authority = &*normal(authority);
        // What is counted per key or token is counted per account, in tables of their own.
        let account = hasher.hash_one((authority, account));
        Self { client_ip: hasher.hash_one((authority, from)), api_key: account, auth_token: account }
    }

    /// The key in zones of `scope`; the strictest of all for a scope that this version does not know.
    pub(crate) fn of(&self, scope: Scope) -> u64 {
        match scope {
            Scope::ApiKey => self.api_key,
            Scope::AuthToken => self.auth_token,
            _ => self.client_ip,
        }
    }
}

/// The one spelling of an authority, so that no other spelling opens windows of its own.
///
/// The scheme is not known here, so `:80` and `:443` both go. At worst two servers of one host share their windows,
/// which sends less and never more than one of them allows.
fn normal(authority: &str) -> Cow<'_, str> {
    let host = authority.strip_suffix(":443").or_else(|| authority.strip_suffix(":80")).unwrap_or(authority);
    if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(host.to_ascii_lowercase())
    } else {
        Cow::Borrowed(host)
    }
}

#[cfg(test)]
mod tests {
    use std::hash::RandomState;

    use super::*;

    #[test]
    fn every_spelling_of_a_server_has_the_same_keys() {
        let hasher = RandomState::new();
        let keys = |authority| ScopeKeys::new(&hasher, authority, None, "one");
        let server = keys("api.example");
        for same in ["API.Example", "api.example:443", "api.example:80", "API.EXAMPLE:443"] {
            assert_eq!(keys(same), server, "{same}");
        }
        assert_eq!(keys("[2001:DB8::1]:443"), keys("[2001:db8::1]"));
        for other in ["api.example:8443", "api.example:4430", "api.example:180", "example", "[::443]", ""] {
            assert_ne!(keys(other), server, "{other}");
        }
    }
}
