mod error;
mod failures;
mod file;
mod identity;
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
pub(crate) use self::{failures::Spent, record::StoredToken};

/// Keeps what must outlive a process: the token, and every reason to be careful with the next login.
///
/// One store is one account. What a record holds is none of the store's business: it keeps it readable for its owner
/// only, lets one process at a time hold the lease, and never lets an older record replace a newer one.
///
/// Stores of one machine ([`FileStore`]) hold the lease as a lock that ends with its process. A store of several
/// machines has to let a lease run out; a login that takes longer than that must not overwrite what its successor has
/// written, therefore [`StoreLease::save`] compares revisions, and the lease may name its owner beside.
pub trait TokenStore: Sized + Send + Sync + 'static {
    /// The right to log in, given back when dropped.
    type Lease: StoreLease;

    /// What errors call the store: a path, an address.
    fn name(&self) -> String;

    /// The record; `None` if there has never been one.
    ///
    /// A record that cannot be read is [`StoreError::Garbled`] and not `None`.
    fn load(&self) -> impl Future<Output = Result<Option<Record>, StoreError>> + Send;

    /// Waits for the right to log in. It is held during the whole login, not only for the write.
    ///
    /// # Cancellation
    ///
    /// A dropped future leaves no lease behind.
    fn lease(&self) -> impl Future<Output = Result<Self::Lease, StoreError>> + Send;

    /// The store, beside this one, of what logins of one user with several API keys have in common: a service locks the
    /// user. Each API key has a store of its own, and `label` names the user ([`Identity::user_label`]).
    ///
    /// `None`, as unless it is overridden: wrong logins with several API keys are counted for each of them alone.
    fn of_user(&self, label: &str) -> Option<Self> {
        let _ = label;
        None
    }

    /// Allows logins again after wrong ones; whoever does it has corrected what was wrong.
    ///
    /// A record that cannot be read is begun anew; its token is gone.
    ///
    /// The user may log in again with every API key, as far as the record knows him; where nobody has logged in yet, see
    /// [`reset_of`](TokenStore::reset_of).
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the record cannot be written, or is of another account's program.
    fn reset(&self) -> impl Future<Output = Result<(), StoreError>> + Send {
        reset(self, None)
    }

    /// As [`reset`](TokenStore::reset), for whom the record need not know.
    ///
    /// # Errors
    ///
    /// As there.
    fn reset_of(&self, identity: &Identity) -> impl Future<Output = Result<(), StoreError>> + Send {
        reset(self, identity.user_label())
    }

    /// Forgets the token. What is known of failures stays.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the record cannot be read, or not be written.
    fn forget_token(&self) -> impl Future<Output = Result<(), StoreError>> + Send {
        amend(self, Record::forget_token, Damaged::Refused)
    }

    /// What the store holds, without the token; `None` if there is nothing.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the record cannot be read.
    fn summary(&self) -> impl Future<Output = Result<Option<Summary>, StoreError>> + Send {
        summary(self, None)
    }

    /// As [`summary`](TokenStore::summary), with the wrong logins of the user by API keys that this store knows nothing of.
    ///
    /// # Errors
    ///
    /// As there.
    fn summary_of(
        &self,
        identity: &Identity,
    ) -> impl Future<Output = Result<Option<Summary>, StoreError>> + Send {
        summary(self, identity.user_label())
    }
}

/// The right to log in, and to write.
pub trait StoreLease: Send + Sync + 'static {
    /// Writes `record` in the place of the one with revision `over`; zero stands for none, or for one that cannot be
    /// read.
    ///
    /// # Errors
    ///
    /// [`StoreError::Superseded`] if the store holds another revision by now: nothing is written.
    fn save(&mut self, record: &Record, over: u64) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Takes the next place among the requests that leave this machine's address for the OTP zone, at `now` in
    /// milliseconds since the Unix epoch by this machine's clock; returns how long to wait for it.
    ///
    /// The zone counts by address (§8), and the limiter of a process knows only its own logins. A store whose processes
    /// or accounts share an address shares the places; by default there is nothing to wait for.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the place cannot be written down. The login goes on without: the service answers 429 at worst.
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

/// What becomes of a record that cannot be read.
///
/// Nobody knows how many wrong logins it has counted, so no number that a program could think of is right: with none, damage
/// gives back a budget that is spent at the service; with one that is nearly spent, each further damage gives one login more.
/// So no login leaves until somebody has allowed it, which is always possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damaged {
    Refused,
    /// Somebody has allowed logins again, whatever was counted.
    BegunAnew,
}

impl Damaged {
    /// The record that was loaded: an empty one if there is none.
    pub(crate) fn record(self, loaded: Result<Option<Record>, StoreError>) -> Result<Record, StoreError> {
        match loaded {
            Err(StoreError::Garbled { .. }) if self == Self::BegunAnew => Ok(Record::default()),
            loaded => Ok(loaded?.unwrap_or_default()),
        }
    }
}

/// [`TokenStore`] as an object: a source is not generic over its store. It is asked around logins, so a box costs
/// nothing.
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
