use std::{
    borrow::Cow,
    fmt,
    hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState},
    net::IpAddr,
    sync::Arc,
};

use steadfast_spec::Scope;

/// A stable, public name of the API key that a request is sent with; never the key itself. Set by the caller, in the
/// extensions of a request or by [`RateLimitLayer::api_key`](crate::RateLimitLayer::api_key).
///
/// Zones that count API keys (§8, `api_key`) are kept per name. Requests without one share one count for each
/// gateway, because nothing says that their keys differ.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApiKeyName(Arc<str>);

impl ApiKeyName {
    /// An API key named `name`.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Under which keys a request is counted, for every [`Scope`].
///
/// Made by [`ZoneLimiter::keys`](crate::ZoneLimiter::keys), cheap to copy and worth keeping. Keys are keyed hashes:
/// neither the account nor the address can be read from them, and no secret ever goes in. They mean nothing to
/// another limiter, except to one that carries on this one's journal.
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
        Self {
            client_ip: match steadfast_spec::Planted::AddressPerAccount.is_on() {
                true => hasher.hash_one(("client_ip", authority, from, account)),
                false => hasher.hash_one(("client_ip", authority, from)),
            },
            api_key: hasher.hash_one(("api_key", authority)),
            auth_token: match steadfast_spec::Planted::TokensMixed.is_on() {
                true => hasher.hash_one(("auth_token", authority)),
                false => hasher.hash_one(("auth_token", authority, account)),
            },
        }
    }

    /// The same for requests that are sent with the API key of that name: zones that count API keys count it apart
    /// from others.
    #[must_use]
    pub fn api_key(mut self, name: &ApiKeyName) -> Self {
        // What the count of unnamed keys is kept under is secret already, and makes a secret of its own.
        self.api_key = Seed([self.api_key, 0]).hash_one(name.as_str());
        self
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

/// The secret that a limiter's keys are hashed with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seed(pub(crate) [u64; 2]);

impl Seed {
    /// One that nobody can guess.
    pub(crate) fn random() -> Self {
        let random = RandomState::new();
        Self([random.hash_one(0_u8), random.hash_one(1_u8)])
    }

    /// Differs if another version of the standard library hashes differently: its keys would be strangers.
    pub(crate) fn check(&self) -> u64 {
        let keys = ScopeKeys::new(self, "gateway.example", Some(IpAddr::from([192, 0, 2, 1])), "account");
        self.hash_one(keys.api_key(&ApiKeyName::new("key")))
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seed").finish_non_exhaustive()
    }
}

impl BuildHasher for Seed {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        hasher.write_u8(0);
        hasher
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

    #[test]
    fn keys_depend_on_nothing_but_the_seed_and_what_they_are_made_of() {
        let (seed, other) = (Seed::random(), Seed::random());
        let keys = |seed: &Seed| ScopeKeys::new(seed, "api.example", None, "one");
        assert_eq!(keys(&seed), keys(&seed));
        assert_ne!(keys(&seed), keys(&other));
        assert_eq!(seed.check(), seed.check());
        assert_ne!(seed.check(), other.check());
    }

    #[test]
    fn every_scope_counts_together_what_it_names_and_nothing_else() {
        let seed = Seed::random();
        let keys = |account| ScopeKeys::new(&seed, "api.example", None, account);
        let (one, two) = (keys("one"), keys("two"));
        assert_eq!(one.of(Scope::ClientIp), two.of(Scope::ClientIp));
        assert_eq!(one.of(Scope::ApiKey), two.of(Scope::ApiKey), "nothing says that the keys differ");
        assert_ne!(one.of(Scope::AuthToken), two.of(Scope::AuthToken));
        let name = ApiKeyName::new("desk");
        assert_eq!(one.api_key(&name).of(Scope::ApiKey), two.api_key(&name).of(Scope::ApiKey));
        assert_ne!(one.api_key(&name).of(Scope::ApiKey), one.of(Scope::ApiKey));
        assert_ne!(one.api_key(&name), one.api_key(&ApiKeyName::new("other desk")));
        assert_ne!(one.of(Scope::ClientIp), one.of(Scope::ApiKey));
    }
}
