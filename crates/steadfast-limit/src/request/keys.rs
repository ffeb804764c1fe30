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
/// Zones that count API keys (§8, `api_key`) count each name apart. Requests without a name share one count per
/// gateway, because their keys may be the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApiKeyName(Arc<str>);

impl ApiKeyName {
    /// Makes the name of an API key.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The keys under which a request is counted, one for every [`Scope`].
///
/// Made by [`ZoneLimiter::keys`](crate::ZoneLimiter::keys), cheap to copy and worth keeping. They are keyed hashes:
/// neither account nor address can be read from them, and no secret goes in. They mean nothing to another limiter,
/// except one that continues this one's journal. Limiters that [count together](crate::Builder::count_with) share a key
/// that is no secret, so that a name can be guessed there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScopeKeys {
    client_ip: u64,
    /// The key of requests from the default local address.
    unbound: u64,
    api_key: u64,
    /// The key of requests that name no API key.
    unnamed: u64,
    auth_token: u64,
}

impl ScopeKeys {
    /// Makes the keys of requests to `authority` with the credentials of `account`.
    pub(crate) fn new(hasher: &impl BuildHasher, authority: &str, account: &str) -> Self {
        let authority = &*normal(authority);
        let unbound = hasher.hash_one(("client_ip", authority));
        let unnamed = hasher.hash_one(("api_key", authority));
        Self {
            client_ip: unbound,
            unbound,
            api_key: unnamed,
            unnamed,
            auth_token: hasher.hash_one(("auth_token", authority, account)),
        }
    }

    /// Returns the same keys for requests that leave from that local address. Zones that count client addresses count
    /// it apart from others, and from the default one. The last address given counts.
    #[must_use]
    pub fn local_address(mut self, address: IpAddr) -> Self {
        self.client_ip = Seed([self.unbound, 0]).hash_one(address);
        self
    }

    /// Returns the same keys for requests sent with the API key of that name. Zones that count API keys count it
    /// apart from others. The last name given counts.
    #[must_use]
    pub fn api_key(mut self, name: &ApiKeyName) -> Self {
        // The key of unnamed requests is a seeded hash, so it can seed another.
        self.api_key = Seed([self.unnamed, 0]).hash_one(name.as_str());
        self
    }

    /// Returns the key in zones of `scope`. An unknown scope counts per address, which is the strictest.
    pub(crate) fn of(&self, scope: Scope) -> u64 {
        match scope {
            Scope::ApiKey => self.api_key,
            Scope::AuthToken => self.auth_token,
            Scope::Shared => self.unbound,
            _ => self.client_ip,
        }
    }
}

/// The secret seed of a limiter's key hashes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seed(pub(crate) [u64; 2]);

impl Seed {
    /// Makes an unguessable seed.
    pub(crate) fn random() -> Self {
        let random = RandomState::new();
        Self([random.hash_one(0_u8), random.hash_one(1_u8)])
    }

    /// Returns the seed of all limiters that count together, so that their keys are the same.
    pub(crate) fn shared() -> Self {
        Self([0x7374_6561_6466_6173, 0x7421_6c69_6d69_7421])
    }

    /// Returns a value that changes if the standard library hashes differently: recorded keys would then not match.
    pub(crate) fn check(&self) -> u64 {
        let keys = ScopeKeys::new(self, "gateway.example", "account")
            .local_address(IpAddr::from([192, 0, 2, 1]))
            .api_key(&ApiKeyName::new("key"));
        self.hash_one((keys.client_ip, keys.api_key, keys.auth_token))
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

/// Returns the one spelling of an authority, so that another spelling does not open new windows. A user and a password
/// before the host are no part of it.
///
/// The scheme is unknown here, so both `:80` and `:443` are removed. At worst two servers of one host share windows,
/// which sends less and never more than one of them allows.
pub(crate) fn normal(authority: &str) -> Cow<'_, str> {
    let server = authority.rsplit_once('@').map_or(authority, |(_, server)| server);
    let host = server.strip_suffix(":443").or_else(|| server.strip_suffix(":80")).unwrap_or(server);
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
        let keys = |authority| ScopeKeys::new(&hasher, authority, "one");
        let server = keys("api.example");
        for same in [
            "API.Example",
            "api.example:443",
            "api.example:80",
            "API.EXAMPLE:443",
            "trader:secret@API.example:443",
        ] {
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
        let keys = |seed: &Seed| ScopeKeys::new(seed, "api.example", "one");
        assert_eq!(keys(&seed), keys(&seed));
        assert_ne!(keys(&seed), keys(&other));
        assert_eq!(seed.check(), seed.check());
        assert_ne!(seed.check(), other.check());
    }

    #[test]
    fn every_scope_counts_together_what_it_names_and_nothing_else() {
        let seed = Seed::random();
        let keys = |account| ScopeKeys::new(&seed, "api.example", account);
        let (one, two) = (keys("one"), keys("two"));
        assert_eq!(one.of(Scope::ClientIp), two.of(Scope::ClientIp));
        assert_eq!(one.of(Scope::ApiKey), two.of(Scope::ApiKey), "nothing says that the keys differ");
        assert_ne!(one.of(Scope::AuthToken), two.of(Scope::AuthToken));
        let name = ApiKeyName::new("desk");
        assert_eq!(one.api_key(&name).of(Scope::ApiKey), two.api_key(&name).of(Scope::ApiKey));
        assert_ne!(one.api_key(&name).of(Scope::ApiKey), one.of(Scope::ApiKey));
        let other = ApiKeyName::new("other desk");
        assert_ne!(one.api_key(&name), one.api_key(&other));
        assert_eq!(one.api_key(&other).api_key(&name), one.api_key(&name), "the last name counts");
        assert_ne!(one.of(Scope::ClientIp), one.of(Scope::ApiKey));
        let elsewhere = two.local_address(IpAddr::from([192, 0, 2, 3])).api_key(&name);
        assert_eq!(one.of(Scope::Shared), elsewhere.of(Scope::Shared));
        assert_ne!(
            one.of(Scope::Shared),
            ScopeKeys::new(&seed, "other.example", "one").of(Scope::Shared),
            "each server counts for itself"
        );
        let (home, office) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        assert_eq!(one.local_address(home).of(Scope::ClientIp), two.local_address(home).of(Scope::ClientIp));
        assert_ne!(one.local_address(home).of(Scope::ClientIp), one.of(Scope::ClientIp));
        assert_ne!(one.local_address(home), one.local_address(office));
        assert_eq!(
            one.local_address(office).local_address(home),
            one.local_address(home),
            "the last one counts"
        );
    }
}
