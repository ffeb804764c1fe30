use std::{collections::HashMap, net::IpAddr, sync::Arc, time::Duration};

use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, RedisError, RedisResult, TlsCertificates,
    aio::MultiplexedConnection, cmd,
};
use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};
use tokio::{
    task::JoinSet,
    time::{Instant, timeout_at},
};

use crate::error::StoreError;

/// Where the server is: at an address of its own, or where sentinels say.
#[derive(Clone)]
pub(crate) enum Place {
    Fixed(Box<Client>),
    Watched(Arc<Sentinels>),
}

/// The sentinels that watch a server and its replicas, and put one of these in its place.
pub(crate) struct Sentinels {
    /// Each without and with the password, which a sentinel may not have.
    sentinels: Vec<[Client; 2]>,
    /// Their name for the server.
    service: Box<str>,
    scheme: &'static str,
    /// User and password with the sign behind them, as the address has them.
    user: Box<str>,
    root: Option<Vec<u8>>,
}

/// Why no server was found.
pub(crate) enum NotFound {
    Asked(RedisError),
    /// Most sentinels do not answer, or know of no server that is up.
    NotNamed,
}

/// A server as a sentinel names it.
struct Named {
    /// Grows with each failover.
    epoch: u64,
    is_up: bool,
    host: String,
    port: String,
}

/// How long sentinels may take: less than a connection as a whole.
const NAMED_WITHIN: Duration = Duration::from_millis(400);

impl Place {
    /// Reads `redis[s]://[USER:PASSWORD@]HOST[:PORT]`, or `redis[s]-sentinel://[USER:PASSWORD@]HOST[:PORT][,…]/SERVICE`.
    pub(crate) fn new(address: &str, root: Option<Vec<u8>>) -> Result<Self, StoreError> {
        if let Some(root) = &root {
            check_authorities(root, address)?;
        }
        let watched = [("redis-sentinel://", "redis://"), ("rediss-sentinel://", "rediss://")];
        for (prefix, scheme) in watched {
            if let Some(rest) = address.strip_prefix(prefix) {
                return Sentinels::new(scheme, rest, root).map(|it| Self::Watched(Arc::new(it)));
            }
        }
        open(address, root.as_ref())
            .map(|client| Self::Fixed(Box::new(client)))
            .map_err(|_| StoreError::InvalidAddress)
    }

    /// Returns hosts and ports alone: the address may hold a password.
    pub(crate) fn name(&self) -> Arc<str> {
        match self {
            Self::Fixed(client) => host_of(client).into(),
            Self::Watched(watched) => {
                let hosts: Vec<_> = watched.sentinels.iter().map(|[bare, _]| host_of(bare)).collect();
                format!("{} of sentinels {}", watched.service, hosts.join(", ")).into()
            }
        }
    }

    /// True if what goes to the server crosses no network. A server that sentinels name may be anywhere.
    pub(crate) fn is_local(&self) -> bool {
        let Self::Fixed(client) = self else { return false };
        match client.get_connection_info().addr() {
            ConnectionAddr::Unix(_) => true,
            ConnectionAddr::Tcp(host, _) => {
                host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
            }
            _ => false,
        }
    }

    /// True if a replica may take the server's place at any time.
    pub(crate) fn is_watched(&self) -> bool {
        matches!(self, Self::Watched(_))
    }

    /// Connects to the server, wherever it is now.
    pub(crate) async fn connect(
        &self,
        config: &AsyncConnectionConfig,
    ) -> Result<MultiplexedConnection, NotFound> {
        let client = match self {
            Self::Fixed(client) => Client::clone(client),
            Self::Watched(watched) => watched.find(config).await?,
        };
        client.get_multiplexed_async_connection_with_config(config).await.map_err(NotFound::Asked)
    }
}

impl Sentinels {
    fn new(scheme: &'static str, rest: &str, root: Option<Vec<u8>>) -> Result<Self, StoreError> {
        const PORT: &str = ":26379";
        let read = || {
            let (hosts, service) = rest.rsplit_once('/').filter(|(_, service)| !service.is_empty())?;
            let (user, hosts) = hosts.rfind('@').map_or(("", hosts), |at| hosts.split_at(at + 1));
            let sentinel = |host: &str| {
                // A port stands behind the bracket of an address of six parts.
                let port = if host.rfind(':') > host.rfind(']') { "" } else { PORT };
                let at = |user| open(&format!("{scheme}{user}{host}{port}"), root.as_ref()).ok();
                Some([at("")?, at(user)?])
            };
            let sentinels = hosts.split(',').map(sentinel).collect::<Option<_>>()?;
            Some((sentinels, service.into(), user.into()))
        };
        let (sentinels, service, user) = read().ok_or(StoreError::InvalidAddress)?;
        Ok(Self { sentinels, service, scheme, user, root })
    }

