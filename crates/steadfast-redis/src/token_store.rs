use std::{fmt, sync::Arc, time::Duration};

use redis::cmd;
use secrecy::ExposeSecret;
use steadfast_auth::{Record, StoreError, StoreLease, TokenStore};
use tokio::{runtime::Handle, task::AbortHandle, time::sleep};

use crate::{
    random::random_bits,
    seal::{Seal, Sealed},
    store::Store,
};

/// Keeps a token's record in the store, for the processes of all machines.
///
/// 1. The record is [sealed](Seal): a dump of the store shows no token. Without a key only a store of the same machine is
///    accepted.
/// 2. A process that logs in holds a lease, which has an owner and a number, and renews it until the login has ended. If
///    the process dies, the lease ends [half a minute](Self::lease_life) later.
/// 3. A process that was stopped for longer, and goes on, has lost its lease. It replaces no newer record, because the
///    store compares revisions.
/// 4. All accounts of a store space their logins in the OTP zone, which counts by address (§8). Processes
///    [behind another address](Self::address) have places of their own.
/// 5. Failures that count for a user under any of his API keys have a record of their own.
///
/// A store that is emptied has forgotten wrong logins, as a deleted file has.
///
/// # Example
///
/// ```no_run
/// use steadfast_auth::{Login, TokenSource};
/// use steadfast_limit::Account;
/// use steadfast_redis::{Seal, Shared};
///
/// # async fn source(api_key: steadfast_auth::ApiKey, login: impl Login) -> Result<(), Box<dyn std::error::Error>> {
/// let shared = Shared::connect("redis://store.example:6379", &Account::new("SB0001")).await?;
/// let seal = Seal::of_environment()?.ok_or("no seal key")?;
/// let source = TokenSource::builder(api_key, login).store(shared.token_store(seal)).build();
/// # drop(source);
/// # Ok(())
/// # }
/// ```
///
/// # Clone
///
/// Clones are the same record.
#[derive(Clone)]
pub struct RedisStore {
    store: Arc<Store>,
    key: Arc<str>,
    places: Arc<str>,
    seal: Option<Seal>,
    lease_life: Duration,
}

/// The lease of a [`RedisStore`].
pub struct RedisLease {
    store: RedisStore,
    /// 128 random bits.
    owner: Arc<str>,
    /// False once the store has said that another process has it.
    may_be_held: bool,
    renewal: Option<AbortHandle>,
    runtime: Handle,
}

/// How long a lease outlives its process.
const LEASE_LIFE: Duration = Duration::from_secs(30);
/// How often a lease that another process holds is tried.
const BETWEEN_TRIES: Duration = Duration::from_millis(100);
/// The time between two places. The OTP zone admits three a second (§8).
const BETWEEN_PLACES_MS: u32 = 400;
/// How far ahead a place may be.
const FARTHEST_PLACE_MS: u32 = 10_000;

const TAKE: &str = include_str!("script/token/take.lua");
const KEEP: &str = include_str!("script/token/keep.lua");
const GIVE_BACK: &str = include_str!("script/token/give_back.lua");
const REPLACE: &str = include_str!("script/token/replace.lua");
const PLACE: &str = include_str!("script/token/place.lua");

/// The first byte of a record says whether it is sealed.
const OPEN: u8 = 0;
const SEALED: u8 = 1;

impl RedisStore {
    pub(crate) fn new(store: Arc<Store>, account: &str, seal: Option<Seal>) -> Self {
        Self {
            store,
            key: format!("{{sf:{account}}}:token").into(),
            places: "{sf:ip}:otp".into(),
            seal,
            lease_life: LEASE_LIFE,
        }
    }

    /// Names the address that logins leave from. Processes behind the same address give it the same name; without one
    /// all are behind one address.
    #[must_use]
    pub fn address(self, name: &str) -> Self {
        Self { places: format!("{{sf:ip:{name}}}:otp").into(), ..self }
    }

    /// Sets how long a lease outlives its process. Default: 30 s. All processes are given the same.
    #[must_use]
    pub fn lease_life(self, lease_life: Duration) -> Self {
        Self { lease_life, ..self }
    }

