use std::{
    io,
    sync::{Weak, atomic::Ordering::SeqCst},
    time::Duration,
};

use tokio::{runtime::Handle, task::spawn_blocking, time::Instant};

use super::Journal;
use crate::{Event, ZoneLimiter, event::NextStart, start::Start, zone_limiter::Shared};

/// The pause between two records while requests are sent.
const PACE: Duration = Duration::from_millis(200);

impl ZoneLimiter {
    /// Records that something was spent or came back and must be written soon.
    ///
    /// The first change starts a task, which ends when nothing is left to write. Outside of a runtime the change is
    /// written at the next change inside of one, or at the end of the limiter.
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

    /// Writes one record; no request waits for it. If it fails, the old record is marked, so that the next process
    /// does not take it for the whole truth.
    fn write(&self) -> Result<(), (io::Error, NextStart)> {
        let Some(journal) = self.journal() else { return Ok(()) };
        let record = journal.record(self.entries(), false);
        journal.write(&record).map_err(|error| (error, journal.spoil()))
    }
}

/// Writes records until nothing has changed since the last one.
///
/// The next process relies on this: a grant is on record within a second. So the record misses at most what the
/// tightest window admits in a second, however the process ends.
async fn keep(kept: Kept, mut since: Instant) {
    let mut failing = false;
    while let Some(limiter) = kept.0.upgrade().map(ZoneLimiter::of) {
        let Some(journal) = limiter.journal() else { return };
        if !journal.dirty.swap(false, SeqCst) {
            journal.kept.store(false, SeqCst);
            // A change between the two accesses has seen a task that was about to end.
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

/// Tells the limiter that the task has ended, also if its runtime ended.
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
    /// Writes the last record. Nothing is sent after it.
    pub(crate) fn close(&self, entries: Vec<super::Entry>) {
        if let Err(error) = self.write(&self.record(entries, true)) {
            let next = self.spoil();
            tracing::warn!(path = %self.path.display(), %error, ?next, "journal could not be closed");
        }
    }
}