    /// Asks all sentinels at once, and goes by the newest of what most of them say: one that was cut off from the others
    /// may still name the server before.
    async fn find(&self, config: &AsyncConnectionConfig) -> Result<Client, NotFound> {
        let until = Instant::now() + NAMED_WITHIN;
        let mut asked = JoinSet::new();
        for sentinel in &self.sentinels {
            asked.spawn(ask(sentinel.clone(), self.service.clone(), config.clone()));
        }
        let (mut answers, mut newest, mut failed) = (0, None::<Named>, None);
        while 2 * answers <= self.sentinels.len()
            && let Ok(Some(Ok(told))) = timeout_at(until, asked.join_next()).await
        {
            match told {
                Ok(named) => {
                    answers += 1;
                    newest = newest.into_iter().chain(named).max_by_key(|named| named.epoch);
                }
                Err(error) => failed = Some(error),
            }
        }
        match (newest, failed) {
            (Some(Named { is_up: true, host, port, .. }), _) if 2 * answers > self.sentinels.len() => {
                let host = if host.contains(':') { format!("[{host}]") } else { host };
                let address = format!("{}{}{host}:{port}", self.scheme, self.user);
                open(&address, self.root.as_ref()).map_err(NotFound::Asked)
            }
            (None, Some(error)) if answers == 0 => Err(NotFound::Asked(error)),
            _ => Err(NotFound::NotNamed),
        }
    }
}

/// Asks a sentinel for the server; `None` if it knows of none.
async fn ask(
    sentinel: [Client; 2],
    service: Box<str>,
    config: AsyncConnectionConfig,
) -> RedisResult<Option<Named>> {
    let [bare, with_password] = sentinel;
    let mut told = ask_by(&bare, &service, &config).await;
    if told.as_ref().is_err_and(|error| error.code() == Some("NOAUTH")) {
        told = ask_by(&with_password, &service, &config).await;
    }
    let mut told = match told {
        // It watches none of that name.
        Err(error) if error.code() == Some("ERR") => return Ok(None),
        told => told?,
    };
    let is_up = told.get("flags").is_some_and(|flags| flags == "master");
    let epoch = told.get("config-epoch").and_then(|epoch| epoch.parse().ok());
    Ok(match (epoch, told.remove("ip"), told.remove("port")) {
        (Some(epoch), Some(host), Some(port)) => Some(Named { epoch, is_up, host, port }),
        _ => None,
    })
}

async fn ask_by(
    sentinel: &Client,
    service: &str,
    config: &AsyncConnectionConfig,
) -> RedisResult<HashMap<String, String>> {
    let mut connection = sentinel.get_multiplexed_async_connection_with_config(config).await?;
    cmd("SENTINEL").arg("MASTER").arg(service).query_async(&mut connection).await
}

fn open(address: &str, root: Option<&Vec<u8>>) -> RedisResult<Client> {
    match root {
        Some(root) => {
            let trusted = TlsCertificates { client_tls: None, root_cert: Some(root.clone()) };
            Client::build_with_tls(address, trusted)
        }
        None => Client::open(address),
    }
}

fn host_of(client: &Client) -> String {
    client.get_connection_info().addr().to_string()
}

/// Fails if the text holds no certificate authority, or the address has no use for one.
fn check_authorities(pem: &[u8], address: &str) -> Result<(), StoreError> {
    let unusable = |why| StoreError::Certificates { why };
    if !address.starts_with("rediss") {
        return Err(unusable("the address does not begin with rediss"));
    }
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(pem) {
        let root = root.map_err(|_| unusable("the text is not PEM"))?;
        roots.add(root).map_err(|_| unusable("the text holds something that is not a certificate"))?;
    }
    if roots.is_empty() { Err(unusable("the text holds no certificate")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificate_authorities_that_are_none_are_refused_before_the_store_is_asked() {
        let refused = |address, pem: &str| Place::new(address, Some(pem.into())).err().unwrap().to_string();
        let own = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(refused("redis://localhost", own).contains("does not begin with rediss"));
        assert!(refused("redis-sentinel://localhost/s", own).contains("does not begin with rediss"));
        assert!(refused("rediss://localhost", "no pem").contains("holds no certificate"));
        assert!(refused("rediss://localhost", own).contains("not a certificate"));
    }

    #[test]
    fn only_a_store_on_this_machine_may_see_a_token_unsealed() {
        let is_local = |address| Place::new(address, None).ok().unwrap().is_local();
        for address in ["redis://127.0.0.1:1", "redis://localhost", "redis://:canary@[::1]:1"] {
            assert!(is_local(address), "{address}");
        }
        for address in [
            "redis://store.example",
            "redis://u:canary@10.0.0.1",
            "rediss://u:canary@10.0.0.1",
            "redis://127.0.0.1.example",
            "redis-sentinel://127.0.0.1/orders",
        ] {
            assert!(!is_local(address), "{address}");
        }
    }

    #[test]
    fn a_store_of_sentinels_is_named_by_them_and_not_by_its_password() {
        let name = |address| Place::new(address, None).map(|place| place.name());
        let named = name("redis-sentinel://u:canary@one,[::1],two:7/orders").unwrap();
        assert_eq!(&*named, "orders of sentinels one:26379, ::1:26379, two:7");
        for address in
            ["redis-sentinel://", "redis-sentinel://one", "redis-sentinel://one/", "redis-sentinel://one,/s"]
        {
            assert_eq!(name(address), Err(StoreError::InvalidAddress), "{address}");
        }
    }
}
