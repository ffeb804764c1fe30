//! The store's part of a login: what is read before it and what is written down.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use steadfast_call::WallClock;

use super::{AnyLease, AnyStore, Damaged, Identity, Record, Spent, StoreError, identity::Fingerprint};
use crate::skew::unix_ms;

/// A login takes half a minute, or five with a person. A lease that is not free after this time is considered lost.
const LEASE_WITHIN: Duration = Duration::from_secs(600);
/// How often an amendment is repeated when another process replaces the record meanwhile.
const MOST_TRIES: usize = 5;

/// A source's view of its store.
#[derive(Clone)]
pub(crate) struct AccountStore {
    pub(crate) store: Arc<dyn AnyStore>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) clock: WallClock,
}

impl AccountStore {
    /// Returns the current record, with what the user's logins by other API keys have spent.
    pub(crate) async fn read(&self, damaged: Damaged) -> Result<Record, StoreError> {
        let mut record = self.read_own(damaged).await?;
        if let Some((label, store)) = self.user() {
            record.take_over(&damaged.record(store.load().await)?, label);
        }
        Ok(record)
    }

    /// Returns the label and store that count the user's failures over all API keys.
    fn user(&self) -> Option<(&str, Arc<dyn AnyStore>)> {
        let label = self.identity.user_label()?;
        Some((label, self.store.of_user(label)?))
    }

    /// Returns the current record of the API key.
    async fn read_own(&self, damaged: Damaged) -> Result<Record, StoreError> {
        let record = damaged.record(self.store.load().await)?;
        if record.account.as_ref().is_some_and(|account| !self.is_own(account, &record)) {
            return Err(StoreError::OtherAccount { place: self.store.name() });
        }
        Ok(record)
    }

    /// True if the record of this account is this login's, too.
    ///
    /// A store that does not name its user is open to any user that logs in, so a mistyped one bars no other. But a token
    /// that is there is one user's alone: no other may use or replace it.
    fn is_own(&self, account: &Fingerprint, record: &Record) -> bool {
        let user = self.identity.user_label();
        let is_users = || user.is_none() || !record.holds_token() || record.user.as_deref() == user;
        self.identity.is_of(account) || self.identity.may_be_of(account) && is_users()
    }

    /// Returns what is spent of the budgets of these credentials and of the account.
    pub(crate) fn spent(&self, record: &Record) -> Spent {
        record.failures.of(&self.identity)
    }

    /// Waits for the lease, then reads the current record.
    pub(crate) async fn open(&self, damaged: Damaged) -> Result<LoginLease, StoreError> {
        let mut opened = self.open_with(damaged).await?;
        let Some((label, store)) = self.user() else { return Ok(opened) };
        let label = label.to_owned();
        // The order of the two leases: the API key's first, the user's second.
        let lease = lease(&*store).await?;
        let mut record = opened.record();
        let loaded = store.load().await;
        let is_garbled = matches!(loaded, Err(StoreError::Garbled { .. }));
        let mut user = User { record: damaged.record(loaded)?, is_garbled, lease, store, label };
        record.take_over(&user.record, &user.label);
        let is_bound = record.user.as_ref() == Some(&user.label);
        let binds = !is_bound && record.revision() > 0;
        if binds {
            // Failures counted before the user had a record are added there first and marked here second. A crash in
            // between counts them twice instead of losing them.
            user.write(&record).await?;
        }
        *opened.record.get_mut() = record;
        opened.user = Some(tokio::sync::Mutex::new(user));
        if binds {
            opened.amend(|_| ()).await?;
        }
        Ok(opened)
    }

    /// As [`open`](AccountStore::open), for changes that are no login and touch no failure. Does not wait for logins by other
    /// API keys.
    pub(crate) async fn open_own(&self) -> Result<LoginLease, StoreError> {
        self.open_with(Damaged::Refused).await
    }

    async fn open_with(&self, damaged: Damaged) -> Result<LoginLease, StoreError> {
        let lease = lease(&*self.store).await?;
        let record = self.read_own(damaged).await?;
        Ok(LoginLease {
            account: self.clone(),
            lease: tokio::sync::Mutex::new(lease),
            user: None,
            record: Mutex::new(record),
            counted: Mutex::default(),
        })
    }
}

async fn lease(store: &dyn AnyStore) -> Result<Box<dyn AnyLease>, StoreError> {
    let lease = tokio::time::timeout(LEASE_WITHIN, store.lease()).await;
    lease.map_err(|_| StoreError::Busy { place: store.name() })?
}

/// The user's record, which logins by all API keys amend one after the other.
struct User {
    label: String,
    store: Arc<dyn AnyStore>,
    lease: Box<dyn AnyLease>,
    record: Record,
    // True while the store still holds a record that cannot be read; `record` begins a new one.
    is_garbled: bool,
}

