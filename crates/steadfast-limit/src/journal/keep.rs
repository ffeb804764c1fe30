use std::{
    io,
    sync::{Weak, atomic::Ordering::SeqCst},
    time::Duration,
};

use tokio::{runtime::Handle, task::spawn_blocking, time::Instant};

use super::Journal;
use crate::{Event, ZoneLimiter, event::NextStart, start::Start, zone_limiter::Shared};

/// The time between two records while requests are sent.
const PACE: Duration = Duration::from_millis(200);

impl ZoneLimiter {
    /// Something was spent or came back: it must be on record soon.
    ///
    /// The first change starts a task, which ends when there is nothing left to write. Outside of a runtime it stays
    /// to be written until the next change inside of one, or the end of the limiter.
    pub(crate) fn touched(&self) {
        let Some(journal) = self.journal() else { return };
        journal.dirty.store(true, SeqCst);
        if journal.kept.swap(true, SeqCst) {
            return;
        }
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(keep(Kept(self.downgrade()), Instant::now()))),
            Err(_) => journal.kept.store(false, SeqCst),
        }
    }

    /// Writes one record, while nobody waits for it. If that fails, what is left of before must not be taken for the
    /// whole truth by the next process.
    fn write(&self) -> Result<(), (io::Error, NextStart)> {
        let Some(journal) = self.journal() else { return Ok(()) };
        let record = journal.record(self.entries(), false);
        journal.write(&record).map_err(|error| (error, journal.spoil()))
    }
}

/// Writes records until nothing has changed since the last.
///
/// The promise that the next process relies on: what is granted is on record within a second. So at most as much
/// as the tightest window lets through in a second is ever missing, however the process ends.
async fn keep(kept: Kept, mut since: Instant) {
    let mut failing = false;
    while let Some(limiter) = kept.0.upgrade().map(ZoneLimiter::of) {
        let Some(journal) = limiter.journal() else { return };
        if !journal.dirty.swap(false, SeqCst) {
            journal.kept.store(false, SeqCst);
            // Whoever came between the two has seen a task that was about to end.
            if !journal.dirty.load(SeqCst) || journal.kept.swap(true, SeqCst) {
                return;
            }
            continue;
        }
        let began = Instant::now();
        let writer = limiter.clone();
        let written = spawn_blocking(move || writer.write())
            .await
            .unwrap_or_else(|_| Err((io::ErrorKind::Other.into(), NextStart::Unaware)));
        let late = since.elapsed().saturating_sub(Duration::from_nanos(Start::RECORDED_WITHIN));
        match written {
            Ok(()) => {
                if !late.is_zero() {
                    limiter.report(&Event::JournalLate { by: late });
                }
                (since, failing) = (began, false);
            }
            Err((error, next)) => {
                journal.dirty.store(true, SeqCst);
                if !std::mem::replace(&mut failing, true) {
                    limiter.report(&Event::JournalFailed { kind: error.kind(), next });
                }
            }
        }
        drop(limiter);
        tokio::time::sleep(PACE).await;
    }
}

/// Tells the limiter when the task has ended, also with its runtime.
struct Kept(Weak<Shared>);

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(limiter) = self.0.upgrade().map(ZoneLimiter::of)
            && let Some(journal) = limiter.journal()
        {
            journal.kept.store(false, SeqCst);
        }
    }
}

impl Journal {
    /// The last record: nothing is sent after it.
    pub(crate) fn close(&self, entries: Vec<super::Entry>) {
        if let Err(error) = self.write(&self.record(entries, true)) {
            let next = self.spoil();
            tracing::warn!(path = %self.path.display(), %error, ?next, "journal could not be closed");
        }
    }
}
