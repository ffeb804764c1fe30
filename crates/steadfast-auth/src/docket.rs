//! What one flight of logins reads from the store and writes down.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use steadfast_spec::{Planted, WallClock};

use crate::{
    Identity, Record, SkewEstimator, StoreError,
    skew::unix_ms,
    store::{AnyLease, AnyStore, Spent},
    totp,
};

/// A login takes half a minute, and a person five; a lease that stays away longer has been lost.
const LEASE_WITHIN: Duration = Duration::from_secs(600);
/// How often a record that somebody else replaces meanwhile is amended anew.
const MOST_TRIES: usize = 5;

/// A source's view of its store.
#[derive(Clone)]
pub(crate) struct Books {
    pub(crate) store: Arc<dyn AnyStore>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) budget: u32,
    pub(crate) clock: WallClock,
    pub(crate) skew: Arc<Mutex<SkewEstimator>>,
}

impl Books {
    /// The record as it is now: an empty one if there is none, and one that leaves a single attempt if it cannot be
    /// read.
    pub(crate) async fn read(&self) -> Result<Record, StoreError> {
        let record = match self.store.load().await {
            Ok(record) => record.unwrap_or_default(),
            Err(StoreError::Garbled { place }) => {
                tracing::warn!(place, "record cannot be read: one login is left until one succeeds");
                let mut record = Record::salvaged(self.budget);
                // Which codes were submitted is lost too: the current one may be among them.
                record.note_step(totp::step_at(self.now()));
                record
            }
            Err(error) => return Err(error),
        };
        if record.account.as_ref().is_some_and(|account| !self.identity.is_of(account)) {
            return Err(StoreError::OtherAccount { place: self.store.name() });
        }
        Ok(record)
    }

    /// What is spent of the budgets of these credentials and of the account.
    pub(crate) fn spent(&self, record: &Record) -> Spent {
        record.failures.of(&self.identity)
    }

    /// Waits for the right to log in, and reads what the last one left.
    pub(crate) async fn open(&self) -> Result<Docket, StoreError> {
        let lease = tokio::time::timeout(LEASE_WITHIN, self.store.lease())
            .await
            .map_err(|_| StoreError::Busy { place: self.store.name() })??;
        let record = self.read().await?;
        Ok(Docket {
            books: self.clone(),
            lease: tokio::sync::Mutex::new(lease),
            record: Mutex::new(record),
            counted: Mutex::default(),
        })
    }

    fn now(&self) -> i64 {
        unix_ms(self.clock.now()) + self.skew.lock().offset().unwrap_or_default()
    }
}

/// The right to log in, with the record that it amends.
pub(crate) struct Docket {
    books: Books,
    lease: tokio::sync::Mutex<Box<dyn AnyLease>>,
    record: Mutex<Record>,
    // The attempt under way has been counted, with the step of its code.
    counted: Mutex<Option<Option<u64>>>,
}

impl Docket {
    pub(crate) fn record(&self) -> Record {
        self.record.lock().clone()
    }

    pub(crate) fn steps(&self) -> Vec<u64> {
        self.record.lock().steps.clone()
    }

    /// How long to wait until this machine's next login may leave: others of its address log in too.
    pub(crate) async fn otp_place(&self) -> Duration {
        let now = unix_ms(self.books.clock.now());
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
            if !Planted::BudgetNotStored.is_on() {
                let failures = &mut record.failures;
                failures.account = failures.account.saturating_add(1);
                failures.last.spent = failures.last.spent.saturating_add(1);
            }
            if let Some(step) = step {
                record.note_step(step);
            }
        })
        .await?;
        *self.counted.lock() = Some(step);
        Ok(())
    }

    /// Ends the attempt under way: whether it had been counted, and with which step.
    pub(crate) fn settle(&self) -> Option<Option<u64>> {
        self.counted.lock().take()
    }

    /// As [`amend`](Docket::amend), for what concerns the failures of these credentials.
    pub(crate) async fn amend_failures<T>(
        &self,
        change: impl Fn(&mut Record) -> T + Send + Sync,
    ) -> Result<T, StoreError> {
        self.amend(|record| {
            record.failures.turn_to(&self.books.identity);
            change(record)
        })
        .await
    }

    /// Changes the newest record there is and writes it. What somebody else has written meanwhile is read and
    /// changed in its turn, never overwritten.
    pub(crate) async fn amend<T>(
        &self,
        change: impl Fn(&mut Record) -> T + Send + Sync,
    ) -> Result<T, StoreError> {
        let mut lease = self.lease.lock().await;
        let mut tries = 0;
        loop {
            let mut record = self.record.lock().clone();
            let over = record.revision();
            let changed = change(&mut record);
            self.books.identity.bind_account(&mut record.account);
            record.advance(over);
            match lease.save(&record, over).await {
                Ok(()) => {
                    *self.record.lock() = record;
                    return Ok(changed);
                }
                Err(StoreError::Superseded { .. }) if tries < MOST_TRIES => {
                    tries += 1;
                    *self.record.lock() = self.books.read().await?;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl std::fmt::Debug for Docket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Docket").field("record", &*self.record.lock()).finish_non_exhaustive()
    }
}