impl User {
    /// Copies the common part of `record` into the user's record, unless it is there already.
    async fn write(&mut self, record: &Record) -> Result<(), StoreError> {
        let mut next = self.record.clone();
        if !next.follow(record) && !self.is_garbled {
            return Ok(());
        }
        let mut tries = 0;
        loop {
            let over = self.record.revision();
            next.advance(over);
            match self.lease.save(&next, over).await {
                Ok(()) => {
                    (self.record, self.is_garbled) = (next, false);
                    return Ok(());
                }
                // Only the holder of the lease writes, so the file was removed or replaced by hand.
                Err(StoreError::Superseded { .. }) if tries < MOST_TRIES => {
                    tries += 1;
                    self.record = match self.store.load().await {
                        Ok(record) => record.unwrap_or_default(),
                        Err(StoreError::Garbled { .. }) => Record::default(),
                        Err(error) => return Err(error),
                    };
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// A held lease, with the record that it amends.
pub(crate) struct LoginLease {
    account: AccountStore,
    lease: tokio::sync::Mutex<Box<dyn AnyLease>>,
    // `None` if the user is not known, or if the change does not concern the user's record.
    user: Option<tokio::sync::Mutex<User>>,
    record: Mutex<Record>,
    // `Some` once the current attempt has been counted; the content is the time step of its code.
    counted: Mutex<Option<Option<u64>>>,
}

impl LoginLease {
    pub(crate) fn record(&self) -> Record {
        self.record.lock().clone()
    }

    pub(crate) fn steps(&self) -> Vec<u64> {
        self.record.lock().steps.clone()
    }

    /// Returns how long this machine's next login has to wait: others behind its address log in too.
    pub(crate) async fn otp_place(&self) -> Duration {
        let now = unix_ms(self.account.clock.now());
        let place = self.lease.lock().await.otp_place(now).await;
        place.unwrap_or_else(|error| {
            tracing::warn!(error = %error, "logins of other accounts are not known");
            Duration::ZERO
        })
    }

    /// Counts an attempt that is about to leave.
    pub(crate) async fn count(&self, step: Option<u64>) -> Result<(), StoreError> {
        if self.counted.lock().is_some() {
            return Ok(());
        }
        self.amend_failures(|record| {
            let failures = &mut record.failures;
            failures.account = failures.account.saturating_add(1);
            failures.last.spent = failures.last.spent.saturating_add(1);
            if let Some(step) = step {
                record.note_step(step);
            }
        })
        .await?;
        *self.counted.lock() = Some(step);
        Ok(())
    }

    /// Ends the current attempt. Returns `Some` if it had been counted, with the time step of its code.
    pub(crate) fn settle(&self) -> Option<Option<u64>> {
        self.counted.lock().take()
    }

    /// As [`amend`](LoginLease::amend), for changes to the failures of these credentials.
    pub(crate) async fn amend_failures<T>(
        &self,
        change: impl Fn(&mut Record) -> T + Send + Sync,
    ) -> Result<T, StoreError> {
        self.amend(|record| {
            record.failures.turn_to(&self.account.identity);
            change(record)
        })
        .await
    }

    /// Changes the newest record and writes it. If another process has written meanwhile, its record is read and
    /// changed instead of being overwritten.
    pub(crate) async fn amend<T>(
        &self,
        change: impl Fn(&mut Record) -> T + Send + Sync,
    ) -> Result<T, StoreError> {
        let mut lease = self.lease.lock().await;
        let mut user = match &self.user {
            Some(user) => Some(user.lock().await),
            None => None,
        };
        let mut tries = 0;
        loop {
            let mut record = self.record.lock().clone();
            let over = record.revision();
            let changed = change(&mut record);
            self.account.identity.bind_account(&mut record.account);
            if let Some(user) = &user {
                record.user = Some(user.label.clone());
            }
            record.advance(over);
            match lease.save(&record, over).await {
                Ok(()) => {
                    *self.record.lock() = record.clone();
                    if let Some(user) = &mut user {
                        user.write(&record).await?;
                    }
                    return Ok(changed);
                }
                Err(StoreError::Superseded { .. }) if tries < MOST_TRIES => {
                    tries += 1;
                    let mut newest = self.account.read_own(Damaged::Refused).await?;
                    if let Some(user) = &user {
                        newest.take_over(&user.record, &user.label);
                    }
                    *self.record.lock() = newest;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl std::fmt::Debug for LoginLease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoginLease").field("record", &*self.record.lock()).finish_non_exhaustive()
    }
}
