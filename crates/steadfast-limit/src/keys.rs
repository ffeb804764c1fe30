use std::{hash::BuildHasher, net::IpAddr};

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
