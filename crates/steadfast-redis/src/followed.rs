use std::{
    collections::BTreeSet,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{runtime::Handle, time::sleep};

use crate::shared::Inner;

/// The keys of which this process reads the clock, although it may send nothing.
///
/// A key's clock lets no time pass for a process that has not read it before, and stands still while no process reads it. A
/// process that stood by would find the windows as the last request left them, however long ago that was, and a new one
/// would set the clock back for all.
#[derive(Default)]
pub(crate) struct Followed(Mutex<Keys>);

#[derive(Default)]
struct Keys {
    all: BTreeSet<Arc<str>>,
    /// True while there is a task that reads them.
    are_read: bool,
}

/// How often: as often as an owner of orders renews its lease. After a step of the store's clock as much time is lost at most.
const READS_EVERY: Duration = Duration::from_secs(2);

impl Followed {
    /// Reads the clocks of these keys, too, from now on.
    pub(crate) fn follow(shared: &Arc<Inner>, keys: impl IntoIterator<Item = Arc<str>>) {
        let Ok(runtime) = Handle::try_current() else { return };
        let are_read = {
            let mut followed = shared.followed.0.lock();
            followed.all.extend(keys);
            std::mem::replace(&mut followed.are_read, true)
        };
        // Not under the lock: a runtime that ends drops the task at once.
        if !are_read {
            runtime.spawn(Task(Arc::downgrade(shared)).run());
        }
    }

    fn keys(&self) -> Vec<Arc<str>> {
        self.0.lock().all.iter().cloned().collect()
    }
}

/// Reads the clocks. Weak, so that the last clone can be dropped.
struct Task(Weak<Inner>);

impl Task {
    async fn run(self) {
        while let Some(shared) = self.0.upgrade() {
            for key in shared.followed.keys() {
                // A store that does not answer is asked again at the next turn.
                if shared.store.read(&key).await.is_err() {
                    break;
                }
            }
            drop(shared);
            sleep(READS_EVERY).await;
        }
    }
}

impl Drop for Task {
    /// Its runtime has ended. The next client starts another one.
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade() {
            shared.followed.0.lock().are_read = false;
        }
    }
}
