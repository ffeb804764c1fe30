//! The store of the tests of shared state that `steadfast-auth` has, here on a real server.
//!
//! Those tests run on paused time, and a server does not. So each call is made by a runtime of its own, and the paused one
//! stands still meanwhile.

use std::{
    sync::{Arc, LazyLock, mpsc},
    time::Duration,
};

use steadfast_auth::{MemoryLease, MemoryStore, Record, StoreError, StoreLease, TokenStore};
use steadfast_limit::Account;
use steadfast_redis::{RedisLease, RedisStore, Seal, Shared};
use tokio::runtime::Runtime;

use crate::server::Server;

/// A store on a server of its own; in memory where none is installed.
#[derive(Clone)]
pub(crate) enum Kept {
    There { store: RedisStore, _server: Arc<Server> },
    Here(MemoryStore),
}

pub(crate) enum KeptLease {
    There(Option<RedisLease>),
    Here(MemoryLease),
}

pub(crate) fn seal() -> Seal {
    Seal::of_text("01".repeat(32)).unwrap()
}

pub(crate) fn store() -> Kept {
    let started = wait(async {
        let server = Server::start().await?;
        let shared = Shared::connect(&server.url(), &Account::new("SB0001")).await.unwrap();
        Some((server, shared.token_store(seal())))
    });
    match started {
        Some((server, store)) => Kept::There { store, _server: Arc::new(server) },
        None => Kept::Here(MemoryStore::new()),
    }
}

/// Waits on this thread, so that paused time does not pass.
fn wait<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    static REAL: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
    let (sender, receiver) = mpsc::channel();
    REAL.spawn(async move { sender.send(work.await) });
    receiver.recv().unwrap()
}

impl TokenStore for Kept {
    type Lease = KeptLease;

    fn name(&self) -> String {
        match self {
            Self::There { store, .. } => store.name(),
            Self::Here(store) => store.name(),
        }
    }

    async fn load(&self) -> Result<Option<Record>, StoreError> {
        match self {
            Self::There { store, .. } => {
                let store = store.clone();
                wait(async move { store.load().await })
            }
            Self::Here(store) => store.load().await,
        }
    }

    async fn lease(&self) -> Result<KeptLease, StoreError> {
        let store = match self {
            Self::There { store, .. } => store,
            Self::Here(store) => return store.lease().await.map(KeptLease::Here),
        };
        loop {
            let store = store.clone();
            if let Some(lease) = wait(async move { store.try_lease().await })? {
                return Ok(KeptLease::There(Some(lease)));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn of_user(&self, label: &str) -> Option<Self> {
        match self {
            Self::There { store, _server } => {
                Some(Self::There { store: store.of_user(label)?, _server: Arc::clone(_server) })
            }
            Self::Here(_) => None,
        }
    }
}

impl StoreLease for KeptLease {
    async fn save(&mut self, record: &Record, over: u64) -> Result<(), StoreError> {
        match self {
            Self::There(held) => {
                let (mut lease, record) = (held.take().unwrap(), record.clone());
                let (lease, saved) = wait(async move {
                    let saved = lease.save(&record, over).await;
                    (lease, saved)
                });
                *held = Some(lease);
                saved
            }
            Self::Here(lease) => lease.save(record, over).await,
        }
    }
}
