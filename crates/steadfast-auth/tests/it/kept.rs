//! The store of this crate's tests of shared state.

use steadfast_auth::MemoryStore;

pub(crate) fn store() -> MemoryStore {
    MemoryStore::new()
}