    /// Takes the lease if no other process has it.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store cannot be reached.
    ///
    /// # Cancellation
    ///
    /// A dropped future leaves no lease behind.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub async fn try_lease(&self) -> Result<Option<RedisLease>, StoreError> {
        let owner = random_bits().map_err(|error| StoreError::Other(error.to_string().into()))?;
        // It is given back when dropped, from before it is asked for: the reply may be lost.
        let mut lease = RedisLease {
            store: self.clone(),
            owner: owner.into(),
            may_be_held: true,
            renewal: None,
            runtime: Handle::current(),
        };
        let life = self.lease_life.as_millis().to_string();
        let arguments = [lease.owner.as_bytes(), life.as_bytes()];
        let (fence, _): (u64, i64) = self.run(TAKE, &self.key, &arguments).await?;
        if fence == 0 {
            lease.may_be_held = false;
            return Ok(None);
        }
        lease.renew(fence, life);
        Ok(Some(lease))
    }

    async fn run<T: redis::FromRedisValue>(
        &self,
        script: &str,
        key: &str,
        arguments: &[&[u8]],
    ) -> Result<T, StoreError> {
        let mut evaluate = cmd("EVAL");
        evaluate.arg(script).arg(1).arg(key).arg(arguments);
        self.store.query(&evaluate).await.map_err(|error| StoreError::Other(error.into()))
    }

    /// Returns the revision and the record as they are stored.
    async fn stored(&self) -> Result<Option<(String, Vec<u8>)>, StoreError> {
        let mut get = cmd("HMGET");
        get.arg(&*self.key).arg("revision").arg("record");
        let stored: (Option<String>, Option<Vec<u8>>) =
            self.store.query(&get).await.map_err(|error| StoreError::Other(error.into()))?;
        let (revision, record) = stored;
        Ok(record.map(|record| (revision.unwrap_or_default(), record)))
    }

    fn read(&self, revision: &str, stored: &[u8]) -> Result<Record, StoreError> {
        let garbled = || StoreError::Garbled { place: self.name() };
        let unsealed;
        let bytes = match (stored.split_first(), &self.seal) {
            (Some((&OPEN, bytes)), _) => bytes,
            (Some((&SEALED, bytes)), Some(seal)) => {
                unsealed = match seal.open(bytes, &self.place(revision)) {
                    Ok(open) => open,
                    Err(Sealed::Damaged) => return Err(garbled()),
                    Err(Sealed::Otherwise) => return Err(self.locked("is sealed with another key")),
                };
                unsealed.expose_secret()
            }
            (Some((&SEALED, _)), None) => return Err(self.locked("is sealed, and no key is given")),
            _ => return Err(garbled()),
        };
        let record = Record::decode(bytes, &self.name())?;
        if record.revision().to_string() == revision { Ok(record) } else { Err(garbled()) }
    }

    fn write(&self, record: &Record) -> Result<Vec<u8>, StoreError> {
        let bytes = record.encode();
        let bytes = bytes.expose_secret();
        let Some(seal) = &self.seal else { return Ok([&[OPEN], bytes].concat()) };
        let sealed = seal.seal(bytes, &self.place(&record.revision().to_string()));
        let sealed = sealed.map_err(|error| StoreError::Other(error.to_string().into()))?;
        Ok([&[SEALED], &*sealed].concat())
    }

    /// The place that a record is sealed to: an older one, or one of another account, cannot be put there.
    fn place(&self, revision: &str) -> String {
        format!("{}/{revision}", self.key)
    }

    /// An error that no reset may mend: the record is whole, and other processes can read it.
    fn locked(&self, why: &str) -> StoreError {
        StoreError::Other(format!("{} {why}", self.name()).into())
    }
}

impl TokenStore for RedisStore {
    type Lease = RedisLease;

    fn name(&self) -> String {
        format!("{} {}", self.store.name(), self.key)
    }

    async fn load(&self) -> Result<Option<Record>, StoreError> {
        match self.stored().await? {
            Some((revision, stored)) => self.read(&revision, &stored).map(Some),
            None => Ok(None),
        }
    }

    async fn lease(&self) -> Result<RedisLease, StoreError> {
        loop {
            if let Some(lease) = self.try_lease().await? {
                return Ok(lease);
            }
            sleep(BETWEEN_TRIES).await;
        }
    }

    fn of_user(&self, label: &str) -> Option<Self> {
        Some(Self { key: format!("{{sf:user:{label}}}:token").into(), ..self.clone() })
    }
}

impl RedisLease {
    /// Renews the lease from now on, until it is dropped or another process has it.
    fn renew(&mut self, fence: u64, life: String) {
        let (store, owner, fence) = (self.store.clone(), Arc::clone(&self.owner), fence.to_string());
        let renewal = self.runtime.spawn(async move {
            let arguments = [owner.as_bytes(), fence.as_bytes(), life.as_bytes()];
            loop {
                sleep(store.lease_life / 4).await;
                if matches!(store.run::<u8>(KEEP, &store.key, &arguments).await, Ok(0)) {
                    return;
                }
            }
        });
        self.renewal = Some(renewal.abort_handle());
    }

    /// Returns the revision that a record with revision zero replaces: none, or that of an unreadable one.
    async fn unreadable(&self) -> Result<String, StoreError> {
        let Some((revision, stored)) = self.store.stored().await? else { return Ok("0".to_owned()) };
        match self.store.read(&revision, &stored) {
            Err(StoreError::Garbled { .. }) => Ok(revision),
            Ok(_) => Err(StoreError::Superseded { place: self.store.name() }),
            Err(error) => Err(error),
        }
    }
}

impl StoreLease for RedisLease {
    async fn save(&mut self, record: &Record, over: u64) -> Result<(), StoreError> {
        let over = if over == 0 { self.unreadable().await? } else { over.to_string() };
        let (revision, bytes) = (record.revision().to_string(), self.store.write(record)?);
        let arguments = [over.as_bytes(), revision.as_bytes(), &*bytes];
        match self.store.run(REPLACE, &self.store.key, &arguments).await? {
            1 => Ok(()),
            _ => Err(StoreError::Superseded { place: self.store.name() }),
        }
    }

    async fn otp_place(&mut self, _: i64) -> Result<Duration, StoreError> {
        let arguments = [BETWEEN_PLACES_MS, FARTHEST_PLACE_MS].map(|ms| ms.to_string());
        let arguments = [arguments[0].as_bytes(), arguments[1].as_bytes()];
        self.store.run(PLACE, &self.store.places, &arguments).await.map(Duration::from_millis)
    }
}

impl Drop for RedisLease {
    fn drop(&mut self) {
        if let Some(renewal) = self.renewal.take() {
            renewal.abort();
        }
        if !self.may_be_held {
            return;
        }
        let (store, owner) = (self.store.clone(), Arc::clone(&self.owner));
        // If the store does not hear of it, the lease ends by itself.
        drop(self.runtime.spawn(async move {
            let _ = store.run::<u8>(GIVE_BACK, &store.key, &[owner.as_bytes()]).await;
        }));
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl fmt::Debug for RedisLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisLease").field("store", &self.store).finish_non_exhaustive()
    }
}
