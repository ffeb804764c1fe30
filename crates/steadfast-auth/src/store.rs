mod error;
mod failures;
mod file;
mod identity;
mod login_lease;
mod memory;
mod record;
mod spelling;

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

pub use self::{
    error::StoreError,
    file::{FileLease, FileStore},
    identity::Identity,
    memory::{MemoryLease, MemoryStore},
    record::{Record, Summary},
};
pub(crate) use self::{
    failures::{BUDGET, FIRST_PAUSE, Spent},
    login_lease::{AccountStore, LoginLease},
    record::{StoredThrottled, StoredToken},
};

/// Keeps what must outlive a process: the token, and everything that limits the next login.
///
/// One store is one account. A store need not understand its records. It keeps them readable for their owner only, lets
/// one process at a time hold the lease, and never lets an older record replace a newer one.
///
/// A store for one machine ([`FileStore`]) holds the lease as a lock that ends with its process. A store for several
/// machines has to let leases expire. A login that outlasts its lease must not overwrite its successor's record, so
/// [`StoreLease::save`] compares revisions. A lease may also name its owner.
pub trait TokenStore: Sized + Send + Sync + 'static {
    /// The right to log in. It is given back when dropped.
    type Lease: StoreLease;

    /// Returns the store's name for errors: a path, an address.
    fn name(&self) -> String;

    /// Loads the record; `None` if there has never been one.
    ///
    /// An unreadable record is [`StoreError::Garbled`], not `None`.
    fn load(&self) -> impl Future<Output = Result<Option<Record>, StoreError>> + Send;

    /// Waits for the lease. It is held during the whole login, not only for the write.
    ///
    /// # Cancellation
    ///
    /// A dropped future leaves no lease behind.
    fn lease(&self) -> impl Future<Output = Result<Self::Lease, StoreError>> + Send;

    /// Returns the store for what one user's logins with several API keys have in common, because a service locks the
    /// user. Each API key has a store of its own; `label` names the user ([`Identity::user_label`]).
    ///
    /// `None`, the default: wrong logins are counted for each API key alone.
    fn of_user(&self, label: &str) -> Option<Self> {
        let _ = label;
        None
    }

    /// Allows logins again after wrong ones, once their cause has been corrected.
    ///
    /// An unreadable record is replaced by an empty one; its token is lost. One without a token may be another user's from then
    /// on.
    ///
    /// Applies to the user with every API key, as far as the record knows the user. If no login has happened yet, use
    /// [`reset_of`](TokenStore::reset_of).
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the record cannot be written, or belongs to another account.
    fn reset(&self) -> impl Future<Output = Result<(), StoreError>> + Send {
        reset(self, None)
    }

    /// As [`reset`](TokenStore::reset), for a user that the record need not know.
    ///
    /// # Errors
    ///
    /// As for [`reset`](TokenStore::reset).
    fn reset_of(&self, identity: &Identity) -> impl Future<Output = Result<(), StoreError>> + Send {
        reset(self, identity.user_label())
    }

    /// Forgets the token. The known failures stay. The store may be another user's from then on.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the record cannot be read or written.
    fn forget_token(&self) -> impl Future<Output = Result<(), StoreError>> + Send {
        amend(self, Record::forget_token, Damaged::Refused)
    }

    /// Returns the content of the store without the token; `None` if there is nothing.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the record cannot be read.
    fn summary(&self) -> impl Future<Output = Result<Option<Summary>, StoreError>> + Send {
        summary(self, None)
    }

    /// As [`summary`](TokenStore::summary), including the user's wrong logins by API keys that this store does not
    /// know.
    ///
    /// # Errors
    ///
    /// As for [`summary`](TokenStore::summary).
    fn summary_of(
        &self,
        identity: &Identity,
    ) -> impl Future<Output = Result<Option<Summary>, StoreError>> + Send {
        summary(self, identity.user_label())
    }
}

/// The right to log in, and to write.
pub trait StoreLease: Send + Sync + 'static {
    /// Replaces the record that has revision `over` by `record`. Zero stands for no record, or an unreadable one.
    ///
    /// # Errors
    ///
    /// [`StoreError::Superseded`] if the store now holds another revision. Nothing is written then.
    fn save(&mut self, record: &Record, over: u64) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Takes the next place among the requests that leave this machine's address for the OTP zone, at `now` in
    /// milliseconds since the Unix epoch by this machine's clock. Returns how long to wait for it.
    ///
    /// The zone counts by address (§8), but the limiter of a process knows only its own logins. A store whose processes
    /// or accounts share an address shares the places. By default there is no wait.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the place cannot be written down. The login goes on without it; at worst the service answers
    /// 429.
    fn otp_place(&mut self, now: i64) -> impl Future<Output = Result<Duration, StoreError>> + Send {
        let _ = now;
        async { Ok(Duration::ZERO) }
    }
}

