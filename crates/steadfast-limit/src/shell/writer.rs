use std::{
    io,
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::{runtime::Handle, task::spawn_blocking, time::Instant};

use crate::{
    core::{
        event::{Event, NextStart},
        start::Start,
    },
    shell::shared::Shared,
};

/// The pause between two records while requests are sent.
const PACE: Duration = Duration::from_millis(200);

impl Shared {
    /// Records that something was spent or came back and must be written soon.
    ///
    /// The first change starts a task, which ends when nothing is left to write. Outside of a runtime the change is
    /// written at the next change inside of one, or at the end of the limiter.
    pub(crate) fn touched(self: &Arc<Self>) {
        let Some(journal) = self.journal() else { return };
        let Ok(runtime) = Handle::try_current() else { return journal.pending().note() };
        if journal.pending().change() {
            drop(runtime.spawn(write_changes(Writer(Arc::downgrade(self)), Instant::now())));
        }
    }

    /// Writes one record; no request waits for it. If it fails, the old record is marked, so that the next process
    /// does not take it for the whole truth.
    fn write(&self) -> Result<(), (io::Error, NextStart)> {
        let Some(journal) = self.journal() else { return Ok(()) };
        journal.write(false, || self.content()).map_err(|error| (error, journal.mark_stale()))
    }
}

/// Writes records until nothing has changed since the last one.
///
/// The next process relies on this: a grant is on record within a second. So the record misses at most what the
/// tightest window admits in a second, however the process ends.
async fn write_changes(mut writer: Writer, mut since: Instant) {
    let mut failing = false;
    while let Some(shared) = writer.0.upgrade() {
        let Some(journal) = shared.journal() else { return };
        if !journal.pending().take() {
            // From here on another writer may exist, which must not be counted as ended.
            writer.0 = Weak::new();
            return;
        }
        let began = Instant::now();
        let writing = Arc::clone(&shared);
        let written = spawn_blocking(move || writing.write())
            .await
            .unwrap_or_else(|_| Err((io::ErrorKind::Other.into(), NextStart::Unaware)));
        let late = since.elapsed().saturating_sub(Duration::from_nanos(Start::RECORDED_WITHIN));
        match written {
            Ok(()) => {
                if !late.is_zero() {
                    shared.report(&Event::JournalLate { by: late });
                }
                (since, failing) = (began, false);
            }
            Err((error, next)) => {
                journal.pending().note();
                if !std::mem::replace(&mut failing, true) {
                    shared.report(&Event::JournalFailed { kind: error.kind(), next });
                }
            }
        }
        drop(shared);
        tokio::time::sleep(PACE).await;
    }
}

/// Tells the limiter that the task has ended, also if its runtime ended.
struct Writer(Weak<Shared>);

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade()
            && let Some(journal) = shared.journal()
        {
            journal.pending().writer_ended();
        }
    }
}
