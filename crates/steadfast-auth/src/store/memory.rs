use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

use super::{Record, StoreError, StoreLease, TokenStore};

/// Keeps the record while the process lives. The default store of a source.
///
/// # Clone
///
/// Clones are the same store: sources that share it make one login between them.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    record: Arc<Mutex<Option<Record>>>,
    lease: Arc<tokio::sync::Mutex<()>>,
}

/// The lease of a [`MemoryStore`].
#[derive(Debug)]
pub struct MemoryLease {
    record: Arc<Mutex<Option<Record>>>,
    _held: OwnedMutexGuard<()>,
}

impl MemoryStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl TokenStore for MemoryStore {
    type Lease = MemoryLease;

    fn name(&self) -> String {
        "memory".to_owned()
    }

    async fn load(&self) -> Result<Option<Record>, StoreError> {
        Ok(self.record.lock().clone())
    }

    async fn lease(&self) -> Result<MemoryLease, StoreError> {
        let held = Arc::clone(&self.lease).lock_owned().await;
        Ok(MemoryLease { record: Arc::clone(&self.record), _held: held })
    }
}

impl StoreLease for MemoryLease {
    async fn save(&mut self, record: &Record, over: u64) -> Result<(), StoreError> {
        let mut kept = self.record.lock();
        if kept.as_ref().map_or(0, Record::revision) != over {
            return Err(StoreError::Superseded { place: "memory".to_owned() });
        }
        *kept = Some(record.clone());
        Ok(())
    }
}