async fn reset<S: TokenStore>(store: &S, user: Option<&str>) -> Result<(), StoreError> {
    let known = match store.load().await {
        Ok(record) => record.and_then(|record| record.user),
        Err(StoreError::Garbled { .. }) => None,
        Err(error) => return Err(error),
    };
    amend(store, Record::forgive, Damaged::BegunAnew).await?;
    match user.or(known.as_deref()).and_then(|label| store.of_user(label)) {
        Some(user) => amend(&user, Record::forgive, Damaged::BegunAnew).await,
        None => Ok(()),
    }
}

async fn summary<S: TokenStore>(store: &S, user: Option<&str>) -> Result<Option<Summary>, StoreError> {
    let mut record = store.load().await?;
    let label = user.or(record.as_ref().and_then(|record| record.user.as_deref())).map(str::to_owned);
    let user = match label.as_ref().and_then(|label| store.of_user(label)) {
        Some(user) => user.load().await?,
        None => None,
    };
    if let (Some(label), Some(user)) = (label, user) {
        record.get_or_insert_default().take_over(&user, &label);
    }
    Ok(record.map(|record| record.summary()))
}

async fn amend<S: TokenStore>(
    store: &S,
    change: fn(&mut Record),
    damaged: Damaged,
) -> Result<(), StoreError> {
    let mut lease = store.lease().await?;
    let mut record = damaged.record(store.load().await)?;
    let over = record.revision();
    change(&mut record);
    record.advance(over);
    StoreLease::save(&mut lease, &record, over).await
}

/// How an unreadable record is treated.
///
/// The number of wrong logins in it is lost, and every guess would be wrong: zero restores a budget that the service
/// has seen spent, and a nearly spent budget allows one more login for each further damage. So no login leaves until a
/// person allows it, which is always possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damaged {
    Refused,
    /// A person has allowed logins again, whatever was counted.
    BegunAnew,
}

impl Damaged {
    /// Returns the loaded record: an empty one if there is none.
    pub(crate) fn record(self, loaded: Result<Option<Record>, StoreError>) -> Result<Record, StoreError> {
        match loaded {
            Err(StoreError::Garbled { .. }) if self == Self::BegunAnew => Ok(Record::default()),
            loaded => Ok(loaded?.unwrap_or_default()),
        }
    }
}

/// [`TokenStore`] as an object, so that a source is not generic over it. It is used only around logins, so the box
/// costs nothing.
pub(crate) trait AnyStore: Send + Sync {
    fn name(&self) -> String;
    fn load(&self) -> StoreFuture<'_, Option<Record>>;
    fn lease(&self) -> StoreFuture<'_, Box<dyn AnyLease>>;
    fn of_user(&self, label: &str) -> Option<Arc<dyn AnyStore>>;
}

pub(crate) trait AnyLease: Send + Sync {
    fn save<'a>(&'a mut self, record: &'a Record, over: u64) -> StoreFuture<'a, ()>;
    fn otp_place(&mut self, now: i64) -> StoreFuture<'_, Duration>;
}

type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

impl<S: TokenStore> AnyStore for S {
    fn name(&self) -> String {
        TokenStore::name(self)
    }

    fn load(&self) -> StoreFuture<'_, Option<Record>> {
        Box::pin(TokenStore::load(self))
    }

    fn lease(&self) -> StoreFuture<'_, Box<dyn AnyLease>> {
        Box::pin(async { Ok(Box::new(TokenStore::lease(self).await?) as Box<dyn AnyLease>) })
    }

    fn of_user(&self, label: &str) -> Option<Arc<dyn AnyStore>> {
        TokenStore::of_user(self, label).map(|store| Arc::new(store) as Arc<dyn AnyStore>)
    }
}

impl<L: StoreLease> AnyLease for L {
    fn save<'a>(&'a mut self, record: &'a Record, over: u64) -> StoreFuture<'a, ()> {
        Box::pin(StoreLease::save(self, record, over))
    }

    fn otp_place(&mut self, now: i64) -> StoreFuture<'_, Duration> {
        Box::pin(StoreLease::otp_place(self, now))
    }
}
